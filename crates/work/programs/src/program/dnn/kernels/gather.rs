//! Rows of a table, picked by numbers: embeddings.

use super::{At, Warp, blocks, such};
use crate::program::{Emit, Kernel, cost};

/// Which rows are picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ids {
    /// Words of a text: random, the n-th as often as 1/n (Zipf), since vocabularies are ordered by frequency.
    Words,
    /// Every row from this one on.
    From(u32),
    /// Row 0 for the first half, row 1 for the second: premise and hypothesis.
    Halves,
}

/// A kernel that copies `picked` rows of `columns` elements.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Gather {
    pub(crate) ids: Ids,
    /// Rows of the table.
    pub(crate) rows: u64,
    pub(crate) picked: u64,
    pub(crate) columns: u64,
    pub(crate) numbers: At,
    pub(crate) table: At,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Threads of a block, an element each (`indexSelectLargeIndex`).
const THREADS: u32 = 128;
/// Bytes of a row's number.
const NUMBER: u8 = 8;

impl Gather {
    pub(super) fn kernel(&self) -> Kernel {
        let grid = blocks((self.picked * self.columns).div_ceil(u64::from(THREADS)));
        Kernel { name: "index_select", blocks: grid, threads: THREADS, registers: 32, shared: 0 }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        (vec![&mut self.numbers, &mut self.table], &mut self.output)
    }

    /// The rows that are picked; `stream` numbers the input.
    pub(crate) fn pick(&self, stream: u64) -> Vec<u32> {
        let last = self.rows.saturating_sub(1);
        let row = |n: u64| match self.ids {
            Ids::Words => word(stream, n, self.rows),
            Ids::From(first) => u64::from(first) + n,
            Ids::Halves => u64::from(2 * n >= self.picked),
        };
        (0..self.picked).map(|n| row(n).min(last) as u32).collect()
    }

    pub(super) fn step(&self, warp: &mut Warp, rows: &[u32], e: &mut Emit) -> bool {
        let first = warp.at.thread() as u64;
        let count = self.picked * self.columns;
        let inside = such(warp.at.mask, |lane| first + (lane as u64) < count);
        e.alu(cost::THREAD + cost::IF, 1, []);
        if inside != 0 {
            let n = |lane: usize| first + lane as u64;
            e.block(1);
            e.lanes(inside);
            e.alu(2 + cost::ADDRESS, 2, [1]);
            e.load_at(NUMBER, 3, [2], |lane| self.numbers.element(n(lane) / self.columns, NUMBER));
            e.alu(1 + cost::ADDRESS, 4, [3, 1]);
            e.load_at(self.width, 5, [4], |lane| {
                let row = u64::from(rows[(n(lane) / self.columns) as usize]);
                self.table.element(row * self.columns + n(lane) % self.columns, self.width)
            });
            e.alu(cost::ADDRESS, 6, [1]);
            e.store_at(self.width, [6, 5], |lane| self.output.element(n(lane), self.width));
        }
        e.block(2);
        e.lanes(warp.at.mask);
        e.exit();
        false
    }
}

/// Word `n` of an input: log-uniform over the vocabulary, which is Zipf's law with exponent one.
fn word(stream: u64, n: u64, rows: u64) -> u64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut z =
        (stream.wrapping_mul(0x0100_0000_01b3) ^ n).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
    libm::pow(rows as f64 + 1.0, uniform) as u64 - 1
}
