//! Where an address lies.

use super::DramSpec;

/// A row of a bank behind a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) controller: u16,
    pub(super) bank: u8,
    pub(super) row: u64,
}

/// The address map: controllers by the interleave, then, from the highest bits down, row, bank, column.
#[derive(Clone, Debug)]
pub(super) struct Map {
    controllers: u64,
    interleave: u64,
    row: u64,
    banks: u64,
    hash: bool,
    /// Bytes that lie in one row behind one controller wherever they begin at a multiple of them.
    grain: u64,
}

impl Map {
    /// The map of a memory that passes its check.
    pub(super) fn new(spec: &DramSpec) -> Map {
        let (interleave, row) = (spec.interleave.get(), spec.banks.row.get());
        Map {
            controllers: spec.controllers.into(),
            interleave,
            row,
            banks: spec.banks.count.into(),
            hash: spec.banks.hash,
            grain: greatest_common_divisor(interleave, row),
        }
    }

    /// The controller of an address.
    #[inline]
    pub(super) fn controller_of(&self, address: u64) -> u16 {
        (address / self.interleave % self.controllers) as u16
    }

    /// Number of the piece of memory around an address that lies in one place for certain.
    #[inline]
    pub(super) fn grain_of(&self, address: u64) -> u64 {
        address / self.grain
    }

    /// The place of an address.
    #[inline]
    pub(super) fn place(&self, address: u64) -> Place {
        let (chunk, offset) = (address / self.interleave, address % self.interleave);
        let rows = (chunk / self.controllers * self.interleave + offset) / self.row;
        let (row, mut bank) = (rows / self.banks, rows % self.banks);
        if self.hash {
            bank ^= row & (self.banks - 1);
        }
        Place { controller: (chunk % self.controllers) as u16, bank: bank as u8, row }
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
