//! MQMS (Gundawar, Chung and Kim, "Towards Performance-Aware Allocation for Accelerated Machine Learning on GPU-SSD Systems",
//! 2024).

mod curve;

use super::Effort;
use super::study::Entry;

/// The rows.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    curve::entries(effort)
}
