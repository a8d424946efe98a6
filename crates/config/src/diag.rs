//! One readable diagnostic: what is wrong, where, what is allowed, the nearest right spelling.

use std::fmt;

/// Unusable input. The command line prints it and exits with status 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence without a final stop.
    pub what: String,
    /// Where it stands, if it stands in a file or an option.
    pub place: Option<Place>,
    /// What would have been allowed.
    pub allowed: Vec<String>,
    /// The nearest right spelling.
    pub nearest: Option<String>,
    /// What the reader can do about it.
    pub help: Option<String>,
}

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// File name, or the option (`--set`, `--workload`) that carried the text.
    pub source: String,
    /// Line, counted from one; zero if the input has no lines.
    pub line: u64,
    /// Column, counted from one; zero if unknown.
    pub column: u64,
    /// The offending line, shortened if it is long.
    pub text: String,
    /// Configuration key (`flash.geometry.channels`), if there is one.
    pub key: String,
}

impl Diagnostic {
    /// A diagnostic that says only what is wrong.
    pub fn new(what: impl Into<String>) -> Diagnostic {
        Diagnostic { what: what.into(), place: None, allowed: Vec::new(), nearest: None, help: None }
    }
    /// Adds the place.
    #[must_use]
    pub fn at(mut self, place: Place) -> Diagnostic {
        self.place = Some(place);
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
}

/// The candidate nearest to `given` by edit distance, if any is near enough to be meant.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given_lower = given.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&given_lower, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= 1 + given.len().max(c.len()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if let Some(place) = &self.place {
            write!(f, "\n  --> {}", place.source)?;
            if place.line > 0 {
                write!(f, ":{}", place.line)?;
                if place.column > 0 {
                    write!(f, ":{}", place.column)?;
                }
            }
            if !place.key.is_empty() {
                write!(f, "  (key `{}`)", place.key)?;
            }
            if !place.text.is_empty() {
                let shown: String = place.text.chars().take(120).collect();
                let number = if place.line > 0 { place.line.to_string() } else { String::new() };
                write!(f, "\n{number:>5} | {shown}")?;
                if place.column > 0 && place.column <= 120 {
                    write!(f, "\n      | {}^", " ".repeat(place.column as usize - 1))?;
                }
            }
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "\n  did you mean `{nearest}`?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, "\n  allowed: {}", self.allowed.join(", "))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_where_allowed_and_nearest() {
        let place = Place {
            source: "d16.toml".into(),
            line: 3,
            column: 1,
            text: "chanels = 8".into(),
            key: "flash.geometry.chanels".into(),
        };
        let text = Diagnostic::new("unknown key `chanels`")
            .at(place)
            .allowed("chanels", ["channels", "ways", "dies"])
            .to_string();
        assert!(text.contains("d16.toml:3:1"), "{text}");
        assert!(text.contains("did you mean `channels`?"), "{text}");
        assert!(text.contains("channels, ways, dies"), "{text}");
    }

    #[test]
    fn a_word_that_is_near_nothing_has_no_nearest() {
        assert_eq!(nearest("zzzzzz", ["channels", "ways"]), None);
    }
}
