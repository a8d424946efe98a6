//! Tables.

use crate::html::Text;
use crate::number::{Unit, shown};
use std::fmt::Write as _;

/// What stands in one place of a table.
pub(crate) enum Cell {
    /// Words.
    Text(String),
    /// A number, set to the right.
    Number(String),
    /// A small picture or a badge, made by this crate.
    Html(String),
}

impl Cell {
    /// Nothing is known.
    pub(crate) fn none() -> Cell {
        Cell::Number("–".to_owned())
    }

    /// A number of a unit.
    pub(crate) fn of(value: f64, unit: Unit) -> Cell {
        Cell::Number(shown(value, unit))
    }

    /// A number of a unit, if there is one.
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

/// A table: its first column names the rows.
pub(crate) struct Table {
    caption: String,
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
    classes: &'static str,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new<'a>(caption: impl Into<String>, head: impl IntoIterator<Item = &'a str>) -> Table {
        let head = head.into_iter().map(str::to_owned).collect();
        Table { caption: caption.into(), head, rows: Vec::new(), classes: "" }
    }

    /// The same table of another class, which the page's style or script knows.
    pub(crate) fn class(self, classes: &'static str) -> Table {
        Table { classes, ..self }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As HTML, in a frame that scrolls by itself where it is wider than the page.
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
