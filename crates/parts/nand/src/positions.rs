//! A set of places in some order, searched a word at a time.

use std::ops::Range;

/// Which places are in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    words: Vec<u64>,
}

impl Positions {
    /// None of `count` places.
    pub fn none(count: u32) -> Positions {
        Positions { words: vec![0; count.div_ceil(64) as usize] }
    }

    /// Whether a place is in the set; one that it was not made for is not.
    #[inline]
    pub fn has(&self, position: u32) -> bool {
        self.words.get(position as usize / 64).is_some_and(|word| word >> (position % 64) & 1 == 1)
    }

    /// Puts a place into the set, or takes it out.
    #[inline]
    pub fn set(&mut self, position: u32, is_in: bool) {
        let word = &mut self.words[position as usize / 64];
        let bit = 1 << (position % 64);
        *word = if is_in { *word | bit } else { *word & !bit };
    }

    /// The first place of a range that is in this set, or in the other one.
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
