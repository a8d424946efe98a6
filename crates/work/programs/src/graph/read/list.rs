//! Plain lists of edges: SNAP's and comma-separated ones.

use config::Diagnostic;

use super::{Named, Text, Word};

/// Maximum number of fields of a line: two ends, a value, and when the edge was created (KONECT).
const FIELDS_MOST: usize = 4;

/// Edges of a list, with values if its lines have them.
#[derive(Default)]
struct List {
    ends: Vec<(u64, u64)>,
    weights: Vec<u32>,
    /// Number of fields per line; zero before the first.
    fields: usize,
}

impl List {
    /// Adds a line.
    fn line(&mut self, text: &Text, fields: &[Word]) -> Result<(), Diagnostic> {
        let &[from, to, ref others @ ..] = fields else {
            return Err(text.refuse_line("the line ends before the second vertex"));
        };
        let ends =
            (text.integer(from, "vertex", 0..=u64::MAX)?, text.integer(to, "second vertex", 0..=u64::MAX)?);
        if fields.len() > FIELDS_MOST {
            return Err(text.refuse_line("more fields than `from to value time`"));
        }
        if self.fields != 0 && self.fields != fields.len() {
            let what = format!("the line has {} fields, those before have {}", fields.len(), self.fields);
            let help = "a list of edges has the same fields in each line: `from to`, or `from to value`";
            return Err(text.refuse_line(what).help(help));
        }
        self.fields = fields.len();
        self.ends.push(ends);
        if let [value, when @ ..] = others {
            self.weights.push(text.value(*value, "weight", 0)?);
            when.iter().try_for_each(|when| text.number_at_all(*when, "time"))?;
        }
        Ok(())
    }

    fn named(self) -> Named {
        let weights = (self.fields > 2).then_some(self.weights);
        Named::Free(self.ends, weights)
    }
}

/// Reads `from to`, and a value if lines have one; lines that begin with `#` or `%` are comments.
pub(super) fn snap(text: &mut Text) -> Result<Named, Diagnostic> {
    let (mut list, mut fields) = (List::default(), Vec::new());
    while text.next()? {
        if text.is_aside() {
            continue;
        }
        fields.clear();
        let mut at = 0;
        while let Some(word) = text.word(at, None).filter(|_| fields.len() <= FIELDS_MOST) {
            fields.push(word);
            at = word.to;
        }
        list.line(text, &fields)?;
    }
    Ok(list.named())
}

/// Reads `from,to` or `from|to`, and a value if lines have one. A first line without numbers is a header.
pub(super) fn csv(text: &mut Text) -> Result<Named, Diagnostic> {
    let (mut list, mut fields) = (List::default(), Vec::new());
    let mut separator = None;
    while text.next()? {
        if text.is_aside() {
            continue;
        }
        let first = separator.is_none();
        let found = match separator {
            Some(known) => known,
            None => *text
                .line()
                .iter()
                .find(|b| matches!(b, b',' | b'|'))
                .ok_or_else(|| text.refuse_line("the fields are separated neither by `,` nor by `|`"))?,
        };
        separator = Some(found);
        fields.clear();
        let mut at = 0;
        while let Some(word) = text.word(at, separator).filter(|_| fields.len() <= FIELDS_MOST) {
            fields.push(word);
            let Some(next) = text.line()[word.to..].iter().position(|b| *b == found) else { break };
            at = word.to + next + 1;
        }
        if fields.len() < 2 {
            return Err(text.refuse_line(format!("the line has one field, not `from{}to`", found as char)));
        }
        if first && fields.iter().all(|field| text.number(*field).is_none()) {
            continue;
        }
        list.line(text, &fields)?;
    }
    Ok(list.named())
}
