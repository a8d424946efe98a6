//! Mapping of addresses to banks, and to line keys within a bank.

use proto::memory::PAGE;

/// Maps physical addresses to banks and back.
///
/// Memory is divided into units of `1 << shift` bytes. Each row of as many units as there are banks has one unit in
/// each bank; a hash of the row selects its first bank, to spread any stride of rows over banks. A bank numbers
/// its lines without gaps, row by row, so that all its sets are used alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    banks: u64,
    shift: u32,
    /// Logarithm of the line size: a line has `1 << line` bytes.
    line: u32,
}

impl Layout {
    /// Creates the layout of `banks` banks, with units of `interleave` bytes: a power of two, at least one line of
    /// `line` bytes.
    pub(super) fn new(banks: u16, interleave: u64, line: u64) -> Layout {
        let (shift, line) = (interleave.trailing_zeros(), line.trailing_zeros());
        Layout { banks: banks.into(), shift, line }
    }

    /// Size of a line in bytes.
    #[inline]
    pub(super) fn line(&self) -> u64 {
        1 << self.line
    }

    /// Lines per page.
    #[inline]
    pub(super) fn lines(&self) -> u32 {
        (PAGE >> self.line) as u32
    }

    /// Line of its page that contains an address.
    #[inline]
    pub(super) fn line_of(&self, address: u64) -> u32 {
        ((address % PAGE) >> self.line) as u32
    }

    /// Bank in which a row begins.
    #[inline]
    fn first(&self, row: u64) -> u64 {
        ((engine::mix(row) >> 32) * self.banks) >> 32
    }

    /// Bank of an address.
    #[inline]
    pub(super) fn bank(&self, address: u64) -> u16 {
        let unit = address >> self.shift;
        let bank = self.first(unit / self.banks) + unit % self.banks;
        (if bank < self.banks { bank } else { bank - self.banks }) as u16
    }

    /// Key of an address's line within its bank.
    #[inline]
    pub(super) fn key(&self, address: u64) -> u64 {
        let row = (address >> self.shift) / self.banks;
        let within = address & ((1 << self.shift) - 1);
        (row << self.shift | within) >> self.line
    }

    /// Address of a bank's line.
    #[inline]
    pub(super) fn address(&self, bank: u16, key: u64) -> u64 {
        let at = key << self.line;
        let row = at >> self.shift;
        let column = u64::from(bank) + self.banks - self.first(row);
        let column = if column < self.banks { column } else { column - self.banks };
        (row * self.banks + column) << self.shift | at & ((1 << self.shift) - 1)
    }

    /// Number of adjacent lines of a page in one bank: their keys are consecutive, and begin at a multiple.
    #[inline]
    pub(super) fn neighbours(&self) -> u32 {
        self.lines().min(1 << self.shift.saturating_sub(self.line))
    }
}

/// Line of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Number of the bank.
    pub(super) bank: u16,
    /// Key of the line within the bank.
    pub(super) key: u64,
    /// First byte of its page.
    pub(super) page: u64,
    /// Line number within the page.
    pub(super) line: u32,
}

impl Target {
    /// Line that holds an address of the bank.
    #[inline]
    pub(super) fn new(layout: &Layout, bank: u16, address: u64) -> Target {
        debug_assert_eq!(bank, layout.bank(address), "address {address:#x} in the wrong bank");
        Target { bank, key: layout.key(address), page: address & !(PAGE - 1), line: layout.line_of(address) }
    }

    /// Line with a key of the bank.
    #[inline]
    pub(super) fn of(layout: &Layout, bank: u16, key: u64) -> Target {
        Target::new(layout, bank, layout.address(bank, key))
    }

    /// Bit of the line among those of its page.
    #[inline]
    pub(super) fn bit(&self) -> u64 {
        1 << self.line
    }

    /// Different line of the page, which must be in the same bank.
    #[inline]
    pub(super) fn sibling(&self, line: u32) -> Target {
        // If the bank has less than a page, the key of line 0 would be that of a different page's line, or negative.
        let key = self.key.wrapping_sub(self.line.into()).wrapping_add(line.into());
        Target { key, line, ..*self }
    }

    /// Lines of the page whose bits are set, which must all be in the same bank.
    #[inline]
    pub(super) fn siblings(self, lines: u64) -> impl Iterator<Item = Target> {
        bits(lines).map(move |line| self.sibling(line))
    }
}

/// Positions of the set bits, lowest first.
#[inline]
pub(super) fn bits(mut lines: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let line = lines.trailing_zeros();
        lines &= lines.wrapping_sub(1);
        (line < u64::BITS).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_name_lines_one_to_one_and_rows_use_every_bank() {
        let cases =
            [(1, 128, 128), (3, 256, 128), (6, 4096, 128), (8, 4096, 64), (16, 64, 64), (5, 16_384, 128)];
        for (banks, interleave, line) in cases {
            let layout = Layout::new(banks, interleave, line);
            let mut seen = BTreeSet::new();
            let row = u64::from(banks) * interleave;
            for address in (0..row * 40).step_by(line as usize) {
                let (bank, key) = (layout.bank(address), layout.key(address));
                assert!(bank < banks);
                assert_eq!(layout.address(bank, key), address);
                assert!(seen.insert((bank, key)), "{address:#x} shares its name");
            }
            for bank in 0..banks {
                let keys = seen.range((bank, 0)..=(bank, u64::MAX)).map(|(_, key)| *key);
                assert!(keys.eq(0..40 * interleave / line), "keys without gaps");
            }
        }
    }

    #[test]
    fn a_stride_of_rows_meets_all_banks() {
        let layout = Layout::new(6, 4096, 128);
        let mut load = [0u32; 6];
        for row in 0..6000u64 {
            load[usize::from(layout.bank(row * 6 * 4096))] += 1;
        }
        // Chi-square with 5 degrees of freedom: 20.5 is the 0.999 quantile.
        let chi: f64 = load.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 20.5, "{load:?}");
    }
}
