//! Reads beside the baseline's under both placements of data, and what a map costs that is larger than the drive's memory.

use super::super::row::{Row, Rule};
use super::super::study::{Entry, Point};
use super::{Suite, iops};

/// Random reads, by size.
const READS: [(&str, &str); 3] = [("512B", "512"), ("4KiB", "4k"), ("16KiB", "16k")];

/// A map of sectors of which 4 GiB are in memory, an eighth of it: an entry names one of 8.6 thousand million sectors.
const DEMAND: &str = "flash.ftl.mapping={ demand = { capacity = \"4GiB\", granularity = \"entry\", cached_entry = \"5B\", \
                      stored_entry = \"5B\", read = \"512B\" } }";
/// What runs on it: random commands over the whole drive, and a program whose data are few.
const MAPPED: [(&str, &str); 4] = [
    ("read_512B", "fio:rw=randread,bs=512,iodepth=64,number_ios=20000"),
    ("read_16KiB", "fio:rw=randread,bs=16k,iodepth=64,number_ios=20000"),
    ("write_512B", "fio:rw=randwrite,bs=512,iodepth=64,number_ios=20000"),
    ("backprop", "back:n=61440"),
];

/// The rows of both.
pub(super) fn entries(suite: &Suite) -> Vec<Entry> {
    let placed = suite.placed("mqms.reads", "mqms.strewn.reads");
    let reads = placed.iter().flat_map(|(rows, suite)| READS.map(|read| of_reads(suite, rows, read)));
    reads.chain(MAPPED.map(|(name, job)| of_map(suite, name, job))).collect()
}

/// Commands a second over the baseline's.
fn of_reads(suite: &Suite, rows: &str, (name, bytes): (&str, &str)) -> Entry {
    let job = format!("fio:rw=randread,bs={bytes},iodepth=64,number_ios=20000");
    let (under, over) = (suite.point("mqsim-macsim", &job), suite.point("mqms", &job));
    let what = format!("random reads of {name}, 64 outstanding");
    compared(format!("{rows}.{name}"), what, ["baseline", "MQMS"], [under, over])
}

/// Commands a second with the map in flash over those with all of it in memory.
fn of_map(suite: &Suite, name: &str, job: &str) -> Entry {
    let whole = suite.point("mqms", job);
    let demand = whole.clone().set(DEMAND);
    let what = "4 GiB of the map of sectors in memory, empty at first".to_owned();
    compared(format!("mqms.map.{name}"), what, ["all in memory", "on demand"], [whole, demand])
}

fn compared(id: String, what: String, names: [&'static str; 2], points: [Point; 2]) -> Entry {
    Entry::new(id, points.to_vec(), move |found| {
        let [under, over] = [iops(found.get(&points[0])?)?, iops(found.get(&points[1])?)?];
        let note = format!("{}: {under:.0} IOPS, {}: {over:.0}", names[0], names[1]);
        Ok(Row::new("", "x", 1.0, over / under, Rule::AtLeast).swept().place(what.clone()).note(note))
    })
}
