//! AstriFlash-noPS against the length of a run: new jobs go first, and a halted one is resumed when another one halts, so that
//! the halted ones grow in number until as many are pending as may be. The paper states neither the bound nor the length.

use super::super::Effort;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::Entry;
use super::service_p99;
use super::suite::Suite;

/// The cell of Table II that is swept.
const FIGURE: &str = "astriflash.service_p99.tatp.astriflash-nops";
const PROGRAM: &str = "tatp";
/// Thousands of jobs, of all cores together, and whether so many are run only with everything.
const JOBS: [(u32, bool); 3] = [(8, false), (32, false), (128, true)];
/// Halted jobs of a core at most, and the same: V-A has 32 to 64 threads, of which one runs.
const PENDING: [(u32, bool); 3] = [(16, true), (32, false), (63, true)];

/// The 99th percentile of TATP's service over Flash-Sync's, for each length and bound.
pub(super) fn entries(figures: &[Figure], suite: &Suite, effort: Effort) -> Vec<Entry> {
    let Some(figure) = figures.iter().find(|figure| figure.id == FIGURE) else { return Vec::new() };
    let run = |long: bool| !long || effort == Effort::Whole;
    let lengths = || JOBS.iter().filter(move |(_, long)| run(*long));
    let bounds = PENDING.iter().filter(|(_, long)| run(*long));
    bounds.flat_map(|(pending, _)| lengths().map(|(jobs, _)| entry(figure, suite, *pending, *jobs))).collect()
}

fn entry(figure: &Figure, suite: &Suite, pending: u32, jobs: u32) -> Entry {
    let own =
        suite.of_length("astriflash-nops", PROGRAM, jobs).set(&format!("cpu.threads.pending={pending}"));
    let other = suite.saturated("flash-sync", PROGRAM).swap_remove(0);
    let id = format!("astriflash.nops.pending_{pending}.jobs_{jobs}k");
    let figure = figure.clone();
    Entry::new(id.clone(), vec![own.clone(), other.clone()], move |found| {
        let (own, other) = (service_p99(found.get(&own)?)?, service_p99(found.get(&other)?)?);
        figure.row(own / other, format!("{:.2} ms, Flash-Sync {:.2} ms", own / 1e6, other / 1e6))
    })
    .changed(id, Row::swept)
}
