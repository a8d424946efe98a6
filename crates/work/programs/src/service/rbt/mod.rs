//! Red-black tree: lookups, inserts and deletes.
//!
//! Source: the micro-benchmark "red-black tree" of AstriFlash's suite (MICRO 2019). A search goes down one node a piece and
//! holds for each the version it had when it came there; if the node has lost keys since (a rotation moved it down, or it was
//! removed) the search begins again, else it reads the child pointer anew (hand-over-hand optimistic validation: Bronson et al.,
//! PPoPP 2010). Whoever changes the tree takes one lock for all of it, for the length of one piece. Nodes are a line; each
//! key's node has its own place whenever it is there, as if the allocator gave it back to it. Where a node lies says nothing of how
//! high it stands: keys were inserted in random order.

mod shape;
mod sound;
mod tree;

use crate::program::Params;
use crate::service::common::{Common, keys};
use crate::service::emit::{Emit, LINE, Value};
use crate::service::list::{Built, Entry};
use crate::service::objects::Objects;
use crate::service::requests::{LOOKUPS, Want, want};
use crate::service::served::{DATA, FIRST_BLOCK, Program, Served};
use tree::{NIL, Tree};

/// Bytes of a node: key, value, left, right, parent 8 each, colour and version 8, 16 unused. A line.
const NODE: u64 = LINE;
/// Where in a node are the pointers, and colour and version. A change writes some of what lies from the value to the version.
const LEFT: u64 = 16;
const VERSION: u64 = 40;
/// The root pointer and the lock of the tree, each on a line of its own before the nodes.
const ROOT: u64 = DATA;
const LOCK: u64 = DATA + LINE;
const NODES: u64 = DATA + 2 * LINE;
/// Instructions of the short path of an allocator that keeps blocks by size for each thread.
const ALLOCATE: u16 = 8;

const TOP: u32 = FIRST_BLOCK;
const VISIT: u32 = TOP + 1;
const VALUE: u32 = TOP + 2;
const ENTER: u32 = TOP + 3;
const REPAIR: u32 = TOP + 4;
const LEAVE: u32 = TOP + 5;

pub(crate) const ENTRY: Entry = Entry {
    name: "rbt",
    source: "micro-benchmarks (MICRO 2019)",
    what: "looks up, inserts and deletes keys of a red-black tree with nodes of 64 bytes",
    keys: keys!["20000", LOOKUPS],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, NODES - DATA + NODE)?;
    let rbt = Rbt::new(&common, params.integer(LOOKUPS.name, 0..=100)?);
    Ok(Box::new(Served::new(rbt, common.work)))
}

/// The tree and its place in memory.
pub(crate) struct Rbt {
    common: Common,
    lookups: u64,
    keys: Objects,
    tree: Tree,
}

/// Where a search rests.
#[derive(Clone, Copy)]
struct Rest {
    node: u64,
    version: u32,
    /// The child it goes to.
    side: usize,
    /// The pointer to the node, and what was loaded from it.
    link: Value,
    loaded: Value,
}

/// A job: what it wants, and where its search rests.
pub(crate) struct Job {
    want: Want,
    key: u64,
    value: u64,
    rest: Option<Rest>,
    /// The value that was found.
    found: Option<u64>,
}

impl Rbt {
    pub(crate) fn new(common: &Common, lookups: u64) -> Rbt {
        let keys = (common.data - (NODES - DATA)) / NODE;
        Rbt { common: common.clone(), lookups, keys: Objects::new(keys, common), tree: Tree::new(keys) }
    }

    fn address(&self, key: u64) -> u64 {
        NODES + self.keys.slot(key) * NODE
    }

    /// The node below the one where the search rests, if that still holds the key, and the pointer to it.
    fn below(&self, job: &Job, e: &mut Emit<'_>) -> Option<(u64, Value)> {
        let Some(rest) = job.rest else {
            e.block(TOP);
            return Some((self.tree.root(), e.load(ROOT, 8, [])));
        };
        let (node, address) = (self.tree.node(rest.node), self.address(rest.node));
        e.block(VISIT);
        let pointer = e.load(address + LEFT + 8 * rest.side as u64, 8, [rest.link, rest.loaded]);
        let version = e.load(address + VERSION, 8, [rest.link]);
        let stale = node.version != rest.version;
        e.branch(stale, [version]);
        (!stale).then_some((node.children[rest.side], pointer))
    }

    /// Comes to a node; whether it is the one.
    fn visit(&self, job: &mut Job, key: u64, link: Value, e: &mut Emit<'_>) -> bool {
        let address = self.address(key);
        let loaded = e.load(address, 8, [link]);
        e.load(address + VERSION, 8, [link]);
        e.branch(key == job.key, [loaded]);
        let side = usize::from(job.key > key);
        // The side is chosen by a conditional add to the address, not by a branch.
        let chosen = e.compute(2, [loaded]);
        let version = self.tree.node(key).version;
        job.rest = Some(Rest { node: key, version, side, link, loaded: chosen });
        key == job.key
    }

    /// Does what the job wants at the node of its key, or where this would be.
    fn act(&mut self, job: &mut Job, at: Option<Value>, e: &mut Emit<'_>) {
        let there = at.is_some();
        job.found = at.and_then(|_| self.tree.node(job.key).value);
        if let Some(link) = at {
            e.block(VALUE);
            let value = e.load(self.address(job.key) + 8, 8, [link]);
            e.branch(job.found.is_none(), [value]);
        }
        let rest = job.rest.map_or((NIL, 0), |rest| (rest.node, rest.side));
        match job.want {
            Want::Look => return,
            Want::Delete if job.found.is_none() => return,
            Want::Delete => self.tree.delete(job.key),
            Want::Insert if there => self.tree.set(job.key, Some(job.value)),
            Want::Insert => self.tree.insert(job.key, job.value, rest.0, rest.1),
        }
        let link = at.or(job.rest.map(|rest| rest.link)).unwrap_or_default();
        self.write(link, !there, e);
    }

    /// Operations of a change: under the lock, each node it reads for the first time (found by a pointer of the one before), and
    /// each it writes.
    fn write(&mut self, link: Value, allocates: bool, e: &mut Emit<'_>) {
        e.block(ENTER);
        if allocates {
            let blocks = e.load(e.frame(), 16, []);
            e.compute(ALLOCATE, [blocks]);
        }
        let taken = e.atomic(LOCK, []);
        e.branch(false, [taken]);
        let mut last = link;
        for touch in self.tree.touched() {
            e.block(REPAIR);
            let address = self.address(touch.key);
            if touch.written {
                e.store(address + 8, 40, [last]);
            } else {
                last = e.load(address + LEFT, 32, [last]);
                e.branch(false, [last]);
            }
        }
        e.block(LEAVE);
        e.store(LOCK, 8, []);
    }
}

impl Program for Rbt {
    type Job = Job;
    const BLOCKS: u32 = LEAVE + 1;

    fn end(&self) -> u64 {
        NODES + self.keys.len() * NODE
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let want = want(self.lookups, &mut stream);
        let key = self.keys.draw(&mut stream);
        Job { want, key, value: stream.bits(), rest: None, found: None }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        let Some((below, link)) = self.below(job, e) else {
            job.rest = None;
            return true;
        };
        e.branch(below == NIL, [link]);
        if below == NIL {
            self.act(job, None, e);
            return false;
        }
        let hit = self.visit(job, below, link, e);
        if hit {
            self.act(job, Some(link), e);
        }
        !hit
    }

    fn save(&self, out: &mut Vec<u8>) {
        self.tree.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.tree.load(input, self.keys.len())
    }
}

#[cfg(test)]
mod tests;
