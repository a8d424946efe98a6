//! What the parts spent.

use super::series::{curve, figure};
use crate::figure::{Figure, Part, Picture, bars, bars_height};
use crate::html::list;
use crate::number::{Unit, leaf, shown};
use crate::read::{at, items, number, text};
use crate::table::{Cell, Table};
use serde_json::Value;

/// The section: empty where the document has no energies.
pub(super) fn html(document: &Value) -> String {
    let Some(energy) = at(document, "energy") else { return String::new() };
    let parts = items(energy, "parts");
    let mut names: Vec<&str> = Vec::new();
    for activity in parts.iter().flat_map(|part| items(part, "activities")) {
        let name = text(activity, "activity");
        if number(activity, "energy_j").is_some_and(|joules| joules > 0.0) && !names.contains(&name) {
            names.push(name);
        }
    }
    let spent = |part: &Value, name: &str| {
        let of = |activity: &&Value| text(activity, "activity") == name;
        items(part, "activities")
            .iter()
            .filter(of)
            .filter_map(|activity| number(activity, "energy_j"))
            .sum::<f64>()
    };
    let of_activity = |name: &&str| Part {
        name: (*name).to_owned(),
        values: parts.iter().map(|part| spent(part, name)).collect(),
        hidden: false,
    };
    let stacked: Vec<Part> = names.iter().map(of_activity).collect();
    let category = |part: &Value| {
        let joules = number(part, "energy_j").map_or("–".to_owned(), |joules| shown(joules, Unit::Joules));
        format!("{}, {joules}", text(part, "name"))
    };
    let categories: Vec<String> = parts.iter().map(category).collect();
    let mut table = Table::new("Energy by part and activity", ["part", "activity", "of", "energy"]);
    for part in parts {
        for activity in items(part, "activities") {
            let energy = Cell::maybe(number(activity, "energy_j"), Unit::Joules);
            table.push([
                text(part, "name").into(),
                text(activity, "activity").into(),
                text(activity, "kind").into(),
                energy,
            ]);
        }
    }
    let height = bars_height(categories.len(), stacked.len());
    let mut out = Figure {
        title: "What each part spent".into(),
        about: "Energy of the measured window, by what it was spent on.".into(),
        picture: Picture::Chart { chart: bars(Unit::Joules, &categories, &stacked), height },
        table,
    }
    .html();
    let series = items(energy, "total.power_series");
    if series.len() > 1 {
        let curves = vec![curve("all parts", series, &|window| number(window, "power_w"))];
        out += &figure("Power".into(), Unit::Watts, curves, series.len()).html();
    }
    if let Some(total) = at(energy, "total").and_then(Value::as_object) {
        let mut table = Table::new("Energy in all", ["figure", "value"]);
        for (name, value) in total.iter().filter(|(_, value)| value.is_number()) {
            table.push([Cell::from(name.as_str()), Cell::Number(leaf(value, Unit::of_key(name)))]);
        }
        out += &table.html();
    }
    let missing: Vec<String> = items(energy, "missing").iter().map(|one| leaf(one, Unit::Plain)).collect();
    if !missing.is_empty() {
        out += "<p class=\"lacking\">Parts whose specs do not tell what they spend are not in it:</p>";
        out += &list(missing.iter().map(String::as_str));
    }
    out
}
