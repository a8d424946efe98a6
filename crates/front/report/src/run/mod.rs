//! The page of one run.

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

/// What is known of a system beside a document of it.
#[derive(Clone, Debug, Default)]
pub struct Shipped {
    /// Its resolved spec: what differs from it was set for the run.
    pub spec: Value,
    /// Where values come from, in words, by key.
    pub sources: BTreeMap<String, String>,
}

/// The page of a run. `shipped` is the system that its name stands for, if that is known.
pub fn run(run: &Run, shipped: Option<&Shipped>) -> String {
    let document = &run.document;
    let mut page = Page::new(format!("{} – nandscape", text(document, "system")), lead(run));
    let trouble = headline::trouble(document);
    page.section("To be seen first", trouble);
    page.section("In short", headline::html(document));
    page.section("Latency", latency::html(document));
    page.section("Where time goes", latency::breakdown(document) + &tail::html(document));
    page.section("Over time", series::html(document));
    page.section("The machine", machine::html(document));
    page.section("Flash", dies::html(document));
    page.section("Processors, hosts and accelerators", parts::html(document));
    page.section("Energy", parts::energy(document));
    page.section("The spec", spec::html(document, shipped));
    page.section("Checks, and what the run took", headline::all_checks(document));
    page.section("The same run again", spec::command(document, shipped));
    page.html()
}

/// What was run, below the title.
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
