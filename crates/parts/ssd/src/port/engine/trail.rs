//! Where the engine moves data, written down for tests: they move versions along and see whether answers are right.

use proto::memory::MemCommand;

/// One move of data, in the order of the DRAM's accesses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Moved {
    /// A write's lines go into a row.
    Stored { tag: u32, row: u32, lines: u64 },
    /// A read's lines come out of a row, those of `newer` out of another.
    Loaded { tag: u32, row: u32, lines: u64, newer: Option<(u64, u32)> },
    /// Lines of a page that has come from flash go into a row.
    Filled { page: u64, row: u32, lines: u64 },
    /// A page goes to flash: `lines` from its row, the rest from another.
    Out { page: u64, row: u32, lines: u64, rest: Option<u32> },
}

impl Moved {
    /// The lines of a request.
    pub(super) fn lines(command: &MemCommand, row: u32, newer: Option<(u64, u32)>) -> Moved {
        let MemCommand { tag, write, lines, .. } = *command;
        if write { Moved::Stored { tag, row, lines } } else { Moved::Loaded { tag, row, lines, newer } }
    }
}
