//! What a reader must know of a server's figures before they are believed: a percentile that rests on too few jobs, jobs that were
//! not steady when the window began, a load above saturation.

use super::cpu::CpuResult;
use crate::machine::Machine;
use crate::parts::complex::Ooo;
use crate::warmup::{Cut, Warmup};
use compute::ooo::Queue;
use stats::{Batched, HalfWidths, Histogram, Summary};

/// The percentile that is looked at.
const P: f64 = 0.99;
/// Half an interval of 95 % may be so much of the percentile: *chosen*, two systems whose tails differ by a fifth are then told apart.
const WIDE: f64 = 0.1;

/// The warnings of a server's run.
pub(super) fn of(machine: &Machine, ooo: &Ooo, cpu: &CpuResult) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(unsteady(machine));
    let to = ooo.ended(machine.now());
    if let Some(queue) = ooo.cores.queue(to) {
        let seconds = to.since(machine.measured_from).as_s_f64();
        said.extend(saturated(&queue, cpu, ooo.cores.cores(), seconds));
    }
    // Jobs that have an end are all that there are: nothing is told of others.
    if ooo.service.jobs().is_none() {
        said.extend(tails(cpu));
    }
    said
}

/// What is missing of the percentiles of service and latency, said once where it is the same of both.
fn tails(cpu: &CpuResult) -> Vec<String> {
    let of = |name: &str, figures, widths| few(name, figures, widths, cpu.jobs, cpu.warmup.jobs);
    let service = |name: &str| of(name, &cpu.service_ns, &cpu.service_ci95_ns);
    let latency = |name: &str| of(name, &cpu.latency_ns, &cpu.latency_ci95_ns);
    if service("both") == latency("both") {
        return service("service and latency").into_iter().collect();
    }
    service("service").into_iter().chain(latency("latency")).collect()
}

/// Whether a percentile has no value, no interval, or a wide one; from how many jobs it would have.
fn few(name: &str, figures: &Summary, widths: &HalfWidths, jobs: u64, cut: u64) -> Option<String> {
    let (needed, why) = match (figures.p99, widths.p99) {
        (None, _) => {
            let least = Histogram::least_for(P);
            let why = format!(
                "the 99th percentile of {name} cannot be given: {jobs} jobs ended in the measured window"
            );
            (least, format!("{why}, and ten must lie above it"))
        }
        (Some(_), None) => {
            let why = format!(
                "the 99th percentile of {name} rests on {jobs} jobs: too few for a confidence interval"
            );
            (Batched::least_for(P), why)
        }
        (Some(p99), Some(width)) if width > WIDE * p99 => {
            // The width falls with the root of the jobs.
            let times = (width / p99 / WIDE).powi(2);
            let why = format!(
                "the 99th percentile of {name} is known to +-{:.0} % (95 % confidence) from {jobs} jobs",
                100.0 * width / p99
            );
            ((jobs as f64 * times).ceil() as u64, why)
        }
        _ => return None,
    };
    let all = needed + cut;
    Some(format!("{why}; some {needed} are needed: cpu.load.jobs={all}, those before the window included"))
}

/// Whether the measured window holds a transient, or may.
fn unsteady(machine: &Machine) -> Option<String> {
    match (machine.warmup, machine.cut) {
        (Some(Warmup::Until(_)) | None, None) => None,
        (Some(_), _) => {
            Some("the run ended before its warm-up was over: figures are those of all jobs".to_owned())
        }
        (None, Some(Cut { steady: Some(false), jobs, .. })) => Some(format!(
            "no steady state within the first {jobs} jobs, which are cut: figures may hold a trend; a longer run (cpu.load.jobs) or \
             a lower load would tell"
        )),
        _ => None,
    }
}

/// Whether more jobs came than cores can do.
fn saturated(queue: &Queue, cpu: &CpuResult, cores: u16, seconds: f64) -> Option<String> {
    let spread = cpu.service_ns.stddev.zip(cpu.service_ns.mean).map_or(0.0, |(stddev, mean)| stddev / mean);
    if !outgrows(queue, cpu.jobs, cores, spread * spread) {
        return None;
    }
    let came = queue.came as f64 / seconds;
    Some(format!(
        "the load is above saturation: {came:.0} jobs/s came, {:.0} jobs/s ended (achieved throughput); waiting jobs grew from {} to {} \
         in the measured window, and latencies with them",
        cpu.throughput_per_s, queue.before, queue.waiting
    ))
}

/// Whether jobs wait that a load below one does not leave.
///
/// At a load of exactly one the queue of a core is a random walk that is reflected at zero: from empty it has grown by half a
/// normal deviate of variance `v = came + scv * ended` (those of the core), `0.80 sqrt(v)` in the mean with a standard deviation
/// of `0.60 sqrt(v)`. What `n` cores have grown by together is compared with the mean and four standard deviations of that. A lower
/// load leaves less. The squared coefficient of variation of service counts as one at least.
fn outgrows(queue: &Queue, ended: u64, cores: u16, scv: f64) -> bool {
    let grown = queue.waiting.saturating_sub(queue.before) as f64;
    let n = f64::from(cores);
    let each = ((queue.came as f64 + scv.max(1.0) * ended as f64) / n).sqrt();
    grown > each * (0.80 * n + 4.0 * 0.60 * n.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(came: u64, before: u64, waiting: u64) -> Queue {
        Queue { came, before, waiting }
    }

    #[test]
    fn growth_is_told_from_scatter() {
        // One core, 10,000 jobs: v = 20,000, so that 0.8 + 2.4 roots are 452.
        assert!(!outgrows(&queue(10_000, 0, 450), 10_000, 1, 0.5));
        assert!(outgrows(&queue(10_000, 0, 455), 10_000, 1, 0.5));
        assert!(!outgrows(&queue(10_000, 10, 455), 10_000, 1, 0.5));
        // Service that scatters more lets queues grow more by chance.
        assert!(!outgrows(&queue(10_000, 0, 455), 10_000, 1, 2.0));
        // A queue that becomes shorter.
        assert!(!outgrows(&queue(10_000, 5_000, 0), 10_000, 1, 1.0));
    }

    #[test]
    fn what_is_missing_is_said_with_what_would_do() {
        let figures = |p99| Summary { p99, ..Summary::default() };
        let widths = |p99| HalfWidths { p99, ..HalfWidths::default() };
        let of = |p99, width, jobs| few("service", &figures(p99), &widths(width), jobs, 50);
        assert!(of(None, None, 900).expect("said").contains("cpu.load.jobs=1050"));
        assert!(of(Some(1.0), None, 5000).expect("said").contains("cpu.load.jobs=10290"));
        // Twice as wide as it may be: four times the jobs.
        let said = of(Some(100.0), Some(20.0), 20_000).expect("said");
        assert!(said.contains("+-20 %") && said.contains("cpu.load.jobs=80050"), "{said}");
        assert_eq!(of(Some(100.0), Some(10.0), 20_000), None);
    }
}
