//! `nandscape import mqsim`.

use super::deliver;
use crate::imported::{Pair, percent};
use crate::number;
use crate::output::{Fault, refuse_no_place, write_whole};
use foreign::mqsim::{Scenario, Work, job_file};
use std::path::{Path, PathBuf};

/// What to import.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its drive: ssdconfig.xml
    drive: PathBuf,
    /// Its flows: workload.xml
    workload: Option<PathBuf>,
    /// The system to write, standard output if left out; the jobs of each scenario go beside it (my.scenario-1.fio)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The scenario that the drive is written for, counted from 1: its flows say how many queues there are, what is buffered, and how much is full before a run
    #[arg(long, value_name = "N", default_value_t = 1, requires = "workload", value_parser = number::count)]
    scenario: usize,
}

/// Writes the system and the jobs; what became of each setting goes to standard error.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
    }
    let pair = Pair::read(&args.drive, args.workload.as_deref())?;
    let scenario = pair.scenario(args.scenario)?;
    let mut others = Vec::new();
    for number in 1..=pair.scenarios() {
        others.push((number, pair.scenario(number)?));
    }
    let mut system = scenario.system;
    for (number, other) in &others {
        let differ: Vec<&str> = other
            .system
            .keys
            .iter()
            .filter(|key| !system.keys.contains(key))
            .map(|key| key.path.as_str())
            .collect();
        if !differ.is_empty() {
            system.remarks.push(format!(
                "scenario {number} has another {}: `--scenario {number}` writes it",
                differ.join(", ")
            ));
        }
    }
    let file = args.out.as_ref().map_or("my.toml".to_owned(), |out| out.display().to_string());
    if others.is_empty() {
        system.usage.push(format!("nandscape run {file} --workload randread"));
    }
    for (number, other) in &others {
        let jobs = args.out.as_deref().map(|out| jobs_beside(out, *number));
        system.usage.push(format!("nandscape run {file} {}", workloads(other, jobs.as_deref())));
        if let (Some(jobs), Some(text)) = (jobs, job_file(&other.works)) {
            let head = format!(
                "# Scenario {number} of {}, for {file}\n",
                args.workload.as_deref().unwrap_or(Path::new("")).display()
            );
            write_whole(&jobs, format!("{head}{text}").as_bytes())?;
        }
    }
    deliver(args.out.as_deref(), &system.toml())?;
    eprintln!("{}", system.report(true).trim_end());
    Ok(true)
}

/// The job file of a scenario: `my.scenario-1.fio` beside `my.toml`.
fn jobs_beside(out: &Path, number: usize) -> PathBuf {
    out.with_extension(format!("scenario-{number}.fio"))
}

/// What a scenario gives to `run`.
fn workloads(scenario: &Scenario, jobs: Option<&Path>) -> String {
    let is_job = |work: &&Work| matches!(work, Work::Job { .. });
    let mut given: Vec<String> = match jobs {
        Some(jobs) if scenario.works.iter().any(|work| is_job(&work)) => {
            vec![format!("--workload {}", jobs.display())]
        }
        Some(_) => Vec::new(),
        None => scenario
            .works
            .iter()
            .filter(is_job)
            .map(|job| format!("--workload '{}'", job.workload()))
            .collect(),
    };
    let traces: Vec<&Work> = scenario.works.iter().filter(|work| !is_job(work)).collect();
    given.extend(traces.iter().map(|trace| format!("--workload {}", trace.workload())));
    if !traces.is_empty() {
        given.push("--format mqsim".to_owned());
    }
    if let Some(percent) = traces.iter().find_map(|trace| percent(trace)) {
        given.push(format!("--max-requests N   # {percent} % of the trace there"));
    }
    given.join(" ")
}
