//! What is run: services beside unpackers, on which systems, for how long and under which load.

use super::super::reading::study;
use super::super::study::{Found, Point};
use super::super::{Effort, Reading};
use super::metrics::rate;
use config::Diagnostic;
use engine::Time;
use machine::warmup::Warmup;
use serde::Deserialize;

/// The latency-critical services (section 4.1). An upload is answered when it is durable: the paper has its requests wait for the drive.
const SERVICES: [&str; 6] = ["apache-f", "apache-u", "db-s", "db-u", "img-f", "img-u"];
/// The one whose response times the paper shows over time (Figure 6a).
pub(super) const OVER_TIME: &str = "apache-u";
/// The seeds of confidence intervals.
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// How requests come.
#[derive(Clone, Copy)]
pub(super) enum Load {
    /// At random, this share of what the service does alone on so many cores.
    Open(f64, u32),
    /// From so many clients, each of which waits for its answer.
    Closed(u32),
}

/// What a reading says that no key does.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    /// Bytes a second that one unpacker writes at most; left out, what is decided.
    writer: Option<String>,
}

/// What a study runs.
#[derive(Clone)]
pub(super) struct Suite {
    pub(super) services: Vec<&'static str>,
    pub(super) seeds: Vec<u64>,
    pub(super) load: Load,
    pub(super) processes: u32,
    /// Parameters of the unpackers, after the number of processes.
    pub(super) ungzip: String,
    /// Whether uploads are answered when they are durable.
    pub(super) durable: bool,
    /// Overrides of a system.
    pub(super) set: fn(&str) -> Vec<String>,
    /// Seconds of a run, and those of them that are not measured.
    pub(super) seconds: (u64, u64),
}

impl Suite {
    pub(super) fn of(effort: Effort, reading: &Reading) -> Suite {
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

    /// The same with one of the services only.
    pub(super) fn only(&self, service: &'static str) -> Suite {
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

    /// What a service does alone, with clients that wait for their answers, on Vanilla; nothing if the load does not ask for it.
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
    pub(super) fn capacities(&self) -> Vec<Point> {
        self.runs().filter_map(|(service, seed)| self.capacity(service, seed)).collect()
    }

    /// A system with each service beside the unpackers, with each seed.
    ///
    /// # Errors
    /// A capacity that was not found.
    pub(super) fn on(&self, found: &Found, system: &str) -> Result<Vec<Point>, Diagnostic> {
        self.runs().map(|run| self.under_load(found, system, run, true)).collect()
    }

    /// The same without the unpackers.
    ///
    /// # Errors
    /// As [`Suite::on`].
    pub(super) fn alone(&self, found: &Found, system: &str) -> Result<Vec<Point>, Diagnostic> {
        self.runs().map(|run| self.under_load(found, system, run, false)).collect()
    }
}
