//! Hash table: lookups, inserts and deletes in chains.
//!
//! Source: the micro-benchmark "hash" of AstriFlash's suite (MICRO 2019), whose lookups chase pointers (AstriFlash,
//! V-A). A bucket is a pointer to its first node and a version. A job reads the version, walks the chain, one node
//! per piece, and starts over if the version has changed meanwhile (a sequence lock). A job that changes a chain uses
//! the version as its lock. A node is a line; each key's node always has the same place, as if the allocator returned
//! it.

use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::Params;
use crate::service::common::{Common, LOOKUPS, Objects, Want, keys, loaded, want};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use crate::service::loaded;
use crate::service::loaded::{CHAIN_GROUP, Chains};

/// Bytes of a node: key 8, next 8, value 48.
const NODE: u64 = LINE;
/// Bytes of a node's value.
const VALUE: u64 = NODE - 16;
/// Bytes of a bucket: first node 8, version 8.
const BUCKET: u64 = 16;
/// Instructions from a key to its bucket: a finaliser of two multiplications and three shifts with exclusive or, mask, address.
const HASH: u16 = 7;
/// Instructions of the short path of an allocator that keeps blocks by size for each thread.
const ALLOCATE: u16 = 8;

const HEAD: u32 = FIRST_BLOCK;
const VISIT: u32 = HEAD + 1;
const READ: u32 = HEAD + 2;
const UPDATE: u32 = HEAD + 3;
const LINK: u32 = HEAD + 4;
const UNLINK: u32 = HEAD + 5;

pub(crate) const ENTRY: Entry = Entry {
    name: "hash",
    source: "micro-benchmarks (MICRO 2019)",
    what: "looks up, inserts and deletes keys of a chained hash table with values of 48 bytes",
    keys: keys!["5000", LOOKUPS],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, CHAIN_GROUP * (NODE + BUCKET))?;
    let hash = Hash::new(&common, params.integer(LOOKUPS.name, 0..=100)?);
    Ok(Box::new(Served::new(hash, common.work)))
}

/// Limit of the versions of loaded chains: no run gets from here to the end of 32 bits.
const VERSION_MAX: u32 = 1 << 30;

/// A chain that differs from its loaded state: its keys, first to last, and the number of changes.
#[derive(Default)]
struct Chain {
    keys: Vec<u64>,
    version: u32,
}

engine::snapshot!(Chain { keys, version });

/// The table.
pub(crate) struct Hash {
    common: Common,
    lookups: u64,
    keys: Objects,
    chains: Chains,
    changed: FxHashMap<u64, Chain>,
    /// Values that were set; initially a key's value is the key.
    values: FxHashMap<u64, u64>,
    nodes: u64,
}

/// A job: its request, and its position in the chain.
pub(crate) struct Job {
    want: Want,
    key: u64,
    value: u64,
    bucket: u64,
    /// Version for which the walk is valid, once it has begun.
    version: Option<u32>,
    /// Next node to visit, the previous one, and the pointers to them.
    at: Option<u64>,
    before: Option<u64>,
    link: Value,
    link_before: Value,
    /// Value found.
    found: Option<u64>,
}

impl Hash {
    pub(crate) fn new(common: &Common, lookups: u64) -> Hash {
        let keys = common.data / (CHAIN_GROUP * (NODE + BUCKET)) * CHAIN_GROUP;
        Hash {
            common: common.clone(),
            lookups,
            keys: Objects::new(keys, common),
            chains: Chains::new(keys, common.salt(3)),
            changed: FxHashMap::default(),
            values: FxHashMap::default(),
            nodes: DATA + keys * BUCKET,
        }
    }

    fn bucket_address(bucket: u64) -> u64 {
        DATA + bucket * BUCKET
    }

    fn address(&self, key: u64) -> u64 {
        self.nodes + self.keys.slot(key) * NODE
    }

    fn version(&self, bucket: u64) -> u32 {
        self.changed.get(&bucket).map_or(0, |chain| chain.version)
    }

    fn first(&self, bucket: u64) -> Option<u64> {
        match self.changed.get(&bucket) {
            Some(chain) => chain.keys.first().copied(),
            None => self.chains.first(bucket, loaded),
        }
    }

    fn next(&self, bucket: u64, key: u64) -> Option<u64> {
        match self.changed.get(&bucket) {
            Some(chain) => chain.keys.iter().skip_while(|&&k| k != key).nth(1).copied(),
            None => self.chains.next(key, loaded),
        }
    }

    fn value(&self, key: u64) -> u64 {
        self.values.get(&key).copied().unwrap_or(key)
    }

    /// Returns a bucket's chain for modification.
    fn chain(&mut self, bucket: u64) -> &mut Chain {
        let chains = &self.chains;
        let chain = self.changed.entry(bucket).or_insert_with(|| {
            let keys = std::iter::successors(chains.first(bucket, loaded), |&key| chains.next(key, loaded));
            Chain { keys: keys.collect(), version: 0 }
        });
        chain.version += 1;
        chain
    }

    fn head(&self, job: &mut Job, e: &mut Emit<'_>) {
        e.block(HEAD);
        let index = e.compute(HASH, [Value::READY]);
        let head = e.load(Hash::bucket_address(job.bucket), BUCKET, [index]);
        job.version = Some(self.version(job.bucket));
        (job.at, job.before) = (self.first(job.bucket), None);
        (job.link, job.link_before) = (head, Value::READY);
        e.branch(job.at.is_none(), [head]);
    }

    /// Visits a node; returns whether it has the key.
    fn visit(&self, job: &mut Job, key: u64, e: &mut Emit<'_>) -> bool {
        let node = e.load(self.address(key), 16, [job.link]);
        let hit = key == job.key;
        e.branch(hit, [node]);
        if !hit {
            (job.before, job.at) = (Some(key), self.next(job.bucket, key));
            (job.link_before, job.link) = (job.link, node);
            e.branch(job.at.is_none(), [node]);
        }
        hit
    }

    /// Executes the request on the node found, or on the chain that has none.
    fn act(&mut self, job: &mut Job, e: &mut Emit<'_>) {
        let address = self.address(job.key);
        let lock = Hash::bucket_address(job.bucket) + 8;
        job.found = job.at.map(|key| self.value(key));
        match (job.want, job.at) {
            (Want::Look, None) | (Want::Delete, None) => {}
            (Want::Look, Some(_)) => {
                e.block(READ);
                e.load(address + 16, VALUE, [job.link]);
            }
            (Want::Insert, Some(key)) => {
                self.values.insert(key, job.value);
                e.block(UPDATE);
                let taken = e.atomic(lock, []);
                e.branch(false, [taken]);
                e.store(address + 16, VALUE, [job.link]);
                e.store(lock, 8, []);
            }
            (Want::Insert, None) => {
                self.values.insert(job.key, job.value);
                self.chain(job.bucket).keys.insert(0, job.key);
                e.block(LINK);
                let blocks = e.load(e.frame(), 16, []);
                let block = e.compute(ALLOCATE, [blocks]);
                let taken = e.atomic(lock, []);
                e.branch(false, [taken]);
                let first = e.load(lock - 8, 8, []);
                e.store(address, NODE, [block, first]);
                e.store(lock - 8, BUCKET, [block]);
            }
            (Want::Delete, Some(key)) => {
                self.values.remove(&key);
                self.chain(job.bucket).keys.retain(|&k| k != key);
                let before = job.before.map_or(lock - 8, |before| self.address(before) + 8);
                e.block(UNLINK);
                let taken = e.atomic(lock, []);
                e.branch(false, [taken]);
                let next = e.load(address + 8, 8, [job.link]);
                e.store(before, 8, [job.link_before, next]);
                e.store(lock, 8, []);
                e.compute(ALLOCATE, [job.link]);
                e.store(e.frame(), 16, [job.link]);
            }
        }
    }
}

impl Program for Hash {
    type Job = Job;
    const BLOCKS: u32 = UNLINK + 1;

    fn end(&self) -> u64 {
        self.nodes + self.keys.len() * NODE
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let want = want(self.lookups, &mut stream);
        let key = self.keys.draw(&mut stream);
        Job {
            want,
            key,
            value: stream.bits(),
            bucket: self.chains.bucket(key),
            version: None,
            at: None,
            before: None,
            link: Value::READY,
            link_before: Value::READY,
            found: None,
        }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        let Some(version) = job.version else {
            self.head(job, e);
            if job.at.is_none() {
                self.act(job, e);
            }
            return job.at.is_some();
        };
        e.block(VISIT);
        let now = e.load(Hash::bucket_address(job.bucket) + 8, 8, []);
        let stale = self.version(job.bucket) != version;
        e.branch(stale, [now]);
        if stale {
            job.version = None;
            return true;
        }
        let hit = job.at.is_some_and(|key| self.visit(job, key, e));
        let goes_on = !hit && job.at.is_some();
        if !goes_on {
            self.act(job, e);
        }
        goes_on
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.changed, out);
        loaded::save_changes(&self.values, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let (keys, chains) = (self.keys.len(), &self.chains);
        let is_chain = |bucket: u64, chain: &Chain| {
            let belongs = |key: &u64| *key < keys && chains.bucket(*key) == bucket;
            let mut different = chain.keys.clone();
            different.sort_unstable();
            different.dedup();
            chain.version < VERSION_MAX
                && different.len() == chain.keys.len()
                && different.iter().all(belongs)
        };
        self.changed = loaded::load_changes(input, |bucket, chain| bucket < keys && is_chain(bucket, chain))?;
        self.values = loaded::load_changes(input, |key, _| key < keys)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::drive::{chased, drive, small};
    use std::collections::BTreeMap;

    fn contents(hash: &Hash) -> BTreeMap<u64, u64> {
        let mut all = BTreeMap::new();
        for bucket in 0..hash.keys.len() {
            let mut at = hash.first(bucket);
            while let Some(key) = at {
                assert_eq!(hash.chains.bucket(key), bucket);
                assert!(all.insert(key, hash.value(key)).is_none(), "{key} twice");
                at = hash.next(bucket, key);
            }
        }
        all
    }

    /// Checks that every job's outcome is that of a map at the job's end, whatever the others do between its pieces.
    fn against_a_map(keys: u64, lookups: u64, slots: u64, jobs: u64) {
        let mut hash = Hash::new(&small(keys * (NODE + BUCKET)), lookups);
        let mut map: BTreeMap<u64, u64> =
            (0..hash.keys.len()).filter(|&key| loaded(key)).map(|k| (k, k)).collect();
        assert_eq!(contents(&hash), map);
        drive(&mut hash, 0..jobs, slots, |_, _, job, _| {
            let before = match job.want {
                Want::Look => map.get(&job.key).copied(),
                Want::Insert => map.insert(job.key, job.value),
                Want::Delete => map.remove(&job.key),
            };
            assert_eq!(job.found, before);
        });
        assert_eq!(contents(&hash), map);
    }

    #[test]
    fn it_does_what_a_map_does() {
        against_a_map(1024, 50, 1, 5000);
        against_a_map(64, 20, 40, 20_000);
        against_a_map(4096, 90, 8, 5000);
    }

    #[test]
    fn a_chain_is_chased_and_bounded_by_the_changes_made() {
        let mut hash = Hash::new(&small(1 << 40), 90);
        let mut longest = 0;
        drive(&mut hash, 0..3000, 1, |hash, _, _, history| {
            longest = longest.max(chased(history, hash.nodes..hash.end(), NODE).len());
        });
        assert!((3..12).contains(&longest), "{longest}");
        assert!(hash.changed.len() + hash.values.len() <= 600 && !hash.values.is_empty());
    }
}
