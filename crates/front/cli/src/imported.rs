//! Configurations of MQSim, which `import` writes as files and `run` and `check` take as they are.

use crate::output::Fault;
use config::{Diagnostic, read_text};
use foreign::Imported;
use foreign::mqsim::{self, File, Scenario, Sort, Work, Workloads};
use machine::run::Plan;
use std::path::{Path, PathBuf};

/// What a run is, and what must be said of it besides.
pub(crate) struct Planned {
    /// What runs.
    pub(crate) plan: Plan,
    /// What an import has to say.
    pub(crate) notes: Vec<String>,
    /// Its name among several, such as `scenario 2 of 3`.
    pub(crate) title: Option<String>,
    /// The system, if it is one of another simulator.
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
    /// One that cannot be read, or is not MQSim's.
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

    /// How many scenarios there are; none without workloads.
    pub(crate) fn scenarios(&self) -> usize {
        self.workloads.as_ref().map_or(0, Workloads::count)
    }

    /// The drive as it is for a scenario, counted from one, or by itself; a spec that can be built with these
    /// overrides.
    ///
    /// # Errors
    /// Whatever of it is unusable.
    pub(crate) fn scenario(&self, number: usize, set: &[String]) -> Result<Scenario, Diagnostic> {
        let (name, text) = &self.drive;
        let file = File { name, text };
        let scenario = mqsim::import(file, self.workloads.as_ref().map(|workloads| (workloads, number)))?;
        buildable(&scenario.system, set)?;
        Ok(scenario)
    }
}

/// Refuses what could not be built.
///
/// # Errors
/// What is wrong with it, where the file says what it comes from, or at an override.
pub(crate) fn buildable(system: &Imported, set: &[String]) -> Result<(), Diagnostic> {
    // No file has this name: places in the spec are those of the file that it comes from.
    let name = format!("what {} becomes", system.file);
    let loaded = machine::from_text(&name, &system.toml(), set);
    loaded.map(|_| ()).map_err(|fault| system.placed(fault, &name))
}

fn named(path: &Path) -> Result<(String, String), Diagnostic> {
    Ok((path.display().to_string(), read_text(path)?))
}

/// Which of MQSim's files a name means, if it is one: by its content.
fn sort_of(text: &str) -> Option<Sort> {
    let path = Path::new(text);
    (path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml")) && path.is_file())
        .then(|| read_text(path).ok())
        .flatten()
        .and_then(|content| mqsim::sort_of(&content))
}

/// The file and the scenario of `workload.xml:scenario=2`.
fn chosen(text: &str) -> Result<(&str, Option<usize>), Diagnostic> {
    match text.rsplit_once(":scenario=") {
        Some((file, number)) if sort_of(file) == Some(Sort::Workload) => match number.parse() {
            Ok(number) => Ok((file, Some(number))),
            Err(_) => Err(Diagnostic::new(format!("`{number}` is no number of a scenario"))
                .help(format!("as in `{file}:scenario=1`"))),
        },
        _ => Ok((text, None)),
    }
}

/// The runs that a plan means: one, or one for each scenario of MQSim's.
///
/// # Errors
/// Files of MQSim that cannot be used.
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
                "{text} is MQSim's, and what its flows mean depends on the drive that they were written for"
            );
            return Err(Diagnostic::new(what).help(help).into());
        }
        ([_, (text, ..), ..], true) => {
            return Err(Diagnostic::new(format!("{text} is a second file of MQSim's workloads"))
                .help("one run has one: give each by itself")
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
    /// A fault of the system that was imported stands in the file that it comes from.
    pub(crate) fn placed(&self, fault: Fault) -> Fault {
        match (fault, &self.imported) {
            (Fault::Input(fault), Some(system)) => Fault::Input(system.placed(fault, &self.plan.system)),
            (fault, _) => fault,
        }
    }

    /// Puts the flows of a scenario in the place of the file of workloads.
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
                self.notes.push(format!("Percentage_To_Be_Executed: the whole trace runs, not {percent} % of it: `--max-requests N` ends it earlier"));
            }
        }
        Ok(())
    }

    /// The workload of a flow; a trace that is not where its path says lies beside the file.
    fn notes_of(&self, work: &Work, file: &Path) -> Result<String, Diagnostic> {
        let Work::Trace { path, .. } = work else { return Ok(work.workload()) };
        let beside = file.parent().unwrap_or(Path::new("")).join(path);
        let found = [PathBuf::from(path), beside].into_iter().find(|path| path.exists());
        let text = found.map(|path| path.display().to_string());
        text.ok_or_else(|| {
            Diagnostic::new(format!("the trace `{path}` of {} is not there", file.display()))
                .help("a path in it is relative to the folder that the command runs in, or to the file")
        })
    }
}

/// The share of a trace that is replayed, if it is not all.
pub(crate) fn percent(work: &Work) -> Option<u64> {
    match work {
        Work::Trace { percent, .. } if *percent < 100 => Some(*percent),
        _ => None,
    }
}
