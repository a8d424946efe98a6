//! The workloads of a sweep: where their files are, what options make of them, and how runs are read in the words
//! of the user.

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
    expecting = "a workload is a text, and several that run at the same time an array of texts"
)]
pub(super) enum Workload {
    One(String),
    Together(Vec<String>),
}

/// What options are added to where a file names no workload.
const FIO: &str = "fio:";

/// The workloads of runs: those that the file lists, or jobs in fio's words of which all is said in `[workload]`.
///
/// # Errors
/// There are none, or options are to be put on what takes none.
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
                    "nothing is to be run: there is neither `workloads` nor a table [workload]",
                )
                .help(
                    "`workloads = [\"randread\"]`, or `[workload]` with fio's options: `rw = \"randread\"`",
                ));
        }
        return Ok(vec![vec![FIO.to_owned()]]);
    };
    if listed.is_empty() {
        return Err(resolved.diagnose("workloads", "`workloads` is empty: there is nothing to run"));
    }
    let found: Vec<Vec<String>> = listed.iter().map(|workload| located(folder, workload)).collect();
    for (n, together) in found.iter().enumerate().filter(|_| !options.is_empty()) {
        let place = format!("workloads.{n}");
        let refused = |what: String| {
            resolved
                .diagnose(&place, what)
                .help("options of files stand in the files; a job of several is an fio job file")
        };
        let [text] = together.as_slice() else {
            return Err(refused(
                "options of [workload] cannot be put on several workloads at the same time".into(),
            ));
        };
        if file_of(text).is_some() {
            return Err(refused(format!("options of [workload] cannot be put on the file {text}")));
        }
        if let Some(name) = options.iter().find(|name| has(text, name)) {
            return Err(refused(format!("`{name}` stands in `{text}` already, and in [workload]")));
        }
    }
    Ok(found)
}

/// Whether a workload has an option already.
fn has(text: &str, name: &str) -> bool {
    let text = spelt(text);
    let options = text.split_once(':').map_or("", |(_, options)| options);
    options.split(',').any(|option| option.split('=').next() == Some(name))
}

/// A shipped workload as the job that it stands for.
fn spelt(text: &str) -> String {
    let (part, bare) = part_and_workload(text).map_or((None, text), |(part, bare)| (Some(part), bare));
    let job = WORKLOADS.iter().find(|(name, ..)| *name == bare).map_or(bare, |(.., job)| *job);
    part.map_or_else(|| job.to_owned(), |part| format!("{part}={job}"))
}

/// A workload with options behind its own.
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

/// A file, or every part of a trace.
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

/// A system: a shipped one, or a file.
pub(super) fn system(folder: &Path, name: &str) -> String {
    let is_file = name.ends_with(".toml") || name.contains(['/', '\\']);
    if is_file { beside(folder, name) } else { name.to_owned() }
}

fn beside(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// How runs are read, as the file says it.
#[derive(Clone)]
pub(crate) struct Words {
    /// When the measured windows begin.
    pub(crate) warmup: Option<String>,
    /// Reading of traces.
    pub(crate) trace: TraceText,
}

/// `5000` requests or `10ms` of simulated time.
///
/// # Errors
/// It is neither.
pub fn warmup(text: &str) -> Result<Warmup, Diagnostic> {
    text.parse().map_err(|d: Diagnostic| d.help("--warmup takes a number of requests or a time"))
}

/// How traces are read: the `[trace]` table of a sweep, and the options of the command line.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename = "TraceArgs", default, deny_unknown_fields)]
pub struct TraceText {
    /// Trace format; recognised by content if left out.
    pub format: Option<String>,
    /// Columns of a table from left to right.
    pub columns: Option<String>,
    /// Unit of the trace's times.
    pub time_unit: Option<String>,
    /// Bytes of the trace's address unit.
    pub sector: Option<u64>,
    /// Factor of every time.
    pub time_scale: Option<String>,
    /// Time of the first request that is read.
    pub start: Option<String>,
    /// Time from which on requests are dropped.
    pub end: Option<String>,
    /// Most requests that are read.
    pub max_requests: Option<u64>,
    /// Whether bad lines are skipped and counted.
    pub lenient: bool,
    /// What happens to requests beyond the device.
    pub remap: Option<String>,
    /// Time zero of several traces.
    pub align: Option<String>,
    /// Whether the volumes of traces have addresses of their own.
    pub volumes: Option<String>,
    /// The blkparse event that stands for a request.
    pub action: Option<String>,
    /// Requests held back to put an unsorted trace in order.
    pub sort_window: Option<usize>,
}

impl TraceText {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
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

/// The value of an option, if it is given.
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
