//! MQSim (Tavakkol et al., FAST 2018): imports its `ssdconfig.xml` as a system, its `workload.xml` as jobs and traces.

mod drive;
mod jobs;
mod lexical;
mod settings;

pub use jobs::{Work, job_file};

use crate::notes::Imported;
use crate::setting::{Setting, Values, shorten, unless};
use crate::xml::{Xml, cleaned, elements};
use config::Diagnostic;
use drive::{Flow, Flows};
use roxmltree::Node;

/// Root element of a drive file.
const DRIVE: &str = "Execution_Parameter_Set";
/// Root element of a workload file.
const WORKLOAD: &str = "MQSim_IO_Scenarios";
const SCENARIO: &str = "IO_Scenario";
const SYNTHETIC: &str = "IO_Flow_Parameter_Set_Synthetic";
const TRACE: &str = "IO_Flow_Parameter_Set_Trace_Based";
/// Maximum number of flows in a scenario, and of scenarios in a file.
const MOST: usize = 1024;

/// File with its name and text.
#[derive(Clone, Copy, Debug)]
pub struct File<'t> {
    /// Name of the file.
    pub name: &'t str,
    /// Text of the file.
    pub text: &'t str,
}

/// Kind of an MQSim file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Drive file.
    Drive,
    /// Workload file.
    Workload,
}

/// Detects the kind of an MQSim file; `None` for any other file.
pub fn sort_of(text: &str) -> Option<Sort> {
    let at = |root: &str| text.find(&format!("<{root}"));
    match (at(DRIVE), at(WORKLOAD)) {
        (Some(drive), other) if other.is_none_or(|other| drive < other) => Some(Sort::Drive),
        (_, Some(_)) => Some(Sort::Workload),
        _ => None,
    }
}

/// Scenario: a drive configured for its flows, and the flows.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Imported drive.
    pub system: Imported,
    /// Flows; empty for a drive without workloads.
    pub works: Vec<Work>,
    /// Settings that MQSim ignores, truncates or misreads, each with its place; also listed among the remarks.
    pub odd: Vec<Diagnostic>,
}

/// Workload file with its scenarios.
pub struct Workloads {
    file: String,
    scenarios: Vec<Flows>,
    odd: Vec<Diagnostic>,
}

impl Workloads {
    /// Number of scenarios.
    pub fn count(&self) -> usize {
        self.scenarios.len()
    }
}

/// Imports a drive, for a scenario of a workload file (counted from one) if given.
///
/// # Errors
/// The file is not MQSim's, a value is not allowed for its setting, or the scenario does not exist.
pub fn import(drive: File<'_>, workloads: Option<(&Workloads, usize)>) -> Result<Scenario, Diagnostic> {
    let (values, mut odd) = read_drive(drive)?;
    let flows = match workloads {
        Some((file, number)) => {
            let wrong = || {
                let help = format!("scenarios count from 1 to {}", file.count());
                Diagnostic::new(format!("{} has no scenario {number}", file.file)).help(help)
            };
            let mut flows = file.scenarios.get(number.wrapping_sub(1)).ok_or_else(wrong)?.clone();
            flows.place(&values)?;
            Some(flows)
        }
        None => None,
    };
    let mut remarks: Vec<String> = odd.iter().map(|odd| remark("line", odd)).collect();
    if let Some((file, _)) = workloads {
        remarks.extend(file.odd.iter().map(|odd| remark(&format!("{}, line", file.file), odd)));
        odd.extend(file.odd.iter().cloned());
    }
    let keys = drive::keys(&values, flows.as_ref(), &mut remarks);
    let mut works = Vec::new();
    for (number, flow) in flows.iter().flat_map(|flows| &flows.all).enumerate() {
        works.push(jobs::work(flow, number, values.whole("IO_Queue_Depth"), &mut remarks)?);
    }
    let mut system = Imported {
        tool: "MQSim",
        file: drive.name.to_owned(),
        inherits: "mqsim-default",
        description: format!("MQSim drive of {}", drive.name),
        keys,
        told: Vec::new(),
        remarks,
        usage: Vec::new(),
        defaulted: Vec::new(),
        places: Vec::new(),
    };
    system.tell(&values);
    // A setting of several flows is reported once.
    for flow in flows.iter().flat_map(|flows| &flows.all) {
        let known: Vec<&str> = system.told.iter().map(|told| told.name).collect();
        let mut of_flow = system.clone();
        of_flow.told.clear();
        of_flow.tell(&flow.values);
        of_flow.told.retain(|told| !known.contains(&told.name));
        system.told.extend(of_flow.told);
        system.told.sort_by_key(|told| told.class);
    }
    Ok(Scenario { system, works, odd })
}

/// Formats an oddity of a file as a line of remarks.
fn remark(line: &str, odd: &Diagnostic) -> String {
    let number = odd.place.as_ref().map_or(0, |place| place.line);
    let nearest = odd.nearest.iter().map(|nearest| format!("; did you mean `{nearest}`?"));
    format!("{line} {number}: {}{}", odd.what, nearest.collect::<String>())
}

fn read_drive(file: File<'_>) -> Result<(Values, Vec<Diagnostic>), Diagnostic> {
    let text = cleaned(file.text);
    let xml = rooted(File { text: &text, ..file }, DRIVE)?;
    let mut values = Values::new(&[settings::HOST, settings::DEVICE, settings::FLASH]);
    let mut reader = Reader::new(&xml);
    for set in elements(xml.root()) {
        match set.tag_name().name() {
            "Host_Parameter_Set" => reader.set(set, settings::HOST, &mut values),
            "Device_Parameter_Set" => {
                reader.set(set, settings::DEVICE, &mut values);
                for inner in elements(set).filter(|inner| inner.has_tag_name("Flash_Parameter_Set")) {
                    reader.set(inner, settings::FLASH, &mut values);
                }
            }
            other => reader.pass_over(set, other, &["Host_Parameter_Set", "Device_Parameter_Set"]),
        }
    }
    reader.end(values)
}

/// Reads a workload file.
///
/// # Errors
/// Faults of [`import`].
pub fn read_workloads(file: File<'_>) -> Result<Workloads, Diagnostic> {
    let text = cleaned(file.text);
    let xml = rooted(File { text: &text, ..file }, WORKLOAD)?;
    let mut scenarios = Vec::new();
    let mut reader = Reader::new(&xml);
    for node in elements(xml.root()).take(MOST) {
        if !node.has_tag_name(SCENARIO) {
            reader.pass_over(node, node.tag_name().name(), &[SCENARIO]);
            continue;
        }
        let mut all = Vec::new();
        for node in elements(node).take(MOST) {
            let own = match node.tag_name().name() {
                SYNTHETIC => settings::SYNTHETIC,
                TRACE => settings::TRACE,
                other => {
                    let what = format!("<{other}> is not a flow; MQSim reads it as one without settings");
                    let fault = Diagnostic::new(what).at(xml.place(node));
                    reader.faults.push(fault.allowed(other, [SYNTHETIC, TRACE]));
                    continue;
                }
            };
            let mut values = Values::new(&[settings::BOTH, own]);
            for setting in elements(node) {
                reader.one(setting, &mut values);
            }
            let place = xml.place(node);
            all.push(Flow { values, is_trace: node.has_tag_name(TRACE), place, first: 0, bytes: 0 });
        }
        if all.is_empty() && reader.faults.is_empty() {
            reader.faults.push(Diagnostic::new("the scenario has no flow").at(xml.place(node)));
        }
        scenarios.push(Flows { all });
    }
    if scenarios.is_empty() && reader.faults.is_empty() {
        let help = "MQSim would run built-in workloads; give each scenario an <IO_Scenario>";
        reader.faults.push(Diagnostic::new(format!("{} has no scenario", file.name)).help(help));
    }
    let (scenarios, odd) = reader.end(scenarios)?;
    Ok(Workloads { file: file.name.to_owned(), scenarios, odd })
}

/// Parses the file, if its root is the right one.
fn rooted<'t>(file: File<'t>, root: &str) -> Result<Xml<'t>, Diagnostic> {
    let xml = Xml::read(file.name, file.text)?;
    let found = xml.root().tag_name().name();
    if found == root {
        return Ok(xml);
    }
    let help = match found {
        DRIVE => "this is an MQSim drive: `nandscape import mqsim ssdconfig.xml workload.xml` takes it first"
            .to_owned(),
        WORKLOAD => {
            "these are MQSim workloads: `nandscape import mqsim ssdconfig.xml workload.xml` takes them second"
                .to_owned()
        }
        "simplessd" => "this is a SimpleSSD file: `nandscape import simplessd FILE`".to_owned(),
        _ => format!("its root must be <{root}>"),
    };
    let what = format!("{} is not the MQSim file expected here: its root is <{found}>", file.name);
    Err(Diagnostic::new(what).at(xml.place(xml.root())).help(help))
}

/// Reader of settings from a file.
struct Reader<'x, 't> {
    xml: &'x Xml<'t>,
    faults: Vec<Diagnostic>,
    /// Texts that MQSim ignores, truncates or misreads.
    odd: Vec<Diagnostic>,
}

impl<'x, 't> Reader<'x, 't> {
    fn new(xml: &'x Xml<'t>) -> Reader<'x, 't> {
        Reader { xml, faults: Vec::new(), odd: Vec::new() }
    }

    /// Ends reading; returns the value with all oddities.
    fn end<T>(self, all: T) -> Result<(T, Vec<Diagnostic>), Diagnostic> {
        let Reader { faults, mut odd, .. } = self;
        shorten(&mut odd);
        unless((all, odd), faults)
    }

    fn pass_over(&mut self, node: Node<'_, '_>, found: &str, allowed: &[&'static str]) {
        let what = format!("<{found}> is not an element that MQSim reads here: it is ignored, as in MQSim");
        self.odd.push(Diagnostic::new(what).at(self.xml.place(node)).allowed(found, allowed.iter().copied()));
    }

    /// Reads the settings of a table from an element; those of a different table are ignored, as in MQSim.
    fn set(&mut self, set: Node<'_, '_>, table: &[Setting], values: &mut Values) {
        for node in elements(set).filter(|node| !node.has_tag_name("Flash_Parameter_Set")) {
            let name = node.tag_name().name();
            let elsewhere =
                !table.iter().any(|one| one.name == name) && values.settings().any(|one| one.name == name);
            if elsewhere {
                let set = set.tag_name().name();
                let what = format!("`{name}` is in <{set}>, where MQSim ignores it: it is not read");
                let help = "move it into its own set, or remove it";
                self.odd.push(Diagnostic::new(what).at(self.xml.place(node)).help(help));
            } else {
                self.one(node, values);
            }
        }
    }

    fn one(&mut self, node: Node<'_, '_>, values: &mut Values) {
        let (name, place) = (node.tag_name().name(), self.xml.place(node));
        let Some(setting) = values.settings().find(|one| one.name == name) else {
            let names = values.settings().map(|one| one.name);
            let nearest = config::diag::nearest(name, names).map(str::to_owned);
            let what = format!("`{name}` is not a setting of MQSim: it is ignored, as in MQSim");
            let fault = Diagnostic { nearest, ..Diagnostic::new(what) };
            self.odd.push(fault.at(place).help("correct the name, or remove it"));
            return;
        };
        let raw = node.text().unwrap_or_default();
        let taken = match lexical::take(setting, raw) {
            Ok(taken) => taken,
            Err(fault) => {
                self.faults.push(fault.at(place));
                return;
            }
        };
        if values.forget(name) {
            let what = format!("`{name}` is given twice: the last one counts, as in MQSim");
            self.odd.push(Diagnostic::new(what).at(place.clone()).help("remove the other"));
        }
        let read = values.take("MQSim", name, &taken.text, &place);
        match (read, taken.odd) {
            (Err(fault), Some(odd)) => self.faults.push(fault.help(odd)),
            (Err(fault), None) => self.faults.push(fault),
            (Ok(()), Some(odd)) => {
                let what = format!("`{name}` is `{}`: {odd}", raw.trim());
                self.odd.push(Diagnostic::new(what).at(place));
            }
            (Ok(()), None) => {}
        }
    }
}

#[cfg(test)]
mod tests;
