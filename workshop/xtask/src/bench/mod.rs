//! `cargo xtask bench`: the binary of packages (without the counts that lay theirs out), as a process, on fixed
//! workloads, against targets and against MQSim.
//!
//! Figures are CPU time, because other work shares the machine. Pairs run one after the other and give ratios.

mod cases;
mod chart;
mod mqsim;
mod process;
mod report;
mod sample;

use crate::workspace;
use anyhow::{Context, Result, bail};
use cases::{CASES, Case, Input};
use mqsim::Rival;
use report::{CaseReport, Pair};
use sample::Sample;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the case of this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Also run MQSim, in pairs: its binary, or the folder that holds it
    #[arg(long, value_name = "PATH")]
    mqsim: Option<PathBuf>,
    /// Also run a different build of nandscape, in pairs: its binary
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// Also run each case with a key changed, in pairs, such as `sim.explain=false`, to measure its cost
    #[arg(long, value_name = "KEY=VALUE")]
    beside: Option<String>,
    /// Count the instructions of both builds for the same short runs instead; needs Valgrind
    #[arg(long, requires = "against")]
    instructions: bool,
    /// Number of runs of each case
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    reps: u32,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
    /// Also draw the ratios to MQSim as an SVG file
    #[arg(long, value_name = "FILE", requires = "mqsim")]
    chart: Option<PathBuf>,
}

/// Measures and prints; returns false if a case could not be measured. A missed target is a ratio below 1, not a
/// failure.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let (true, Some(other)) = (options.instructions, &options.against) {
        let binary = workspace::dist_binary()?;
        print!("{}", compare(&binary, other, options.only.as_deref())?);
        return Ok(true);
    }
    let cases = chosen(options.only.as_deref())?;
    let rival = options.mqsim.as_deref().map(mqsim::locate).transpose()?;
    let binary = workspace::dist_binary()?;
    let mut reports = Vec::new();
    for case in cases {
        eprintln!("{} …", case.name);
        let made = match case.input {
            Input::Profile(kernels) => Some((sample::profile_path(kernels), kernels)),
            _ => None,
        };
        if let Some((path, kernels)) = &made {
            sample::write_profile(path, *kernels)?;
        }
        let others = Others {
            mqsim: rival.as_deref(),
            build: options.against.as_deref(),
            key: options.beside.as_deref(),
        };
        let report = measure(&binary, &others, case, options.reps);
        if let Some((path, _)) = &made {
            std::fs::remove_file(path)?;
        }
        reports.push(report?);
    }
    if let (Some(path), Some(text)) = (&options.chart, chart::svg(&reports, "MQSim")) {
        std::fs::write(path, text)?;
    }
    if options.json {
        println!("{:#}", report::to_json(&reports));
    } else {
        print!("{}", report::to_text(&reports));
    }
    Ok(reports.iter().all(|report| report.failure.is_none()))
}

fn chosen(only: Option<&str>) -> Result<Vec<&'static Case>> {
    let Some(name) = only else { return Ok(CASES.iter().collect()) };
    match CASES.iter().find(|case| case.name == name) {
        Some(case) => Ok(vec![case]),
        None => {
            let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
            bail!("unknown case `{name}`; cases: {}", names.join(", "))
        }
    }
}

/// Program that runs in turn with the binary.
struct Others<'a> {
    mqsim: Option<&'a Path>,
    build: Option<&'a Path>,
    key: Option<&'a str>,
}

fn measure(binary: &Path, others: &Others<'_>, case: &'static Case, reps: u32) -> Result<CaseReport> {
    let mut report = CaseReport::new(case);
    let Some(workload) = case.workload() else {
        report.skipped = Some("no data");
        return Ok(report);
    };
    let mut samples = Vec::new();
    let (mut rivals, mut builds, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..reps {
        match sample::take(binary, case, &workload, None) {
            Ok(sample) => samples.push(sample),
            Err(error) => {
                report.failure = Some(format!("{error:#}"));
                return Ok(report);
            }
        }
        if let (Some(rival), Some(flow)) = (others.mqsim, &case.flow) {
            rivals.push(mqsim::run(rival, case, flow, &workload)?);
        }
        if let Some(build) = others.build {
            builds.push(sample::take(build, case, &workload, None));
        }
        if others.key.is_some() {
            keys.push(sample::take(binary, case, &workload, others.key));
        }
    }
    for goal in case.goals {
        let values = samples.iter().map(|sample| goal.metric.value(sample)).collect::<Result<Vec<_>>>();
        match values {
            Ok(values) => report.rows.push((goal, Spread::of(values))),
            Err(error) => report.failure = Some(format!("{error:#}")),
        }
    }
    report.pairs = pair(&samples, &rivals);
    report.pairs.extend(pair_builds(BUILD, &samples, &builds));
    report.pairs.extend(others.key.and_then(|key| pair_builds(key, &samples, &keys)));
    Ok(report)
}

/// CPU time of a different build, or with a key changed, relative to that of this one, run by run.
fn pair_builds(over: &str, samples: &[Sample], builds: &[Result<Sample>]) -> Option<Pair> {
    let mut ratios = Vec::new();
    for (sample, build) in samples.iter().zip(builds) {
        match build {
            Ok(build) => ratios.push(build.cpu.as_secs_f64() / sample.cpu.as_secs_f64()),
            Err(error) => {
                let remark = Some(format!("{error:#}"));
                return Some(Pair { over: over.to_owned(), what: WHOLE, ratio: None, remark });
            }
        }
    }
    (!ratios.is_empty()).then(|| Pair {
        over: over.to_owned(),
        what: WHOLE,
        ratio: Some(Spread::of(ratios)),
        remark: None,
    })
}

const MQSIM: &str = "MQSim";
const BUILD: &str = "the other build";
const WHOLE: &str = "CPU time of the whole process";

/// Ratios of consecutive runs; a failed run fails its whole side.
fn pair(samples: &[Sample], rivals: &[Rival]) -> Vec<Pair> {
    let mut rates = Vec::new();
    let mut totals = Vec::new();
    let mut remark = None;
    for (sample, rival) in samples.iter().zip(rivals) {
        match rival {
            Rival::Ran { served, asked, simulated, whole } => {
                let theirs = *served as f64 / simulated.as_secs_f64();
                rates.push(sample.requests_per_cpu_s / theirs);
                totals.push(whole.as_secs_f64() / sample.cpu.as_secs_f64());
                if served < asked {
                    remark = Some(format!("MQSim completed {served} of {asked} requests"));
                }
            }
            Rival::Failed(reason) => {
                return vec![Pair {
                    over: MQSIM.to_owned(),
                    what: "requests per CPU second",
                    ratio: None,
                    remark: Some(reason.clone()),
                }];
            }
        }
    }
    if rates.is_empty() {
        return Vec::new();
    }
    vec![
        Pair {
            over: MQSIM.to_owned(),
            what: "requests per CPU second",
            ratio: Some(Spread::of(rates)),
            remark,
        },
        Pair { over: MQSIM.to_owned(), what: WHOLE, ratio: Some(Spread::of(totals)), remark: None },
    ]
}

// Median, least and greatest of a few runs.

/// Spread of one metric over the runs of a case.
#[derive(Debug, Clone, PartialEq)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Spread {
    /// Computes the spread of at least one value; the median of an even number is the mean of the middle two.
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, min: values[0], max: values[values.len() - 1] }
    }
}

// What an older build of the program calls otherwise, so that it can be compared with.

/// Keys of a server that have kept their place.
const KEPT: [&str; 2] = ["cpu.fill_jobs", "cpu.warmup"];

/// Names of keys and metrics in a build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    /// Current names.
    Today,
    /// Names of builds that wrote `nandscape.result/1`: the cores of a server are `cpu.0`, and there is one GPU and one
    /// server.
    First,
}

impl Dialect {
    /// Detects the layout of a binary.
    fn of(binary: &Path) -> Dialect {
        let mut command = Command::new(binary);
        command.args(["params", "cpu.0.cores"]).stdout(Stdio::null()).stderr(Stdio::null());
        if command.status().is_ok_and(|status| status.success()) { Dialect::First } else { Dialect::Today }
    }

    /// Translates an assignment of a key, or any other argument.
    fn argument(self, text: &str) -> String {
        match text.strip_prefix("cpu.") {
            Some(rest) if self == Dialect::First && !KEPT.iter().any(|key| text.starts_with(key)) => {
                format!("cpu.0.{rest}")
            }
            _ => text.to_owned(),
        }
    }
}

/// Path of a metric in a document of that layout.
fn pointer(schema: &str, pointer: &str) -> String {
    if schema == "nandscape.result/1" {
        return pointer.replacen("/gpu/0/", "/gpu/", 1).replacen("/cpu/0/", "/cpu/", 1);
    }
    pointer.to_owned()
}

// Instructions of two builds for the same work, counted by callgrind: what other work on the machine cannot disturb.

/// Run at two sizes. Their difference is free of the program's start and of preconditioning.
struct Piece {
    name: &'static str,
    system: &'static str,
    /// Workload; `{}` is the size, here and in the arguments.
    workload: &'static str,
    arguments: &'static [&'static str],
    sizes: [u32; 2],
}

const WRITTEN_ONCE: &[&str] = &["--precondition", "sequential:share=90%"];

const JOBS: &[&str] = &["--set", "cpu.load.jobs={}", "--set", "cpu.fill_jobs=2000"];

const PIECES: &[Piece] = &[
    drive("randread", "d16", "fio:rw=randread,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    drive("randwrite", "d16", "fio:rw=randwrite,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    drive("mixed", "pm9a3", "fio:rw=randrw,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    Piece {
        name: "seqread",
        system: "d16",
        workload: "fio:rw=read,bs=128k,iodepth=16,number_ios={}",
        arguments: WRITTEN_ONCE,
        sizes: [500, 4_000],
    },
    Piece {
        name: "jobs",
        system: "d16",
        workload: "fio:rw=randread,bs=4k,numjobs=1000,norandommap=1,number_ios={}",
        arguments: WRITTEN_ONCE,
        sizes: [20, 60],
    },
    graph("ideal-bfs1", "ideal", "bfs1:scale={}"),
    graph("zng-bfs1", "zng", "bfs1:scale={}"),
    graph("hybridgpu-bfs1", "hybridgpu", "bfs1:scale={}"),
    server("dram-only-tatp", "dram-only"),
    server("astriflash-tatp", "astriflash"),
];

const fn drive(name: &'static str, system: &'static str, workload: &'static str) -> Piece {
    Piece { name, system, workload, arguments: WRITTEN_ONCE, sizes: [20_000, 80_000] }
}

const fn graph(name: &'static str, system: &'static str, workload: &'static str) -> Piece {
    Piece { name, system, workload, arguments: &[], sizes: [9, 12] }
}

const fn server(name: &'static str, system: &'static str) -> Piece {
    Piece { name, system, workload: "tatp", arguments: JOBS, sizes: [1_000, 3_000] }
}

/// Prints a table of both builds, piece by piece.
///
/// # Errors
/// Valgrind is missing, or a run fails.
fn compare(ours: &Path, theirs: &Path, only: Option<&str>) -> Result<String> {
    let mut text =
        String::from("instructions for the same work, in millions (above 1: the other build needs more)\n");
    for piece in PIECES.iter().filter(|piece| only.is_none_or(|name| name == piece.name)) {
        eprintln!("{} under callgrind …", piece.name);
        let (own, other) = (piece.cost(ours)?, piece.cost(theirs)?);
        let line = format!(
            "{:<16} {:>10.1} the other build {:>10.1} ratio {:.3}",
            piece.name,
            own as f64 / 1e6,
            other as f64 / 1e6,
            other as f64 / own as f64
        );
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

impl Piece {
    /// Number of instructions that the larger size takes beyond the smaller.
    fn cost(&self, binary: &Path) -> Result<u64> {
        let [small, large] = self.sizes.map(|size| self.instructions(binary, size));
        let (small, large) = (small?, large?);
        large
            .checked_sub(small)
            .with_context(|| format!("{}: {large} instructions for more, {small} for less", self.name))
    }

    fn instructions(&self, binary: &Path, size: u32) -> Result<u64> {
        let sized = |text: &str| text.replace("{}", &size.to_string());
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
        command.args(["run", self.system, "--seed", "1", "--json", "--workload", &sized(self.workload)]);
        let dialect = Dialect::of(binary);
        command.args(self.arguments.iter().map(|argument| dialect.argument(&sized(argument))));
        let output = command.output().context("valgrind did not start")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{} failed ({}): {}", self.name, output.status, said.trim_end());
        }
        collected(&said).with_context(|| format!("callgrind counted nothing: {}", said.trim_end()))
    }
}

/// Count in callgrind's final output.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().rev().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(requests_per_cpu_s: f64, cpu_ms: u64) -> Sample {
        Sample { requests_per_cpu_s, cpu: Duration::from_millis(cpu_ms), document: serde_json::Value::Null }
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        let ran = |served, seconds| Rival::Ran {
            served,
            asked: 1000,
            simulated: Duration::from_secs(seconds),
            whole: Duration::from_secs(seconds * 2),
        };
        // 1000 requests in 10 s are 100 per s: 2000 is 20 times that; 500 in 10 s are 50 per s: 60 times.
        let pairs = pair(&[sample(2000.0, 500), sample(3000.0, 500)], &[ran(1000, 10), ran(500, 10)]);
        let rate = pairs[0].ratio.as_ref().unwrap();
        assert_eq!((rate.min, rate.max), (20.0, 60.0));
        assert_eq!(pairs[0].remark.as_deref(), Some("MQSim completed 500 of 1000 requests"));
        assert_eq!(pairs[1].ratio.as_ref().unwrap().median, 40.0);
    }

    #[test]
    fn a_rival_that_fails_gives_no_ratio() {
        let pairs = pair(&[sample(1.0, 1)], &[Rival::Failed("aborted".into())]);
        assert!(pairs[0].ratio.is_none() && pairs[0].remark.as_deref() == Some("aborted"));
    }

    #[test]
    fn builds_are_compared_pair_by_pair() {
        let ours = [sample(1.0, 500), sample(1.0, 400)];
        let pair = pair_builds(BUILD, &ours, &[Ok(sample(1.0, 1000)), Ok(sample(1.0, 400))]).unwrap();
        let ratio = pair.ratio.unwrap();
        assert_eq!((ratio.min, ratio.max), (1.0, 2.0));
        let failed =
            pair_builds(BUILD, &ours, &[Ok(sample(1.0, 1000)), Err(anyhow::anyhow!("aborted"))]).unwrap();
        assert!(failed.ratio.is_none() && failed.remark.as_deref() == Some("aborted"));
        assert!(pair_builds(BUILD, &ours, &[]).is_none());
    }

    #[test]
    fn an_unknown_case_lists_the_names() {
        let error = chosen(Some("randred")).err().unwrap().to_string();
        assert!(error.contains("randread") && error.contains("tpcc-small"), "{error}");
    }

    #[test]
    fn odd_even_and_single() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 8.0]), Spread { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0, 8.0, 2.0]), Spread { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(Spread::of(vec![5.0]), Spread { median: 5.0, min: 5.0, max: 5.0 });
    }

    #[test]
    fn older_builds_have_other_names() {
        assert_eq!(Dialect::First.argument("cpu.load.jobs=5"), "cpu.0.load.jobs=5");
        assert_eq!(Dialect::First.argument("cpu.fill_jobs=5"), "cpu.fill_jobs=5");
        assert_eq!(Dialect::First.argument("l2.banks=4"), "l2.banks=4");
        assert_eq!(Dialect::Today.argument("cpu.load.jobs=5"), "cpu.load.jobs=5");
        assert_eq!(pointer("nandscape.result/1", "/gpu/0/ipc"), "/gpu/ipc");
        assert_eq!(pointer("nandscape.result/2", "/gpu/0/ipc"), "/gpu/0/ipc");
    }

    #[test]
    fn the_count_is_at_the_end_of_its_line() {
        let said = "==7== Events    : Ir\n==7== Collected : 10584004029\n==7==\n";
        assert_eq!(collected(said), Some(10_584_004_029));
        assert_eq!(collected("==7== Command: x\n"), None);
    }

    #[test]
    fn sizes_grow_and_are_used() {
        for piece in PIECES {
            assert!(piece.sizes[0] < piece.sizes[1]);
            let is_sized = |text: &str| text.contains("{}");
            assert!(is_sized(piece.workload) || piece.arguments.iter().any(|argument| is_sized(argument)));
        }
    }
}
