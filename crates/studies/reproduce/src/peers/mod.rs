//! Figures that were measured with other simulators, beside ours.
//!
//! A row of the family `gap` is a difference that is known and explained: it fails when the gap closes.

mod amplification;
mod collection;
mod limit;
mod mqsim;
mod reads;
mod traces;

use super::Case;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [limit::cases(), reads::cases(), traces::cases(), amplification::cases(), collection::cases()]
        .into_iter()
        .flatten()
        .collect()
}
