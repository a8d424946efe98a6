//! Numbers as names: sets of them, pools of free ones, division by fixed ones, planes and their packages, and the null
//! name.

use std::ops::Range;

/// Set of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    words: Vec<u64>,
}

impl Positions {
    /// Creates an empty set of `count` positions.
    pub fn none(count: u32) -> Positions {
        Positions { words: vec![0; count.div_ceil(64) as usize] }
    }

    /// Returns whether a position is in the set; false for one outside its range.
    #[inline]
    pub fn has(&self, position: u32) -> bool {
        self.words.get(position as usize / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Adds a position to the set, or removes it.
    #[inline]
    pub fn set(&mut self, position: u32, is_in: bool) {
        let word = &mut self.words[position as usize / 64];
        let bit = 1 << (position % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// Returns the first position of a range that is in this set, or in `other`.
    #[inline]
    pub fn first(&self, other: Option<&Positions>, range: Range<u32>) -> Option<u32> {
        let mut from = range.start;
        while from < range.end {
            let at = from as usize / 64;
            let of = |set: &Positions| set.words.get(at).copied().unwrap_or(0);
            let word = (of(self) | other.map_or(0, of)) >> (from % 64);
            if word != 0 {
                return Some(from + word.trailing_zeros()).filter(|found| *found < range.end);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }
}

// Names of records in slabs and lists.

/// Null name: the end of a list, or none.
pub const NONE: u32 = u32::MAX;

// Division by a number that is fixed when the device is built.

/// Divisor. Geometry is mostly powers of two, which become shifts; other divisors of numbers below 2^32 become a
/// multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastDiv {
    by: u64,
    /// Shift; 64 if `by` is not a power of two.
    shift: u32,
    /// 2^64 over `by`, rounded up: its product with a number has the quotient above 2^64, as long as both are below
    /// 2^32 (Lemire, Kaser and Kurz, "Faster remainder by direct computation", 2019).
    reciprocal: u64,
}

const NARROW: u64 = 1 << 32;

impl FastDiv {
    /// Creates a divisor by `by`.
    ///
    /// # Panics
    /// If `by` is 0.
    pub fn new(by: u64) -> FastDiv {
        assert!(by > 0, "division by zero");
        let shift = if by.is_power_of_two() { by.trailing_zeros() } else { 64 };
        FastDiv { by, shift, reciprocal: if shift < 64 { 0 } else { u64::MAX / by + 1 } }
    }
    /// Returns the quotient.
    #[inline]
    pub fn quotient(self, n: u64) -> u64 {
        if self.shift < 64 {
            n >> self.shift
        } else if n < NARROW && self.by < NARROW {
            ((u128::from(self.reciprocal) * u128::from(n)) >> 64) as u64
        } else {
            n / self.by
        }
    }
    /// Returns quotient and remainder.
    #[inline]
    pub fn div_rem(self, n: u64) -> (u64, u64) {
        let q = self.quotient(n);
        (q, n - q * self.by)
    }
    /// Returns the divisor.
    #[inline]
    pub fn get(self) -> u64 {
        self.by
    }
}

/// Packages and their planes. Planes are numbered channel first, then package, die, plane of the die.
#[derive(Clone, Debug)]
pub struct Packages {
    packages: FastDiv,
    /// Number of planes per package.
    pub package_planes: u32,
}

impl Packages {
    /// Creates `packages` packages of `package_planes` planes each.
    pub fn new(packages: u32, package_planes: u32) -> Packages {
        Packages { packages: FastDiv::new(packages.into()), package_planes }
    }

    /// Returns the package of a plane, and the plane's number in it.
    #[inline]
    pub fn package(&self, plane: u32) -> (u32, u32) {
        let (within, package) = self.packages.div_rem(plane.into());
        (package as u32, within as u32)
    }

    /// Returns the plane of a package with number `within`.
    #[inline]
    pub fn plane(&self, package: u32, within: u32) -> u32 {
        within * self.packages.get() as u32 + package
    }

    /// Returns the number of packages.
    pub fn count(&self) -> u32 {
        self.packages.get() as u32
    }

    /// Returns the number of planes of all packages.
    pub fn planes(&self) -> u32 {
        self.count() * self.package_planes
    }
}

/// Free registers of the planes of several sets, with a bit for each plane that has one.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Number of free registers of each plane of each set.
    free: Vec<u32>,
    planes: Vec<u64>,
    /// Planes per set; words per set follow.
    each: u32,
    words: u32,
}

impl Pool {
    /// Creates `sets` of `each` planes, with `registers` registers per plane.
    pub fn new(sets: u32, each: u32, registers: u32) -> Pool {
        let words = each.div_ceil(64);
        let mut pool = Pool {
            free: vec![0; (sets * each) as usize],
            planes: vec![0; (sets * words) as usize],
            each,
            words,
        };
        for plane in 0..sets * each {
            (0..registers).for_each(|_| pool.put(plane / each, plane % each));
        }
        pool
    }

    /// Takes a register of a plane of a set or, if it has none, of the next plane that has one; returns the plane.
    #[inline]
    pub fn take(&mut self, set: u32, plane: u32) -> Option<u32> {
        let words = &self.planes[(set * self.words) as usize..][..self.words as usize];
        let found = next_bit(words, plane)?;
        let free = &mut self.free[(set * self.each + found) as usize];
        *free -= 1;
        if *free == 0 {
            self.planes[(set * self.words + found / 64) as usize] &= !(1 << (found % 64));
        }
        Some(found)
    }

    /// Returns a register of a plane to the pool.
    #[inline]
    pub fn put(&mut self, set: u32, plane: u32) {
        self.free[(set * self.each + plane) as usize] += 1;
        self.planes[(set * self.words + plane / 64) as usize] |= 1 << (plane % 64);
    }

    /// Returns the number of free registers of a set.
    pub fn free(&self, set: u32) -> u32 {
        self.free[(set * self.each) as usize..][..self.each as usize].iter().sum()
    }
}

/// Returns the first bit that is set, from `from` on and around the end.
fn next_bit(words: &[u64], from: u32) -> Option<u32> {
    let (word, bit) = ((from / 64) as usize, from % 64);
    let first = words[word] & (u64::MAX << bit);
    if first != 0 {
        return Some(word as u32 * 64 + first.trailing_zeros());
    }
    let others = (word + 1..words.len()).chain(0..=word);
    others.map(|n| (n, words[n])).find(|(_, w)| *w != 0).map(|(n, w)| n as u32 * 64 + w.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::{FastDiv, NARROW, *};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_of_two_sets_is_the_first_of_their_members(
            a in prop::collection::btree_set(0u32..200, 0..6),
            b in prop::collection::btree_set(0u32..200, 0..6),
            from in 0u32..200,
            len in 0u32..200,
        ) {
            let set = |members: &std::collections::BTreeSet<u32>| {
                let mut set = Positions::none(200);
                members.iter().for_each(|n| set.set(*n, true));
                set
            };
            let range = from..(from + len).min(200);
            let first = a.union(&b).copied().find(|n| range.contains(n));
            prop_assert_eq!(set(&a).first(Some(&set(&b)), range.clone()), first);
            let alone = a.iter().copied().find(|n| range.contains(n));
            prop_assert_eq!(set(&a).first(None, range), alone);
        }
    }

    proptest! {
        #[test]
        fn divides(n: u64, by in 1u64..5000) {
            prop_assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by));
        }

        /// Multiples of the divisor and their neighbours, for which a slightly wrong quotient is a wrong one.
        #[test]
        fn divides_below_2_to_the_32nd(by in 1..NARROW + 2, times: u64, off in 0u64..3) {
            let most = (NARROW + 2) / by;
            let n = (times % (most + 1) * by + off).saturating_sub(1);
            prop_assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by));
        }
    }

    /// The largest numbers by the divisors next to them, and by those next to powers of two.
    #[test]
    fn divides_at_the_bounds() {
        let near = |at: u64| at.saturating_sub(2)..=at + 2;
        let divisors = (1..=32).flat_map(|bit| near(1 << bit)).filter(|by| *by > 0);
        for by in divisors {
            for n in near(NARROW).chain(near(NARROW / by * by)) {
                assert_eq!(FastDiv::new(by).div_rem(n), (n / by, n % by), "{n} by {by}");
            }
        }
    }

    #[test]
    fn the_plane_itself_comes_first_then_the_next_one_around_the_end() {
        let mut pool = Pool::new(2, 3, 2);
        let taken: Vec<_> = (0..7).map(|_| pool.take(1, 2)).collect();
        assert_eq!(taken, [Some(2), Some(2), Some(0), Some(0), Some(1), Some(1), None]);
        assert_eq!((pool.free(0), pool.free(1)), (6, 0));
        pool.put(1, 0);
        assert_eq!(pool.take(1, 1), Some(0));
    }

    #[test]
    fn bits_are_found_around_the_end() {
        let words = [1 << 3, 0, 1 << 9];
        let expected = [(0, 3), (3, 3), (4, 137), (137, 137), (138, 3), (191, 3)];
        assert!(expected.iter().all(|(from, bit)| next_bit(&words, *from) == Some(*bit)));
        assert_eq!(next_bit(&[0, 0], 70), None);
        assert_eq!(next_bit(&[1 << 5], 9), Some(5));
    }
}
