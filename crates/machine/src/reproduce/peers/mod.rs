//! Figures that were measured with other simulators, beside ours.
//!
//! A row of the family `gap` is a difference that is known and explained: it fails when the gap closes.

mod amplification;
mod limit;
mod mqsim;
mod reads;
mod tpcc;

use super::Case;

/// Every case.
pub(super) fn cases() -> Vec<Case> {
    [limit::cases(), reads::cases(), tpcc::cases(), amplification::cases()].into_iter().flatten().collect()
}
