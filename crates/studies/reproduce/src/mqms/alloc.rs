//! Section 2.1: what allocation gives to writes alone; section 3.1: sampling, and the kernels of Table 1.

use super::super::drives::data;
use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::{Entry, Found, Point};
use super::{Suite, iops, response};
use config::Diagnostic;
use sampling::{Bound, Plan, Profile, Rule};

/// A drive of 32 planes without a buffer, empty, whose channels and link take next to no time beside a program.
const PLANES: u32 = 32;
const DRIVE: [&str; 7] = [
    "flash.geometry.channels=4",
    "flash.geometry.ways=2",
    "flash.geometry.planes=4",
    "flash.cell.program=[\"60ms\"]",
    "flash.host.link={ plain = { bandwidth = \"1000GB/s\", latency = \"0us\" } }",
    "flash.ftl.allocation=full",
    "flash.precondition=none",
];
/// Writes outstanding.
const WRITES: [u32; 10] = [1, 2, 3, 5, 8, 16, 31, 32, 33, 64];
/// Tolerance of throughput to the formula: time of commands on the channels.
const EXACT: f64 = 0.01;

/// Policies of section 2.1, the worst first.
const POLICIES: [(&str, &str); 3] = [
    ("static", "striped"),
    ("restricted-dynamic", "{ restricted = { free = \"P\" } }"),
    ("full-dynamic", "full"),
];

/// Recorded profiles, in the data sets.
const PROFILES: [&str; 10] = [
    "bert-small_h100",
    "bert-small_mi300",
    "hta_trace_diff_control_a100",
    "hta_v100_ddp_train_19k",
    "linear_kineto",
    "megatron_kineto_0",
    "owlv2_mi300",
    "qwen1.5-0.5b_h100",
    "resnet50_v100_nw0_a",
    "sd3.5_mi300",
];
const ERROR: f64 = 0.05;
const CONFIDENCE: f64 = 0.95;
const DRAWS: u64 = 200;

/// The row of a figure of these sections.
pub(super) fn entry(figure: &Figure, suite: &Suite, id: &str) -> Option<Entry> {
    Some(match id {
        "alloc.scaling" => scaling(figure, suite),
        "alloc.full_over_restricted" => order(figure, suite),
        "sampling.error" => sampled(figure),
        "workload.bert_kernels" => kernels(figure, "bert:pairs=10000"),
        "workload.gpt2_kernels" => kernels(figure, "gpt2:sentences=1000,tokens=100"),
        "workload.resnet50_kernels" => kernels(figure, "resnet50:images=13400"),
        _ => return None,
    })
}

/// Throughput of page writes against how many are outstanding.
fn scaling(figure: &Figure, suite: &Suite) -> Entry {
    let of = |n: &u32| {
        let job = format!("fio:rw=randwrite,bs=4k,iodepth={n},number_ios={}", 200 * n.min(&PLANES));
        DRIVE.iter().fold(suite.point("d16", &job), |point, set| point.set(set))
    };
    let points: Vec<Point> = WRITES.iter().map(of).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points.clone(), move |found| {
        let one = iops(found.get(&points[0])?)?;
        let at_work = |point: &Point| Ok(iops(found.get(point)?)? / one);
        let measured = points.iter().map(at_work).collect::<Result<Vec<f64>, Diagnostic>>()?;
        let near = |(n, got): (&u32, &f64)| (got / f64::from(*n.min(&PLANES)) - 1.0).abs() <= EXACT;
        let each: Vec<String> =
            WRITES.iter().zip(&measured).map(|(n, got)| format!("{n}: {got:.3}")).collect();
        let holds = WRITES.iter().zip(&measured).all(near);
        let note = format!(
            "{PLANES} planes; times the throughput of one write, by writes outstanding: {}",
            each.join(", ")
        );
        Ok(figure.holds(holds, note))
    })
}

/// Random writes on the drive of the comparison, whose map is of pages.
fn order(figure: &Figure, suite: &Suite) -> Entry {
    const JOB: &str = "fio:rw=randwrite,bs=16k,iodepth=64,number_ios=50000";
    let of = |(name, allocation): &(&'static str, &str)| {
        (*name, suite.point("mqsim-macsim", JOB).set(&format!("flash.ftl.allocation={allocation}")))
    };
    let runs: Vec<(&'static str, Point)> = POLICIES.iter().map(of).collect();
    let points = runs.iter().map(|(_, point)| point.clone()).collect();
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, points, move |found: &Found| {
        let values = |metric: fn(&machine::result::Document) -> Result<f64, Diagnostic>| {
            let of = |(name, point): &(&'static str, Point)| Ok((*name, metric(found.get(point)?)?));
            runs.iter().map(of).collect::<Result<Vec<_>, Diagnostic>>()
        };
        let by_response: Vec<(&str, f64)> =
            values(response)?.into_iter().map(|(name, ns)| (name, 1e9 / ns)).collect();
        let response = figure.order(&by_response, "");
        let row = figure.order(&values(iops)?, format!("IOPS; over response times: {}", response.note));
        Ok(Row { within: Some(row.within == Some(true) && response.within == Some(true)), ..row })
    })
}

/// Share of draws whose predicted total is within the bound, over all recorded profiles: the least of them.
fn sampled(figure: &Figure) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, Vec::new(), move |_| {
        let (mut least, mut notes) = (100.0_f64, Vec::new());
        for name in PROFILES {
            let file = format!("gpu_profiles/kernels_csv/{name}.kernels.csv.gz");
            let Some(path) = data(&file) else { return Ok(figure.row(0.0, "")?.skipped(&file)) };
            let profile = Profile::read(&path)?;
            let plan = Plan::new(&profile, Bound::new(ERROR, CONFIDENCE)?, Rule::Allegro)?;
            let (inside, note) = coverage(&profile, &plan)?;
            least = least.min(inside);
            notes.push(format!("{name} {inside:.1} ({note})"));
        }
        let what = format!("{DRAWS} draws of each profile, bound {:.0} %", 100.0 * ERROR);
        figure.row(least, format!("{what}: {}", notes.join(", ")))
    })
}

/// Share of draws inside the bound, in per cent, and how many kernels they simulate.
fn coverage(profile: &Profile, plan: &Plan) -> Result<(f64, String), Diagnostic> {
    let truth = profile.total_ns();
    let mut inside = 0_u32;
    let mut simulated = 0;
    for seed in 0..DRAWS {
        let sample = plan.draw(seed);
        simulated = sample.len();
        let predicted = sample.predict(plan, |kernel| profile.durations_ns()[kernel as usize]);
        inside += u32::from((predicted.total_ns() / truth - 1.0).abs() <= ERROR);
    }
    let note = format!("{simulated} of {} kernels", profile.len());
    Ok((100.0 * f64::from(inside) / DRAWS as f64, note))
}

/// Kernels that our description of a network launches.
fn kernels(figure: &Figure, workload: &'static str) -> Entry {
    let (id, figure) = (figure.id.clone(), figure.clone());
    Entry::new(id, Vec::new(), move |_| {
        let launched = programs::program::launches(workload)?.count();
        figure.row(launched as f64, format!("launches of `{workload}`, as eager PyTorch makes them"))
    })
}
