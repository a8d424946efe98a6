//! An instruction as the formats tell of it, before it is an operation of a machine.

use config::Diagnostic;

/// Bytes of a line, which no access of an operation crosses.
pub(super) const LINE: u64 = proto::memory::CPU_LINE;

/// Instructions that one [`Instruction`] stands for at most: a core that takes one in is not far ahead of the clock then.
pub(super) const MOST_COUNT: u16 = 1000;

/// Bytes of an access where the format does not say.
const UNTOLD: u64 = 8;

/// An access to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Access {
    /// First byte, as recorded.
    pub(super) address: u64,
    /// Bytes, at least one; the last one's address is one of 64 bits.
    pub(super) width: u16,
    /// Whether it stores.
    pub(super) store: bool,
}

impl Access {
    /// An access whose width the format does not say.
    pub(super) fn untold(address: u64, store: bool) -> Access {
        Access { address, width: UNTOLD.min(LINE - address % LINE) as u16, store }
    }

    /// Its parts, each within a line: address and bytes.
    pub(super) fn parts(self) -> impl Iterator<Item = (u64, u8)> {
        let (mut at, mut left) = (self.address, u64::from(self.width));
        std::iter::from_fn(move || {
            let bytes = left.min(LINE - at % LINE);
            let part = (at, bytes as u8);
            // Behind the last byte of all there is none, and nothing is left.
            (at, left) = (at.wrapping_add(bytes), left - bytes);
            (bytes > 0).then_some(part)
        })
    }
}

/// What a branch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Branch {
    /// It is none, or one that always goes where it goes.
    #[default]
    None,
    /// Conditional, not taken.
    NotTaken,
    /// Conditional, taken.
    Taken,
}

/// An instruction, or several of which the last is told of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Instruction {
    /// Instructions that it stands for, itself the last: 1 to [`MOST_COUNT`]. Those before touch no memory.
    pub(super) count: u16,
    /// Where it lies, as recorded, if the format says so.
    pub(super) pc: Option<u64>,
    /// What it did if it is a conditional branch.
    pub(super) branch: Branch,
    /// Registers that it writes; zero is none.
    pub(super) to: [u8; 2],
    /// Registers that it reads; zero is none.
    pub(super) from: [u8; 4],
    /// What it loads and stores, in order.
    pub(super) accesses: Vec<Access>,
}

impl Default for Instruction {
    fn default() -> Instruction {
        Instruction {
            count: 1,
            pc: None,
            branch: Branch::None,
            to: [0; 2],
            from: [0; 4],
            accesses: Vec::new(),
        }
    }
}

impl Instruction {
    /// Makes it one of which nothing is known; keeps its memory.
    pub(super) fn clear(&mut self) {
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        *self = Instruction { accesses, ..Instruction::default() };
    }

    /// Whether it is one of many that do nothing to be told of.
    pub(super) fn is_plain(&self) -> bool {
        self.accesses.is_empty() && self.branch == Branch::None && self.to == [0; 2] && self.from == [0; 4]
    }
}

/// Reads a trace, instruction by instruction.
pub(super) trait Reader {
    /// The next instruction, whole in place of what was there; false behind the last.
    ///
    /// # Errors
    /// What is wrong with the next line or record. Nothing is to be read behind it.
    fn next(&mut self, into: &mut Instruction) -> Result<bool, Diagnostic>;
}

#[cfg(test)]
mod tests {
    use super::Access;

    #[test]
    fn an_access_is_cut_at_lines() {
        let parts = |address, width| Access { address, width, store: false }.parts().collect::<Vec<_>>();
        assert_eq!(parts(64, 64), [(64, 64)]);
        assert_eq!(parts(62, 4), [(62, 2), (64, 2)]);
        assert_eq!(parts(100, 160), [(100, 28), (128, 64), (192, 64), (256, 4)]);
        assert_eq!(parts(u64::MAX, 1), [(u64::MAX, 1)]);
        assert_eq!(Access::untold(0x1000, false).width, 8);
        assert_eq!(Access::untold(0x103e, true), Access { address: 0x103e, width: 2, store: true });
        assert_eq!(Access::untold(u64::MAX, true).width, 1);
    }
}
