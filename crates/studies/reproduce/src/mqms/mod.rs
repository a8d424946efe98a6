//! MQMS (Gundawar, Chung and Kim, 2024). What was decided before the first ratio was seen stands in
//! `papers/mqms/README.md`.

mod alloc;
mod curve;
mod explain;
mod policy;
mod rows;
mod whole;

use super::expected::Expected;
use super::reading::study;
use super::study::{Entry, Point};
use super::{Effort, Reading};
use config::Diagnostic;
use machine::result::Document;
use serde::Deserialize;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/mqms/expected.toml"))
}

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/mqms/readings.toml");

/// The rows: those that take minutes, or all. What stands beside a row under the other placement stands beside the
/// first reading.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let figures = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    let own = whole::entries(&suite)
        .into_iter()
        .chain(explain::ablation_entries(&suite))
        .chain(explain::entries(&suite));
    let beside = rows::beside(expected.figures(), &suite).into_iter().chain(rows::place_entries(&suite));
    figures.chain(beside).chain(own).chain(curve::entries(effort)).collect()
}

// Metrics of a run.

/// Block commands a second.
fn iops(document: &Document) -> Result<f64, Diagnostic> {
    Ok(document.io.kinds.all.iops)
}

/// From a command's entry in its queue to its completion, ns.
fn response(document: &Document) -> Result<f64, Diagnostic> {
    let mean = document.io.kinds.all.device_latency_ns.mean;
    mean.ok_or_else(|| Diagnostic::new(format!("{} completed no block command", document.system)))
}

/// End of the last kernel, ns.
fn end(document: &Document) -> Result<f64, Diagnostic> {
    let apps = document.gpu.iter().flat_map(|gpu| &gpu.applications);
    let ended = apps.map(|app| app.ended_ns).collect::<Option<Vec<f64>>>();
    let last = ended.and_then(|all| all.into_iter().reduce(f64::max));
    last.ok_or_else(|| Diagnostic::new(format!("{} has a program that has not ended", document.system)))
}

/// Reads and writes of a run, and what the drive did for them.
fn account(document: &Document) -> String {
    let count = |of: &Option<machine::result::OpResult>| of.as_ref().map_or(0, |op| op.requests);
    let io = &document.io.kinds;
    let merged = document.flash.first().map_or(0, |flash| flash.reads.rmw);
    format!("{} reads, {} writes, {merged} units read to be merged", count(&io.read), count(&io.write))
}

/// Networks of section 3, by the paper's names: one pair of sentences, tokens of a sentence, one image.
const NETWORKS: [(&str, &str); 3] =
    [("bert", "bert:pairs=1"), ("gpt2", "gpt2:sentences=1,tokens=2"), ("resnet50", "resnet50:images=1")];

/// The programs of section 4, by the paper's names.
const PROGRAMS: [(&str, &str); 3] =
    [("backprop", "back:n=61440"), ("hotspot", "hotspot"), ("lavamd", "lavamd")];

/// Mechanisms of MQMS that the baseline lacks, each with the overrides that disable it.
const SWITCHES: [(&str, &str); 3] = [
    ("allocation", "flash.ftl.allocation=striped"),
    ("map", "flash.ftl.map_unit=16KiB"),
    ("entrance", "memory.initiator.entrance=host"),
];

/// Neighbouring sectors in different planes, where the map is of sectors: the reading until 29 November 2026.
const STREWN: &str = "flash.precondition=interleaved";

/// Choices of a reading that are not spec keys.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    /// Mapping granularity of the drive in section 4.
    #[serde(default)]
    policy_map: MapOf,
}

/// Mapping granularity of the drive.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MapOf {
    /// Pages: section 4 compares "page allocation schemes".
    Pages,
    /// Sectors, as MQMS has it elsewhere.
    #[default]
    Sectors,
}

/// Suite of a study.
#[derive(Clone)]
struct Suite {
    networks: Vec<(&'static str, &'static str)>,
    /// True if data that are read are strewn over planes on MQMS; else they lie in order. A map of pages knows no
    /// difference.
    is_strewn: bool,
    /// True if rows under the other placement accompany the paper's.
    is_first: bool,
    /// Mapping granularity of the drive in section 4.
    policy_map: MapOf,
}

impl Suite {
    fn of(effort: Effort, reading: &Reading) -> Suite {
        let networks = if effort == Effort::Quick { &NETWORKS[..1] } else { &NETWORKS[..] };
        let Study { policy_map } = study(&reading.choices);
        Suite { networks: networks.to_vec(), is_strewn: false, is_first: reading.is_first, policy_map }
    }

    /// Same suite with strewn data, if those rows are shown.
    fn strewn(&self) -> Option<Suite> {
        self.is_first.then(|| Suite { is_strewn: true, ..self.clone() })
    }

    /// Names of both placements in rows, each with its suite.
    fn placed(&self, own: &'static str, strewn: &'static str) -> Vec<(&'static str, Suite)> {
        let beside = self.strewn().map(|suite| (strewn, suite));
        std::iter::once((own, self.clone())).chain(beside).collect()
    }

    /// A workload on a system.
    fn point(&self, system: &str, workload: &str) -> Point {
        let set = if self.is_strewn && system == "mqms" { vec![STREWN.into()] } else { Vec::new() };
        Point { system: system.into(), set, workloads: vec![workload.into()], seed: 1, ..Point::default() }
    }

    /// A workload on MQMS of which only the switches named are on.
    fn with(&self, on: &[&str], workload: &str) -> Point {
        let off = SWITCHES.iter().filter(|(name, _)| !on.contains(name));
        off.fold(self.point("mqms", workload), |point, (_, set)| point.set(set))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        let rows: Vec<String> =
            entries(Effort::Full, &Reading::default()).into_iter().map(|entry| entry.id).collect();
        let missing: Vec<&String> = figures.iter().filter(|figure| !rows.contains(figure)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
