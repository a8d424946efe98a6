//! Parameters of a program, as written after its name: `betw:scale=18,seed=1`.

use config::{Diagnostic, Place};
use std::ops::RangeInclusive;

/// A parameter of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Name of the parameter.
    pub name: &'static str,
    /// Description of its effect.
    pub what: &'static str,
    /// Default value; empty for none.
    pub default: &'static str,
}

/// Parameters of one program: each of its keys once, as given or by default.
#[derive(Clone, Debug)]
pub struct Params {
    text: String,
    values: Vec<(Key, String)>,
    given: Vec<String>,
}

impl Params {
    /// Reads `key=value,key=value`; `text` is the complete text, for diagnostics. A value ends at a comma.
    ///
    /// # Errors
    /// If a key is unknown, given twice, or has no value.
    pub fn read(text: &str, options: &str, keys: &[Key]) -> Result<Params, Diagnostic> {
        let mut params = Params {
            text: text.to_owned(),
            values: keys.iter().map(|k| (*k, k.default.to_owned())).collect(),
            given: Vec::new(),
        };
        for option in options.split(',').filter(|option| !option.trim().is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, value) = (name.trim(), value.trim());
            let Some(n) = params.values.iter().position(|(key, _)| key.name == name) else {
                let what = format!("unknown parameter `{name}`");
                return Err(Diagnostic::new(what)
                    .at(params.place(name))
                    .allowed(name, keys.iter().map(|key| key.name)));
            };
            if value.is_empty() {
                let what = format!("parameter `{name}` has no value");
                let help = format!("write `{name}=...`: {}", keys[n].what);
                return Err(Diagnostic::new(what).at(params.place(name)).help(help));
            }
            if params.is_given(name) {
                return Err(
                    Diagnostic::new(format!("parameter `{name}` is given twice")).at(params.place(name))
                );
            }
            params.given.push(name.to_owned());
            value.clone_into(&mut params.values[n].1);
        }
        Ok(params)
    }

    /// Returns all keys and their values.
    pub fn values(&self) -> impl Iterator<Item = (&Key, &str)> {
        self.values.iter().map(|(key, value)| (key, value.as_str()))
    }

    /// Returns the text of a value; `None` if it was not given and has no default.
    ///
    /// # Panics
    /// If the program has no such key.
    pub fn text(&self, name: &str) -> Option<&str> {
        let value = self.values.iter().find(|(key, _)| key.name == name).map(|(_, value)| value.as_str());
        value.map(|value| (!value.is_empty()).then_some(value)).expect("a program reads its own keys")
    }

    /// Returns true if a value was given, even the default one.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// Returns a whole number within limits; the key has a default.
    ///
    /// # Errors
    /// If the value is invalid or out of range.
    pub fn integer(&self, name: &str, range: RangeInclusive<u64>) -> Result<u64, Diagnostic> {
        let value = self.text(name).unwrap_or_default();
        let within = value.parse().ok().filter(|n| range.contains(n));
        within.ok_or_else(|| {
            let allowed = format!("a whole number from {} to {}", range.start(), range.end());
            self.refused(name, vec![allowed])
        })
    }

    /// Returns a real number within limits; the key has a default.
    ///
    /// # Errors
    /// If the value is invalid or out of range.
    pub fn real(&self, name: &str, range: RangeInclusive<f64>) -> Result<f64, Diagnostic> {
        let value = self.text(name).unwrap_or_default();
        let within = value.parse().ok().filter(|n| range.contains(n));
        within.ok_or_else(|| {
            let allowed = format!("a number from {} to {}", range.start(), range.end());
            self.refused(name, vec![allowed])
        })
    }

    /// Returns the meaning of one of several words; the key has a default.
    ///
    /// # Errors
    /// If it is a different word.
    pub fn word<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Diagnostic> {
        let value = self.text(name).unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == value).map(|(_, meant)| *meant);
        found.ok_or_else(|| {
            let what = format!("`{value}` is not a valid value of parameter `{name}`");
            Diagnostic::new(what).at(self.place(value)).allowed(value, words.iter().map(|(word, _)| *word))
        })
    }

    /// Returns a diagnostic about a value.
    pub fn refused(&self, name: &str, allowed: Vec<String>) -> Diagnostic {
        let value = self.text(name).unwrap_or_default();
        let mut refused = Diagnostic::new(format!("`{value}` is not a valid value of parameter `{name}`"));
        refused.allowed = allowed;
        refused.at(self.place(value))
    }

    /// Returns the place of a word in the text.
    fn place(&self, word: &str) -> Place {
        let column = self.text.find(word).map_or(0, |at| self.text[..at].chars().count() as u64 + 1);
        Place { source: "--workload".into(), line: 0, column, text: self.text.clone(), key: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Params};

    const KEYS: &[Key] = &[
        Key { name: "scale", what: "log2 of the vertices", default: "18" },
        Key { name: "graph", what: "file", default: "" },
    ];

    fn read(options: &str) -> Result<Params, config::Diagnostic> {
        Params::read(&format!("betw:{options}"), options, KEYS)
    }

    #[test]
    fn defaults_hold_unless_given() {
        let params = read("graph=a.txt").unwrap();
        assert_eq!((params.integer("scale", 1..=30).unwrap(), params.text("graph")), (18, Some("a.txt")));
        assert_eq!(read("").unwrap().text("graph"), None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_nearest() {
        let unknown = read("scal=3").unwrap_err();
        assert_eq!(unknown.nearest.as_deref(), Some("scale"));
        assert!(read("scale=3,scale=4").unwrap_err().what.contains("twice"));
        assert!(read("scale").unwrap_err().what.contains("no value"));
        let outside = read("scale=40").unwrap().integer("scale", 1..=30).unwrap_err();
        assert!(outside.to_string().contains("from 1 to 30"), "{outside}");
        let word = read("graph=ye").unwrap().word("graph", &[("yes", 1), ("no", 0)]).unwrap_err();
        assert_eq!(word.nearest.as_deref(), Some("yes"));
    }
}
