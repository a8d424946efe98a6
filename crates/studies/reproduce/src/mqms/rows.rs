//! Which runs each figure needs, and what it is worked out from; reads beside the baseline's under both placements
//! of data, and what a map costs that is larger than the drive's memory.

use super::super::expected::Figure;
use super::super::mean::{Metric, Values};
use super::super::row::{Row, Rule};
use super::super::study::{Entry, Found, Point};
use super::{MapOf, Suite, alloc, end, iops, policy, response};
use config::Diagnostic;

/// A figure's entry; none if the effort leaves it out.
pub(super) fn entry(figure: &Figure, suite: &Suite) -> Option<Entry> {
    let id = figure.id.strip_prefix("mqms.")?;
    if let Some(id) = id.strip_prefix("policy.") {
        return policy::entry(figure, suite, id, suite.policy_map).map(Entry::seen);
    }
    Some(match id {
        // The place of data that are read was decided when these had been seen (`papers/mqms/README.md`).
        "iops.bert_vs_baseline" => iops_order(figure, suite).seen(),
        "end_time.worst_case_orders" => orders(figure, suite, end, Values::max).seen(),
        "response.orders" => orders(figure, suite, response, Values::min).seen(),
        _ => return alloc::entry(figure, suite, id),
    })
}

/// The figures under the other placement of data, and section 4's under a map of sectors as well: sweeps, which stand
/// beside the rows.
pub(super) fn beside(figures: &[Figure], suite: &Suite) -> Vec<Entry> {
    let Some(strewn) = suite.strewn() else { return Vec::new() };
    let of = |figure: &Figure| {
        let id = figure.id.strip_prefix("mqms.").unwrap_or_default();
        let named = |under: &str, entry: Option<Entry>| {
            Some(entry?.changed(format!("mqms.{under}.{id}"), Row::swept))
        };
        if let Some(cell) = id.strip_prefix("policy.") {
            let with = |suite: &Suite| policy::entry(figure, suite, cell, MapOf::Sectors);
            return [named("sectors", with(suite)), named("strewn", with(&strewn))];
        }
        let reads = matches!(id, "iops.bert_vs_baseline" | "end_time.worst_case_orders" | "response.orders");
        [named("strewn", reads.then(|| entry(figure, &strewn)).flatten()), None]
    };
    figures.iter().flat_map(of).flatten().collect()
}

/// Runs of both systems on every network.
fn both(suite: &Suite) -> (Vec<Point>, Vec<Point>) {
    let on = |system: &str| suite.networks.iter().map(|(_, w)| suite.point(system, w)).collect::<Vec<_>>();
    (on("mqsim-macsim"), on("mqms"))
}

/// IOPS of MQMS over the baseline's, network by network.
fn iops_order(figure: &Figure, suite: &Suite) -> Entry {
    let (under, over) = both(suite);
    let names: Vec<&'static str> = suite.networks.iter().map(|(name, _)| *name).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, [over.clone(), under.clone()].concat(), move |found| {
        let ratio = |(name, (over, under)): (&&'static str, (&Point, &Point))| {
            Ok((*name, iops(found.get(over)?)? / iops(found.get(under)?)?))
        };
        let ratios =
            names.iter().zip(over.iter().zip(&under)).map(ratio).collect::<Result<Vec<_>, Diagnostic>>()?;
        let most = ratios.iter().map(|(_, ratio)| *ratio).fold(0.0, f64::max);
        // An order more on BERT is a factor of ten.
        let by_ten: Vec<(&str, f64)> = ratios
            .iter()
            .map(|(name, ratio)| (*name, if *name == "bert" { ratio / 10.0 } else { *ratio }))
            .collect();
        Ok(figure
            .order(&by_ten, format!("IOPS over the baseline's, BERT's divided by ten; largest {most:.3}")))
    })
}

/// Decades between the baseline and MQMS.
fn orders(figure: &Figure, suite: &Suite, metric: Metric, extreme: fn(&Values) -> f64) -> Entry {
    let (over, under) = both(suite);
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, [over.clone(), under.clone()].concat(), move |found: &Found| {
        let values = Values::ratios(found, &over, &under, metric)?;
        figure.row(libm::log10(extreme(&values)), format!("baseline over MQMS: {}", values.note()))
    })
}

/// Random reads, by size.
const READS: [(&str, &str); 3] = [("512B", "512"), ("4KiB", "4k"), ("16KiB", "16k")];

/// A map of sectors of which 4 GiB are in memory, an eighth of it: an entry names one of 8.6 thousand million sectors.
const DEMAND: &str = "flash.ftl.mapping={ demand = { capacity = \"4GiB\", granularity = \"entry\", cached_entry = \"5B\", \
                      stored_entry = \"5B\", read = \"512B\" } }";

/// Workloads on it: random commands over the whole drive, and a program with little data.
const MAPPED: [(&str, &str); 4] = [
    ("read_512B", "fio:rw=randread,bs=512,iodepth=64,number_ios=20000"),
    ("read_16KiB", "fio:rw=randread,bs=16k,iodepth=64,number_ios=20000"),
    ("write_512B", "fio:rw=randwrite,bs=512,iodepth=64,number_ios=20000"),
    ("backprop", "back:n=61440"),
];

/// The rows of both.
pub(super) fn place_entries(suite: &Suite) -> Vec<Entry> {
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
