//! Which bank holds an address, and what the bank calls its lines.

use proto::memory::PAGE;

/// Maps physical addresses to banks and back.
///
/// Memory is cut into units of `1 << shift` bytes. Each row of as many units as there are banks has one unit in each
/// bank; a hash of the row says in which it begins, so that no stride of rows meets one bank only. A bank numbers its
/// lines without gaps, row by row, so that all its sets are used alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    banks: u64,
    shift: u32,
    /// A line has `1 << line` bytes.
    line: u32,
}

impl Layout {
    /// For so many banks, with units of `interleave` bytes: a power of two, a line at least; `line` bytes are a line.
    pub(super) fn new(banks: u16, interleave: u64, line: u64) -> Layout {
        let (shift, line) = (interleave.trailing_zeros(), line.trailing_zeros());
        Layout { banks: banks.into(), shift, line }
    }

    /// Bytes of a line.
    #[inline]
    pub(super) fn line(&self) -> u64 {
        1 << self.line
    }

    /// Lines of a page.
    #[inline]
    pub(super) fn lines(&self) -> u32 {
        (PAGE >> self.line) as u32
    }

    /// The line of its page that an address lies in.
    #[inline]
    pub(super) fn line_of(&self, address: u64) -> u32 {
        ((address % PAGE) >> self.line) as u32
    }

    /// The bank in which a row begins.
    #[inline]
    fn first(&self, row: u64) -> u64 {
        ((engine::mix(row) >> 32) * self.banks) >> 32
    }

    /// The bank of an address.
    #[inline]
    pub(super) fn bank(&self, address: u64) -> u16 {
        let unit = address >> self.shift;
        let bank = self.first(unit / self.banks) + unit % self.banks;
        (if bank < self.banks { bank } else { bank - self.banks }) as u16
    }

    /// What the bank of an address calls its line.
    #[inline]
    pub(super) fn key(&self, address: u64) -> u64 {
        let row = (address >> self.shift) / self.banks;
        let within = address & ((1 << self.shift) - 1);
        (row << self.shift | within) >> self.line
    }

    /// The address of a bank's line.
    #[inline]
    pub(super) fn address(&self, bank: u16, key: u64) -> u64 {
        let at = key << self.line;
        let row = at >> self.shift;
        let column = u64::from(bank) + self.banks - self.first(row);
        let column = if column < self.banks { column } else { column - self.banks };
        (row * self.banks + column) << self.shift | at & ((1 << self.shift) - 1)
    }

    /// Lines of a page that lie in one bank beside each other: their keys follow each other, and begin at a multiple.
    #[inline]
    pub(super) fn neighbours(&self) -> u32 {
        self.lines().min(1 << self.shift.saturating_sub(self.line))
    }
}

/// A line of a bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// The bank.
    pub(super) bank: u16,
    /// What the bank calls the line.
    pub(super) key: u64,
    /// First byte of its page.
    pub(super) page: u64,
    /// Line of the page.
    pub(super) line: u32,
}

impl Target {
    /// The line that holds an address of the bank.
    #[inline]
    pub(super) fn new(layout: &Layout, bank: u16, address: u64) -> Target {
        debug_assert_eq!(bank, layout.bank(address), "address {address:#x} in the wrong bank");
        Target { bank, key: layout.key(address), page: address & !(PAGE - 1), line: layout.line_of(address) }
    }

    /// The line with a key of the bank.
    #[inline]
    pub(super) fn of(layout: &Layout, bank: u16, key: u64) -> Target {
        Target::new(layout, bank, layout.address(bank, key))
    }

    /// Its bit among the lines of its page.
    #[inline]
    pub(super) fn bit(&self) -> u64 {
        1 << self.line
    }

    /// Another line of the page, which must lie in the same bank.
    #[inline]
    pub(super) fn sibling(&self, line: u32) -> Target {
        // Where less than a page lies in the bank, the key of line 0 would be that of another page's line, or negative.
        let key = self.key.wrapping_sub(self.line.into()).wrapping_add(line.into());
        Target { key, line, ..*self }
    }

    /// The lines of its page whose bits are set, which must all lie in the same bank.
    #[inline]
    pub(super) fn siblings(self, lines: u64) -> impl Iterator<Item = Target> {
        bits(lines).map(move |line| self.sibling(line))
    }
}

/// The places of the bits that are set, lowest first.
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
