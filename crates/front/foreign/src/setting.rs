//! Settings of other simulators, one per line, and their values in a file, checked against the table.

use config::{Diagnostic, Place};
use std::collections::BTreeMap;

/// Outcome of importing a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Converted to keys with the same meaning.
    Carried,
    /// Different meaning here, or set elsewhere.
    Differs,
    /// Bug or without effect in the original: omitting it loses nothing.
    Inert,
    /// Effective in the original, without a counterpart here.
    Missing,
}

impl Class {
    /// All classes, in the order of the report.
    pub const ALL: [Class; 4] = [Class::Carried, Class::Differs, Class::Inert, Class::Missing];

    /// Title of the class.
    pub fn name(self) -> &'static str {
        match self {
            Class::Carried => "carried",
            Class::Differs => "different here",
            Class::Inert => "bug or without effect there",
            Class::Missing => "not modelled here",
        }
    }
}

/// Allowed text of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Whole number in a range.
    Whole(u64, u64),
    /// Number in a range.
    Real(f64, f64),
    /// Yes or no.
    Flag,
    /// One of several words, case-insensitive.
    Word(&'static [&'static str]),
    /// Whole numbers separated by commas.
    Numbers,
    /// Some of these letters, each at most once, case-insensitive.
    Letters(&'static str),
    /// Any text.
    Text,
}

/// Setting: a line of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Name in the original tool.
    pub(crate) name: &'static str,
    /// Allowed text.
    pub(crate) kind: Kind,
    /// Default of the original tool.
    pub(crate) default: &'static str,
    /// Outcome of the import.
    pub(crate) class: Class,
    /// Explanation of the outcome.
    pub(crate) says: &'static str,
}

/// Creates a line of a table.
pub(crate) const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    class: Class,
    says: &'static str,
) -> Setting {
    Setting { name, kind, default, class, says }
}

/// Values of a table's settings in a file; a missing setting has its default.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    tables: Vec<&'static [Setting]>,
    given: BTreeMap<&'static str, (String, Place)>,
}

impl Values {
    /// Creates values with all defaults.
    pub(crate) fn new(tables: &[&'static [Setting]]) -> Values {
        Values { tables: tables.to_vec(), given: BTreeMap::new() }
    }

    /// Lines of the tables, in order.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.tables.iter().flat_map(|table| table.iter())
    }

    fn setting(&self, name: &str) -> &'static Setting {
        self.settings().find(|one| one.name == name).expect("the code asks for names of its tables")
    }

    /// Takes the text of a setting from a file.
    ///
    /// # Errors
    /// The name is in no table, the value is not allowed, or the setting is given twice. The caller decides what an
    /// unknown name means.
    pub(crate) fn take(
        &mut self,
        what: &str,
        name: &str,
        text: &str,
        place: &Place,
    ) -> Result<(), Diagnostic> {
        let Some(setting) = self.settings().find(|one| one.name == name) else {
            let names = self.settings().map(|one| one.name);
            let nearest = config::diag::nearest(name, names).map(str::to_owned);
            let help = format!(
                "{what} silently ignores unknown names and uses its default: correct the name, or remove it"
            );
            let mut fault = Diagnostic::new(format!("`{name}` is not a setting of {what} here"))
                .at(place.clone())
                .help(help);
            fault.nearest = nearest;
            return Err(fault);
        };
        check(setting, text).map_err(|fault| fault.at(place.clone()))?;
        if self.given.insert(setting.name, (text.to_owned(), place.clone())).is_some() {
            let help = "the original tool uses the last one: remove the other";
            return Err(Diagnostic::new(format!("`{name}` is given twice")).at(place.clone()).help(help));
        }
        Ok(())
    }

    /// Removes the value of a setting; returns whether the file gave one.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        self.given.remove(name).is_some()
    }

    /// Returns whether the file gives the setting.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Place of the setting in the file; empty if the file does not give it.
    pub(crate) fn place(&self, name: &str) -> Place {
        self.given.get(name).map(|(_, place)| place.clone()).unwrap_or_default()
    }

    /// Text of a setting.
    pub(crate) fn text(&self, name: &str) -> &str {
        let setting = self.setting(name);
        self.given.get(setting.name).map_or(setting.default, |(text, _)| text)
    }

    /// Word of a setting, in capitals.
    pub(crate) fn word(&self, name: &str) -> String {
        self.text(name).to_ascii_uppercase()
    }

    /// Whole number of a setting.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// Number of a setting.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// Returns whether a setting is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        is_on(self.text(name)).unwrap_or_default()
    }

    /// Numbers of a setting, sorted, each once.
    pub(crate) fn numbers(&self, name: &str) -> Vec<u64> {
        let mut all: Vec<u64> =
            self.text(name).split(',').filter_map(|part| part.trim().parse().ok()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Keeps the first of many diagnostics, and adds a count of the rest.
pub(crate) fn shorten(faults: &mut Vec<Diagnostic>) {
    const TOLD: usize = 20;
    let more = faults.len().saturating_sub(TOLD);
    if more > 0 {
        let place = faults[TOLD].place.take();
        faults.truncate(TOLD);
        faults.push(Diagnostic {
            place,
            ..Diagnostic::new(format!("{more} more of this kind, starting here"))
        });
    }
}

/// Returns the value, unless there are faults: then the first faults, and a count of the rest.
///
/// # Errors
/// The faults.
pub(crate) fn unless<T>(all: T, mut faults: Vec<Diagnostic>) -> Result<T, Diagnostic> {
    shorten(&mut faults);
    let mut faults = faults.into_iter();
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(all),
    }
}

fn is_on(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn check(setting: &Setting, text: &str) -> Result<(), Diagnostic> {
    let name = setting.name;
    let wrong = |what: String| Err(Diagnostic::new(format!("`{name}` is `{text}`, but must be {what}")));
    match setting.kind {
        Kind::Whole(low, high) => match text.parse::<u64>() {
            Ok(number) if (low..=high).contains(&number) => Ok(()),
            _ => wrong(format!("a whole number from {low} to {high}, without a unit")),
        },
        Kind::Real(low, high) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() && (low..=high).contains(&number) => Ok(()),
            _ => wrong(format!("a number from {low} to {high}")),
        },
        Kind::Flag if is_on(text).is_none() => {
            Err(Diagnostic::new(format!("`{name}` is `{text}`, but must be yes or no"))
                .allowed(text, ["true", "false"]))
        }
        Kind::Word(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) => {
            let fault = Diagnostic::new(format!("`{name}` cannot be `{text}`"));
            let mut fault = fault.allowed(text, words.iter().copied());
            // Units of time differ by a few letters and by powers of a thousand: only a one-letter slip suggests a
            // unit.
            let is_unit = words.iter().all(|word| word.ends_with("SECOND"));
            fault.nearest = fault.nearest.filter(|word| !is_unit || config::diag::is_slip(text, word));
            Err(fault)
        }
        Kind::Numbers if text.split(',').any(|part| part.trim().parse::<u32>().is_err()) => {
            wrong("whole numbers separated by commas, such as 0,1,2,3".to_owned())
        }
        Kind::Letters(letters) if !are_letters(letters, text) => {
            wrong(format!("some of the letters {letters}, each at most once"))
        }
        _ => Ok(()),
    }
}

fn are_letters(letters: &str, text: &str) -> bool {
    let capitals = text.to_ascii_uppercase();
    let once = |letter: char| capitals.matches(letter).count() == 1;
    capitals.chars().all(|letter| letters.contains(letter) && once(letter))
}
