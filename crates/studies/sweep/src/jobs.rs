//! The workloads of a sweep: where their files are, and what options make of them.

use config::{Diagnostic, Resolved};
use machine::plan::workloads::{WORKLOADS, file_of, part_and_workload};
use serde::Deserialize;
use std::path::Path;

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
