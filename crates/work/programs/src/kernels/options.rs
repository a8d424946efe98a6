//! What stands behind the name of kernels: `atax:m=1024,n=1024,instances=2`.

use config::units::Bytes;
use config::{Diagnostic, Place};
use std::ops::RangeInclusive;

/// Parameters as they are written, each once.
pub(super) struct Options<'a> {
    text: &'a str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    /// Reads what stands behind the colon of a text.
    ///
    /// # Errors
    /// A parameter without a value, or given twice.
    pub(super) fn read(text: &'a str) -> Result<Options<'a>, Diagnostic> {
        let mut options = Options { text, given: Vec::new() };
        let (_, rest) = text.split_once(':').unwrap_or_default();
        for option in rest.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, value) = (name.trim(), value.trim());
            if value.is_empty() {
                let what = format!("parameter `{name}` has no value");
                return Err(Diagnostic::new(what)
                    .at(options.place(name))
                    .help(format!("write `{name}=...`")));
            }
            if options.text(name).is_some() {
                let what = format!("parameter `{name}` is given twice");
                return Err(Diagnostic::new(what).at(options.place(name)));
            }
            options.given.push((name, value));
        }
        Ok(options)
    }

    /// A value as it is written.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    /// Refuses parameters that are none of these.
    ///
    /// # Errors
    /// The first of them, with the nearest that there is.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Diagnostic> {
        let Some((name, _)) = self.given.iter().find(|(name, _)| !known.contains(name)) else {
            return Ok(());
        };
        let what = format!("unknown parameter `{name}`");
        Err(Diagnostic::new(what).at(self.place(name)).allowed(name, known.iter().copied()))
    }

    /// A whole number, or what it is if it is left out.
    ///
    /// # Errors
    /// A value that is none, or outside.
    pub(super) fn number(
        &self,
        name: &str,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Result<u32, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|number| range.contains(number));
        within.ok_or_else(|| {
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            self.refused(name, value, allowed)
        })
    }

    /// An amount of data, or what it is if it is left out.
    ///
    /// # Errors
    /// A value that is none, or outside.
    pub(super) fn bytes(
        &self,
        name: &str,
        default: Bytes,
        range: RangeInclusive<Bytes>,
    ) -> Result<Bytes, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|bytes| range.contains(bytes));
        within.ok_or_else(|| {
            self.refused(name, value, format!("an amount from {} to {}", range.start(), range.end()))
        })
    }

    /// A number with a fraction, or what it is if it is left out.
    ///
    /// # Errors
    /// A value that is none, or outside.
    pub(super) fn real(
        &self,
        name: &str,
        default: f32,
        range: RangeInclusive<f32>,
    ) -> Result<f32, Diagnostic> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let within = value.parse().ok().filter(|number| range.contains(number));
        within.ok_or_else(|| {
            self.refused(name, value, format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    /// That a parameter cannot have a value, and what it can.
    pub(super) fn refused(&self, name: &str, value: &str, allowed: String) -> Diagnostic {
        let mut refused = Diagnostic::new(format!("`{value}` is no value of parameter `{name}`"));
        refused.allowed = vec![allowed];
        refused.at(self.place(value))
    }

    /// Refuses a parameter that says what another one, which is given, says already.
    ///
    /// # Errors
    /// The first of them.
    pub(super) fn without(&self, given: &str, others: &[&str]) -> Result<(), Diagnostic> {
        let other = others.iter().find(|name| self.text(name).is_some());
        match (self.text(given), other) {
            (Some(_), Some(other)) => {
                let what = format!("parameter `{other}` is of drawn data, and `{given}` names a file");
                Err(Diagnostic::new(what).at(self.place(other)).help("leave one of them out"))
            }
            _ => Ok(()),
        }
    }

    /// The sizes of a kernel among the parameters.
    ///
    /// # Errors
    /// A value that is no whole number above zero.
    pub(super) fn sizes(&self, known: &[(String, i64)]) -> Result<Vec<(String, i64)>, Diagnostic> {
        let is_size = |(name, _): &&(&str, &str)| known.iter().any(|(size, _)| size == name);
        let size = |(name, value): &(&str, &str)| {
            let number = value.parse().ok().filter(|number| *number > 0);
            let number = number.ok_or_else(|| {
                let mut refused = Diagnostic::new(format!("`{value}` is no value of size `{name}`"));
                refused.allowed = vec!["a whole number above zero".to_owned()];
                refused.at(self.place(value))
            })?;
            Ok(((*name).to_owned(), number))
        };
        self.given.iter().filter(is_size).map(size).collect()
    }

    /// Where a word stands in what was written.
    pub(super) fn place(&self, word: &str) -> Place {
        let from = self.text.find(':').map_or(0, |colon| colon + 1);
        let at = self.text[from..].find(word).map_or(from, |at| from + at);
        let column = self.text[..at].chars().count() as u64 + 1;
        Place { source: "--workload".into(), column, text: self.text.to_owned(), ..Place::default() }
    }
}
