//! Servers against stations. Without flash, jobs of exponential length that come at random to each core are as many
//! stations M/M/1. With flash, jobs need a page after each period of work: a core with threads and a fixed delay.

use crate::study::Point;
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use machine::result::CpuResult;
use theory::queue::{Delayed, mm1};

/// Load of each core in per cent.
const STATION_LOADS: &[u32] = &[50, 80, 90];
/// Mean job: 2,000 instructions of one cycle at 2 GHz, in picoseconds. The pipeline adds some cycles: less than a
/// thousandth.
const SERVICE: u64 = 1_000_000;
const STATION_JOBS: u64 = 10_000_000;
/// Jobs of a test, and the shares that their means and percentiles scatter by.
const QUICK_STATION_JOBS: u64 = 200_000;
const QUICK_STATION_SHARE: f64 = 0.15;

pub(super) fn station_cases() -> Vec<Case> {
    let case = |load: &u32| {
        let load = *load;
        let name = format!("server.mm1.{load}");
        let ids = ["mean", "p99"].map(|figure| format!("{name}.{figure}")).to_vec();
        Case::new(ids, move |context| stations(&name, load, context))
    };
    STATION_LOADS.iter().map(case).collect()
}

fn stations(name: &str, load: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let jobs = context.choose(STATION_JOBS, QUICK_STATION_JOBS);
    let interval = SERVICE * 100 / u64::from(load);
    let point = Point {
        system: "dram-only".into(),
        set: vec![
            format!("cpu.load.arrivals.poisson.interval={interval}ps"),
            format!("cpu.load.jobs={}", jobs + jobs / 20),
            format!("cpu.warmup.fixed.jobs={}", jobs / 20),
        ],
        workloads: vec![format!("exponential:mean={}", SERVICE / 500)],
        seed: 1,
        ..Point::default()
    };
    let document = point.run(context.stop)?;
    let cpu = document.cpu.first().ok_or_else(|| Diagnostic::new(format!("{point}: no cores")))?;
    let service = SERVICE as f64 / 1e3;
    let model = mm1(f64::from(load) / 100.0 / service, service);
    let place =
        "M/M/1: the response is exponential with mean service / (1 - load): L. Kleinrock 1975, section 3.2";
    let note =
        format!("{} jobs on 16 cores, service {:.1} ns", cpu.jobs, cpu.service_ns.mean.unwrap_or(f64::NAN));
    let figures = [
        ("mean", model.mean_response(), cpu.latency_ns.mean, 0.01),
        ("p99", model.response_quantile(0.99), cpu.latency_ns.p99, 0.02),
    ];
    let row = |(figure, expected, measured, share): (&str, f64, Option<f64>, f64)| {
        let measured =
            measured.ok_or_else(|| Diagnostic::new(format!("{point}: too few jobs for the {figure}")))?;
        let rule = Rule::Share(context.choose(share, QUICK_STATION_SHARE));
        Ok(Row::new(format!("{name}.{figure}"), "ns", expected, measured, rule)
            .place(place)
            .note(note.clone()))
    };
    figures.into_iter().map(row).collect()
}

// A server whose jobs need a page from flash after each period of work: a core with threads and a fixed delay.
//
// Pages come after a fixed time, and each is drawn from data 16,000 times as large as the DRAM cache, so that hardly
// any is there. What a halt costs a core besides (finding the miss, the flush, switches, the access with which the job
// goes on) is measured in the runs and is part of the theory's service; periods are long against it, because it is no
// exponential time.

/// Cores, and what they share: a memory controller each.
const CORES: u64 = 4;

const MACHINE: [&str; 7] = [
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "memory.dram_cache.dram.controllers=4",
    "memory.dram_cache.sets=256",
    "memory.dram_cache.backing.fixed.read=200us",
];

/// Data of the jobs; the DRAM cache above has 16 MiB. It must not lose a page again before the thread runs that has
/// asked for it.
const DATA: &str = "256GiB";

/// A mean period: 200,000 instructions of one cycle at 2 GHz, in nanoseconds.
const PERIOD: f64 = 100e3;

/// Mean number of accesses of a job.
const TOUCHES: f64 = 4.0;

/// Threads of a core that always have a job.
const THREADS: &[u32] = &[1, 2, 4, 8];

/// Number of threads at which one always has its page: the core never rests.
const MANY: u32 = 32;

/// Load of each core in per cent, where jobs come at random.
const LOADS: &[u32] = &[50, 80];

/// Jobs of a run at its end: halts scatter by the root of their number, and queues remember some 1 / (1 - 0.8)^2 jobs.
const JOBS: u64 = 16_000;

const OPEN_JOBS: u64 = 200_000;

/// Jobs of a test, and the share that its figures scatter by.
const QUICK: u64 = 4_000;

const QUICK_SHARE: f64 = 0.15;

const SHARE: f64 = 0.02;

const PLACE: &str = "a station and a delay have product form: F. Baskett, K. M. Chandy, R. R. Muntz, F. G. Palacios, J. ACM 22(2), 1975";

pub(super) fn cases() -> Vec<Case> {
    let closed = Case::new(THREADS.iter().map(|threads| closed_id(*threads)), closed);
    let open = LOADS.iter().map(|load| {
        let id = format!("server.delay.open.{load}");
        Case::new([id.clone()], move |context| open(&id, *load, context))
    });
    [closed].into_iter().chain(open).collect()
}

fn closed_id(threads: u32) -> String {
    format!("server.delay.closed.{threads}")
}

fn run(set: &[String], jobs: u64, context: &Context<'_>) -> Result<CpuResult, Diagnostic> {
    let instructions = (PERIOD * 2.0 * (1.0 + TOUCHES)) as u64;
    let point = Point {
        system: "astriflash-nops".into(),
        set: MACHINE.iter().map(|set| (*set).to_owned()).chain(set.iter().cloned()).collect(),
        workloads: vec![format!("exponential:mean={instructions},touches={TOUCHES},data={DATA}")],
        seed: 1,
        ..Point::default()
    }
    .set(&format!("cpu.load.jobs={}", jobs + jobs / 20))
    .set(&format!("cpu.warmup.fixed.jobs={}", jobs / 20));
    let document = point.run(context.stop)?;
    document.cpu.into_iter().next().ok_or_else(|| Diagnostic::new(format!("{point}: no cores")))
}

/// Nanoseconds of the measured window, of all cores together.
fn core_time(cpu: &CpuResult) -> f64 {
    cpu.cycles / 2.0 * CORES as f64
}

/// Response time of flash, nanoseconds.
fn delay(cpu: &CpuResult) -> Result<f64, Diagnostic> {
    let response = cpu.memory.behind.dram_cache.as_ref().and_then(|cache| cache.response_ns);
    response.ok_or_else(|| Diagnostic::new("no page was in flash"))
}

/// Halts a second of a core whose threads always have a job.
fn closed(context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let of = |threads: u32| {
        let set = ["count", "pending"].map(|key| format!("cpu.threads.{key}={threads}"));
        run(&set, context.choose(JOBS, QUICK), context)
    };
    let halts = |cpu: &CpuResult| cpu.threads.halts as f64 / core_time(cpu) * 1e9;
    // With this many threads a core does nothing but serve: that is the service of a halt, of which this is work.
    let (service, work) = (1e9 / halts(&of(MANY)?), PERIOD * (1.0 + TOUCHES) / TOUCHES);
    let row = |threads: &u32| {
        let cpu = of(*threads)?;
        let model = Delayed { service, delay: delay(&cpu)? };
        let rule = Rule::Share(context.choose(SHARE, QUICK_SHARE));
        let expected = model.closed(*threads).throughput * 1e9;
        Ok(Row::new(closed_id(*threads), "halts/s", expected, halts(&cpu), rule)
            .place(format!("machine repairman, mean value analysis: {PLACE}"))
            .note(format!(
                "{threads} threads a core; service {service:.0} ns, measured with {MANY} threads, of which work {work:.0} ns on average; flash \
                 answers in {:.0} ns; {} halts",
                model.delay, cpu.threads.halts
            )))
    };
    THREADS.iter().map(row).collect()
}

/// Mean response of jobs that come at random.
fn open(id: &str, load: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let interval = (PERIOD * (1.0 + TOUCHES) * 100.0 / f64::from(load)) as u64;
    let set = [format!("cpu.load.arrivals.poisson.interval={interval}ns")];
    let cpu = run(&set, context.choose(OPEN_JOBS, QUICK), context)?;
    let (Some(offered), Some(measured)) = (cpu.offered_per_s, cpu.latency_ns.mean) else {
        return Err(Diagnostic::new("no jobs came"));
    };
    let idle = cpu.time_share.get("idle").copied();
    let idle = idle.ok_or_else(|| Diagnostic::new("the server reports no share of idle time"))?;
    let periods = (cpu.threads.halts + cpu.jobs) as f64;
    let model = Delayed { service: (1.0 - idle) * core_time(&cpu) / periods, delay: delay(&cpu)? };
    let rate = offered / CORES as f64 / 1e9;
    let of_a_job = periods / cpu.jobs as f64;
    let rule = Rule::Share(context.choose(SHARE, QUICK_SHARE));
    let row = Row::new(id, "ns", model.open_response(rate, of_a_job), measured, rule)
        .place(format!("M/M/1 at the rate of periods, and the delays: {PLACE}"))
        .note(format!(
            "{} jobs of {of_a_job:.3} periods; service of one {:.0} ns as measured, of which work {PERIOD:.0} ns on average; load {:.4}; flash answers in \
             {:.0} ns",
            cpu.jobs,
            model.service,
            rate * of_a_job * model.service,
            model.delay
        ));
    Ok(vec![row])
}
