//! The table: a B+-tree of pages, packed by a bulk load, and the requested keys.

use engine::Rng;
use requests::synth::{Permutation, Zipf};

use super::PAGE;

/// Bytes of a page filled by a bulk load: `innodb_fill_factor` 100 reserves 1/16.
const FILLED: u64 = PAGE / 16 * 15;
/// Bytes of an entry of an inner page: header of 5, key of 4, page number of 4.
const POINTER: u64 = 13;

/// Tree whose pages are numbered by level, leaves first.
pub(super) struct Tree {
    rows: u64,
    rows_of_leaf: u64,
    /// First page and entries of a page at each level, from the leaves to the root.
    levels: Vec<(u64, u64)>,
    pages: u64,
}

impl Tree {
    /// Creates the tree in at most `bytes`, with rows of `row` bytes.
    pub(super) fn new(bytes: u64, row: u64) -> Tree {
        let (rows_of_leaf, fan_out) = ((FILLED / row).max(1), FILLED / POINTER);
        let total = |leaves: u64| {
            let (mut pages, mut level) = (leaves, leaves);
            while level > 1 {
                level = level.div_ceil(fan_out);
                pages += level;
            }
            pages
        };
        let most = (bytes / PAGE).max(1);
        let mut leaves = (most - most / fan_out).max(1);
        while leaves > 1 && total(leaves) > most {
            leaves -= 1;
        }
        let (mut levels, mut first, mut level) = (Vec::new(), 0, leaves);
        loop {
            levels.push((first, fan_out));
            first += level;
            if level == 1 {
                break;
            }
            level = level.div_ceil(fan_out);
        }
        Tree { rows: leaves * rows_of_leaf, rows_of_leaf, levels, pages: first }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.pages * PAGE
    }

    /// Returns the number of levels, including the leaves.
    pub(super) fn height(&self) -> u32 {
        self.levels.len() as u32
    }

    /// Returns the page of a row's path at `depth` below the root.
    pub(super) fn page(&self, row: u64, depth: u32) -> u32 {
        let level = self.levels.len() - 1 - depth as usize;
        let mut entry = row / self.rows_of_leaf;
        for (_, fan_out) in &self.levels[..level] {
            entry /= fan_out;
        }
        (self.levels[level].0 + entry) as u32
    }
}

/// Distribution of the requested rows.
pub(super) enum Keys {
    /// As sysbench's `special` (`sb_rand_special`): a quarter of the draws are the mean of twelve uniform ones. The
    /// others fall into the middle hundredth of the table, of which they hit the last three quarters, as the draw
    /// that chose between the two is reused.
    Special,
    /// Uniform distribution.
    Uniform,
    /// Scattered Zipf distribution.
    Zipf(Box<(Zipf, Permutation)>),
}

impl Keys {
    pub(super) fn draw(&self, rows: u64, rng: &mut Rng) -> u64 {
        match self {
            Keys::Uniform => rng.below(rows),
            Keys::Zipf(zipf) => zipf.1.at(zipf.0.rank(|| rng.unit())),
            Keys::Special => {
                let (draw, span) = (rng.unit(), (rows - 1) as f64);
                let row = if draw < 0.25 {
                    (0..12).map(|_| rng.unit()).sum::<f64>() / 12.0 * span
                } else {
                    draw * (span * 0.01 + 1.0) + span / 2.0 - span * 0.005
                };
                (row as u64).min(rows - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_the_levels_of_its_fan_out() {
        // 80 rows a leaf, 1,181 entries an inner page: 488,281 pages are 487,867 leaves, 414 inner pages below the root.
        let tree = Tree::new(8_000_000_000, 190);
        assert_eq!((tree.height(), tree.rows_of_leaf), (3, 80));
        let leaves = tree.rows() / 80;
        assert_eq!(tree.pages, leaves + leaves.div_ceil(1_181) + 1);
        assert!(tree.bytes() <= 8_000_000_000 && tree.bytes() + 3 * PAGE > 8_000_000_000);
        let path = |row| [0, 1, 2].map(|depth| u64::from(tree.page(row, depth)));
        assert_eq!(path(0), [tree.pages - 1, leaves, 0]);
        assert_eq!(path(tree.rows() - 1), [tree.pages - 1, tree.pages - 2, leaves - 1]);
        assert_eq!(path(1_181 * 80), [tree.pages - 1, leaves + 1, 1_181]);
        let small = Tree::new(PAGE, 190);
        assert_eq!((small.height(), small.rows(), small.bytes()), (1, 80, PAGE));
    }

    #[test]
    fn special_keys_are_those_of_sysbench() {
        let (rows, n) = (1_000_001, 100_000);
        let mut rng = Rng::stream(1, "keys");
        let (mut hot, mut sum) = (0, 0.0);
        for _ in 0..n {
            let row = Keys::Special.draw(rows, &mut rng);
            // From a quarter to the whole of the hundredth: 497,500 to 505,000.
            if (497_500..=505_001).contains(&row) {
                hot += 1;
            } else {
                sum += row as f64;
            }
        }
        // Three quarters, and 0.25 x P(|N| < 0.0375) of the normal with deviation 1/12 that the mean of twelve is: about 3 % of a quarter.
        let share = f64::from(hot) / f64::from(n);
        assert!((share - 0.757).abs() < 0.006, "{share}");
        let mean = sum / f64::from(n - hot);
        assert!((mean / 500_000.0 - 1.0).abs() < 0.01, "{mean}");
    }
}
