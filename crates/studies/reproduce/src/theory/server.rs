//! A server without flash: jobs of exponential length that come at random to each core are as many stations M/M/1.

use crate::study::Point;
use crate::{Case, Context, Row, Rule};
use config::Diagnostic;
use theory::queue::mm1;

/// Load of each core in per cent.
const LOADS: &[u32] = &[50, 80, 90];
/// Mean job: 2,000 instructions of one cycle at 2 GHz, in picoseconds. The pipeline adds some cycles: less than a thousandth.
const SERVICE: u64 = 1_000_000;
const JOBS: u64 = 10_000_000;
/// Jobs of a test, and the shares that their means and percentiles scatter by.
const QUICK: u64 = 200_000;
const QUICK_SHARE: f64 = 0.15;

pub(super) fn cases() -> Vec<Case> {
    let case = |load: &u32| {
        let load = *load;
        let name = format!("server.mm1.{load}");
        let ids = ["mean", "p99"].map(|figure| format!("{name}.{figure}")).to_vec();
        Case::new(ids, move |context| stations(&name, load, context))
    };
    LOADS.iter().map(case).collect()
}

fn stations(name: &str, load: u32, context: &Context<'_>) -> Result<Vec<Row>, Diagnostic> {
    let jobs = context.choose(JOBS, QUICK);
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
        let rule = Rule::Share(context.choose(share, QUICK_SHARE));
        Ok(Row::new(format!("{name}.{figure}"), "ns", expected, measured, rule)
            .place(place)
            .note(note.clone()))
    };
    figures.into_iter().map(row).collect()
}
