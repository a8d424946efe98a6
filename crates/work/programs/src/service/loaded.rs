//! Data loaded by a formula, as B+-trees and chains of hash tables, and the saving of jobs' changes.
//!
//! Nodes as in Y. Mao, E. Kohler, R. Morris, "Cache craftiness for fast multicore key-value storage" (Masstree), EuroSys 2012,
//! section 4, whose trees Silo uses as well: 15 keys of eight bytes, versions for readers without locks, and all lines of a
//! node fetched at once before its keys are searched.

use crate::service::jobs::{Emit, LINE, Value};
use engine::Snapshot;
use requests::synth::Permutation;
use rustc_hash::FxHashMap;

/// Keys of a leaf and children of an inner node as loaded: of 15, the average after random inserts (ln 2 = 69 %; A.
/// Yao, "On random 2-3 trees", Acta Informatica 9, 1978).
pub(crate) const NODE_FILL: u64 = 11;
/// Bytes of a node, five lines. Inner: version 8, count 8, 15 keys, 16 children, parent: 272. Leaf: version 8, permutation 8, 15
/// keys, 15 lengths, 15 pointers, next, previous, parent: 296.
pub(crate) const NODE_BYTES: u64 = 5 * LINE;
/// Offsets of the pointers in an inner node and in a leaf.
const CHILDREN: u64 = 136;
const POINTERS: u64 = 152;
/// Instructions of a binary search among up to 15 keys: four turns of load from L1, comparison, conditional select.
const SEARCH: u16 = 12;

/// Returns the largest number up to `most` that fits; 1 fits, and if a number fits so do all below.
pub(crate) fn largest(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut least, mut most) = (1, most.max(1));
    while least < most {
        let middle = least + (most - least).div_ceil(2);
        (least, most) = if fits(middle) { (middle, most) } else { (least, middle - 1) };
    }
    least
}

/// Tree over the keys `0..n`; leaves are level 0.
pub(crate) struct BTree {
    /// Number of the first node of each level.
    first: Vec<u64>,
    nodes: u64,
}

impl BTree {
    /// Creates a tree over `n` keys, at least one.
    pub(crate) fn new(n: u64) -> BTree {
        let (mut first, mut nodes, mut level) = (Vec::new(), 0, n);
        loop {
            level = level.div_ceil(NODE_FILL);
            first.push(nodes);
            nodes += level;
            if level == 1 {
                return BTree { first, nodes };
            }
        }
    }

    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Returns the number of levels.
    pub(crate) fn levels(&self) -> u32 {
        self.first.len() as u32
    }

    /// Returns the number of a level's node on the path to a key, and the index of its next child or key.
    pub(crate) fn node(&self, level: u32, key: u64) -> (u64, u64) {
        let below = NODE_FILL.pow(level);
        (self.first[level as usize] + key / below / NODE_FILL, key / below % NODE_FILL)
    }
}

/// Visits the node at `address`, to which `link` points: fetches its lines, searches, loads the pointer of the key
/// found, and checks that the version has not changed. Returns this pointer. Writes one basic block.
pub(crate) fn visit_node(address: u64, leaf: bool, found: u64, link: Value, e: &mut Emit<'_>) -> Value {
    let version = e.load(address, 16, [link]);
    let mut keys = version;
    for line in 1..NODE_BYTES / LINE {
        let fetched = e.load(address + line * LINE, 8, [link]);
        // Keys end in the third line; pointers are in the later ones.
        if line == 2 {
            keys = fetched;
        }
    }
    e.branch(false, [version]);
    let index = e.compute(SEARCH, [keys, version]);
    let pointers = if leaf { POINTERS } else { CHILDREN };
    let pointer = e.load(address + pointers + 8 * found, 8, [index, link]);
    let again = e.load(address, 8, [link]);
    e.branch(false, [version, again]);
    pointer
}

// Changes of a program's data by jobs, as bytes.

/// Appends entries in the order of their keys: equal maps are equal bytes, whatever their history.
pub(crate) fn save_changes<V: Snapshot>(changed: &FxHashMap<u64, V>, out: &mut Vec<u8>) {
    let mut entries: Vec<(&u64, &V)> = changed.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| **key);
    entries.len().save(out);
    for (key, value) in entries {
        key.save(out);
        value.save(out);
    }
}

/// Limit of loaded counters that a program increments: no run gets from here to the end of 64 bits.
pub(crate) const COUNT_MAX: u64 = 1 << 48;

/// Reads a map from the front; `None` if it is truncated, its keys do not ascend, or an entry is not one that a
/// program makes.
pub(crate) fn load_changes<V: Snapshot>(
    input: &mut &[u8],
    may: impl Fn(u64, &V) -> bool,
) -> Option<FxHashMap<u64, V>> {
    let count = usize::load(input)?;
    let (mut changed, mut least) = (FxHashMap::default(), 0);
    for _ in 0..count {
        let (key, value) = <(u64, V)>::load(input)?;
        if key < least || !may(key, &value) {
            return None;
        }
        least = key.checked_add(1)?;
        changed.insert(key, value);
    }
    Some(changed)
}

// Chains of a hash table that is loaded by a formula.
//
// Ids are ordered by their hashes with a permutation, and each group of `CHAIN_GROUP` neighbours is distributed to as
// many buckets. So a bucket's members are found among 32 candidates, and the lengths of chains are binomial with mean
// 1 and variance 31/32 (Poisson with a hash over the whole table: 1). One bucket per id is the load factor 1 at which
// `std::unordered_map` grows.

/// Number of ids that share as many buckets. Tables are made for a multiple of it, so that they have a bucket for
/// each id.
pub(crate) const CHAIN_GROUP: u64 = 32;

/// Bucket of each of the ids `0..n`.
pub(crate) struct Chains {
    order: Permutation,
    salt: u64,
}

impl Chains {
    /// Creates the chains of `n` ids.
    pub(crate) fn new(n: u64, salt: u64) -> Chains {
        Chains { order: Permutation::new(n, salt), salt: engine::mix(salt) }
    }

    /// Returns the bucket of an id.
    pub(crate) fn bucket(&self, id: u64) -> u64 {
        self.bucket_at(self.order.at(id))
    }

    fn bucket_at(&self, place: u64) -> u64 {
        place / CHAIN_GROUP * CHAIN_GROUP + engine::mix(place ^ self.salt) % CHAIN_GROUP
    }

    /// Returns the first of a bucket's chain among those that are `loaded`.
    pub(crate) fn first(&self, bucket: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        self.from(bucket, bucket / CHAIN_GROUP * CHAIN_GROUP, loaded)
    }

    /// Returns the one after `id` in its chain, among those that are `loaded`.
    pub(crate) fn next(&self, id: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        let place = self.order.at(id);
        self.from(self.bucket_at(place), place + 1, loaded)
    }

    fn from(&self, bucket: u64, place: u64, loaded: impl Fn(u64) -> bool) -> Option<u64> {
        let end = ((bucket / CHAIN_GROUP + 1) * CHAIN_GROUP).min(self.order.len());
        let mut members = (place..end).filter(|&place| self.bucket_at(place) == bucket);
        members.find_map(|place| Some(self.order.place_of(place)).filter(|&id| loaded(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_of_all_keys_meet_every_node_and_agree() {
        for n in [1, 11, 12, 121, 122, 5000] {
            let tree = BTree::new(n);
            let mut seen = vec![Vec::new(); tree.nodes() as usize];
            for key in 0..n {
                for level in 0..tree.levels() {
                    let (node, child) = tree.node(level, key);
                    assert!(child < NODE_FILL);
                    // Target of the pointer: the key, or the node below.
                    let named = if level == 0 { key } else { tree.node(level - 1, key).0 };
                    seen[node as usize].push((child, named));
                }
                assert_eq!(tree.node(tree.levels() - 1, key).0, tree.nodes() - 1);
            }
            for children in &mut seen {
                children.dedup();
                let numbers: Vec<u64> = children.iter().map(|child| child.0).collect();
                assert_eq!(numbers, (0..children.len() as u64).collect::<Vec<_>>());
                assert!(children.windows(2).all(|pair| pair[0].1 + 1 == pair[1].1));
            }
        }
    }

    #[test]
    fn what_is_saved_is_loaded_whatever_its_history() {
        let forth: FxHashMap<u64, u32> = (0..100).map(|key| (key * 7, key as u32)).collect();
        let back: FxHashMap<u64, u32> = (0..100).rev().map(|key| (key * 7, key as u32)).collect();
        let [one, other] = [forth, back].map(|map| {
            let mut bytes = Vec::new();
            save_changes(&map, &mut bytes);
            let mut input = bytes.as_slice();
            assert!(load_changes(&mut input, |_, _| true) == Some(map) && input.is_empty());
            bytes
        });
        assert_eq!(one, other);
        for cut in 0..one.len() {
            assert_eq!(load_changes::<u32>(&mut &one[..cut], |_, _| true), None);
        }
        // Two entries with one key.
        let mut twice = Vec::new();
        (2_usize, (5_u64, 1_u32)).save(&mut twice);
        (5_u64, 1_u32).save(&mut twice);
        assert_eq!(load_changes::<u32>(&mut twice.as_slice(), |_, _| true), None);
        // An entry that no job makes.
        assert_eq!(load_changes::<u32>(&mut one.as_slice(), |key, _| key != 7), None);
    }

    #[test]
    fn every_id_is_in_its_bucket_once_and_chains_are_nearly_poisson() {
        let n = 100_032;
        let chains = Chains::new(n, 5);
        let (mut seen, mut lengths) = (vec![0u8; n as usize], [0f64; 6]);
        for bucket in 0..n {
            let (mut at, mut length) = (chains.first(bucket, |_| true), 0);
            while let Some(id) = at {
                assert_eq!(chains.bucket(id), bucket);
                seen[id as usize] += 1;
                length += 1;
                at = chains.next(id, |_| true);
            }
            lengths[length.min(5)] += 1.0;
        }
        assert!(seen.iter().all(|&n| n == 1));
        // Binomial(32, 1/32), within five standard deviations of a count (the groups only lower it).
        let mut p = libm::pow(31.0 / 32.0, 32.0);
        for (k, &count) in lengths[..5].iter().enumerate() {
            let expected = p * n as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{k}: {count} against {expected}");
            p *= (32 - k) as f64 / (k + 1) as f64 / 31.0;
        }
    }
}
