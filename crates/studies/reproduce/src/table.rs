//! Text tables of rows, and CSV tables of rows that are points of curves.

use super::row::MEASURED;
use super::{Evidence, Row};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Formats a table of the rows, with notes below each.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let wide = rows.iter().map(|row| row.id.len()).max().unwrap_or(0).max("id".len());
    let _ = writeln!(
        text,
        "{:<wide$}  {:>16}  {:>16}  {:<9}  {:>12}  {:<17}  {:<11}  ok",
        "id", "reference", "measured", "unit", "difference", "tolerance", "evidence"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<wide$}  {:>16}  {:>16}  {:<9}  {:>12}  {:<17}  {:<11}  {}",
            row.id,
            number(row.paper),
            row.measured.map_or_else(|| "-".into(), number),
            row.unit,
            row.difference().map_or_else(|| "-".into(), |d| d.to_string()),
            row.tolerance.to_string(),
            sort(row),
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
    text.push('\n');
    text + &counts(rows)
}

/// Evidence of a row's value, or that it has none.
fn sort(row: &Row) -> String {
    match row.kind {
        _ if row.measured.is_none() && !row.is_skipped() => "failed".to_owned(),
        MEASURED => row.evidence.to_string(),
        other => other.to_owned(),
    }
}

/// Counts the rows within tolerance by kind: values seen before a correction, and values used to choose a parameter,
/// prove less than the rest, and values that are not measurements prove something else. Failed rows have no kind.
fn counts(rows: &[Row]) -> String {
    let sort = |row: &Row| if row.is_measured() { sort(row) } else { "not measured".into() };
    let counted = |name: &str| {
        let of = || rows.iter().filter(|row| row.measured.is_some() && sort(row) == name);
        let within = of().filter(|row| row.within == Some(true)).count();
        (of().count() > 0).then(|| (format!("{within} of {}", of().count()), name.to_owned()))
    };
    let sorts = [Evidence::Clean, Evidence::Seen, Evidence::Fit].map(|evidence| evidence.to_string());
    let parts: Vec<(String, String)> =
        sorts.iter().map(String::as_str).chain(["not measured"]).filter_map(counted).collect();
    let skipped = rows.iter().filter(|row| row.is_skipped()).count();
    let mut text = match &parts[..] {
        [] => "no rows".to_owned(),
        [(count, name)] if name == "clean" => format!("{count} rows within tolerance"),
        several => {
            let named: Vec<String> = several.iter().map(|(count, name)| format!("{name} {count}")).collect();
            format!("rows within tolerance: {}", named.join(", "))
        }
    };
    let failed = rows.iter().filter(|row| row.measured.is_none() && !row.is_skipped()).count();
    for (count, what) in [(failed, "failed"), (skipped, "skipped")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    text + &signs(rows)
}

/// Measured rows whose sign differs from the reference's.
fn signs(rows: &[Row]) -> String {
    let is_against = |row: &&Row| {
        let measured = row.measured.filter(|_| row.is_measured()).unwrap_or(f64::NAN);
        measured * row.paper < 0.0
    };
    let against: Vec<&str> = rows.iter().filter(is_against).map(|row| row.id.as_str()).collect();
    if against.is_empty() {
        return String::new();
    }
    format!("\nsigns against the reference: {} ({})", against.len(), against.join(", "))
}

/// Formats at least six significant digits, with all digits before the point.
fn number(value: f64) -> String {
    match value.abs() {
        v if v == v.trunc() && v < 1e15 => format!("{value}"),
        v if v >= 1e5 => format!("{value:.3}"),
        _ => format!("{value:.6}"),
    }
}

/// Table of curves over one quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// Name, such as `mqms.curve`.
    pub name: String,
    /// CSV text: the quantity, then reference and value for each curve.
    pub csv: String,
}

/// Tables of the rows whose ids end in `curve.NAME.X`, in order of the curves.
pub fn plots(rows: &[Row]) -> Vec<Plot> {
    let mut tables: BTreeMap<String, Curves<'_>> = BTreeMap::new();
    for row in rows {
        if let Some((table, curve, x)) = parts(&row.id) {
            let curves = tables.entry(table.to_owned()).or_default();
            if !curves.names.contains(&curve) {
                curves.names.push(curve);
            }
            curves.points.entry(x).or_default().insert(curve, row);
        }
    }
    tables.into_iter().map(|(name, curves)| Plot { name, csv: curves.csv() }).collect()
}

/// Splits `mqms.curve.pm9a3.64` into `mqms.curve`, `pm9a3` and 64.
fn parts(id: &str) -> Option<(&str, &str, u64)> {
    let (rest, x) = id.rsplit_once('.')?;
    let (table, curve) = rest.rsplit_once('.')?;
    let is_curve = table == "curve" || table.ends_with(".curve");
    Some((table, curve, x.parse().ok().filter(|_| is_curve)?))
}

#[derive(Default)]
struct Curves<'r> {
    names: Vec<&'r str>,
    points: BTreeMap<u64, BTreeMap<&'r str, &'r Row>>,
}

impl Curves<'_> {
    fn csv(&self) -> String {
        let heads = self.names.iter().map(|name| format!(",{name}_reference,{name}"));
        let mut text = format!("x{}\n", heads.collect::<String>());
        for (x, rows) in &self.points {
            text.push_str(&x.to_string());
            for name in &self.names {
                let row = rows.get(name).filter(|row| row.measured.is_some());
                let cell = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
                let (paper, measured) = (row.map(|row| row.paper), row.and_then(|row| row.measured));
                text.push_str(&format!(",{},{}", cell(paper), cell(measured)));
            }
            text.push('\n');
        }
        text
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

    #[test]
    fn sorts_of_rows_are_counted_apart() {
        let row =
            |evidence, measured| Row { evidence, ..Row::new("a", "x", 1.0, measured, Rule::Share(0.1)) };
        let rows = [
            row(Evidence::Clean, 1.0),
            row(Evidence::Seen, 1.0),
            row(Evidence::Seen, 2.0),
            row(Evidence::Fit, 2.0),
            row(Evidence::Fit, 1.0).swept(),
            row(Evidence::Fit, 1.0).skipped("a.trace"),
            Row::failed("b", "no space"),
        ];
        let text = table(&rows);
        let end = "rows within tolerance: clean 1 of 1, seen 1 of 2, fit 0 of 1, not measured 1 of 1, 1 failed, 1 skipped";
        assert!(text.ends_with(end), "{text}");
        assert!(text.lines().nth(5).is_some_and(|line| line.contains("sweep") && !line.contains("clean")));
        assert!(table(&rows[1..3]).ends_with("rows within tolerance: seen 1 of 2"));
    }

    #[test]
    fn signs_against_the_reference_are_named() {
        let rows = [
            Row::new("a.right", "%", 31.0, 3.0, Rule::Points(2.0)),
            Row::new("a.wrong", "%", 31.0, -3.0, Rule::Points(2.0)),
            Row::new("a.swept", "%", 31.0, -3.0, Rule::Points(2.0)).swept(),
        ];
        assert!(table(&rows).ends_with("\nsigns against the reference: 1 (a.wrong)"), "{}", table(&rows));
    }

    #[test]
    fn a_row_is_a_point_of_its_curve() {
        let row = |id: &str, paper, measured| Row::new(id, "", paper, measured, Rule::Exact);
        let rows = [
            row("a.curve.one.10", 1.5, 2.0),
            row("a.curve.one.9", 1.0, 1.25),
            row("a.other.one.9", 7.0, 7.0),
            row("a.curve.two.9", 1.0, 0.5),
            Row::failed("a.curve.two.10", "a reason"),
        ];
        let csv = "x,one_reference,one,two_reference,two\n9,1,1.25,1,0.5\n10,1.5,2,,\n".to_owned();
        assert_eq!(plots(&rows), [Plot { name: "a.curve".to_owned(), csv }]);
    }
}
