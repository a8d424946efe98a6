//! Settings of another simulator, a line each, and what a file says of them, checked by the table.

use config::{Diagnostic, Place};
use std::collections::BTreeMap;

/// How a setting of another simulator fares here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It has keys that mean the same.
    Carried,
    /// Here it means something else, or is said elsewhere.
    Differs,
    /// A bug there, or without effect there: nothing is lost by leaving it.
    Inert,
    /// It has an effect there, and there is nothing like it here.
    Missing,
}

impl Class {
    /// All of them, in the order in which they are told.
    pub const ALL: [Class; 4] = [Class::Carried, Class::Differs, Class::Inert, Class::Missing];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Class::Carried => "carried",
            Class::Differs => "means something else here",
            Class::Inert => "a bug, or without effect, there",
            Class::Missing => "not modelled here",
        }
    }
}

/// What the text of a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// A whole number from one to another.
    Whole(u64, u64),
    /// A number from one to another.
    Real(f64, f64),
    /// Yes or no.
    Flag,
    /// One of several words, in any case.
    Word(&'static [&'static str]),
    /// Whole numbers parted by commas.
    Numbers,
    /// Some of these letters, each at most once, in any case.
    Letters(&'static str),
    /// Any text.
    Text,
}

/// One setting: a line of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Its name there.
    pub(crate) name: &'static str,
    /// What its text may be.
    pub(crate) kind: Kind,
    /// What it is there where the file does not say it.
    pub(crate) default: &'static str,
    /// How it fares here.
    pub(crate) class: Class,
    /// What becomes of it, or why nothing does.
    pub(crate) says: &'static str,
}

/// A line of a table.
pub(crate) const fn setting(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    class: Class,
    says: &'static str,
) -> Setting {
    Setting { name, kind, default, class, says }
}

/// The settings of a table as a file has them; what it does not say has its default.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    tables: Vec<&'static [Setting]>,
    given: BTreeMap<&'static str, (String, Place)>,
}

impl Values {
    /// Nothing said yet.
    pub(crate) fn new(tables: &[&'static [Setting]]) -> Values {
        Values { tables: tables.to_vec(), given: BTreeMap::new() }
    }

    /// The lines of the tables, in their order.
    pub(crate) fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.tables.iter().flat_map(|table| table.iter())
    }

    fn setting(&self, name: &str) -> &'static Setting {
        self.settings().find(|one| one.name == name).expect("the code asks for names of its tables")
    }

    /// Takes what a file says of a setting.
    ///
    /// # Errors
    /// A name that is in no table, a value that the setting cannot have, a setting that is said twice; where it stands is up to the caller.
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
                "{what} itself passes over what it does not know in silence, and takes its default: correct the name, or remove it"
            );
            let mut fault = Diagnostic::new(format!("`{name}` is not a setting of {what} here"))
                .at(place.clone())
                .help(help);
            fault.nearest = nearest;
            return Err(fault);
        };
        check(setting, text).map_err(|fault| fault.at(place.clone()))?;
        if self.given.insert(setting.name, (text.to_owned(), place.clone())).is_some() {
            let help = "the last one counts there: remove the other";
            return Err(Diagnostic::new(format!("`{name}` is said twice")).at(place.clone()).help(help));
        }
        Ok(())
    }

    /// Takes back what a file says of a setting; whether it said anything.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        self.given.remove(name).is_some()
    }

    /// Whether the file says it.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Where the file says it; nowhere if it does not.
    pub(crate) fn place(&self, name: &str) -> Place {
        self.given.get(name).map(|(_, place)| place.clone()).unwrap_or_default()
    }

    /// The text of a setting.
    pub(crate) fn text(&self, name: &str) -> &str {
        let setting = self.setting(name);
        self.given.get(setting.name).map_or(setting.default, |(text, _)| text)
    }

    /// The word of a setting, in capitals.
    pub(crate) fn word(&self, name: &str) -> String {
        self.text(name).to_ascii_uppercase()
    }

    /// The number of a setting that is a whole one.
    pub(crate) fn whole(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// The number of a setting.
    pub(crate) fn real(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or_default()
    }

    /// Whether a setting is on.
    pub(crate) fn flag(&self, name: &str) -> bool {
        is_on(self.text(name)).unwrap_or_default()
    }

    /// The numbers of a setting, in order, each once.
    pub(crate) fn numbers(&self, name: &str) -> Vec<u64> {
        let mut all: Vec<u64> =
            self.text(name).split(',').filter_map(|part| part.trim().parse().ok()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Leaves the first of many diagnostics, and says how many more there are.
pub(crate) fn shorten(faults: &mut Vec<Diagnostic>) {
    const TOLD: usize = 20;
    let more = faults.len().saturating_sub(TOLD);
    if more > 0 {
        let place = faults[TOLD].place.take();
        faults.truncate(TOLD);
        faults
            .push(Diagnostic { place, ..Diagnostic::new(format!("{more} more of the kind, from here on")) });
    }
}

/// What was read, unless something is wrong with it: the first faults, and how many more there are.
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
    let wrong = |what: String| Err(Diagnostic::new(format!("`{name}` is `{text}`, and must be {what}")));
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
            Err(Diagnostic::new(format!("`{name}` is `{text}`, and must be yes or no"))
                .allowed(text, ["true", "false"]))
        }
        Kind::Word(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) => {
            let fault = Diagnostic::new(format!("`{name}` cannot be `{text}`"));
            let mut fault = fault.allowed(text, words.iter().copied());
            // Units of time differ by a few letters and by powers of a thousand: only a slip of one letter is one.
            let is_unit = words.iter().all(|word| word.ends_with("SECOND"));
            fault.nearest = fault.nearest.filter(|word| !is_unit || config::diag::is_slip(text, word));
            Err(fault)
        }
        Kind::Numbers if text.split(',').any(|part| part.trim().parse::<u32>().is_err()) => {
            wrong("whole numbers parted by commas, such as 0,1,2,3".to_owned())
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
