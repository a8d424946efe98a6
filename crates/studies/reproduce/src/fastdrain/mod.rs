//! FastDrain (Zhang et al., 2020). What was decided before the first ratio was seen, and what was changed after, stands
//! in `papers/fastdrain/README.md`.

mod rows;

use super::expected::Expected;
use super::reading::study;
use super::study::{Entry, Found, Point};
use super::{Effort, Reading};
use config::Diagnostic;
use engine::Time;
use machine::Warmup;
use machine::result::{Document, OpResult, PagesByType, ProgramResult};
use serde::Deserialize;

/// Values of the paper.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/fastdrain/expected.toml"))
}

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/fastdrain/readings.toml");

/// The rows: the paper's, and with everything the sweeps.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite).map(Entry::seen));
    own.chain(rows::variant_entries(expected.figures(), effort, reading)).collect()
}

// Metrics of a run of a service on a host.

/// The service of a run, which is the first of its programs, and what it answered most.
///
/// # Errors
/// A document without a program that answered a request.
fn service(document: &Document) -> Result<(&ProgramResult, &OpResult), Diagnostic> {
    let program = document.host.first().and_then(|host| host.programs.first());
    let served = program.and_then(|program| {
        let most = program.requests.values().max_by_key(|kind| kind.requests)?;
        (most.requests > 0).then_some((program, most))
    });
    served.ok_or_else(|| Diagnostic::new(format!("the service answered no request on {}", document.system)))
}

fn some(value: Option<f64>, what: &str, document: &Document) -> Result<f64, Diagnostic> {
    value.ok_or_else(|| Diagnostic::new(format!("{what} in the run on {}", document.system)))
}

/// Requests per second.
fn rate(document: &Document) -> Result<f64, Diagnostic> {
    Ok(service(document)?.1.iops)
}

/// 99th percentile of the response time, ms.
fn p99(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.1.latency_ns.p99, "too few requests for a percentile", document)? / 1e6)
}

/// Mean of the response time, ms.
fn mean(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.1.latency_ns.mean, "no request was answered", document)? / 1e6)
}

/// 99th percentile over mean.
fn p99_over_mean(document: &Document) -> Result<f64, Diagnostic> {
    Ok(p99(document)? / mean(document)?)
}

/// Largest mean of a bin of 100 ms, ms.
fn worst_bin(document: &Document) -> Result<f64, Diagnostic> {
    Ok(some(service(document)?.0.worst_window_ns, "no request was answered", document)? / 1e6)
}

fn pages(document: &Document) -> Result<&PagesByType, Diagnostic> {
    let found = document.flash.first().and_then(|flash| flash.pages_by_type.as_ref());
    found.ok_or_else(|| Diagnostic::new(format!("{} programs its pages in order", document.system)))
}

/// Programmed pages of those programmed and skipped, per cent.
fn used(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * some(pages(document)?.used_share, "no page was programmed", document)?)
}

/// Skipped pages of those programmed and skipped, per cent.
fn wasted(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 - used(document)?)
}

/// Map units that were programmed for the host.
fn programmed(document: &Document) -> Result<f64, Diagnostic> {
    let flash = document.flash.first();
    some(flash.map(|flash| flash.host_programs as f64), "no flash", document)
}

/// Share of evictions from the buffer that happened in the foreground, per cent.
fn foreground(document: &Document) -> Result<f64, Diagnostic> {
    let evictions = document.flash.first().and_then(|flash| flash.evictions.as_ref());
    Ok(evictions.map_or(0.0, |e| {
        100.0 * e.foreground_units as f64 / (e.foreground_units + e.background_units).max(1) as f64
    }))
}

// Runs of the study: services beside unpackers, with systems, durations and loads.

/// The latency-critical services (section 4.1). An upload is answered when it is durable: the paper has its requests
/// wait for the drive.
const SERVICES: [&str; 6] = ["apache-f", "apache-u", "db-s", "db-u", "img-f", "img-u"];

/// The one whose response times the paper shows over time (Figure 6a).
const OVER_TIME: &str = "apache-u";

/// The seeds of confidence intervals.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// Arrival of requests.
#[derive(Clone, Copy)]
enum Load {
    /// At random, this share of what the service does alone on this many cores.
    Open(f64, u32),
    /// From this many clients, each of which waits for its answer.
    Closed(u32),
}

/// Choices of a reading that are not spec keys.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    /// Bytes a second that one unpacker writes at most; left out, what is decided.
    writer: Option<String>,
}

/// Suite of a study.
#[derive(Clone)]
struct Suite {
    services: Vec<&'static str>,
    seeds: Vec<u64>,
    load: Load,
    processes: u32,
    /// Parameters of the unpackers, after the number of processes.
    ungzip: String,
    /// True if uploads are answered when they are durable.
    durable: bool,
    /// Overrides of a system.
    set: fn(&str) -> Vec<String>,
    /// Seconds of a run, and those of them that are not measured.
    seconds: (u64, u64),
}

impl Suite {
    fn of(effort: Effort, reading: &Reading) -> Suite {
        let Study { writer } = study(&reading.choices);
        let (services, seeds, seconds) = match effort {
            Effort::Whole => (&SERVICES[..], &SEEDS[..], (30, 5)),
            Effort::Full => (&SERVICES[..], &SEEDS[..1], (30, 5)),
            Effort::Quick => (&SERVICES[1..2], &SEEDS[..1], (4, 1)),
        };
        Suite {
            services: services.to_vec(),
            seeds: seeds.to_vec(),
            load: Load::Open(0.5, 1),
            processes: 7,
            ungzip: writer.map_or(String::new(), |rate| format!(",rate={rate}")),
            durable: true,
            set: |_| Vec::new(),
            seconds,
        }
    }

    /// Same suite with a single service.
    fn only(&self, service: &'static str) -> Suite {
        Suite { services: vec![service], ..self.clone() }
    }

    fn point(&self, system: &str, seed: u64, workloads: Vec<String>) -> Point {
        let (until, from) = self.seconds;
        let point = Point {
            system: system.into(),
            workloads,
            seed,
            warmup: Some(Warmup::Until(Time::from_s(from))),
            ..Point::default()
        };
        let set = (self.set)(system);
        set.iter().fold(point.set(&format!("sim.until={until}s")), |point, set| point.set(set))
    }

    fn service(&self, service: &str, parameters: &str) -> String {
        let durable = self.durable && matches!(service, "apache-u" | "img-u");
        format!("{service}:{parameters}{}", if durable { ",fsync=yes" } else { "" })
    }

    /// Capacity of a service alone, with clients that wait for their answers, on Vanilla; `None` if the load does not
    /// need it.
    fn capacity(&self, service: &str, seed: u64) -> Option<Point> {
        let Load::Open(_, cores) = self.load else { return None };
        let alone = self.point("fastdrain-vanilla", seed, vec![self.service(service, "arrivals=closed")]);
        Some(alone.set(&format!("host.linux.cores.count={cores}")))
    }

    /// A service under its load, with or without the unpackers.
    fn under_load(
        &self,
        found: &Found,
        system: &str,
        (service, seed): (&str, u64),
        beside: bool,
    ) -> Result<Point, Diagnostic> {
        let arrivals = match (self.load, self.capacity(service, seed)) {
            (Load::Closed(clients), _) => format!("arrivals=closed,clients={clients}"),
            (Load::Open(share, _), Some(alone)) => format!("rate={:.3}", share * rate(found.get(&alone)?)?),
            (Load::Open(..), None) => unreachable!("an open load has a capacity"),
        };
        let ungzip = format!("ungzip:processes={}{}", self.processes, self.ungzip);
        let mut workloads = vec![self.service(service, &arrivals)];
        workloads.extend(beside.then_some(ungzip));
        Ok(self.point(system, seed, workloads))
    }

    fn runs(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.services.iter().flat_map(|service| self.seeds.iter().map(|seed| (*service, *seed)))
    }

    /// The runs that all others follow from.
    fn capacities(&self) -> Vec<Point> {
        self.runs().filter_map(|(service, seed)| self.capacity(service, seed)).collect()
    }

    /// A system with each service beside the unpackers, with each seed.
    ///
    /// # Errors
    /// A capacity that was not found.
    fn on(&self, found: &Found, system: &str) -> Result<Vec<Point>, Diagnostic> {
        self.runs().map(|run| self.under_load(found, system, run, true)).collect()
    }

    /// Runs of a system with each service, without the unpackers.
    ///
    /// # Errors
    /// The errors of [`Suite::on`].
    fn alone(&self, found: &Found, system: &str) -> Result<Vec<Point>, Diagnostic> {
        self.runs().map(|run| self.under_load(found, system, run, false)).collect()
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
        assert_eq!((rows.len(), &rows), (12, &figures));
    }
}
