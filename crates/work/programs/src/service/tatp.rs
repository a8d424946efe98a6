//! TATP: the transaction UPDATE_SUBSCRIBER_DATA.
//!
//! Source: "Telecommunication Application Transaction Processing (TATP) Benchmark Description", version 1.0, IBM, 2009: tables
//! (section 2), transaction `UPDATE subscriber SET bit_1 WHERE s_id; UPDATE special_facility SET data_a WHERE s_id AND
//! sf_type` (section 3), the second of which finds a row for 62.5 % of the requests. AstriFlash (V-A) runs this one only and
//! draws subscribers from a Zipf distribution instead of the specification's. Left out: the tables Access_Info and
//! Call_Forwarding, which it does not touch, and the index by `sub_nbr`.
//!
//! Both tables have a hash index over their primary keys, chained through the rows; nothing is inserted, so the
//! chains do not change. A job finds both rows, visiting one per piece, then updates them in one piece under the
//! rows' locks.

use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::Params;
use crate::service::common::{Common, Objects, keys};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use crate::service::loaded;
use crate::service::loaded::{CHAIN_GROUP, Chains};

/// A row of Subscriber: s_id 4, sub_nbr 15 digits, bit_1 to 10 in 2, hex_1 to 10 in 5, byte2_1 to 10, msc_location 4,
/// vlr_location 4: 44 bytes; next of the chain 8, lock 8. A line.
const SUBSCRIBER: u64 = LINE;
/// A row of Special_Facility: s_id 4, sf_type, is_active, error_cntrl, data_a 1 each, data_b 5 characters: 13 bytes; next 8,
/// lock 8. Aligned to 32.
const FACILITY: u64 = 32;
/// Number of sf_type values. A subscriber has one to four of them; space for all four is reserved.
const TYPES: u64 = 4;
/// Bytes of a bucket: pointer to the first row.
const BUCKET: u64 = 8;
/// Bytes for a subscriber in all tables and indices.
const EACH: u64 = SUBSCRIBER + BUCKET + TYPES * (FACILITY + BUCKET);
/// Offsets in a row of the lock, after key and next, and of bit_1 in a subscriber, data_a in a facility.
const LOCK: u64 = 16;
const BIT: u64 = 44;
const DATA_A: u64 = 26;
/// Instructions from a key to its bucket, as in `hash`; composing the key of a facility takes two more.
const HASH: u16 = 7;

const BUCKETS: u32 = FIRST_BLOCK;
const VISIT: u32 = BUCKETS + 1;
const COMMIT: u32 = BUCKETS + 2;

pub(crate) const ENTRY: Entry = Entry {
    name: "tatp",
    source: "TATP 1.0 (IBM, 2009)",
    what: "updates a bit of a subscriber and a byte of one of its special facilities",
    keys: keys!["20000"],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, CHAIN_GROUP * EACH)?;
    Ok(Box::new(Served::new(Tatp::new(&common), common.work)))
}

/// Returns the sf_types of a subscriber, as bits: one to four, equally often, each set of that size equally often.
fn facilities(subscriber: u64, salt: u64) -> u64 {
    const SETS: [&[u64]; 4] = [&[1, 2, 4, 8], &[3, 5, 6, 9, 10, 12], &[7, 11, 13, 14], &[15]];
    let drawn = engine::mix(subscriber ^ salt);
    let sets = SETS[(drawn % 4) as usize];
    sets[(drawn >> 32) as usize % sets.len()]
}

/// The two tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Table {
    Subscriber,
    Facility,
}

/// The database.
pub(crate) struct Tatp {
    common: Common,
    subscribers: Objects,
    by_id: Chains,
    by_type: Chains,
    salt: u64,
    /// Values of bit_1 where it was set; initially a bit of the hash of the subscriber's number.
    bits: FxHashMap<u64, bool>,
    /// Values of data_a where it was set; initially a byte of the hash of the facility's number.
    data_a: FxHashMap<u64, u8>,
}

/// A job: its parameters, and its progress.
pub(crate) struct Job {
    subscriber: u64,
    facility: u64,
    bit: bool,
    byte: u8,
    table: Table,
    /// Next row to visit and the pointer to it, once the bucket is read.
    at: Option<(u64, Value)>,
    /// Pointers to the rows found.
    rows: [Option<Value>; 2],
}

impl Tatp {
    pub(crate) fn new(common: &Common) -> Tatp {
        let n = common.data / (CHAIN_GROUP * EACH) * CHAIN_GROUP;
        Tatp {
            common: common.clone(),
            subscribers: Objects::new(n, common),
            by_id: Chains::new(n, common.salt(3)),
            by_type: Chains::new(n * TYPES, common.salt(4)),
            salt: common.salt(5),
            bits: FxHashMap::default(),
            data_a: FxHashMap::default(),
        }
    }

    fn has(&self, facility: u64) -> bool {
        facilities(facility / TYPES, self.salt) >> (facility % TYPES) & 1 == 1
    }

    /// Subscribers, facilities, then the indices of both.
    fn row(&self, table: Table, id: u64) -> u64 {
        let n = self.subscribers.len();
        match table {
            Table::Subscriber => DATA + self.subscribers.slot(id) * SUBSCRIBER,
            Table::Facility => {
                let of = self.subscribers.slot(id / TYPES) * TYPES + id % TYPES;
                DATA + n * SUBSCRIBER + of * FACILITY
            }
        }
    }

    fn bucket(&self, table: Table, id: u64) -> (u64, u64) {
        let n = self.subscribers.len();
        let index = DATA + n * (SUBSCRIBER + TYPES * FACILITY);
        match table {
            Table::Subscriber => {
                let bucket = self.by_id.bucket(id);
                (bucket, index + bucket * BUCKET)
            }
            Table::Facility => {
                let bucket = self.by_type.bucket(id);
                (bucket, index + (n + bucket) * BUCKET)
            }
        }
    }

    fn first(&self, table: Table, bucket: u64) -> Option<u64> {
        match table {
            Table::Subscriber => self.by_id.first(bucket, |_| true),
            Table::Facility => self.by_type.first(bucket, |id| self.has(id)),
        }
    }

    fn next(&self, table: Table, id: u64) -> Option<u64> {
        match table {
            Table::Subscriber => self.by_id.next(id, |_| true),
            Table::Facility => self.by_type.next(id, |id| self.has(id)),
        }
    }

    /// Reads the bucket of the row sought.
    fn enter(&self, job: &mut Job, id: u64, e: &mut Emit<'_>) {
        e.block(BUCKETS);
        let (bucket, address) = self.bucket(job.table, id);
        let index = e.compute(HASH + if job.table == Table::Facility { 2 } else { 0 }, [Value::READY]);
        let head = e.load(address, BUCKET, [index]);
        job.at = self.first(job.table, bucket).map(|first| (first, head));
        e.branch(job.at.is_none(), [head]);
    }

    /// Visits a row: reads its key and its next pointer.
    fn visit(&self, job: &mut Job, row: u64, link: Value, id: u64, e: &mut Emit<'_>) {
        e.block(VISIT);
        let loaded = e.load(self.row(job.table, row), 16, [link]);
        let hit = row == id;
        e.branch(hit, [loaded]);
        if hit {
            job.rows[job.table as usize] = Some(link);
            job.at = None;
        } else {
            job.at = self.next(job.table, row).map(|next| (next, loaded));
            e.branch(job.at.is_none(), [loaded]);
        }
    }

    /// Updates the rows found: locks in the order of the tables, changes, unlocks.
    fn commit(&mut self, job: &Job, e: &mut Emit<'_>) {
        e.block(COMMIT);
        let [subscriber, facility] = job.rows;
        e.branch(facility.is_none(), []);
        let found = [
            (subscriber, self.row(Table::Subscriber, job.subscriber), BIT, 2),
            (facility, self.row(Table::Facility, job.facility), DATA_A, 1),
        ];
        let found = found.into_iter().filter_map(|(link, row, at, width)| Some((link?, row, at, width)));
        for (link, row, _, _) in found.clone() {
            let taken = e.atomic(row + LOCK, [link]);
            e.branch(false, [taken]);
        }
        for (link, row, at, width) in found.clone() {
            if width == 2 {
                let bits = e.load(row + at, width, [link]);
                let set = e.compute(1, [bits]);
                e.store(row + at, width, [link, set]);
            } else {
                e.store(row + at, width, [link]);
            }
        }
        for (link, row, _, _) in found {
            e.store(row + LOCK, 8, [link]);
        }
        if subscriber.is_some() {
            self.bits.insert(job.subscriber, job.bit);
        }
        if facility.is_some() {
            self.data_a.insert(job.facility, job.byte);
        }
    }
}

impl Program for Tatp {
    type Job = Job;
    const BLOCKS: u32 = COMMIT + 1;

    fn end(&self) -> u64 {
        DATA + self.subscribers.len() * EACH
    }

    fn begin(&self, job: u64) -> Job {
        let mut stream = self.common.stream(job);
        let subscriber = self.subscribers.draw(&mut stream);
        Job {
            subscriber,
            facility: subscriber * TYPES + stream.below(TYPES),
            bit: stream.below(2) == 1,
            byte: stream.below(256) as u8,
            table: Table::Subscriber,
            at: None,
            rows: [None; 2],
        }
    }

    fn piece(&mut self, job: &mut Job, e: &mut Emit<'_>) -> bool {
        let id = if job.table == Table::Subscriber { job.subscriber } else { job.facility };
        match job.at {
            None => self.enter(job, id, e),
            Some((row, link)) => self.visit(job, row, link, id, e),
        }
        if job.at.is_some() {
            return true;
        }
        if job.table == Table::Subscriber {
            job.table = Table::Facility;
            return true;
        }
        self.commit(job, e);
        false
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.bits, out);
        loaded::save_changes(&self.data_a, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let subscribers = self.subscribers.len();
        self.bits = loaded::load_changes(input, |subscriber, _| subscriber < subscribers)?;
        self.data_a =
            loaded::load_changes(input, |facility, _| facility < subscribers * TYPES && self.has(facility))?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::drive::{chased, drive, small};

    #[test]
    fn rows_hold_what_the_last_job_set() {
        for slots in [1, 20] {
            let mut tatp = Tatp::new(&small(500 * EACH));
            let n = tatp.subscribers.len();
            let mut bits = vec![None; n as usize];
            let mut bytes = vec![None; (n * TYPES) as usize];
            let mut found = 0u32;
            drive(&mut tatp, 0..4000, slots, |tatp, _, job, history| {
                bits[job.subscriber as usize] = Some(job.bit);
                let there = tatp.has(job.facility);
                if there {
                    bytes[job.facility as usize] = Some(job.byte);
                }
                assert_eq!(job.rows.map(|row| row.is_some()), [true, there]);
                found += u32::from(there);
                let facilities = DATA + n * SUBSCRIBER;
                let rows = chased(history, DATA..facilities, SUBSCRIBER);
                assert_eq!(rows.last(), Some(&(tatp.row(Table::Subscriber, job.subscriber) - DATA)));
                let rows = chased(history, facilities..facilities + n * TYPES * FACILITY, FACILITY);
                assert_eq!(rows.contains(&(tatp.row(Table::Facility, job.facility) - facilities)), there);
            });
            for subscriber in 0..n {
                assert_eq!(tatp.bits.get(&subscriber).copied(), bits[subscriber as usize]);
                for facility in subscriber * TYPES..(subscriber + 1) * TYPES {
                    assert_eq!(tatp.data_a.get(&facility).copied(), bytes[facility as usize]);
                }
            }
            assert!(found > 0);
        }
    }

    #[test]
    fn rows_are_found_as_often_as_the_specification_says() {
        // 62.5 %, within five standard deviations of 100 000 draws.
        let with = (0..100_000u64).filter(|n| facilities(n / 4, 9) >> (n % 4) & 1 == 1).count();
        assert!((with as f64 / 1e5 - 0.625).abs() < 5.0 * 0.0018, "{with}");
        let sizes = [1, 2, 3, 4].map(|k| (0..10_000).filter(|&s| facilities(s, 9).count_ones() == k).count());
        assert!(sizes.iter().all(|&n| n.abs_diff(2500) < 217), "{sizes:?}");
    }

    #[test]
    fn a_tebibyte_takes_two_entries_a_job() {
        let mut tatp = Tatp::new(&small(1 << 40));
        drive(&mut tatp, 0..1000, 3, |_, _, _, _| ());
        assert!(tatp.bits.len() + tatp.data_a.len() <= 2000 && !tatp.data_a.is_empty());
    }
}
