//! Check of an invariant.

use serde::Serialize;

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Name of the check.
    pub name: &'static str,
    /// True if it holds.
    pub ok: bool,
    /// Details: both sides in numbers.
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
