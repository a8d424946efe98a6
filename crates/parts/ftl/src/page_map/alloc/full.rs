//! Full dynamic allocation.

use super::scan::{Params, Scan};
use super::{Allocator, Backend, Ftl, Stream};
use nand::dies::Wanted;
use nand::geometry::{Digit, Geometry};

/// Full dynamic allocation: a write goes to any idle plane of the device.
#[derive(Clone, Debug)]
pub struct Full {
    scan: Scan,
}

impl Full {
    /// Builds the policy.
    pub fn new(params: &Params, geo: &Geometry) -> Full {
        Full { scan: Scan::new(params, &Digit::ALL, geo) }
    }
}

impl Allocator for Full {
    fn place(&mut self, _: u64, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32 {
        self.scan.place(0, stream, ftl, backend)
    }
    fn wanted(&self) -> Option<Wanted> {
        Some(self.scan.wanted())
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.scan.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.scan.load(input)
    }
}
