//! Admission of every unit.

use super::Admission;
use proto::Lpn;

/// Admits every unit that is read from flash.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl Always {
    /// Creates the policy.
    pub fn new() -> Always {
        Always
    }
}

impl Admission for Always {
    fn admit(&mut self, _lpn: Lpn) -> bool {
        true
    }
    fn save(&self, _out: &mut Vec<u8>) {}
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}
