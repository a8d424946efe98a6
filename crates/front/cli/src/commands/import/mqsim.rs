//! `nandscape import mqsim`.

use super::deliver;
use crate::imported::{Pair, percent};
use crate::number;
use crate::output::{Fault, Files, refuse_no_place, write_whole};
use config::Diagnostic;
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
    /// Refuses what MQSim passes over, cuts or takes for something else than it says: keys that it does not know, numbers with something behind them or
    /// with more bits than it keeps, flags other than true or false. Without it they are read as MQSim reads them, and told
    #[arg(long)]
    strict: bool,
}

impl Args {
    /// Refuses to write over what is read, or two files into one.
    fn refuse_overlap(&self, scenarios: usize) -> Result<(), Fault> {
        let Some(out) = &self.out else { return Ok(()) };
        let files = Files::default().reads("DRIVE", &self.drive).writes("--out", Some(out));
        let files = match &self.workload {
            Some(workload) => files.reads_named("WORKLOAD", &workload.display().to_string()),
            None => files,
        };
        let jobs = |files: Files, number: usize| {
            files.writes(&format!("--out, for scenario {number},"), Some(&jobs_beside(out, number)))
        };
        (1..=scenarios).fold(files, jobs).apart()
    }
}

/// Refuses a pair with anything that MQSim does not take as it stands.
///
/// # Errors
/// All that is odd.
fn refuse_odd(scenario: &Scenario) -> Result<(), Diagnostic> {
    let mut odd = scenario.odd.iter().cloned();
    odd.next().map_or(Ok(()), |first| Err(first.also(odd)))
}

/// Writes the system and the jobs; what became of each setting goes to standard error.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
    }
    let pair = Pair::read(&args.drive, args.workload.as_deref())?;
    let scenario = pair.scenario(args.scenario, &[])?;
    if args.strict {
        refuse_odd(&scenario)?;
    }
    let mut others = Vec::new();
    for number in 1..=pair.scenarios() {
        others.push((number, pair.scenario(number, &[])?));
    }
    args.refuse_overlap(others.len())?;
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
    tell!("{}", system.report(true).trim_end());
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
