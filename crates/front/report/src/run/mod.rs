//! Page of one run.

mod diagram;
mod dies;
mod headline;
mod latency;
mod machine;
mod parts;
mod series;
mod spec;
mod tail;

pub(crate) use headline::headlines;
pub(crate) use latency::{KINDS, curves, kinds_of, percentile_curve, share_bars, tail_chart};
pub use machine::{Wire, wires};
pub(crate) use spec::word;

use crate::number::{Unit, shown};
use crate::page::{Page, Text, list};
use crate::read::{Run, number, text};
use serde_json::Value;
use std::collections::BTreeMap;

/// Shipped system that a document's run started from.
#[derive(Clone, Debug, Default)]
pub struct Shipped {
    /// Resolved spec: values that differ from it were set for the run.
    pub spec: Value,
    /// Source of each value, by key.
    pub sources: BTreeMap<String, String>,
}

/// Renders the page of a run. `shipped` is the system of its name, if known.
pub fn run(run: &Run, shipped: Option<&Shipped>) -> String {
    let document = &run.document;
    let mut page = Page::new(format!("{} – nandscape", text(document, "system")), lead(run));
    let trouble = headline::trouble(document);
    page.section("Attention", trouble);
    page.section("Summary", headline::html(document));
    page.section("Latency", latency::html(document));
    page.section("Where time goes", latency::breakdown(document) + &tail::html(document));
    page.section("Over time", series::html(document));
    page.section("The machine", machine::html(document));
    page.section("Flash", dies::html(document));
    page.section("Processors, hosts and accelerators", parts::html(document));
    page.section("Energy", parts::energy(document));
    page.section("The spec", spec::html(document, shipped));
    page.section("Checks and cost", headline::all_checks(document));
    page.section("Repeat this run", spec::command(document, shipped));
    page.html()
}

/// Introduction below the title.
fn lead(run: &Run) -> String {
    let document = &run.document;
    let workloads = crate::read::items(document, "workload");
    let description = text(document, "spec.description");
    let time = number(document, "simulated_ns").map_or("–".to_owned(), |ns| shown(ns, Unit::Ns));
    let seed = crate::read::at(document, "seed").map_or("–".to_owned(), Value::to_string);
    format!(
        "<p>{}</p>{}<p class=\"facts\">{} of simulated time · seed {} · nandscape {} · {}</p>",
        Text(description),
        list(workloads.iter().filter_map(Value::as_str)),
        Text(&time),
        Text(&seed),
        Text(text(document, "version")),
        Text(&run.name),
    )
}
