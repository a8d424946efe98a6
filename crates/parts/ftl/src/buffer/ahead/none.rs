//! No look-ahead.

use super::LookAhead;
use std::ops::Range;

/// Reads nothing ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Never;

impl LookAhead for Never {
    fn reads(&mut self, _start: u64, _end: u64) -> Option<Range<u64>> {
        None
    }
    fn is_off(&self) -> bool {
        true
    }
    fn save(&self, _out: &mut Vec<u8>) {}
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}
