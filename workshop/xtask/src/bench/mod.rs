//! `cargo xtask bench`: the binary of packages (without the counts that lay theirs out), as a process, on fixed workloads, against targets and against MQSim.
//!
//! Figures are CPU time, because other work shares the machine. Pairs run one after the other and give ratios.

mod cases;
mod dialect;
mod instructions;
mod mqsim;
mod process;
mod profiles;
mod report;
mod sample;
mod spread;
mod sweeps;

use crate::workspace;
use anyhow::{Result, bail};
use cases::{CASES, Case, Input};
use mqsim::Rival;
use report::{CaseReport, Pair};
use sample::Sample;
use spread::Spread;
use std::path::{Path, PathBuf};

/// Arguments of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the case of this name
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Also runs MQSim, in pairs: its binary, or the folder that holds it
    #[arg(long, value_name = "PATH")]
    mqsim: Option<PathBuf>,
    /// Also runs another build of nandscape, in pairs: its binary
    #[arg(long, value_name = "PATH")]
    against: Option<PathBuf>,
    /// Also runs each case with another value of a key, in pairs, as `sim.explain=false`: what something costs
    #[arg(long, value_name = "KEY=VALUE")]
    beside: Option<String>,
    /// Counts the instructions of both builds for the same short runs instead; needs Valgrind
    #[arg(long, requires = "against")]
    instructions: bool,
    /// Runs of each case
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    reps: u32,
    /// One JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// Measures and prints; false if a case could not be measured. A missed target is a ratio below 1, not a failure.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let (true, Some(other)) = (options.instructions, &options.against) {
        let binary = workspace::dist_binary()?;
        print!("{}", instructions::compare(&binary, other, options.only.as_deref())?);
        return Ok(true);
    }
    let cases = chosen(options.only.as_deref())?;
    let rival = options.mqsim.as_deref().map(mqsim::locate).transpose()?;
    let binary = workspace::dist_binary()?;
    let mut reports = Vec::new();
    for case in cases {
        eprintln!("{} …", case.name);
        let made = match case.input {
            Input::Profile(kernels) => Some((profiles::path(kernels), kernels)),
            _ => None,
        };
        if let Some((path, kernels)) = &made {
            profiles::write(path, *kernels)?;
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
            bail!("no case `{name}`; there are {}", names.join(", "))
        }
    }
}

/// What runs in turn with the binary.
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

/// CPU time of another build, or with another value of a key, over that of this one, run by run.
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

/// Ratios of the runs that followed each other; a run that failed stands for all of its side.
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
}
