//! Admission of written data only.

use super::Admission;
use proto::Lpn;

/// Admits no unit that is read from flash: the buffer serves reads of recently written data only.
///
/// Lines that were written stay after their flush. This differs from a buffer that caches no reads, which frees a line
/// as soon as it has been flushed.
#[derive(Clone, Copy, Debug, Default)]
pub struct WritesOnly;

impl WritesOnly {
    /// Creates the policy.
    pub fn new() -> WritesOnly {
        WritesOnly
    }
}

impl Admission for WritesOnly {
    fn admit(&mut self, _lpn: Lpn) -> bool {
        false
    }
    fn save(&self, _out: &mut Vec<u8>) {}
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}
