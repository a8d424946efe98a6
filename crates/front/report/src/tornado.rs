//! The page of a sensitivity analysis: how far each key moves a metric, as bars around the metric as it is.

use crate::figure::{Cell, Figure, Part, Picture, Table, bars_apart, bars_height};
use crate::number::Unit;
use crate::page::{Page, Text, list, paragraph};

/// A key of a tornado.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Key of the spec.
    pub key: String,
    /// Current value.
    pub now: String,
    /// The smaller value, and the relative change of the metric with it.
    pub less: (String, Option<f64>),
    /// The larger value, and the relative change of the metric with it.
    pub more: (String, Option<f64>),
}

/// Bars drawn at most; the table has all.
const DRAWN: usize = 24;

/// The page; `facts` is the result in a sentence, `all` has the widest bar first.
pub fn tornado(title: &str, workloads: &[String], facts: &str, all: &[Bar]) -> String {
    let lead =
        format!("{}<p class=\"facts\">{}</p>", list(workloads.iter().map(String::as_str)), Text(facts));
    let mut page = Page::new(format!("Sensitivity of {title} – nandscape"), lead);
    page.section("Sensitivity", picture(all));
    page.html()
}

fn picture(all: &[Bar]) -> String {
    if all.is_empty() {
        return paragraph("No key moves the metric.");
    }
    let head = ["key", "now", "smaller", "change", "larger", "change"];
    let mut table = Table::new("Change of the metric, one key at a time", head);
    for Bar { key, now, less, more } in all {
        table.push([
            Cell::from(key.as_str()),
            Cell::from(now.as_str()),
            Cell::from(less.0.as_str()),
            Cell::maybe(less.1, Unit::Share),
            Cell::from(more.0.as_str()),
            Cell::maybe(more.1, Unit::Share),
        ]);
    }
    let drawn = &all[..all.len().min(DRAWN)];
    let keys: Vec<String> = drawn.iter().map(|bar| bar.key.clone()).collect();
    let part = |name: &str, of: fn(&Bar) -> Option<f64>| Part {
        name: name.to_owned(),
        values: drawn.iter().map(|bar| of(bar).unwrap_or(0.0)).collect(),
        hidden: false,
    };
    let parts = [part("smaller value", |bar| bar.less.1), part("larger value", |bar| bar.more.1)];
    Figure {
        title: "Change of the metric".into(),
        about: "Each key alone, smaller and larger; to the right the metric grows.".into(),
        picture: Picture::Chart {
            chart: bars_apart(Unit::Share, &keys, &parts),
            height: bars_height(keys.len(), parts.len()),
        },
        table,
    }
    .html()
}
