//! One check of what must hold.

use serde::Serialize;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// Both sides in numbers.
    pub detail: String,
}

impl Check {
    pub(crate) fn new(name: &'static str, ok: bool, detail: String) -> Check {
        Check { name, ok, detail }
    }

    pub(crate) fn equal(name: &'static str, sides: [(&str, u64); 2]) -> Check {
        let [(left, a), (right, b)] = sides;
        Check::new(name, a == b, format!("{left} {a}, {right} {b}"))
    }
}
