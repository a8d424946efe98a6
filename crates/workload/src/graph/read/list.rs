//! Plain lists of edges: SNAP's and comma-separated ones.

use config::Diagnostic;

use super::Named;
use super::text::Text;

/// `from to`; lines that begin with `#` are comments.
pub(super) fn snap(text: &mut Text) -> Result<Named, Diagnostic> {
    let mut ends = Vec::new();
    while text.next()? {
        if text.line().first() == Some(&b'#') || text.word(0, None).is_none() {
            continue;
        }
        let (from, at) = text.next_integer(0, "vertex", 0..=u64::MAX)?;
        let (to, at) = text.next_integer(at, "second vertex", 0..=u64::MAX)?;
        text.no_more(at, "from to")?;
        ends.push((from, to));
    }
    Ok(Named::Free(ends, None))
}

/// `from,to` or `from|to`. A first line of which no field is a number is a header.
pub(super) fn csv(text: &mut Text) -> Result<Named, Diagnostic> {
    let mut ends = Vec::new();
    let mut separator = None;
    while text.next()? {
        if text.word(0, None).is_none() {
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
        let from = text.word(0, separator).ok_or_else(|| text.refuse_line("an empty line"))?;
        let Some(to) = text.line()[from.to..]
            .iter()
            .position(|b| *b == found)
            .and_then(|n| text.word(from.to + n + 1, separator))
        else {
            return Err(text.refuse_line(format!("the line has one field, not `from{}to`", found as char)));
        };
        if text.line()[to.to..].contains(&found) {
            return Err(text.refuse_line(format!("more fields than `from{}to`", found as char)));
        }
        if first && text.number(from).is_none() && text.number(to).is_none() {
            continue;
        }
        ends.push((
            text.integer(from, "vertex", 0..=u64::MAX)?,
            text.integer(to, "second vertex", 0..=u64::MAX)?,
        ));
    }
    Ok(Named::Free(ends, None))
}
