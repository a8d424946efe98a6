//! A set of small numbers that is asked for the next one in a ring: who is ready, whose queue has something.

/// A set of numbers below a bound, as bits, with a bit for each word that has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    words: Vec<u64>,
    occupied: Vec<u64>,
}

impl Flags {
    /// No number, of those below `len`.
    pub fn new(len: usize) -> Flags {
        let words = len.div_ceil(64);
        Flags { words: vec![0; words], occupied: vec![0; words.div_ceil(64)] }
    }

    /// Takes a number in.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
        self.occupied[number / 4096] |= 1 << (number / 64 % 64);
    }

    /// Leaves a number out.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        let word = &mut self.words[number / 64];
        *word &= !(1 << (number % 64));
        if *word == 0 {
            self.occupied[number / 4096] &= !(1 << (number / 64 % 64));
        }
    }

    /// Whether there is no number.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupied.iter().all(|word| *word == 0)
    }

    /// The first number from `from` on.
    #[inline]
    pub fn next(&self, from: usize) -> Option<usize> {
        let at = from / 64;
        let word = self.words.get(at)? >> (from % 64);
        if word != 0 {
            return Some(from + word.trailing_zeros() as usize);
        }
        let at = first(&self.occupied, at + 1)?;
        Some(at * 64 + self.words[at].trailing_zeros() as usize)
    }
}

/// The first bit of all words from `from` on.
#[inline]
fn first(words: &[u64], from: usize) -> Option<usize> {
    let mut at = from / 64;
    let mut word = *words.get(at)? >> (from % 64) << (from % 64);
    while word == 0 {
        at += 1;
        word = *words.get(at)?;
    }
    Some(at * 64 + word.trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use std::collections::BTreeSet;

    #[test]
    fn is_a_set_that_knows_the_next() {
        for len in [1, 64, 65, 4_096, 4_097, 9_000] {
            let mut rng = Rng::stream(len as u64, "flags");
            let (mut flags, mut naive) = (Flags::new(len), BTreeSet::new());
            for _ in 0..3_000 {
                let number = rng.below(len as u64) as usize;
                // Few numbers at a time, so that words are empty.
                if naive.len() > 5 || rng.below(3) == 0 {
                    let gone = naive.range(number..).next().copied().unwrap_or(number);
                    flags.remove(gone);
                    naive.remove(&gone);
                } else {
                    flags.insert(number);
                    naive.insert(number);
                }
                let from = rng.below(len as u64 + 70) as usize;
                assert_eq!(flags.next(from), naive.range(from..).next().copied(), "{len} from {from}");
                assert_eq!(flags.is_empty(), naive.is_empty());
            }
        }
    }
}
