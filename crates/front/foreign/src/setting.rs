//! Settings of another simulator: a line each.

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
