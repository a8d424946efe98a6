//! Waiting lists that share one table.

use crate::Slab;

/// End of a list.
const END: u32 = u32::MAX;

/// Handle of a list in [`Lists`]: its owner keeps it and passes it to every call. It belongs to the lists that it was
/// first pushed to. A copy is valid until the list or another copy of it changes.
#[derive(Clone, Copy, Debug)]
pub struct List {
    first: u32,
    /// Index of the last item; meaningless if the list is empty.
    last: u32,
}

impl Default for List {
    #[inline]
    fn default() -> Self {
        List::EMPTY
    }
}

impl List {
    /// Empty list.
    pub const EMPTY: List = List { first: END, last: END };

    /// Returns whether the list is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == END
    }

    /// Takes the whole list and leaves an empty one. A waiter that re-queues while being served is not served twice.
    #[inline]
    pub fn take(&mut self) -> List {
        std::mem::take(self)
    }
}

/// Any number of first-in-first-out lists whose items share one slab: waiters for each of many things. Allocates
/// nothing once the number of simultaneous waiters has reached its maximum.
#[derive(Clone, Debug)]
pub struct Lists<T> {
    /// Items, each with the index of the next one.
    items: Slab<(T, u32)>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { items: Slab::default() }
    }
}

impl<T: Copy> Lists<T> {
    /// Appends an item to a list.
    ///
    /// # Panics
    /// If 2^32 - 1 items wait.
    #[inline]
    pub fn push(&mut self, list: &mut List, item: T) {
        let name = self.items.insert((item, END));
        if list.is_empty() {
            list.first = name;
        } else {
            self.items[list.last].1 = name;
        }
        list.last = name;
    }

    /// Removes the first item of a list.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<T> {
        if list.is_empty() {
            return None;
        }
        let (item, next) = self.items[list.first];
        self.items.remove(list.first);
        list.first = next;
        Some(item)
    }

    /// Iterates over the items of a list in arrival order.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = &T> {
        let mut next = list.first;
        std::iter::from_fn(move || {
            if next == END {
                return None;
            }
            let (item, behind) = &self.items[next];
            next = *behind;
            Some(item)
        })
    }

    /// Returns the number of items in all lists together.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether all lists are empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

// A set of small numbers, searched as a ring for the next member: a ready one, a queue that is not empty.

/// Set of numbers below a bound, as bits, with a summary bit for each non-zero word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    words: Vec<u64>,
    occupied: Vec<u64>,
}

impl Flags {
    /// Creates an empty set of numbers below `len`.
    pub fn new(len: usize) -> Flags {
        let words = len.div_ceil(64);
        Flags { words: vec![0; words], occupied: vec![0; words.div_ceil(64)] }
    }

    /// Adds a number.
    #[inline]
    pub fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
        self.occupied[number / 4096] |= 1 << (number / 64 % 64);
    }

    /// Removes a number.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        let word = &mut self.words[number / 64];
        *word &= !(1 << (number % 64));
        if *word == 0 {
            self.occupied[number / 4096] &= !(1 << (number / 64 % 64));
        }
    }

    /// Returns whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.occupied.iter().all(|word| *word == 0)
    }

    /// Returns the first number at or above `from`.
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

/// Returns the index of the first set bit at or above `from`, over all words.
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

// Digest of a run: two runs with the same digest did the same things in the same order.

/// Running 64-bit digest. Not cryptographic: it detects change, not malice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Digest(u64);

impl Digest {
    /// Adds a word; order matters.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.0 = crate::mix(self.0.rotate_left(5) ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    /// Returns the digest so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, List, Lists, *};
    use crate::Rng;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, VecDeque};

    #[test]
    fn lists_that_share_a_table_keep_their_order() {
        let (mut lists, mut a, mut b) = (Lists::default(), List::EMPTY, List::EMPTY);
        lists.push(&mut a, 1);
        lists.push(&mut b, 2);
        lists.push(&mut a, 3);
        assert_eq!(lists.iter(&a).collect::<Vec<_>>(), [&1, &3]);
        assert_eq!((lists.pop(&mut a), lists.pop(&mut a), lists.pop(&mut a)), (Some(1), Some(3), None));
        assert_eq!((a.is_empty(), b.is_empty(), lists.len()), (true, false, 1));
        lists.push(&mut a, 4);
        assert_eq!((lists.pop(&mut b), lists.pop(&mut a), lists.is_empty()), (Some(2), Some(4), true));
    }

    #[test]
    fn who_waits_again_while_a_taken_list_is_served_waits_for_the_next_time() {
        let (mut lists, mut list) = (Lists::default(), List::EMPTY);
        lists.push(&mut list, 1);
        lists.push(&mut list, 2);
        let mut taken = list.take();
        let mut served = Vec::new();
        while let Some(item) = lists.pop(&mut taken) {
            served.push(item);
            lists.push(&mut list, item + 10);
        }
        assert_eq!((served, lists.len()), (vec![1, 2], 2));
        assert_eq!(lists.iter(&list).collect::<Vec<_>>(), [&11, &12]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        /// Moves all items of a list to the end of a different one.
        Drain(usize, usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0..5usize).prop_map(Step::Push),
            3 => (0..5usize).prop_map(Step::Pop),
            1 => (0..5usize, 0..5usize).prop_map(|(from, to)| Step::Drain(from, to)),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn like_a_queue_for_each(steps in steps()) {
            let mut lists = Lists::default();
            let mut own = [List::EMPTY; 5];
            let mut queues = vec![VecDeque::new(); 5];
            let mut most = 0;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(at) => {
                        lists.push(&mut own[at], number);
                        queues[at].push_back(number);
                    }
                    Step::Pop(at) => prop_assert_eq!(lists.pop(&mut own[at]), queues[at].pop_front()),
                    Step::Drain(from, to) => {
                        let mut taken = own[from].take();
                        while let Some(item) = lists.pop(&mut taken) {
                            lists.push(&mut own[to], item);
                        }
                        let moved = std::mem::take(&mut queues[from]);
                        queues[to].extend(moved);
                    }
                }
                let all: usize = queues.iter().map(VecDeque::len).sum();
                most = most.max(all);
                prop_assert_eq!((lists.len(), lists.is_empty()), (all, all == 0));
                for (list, queue) in own.iter().zip(&queues) {
                    prop_assert_eq!(list.is_empty(), queue.is_empty());
                    prop_assert!(lists.iter(list).eq(queue));
                }
                prop_assert_eq!(lists.items.places(), most, "places are used again");
            }
        }
    }

    #[test]
    fn is_a_set_that_knows_the_next() {
        for len in [1, 64, 65, 4_096, 4_097, 9_000] {
            let mut rng = Rng::stream(len as u64, "flags");
            let (mut flags, mut naive) = (Flags::new(len), BTreeSet::new());
            for _ in 0..3_000 {
                let number = rng.below(len as u64) as usize;
                // Few numbers at a time, so that some words are zero.
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

    #[test]
    fn order_matters() {
        let digest = |words: &[u64]| {
            let mut d = Digest::default();
            words.iter().for_each(|w| d.word(*w));
            d.value()
        };
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[0]), digest(&[0, 0]));
    }
}
