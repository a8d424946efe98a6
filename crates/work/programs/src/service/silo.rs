//! Silo-like: optimistic transactions on a B+-tree.
//!
//! Source: S. Tu, W. Zheng, E. Kohler, B. Liskov, S. Madden, "Speedy transactions in multicore in-memory databases",
//! SOSP 2013: the commit protocol (section 4.4, Fig. 2) and the key-value workload of section 5.2: records of 100
//! bytes under keys of eight; some are read, the rest read, modified and written. A transaction reads its records one
//! after another, one tree node or record per piece. It commits in one piece: locks its write set in key order,
//! checks that the transaction ids it read are unchanged, installs; otherwise it unlocks and starts over after a
//! pause that doubles.
//!
//! Left out: epochs that advance, logging, garbage collection, snapshots, inserts and deletes (so the tree does not
//! change and needs no node set), and TPC-C, which is in `tpcc`.

use requests::synth::Permutation;
use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::{Key, Params};
use crate::service::common::{Common, Objects, Placement, keys};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use crate::service::loaded::COUNT_MAX;
use crate::service::loaded::{self, BTree, NODE_BYTES};

/// Bytes of a record: transaction id 8, pointer to the version before 8, value 100: two lines.
const RECORD: u64 = 2 * LINE;
/// Bytes of a record in its second line.
const REST: u64 = 116 - LINE;
/// Lines of the global epoch and of the root pointer.
const EPOCH: u64 = DATA;
const ROOT: u64 = DATA + LINE;
const NODES: u64 = DATA + 2 * LINE;
/// Bytes in the thread's memory of an entry of the read set: record, transaction id.
const READ_ENTRY: u64 = 16;
/// Offset of the new values in the thread's memory.
const WRITE_SET: u64 = 1024;
/// Maximum records per transaction: their sets fit the thread's memory.
const MOST: u64 = 16;
/// Binary logarithm of the longest pause.
const LONGEST_PAUSE: u32 = 6;

const TOP: u32 = FIRST_BLOCK;
const DESCEND: u32 = TOP + 1;
const READ: u32 = TOP + 2;
const MODIFY: u32 = TOP + 3;
const SORT: u32 = TOP + 4;
const TAKE: u32 = TOP + 5;
const NOW: u32 = TOP + 6;
const VALIDATE: u32 = TOP + 7;
const INSTALL: u32 = TOP + 8;
const RELEASE: u32 = TOP + 9;
const PAUSE: u32 = TOP + 10;

/// Records of a transaction.
const RECORDS: Key = Key { name: "records", what: "records of a transaction", default: "4" };
/// Share of modified records; Silo's section 5.2 has four reads to one read-modify-write.
const WRITES: Key = Key { name: "writes", what: "percent of the records that are modified", default: "20" };

pub(crate) const ENTRY: Entry = Entry {
    name: "silo",
    source: "Silo (SOSP 2013)",
    what: "reads and modifies records of 100 bytes of a B+-tree in optimistic transactions",
    keys: keys!["40000", RECORDS, WRITES],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, NODES - DATA + NODE_BYTES + MOST * (RECORD + NODE_BYTES))?;
    let records = params.integer(RECORDS.name, 1..=MOST)?;
    let silo = Silo::new(&common, records, params.integer(WRITES.name, 0..=100)?);
    Ok(Box::new(Served::new(silo, common.work)))
}

/// A record's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Record {
    id: u64,
    value: u64,
}

engine::snapshot!(Record { id, value });

/// The database.
pub(crate) struct Silo {
    common: Common,
    records: u64,
    writes: u64,
    keys: Objects,
    tree: BTree,
    /// Map from node to slot; `None` if they are in the order of loading.
    scatter: Option<Permutation>,
    /// Records that were written; transaction id and value are initially zero.
    changed: FxHashMap<u64, Record>,
}

/// A record that a transaction accesses, and the values read.
struct Access {
    key: u64,
    write: bool,
    read: Record,
}

/// A transaction, and its progress.
pub(crate) struct Job {
    accesses: Vec<Access>,
    /// Value added to the values that it modifies.
    addend: u64,
    /// Current access, levels of the tree still above the record, and the pointer to the current node.
    at: usize,
    levels: u32,
    link: Value,
    aborts: u32,
}

impl Silo {
    pub(crate) fn new(common: &Common, records: u64, writes: u64) -> Silo {
        let room = common.data - (NODES - DATA);
        let fits = |n: u64| n * RECORD + BTree::new(n).nodes() * NODE_BYTES <= room;
        let n = loaded::largest(room / RECORD, fits);
        let tree = BTree::new(n);
        let scattered = common.placement == Placement::Scattered;
        Silo {
            common: common.clone(),
            records,
            writes,
            keys: Objects::new(n, common),
            scatter: scattered.then(|| Permutation::new(tree.nodes(), common.salt(3))),
            tree,
            changed: FxHashMap::default(),
        }
    }

    fn record(&self, key: u64) -> Record {
        self.changed.get(&key).copied().unwrap_or_default()
    }

    fn record_address(&self, key: u64) -> u64 {
        NODES + self.tree.nodes() * NODE_BYTES + self.keys.slot(key) * RECORD
    }

    fn descend(&self, job: &mut Job, e: &mut Emit<'_>) {
        if job.levels == self.tree.levels() {
            e.block(TOP);
            job.link = e.load(ROOT, 8, []);
        }
        job.levels -= 1;
        let (node, found) = self.tree.node(job.levels, job.accesses[job.at].key);
        let slot = self.scatter.as_ref().map_or(node, |scatter| scatter.at(node));
        e.block(DESCEND);
        job.link = loaded::visit_node(NODES + slot * NODE_BYTES, job.levels == 0, found, job.link, e);
        e.branch(job.levels == 0, [job.link]);
    }

    /// Copies the record, checks that its transaction id is unchanged, and adds it to the sets.
    fn read(&self, job: &mut Job, e: &mut Emit<'_>) {
        let access = &mut job.accesses[job.at];
        access.read = self.record(access.key);
        let address = self.record_address(access.key);
        e.block(READ);
        let head = e.load(address, LINE, [job.link]);
        let rest = e.load(address + LINE, REST, [job.link]);
        let again = e.load(address, 8, [job.link]);
        e.branch(false, [head, again]);
        e.store(e.frame() + job.at as u64 * READ_ENTRY, READ_ENTRY, [job.link, head]);
        e.branch(access.write, []);
        if access.write {
            e.block(MODIFY);
            let value = e.compute(4, [head, rest]);
            let local = e.frame() + WRITE_SET + job.at as u64 * RECORD;
            e.store(local, LINE, [value]);
            e.store(local + LINE, REST, [rest]);
        }
        job.at += 1;
        job.levels = self.tree.levels();
    }

    /// Loads the address of a record from its entry in the read set.
    fn entry(at: usize, e: &mut Emit<'_>) -> Value {
        e.load(e.frame() + at as u64 * READ_ENTRY, READ_ENTRY, [])
    }

    /// Commits the transaction; returns false if it must start over.
    fn commit(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        let mut writes: Vec<usize> = (0..job.accesses.len()).filter(|&n| job.accesses[n].write).collect();
        writes.sort_by_key(|&n| job.accesses[n].key);
        // Insertion sort of a handful: load, compare, move for each pair in the worst case, half of that on average.
        e.block(SORT);
        e.compute((1 + writes.len() * writes.len() * 3 / 4).min(60) as u16, []);
        for &n in &writes {
            e.block(TAKE);
            let entry = Silo::entry(n, e);
            let taken = e.atomic(self.record_address(job.accesses[n].key), [entry]);
            e.branch(false, [taken]);
        }
        e.block(NOW);
        e.load(EPOCH, 8, []);
        for (n, access) in job.accesses.iter().enumerate() {
            e.block(VALIDATE);
            let entry = Silo::entry(n, e);
            let id = e.load(self.record_address(access.key), 8, [entry]);
            let changed = self.record(access.key).id != access.read.id;
            e.branch(changed, [id, entry]);
            if changed {
                self.abort(job, &writes, e);
                return false;
            }
        }
        self.install(job, &writes, e);
        true
    }

    fn abort(&self, job: &mut Job, writes: &[usize], e: &mut Emit<'_>) {
        for &n in writes {
            e.block(RELEASE);
            let entry = Silo::entry(n, e);
            e.store(self.record_address(job.accesses[n].key), 8, [entry]);
        }
        for turn in (0..1u32 << job.aborts.min(LONGEST_PAUSE)).rev() {
            e.block(PAUSE);
            e.compute(30, []);
            e.branch(turn > 0, []);
        }
        job.aborts += 1;
        job.at = 0;
    }

    /// Writes the new values under a transaction id above all that were read.
    fn install(&mut self, job: &Job, writes: &[usize], e: &mut Emit<'_>) {
        let id = 1 + job.accesses.iter().map(|access| access.read.id).max().unwrap_or(0);
        for &n in writes {
            let Access { key, read, .. } = job.accesses[n];
            self.changed.insert(key, Record { id, value: read.value.wrapping_add(job.addend) });
            let (address, local) = (self.record_address(key), e.frame() + WRITE_SET + n as u64 * RECORD);
            e.block(INSTALL);
            let entry = Silo::entry(n, e);
            for (line, width) in [(0, LINE), (LINE, REST)] {
                let value = e.load(local + line, width, []);
                e.store(address + line, width, [entry, value]);
            }
            e.store(address, 8, [entry]);
        }
    }
}

impl Program for Silo {
    type Job = Job;
    const BLOCKS: u32 = PAUSE + 1;

    fn end(&self) -> u64 {
        NODES + self.tree.nodes() * NODE_BYTES + self.keys.len() * RECORD
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let mut keys = Vec::with_capacity(self.records as usize);
        for _ in 0..self.records {
            keys.push(self.keys.draw_other(&keys, &mut stream));
        }
        let access = |key| Access { key, write: stream.below(100) < self.writes, read: Record::default() };
        let accesses = keys.into_iter().map(access).collect();
        let levels = self.tree.levels();
        Job { accesses, addend: 1 + stream.below(1000), at: 0, levels, link: Value::READY, aborts: 0 }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        if job.at == job.accesses.len() {
            return !self.commit(job, e);
        }
        match job.levels {
            0 => self.read(job, e),
            _ => self.descend(job, e),
        }
        true
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.changed, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let keys = self.keys.len();
        self.changed =
            loaded::load_changes(input, |key, record: &Record| key < keys && record.id < COUNT_MAX)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::drive::{chased, drive, small};
    use crate::service::jobs::BLOCK;
    use proto::cpu::OpKind;
    use std::collections::BTreeMap;

    /// Transactions replayed one after another in the order of their commits read the same and leave the same.
    fn against_a_map(keys: u64, slots: u64, jobs: u64) -> u32 {
        let mut silo =
            Silo::new(&small(NODES - DATA + keys * (RECORD + NODE_BYTES / 10) + 2 * NODE_BYTES), 4, 50);
        assert!(silo.keys.len() >= 8);
        let mut map: BTreeMap<u64, u64> = BTreeMap::new();
        let mut aborts = 0;
        drive(&mut silo, 0..jobs, slots, |silo, _, job, _| {
            for access in &job.accesses {
                let value = map.entry(access.key).or_default();
                assert_eq!(access.read.value, *value);
                if access.write {
                    *value += job.addend;
                    assert!(silo.record(access.key).id > access.read.id);
                }
            }
            aborts += job.aborts;
        });
        assert!(
            (0..silo.keys.len()).all(|key| silo.record(key).value == map.get(&key).copied().unwrap_or(0))
        );
        aborts
    }

    #[test]
    fn what_commits_is_serial() {
        assert_eq!(against_a_map(100, 1, 2000), 0);
        assert!(against_a_map(20, 2, 3000) > 100);
        assert!(against_a_map(500, 12, 3000) > 100);
    }

    #[test]
    fn locks_are_taken_in_key_order_and_the_way_to_a_record_is_chased() {
        let mut silo = Silo::new(&small(1 << 40), 4, 50);
        let levels = silo.tree.levels() as usize;
        drive(&mut silo, 0..300, 4, |silo, _, job, history| {
            let mut writes: Vec<_> =
                job.accesses.iter().filter(|access| access.write).map(|access| access.key).collect();
            writes.sort_unstable();
            let writes: Vec<u64> = writes.into_iter().map(|key| silo.record_address(key)).collect();
            let taken: Vec<_> =
                history.iter().filter(|op| op.kind == OpKind::Atomic).map(|op| op.address).collect();
            assert!(taken.ends_with(&writes));
            if job.aborts == 0 {
                // The nodes on the way of the first record, up to the load of its first line (four instructions).
                let first = history.iter().position(|op| op.pc == READ * BLOCK + 12).unwrap();
                let way =
                    chased(&history[..first], NODES..NODES + silo.tree.nodes() * NODE_BYTES, NODE_BYTES);
                assert_eq!(way.len(), levels);
            }
        });
        assert!(silo.changed.len() <= 1200 && silo.changed.len() > 300);
    }
}
