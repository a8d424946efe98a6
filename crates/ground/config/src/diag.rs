//! Readable diagnostics: what is wrong, where, what is allowed, and the nearest correct spelling.

use serde::{Deserialize, Serialize};
use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
};

use crate::synonym::{self, ends_in};

/// Characters of an input line that a diagnostic shows.
const SHOWN: usize = 120;

/// Diagnostic for unusable input. The command line prints it and exits with status 2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Diagnostic {
    /// Error in one sentence, without a final full stop.
    pub what: String,
    /// Place of the error, if it is in a file or an option.
    pub place: Option<Box<Place>>,
    /// Second place, if a limit relates two values.
    pub beside: Option<Box<Place>>,
    /// Items that the error is about, one per line.
    pub listed: Vec<String>,
    /// Allowed values.
    pub allowed: Vec<String>,
    /// Nearest correct spelling.
    pub nearest: Option<String>,
    /// Remedy: what the user can do about it.
    pub help: Option<String>,
    /// Further errors found in the same pass over the input.
    pub also: Box<[Diagnostic]>,
}

/// Place in an input.
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
pub struct Place {
    /// File name, or the option (`--set`, `--workload`) that carried the text.
    pub source: String,
    /// Line number, counted from one; zero if the input has no lines.
    pub line: u64,
    /// Column in characters, counted from one; zero if unknown.
    pub column: u64,
    /// The offending line.
    pub text: String,
    /// Configuration key (`flash.geometry.channels`), if any.
    pub key: String,
}

impl Diagnostic {
    /// Creates a diagnostic that only says what is wrong.
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
    /// Adds the location of the item that `given` is a synonym of, unless the nearest spelling already shows it.
    #[must_use]
    pub fn pointed(self, given: &str) -> Diagnostic {
        let last = given.rsplit('.').next().unwrap_or(given);
        match synonym::meant(given).or_else(|| synonym::meant(last)) {
            Some((_, place)) if self.nearest.is_none() => self.help(format!("`{last}` is {place}")),
            _ => self,
        }
    }
    /// Adds further errors of the same input.
    #[must_use]
    pub fn also(mut self, further: impl IntoIterator<Item = Diagnostic>) -> Diagnostic {
        self.also = self.also.into_iter().chain(further).collect();
        self
    }
    /// Formats the diagnostic without its place, on one line, for use inside another message.
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

/// Returns the candidate that `given` means: one that ends in `given` or in the name it is a synonym of, otherwise the
/// nearest by edit distance, if near enough.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    // Edit distance is quadratic in length, and no misspelt name is this long.
    if given.len() > 256 {
        return None;
    }
    // A synonym of something that is not a candidate is not a misspelling.
    let meant = ends_in(given, candidates.iter().copied());
    if meant.is_some() || synonym::meant(given).is_some() {
        return meant;
    }
    let given_lower = given.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&given_lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| {
            // Short words (up to three letters) must share some letters.
            let longer = given.len().max(c.len());
            *distance < longer && *distance <= 1 + longer / 3 && (*distance <= 1 || 2 * distance <= longer)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// Returns whether two words differ by one letter, ignoring case.
pub fn is_slip(given: &str, word: &str) -> bool {
    strsim::damerau_levenshtein(&given.to_lowercase(), &word.to_lowercase()) <= 1
}

impl Place {
    /// Writes the offending line with a caret under the column; a long line is cut to the surroundings of the column.
    fn write_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = usize::try_from(self.column).unwrap_or(usize::MAX);
        let before = self.text.char_indices().nth(column.saturating_sub(1)).map_or(self.text.len(), |c| c.0);
        let mut first = 0;
        if column > SHOWN - 20 || before > QUOTED - 20 {
            // At most half a line of context on either side, in characters and in bytes.
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
            // Tabs are kept, so that the caret is under the right character.
            let indent = shown.chars().take(column - first - 1).map(|c| if c == '\t' { c } else { ' ' });
            write!(f, "\n      | {}^", indent.collect::<String>())?;
        }
        Ok(())
    }
}

impl fmt::Display for Place {
    /// Formats `file:line:column`, as far as known.
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

// Reading small files written by a person.

/// Maximum file size in bytes. A system, a sweep or a job takes a few kilobytes; a larger file is something else.
const LARGEST: u64 = 16 << 20;

/// Reads a text file.
///
/// # Errors
/// The file cannot be read, is larger than 16 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Diagnostic> {
    let shown = path.display().to_string();
    let unreadable = |fault: io::Error| {
        let help = match fault.kind() {
            io::ErrorKind::NotFound => {
                "check the path: it is relative to the folder that the command runs in"
            }
            io::ErrorKind::IsADirectory => "name one of the files in it",
            _ => "check that you have permission to read the file",
        };
        Diagnostic::new(format!("cannot read `{shown}`: {fault}")).help(help)
    };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LARGEST {
        let what = format!("`{shown}` is larger than {} MiB", LARGEST >> 20);
        return Err(Diagnostic::new(what).help("expected a hand-written file, not a trace or a result"));
    }
    String::from_utf8(bytes).map_err(|fault| {
        let byte = fault.utf8_error().valid_up_to();
        let before = &fault.as_bytes()[..byte];
        let line = before.iter().filter(|b| **b == b'\n').count() as u64 + 1;
        let place = Place { source: shown.clone(), line, ..Place::default() };
        Diagnostic::new(format!("`{shown}` is not UTF-8 text (byte {byte})"))
            .at(place)
            .help("save it as UTF-8")
    })
}

// Quoting foreign input: short, and harmless to a terminal.

/// Maximum bytes of an input that a diagnostic quotes in one place.
pub(crate) const QUOTED: usize = 200;

/// Returns the beginning of the text, at most [`QUOTED`] bytes, with a mark where it was cut.
pub(crate) fn clip(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED {
        return text.into();
    }
    let mark = format!("… ({} B)", text.len());
    format!("{}{mark}", beginning(text, QUOTED - mark.len())).into()
}

/// Returns the longest prefix of whole characters that fits in `bytes` bytes.
fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// Clips every quotation (between backquotes or double quotes) in a sentence, and removes characters that move the
/// cursor. The whole sentence is cut at the length of eight quotations.
pub(crate) fn clip_quotes(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len().min(8 * QUOTED));
    let mut rest = sentence;
    while let Some(open) = rest.find(['`', '"']) {
        let quote = &rest[open..=open];
        let Some(length) = rest[open + 1..].find(quote) else { break };
        let close = open + 1 + length;
        text.push_str(&rest[..=open]);
        text.push_str(&clip(&rest[open + 1..close]));
        text.push_str(quote);
        rest = &rest[close + 1..];
    }
    text.push_str(rest);
    if text.len() > 8 * QUOTED {
        text.truncate(beginning(&text, QUOTED).len());
        text.push('…');
    }
    let plain = |c: char| if c == '\n' { c } else { harmless(c) };
    text.chars().map(plain).collect()
}

/// Returns the character, or a mark in place of one that would move the cursor or change colours.
pub(crate) fn harmless(c: char) -> char {
    if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c }
}

/// Returns a text that is safe for a terminal: line feeds and tabs stay; other characters that move the cursor or
/// change colours are replaced.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c == '\n' || harmless(c) == c;
    match text.chars().all(is_plain) {
        true => text.into(),
        false => text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect::<String>().into(),
    }
}

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

    #[test]
    fn escapes_of_names_are_marked_and_lines_stay() {
        assert_eq!(plain("a\tb\né"), "a\tb\né");
        assert_eq!(plain("a\u{1b}[31m\r\u{9b}b\u{7}"), "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}");
    }

    #[test]
    fn short_texts_are_quoted_whole() {
        assert_eq!(clip("é".repeat(100).as_str()), "é".repeat(100));
        assert_eq!(clip_quotes("`a` is not \"b\" but `"), "`a` is not \"b\" but `");
    }

    #[test]
    fn long_texts_are_cut_between_characters_and_say_how_long_they_are() {
        for text in ["x".repeat(140_000), "é".repeat(70_000), "\u{1f600}".repeat(35_000)] {
            let clipped = clip(&text);
            assert!(clipped.len() <= QUOTED && clipped.ends_with("… (140000 B)"), "{clipped}");
            assert!(text.starts_with(clipped.split('…').next().unwrap()));
            let sentence = clip_quotes(&format!("`{text}` is not a number; \"{text}\" neither"));
            assert!(sentence.len() < 2 * QUOTED + 40 && sentence.ends_with("neither"), "{sentence}");
        }
    }

    #[test]
    fn what_is_not_quoted_is_cut_as_well() {
        let prose = "seven words that a program itself would say ".repeat(20);
        assert_eq!(clip_quotes(&prose), prose);
        assert!(clip_quotes(&"x ".repeat(70_000)).len() < QUOTED + 4);
        assert!(clip_quotes(&"`x".repeat(70_000)).len() < QUOTED + 4);
    }
}
