//! Tables, and figures with the tables behind them.

use crate::number::{Unit, rounded, shown};
use crate::page::{Text, script_json};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Figure of a page: a picture, its description, and the table behind it.
pub(crate) struct Figure {
    /// Title.
    pub(crate) title: String,
    /// Description: how to read the picture.
    pub(crate) about: String,
    /// Picture: one of [`lines`], [`bars`], [`heat`], or an SVG.
    pub(crate) picture: Picture,
    /// Table with the same numbers.
    pub(crate) table: Table,
}

/// Picture of a figure.
pub(crate) enum Picture {
    /// Chart drawn by the page's script.
    Chart {
        /// Data in the form that the script takes.
        chart: Value,
        /// Height in CSS pixels.
        height: u32,
    },
    /// SVG, used unchanged.
    Svg(String),
}

impl Figure {
    /// Renders the figure as HTML.
    pub(crate) fn html(&self) -> String {
        let (title, about) = (Text(&self.title), Text(&self.about));
        let picture = match &self.picture {
            Picture::Chart { chart, height } => format!(
                "<div class=\"chart\" role=\"img\" tabindex=\"0\" aria-label=\"{title}. {about} The table below has the numbers.\" \
                 style=\"height:{height}px\"></div><script type=\"application/json\">{}</script>",
                script_json(chart)
            ),
            Picture::Svg(svg) => format!("<div class=\"scroll drawn\" tabindex=\"0\">{svg}</div>"),
        };
        format!(
            "<figure><figcaption><b>{title}</b> {about}</figcaption>{picture}<details><summary>Table: {title}</summary>{}</details></figure>\n",
            self.table.html()
        )
    }
}

/// Numeric axis.
pub(crate) struct Axis<'a> {
    /// Name.
    pub(crate) name: &'a str,
    /// Unit of the values.
    pub(crate) unit: Unit,
    /// True if the axis is logarithmic.
    pub(crate) log: bool,
}

impl Axis<'_> {
    pub(crate) fn json(&self) -> Value {
        json!({ "name": self.name, "unit": self.unit.name(), "log": self.log })
    }
}

/// Curve, with gaps where a value is missing.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<Option<f64>>,
    /// True if the curve is drawn in steps: each value holds up to the next.
    pub(crate) steps: bool,
    /// True if points are drawn as well as the line.
    pub(crate) points: bool,
}

impl Curve {
    fn json(&self) -> Value {
        let x: Vec<Value> = self.x.iter().map(|x| rounded(*x)).collect();
        let y: Vec<Value> = self.y.iter().map(|y| y.map_or(Value::Null, rounded)).collect();
        json!({ "name": self.name, "x": x, "y": y, "steps": self.steps, "points": self.points })
    }
}

/// Chart of curves over numbers.
pub(crate) fn lines(x: &Axis<'_>, y: &Axis<'_>, curves: &[Curve]) -> Value {
    let curves: Vec<Value> = curves.iter().map(Curve::json).collect();
    json!({ "kind": "lines", "x": x.json(), "y": y.json(), "curves": curves })
}

/// One segment of each bar.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
    /// True if the segment is invisible and only offsets those after it.
    pub(crate) hidden: bool,
}

/// Chart of horizontal stacked bars, named by categories from top to bottom.
pub(crate) fn bars(unit: Unit, categories: &[String], parts: &[Part]) -> Value {
    json!({ "kind": "bars", "unit": unit.name(), "categories": categories, "parts": parts_json(parts) })
}

/// Bars to the right, of parts drawn over each other from one axis.
pub(crate) fn bars_apart(unit: Unit, categories: &[String], parts: &[Part]) -> Value {
    let mut chart = bars(unit, categories, parts);
    chart["apart"] = true.into();
    chart
}

/// Chart of vertical bars of one segment, over categories from left to right.
pub(crate) fn columns(name: &str, unit: Unit, categories: &[String], parts: &[Part]) -> Value {
    json!({ "kind": "columns", "name": name, "unit": unit.name(), "categories": categories, "parts": parts_json(parts) })
}

fn parts_json(parts: &[Part]) -> Vec<Value> {
    let part = |part: &Part| {
        let values: Vec<Value> = part.values.iter().map(|value| rounded(*value)).collect();
        json!({ "name": part.name, "values": values, "hidden": part.hidden })
    };
    parts.iter().map(part).collect()
}

/// Height of [`bars`] in CSS pixels.
pub(crate) fn bars_height(bars: usize, parts: usize) -> u32 {
    let legend = 26 * (1 + parts / 6) as u32;
    60 + legend + 26 * bars.max(1) as u32
}

/// Heat map, by column and row.
pub(crate) fn heat(
    x: (&str, &[String]),
    y: (&str, &[String]),
    unit: Unit,
    cells: &[(usize, usize, f64)],
) -> Value {
    let cells: Vec<Value> = cells.iter().map(|(x, y, value)| json!([x, y, rounded(*value)])).collect();
    json!({
        "kind": "heat", "unit": unit.name(), "cells": cells,
        "x": { "name": x.0, "labels": x.1 }, "y": { "name": y.0, "labels": y.1 },
    })
}

/// Cell of a table.
pub(crate) enum Cell {
    /// Text.
    Text(String),
    /// Number, right-aligned.
    Number(String),
    /// Small picture or badge, made by this crate.
    Html(String),
}

impl Cell {
    /// Cell of an unknown value.
    pub(crate) fn none() -> Cell {
        Cell::Number("–".to_owned())
    }

    /// Cell of a number with a unit.
    pub(crate) fn of(value: f64, unit: Unit) -> Cell {
        Cell::Number(shown(value, unit))
    }

    /// Cell of a number with a unit, or of an unknown value.
    pub(crate) fn maybe(value: Option<f64>, unit: Unit) -> Cell {
        value.map_or_else(Cell::none, |value| Cell::of(value, unit))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// Table whose first column names the rows.
pub(crate) struct Table {
    caption: String,
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
    classes: &'static str,
}

impl Table {
    /// Creates a table without rows.
    pub(crate) fn new<'a>(caption: impl Into<String>, head: impl IntoIterator<Item = &'a str>) -> Table {
        let head = head.into_iter().map(str::to_owned).collect();
        Table { caption: caption.into(), head, rows: Vec::new(), classes: "" }
    }

    /// Sets the CSS classes, which the page's style or script knows.
    pub(crate) fn class(self, classes: &'static str) -> Table {
        Table { classes, ..self }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Returns whether the table has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table as HTML, in a frame that scrolls if it is wider than the page.
    pub(crate) fn html(&self) -> String {
        let caption = Text(&self.caption);
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table class=\"{}\"><caption>{caption}</caption><thead><tr>",
            self.classes
        );
        for head in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", Text(head));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let (open, close) = if at == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                let _ = match cell {
                    Cell::Text(text) => write!(out, "<{open}>{}</{close}>", Text(text)),
                    Cell::Number(text) => write!(out, "<{open} class=\"n\">{}</{close}>", Text(text)),
                    Cell::Html(html) => write!(out, "<{open}>{html}</{close}>"),
                };
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        out
    }
}
