//! What would give "four orders of magnitude": each assumption that could, tried by itself on block requests; and
//! what each of MQMS's mechanisms does, alone and together with the others.

use super::super::row::{Row, Rule};
use super::super::study::{Entry, Found, Point};
use super::{PROGRAMS, SWITCHES, Suite, account, end, iops, response};
use config::Diagnostic;
use machine::result::Document;

/// The paper's claim, log10.
const CLAIM: f64 = 4.0;

/// An assumption: its workloads on the baseline and on MQMS, and what it says.
struct Assumption {
    id: &'static str,
    under: &'static str,
    over: &'static str,
    metric: Compared,
    what: &'static str,
}

#[derive(Clone, Copy)]
enum Compared {
    Iops,
    Response,
}

/// Writes of a sector, at random.
const RANDOM: &str = "fio:rw=randwrite,bs=512,iodepth=64,number_ios=50000";
/// Writes of a sector that the baseline's map puts on one plane: a page in every 2 MiB, what 128 planes hold between
/// them.
const ONE_PLANE: &str = "fio:rw=write:2096640,bs=512,iodepth=64,number_ios=20000";
/// Job of [`ONE_PLANE`] with one request at a time.
const ONE_PLANE_ALONE: &str = "fio:rw=write:2096640,bs=512,iodepth=1,number_ios=20000";

const ASSUMPTIONS: [Assumption; 6] = [
    Assumption {
        id: "random_writes",
        under: RANDOM,
        over: RANDOM,
        metric: Compared::Iops,
        what: "nothing but random writes of 512 B",
    },
    Assumption {
        id: "one_plane",
        under: ONE_PLANE,
        over: ONE_PLANE,
        metric: Compared::Iops,
        what: "writes of 512 B that static allocation puts on one plane",
    },
    Assumption {
        id: "lost_writes",
        under: "fio:rw=randwrite,bs=512,iodepth=1,number_ios=20000",
        over: RANDOM,
        metric: Compared::Iops,
        what: "the baseline has lost 63 of its 64 outstanding writes, as MQSim does in steady collection, and goes on with one",
    },
    Assumption {
        id: "one_plane_lost_writes",
        under: ONE_PLANE_ALONE,
        over: ONE_PLANE,
        metric: Compared::Iops,
        what: "both of these",
    },
    Assumption {
        id: "open_loop_50k",
        under: "fio:rw=randwrite,bs=512,iodepth=65536,rate_iops=500000,number_ios=50000",
        over: "fio:rw=randwrite,bs=512,iodepth=65536,rate_iops=500000,number_ios=50000",
        metric: Compared::Response,
        what: "500,000 writes a second whether or not they are done, 50,000 of them: the baseline's queue grows",
    },
    Assumption {
        id: "open_loop_500k",
        under: "fio:rw=randwrite,bs=512,iodepth=1048576,rate_iops=500000,number_ios=500000",
        over: "fio:rw=randwrite,bs=512,iodepth=1048576,rate_iops=500000,number_ios=500000",
        metric: Compared::Response,
        what: "the same, 500,000 of them: the ratio is a matter of the run's length",
    },
];

/// A row for each assumption.
pub(super) fn entries(suite: &Suite) -> Vec<Entry> {
    ASSUMPTIONS.iter().map(|assumption| entry(suite, assumption)).collect()
}

fn entry(suite: &Suite, assumption: &'static Assumption) -> Entry {
    let id = format!("mqms.explain.{}", assumption.id);
    let (under, over) = (suite.point("mqsim-macsim", assumption.under), suite.point("mqms", assumption.over));
    let points: Vec<Point> = vec![under.clone(), over.clone()];
    Entry::new(id, points, move |found| {
        let (under, over) = (found.get(&under)?, found.get(&over)?);
        let ratio = match assumption.metric {
            Compared::Iops => iops(over)? / iops(under)?,
            Compared::Response => response(under)? / response(over)?,
        };
        let row = Row::new("", "log10", CLAIM, libm::log10(ratio), Rule::Points(0.5));
        let note = format!("{}: {ratio:.1} times; {}", assumption.what, both(under, over)?);
        Ok(row.swept().place("what would give 10^4").note(note))
    })
}

fn both(under: &Document, over: &Document) -> Result<String, Diagnostic> {
    let of = |document: &Document| -> Result<String, Diagnostic> {
        Ok(format!("{:.0} IOPS, {:.1} us", iops(document)?, response(document)? / 1e3))
    };
    Ok(format!("baseline {}, MQMS {}", of(under)?, of(over)?))
}

/// For each workload a row a switch, and one that holds the product of what they do against all of them together; then
/// the same with strewn data.
pub(super) fn ablation_entries(suite: &Suite) -> Vec<Entry> {
    let strewn = suite.strewn();
    let workloads = suite.networks.iter().chain(&PROGRAMS);
    let of = |(name, workload): &(&'static str, &'static str)| {
        let beside = strewn.as_ref().map(|strewn| of_workload(strewn, "mqms.strewn.switch", name, workload));
        of_workload(suite, "mqms.switch", name, workload).into_iter().chain(beside.into_iter().flatten())
    };
    workloads.flat_map(of).collect()
}

fn of_workload(suite: &Suite, rows: &str, name: &str, workload: &str) -> Vec<Entry> {
    // With every switch off MQMS is the baseline, bit for bit: a test holds it to that.
    let none = suite.point("mqsim-macsim", workload);
    let all = suite.point("mqms", workload);
    let alone: Vec<(&str, Point)> =
        SWITCHES.iter().map(|(switch, _)| (*switch, suite.with(&[*switch], workload))).collect();
    let mut entries: Vec<Entry> = alone
        .iter()
        .map(|(switch, point)| gain(format!("{rows}.{name}.{switch}"), none.clone(), point.clone()))
        .collect();
    entries.push(gain(format!("{rows}.{name}.all"), none.clone(), all.clone()));
    let alone: Vec<Point> = alone.into_iter().map(|(_, point)| point).collect();
    let points = alone.iter().cloned().chain([none.clone(), all.clone()]).collect();
    entries.push(Entry::new(format!("{rows}.{name}.product"), points, move |found| {
        explained(found, &alone, &none, &all)
    }));
    entries
}

/// Speed-up of the last kernel's end.
fn gain(id: String, none: Point, with: Point) -> Entry {
    Entry::new(id.clone(), vec![none.clone(), with.clone()], move |found| {
        let (before, after) = (found.get(&none)?, found.get(&with)?);
        let note = format!(
            "end time, all switches off over this; IOPS {:.3} times, response {:.3} times shorter; {}",
            iops(after)? / iops(before)?,
            response(before)? / response(after)?,
            account(after)
        );
        let ratio = end(before)? / end(after)?;
        Ok(Row::new(&id, "x", 1.0, ratio, Rule::AtLeast).swept().place("ablation").note(note))
    })
}

/// The product of what each switch does alone, against what all do together: within a factor of two.
fn explained(found: &Found, alone: &[Point], none: &Point, all: &Point) -> Result<Row, Diagnostic> {
    let before = end(found.get(none)?)?;
    let mut product = 1.0;
    for point in alone {
        product *= before / end(found.get(point)?)?;
    }
    let whole = before / end(found.get(all)?)?;
    let row = Row::new("", "log2", libm::log2(whole), libm::log2(product), Rule::Points(1.0));
    Ok(row
        .swept()
        .place("ablation")
        .note(format!("each alone, multiplied: {product:.3}; together {whole:.3}")))
}
