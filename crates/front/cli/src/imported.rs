//! Configurations of MQSim, which `import` converts to files and `run` and `check` accept directly.

use crate::output::Fault;
use config::{Diagnostic, read_text};
use foreign::Imported;
use foreign::mqsim::{self, File, Scenario, Sort, Work, Workloads};
use machine::run::Plan;
use std::path::{Path, PathBuf};

/// Run, with notes and title.
pub(crate) struct Planned {
    /// Plan of the run.
    pub(crate) plan: Plan,
    /// Notes of an import.
    pub(crate) notes: Vec<String>,
    /// Title among several runs, such as `scenario 2 of 3`.
    pub(crate) title: Option<String>,
    /// Imported system, if it comes from a different simulator.
    imported: Option<Imported>,
}

/// Drive and workloads of MQSim.
pub(crate) struct Pair {
    drive: (String, String),
    workloads: Option<Workloads>,
}

impl Pair {
    /// Reads both files.
    ///
    /// # Errors
    /// A file cannot be read, or is not MQSim's.
    pub(crate) fn read(drive: &Path, workloads: Option<&Path>) -> Result<Pair, Diagnostic> {
        let workloads = match workloads {
            Some(path) => {
                let (name, text) = named(path)?;
                Some(mqsim::read_workloads(File { name: &name, text: &text })?)
            }
            None => None,
        };
        Ok(Pair { drive: named(drive)?, workloads })
    }

    /// Number of scenarios; 0 without workloads.
    pub(crate) fn scenarios(&self) -> usize {
        self.workloads.as_ref().map_or(0, Workloads::count)
    }

    /// Imports the drive for a scenario, counted from one, or without workloads. The spec must be buildable with these
    /// overrides.
    ///
    /// # Errors
    /// The drive, the scenario or an override is unusable.
    pub(crate) fn scenario(&self, number: usize, set: &[String]) -> Result<Scenario, Diagnostic> {
        let (name, text) = &self.drive;
        let file = File { name, text };
        let scenario = mqsim::import(file, self.workloads.as_ref().map(|workloads| (workloads, number)))?;
        buildable(&scenario.system, set)?;
        Ok(scenario)
    }
}

/// Refuses a system that cannot be built.
///
/// # Errors
/// The fault, placed at the setting it comes from or at an override.
pub(crate) fn buildable(system: &Imported, set: &[String]) -> Result<(), Diagnostic> {
    // The spec exists in no file: its faults are placed in the file that it comes from.
    let name = format!("what {} becomes", system.file);
    let loaded = machine::from_text(&name, &system.toml(), set);
    loaded.map(|_| ()).map_err(|fault| system.placed(fault, &name))
}

fn named(path: &Path) -> Result<(String, String), Diagnostic> {
    Ok((path.display().to_string(), read_text(path)?))
}

/// Detects by content which of MQSim's files a name denotes, if any.
fn sort_of(text: &str) -> Option<Sort> {
    let path = Path::new(text);
    (path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml")) && path.is_file())
        .then(|| read_text(path).ok())
        .flatten()
        .and_then(|content| mqsim::sort_of(&content))
}

/// Splits `workload.xml:scenario=2` into file and scenario.
fn chosen(text: &str) -> Result<(&str, Option<usize>), Diagnostic> {
    match text.rsplit_once(":scenario=") {
        Some((file, number)) if sort_of(file) == Some(Sort::Workload) => match number.parse() {
            Ok(number) => Ok((file, Some(number))),
            Err(_) => Err(Diagnostic::new(format!("`{number}` is not a scenario number"))
                .help(format!("for example `{file}:scenario=1`"))),
        },
        _ => Ok((text, None)),
    }
}

/// Expands a plan into runs: one, or one for each scenario of an MQSim file.
///
/// # Errors
/// An MQSim file is unusable.
pub(crate) fn planned(plan: Plan) -> Result<Vec<Planned>, Fault> {
    let mut files = Vec::new();
    for text in &plan.workloads {
        let (file, number) = chosen(text)?;
        if sort_of(file) == Some(Sort::Workload) {
            files.push((text.clone(), PathBuf::from(file), number));
        }
    }
    let is_drive = sort_of(&plan.system) == Some(Sort::Drive);
    match (&files[..], is_drive) {
        ([], false) => return Ok(vec![Planned { plan, notes: Vec::new(), title: None, imported: None }]),
        ([(text, ..), ..], false) => {
            let help = "give its drive too, `nandscape run ssdconfig.xml --workload workload.xml`, or import both: `nandscape import mqsim ssdconfig.xml workload.xml -o my.toml`";
            let what = format!(
                "{text} is an MQSim workload, whose flows depend on the drive that they were written for"
            );
            return Err(Diagnostic::new(what).help(help).into());
        }
        ([_, (text, ..), ..], true) => {
            return Err(Diagnostic::new(format!("{text} is a second MQSim workload file"))
                .help("a run takes one: give each in a run of its own")
                .into());
        }
        _ => {}
    }
    let pair = Pair::read(Path::new(&plan.system), files.first().map(|(_, path, _)| path.as_path()))?;
    let numbers = match files.first() {
        Some((.., Some(number))) => vec![*number],
        Some(_) => (1..=pair.scenarios()).collect(),
        None => vec![0],
    };
    let several = numbers.len() > 1;
    let one = |number: usize| {
        let scenario = pair.scenario(number, &plan.set)?;
        let notes = scenario.system.warnings();
        let mut one = Planned { plan: plan.clone(), notes, title: None, imported: None };
        one.plan.text = Some(scenario.system.toml());
        if let Some((given, path, _)) = files.first() {
            one.take(given, path, &scenario.works)?;
        }
        one.imported = Some(scenario.system);
        one.title = several.then(|| format!("scenario {number} of {}", pair.scenarios()));
        Ok(one)
    };
    numbers.into_iter().map(one).collect()
}

impl Planned {
    /// Moves a fault of an imported system into the file that it comes from.
    pub(crate) fn placed(&self, fault: Fault) -> Fault {
        match (fault, &self.imported) {
            (Fault::Input(fault), Some(system)) => Fault::Input(system.placed(fault, &self.plan.system)),
            (fault, _) => fault,
        }
    }

    /// Replaces the workload file by the flows of a scenario.
    fn take(&mut self, given: &str, file: &Path, works: &[Work]) -> Result<(), Diagnostic> {
        let mut workloads = Vec::new();
        for text in &self.plan.workloads {
            if text == given {
                for work in works {
                    workloads.push(self.notes_of(work, file)?);
                }
            } else {
                workloads.push(text.clone());
            }
        }
        let has_trace = works.iter().any(|work| matches!(work, Work::Trace { .. }));
        self.plan.workloads = workloads;
        if has_trace {
            let trace = &mut self.plan.trace;
            trace.format.get_or_insert_with(|| "mqsim".to_owned());
            for percent in works.iter().filter_map(percent) {
                self.notes.push(format!("Percentage_To_Be_Executed: the whole trace runs, not {percent} % of it; `--max-requests N` limits it"));
            }
        }
        Ok(())
    }

    /// Workload of a flow; a trace that is missing at its path is taken from the folder of the file.
    fn notes_of(&self, work: &Work, file: &Path) -> Result<String, Diagnostic> {
        let Work::Trace { path, .. } = work else { return Ok(work.workload()) };
        let beside = file.parent().unwrap_or(Path::new("")).join(path);
        let found = [PathBuf::from(path), beside].into_iter().find(|path| path.exists());
        let text = found.map(|path| path.display().to_string());
        text.ok_or_else(|| {
            Diagnostic::new(format!("the trace `{path}` of {} does not exist", file.display()))
                .help("relative paths start from the current folder, or from the folder of the file")
        })
    }
}

/// Share of a trace that is replayed, in percent, if not all.
pub(crate) fn percent(work: &Work) -> Option<u64> {
    match work {
        Work::Trace { percent, .. } if *percent < 100 => Some(*percent),
        _ => None,
    }
}
