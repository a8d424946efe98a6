//! Rows as a person likes to read them.

use super::{Evidence, Row};
use std::fmt::Write;

/// A table of the rows, with their notes below it.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let wide = rows.iter().map(|row| row.id.len()).max().unwrap_or(0).max("id".len());
    let _ = writeln!(
        text,
        "{:<wide$}  {:>16}  {:>16}  {:<9}  {:>12}  {:<17}  {:<8}  ok",
        "id", "reference", "measured", "unit", "difference", "tolerance", "evidence"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<wide$}  {:>16}  {:>16}  {:<9}  {:>12}  {:<17}  {:<8}  {}",
            row.id,
            number(row.paper),
            row.measured.map_or_else(|| "-".into(), number),
            row.unit,
            row.difference().map_or_else(|| "-".into(), |d| d.to_string()),
            row.tolerance.to_string(),
            row.evidence,
            match row.within {
                None => "skipped",
                Some(true) => "yes",
                Some(false) => "NO",
            }
        );
    }
    text.push('\n');
    for row in rows.iter().filter(|row| !row.note.is_empty() || !row.place.is_empty()) {
        let _ = writeln!(text, "{}: {}", row.id, row.place);
        if !row.note.is_empty() {
            let _ = writeln!(text, "    {}", row.note);
        }
    }
    let within = rows.iter().filter(|row| row.within == Some(true)).count();
    let skipped = rows.iter().filter(|row| row.is_skipped()).count();
    let _ = write!(text, "\n{within} of {} rows within tolerance", rows.len() - skipped);
    if skipped > 0 {
        let _ = write!(text, ", {skipped} skipped");
    }
    let counted = |evidence| {
        let of = || rows.iter().filter(move |row| row.evidence == evidence && row.is_measured());
        let within = of().filter(|row| row.within == Some(true)).count();
        (of().count() > 0).then(|| format!("{evidence} {within} of {}", of().count()))
    };
    let parts: Vec<String> =
        [Evidence::Clean, Evidence::Seen, Evidence::Fit].into_iter().filter_map(counted).collect();
    if parts.len() > 1 {
        let _ = write!(text, " ({})", parts.join(", "));
    }
    text
}

/// Six significant digits at least, all digits before the point.
fn number(value: f64) -> String {
    match value.abs() {
        v if v == v.trunc() && v < 1e15 => format!("{value}"),
        v if v >= 1e5 => format!("{value:.3}"),
        _ => format!("{value:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rule;
    use super::*;

    #[test]
    fn every_row_is_a_line_and_has_its_note() {
        let rows = [
            Row::new("a.exact", "ns", 55_722.0, 55_722.0, Rule::Exact).place("sum").note("parts"),
            Row::new("c.absent", "ns", 1.0, f64::NAN, Rule::Exact).skipped("a.trace"),
            Row::new("b.off", "ratio", 2.0, 2.1, Rule::Share(0.02)),
        ];
        let text = table(&rows);
        let line = |id: &str| text.lines().find(|l| l.starts_with(id)).expect("a line").to_owned();
        assert!(line("a.exact").ends_with("yes") && line("a.exact").contains("55722"));
        assert!(line("b.off").ends_with("NO") && line("b.off").contains("+5.000 %"));
        assert!(text.contains("a.exact: sum\n    parts\n"));
        assert!(line("c.absent").ends_with("skipped") && text.contains("no data (a.trace)"));
        assert!(text.ends_with("1 of 2 rows within tolerance, 1 skipped"));
    }
}
