//! The generated pages of the manual, one file each.

pub(crate) mod metrics;
pub(crate) mod parameters;
pub(crate) mod policies;

/// What stands at the head of every page.
const GENERATED: &str =
    "<!-- Written by `cargo xtask gen` from the program's own lists; changes here are lost. -->\n";

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A row of a Markdown table.
fn row<const N: usize>(cells: [&str; N]) -> String {
    format!("| {} |\n", cells.map(cell).join(" | "))
}

/// The first two rows of a Markdown table.
fn head<const N: usize>(titles: [&str; N]) -> String {
    row(titles) + &row(titles.map(|_| "---"))
}
