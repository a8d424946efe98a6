//! FlashAbacus (Zhang and Jung, 2018). How each figure is read from runs was decided before any was; it stands in
//! `papers/flashabacus/README.md`.

mod rows;
mod suite;

use super::expected::Expected;
use super::mean::Metric;
use super::study::Entry;
use super::{Effort, Reading};
use config::Diagnostic;
use config::units::Power;
use machine::result::{Document, PartEnergy};
use serde::Deserialize;
use std::fmt;
use suite::Suite;

/// Values of the paper.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/flashabacus/expected.toml"))
}

/// The readings of the paper, and the ranges that are swept beside them.
pub(super) const READINGS: &str = include_str!("../../../../../papers/flashabacus/readings.toml");

/// The rows: the paper's, and beside them those under other assumptions.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    own.chain(rows::variant_entries(expected.figures(), effort, reading)).collect()
}

// The choices of a reading that no key of a system has: how figures are read from runs, and what instances share.

/// Choices of the study, as `study` of `papers/flashabacus/readings.toml` has them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Choices {
    inputs: Inputs,
    utilisation: Utilisation,
    energy: Energy,
    latency: Latency,
}

impl Choices {
    /// The utilisation that counts, per cent of the makespan.
    fn utilisation(&self) -> Metric {
        match self.utilisation {
            Utilisation::WithStalls => utilisation,
            Utilisation::Executing => executing,
            Utilisation::Held => held,
        }
    }

    /// The energy of a run that counts, J.
    fn energy(&self) -> Metric {
        match self.energy {
            Energy::WhileMoving => energy,
            Energy::WholeRun => whole_energy,
        }
    }
}

/// Inputs of instances of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Inputs {
    /// One input for all instances.
    #[default]
    Shared,
    /// An input for each instance of a workload that the flash then holds; one for all instances of the others.
    OwnWherePossible,
}

/// Time of a core that counts as used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Utilisation {
    /// Executing and waiting for caches.
    #[default]
    WithStalls,
    /// Executing alone.
    Executing,
    /// Having a screen: executing, waiting for caches and for data from flash.
    Held,
}

/// Energy of the rival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Energy {
    /// The accelerator's, and those of host and drive while data move.
    #[default]
    WhileMoving,
    /// All parts over the whole run.
    WholeRun,
}

/// Mean of latencies over programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Latency {
    /// The mean of ratios.
    #[default]
    MeanOfRatios,
    /// The ratio of means.
    RatioOfMeans,
}

// Metrics of a run of kernels, on FlashAbacus or on the rival.

/// Common report of both kinds of system on a run.
struct Run<'a> {
    makespan_ns: f64,
    input_bytes_per_s: f64,
    utilisation: f64,
    /// Share of the makespan in which a core waits for its caches or for memory.
    stalled: f64,
    /// Share of the makespan in which a core has a screen, whose data it may wait for. The rival's data are there
    /// before a step begins.
    held: f64,
    /// Programs with the ends of their kernels, if they have ended.
    kernels: Vec<(&'a str, Option<f64>)>,
}

fn mean(shares: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = shares.len() as f64;
    shares.sum::<f64>() / count
}

fn run(document: &Document) -> Result<Run<'_>, Diagnostic> {
    if let Some(at) = document.accelerator.first() {
        return Ok(Run {
            makespan_ns: at.makespan_ns,
            input_bytes_per_s: at.input_bytes_per_s,
            utilisation: at.utilisation,
            stalled: mean(at.workers.iter().map(|worker| worker.stalled_share)),
            held: mean(at.workers.iter().map(|worker| worker.held_share)),
            kernels: at.kernels.iter().map(|kernel| (kernel.program.as_str(), kernel.over_ns)).collect(),
        });
    }
    if let Some(at) = document.coprocessor.first() {
        return Ok(Run {
            makespan_ns: at.makespan_ns,
            input_bytes_per_s: at.input_bytes_per_s,
            utilisation: at.utilisation,
            stalled: mean(at.cores.iter().map(|core| core.stalled_share)),
            held: at.utilisation,
            kernels: at.kernels.iter().map(|kernel| (kernel.program.as_str(), kernel.over_ns)).collect(),
        });
    }
    Err(Diagnostic::new(format!("no kernels in the run on {}", document.system)))
}

/// Input that is processed a second, MB.
fn bandwidth(document: &Document) -> Result<f64, Diagnostic> {
    Ok(run(document)?.input_bytes_per_s / 1e6)
}

/// From the offload of the first kernel until the last result is written, us.
fn makespan(document: &Document) -> Result<f64, Diagnostic> {
    Ok(run(document)?.makespan_ns / 1e3)
}

/// Share of the makespan in which cores compute, stalls included, per cent.
fn utilisation(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * run(document)?.utilisation)
}

/// Share of the makespan in which cores execute, per cent.
fn executing(document: &Document) -> Result<f64, Diagnostic> {
    let run = run(document)?;
    Ok(100.0 * (run.utilisation - run.stalled))
}

/// Share of the makespan in which cores have a screen, per cent.
fn held(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * run(document)?.held)
}

/// The times at which kernels ended, all of which were there at the beginning.
fn latencies(document: &Document) -> Result<Vec<f64>, Diagnostic> {
    let ends: Option<Vec<f64>> = run(document)?.kernels.into_iter().map(|(_, end)| end).collect();
    let ends = ends.filter(|ends| !ends.is_empty());
    ends.ok_or_else(|| Diagnostic::new(format!("a kernel did not end on {}", document.system)))
}

/// Mean latency of a kernel, ns.
fn mean_latency(document: &Document) -> Result<f64, Diagnostic> {
    let all = latencies(document)?;
    Ok(all.iter().sum::<f64>() / all.len() as f64)
}

/// The longest, ns.
fn most_latency(document: &Document) -> Result<f64, Diagnostic> {
    Ok(latencies(document)?.into_iter().fold(0.0, f64::max))
}

/// The shortest, ns.
fn least_latency(document: &Document) -> Result<f64, Diagnostic> {
    Ok(latencies(document)?.into_iter().fold(f64::INFINITY, f64::min))
}

/// End of the last kernel of each program in ns, ascending.
fn ends(document: &Document) -> Result<Vec<(String, f64)>, Diagnostic> {
    latencies(document)?;
    let mut ends: Vec<(String, f64)> = Vec::new();
    for (program, end) in run(document)?.kernels {
        let end = end.unwrap_or_default();
        match ends.iter_mut().find(|(known, _)| known == program) {
            Some((_, last)) => *last = last.max(end),
            None => ends.push((program.to_owned(), end)),
        }
    }
    ends.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    Ok(ends)
}

/// Returns whether a host offloaded the kernels: the rival.
fn offloaded(document: &Document) -> bool {
    !document.coprocessor.is_empty()
}

/// Seconds in which the rival's data move, and in which its accelerator works.
fn span(document: &Document) -> Result<(f64, f64), Diagnostic> {
    let kernels = || document.coprocessor.iter().flat_map(|at| &at.kernels);
    let working: f64 =
        kernels().filter_map(|kernel| kernel.phases.get("work")).map(|phase| phase.time_ns).sum();
    let all: f64 = kernels().flat_map(|kernel| kernel.phases.values()).map(|phase| phase.time_ns).sum();
    if working <= 0.0 {
        return Err(Diagnostic::new(format!("nothing was executed on {}", document.system)));
    }
    Ok(((all - working) / 1e9, working / 1e9))
}

/// The share of the rival's time in which data move, per cent.
fn transfer_time(document: &Document) -> Result<f64, Diagnostic> {
    let (moving, working) = span(document)?;
    Ok(100.0 * moving / (moving + working))
}

/// Seconds of the rival's work.
fn work(document: &Document) -> Result<f64, Diagnostic> {
    Ok(span(document)?.1)
}

/// A utilisation of the makespan as one of the rival's work alone, per cent.
fn of_work(document: &Document, utilisation: Metric) -> Result<f64, Diagnostic> {
    Ok(utilisation(document)? * makespan(document)? / 1e6 / work(document)?)
}

// Energy of a run, as the paper divides it: what moves data, what computes, what stores.

/// Energy of the rival's parts, J.
struct Items {
    /// Energy of the host, while data move.
    moves: f64,
    /// Energy of the accelerator.
    computes: f64,
    /// Energy of the drive, while data move.
    stores: f64,
}

impl Items {
    fn all(&self) -> f64 {
        self.moves + self.computes + self.stores
    }

    /// The share that moves and stores data, per cent.
    fn transfer_share(&self) -> f64 {
        100.0 * (self.moves + self.stores) / self.all()
    }
}

impl fmt::Display for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {:.3} J, accelerator {:.3} J, drive {:.3} J", self.moves, self.computes, self.stores)
    }
}

/// A part's energy.
fn part<'a>(document: &'a Document, name: &str) -> Result<&'a PartEnergy, Diagnostic> {
    let parts = document.energy.iter().flat_map(|energy| &energy.parts);
    let found = parts.into_iter().find(|part| part.name == name);
    found.ok_or_else(|| Diagnostic::new(format!("no energy of `{name}` on {}", document.system)))
}

/// Energy of an activity of a part, J.
///
/// # Errors
/// A name that the part reports no energy under.
fn activity(part: &PartEnergy, name: &str) -> Result<f64, Diagnostic> {
    let found = part.activities.iter().find(|of| of.activity == name);
    found.map(|of| of.energy_j).ok_or_else(|| {
        let known = part.activities.iter().map(|of| of.activity);
        Diagnostic::new(format!("`{}` reports no activity `{name}`", part.name)).allowed(name, known)
    })
}

/// A power of the spec, W.
fn power(document: &Document, path: &[&str]) -> Result<f64, Diagnostic> {
    let value = path.iter().try_fold(&document.spec, |table, key| table.get(*key));
    let power = value.and_then(|value| value.as_str()).and_then(|text| text.parse::<Power>().ok());
    let power = power.map(|power| power.microwatts() as f64 / 1e6);
    power.ok_or_else(|| Diagnostic::new(format!("no power {} of {}", path.join("."), document.system)))
}

/// A part's energy in those phases in which an activity that goes on in others lasts, J: what is spent all the time is
/// shared out by time.
fn while_moving(of: &PartEnergy, always: &[&str], share: f64) -> Result<f64, Diagnostic> {
    let constant = always.iter().map(|name| activity(of, name)).sum::<Result<f64, _>>()?;
    Ok(of.energy_j - (1.0 - share) * constant)
}

/// The rival's three items: host and drive while data move.
fn items(document: &Document) -> Result<Items, Diagnostic> {
    let (moving, working) = span(document)?;
    let share = moving / (moving + working);
    let host = part(document, "host")?;
    let drive = part(document, "flash")?;
    // The controller is idle while the accelerator works.
    let idle = power(document, &["flash", "energy", "controller", "idle"])? * working;
    Ok(Items {
        moves: while_moving(host, &["cores on", "package on", "memory on"], share)?,
        computes: part(document, "coprocessor")?.energy_j,
        stores: while_moving(drive, &["die idle", "link on"], share)?
            - idle.min(activity(drive, "controller idle")?),
    })
}

/// Energy of a run, J: of FlashAbacus all that its accelerator and its flash spend, of the rival the three items.
fn energy(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        return Ok(items(document)?.all());
    }
    whole_energy(document)
}

/// Energy of a run with all its parts, J: of the rival also what host and drive spend while the accelerator computes.
fn whole_energy(document: &Document) -> Result<f64, Diagnostic> {
    let total = document.energy.as_ref().and_then(|energy| energy.total.as_ref());
    let total = total.ok_or_else(|| Diagnostic::new(format!("no energy of {}", document.system)))?;
    Ok(total.energy_j)
}

/// The rival's parts over the whole run.
fn whole_items(document: &Document) -> Result<Items, Diagnostic> {
    let of = |name: &str| Ok::<f64, Diagnostic>(part(document, name)?.energy_j);
    Ok(Items { moves: of("host")?, computes: of("coprocessor")?, stores: of("flash")? })
}

/// Power of an accelerator that waits for data, W.
fn waiting(document: &Document, kind: &str, cores: f64, state: &str) -> Result<f64, Diagnostic> {
    let of = |path: &[&str]| power(document, &[&[kind, "energy"], path].concat());
    Ok(cores * of(&["worker", state])? + of(&["memory_on"])? + of(&["chip_on"])?)
}

/// Power while storage is accessed, W.
fn access_power(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        let (moving, _) = span(document)?;
        let Items { moves, stores, .. } = items(document)?;
        let cores = document.coprocessor[0].cores.len() as f64;
        return Ok((moves + stores) / moving + waiting(document, "coprocessor", cores, "idle")?);
    }
    let at = document.accelerator.first();
    let at =
        at.ok_or_else(|| Diagnostic::new(format!("no accelerator in the run on {}", document.system)))?;
    let workers = at.workers.len() as f64;
    let firmware = 2.0 * power(document, &["accelerator", "energy", "firmware", "busy"])?;
    let flash = part(document, "group_flash")?.power_w_mean;
    Ok(flash + firmware + waiting(document, "accelerator", workers, "waits")?)
}

/// Power of the accelerator while it computes, W.
fn compute_power(document: &Document) -> Result<f64, Diagnostic> {
    if offloaded(document) {
        let (moving, working) = span(document)?;
        let cores = document.coprocessor[0].cores.len() as f64;
        let idle = waiting(document, "coprocessor", cores, "idle")? * moving;
        return Ok((part(document, "coprocessor")?.energy_j - idle) / working);
    }
    Ok(part(document, "accelerator")?.power_w_max)
}

#[cfg(test)]
mod tests {
    use super::suite::SIMD;
    use super::*;
    use machine::run::{Plan, run_alone};

    #[test]
    fn every_figure_is_a_row() {
        let expected = expected();
        let figures: Vec<String> = expected.figures().iter().map(|figure| figure.id.clone()).collect();
        let suite = Suite::of(Effort::Full, &Reading::default());
        let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
        let rows: Vec<String> = own.map(|entry| entry.id).collect();
        assert_eq!(rows, figures);
    }

    /// A small run of the rival.
    fn rival() -> Document {
        let plan = Plan::new(SIMD, "atax:m=256,n=256,instances=2").set("coprocessor.sample=16384");
        run_alone(&plan).expect("a run")
    }

    /// The item of the host by its definition: all cores, package and memory while data move, from the powers of the
    /// spec, and what cores at work take besides.
    #[test]
    fn the_hosts_item_is_its_power_while_data_move() {
        let document = rival();
        let (moving, working) = span(&document).expect("phases");
        let measured = document.energy.as_ref().expect("powers").measured_ns / 1e9;
        let of = |path: &[&str]| {
            power(&document, &[&["host", "linux", "cores", "energy"], path].concat()).expect("a power")
        };
        let cores = document.spec["host"]["linux"]["cores"]["count"].as_u64().expect("a number") as f64;
        let always = cores * of(&["core", "idle"]) + of(&["package_on"]) + of(&["memory_on"]);
        let host = part(&document, "host").expect("a host");
        let work: f64 = ["core in user mode", "core in system mode", "core in interrupts"]
            .into_iter()
            .map(|name| activity(host, name).expect("an activity"))
            .sum();
        let expected = always * measured * moving / (moving + working) + work;
        let found = items(&document).expect("items").moves;
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} J instead of {expected} J");
        assert!(working > 0.01 * moving, "an accelerator that hardly works shows nothing");
    }

    #[test]
    fn an_activity_that_is_not_reported_is_an_error() {
        let document = rival();
        let host = part(&document, "host").expect("a host");
        let fault = activity(host, "core idle").expect_err("the host has none").one_line();
        assert!(fault.contains("`host` reports no activity `core idle`"), "{fault}");
        assert!(fault.contains("cores on"), "{fault}");
        assert!(while_moving(host, &["package on", "core idle"], 0.5).is_err());
        assert!(part(&document, "hosts").is_err());
        assert!(power(&document, &["host", "energy", "cores"]).is_err());
    }
}
