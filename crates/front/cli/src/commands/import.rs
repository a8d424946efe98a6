//! `nandscape import mqsim | simplessd | fio-json`.

use crate::imported::{Pair, buildable, percent};
use crate::options;
use crate::output::{Fault, Files, print, refuse_no_place, write_whole};
use crate::results::bytes;
use clap::Subcommand;
use config::Diagnostic;
use foreign::mqsim::{Scenario, Work, job_file};
use std::path::{Path, PathBuf};

/// Arguments of `import`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Import MQSim's ssdconfig.xml, and its workload.xml as fio jobs; report settings carried over, settings that
    /// differ, and bugs there
    Mqsim(MqsimArgs),
    /// Import a SimpleSSD configuration (.cfg or .xml) as a system, with a report of its settings
    Simplessd(SimplessdArgs),
    /// Convert fio output (--output-format=json or json+) to a result document for `diff`, `report` and Python
    FioJson(FioJsonArgs),
}

/// Imports.
///
/// # Errors
/// A file that cannot be used.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    match &args.command {
        Command::Mqsim(args) => import_mqsim(args),
        Command::Simplessd(args) => import_simplessd(args),
        Command::FioJson(args) => import_fio_json(args),
    }
}

/// Writes a text to its file, or to standard output.
fn deliver(out: Option<&Path>, text: &str) -> Result<(), Fault> {
    match out {
        Some(path) => write_whole(path, format!("{}\n", text.trim_end()).as_bytes()),
        None => print(text.trim_end()),
    }
}

/// Arguments of `import mqsim`.
#[derive(clap::Args)]
pub(crate) struct MqsimArgs {
    /// Drive configuration: ssdconfig.xml
    drive: PathBuf,
    /// Workload definition: workload.xml
    workload: Option<PathBuf>,
    /// System file to write, standard output if left out; jobs of each scenario are written beside it
    /// (my.scenario-1.fio)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Scenario, counted from 1, whose flows decide the drive's queues, buffering and initial occupancy
    #[arg(long, value_name = "N", default_value_t = 1, requires = "workload", value_parser = options::count_in_memory)]
    scenario: usize,
    /// Refuse what MQSim ignores, truncates or misreads: unknown keys, malformed or too large numbers, bad flags;
    /// otherwise read as by MQSim and reported
    #[arg(long)]
    strict: bool,
}

impl MqsimArgs {
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

/// Refuses a pair with anything that MQSim reads differently from how it is written.
///
/// # Errors
/// All such settings.
fn refuse_odd(scenario: &Scenario) -> Result<(), Diagnostic> {
    let mut odd = scenario.odd.iter().cloned();
    odd.next().map_or(Ok(()), |first| Err(first.also(odd)))
}

/// Writes the system and the jobs; the report on each setting goes to standard error.
pub(crate) fn import_mqsim(args: &MqsimArgs) -> Result<bool, Fault> {
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
                "scenario {number} differs in {}: `--scenario {number}` writes it",
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

/// Options of `run` that start a scenario.
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
        given.push(format!("--max-requests N   # MQSim runs {percent} % of the trace"));
    }
    given.join(" ")
}

/// Arguments of `import simplessd`.
#[derive(clap::Args)]
pub(crate) struct SimplessdArgs {
    /// SimpleSSD configuration: sections with keys (branch 2.0), or XML (branch 2.1)
    file: PathBuf,
    /// System file to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the system; the report on each setting goes to standard error.
pub(crate) fn import_simplessd(args: &SimplessdArgs) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        Files::default().reads("FILE", &args.file).writes("--out", Some(out)).apart()?;
    }
    let name = args.file.display().to_string();
    let mut system = foreign::simplessd::import(&name, &config::read_text(&args.file)?)?;
    let file = args.out.as_ref().map_or("my.toml".to_owned(), |out| out.display().to_string());
    system.usage.push(format!("nandscape run {file} --workload randread"));
    buildable(&system, &[])?;
    deliver(args.out.as_deref(), &system.toml())?;
    tell!("{}", system.report(true).trim_end());
    Ok(true)
}

/// Arguments of `import fio-json`.
#[derive(clap::Args)]
pub(crate) struct FioJsonArgs {
    /// fio output (--output-format=json or json+) of one or more jobs
    file: PathBuf,
    /// Result document to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the result document.
pub(crate) fn import_fio_json(args: &FioJsonArgs) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        Files::default().reads("FILE", &args.file).writes("--out", Some(out)).apart()?;
    }
    let document = foreign::fio::read(&args.file.display().to_string(), &bytes(&args.file)?)?;
    for warning in document["warnings"].as_array().into_iter().flatten() {
        tell!("note: {}", warning.as_str().unwrap_or_default());
    }
    // Text and numbers: serialising cannot fail.
    deliver(args.out.as_deref(), &serde_json::to_string_pretty(&document).unwrap_or_default())?;
    Ok(true)
}
