//! How a run's result is printed.

use config::Diagnostic;
use foreign::fio::{Job, job_of_inline, jobs_of_file};
use machine::plan::workloads::{WORKLOADS, part_and_workload};
use machine::result::{Document, human};
use machine::run::Plan;
use std::path::Path;

/// A form that a result is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// For people.
    Text,
    /// The document.
    Json,
    /// As fio prints its own, json+.
    Fio,
}

/// The name of the form that is fio's; no format of traces has it.
const FIO: &str = "fio";

impl Printed {
    /// What options say: `--json`, `--output-format`, and `--format fio`, which names no format of traces and is taken out of the plan.
    ///
    /// # Errors
    /// Options that want different forms.
    pub(crate) fn of(json: bool, format: Option<&str>, plan: &mut Plan) -> Result<Printed, Diagnostic> {
        let mut wanted = Vec::new();
        if json {
            wanted.push(("--json", Printed::Json));
        }
        match format {
            Some("text") => wanted.push(("--output-format", Printed::Text)),
            Some("json") => wanted.push(("--output-format", Printed::Json)),
            Some(_) => wanted.push(("--output-format", Printed::Fio)),
            None => {}
        }
        if plan.trace.format.as_deref() == Some(FIO) {
            plan.trace.format = None;
            wanted.push(("--format fio", Printed::Fio));
        }
        match &wanted[..] {
            [] => Ok(Printed::Text),
            [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => Ok(*first),
            several => {
                let options: Vec<&str> = several.iter().map(|(option, _)| *option).collect();
                Err(Diagnostic::new(format!("{} want different forms of one result", options.join(" and ")))
                    .help("give one of them"))
            }
        }
    }

    /// The text of a result.
    pub(crate) fn text(self, document: &Document, plan: &Plan) -> String {
        match self {
            Printed::Text => human(document),
            Printed::Json => document.to_json(),
            Printed::Fio => {
                // A document is JSON: reading and writing it cannot fail.
                let value = serde_json::from_str(&document.to_json()).unwrap_or_default();
                serde_json::to_string_pretty(&foreign::fio::print(&value, &jobs(plan))).unwrap_or_default()
            }
        }
    }
}

/// The jobs that workloads are, as far as they are fio's.
fn jobs(plan: &Plan) -> Vec<Job> {
    let of = |text: &String| {
        let text = part_and_workload(text).map_or(text.as_str(), |(_, workload)| workload);
        let shipped = WORKLOADS.iter().find(|(name, ..)| *name == text).map(|(.., job)| *job);
        match shipped.or_else(|| text.starts_with("fio:").then_some(text)) {
            Some(inline) => vec![job_of_inline(inline)],
            None if Path::new(text).extension().is_some_and(|ending| ending == "fio" || ending == "job") => {
                config::read_text(Path::new(text)).map(|text| jobs_of_file(&text)).unwrap_or_default()
            }
            None => Vec::new(),
        }
    };
    plan.workloads.iter().flat_map(of).collect()
}
