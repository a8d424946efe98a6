//! `nandscape import mqsim | simplessd | fio-json`.

use crate::imported::{Pair, buildable, percent};
use crate::options;
use crate::output::{Fault, Files, print, refuse_no_place, write_whole};
use crate::results::bytes;
use clap::Subcommand;
use config::Diagnostic;
use foreign::mqsim::{Scenario, Work, job_file};
use std::path::{Path, PathBuf};

/// What to bring in.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// MQSim's ssdconfig.xml, with its workload.xml, as a system and fio jobs; says which settings are carried, which mean something else here, which are bugs there
    Mqsim(MqsimArgs),
    /// SimpleSSD's configuration (.cfg or .xml) as a system; reported alike
    Simplessd(SimplessdArgs),
    /// What fio measured (--output-format=json or json+) as a result document, for `diff`, `report` and Python
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

/// What to import.
#[derive(clap::Args)]
pub(crate) struct MqsimArgs {
    /// Its drive: ssdconfig.xml
    drive: PathBuf,
    /// Its flows: workload.xml
    workload: Option<PathBuf>,
    /// The system to write, standard output if left out; the jobs of each scenario go beside it (my.scenario-1.fio)
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The scenario that the drive is written for, counted from 1: its flows say how many queues there are, what is buffered, and how much is full before a run
    #[arg(long, value_name = "N", default_value_t = 1, requires = "workload", value_parser = options::count_in_memory)]
    scenario: usize,
    /// Refuses what MQSim passes over, cuts or takes for something else than it says: keys that it does not know, numbers with something behind them or
    /// with more bits than it keeps, flags other than true or false. Without it they are read as MQSim reads them, and told
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

/// Refuses a pair with anything that MQSim does not take as it stands.
///
/// # Errors
/// All that is odd.
fn refuse_odd(scenario: &Scenario) -> Result<(), Diagnostic> {
    let mut odd = scenario.odd.iter().cloned();
    odd.next().map_or(Ok(()), |first| Err(first.also(odd)))
}

/// Writes the system and the jobs; what became of each setting goes to standard error.
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

/// What to import.
#[derive(clap::Args)]
pub(crate) struct SimplessdArgs {
    /// Its configuration: sections with keys (branch 2.0), or XML (branch 2.1)
    file: PathBuf,
    /// The system to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the system; what became of each setting goes to standard error.
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

/// What to import.
#[derive(clap::Args)]
pub(crate) struct FioJsonArgs {
    /// What fio wrote with --output-format=json or json+, of one job or several
    file: PathBuf,
    /// The result document to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the document.
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
