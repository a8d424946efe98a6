//! Masstree-like: a trie of B+-trees over slices of eight bytes of the keys.
//!
//! Source: Y. Mao, E. Kohler, R. Morris, "Cache craftiness for fast multicore key-value storage", EuroSys 2012, and
//! its workload MYCSB (section 7): rows of ten columns of four bytes, a get reads all, a put sets one. Tailbench (H.
//! Kasture, D. Sanchez, IISWC 2016) runs half gets, half puts. Keys are `user` and twelve digits, so two slices: a
//! tree of the first layer over `user` and four digits, whose leaves point to trees of the second layer over the
//! other eight. A get reads without locks, between two reads of the version of each node; a put locks the leaf for
//! the length of one piece.
//!
//! Left out: inserts and removes (MYCSB has none, so the trees do not change and versions stay), keys of several lengths with
//! suffixes outside the nodes, and that a put copies the row and frees the old one: it changes the row in place, as Masstree
//! itself does with values of eight bytes.

use requests::synth::Permutation;
use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::{Key, Params};
use crate::service::common::{Common, Objects, Placement, keys};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use crate::service::loaded::{self, BTree, NODE_BYTES};

/// Bytes of a row: time of the last change 8, ten columns of 4; a line.
const ROW: u64 = LINE;
/// Columns of a row.
const COLUMNS: u64 = 10;
/// Number of first slices: `user0000` to `user9999`, fewer if there are not enough keys to give each a tree of this
/// size.
const SLICES: u64 = 10_000;
const LEAST_TREE: u64 = 32;
/// The line of the root pointer.
const ROOT: u64 = DATA;
const NODES: u64 = DATA + LINE;
/// Instructions to cut a slice from the key and reverse its bytes, so that integers compare as strings do.
const SLICE: u16 = 3;

const TOP: u32 = FIRST_BLOCK;
const DESCEND: u32 = TOP + 1;
const GET: u32 = TOP + 2;
const PUT: u32 = TOP + 3;

const GETS: Key = Key {
    name: "gets",
    what: "percent of jobs that read all columns of a row; the others set one",
    default: "50",
};

pub(crate) const ENTRY: Entry = Entry {
    name: "masstree",
    source: "Masstree (EuroSys 2012), MYCSB of Tailbench",
    what: "gets and puts of rows of ten columns in a trie of B+-trees",
    keys: keys!["20000", GETS],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, NODES - DATA + LEAST_TREE * (ROW + NODE_BYTES))?;
    let masstree = Masstree::new(&common, params.integer(GETS.name, 0..=100)?);
    Ok(Box::new(Served::new(masstree, common.work)))
}

/// The store.
pub(crate) struct Masstree {
    common: Common,
    gets: u64,
    keys: Objects,
    /// Tree of the first layer, and the shape of each of the second.
    first: BTree,
    second: BTree,
    /// Number of keys per tree of the second layer.
    each: u64,
    /// Map from node to slot; `None` if they are in the order of loading.
    scatter: Option<Permutation>,
    nodes: u64,
    /// Columns that were set, by key and column; they are initially zero.
    columns: FxHashMap<u64, u32>,
}

/// A job, and its progress.
pub(crate) struct Job {
    key: u64,
    /// Column that it sets, and the new value.
    put: Option<(u64, u32)>,
    /// Levels of both layers still above the row.
    levels: u32,
    /// Pointer to the current node, and that to the previous one.
    link: Value,
    leaf: Value,
}

impl Masstree {
    pub(crate) fn new(common: &Common, gets: u64) -> Masstree {
        let room = common.data - (NODES - DATA);
        let slices = (room / (ROW + NODE_BYTES / loaded::NODE_FILL) / LEAST_TREE).clamp(1, SLICES);
        let first = BTree::new(slices);
        let second = |each| BTree::new(each).nodes() * NODE_BYTES + each * ROW;
        let fits = |each| first.nodes() * NODE_BYTES + slices * second(each) <= room;
        let each = loaded::largest(room / ROW / slices, fits);
        let second = BTree::new(each);
        let nodes = first.nodes() + slices * second.nodes();
        let scattered = common.placement == Placement::Scattered;
        Masstree {
            common: common.clone(),
            gets,
            keys: Objects::new(slices * each, common),
            first,
            second,
            each,
            scatter: scattered.then(|| Permutation::new(nodes, common.salt(3))),
            nodes,
            columns: FxHashMap::default(),
        }
    }

    /// Returns the node `levels` above the row on the path to a key: its address, the index of the next pointer, and
    /// whether it is a leaf.
    fn node(&self, levels: u32, key: u64) -> (u64, u64, bool) {
        let (slice, rest) = (key / self.each, key % self.each);
        let second = self.second.levels();
        let (node, found) = if levels >= second {
            self.first.node(levels - second, slice)
        } else {
            let (node, found) = self.second.node(levels, rest);
            (self.first.nodes() + slice * self.second.nodes() + node, found)
        };
        let slot = self.scatter.as_ref().map_or(node, |scatter| scatter.at(node));
        (NODES + slot * NODE_BYTES, found, levels == second || levels == 0)
    }

    fn levels(&self) -> u32 {
        self.first.levels() + self.second.levels()
    }

    fn row(&self, key: u64) -> u64 {
        NODES + self.nodes * NODE_BYTES + self.keys.slot(key) * ROW
    }

    fn descend(&self, job: &mut Job, e: &mut Emit<'_>) {
        if job.levels == self.levels() {
            e.block(TOP);
            e.compute(SLICE, []);
            job.link = e.load(ROOT, 8, []);
        }
        job.levels -= 1;
        let (node, found, leaf) = self.node(job.levels, job.key);
        e.block(DESCEND);
        job.leaf = job.link;
        job.link = loaded::visit_node(node, leaf, found, job.link, e);
        e.branch(leaf, [job.link]);
        if leaf && job.levels > 0 {
            e.compute(SLICE, []);
        }
    }

    fn finish(&mut self, job: &Job, e: &mut Emit<'_>) {
        let row = self.row(job.key);
        let Some((column, value)) = job.put else {
            e.block(GET);
            let columns = e.load(row, 8 + 4 * COLUMNS, [job.link]);
            e.store(e.frame(), 4 * COLUMNS, [columns]);
            return;
        };
        self.columns.insert(job.key * COLUMNS + column, value);
        let (leaf, _, _) = self.node(0, job.key);
        e.block(PUT);
        let taken = e.atomic(leaf, [job.leaf]);
        e.branch(false, [taken]);
        e.store(row + 8 + 4 * column, 4, [job.link]);
        e.store(row, 8, [job.link]);
        e.store(leaf, 8, [job.leaf]);
    }
}

impl Program for Masstree {
    type Job = Job;
    const BLOCKS: u32 = PUT + 1;

    fn end(&self) -> u64 {
        NODES + self.nodes * NODE_BYTES + self.keys.len() * ROW
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let key = self.keys.draw(&mut stream);
        let gets = stream.below(100) < self.gets;
        let put = (stream.below(COLUMNS), stream.bits() as u32);
        Job {
            key,
            put: (!gets).then_some(put),
            levels: self.levels(),
            link: Value::READY,
            leaf: Value::READY,
        }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        if job.levels > 0 {
            self.descend(job, e);
            return true;
        }
        self.finish(job, e);
        false
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.columns, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let columns = self.keys.len() * COLUMNS;
        self.columns = loaded::load_changes(input, |column, _| column < columns)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::drive::{chased, drive, small};
    use proto::cpu::OpKind;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn columns_hold_what_was_put_last_and_every_key_has_its_own_way() {
        let mut masstree = Masstree::new(&small(100_000), 50);
        assert!(masstree.first.levels() > 1 && masstree.second.levels() > 1);
        let mut map = BTreeMap::new();
        drive(&mut masstree, 0..3000, 9, |_, _, job, _| {
            if let Some((column, value)) = job.put {
                map.insert(job.key * COLUMNS + column, value);
            }
        });
        let n = masstree.keys.len() * COLUMNS;
        assert!((0..n).all(|at| masstree.columns.get(&at) == map.get(&at)));
        let ways: BTreeSet<_> = (0..masstree.keys.len()).map(|key| masstree.node(0, key)).collect();
        let leaves: BTreeSet<_> = ways.iter().map(|way| way.0).collect();
        assert_eq!(ways.len() as u64, masstree.keys.len());
        assert_eq!(
            leaves.len() as u64,
            masstree.keys.len() / masstree.each * masstree.each.div_ceil(loaded::NODE_FILL)
        );
    }

    #[test]
    fn both_layers_are_chased_down_to_the_row() {
        let mut masstree = Masstree::new(&small(1 << 40), 50);
        assert_eq!(masstree.keys.len() / masstree.each, SLICES);
        let levels = masstree.levels() as usize;
        drive(&mut masstree, 0..500, 4, |masstree, _, job, history| {
            let rows = NODES + masstree.nodes * NODE_BYTES;
            assert_eq!(chased(history, NODES..rows, NODE_BYTES).len(), levels);
            let touched = history.iter().position(|op| op.address >= rows).unwrap();
            let leaf = masstree.node(0, job.key).0;
            let pointer = history[..touched]
                .iter()
                .rposition(|op| op.kind == OpKind::Load && op.address > leaf + 151)
                .unwrap();
            assert!(crate::service::drive::depends(history, touched, pointer));
        });
        assert!(masstree.columns.len() <= 300);
    }
}
