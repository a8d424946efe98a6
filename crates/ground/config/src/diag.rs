//! One readable diagnostic: what is wrong, where, what is allowed, the nearest right spelling.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::quote::{QUOTED, clip, clip_quotes, harmless};
use crate::synonym::{self, ends_in};

/// Characters of an input line that a diagnostic shows.
const SHOWN: usize = 120;

/// Unusable input. The command line prints it and exits with status 2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Diagnostic {
    /// What is wrong, in one sentence without a final stop.
    pub what: String,
    /// Where it stands, if it stands in a file or an option.
    pub place: Option<Box<Place>>,
    /// The other place of a limit between two values.
    pub beside: Option<Box<Place>>,
    /// The things it is about, a line each.
    pub listed: Vec<String>,
    /// What would have been allowed.
    pub allowed: Vec<String>,
    /// The nearest right spelling.
    pub nearest: Option<String>,
    /// What the reader can do about it.
    pub help: Option<String>,
    /// Further faults of the same input, found in the same reading.
    pub also: Box<[Diagnostic]>,
}

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
pub struct Place {
    /// File name, or the option (`--set`, `--workload`) that carried the text.
    pub source: String,
    /// Line, counted from one; zero if the input has no lines.
    pub line: u64,
    /// Column in characters, counted from one; zero if unknown.
    pub column: u64,
    /// The offending line.
    pub text: String,
    /// Configuration key (`flash.geometry.channels`), if there is one.
    pub key: String,
}

impl Diagnostic {
    /// A diagnostic that says only what is wrong.
    pub fn new(what: impl Into<String>) -> Diagnostic {
        Diagnostic {
            what: what.into(),
            place: None,
            beside: None,
            listed: Vec::new(),
            allowed: Vec::new(),
            nearest: None,
            help: None,
            also: Box::default(),
        }
    }
    /// Adds the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Diagnostic {
        self.place = Some(Box::new(place));
        self
    }
    /// Adds the allowed values, and the nearest of them to `given`.
    #[must_use]
    pub fn allowed<S: Into<String>>(
        mut self,
        given: &str,
        allowed: impl IntoIterator<Item = S>,
    ) -> Diagnostic {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self.nearest = nearest(given, self.allowed.iter().map(String::as_str)).map(str::to_owned);
        self
    }
    /// Adds a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
    /// Says where that is for which `given` is another word, unless the nearest spelling already does.
    #[must_use]
    pub fn pointed(self, given: &str) -> Diagnostic {
        let last = given.rsplit('.').next().unwrap_or(given);
        match synonym::meant(given).or_else(|| synonym::meant(last)) {
            Some((_, place)) if self.nearest.is_none() => self.help(format!("`{last}` is {place}")),
            _ => self,
        }
    }
    /// Adds further faults of the same input.
    #[must_use]
    pub fn also(mut self, further: impl IntoIterator<Item = Diagnostic>) -> Diagnostic {
        self.also = self.also.into_iter().chain(further).collect();
        self
    }
    /// The diagnostic without its place, on one line: for a message inside another message.
    pub fn one_line(&self) -> String {
        let mut line = self.what.clone();
        if !self.listed.is_empty() {
            line.push_str(&format!(": {}", self.listed.join("; ")));
        }
        if let Some(nearest) = &self.nearest {
            line.push_str(&format!("; did you mean `{nearest}`?"));
        }
        if !self.allowed.is_empty() {
            line.push_str(&format!("; allowed: {}", self.allowed.join(", ")));
        }
        if let Some(help) = &self.help {
            line.push_str(&format!("; {help}"));
        }
        line
    }
}

/// The candidate that is meant by `given`: one that ends in it or in the name of what it is another word for, else the
/// nearest by edit distance, if any is near enough.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // Distances are quadratic in length, and nothing this long is a misspelt name.
    if given.len() > 256 {
        return None;
    }
    // Another word for something that is no candidate is not a misspelt one.
    let meant = ends_in(given, candidates.iter().copied());
    if meant.is_some() || synonym::meant(given).is_some() {
        return meant;
    }
    let given_lower = given.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&given_lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| {
            // Words of up to three letters that are meant share some of them.
            let longer = given.len().max(c.len());
            *distance < longer && *distance <= 1 + longer / 3 && (*distance <= 1 || 2 * distance <= longer)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Whether two words differ by one letter, whatever their case.
pub fn is_slip(given: &str, word: &str) -> bool {
    strsim::damerau_levenshtein(&given.to_lowercase(), &word.to_lowercase()) <= 1
}

impl Place {
    /// The offending line with a caret under the column; a long line is shown around the column.
    fn write_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = usize::try_from(self.column).unwrap_or(usize::MAX);
        let before = self.text.char_indices().nth(column.saturating_sub(1)).map_or(self.text.len(), |c| c.0);
        let mut first = 0;
        if column > SHOWN - 20 || before > QUOTED - 20 {
            // As much as fits into half of a line, in characters and in bytes.
            let fits =
                |(n, (byte, _)): &(usize, (usize, char))| *n < SHOWN / 2 && before - byte <= QUOTED / 2;
            let back = self.text[..before].char_indices().rev().enumerate().take_while(fits).count();
            first = column.saturating_sub(1 + back);
        }
        let mut bytes = 0;
        let within = |c: &char| {
            bytes += c.len_utf8();
            bytes <= QUOTED
        };
        let shown: String =
            self.text.chars().skip(first).take(SHOWN).take_while(within).map(harmless).collect();
        let number = if self.line > 0 { self.line.to_string() } else { String::new() };
        write!(f, "\n{number:>5} | {shown}")?;
        if column > first && column - first <= shown.chars().count() + 1 {
            // Tabs are kept, so that the caret stands under the right character.
            let indent = shown.chars().take(column - first - 1).map(|c| if c == '\t' { c } else { ' ' });
            write!(f, "\n      | {}^", indent.collect::<String>())?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    /// `file:line:column`, as far as known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&clip(&self.source))?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
            if self.column > 0 {
                write!(f, ":{}", self.column)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", clip_quotes(&self.what))?;
        if let Some(place) = &self.place {
            write!(f, "\n  --> {place}")?;
            if !place.key.is_empty() {
                write!(f, "  (key `{}`)", clip(&place.key))?;
            }
            if !place.text.is_empty() {
                place.write_line(f)?;
            }
        }
        for line in &self.listed {
            write!(f, "\n    {line}")?;
        }
        if let Some(Place { key, text, .. }) = self.beside.as_deref() {
            let place = self.beside.as_deref().map(ToString::to_string).unwrap_or_default();
            write!(f, "\n  beside `{key}` at {place}")?;
            if !text.trim().is_empty() {
                write!(f, ": {}", clip(text.trim()))?;
            }
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "\n  did you mean `{nearest}`?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, "\n  allowed: {}", self.allowed.join(", "))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {}", clip_quotes(help))?;
        }
        for further in &self.also {
            write!(f, "\n\n{further}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            source: "d16.toml".into(),
            line: 3,
            column: 1,
            text: "chanels = 8".into(),
            key: "flash.geometry.chanels".into(),
        }
    }

    #[test]
    fn says_what_where_allowed_and_nearest() {
        let text = Diagnostic::new("unknown key `chanels`")
            .at(place())
            .allowed("chanels", ["channels", "ways", "dies"])
            .to_string();
        assert!(text.contains("d16.toml:3:1"), "{text}");
        assert!(text.contains("did you mean `channels`?"), "{text}");
        assert!(text.contains("channels, ways, dies"), "{text}");
    }

    #[test]
    fn a_word_that_is_near_nothing_has_no_nearest() {
        assert_eq!(nearest("zzzzzz", ["channels", "ways"]), None);
        assert_eq!(nearest("w", ["?", "batch"]), None);
        assert_eq!(nearest("LRN", ["Erf", "Exp"]), None);
        assert_eq!(nearest("Sun", ["Sum", "Exp"]), Some("Sum"));
    }

    #[test]
    fn the_caret_stands_under_the_column_behind_tabs_and_in_long_lines() {
        let caret_under = |text: &str, column: u64| {
            let place = Place { text: text.into(), column, ..place() };
            let shown = Diagnostic::new("x").at(place).to_string();
            let mut lines = shown.lines().skip(2).map(|l| l.split_once("| ").expect("a gutter").1);
            let (line, caret) = (lines.next().expect("the line"), lines.next().expect("the caret"));
            line.chars().nth(caret.chars().count() - 1)
        };
        assert_eq!(caret_under("\tways = X4", 9), Some('X'));
        let long = format!("a = [{}X]", "1,".repeat(200));
        assert_eq!(caret_under(&long, 406), Some('X'));
    }

    #[test]
    fn terminal_escapes_are_not_printed() {
        let place = Place { text: "a = \u{1b}[31m1\t2".into(), column: 5, ..place() };
        let text = Diagnostic::new("x").at(place).to_string();
        assert!(!text.contains('\u{1b}') && text.contains("[31m1\t2"), "{text:?}");
    }

    #[test]
    fn further_faults_follow() {
        let text = Diagnostic::new("first").also([Diagnostic::new("second")]).to_string();
        assert!(text.contains("error: first") && text.contains("error: second"), "{text}");
    }
}
