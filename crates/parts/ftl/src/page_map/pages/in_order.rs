//! Pages in order.

use super::{Choice, OpenUnits, PageChoice};
use crate::buffer::destage::Pace;

/// Default order: a frontier suffices, and nothing is chosen.
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
