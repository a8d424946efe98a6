//! The one table of fio's options: what each does here.

use config::Diagnostic;
use serde::Serialize;

use super::files::FILES;
use super::honoured::HONOURED;
use super::inert::INERT;
use super::queue::QUEUE;
use super::spec::JobSpec;
use super::unsupported::UNSUPPORTED;
use super::value::Value;

/// What becomes of an option here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It shapes the requests as in fio.
    Honoured,
    /// It cannot change a result here; the result lists it with the reason.
    Inert,
    /// It would change what is measured and is not modelled: an error that says so.
    Unsupported,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// fio's name.
    pub name: &'static str,
    /// fio's other name for it.
    pub alias: Option<&'static str>,
    /// What becomes of it.
    pub class: Class,
    /// Honoured: what it does. Inert: why it changes nothing. Unsupported: why not.
    pub doc: &'static str,
    /// Values of an unsupported option that ask for nothing.
    pub(crate) neutral: &'static [&'static str],
    /// Whether its value may hold commas (so that an inline job knows where it ends).
    pub(crate) list: bool,
    /// Reads the value of an honoured option into a job.
    pub(crate) set: fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>,
}

impl FioOption {
    /// Its value may hold commas.
    pub(crate) const fn list(self) -> FioOption {
        FioOption { list: true, ..self }
    }

    /// These values of an unsupported option ask for nothing.
    pub(crate) const fn neutral(self, neutral: &'static [&'static str]) -> FioOption {
        FioOption { neutral, ..self }
    }

    /// It also goes by this name.
    pub(crate) const fn or(self, alias: &'static str) -> FioOption {
        FioOption { alias: Some(alias), ..self }
    }
}

type Set = fn(&mut JobSpec, Value<'_>) -> Result<(), Diagnostic>;

/// A row of the honoured kind.
pub(super) const fn honoured(
    name: &'static str,
    alias: Option<&'static str>,
    set: Set,
    doc: &'static str,
) -> FioOption {
    FioOption { name, alias, class: Class::Honoured, doc, neutral: &[], list: false, set }
}

/// A row of the inert kind.
pub(super) const fn inert(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Inert, doc, neutral: &[], list: false, set: ignore }
}

/// A row of the unsupported kind.
pub(super) const fn unsupported(name: &'static str, doc: &'static str) -> FioOption {
    FioOption { name, alias: None, class: Class::Unsupported, doc, neutral: &[], list: false, set: ignore }
}

fn ignore(_: &mut JobSpec, _: Value<'_>) -> Result<(), Diagnostic> {
    Ok(())
}

/// Every option of fio up to 3.42, and those of the engines that are honoured: honoured, inert, unsupported.
pub fn options() -> impl Iterator<Item = &'static FioOption> {
    HONOURED.iter().chain(FILES).chain(QUEUE).chain(INERT).chain(UNSUPPORTED)
}

/// The row of a name or alias.
pub fn option(name: &str) -> Option<&'static FioOption> {
    options().find(|row| row.name == name || row.alias == Some(name))
}

/// Every name and alias.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    options().flat_map(|row| std::iter::once(row.name).chain(row.alias))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut all: Vec<&str> = names().collect();
        all.sort_unstable();
        let twice: Vec<_> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn only_unsupported_options_have_neutral_values() {
        for row in options() {
            assert!(row.neutral.is_empty() || row.class == Class::Unsupported, "{}", row.name);
            assert!(!row.doc.is_empty() && !row.doc.ends_with('.'), "{}", row.name);
        }
    }
}
