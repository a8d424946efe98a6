//! Orders of lines: by age in a linked list, and by a key, smallest first.

const ABSENT: u32 = u32::MAX;
/// Marks a line that is in the chain, not in the heap.
const CHAINED: u32 = u32::MAX - 1;
/// Children of a heap node: four entries fill one cache line.
const ARITY: usize = 4;

/// Lines in the order of their distinct keys, any of which can be removed.
///
/// Keys are times, so nearly every new line has the largest: those are in a list, at O(1). The few lines inserted late,
/// after a flush, are in a heap, at O(log n).
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    chain: Chain,
    /// Keys of the chained lines.
    keys: Vec<u64>,
    heap: Vec<(u64, u32)>,
    /// Position of each line in the heap, or [`CHAINED`] or [`ABSENT`].
    place: Vec<u32>,
}

impl Order {
    /// Inserts a line that is absent.
    pub(super) fn insert(&mut self, line: u32, key: u64) {
        if self.place.len() <= line as usize {
            self.place.resize(line as usize + 1, ABSENT);
            self.keys.resize(line as usize + 1, 0);
        }
        debug_assert_eq!(self.place[line as usize], ABSENT, "line {line} is in already");
        let newest = self.chain.newest();
        if newest == NONE || self.keys[newest as usize] < key {
            self.chain.push(line);
            self.keys[line as usize] = key;
            self.place[line as usize] = CHAINED;
        } else {
            self.heap.push((key, line));
            self.up(self.heap.len() - 1);
        }
    }

    /// Removes a line; false if it was absent.
    pub(super) fn remove(&mut self, line: u32) -> bool {
        let Some(place) = self.place.get_mut(line as usize) else { return false };
        match std::mem::replace(place, ABSENT) {
            ABSENT => return false,
            CHAINED => self.chain.remove(line),
            at => {
                self.heap.swap_remove(at as usize);
                if (at as usize) < self.heap.len() {
                    self.up(at as usize);
                    self.down(at as usize);
                }
            }
        }
        true
    }

    /// Returns the smallest key and its line.
    #[inline]
    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let late = self.heap.first().copied();
        match self.chain.oldest() {
            NONE => late,
            line => {
                let first = (self.keys[line as usize], line);
                Some(late.map_or(first, |late| late.min(first)))
            }
        }
    }

    /// Returns keys and lines, smallest key first.
    pub(super) fn sorted(&self) -> Vec<(u64, u32)> {
        let chained = self.chain.iter().map(|line| (self.keys[line as usize], line));
        let mut items: Vec<(u64, u32)> = chained.chain(self.heap.iter().copied()).collect();
        items.sort_unstable();
        items
    }

    /// Rebuilds the order that [`Order::sorted`] listed; `None` if the list is not sorted, or names a line twice or one
    /// that is not below `lines`.
    pub(super) fn from_sorted(items: &[(u64, u32)], lines: usize) -> Option<Order> {
        let mut order = Order { place: vec![ABSENT; lines], keys: vec![0; lines], ..Order::default() };
        if !items.is_sorted_by(|a, b| a.0 < b.0) {
            return None;
        }
        for (key, line) in items {
            if *order.place.get(*line as usize)? != ABSENT {
                return None;
            }
            order.insert(*line, *key);
        }
        Some(order)
    }

    #[inline]
    fn set(&mut self, at: usize, item: (u64, u32)) {
        self.heap[at] = item;
        self.place[item.1 as usize] = at as u32;
    }

    fn up(&mut self, mut at: usize) {
        let item = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].0 <= item.0 {
                break;
            }
            self.set(at, self.heap[parent]);
            at = parent;
        }
        self.set(at, item);
    }

    fn down(&mut self, mut at: usize) {
        let item = self.heap[at];
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(child) = children.min_by_key(|c| self.heap[*c].0) else { break };
            if item.0 <= self.heap[child].0 {
                break;
            }
            self.set(at, self.heap[child]);
            at = child;
        }
        self.set(at, item);
    }
}

// Doubly linked list of numbers, oldest to newest.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

/// Intrusive list: a node is a number, its links are in a table. Every operation is O(1).
#[derive(Clone, Debug)]
pub(super) struct Chain {
    links: Vec<Links>,
    oldest: u32,
    newest: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { links: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl Chain {
    /// Appends an absent node, as the newest.
    pub(super) fn push(&mut self, node: u32) {
        if self.links.len() <= node as usize {
            self.links.resize(node as usize + 1, Links { older: NONE, newer: NONE });
        }
        self.links[node as usize] = Links { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = node,
            newest => self.links[newest as usize].newer = node,
        }
        self.newest = node;
    }

    /// Removes a present node.
    pub(super) fn remove(&mut self, node: u32) {
        let Links { older, newer } = self.links[node as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
    }

    /// Returns the first node, or [`NONE`].
    #[inline]
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Returns the last node, or [`NONE`].
    #[inline]
    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    /// Returns the node after this one, or [`NONE`].
    #[inline]
    pub(super) fn newer(&self, node: u32) -> u32 {
        self.links[node as usize].newer
    }

    /// Iterates over all nodes, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.oldest).filter(|n| *n != NONE);
        std::iter::successors(first, |node| Some(self.newer(*node)).filter(|n| *n != NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::Order;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, btree_map::Entry};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Compares with a map searched from end to end. Kind 0 removes, 1 inserts with the largest key, the others
        /// with an arbitrary key.
        #[test]
        fn smallest_first(steps in prop::collection::vec((0u8..8, 0u32..150), 1..1000)) {
            let mut order = Order::default();
            let mut naive = BTreeMap::new();
            for (step, (kind, line)) in steps.into_iter().enumerate() {
                let step = step as u64;
                if kind == 0 {
                    prop_assert_eq!(order.remove(line), naive.remove(&line).is_some());
                } else if let Entry::Vacant(entry) = naive.entry(line) {
                    // Distinct: even ones rise with the steps, odd ones do not.
                    let key = if kind == 1 { 40 * step } else { step * 7919 % 10_007 * 2 + 1 };
                    order.insert(line, key);
                    entry.insert(key);
                }
                let mut sorted: Vec<(u64, u32)> = naive.iter().map(|(line, key)| (*key, *line)).collect();
                sorted.sort_unstable();
                prop_assert_eq!(order.first(), sorted.first().copied());
                prop_assert_eq!(order.sorted(), sorted);
            }
            let copy = Order::from_sorted(&order.sorted(), 150);
            prop_assert_eq!(copy.map(|c| c.sorted()), Some(order.sorted()));
        }
    }

    /// A removal moves the last entry of the heap, 8, below a larger one, 100.
    #[test]
    fn a_hole_is_filled_from_elsewhere() {
        let mut order = Order::default();
        let insert = |order: &mut Order, key: u32| order.insert(key, u64::from(key));
        // The largest first: none of the others is chained.
        insert(&mut order, 300);
        for key in [1, 100, 2, 3, 4, 101, 102, 103, 104, 5, 6, 7, 8] {
            insert(&mut order, key);
        }
        assert!(order.remove(101) && !order.remove(101));
        (200..210).for_each(|key| insert(&mut order, key));
        let drained = std::iter::from_fn(|| order.first().inspect(|(_, line)| assert!(order.remove(*line))));
        let expected = (1..=8).chain([100, 102, 103, 104]).chain(200..210).chain([300]);
        assert!(drained.map(|(_, line)| line).eq(expected));
    }

    #[test]
    fn a_damaged_list_is_refused() {
        assert!(Order::from_sorted(&[(1, 0), (2, 1)], 2).is_some());
        assert!(Order::from_sorted(&[(2, 0), (1, 1)], 2).is_none(), "not sorted");
        assert!(Order::from_sorted(&[(1, 0), (2, 0)], 2).is_none(), "line named twice");
        assert!(Order::from_sorted(&[(1, 2)], 2).is_none(), "no such line");
    }
}
