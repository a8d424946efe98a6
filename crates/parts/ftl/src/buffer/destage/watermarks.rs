//! Watermarks: the buffer's own rule, [`Buffer::wants_flush`](crate::buffer::Buffer::wants_flush).

use super::{Destage, Fill, Pace};
use engine::Time;

/// Placeholder that leaves the decision to the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Watermarks;

impl Destage for Watermarks {
    fn is_off(&self) -> bool {
        true
    }
    fn pace(&mut self, _: Time, _: &Fill) -> Option<Pace> {
        None
    }
    fn save(&self, _: &mut Vec<u8>) {}
    fn load(&mut self, _: &mut &[u8]) -> Option<()> {
        Some(())
    }
}
