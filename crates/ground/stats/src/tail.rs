//! Tail attribution: per-cause sums in latency buckets, of which only the slowest are kept.

use std::collections::{BTreeMap, VecDeque};

/// Sums over the slowest values, kept by value, so that any share of them can be selected at the end.
///
/// Values fall into rows like the buckets of a log-linear histogram, 32 per octave. A row sums the `N` parts of its
/// values, and one of the parts by place. Rows below a cutoff are dropped, and values below it are only counted. The
/// cutoff rises only while more than one in [`Tail::KEPT`] of all values stay above it, so the rows above it are
/// complete. If the lowest row alone holds more than needed, as when all values are about equal, one in 64 of its
/// further values is sampled with the weight of all.
#[derive(Clone, Debug)]
pub struct Tail<const N: usize> {
    /// Number of values counted.
    values: u64,
    /// Number of values in the rows.
    kept: u64,
    /// First value of the lowest row that is kept.
    cutoff: u64,
    /// First value from which on every value is kept; between the cutoff and it, values are sampled.
    whole: u64,
    /// Number of the lowest row.
    base: u32,
    rows: VecDeque<Row<N>>,
    /// Emptied place lists of dropped rows, reused by the next rows.
    spare: Vec<Vec<(u32, u128)>>,
}

/// Values of one row.
#[derive(Clone, Debug)]
struct Row<const N: usize> {
    values: u64,
    sum: u128,
    parts: [u128; N],
    /// Places and their weights, ascending by place.
    places: Vec<(u32, u128)>,
}

impl<const N: usize> Row<N> {
    const EMPTY: Row<N> = Row { values: 0, sum: 0, parts: [0; N], places: Vec::new() };

    fn add_place(&mut self, place: u32, weight: u128, spare: &mut Vec<Vec<(u32, u128)>>) {
        match self.places.binary_search_by_key(&place, |(of, _)| *of) {
            Ok(at) => self.places[at].1 += weight,
            Err(at) => {
                if self.places.capacity() == 0 {
                    self.places = spare.pop().unwrap_or_else(|| Vec::with_capacity(PLACES));
                }
                self.places.insert(at, (place, weight));
            }
        }
    }
}

/// Slowest values of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowest<const N: usize> {
    /// Number of values requested.
    pub values: u64,
    /// Share of them that were kept.
    pub covered: f64,
    /// Smallest of them, known to 3 %: the beginning of its row.
    pub from: u64,
    /// Mean of the values that were kept.
    pub mean: f64,
    /// Mean of each part.
    pub parts: [f64; N],
    /// Weight of each place that has one, ascending by place, summed over the values that were kept.
    pub places: Vec<(u32, f64)>,
}

/// Sub-bucket bits per octave.
const BITS: u32 = 5;
/// Initial capacity of a row's places, so that rows seldom grow during a run.
const PLACES: usize = 64;
/// Excess of kept values at which the rows are trimmed: *chosen*, few, because until the cutoff has settled most values
/// are kept, and each costs as much as a hundred that are only counted.
const LEAST: u64 = 512;
/// Values of the lowest row after which it is sampled: *chosen*, enough for shares of its parts within a few per cent.
const ENOUGH: u64 = 1024;
/// Sampling ratio: one in this many values of a sampled row is kept; *chosen* so that the sample costs about a
/// hundredth of a request.
const SAMPLED: u64 = 64;

impl<const N: usize> Default for Tail<N> {
    fn default() -> Tail<N> {
        Tail { values: 0, kept: 0, cutoff: 0, whole: 0, base: 0, rows: VecDeque::new(), spare: Vec::new() }
    }
}

impl<const N: usize> Tail<N> {
    /// Share of all values that the rows hold at least after trimming, as one in this many: *chosen*, more than the
    /// hundredth that is needed, so that a run may become somewhat faster.
    pub const KEPT: u64 = 80;

    /// Returns the weight with which to keep a value; zero if it need not be kept. `nth` numbers the values and selects
    /// the sample.
    #[inline]
    pub fn weight(&self, value: u64, nth: u64) -> u64 {
        if value >= self.whole {
            1
        } else if value >= self.cutoff && is_sampled(nth) {
            SAMPLED
        } else {
            0
        }
    }

    /// Counts a value that is not kept.
    #[inline]
    pub fn count(&mut self) {
        self.values += 1;
    }

    /// Counts a value and keeps its parts; `weight` is that of [`Tail::weight`], and `place` has its own weight.
    pub fn keep(&mut self, value: u64, weight: u64, parts: &[u64; N], place: Option<(u32, u64)>) {
        self.values += 1;
        self.kept += weight;
        let at = self.at(index(value));
        let row = &mut self.rows[at];
        row.values += weight;
        let times = u128::from(weight);
        row.sum += times * u128::from(value);
        row.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += times * u128::from(*part));
        if let Some((place, waited)) = place.filter(|(_, waited)| *waited > 0) {
            row.add_place(place, times * u128::from(waited), &mut self.spare);
        }
        // An eighth more than required: keeping fewer costs less.
        if self.kept >= LEAST + 9 * self.values / (8 * Self::KEPT) {
            self.raise();
        }
    }

    /// Drops as many of the lowest rows as can be spared.
    #[cold]
    fn raise(&mut self) {
        let least = self.values.div_ceil(Self::KEPT).max(LEAST / 2);
        while let Some(lowest) = self.rows.front().map(|row| row.values) {
            if self.kept - lowest < least {
                break;
            }
            self.give_up_the_lowest();
        }
        if self.rows.front().is_some_and(|row| row.values >= ENOUGH) {
            self.whole = first(self.base + 1);
        }
    }

    fn give_up_the_lowest(&mut self) {
        if let Some(mut row) = self.rows.pop_front() {
            self.kept -= row.values;
            if row.places.capacity() > 0 {
                row.places.clear();
                self.spare.push(row.places);
            }
        }
        self.base += 1;
        self.cutoff = self.cutoff.max(first(self.base));
        self.whole = self.whole.max(self.cutoff);
    }

    /// Returns the position of a numbered row, creating it and the rows between it and the others if necessary.
    #[inline]
    fn at(&mut self, index: u32) -> usize {
        if self.rows.is_empty() {
            self.base = index;
        }
        while index < self.base {
            self.rows.push_front(Row::EMPTY);
            self.base -= 1;
        }
        let at = (index - self.base) as usize;
        while at >= self.rows.len() {
            self.rows.push_back(Row::EMPTY);
        }
        at
    }

    /// Iterates over the rows that have values, with their numbers, ascending.
    fn taken(&self) -> impl DoubleEndedIterator<Item = (u32, &Row<N>)> {
        self.rows
            .iter()
            .enumerate()
            .map(|(at, row)| (self.base + at as u32, row))
            .filter(|(_, row)| row.values > 0)
    }

    /// Returns the number of values counted.
    pub const fn values(&self) -> u64 {
        self.values
    }

    /// Clears everything, at the end of warm-up.
    pub fn clear(&mut self) {
        *self = Tail::default();
    }

    /// Adds everything that `other` has kept; rows below the higher of the two cutoffs are dropped.
    pub fn merge(&mut self, other: &Tail<N>) {
        self.values += other.values;
        self.kept += other.kept;
        for (index, theirs) in other.taken() {
            let at = self.at(index);
            let mine = &mut self.rows[at];
            mine.values += theirs.values;
            mine.sum += theirs.sum;
            mine.parts.iter_mut().zip(theirs.parts).for_each(|(sum, part)| *sum += part);
            theirs.places.iter().for_each(|(place, weight)| mine.add_place(*place, *weight, &mut self.spare));
        }
        self.cutoff = self.cutoff.max(other.cutoff);
        self.whole = self.whole.max(other.whole).max(self.cutoff);
        while !self.rows.is_empty() && first(self.base) < self.cutoff {
            self.give_up_the_lowest();
        }
    }

    /// Returns the slowest `share` of all, at least one in [`Tail::KEPT`] or less; `None` if fewer than ten values are
    /// that slow, or none was kept. If only part of a row is needed, each of its values counts with the same weight.
    pub fn slowest(&self, share: f64) -> Option<Slowest<N>> {
        let asked = (self.values as f64 * share).round() as u64;
        if asked < 10 || self.kept == 0 {
            return None;
        }
        let (mut taken, mut from, mut sum) = (0.0, 0, 0.0);
        let (mut parts, mut places) = ([0.0; N], BTreeMap::<u32, f64>::new());
        for (index, row) in self.taken().rev() {
            let left = asked as f64 - taken;
            if left <= 0.0 {
                break;
            }
            let weight = (left / row.values as f64).min(1.0);
            taken += row.values as f64 * weight;
            from = first(index);
            sum += row.sum as f64 * weight;
            parts.iter_mut().zip(row.parts).for_each(|(sum, part)| *sum += part as f64 * weight);
            for (place, of) in &row.places {
                *places.entry(*place).or_default() += *of as f64 * weight;
            }
        }
        Some(Slowest {
            values: asked,
            covered: self.kept.min(asked) as f64 / asked as f64,
            from,
            mean: sum / taken,
            parts: parts.map(|part| part / taken),
            places: places.into_iter().collect(),
        })
    }
}

/// Returns whether a value of a sampled row is in the sample: decided by its number, spread to keep periodic patterns
/// of values from interfering.
#[inline]
fn is_sampled(nth: u64) -> bool {
    // Golden ratio: its multiples are spread evenly and never form a cycle.
    nth.wrapping_mul(0x9E37_79B9_7F4A_7C15) < u64::MAX / SAMPLED
}

/// Returns the row of a value, as [`Histogram`](crate::Histogram) numbers its buckets.
fn index(value: u64) -> u32 {
    let shift = 63 - (value | (1 << BITS)).leading_zeros() - BITS;
    (shift << BITS) + (value >> shift) as u32
}

/// Returns the first value of a row.
fn first(index: u32) -> u64 {
    let octave = index >> BITS;
    if octave == 0 {
        return u64::from(index);
    }
    let shift = octave - 1;
    u64::from(index - (shift << BITS)) << shift
}

#[cfg(test)]
mod tests {
    use super::{ENOUGH, SAMPLED, Tail, first, index};
    use proptest::prelude::*;

    #[test]
    fn rows_tile_the_values() {
        for value in [0, 1, 31, 32, 63, 64, 65, 1 << 20, (1 << 40) + 12345, u64::MAX] {
            let row = index(value);
            assert!(first(row) <= value, "{value}");
            assert!(row == index(u64::MAX) || value < first(row + 1), "{value}");
            assert!(value - first(row) <= value / 32, "{value}: rows are at most 1/32 wide");
        }
    }

    fn add<const N: usize>(
        tail: &mut Tail<N>,
        nth: u64,
        value: u64,
        parts: &[u64; N],
        place: Option<(u32, u64)>,
    ) {
        match tail.weight(value, nth) {
            0 => tail.count(),
            weight => tail.keep(value, weight, parts, place),
        }
    }

    /// Returns the slowest `n` of a list, sorted.
    fn sorted(values: &[u64], n: usize) -> Vec<u64> {
        let mut all = values.to_vec();
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.truncate(n);
        all
    }

    proptest! {
        #[test]
        fn the_slowest_are_those_of_a_sorted_list(values in prop::collection::vec(1u64..1_000_000, 1000..30_000)) {
            let mut tail = Tail::<2>::default();
            for (nth, value) in (0..).zip(&values) {
                let parts = [value / 4, value - value / 4];
                add(&mut tail, nth, *value, &parts, Some(((value % 3) as u32, 1)));
            }
            let asked = (values.len() as f64 * 0.01).round() as usize;
            let found = tail.slowest(0.01).unwrap();
            let expected = sorted(&values, asked);
            let mean = expected.iter().sum::<u64>() as f64 / asked as f64;
            // Only in the last row it is unknown which of its values were meant, and it is 1/32 wide.
            prop_assert!((found.mean / mean - 1.0).abs() < 1.0 / 32.0, "{} for {mean}", found.mean);
            prop_assert!(found.from <= *expected.last().unwrap());
            prop_assert_eq!(found.covered, 1.0);
            let sum: f64 = found.parts.iter().sum();
            prop_assert!((sum / found.mean - 1.0).abs() < 1e-9);
            let places: f64 = found.places.iter().map(|(_, weight)| weight).sum();
            prop_assert!((places - asked as f64).abs() < 1e-6);
        }
    }

    #[test]
    fn a_tail_that_has_become_faster_says_what_it_covers() {
        let mut tail = Tail::<1>::default();
        // Many more than the rows hold before they are trimmed, at rising values.
        (0..100_000).for_each(|n| add(&mut tail, n, 1_000_000 + n * 1000, &[0], None));
        (0..10_000_000).for_each(|n| add(&mut tail, n, 10, &[0], None));
        let found = tail.slowest(0.01).unwrap();
        assert_eq!(found.values, 101_000);
        assert!(found.covered < 0.1, "{}", found.covered);
        let least = tail.slowest(0.0001).unwrap();
        assert_eq!((least.values, least.covered), (1010, 1.0));
    }

    #[test]
    fn merged_rows_are_whole_above_the_higher_cutoff() {
        let mut low = Tail::<1>::default();
        (0..100).for_each(|n| add(&mut low, n, 1000 + n, &[1], None));
        let mut high = Tail::<1>::default();
        (0..20_000u64).for_each(|n| add(&mut high, n, n, &[1], None));
        let cutoff = high.cutoff;
        assert!(cutoff > 1100, "{cutoff}");
        low.merge(&high);
        assert_eq!(low.values(), 20_100);
        assert_eq!(low.kept, high.kept);
        assert_eq!(low.slowest(0.01).unwrap().covered, 1.0);
    }

    /// Values of one row, a third of them with one cause and two thirds with a different one, at places in rotation.
    #[test]
    fn of_equal_values_a_sample_stands_for_all() {
        const VALUES: u64 = 1_000_000;
        for places in [3u64, 16, 64, 89] {
            let mut tail = Tail::<2>::default();
            let mut kept = 0;
            for nth in 0..VALUES {
                let parts = if nth % 3 == 0 { [10_000, 0] } else { [0, 10_000] };
                kept += u64::from(tail.weight(10_000, nth) > 0);
                add(&mut tail, nth, 10_000, &parts, Some(((nth % places) as u32, 1)));
            }
            assert!(kept < 2 * ENOUGH + VALUES / SAMPLED, "{kept}");
            // One value in a hundred thousand is slower, and each of these is kept.
            (0..10).for_each(|nth| add(&mut tail, nth, 20_000, &[20_000, 0], None));
            let found = tail.slowest(0.01).unwrap();
            assert_eq!((found.values, found.covered), (10_000, 1.0));
            let (slower, equal) = (10.0 * 20_000.0, 9_990.0 * 10_000.0);
            assert!((found.mean * 1e4 / (slower + equal) - 1.0).abs() < 1e-9, "{}", found.mean);
            let first = (slower + equal / 3.0) / 1e4;
            assert!((found.parts[0] / first - 1.0).abs() < 0.02, "{:?}", found.parts);
            // Binomial: 16,000 values over the places.
            let even = 9_990.0 / places as f64;
            let spread = 4.0 / (VALUES as f64 / SAMPLED as f64 / places as f64).sqrt();
            assert_eq!(found.places.len() as u64, places);
            for (place, weight) in found.places {
                assert!((weight / even - 1.0).abs() < spread, "{place} of {places}: {weight} for {even}");
            }
        }
    }
}
