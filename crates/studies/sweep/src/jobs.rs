//! Workloads of a sweep: paths of their files, options added to them, and the text of the reading options.

use config::{Diagnostic, Place, Resolved};
use machine::Warmup;
use machine::plan::workloads::{WORKLOADS, file_of, part_and_workload};
use requests::trace::{Remap, TraceOptions};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::str::FromStr;

/// One workload, or several that run at the same time.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a workload is a string, and several that run at the same time an array of strings"
)]
pub(super) enum Workload {
    One(String),
    Together(Vec<String>),
}

/// Workload that takes the options if the file names none.
const FIO: &str = "fio:";

/// Workloads of the runs: those that the file lists, or fio jobs defined entirely in `[workload]`.
///
/// # Errors
/// The file defines no workloads, or a workload does not take options.
pub(super) fn workloads(
    folder: &Path,
    listed: Option<&[Workload]>,
    options: &[String],
    resolved: &Resolved,
) -> Result<Vec<Vec<String>>, Diagnostic> {
    let Some(listed) = listed else {
        if options.is_empty() {
            return Err(resolved
                .diagnose(
                    "workloads",
                    "no workload: give `workloads` or a table [workload]",
                )
                .help(
                    "for example `workloads = [\"randread\"]`, or `[workload]` with fio options: `rw = \"randread\"`",
                ));
        }
        return Ok(vec![vec![FIO.to_owned()]]);
    };
    if listed.is_empty() {
        return Err(resolved.diagnose("workloads", "`workloads` is empty: it needs at least one workload"));
    }
    let found: Vec<Vec<String>> = listed.iter().map(|workload| located(folder, workload)).collect();
    for (n, together) in found.iter().enumerate().filter(|_| !options.is_empty()) {
        let place = format!("workloads.{n}");
        let refused = |what: String| {
            resolved
                .diagnose(&place, what)
                .help("set options of files in the files; for a job of several, use an fio job file")
        };
        let [text] = together.as_slice() else {
            return Err(refused(
                "options of [workload] cannot be added to several simultaneous workloads".into(),
            ));
        };
        if file_of(text).is_some() {
            return Err(refused(format!("options of [workload] cannot be added to the file {text}")));
        }
        if let Some(name) = options.iter().find(|name| has(text, name)) {
            return Err(refused(format!("`{name}` is given in `{text}` and in [workload]")));
        }
    }
    Ok(found)
}

/// Returns whether a workload already has an option.
fn has(text: &str, name: &str) -> bool {
    let text = spelt(text);
    let options = text.split_once(':').map_or("", |(_, options)| options);
    options.split(',').any(|option| option.split('=').next() == Some(name))
}

/// Expands a shipped workload to its job.
fn spelt(text: &str) -> String {
    let (part, bare) = part_and_workload(text).map_or((None, text), |(part, bare)| (Some(part), bare));
    let job = WORKLOADS.iter().find(|(name, ..)| *name == bare).map_or(bare, |(.., job)| *job);
    part.map_or_else(|| job.to_owned(), |part| format!("{part}={job}"))
}

/// Appends options to those of a workload.
pub(super) fn with_options(text: &str, options: &[(&str, String)]) -> String {
    if options.is_empty() {
        return text.to_owned();
    }
    let mut text = spelt(text);
    for (name, value) in options {
        let before = match text.split_once(':') {
            None => ":",
            Some((_, "")) => "",
            Some(_) => ",",
        };
        text += &format!("{before}{name}={value}");
    }
    text
}

fn located(folder: &Path, workload: &Workload) -> Vec<String> {
    let found = |text: &str| match file_of(text) {
        Some(_) if text.contains(['/', '\\', '.']) => all_beside(folder, text),
        _ => text.to_owned(),
    };
    let located = |text: &String| match part_and_workload(text) {
        Some((part, workload)) => format!("{part}={}", found(workload)),
        None => found(text),
    };
    match workload {
        Workload::One(text) => vec![located(text)],
        Workload::Together(texts) => texts.iter().map(located).collect(),
    }
}

/// Path of a file, or of every part of a trace.
fn all_beside(folder: &Path, text: &str) -> String {
    let whole = beside(folder, text);
    if let (false, Some(list)) = (Path::new(&whole).exists(), text.strip_prefix('@')) {
        return format!("@{}", beside(folder, list));
    }
    if Path::new(&whole).exists() || !text.contains('+') {
        return whole;
    }
    text.split('+').map(|part| beside(folder, part)).collect::<Vec<_>>().join("+")
}

/// System: a shipped one, or a file.
pub(super) fn system(folder: &Path, name: &str) -> String {
    let is_file = name.ends_with(".toml") || name.contains(['/', '\\']);
    if is_file { beside(folder, name) } else { name.to_owned() }
}

fn beside(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Reading options in the words of the file.
#[derive(Clone)]
pub(crate) struct Words {
    /// Start of the measured windows.
    pub(crate) warmup: Option<String>,
    /// Trace options.
    pub(crate) trace: TraceText,
}

/// Parses `5000` requests or `10ms` of simulated time.
///
/// # Errors
/// The text is neither.
pub fn warmup(text: &str) -> Result<Warmup, Diagnostic> {
    text.parse().map_err(|d: Diagnostic| d.help("--warmup takes a number of requests or a time"))
}

/// Trace options: the `[trace]` table of a sweep, and the options of the command line.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename = "TraceArgs", default, deny_unknown_fields)]
pub struct TraceText {
    /// Trace format; detected from content if left out.
    pub format: Option<String>,
    /// Columns of a table from left to right.
    pub columns: Option<String>,
    /// Unit of the trace's times.
    pub time_unit: Option<String>,
    /// Address unit of the trace, in bytes.
    pub sector: Option<u64>,
    /// Factor of every time.
    pub time_scale: Option<String>,
    /// Time of the first request that is read.
    pub start: Option<String>,
    /// Time from which on requests are dropped.
    pub end: Option<String>,
    /// Maximum number of requests read.
    pub max_requests: Option<u64>,
    /// True if malformed lines are skipped and counted.
    pub lenient: bool,
    /// Handling of requests beyond the device.
    pub remap: Option<String>,
    /// Time zero of several traces.
    pub align: Option<String>,
    /// Address spaces of several traces.
    pub volumes: Option<String>,
    /// blkparse event that marks a request.
    pub action: Option<String>,
    /// Number of requests buffered to sort an unsorted trace.
    pub sort_window: Option<usize>,
}

impl TraceText {
    /// Builds the reader's options; `remap` is the default handling of requests beyond the device.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let default = TraceOptions::default();
        Ok(TraceOptions {
            format: self.format.clone(),
            columns: self.columns.clone(),
            time_unit: parsed("--time-unit", self.time_unit.as_ref())?,
            sector: self.sector,
            time_scale: parsed("--time-scale", self.time_scale.as_ref())?.unwrap_or(default.time_scale),
            timed: default.timed,
            start: parsed("--start", self.start.as_ref())?,
            end: parsed("--end", self.end.as_ref())?,
            align: parsed("--align", self.align.as_ref())?.unwrap_or(default.align),
            volumes: parsed("--volumes", self.volumes.as_ref())?.unwrap_or(default.volumes),
            max_requests: self.max_requests,
            lenient: self.lenient,
            capacity: None,
            remap: parsed("--remap", self.remap.as_ref())?.unwrap_or(remap),
            action: parsed("--action", self.action.as_ref())?,
            sort_window: self.sort_window.unwrap_or(default.sort_window),
            others: programs::FILES,
        })
    }
}

/// Value of an option, if given.
fn parsed<T: FromStr<Err = Diagnostic>>(
    option: &str,
    text: Option<&String>,
) -> Result<Option<T>, Diagnostic> {
    let at = |text: &String| Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() };
    text.map(|text| text.parse().map_err(|fault: Diagnostic| fault.at(at(text)))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_stand_behind_those_of_the_workload() {
        let options = [("bs", "8k".to_owned()), ("iodepth", "4".to_owned())];
        assert_eq!(with_options("fio:", &options), "fio:bs=8k,iodepth=4");
        assert_eq!(with_options("fio:rw=read", &options), "fio:rw=read,bs=8k,iodepth=4");
        assert_eq!(with_options("drive=fio:rw=read", &options[..1]), "drive=fio:rw=read,bs=8k");
        assert_eq!(with_options("tatp", &[("size", "1GiB".into())]), "tatp:size=1GiB");
        assert_eq!(with_options("randread", &[]), "randread");
        let spelt = with_options("randread", &[("rate_iops", "5".into())]);
        assert!(spelt.starts_with("fio:rw=randread,") && spelt.ends_with(",rate_iops=5"), "{spelt}");
    }

    #[test]
    fn what_a_workload_says_itself_is_known() {
        assert!(has("randread", "iodepth") && has("fio:rw=read,bs=4k", "bs") && has("a=fio:bs=4k", "bs"));
        assert!(!has("fio:rw=read", "bs") && !has("tatp", "size"));
    }
}
