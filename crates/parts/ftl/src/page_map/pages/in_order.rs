//! One page after another.

use super::{Choice, OpenUnits, PageChoice};
use crate::buffer::destage::Pace;

/// Chooses nothing: a frontier is all that is needed.
#[derive(Clone, Copy, Debug)]
pub struct InOrder;

impl PageChoice for InOrder {
    fn is_off(&self) -> bool {
        true
    }
    fn open(&self) -> u32 {
        1
    }
    fn region(&self) -> u64 {
        0
    }
    fn choose(&self, _: Pace, _: &OpenUnits) -> Option<Choice> {
        None
    }
}
