//! Page of a reproduction: every row of a reference beside ours.

use crate::figure::{Cell, Table};
use crate::number::{Unit, shown};
use crate::page::{Page, Text, paragraph};
use crate::read::{number, text};
use crate::run::word;
use serde_json::Value;
use std::fmt::Write as _;

/// Renders the page of rows of `nandscape reproduce --json`, grouped by target. `options` are the options of the
/// command that select the rows.
pub fn rows(targets: &[(&str, &[Value])], options: &str) -> String {
    let names: Vec<&str> = targets.iter().map(|(name, _)| *name).collect();
    let mut page = Page::new(format!("{} – nandscape", names.join(", ")), lead(targets));
    for (target, rows) in targets {
        let mut body = summary(rows);
        body += "<p class=\"search\"><label>Find <input type=\"search\" data-filter=\"rows\" autocomplete=\"off\"></label> <output></output></p>";
        body += LEGEND;
        body += &table(target, rows, options).html();
        page.section(target, body);
    }
    page.section("Reading a row", reading());
    page.html()
}

const LEGEND: &str = "<p class=\"legend\"><svg class=\"band\" width=\"150\" height=\"18\" viewBox=\"0 0 150 18\" aria-hidden=\"true\">\
    <rect class=\"ok\" x=\"40\" y=\"3\" width=\"70\" height=\"12\"/><line class=\"reference\" x1=\"75\" y1=\"0\" x2=\"75\" y2=\"18\"/>\
    <circle class=\"ours\" cx=\"95\" cy=\"9\" r=\"4\"/></svg> line: reference; band: tolerance; point: ours; \
    arrow: ours is beyond the range of the picture.</p>";

fn lead(targets: &[(&str, &[Value])]) -> String {
    let all: Vec<&Value> = targets.iter().flat_map(|(_, rows)| rows.iter()).collect();
    let count = |within: Value| all.iter().filter(|row| row["within"] == within).count();
    format!(
        "<p class=\"facts\">{} rows: {} within tolerance, {} outside, {} skipped.</p>",
        all.len(),
        count(true.into()),
        count(false.into()),
        count(Value::Null)
    )
}

/// Counts rows by evidence and kind.
fn summary(rows: &[Value]) -> String {
    let mut kinds: Vec<(&str, &str)> =
        rows.iter().map(|row| (text(row, "kind"), text(row, "evidence"))).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut table =
        Table::new("Rows by kind and evidence", ["kind", "evidence", "rows", "within", "outside", "skipped"]);
    for (kind, evidence) in kinds {
        let of = |row: &&Value| text(row, "kind") == kind && text(row, "evidence") == evidence;
        let count = |within: Option<Value>| {
            let counted = rows
                .iter()
                .filter(of)
                .filter(|row| within.as_ref().is_none_or(|within| row["within"] == *within));
            Cell::Number(counted.count().to_string())
        };
        let cells =
            [count(None), count(Some(true.into())), count(Some(false.into())), count(Some(Value::Null))];
        table.push([Cell::from(kind), evidence.into()].into_iter().chain(cells));
    }
    table.html()
}

fn table(target: &str, rows: &[Value], options: &str) -> Table {
    let head =
        ["row", "", "ours", "reference", "unit", "tolerance", "difference", "within", "kind", "evidence"];
    let mut table = Table::new(format!("Rows of {target}"), head).class("rows");
    for row in rows {
        let (paper, measured) = (number(row, "paper"), number(row, "measured"));
        let apart = match (paper, measured) {
            (Some(paper), Some(measured)) if paper != 0.0 => {
                format!("{:+.2} %", 100.0 * (measured - paper) / paper.abs())
            }
            (Some(paper), Some(measured)) => format!("{:+}", measured - paper),
            _ => "–".to_owned(),
        };
        let (class, word_of) = match row["within"] {
            Value::Bool(true) => ("yes", "yes"),
            Value::Bool(false) => ("no", "no"),
            _ => ("skip", "skipped"),
        };
        let about = format!("{} {}", text(row, "where"), text(row, "note"));
        let id = text(row, "id");
        table.push([
            Cell::Html(format!(
                "<b>{}</b><p>{}</p><details><summary>Command</summary><code>{}</code></details>",
                Text(id),
                Text(about.trim()),
                Text(&command(target, id, options))
            )),
            Cell::Html(band(row)),
            Cell::maybe(measured, Unit::Plain),
            Cell::maybe(paper, Unit::Plain),
            text(row, "unit").into(),
            text(row, "tolerance").into(),
            Cell::Number(apart),
            Cell::Html(format!("<span class=\"{class}\">{word_of}</span>")),
            text(row, "kind").into(),
            text(row, "evidence").into(),
        ]);
    }
    table
}

/// Command that reproduces a row.
fn command(target: &str, id: &str, options: &str) -> String {
    let options = if options.is_empty() { String::new() } else { format!(" {options}") };
    format!("nandscape reproduce {target} --only {}{options}", word(id))
}

/// Allowed deviations below and above the reference, as shares of it; `None` where unbounded.
fn allowed(tolerance: &str, paper: f64) -> Option<(Option<f64>, Option<f64>)> {
    let share = |text: &str| Some(text.trim().trim_end_matches('%').trim().parse::<f64>().ok()? / 100.0);
    let both = |share: f64| Some((Some(share), Some(share)));
    if let Some(share_of) = tolerance.strip_prefix("gain ").and_then(share) {
        let near = share_of * (100.0 + paper) / paper.abs();
        return (paper != 0.0).then_some((Some(near), Some(near)));
    }
    match tolerance {
        "exact" => both(0.0),
        ">=" => Some((Some(0.0), None)),
        "<=" => Some((None, Some(0.0))),
        other if other.starts_with("gap") => None,
        other => match other.strip_prefix("+-") {
            Some(points) => both((points.parse::<f64>().ok()? / paper.abs()).abs()),
            None => {
                let (share_of, more) = other.split_once('%')?;
                let more =
                    more.trim_start_matches([',', ' ', '+', '-']).parse::<f64>().unwrap_or(0.0) / paper.abs();
                // An interval with a width and a share must satisfy both: the narrower is drawn.
                let share_of = share(share_of)?;
                both(if other.contains(',') { more.min(share_of) } else { share_of + more })
            }
        },
    }
}

/// Small picture of a row: the line is the reference, the band the tolerance, the point ours.
fn band(row: &Value) -> String {
    const WIDTH: f64 = 150.0;
    let (Some(paper), Some(measured)) = (number(row, "paper"), number(row, "measured")) else {
        return String::new();
    };
    if paper == 0.0 {
        return String::new();
    }
    let Some((below, above)) = allowed(text(row, "tolerance"), paper) else { return String::new() };
    let apart = (measured - paper) / paper.abs();
    // The picture spans twice the tolerance, and more if ours is slightly beyond it.
    let widest = below.unwrap_or(0.0).max(above.unwrap_or(0.0)).max(0.005);
    let reach = (2.0 * widest).max(apart.abs() * 1.15).min(8.0 * widest);
    let x = |share: f64| WIDTH / 2.0 * (1.0 + (share / reach).clamp(-1.0, 1.0));
    let (left, right) = (below.map_or(0.0, |share| x(-share)), above.map_or(WIDTH, x));
    let class = if row["within"] == Value::Bool(true) { "ok" } else { "off" };
    let mut out = format!(
        "<svg class=\"band\" width=\"{WIDTH}\" height=\"18\" viewBox=\"0 0 {WIDTH} 18\" aria-hidden=\"true\">\
         <rect class=\"{class}\" x=\"{left:.1}\" y=\"3\" width=\"{:.1}\" height=\"12\"/>\
         <line class=\"reference\" x1=\"75\" y1=\"0\" x2=\"75\" y2=\"18\"/>",
        (right - left).max(1.0)
    );
    let _ = if apart.abs() > reach {
        let (tip, base) = if apart > 0.0 { (149.0, 140.0) } else { (1.0, 10.0) };
        write!(out, "<path class=\"ours\" d=\"M{tip},9 L{base},3 L{base},15 Z\"/></svg>")
    } else {
        write!(
            out,
            "<circle class=\"ours\" cx=\"{:.1}\" cy=\"9\" r=\"4\"/></svg>",
            x(apart).clamp(4.0, WIDTH - 4.0)
        )
    };
    out
}

fn reading() -> String {
    let points = [
        "kind: origin of the reference. `measured` comes from a simulator or a machine, and our runs must reproduce it; other kinds are stated, derived or swept, and do not count.",
        "evidence: `clean`, all that the value depends on was decided before it was seen; `seen`, it had been seen when something with a source was corrected; `fit`, a parameter was chosen by this value.",
        "tolerance: `5 %`, within that share of the reference; `+-2`, within that distance in its unit; `gain 10 %`, the share applies to 100 per cent plus the value; `>=` and `<=`, not below and not above; `gap > 5 %`, a known deviation: the row fails once it closes.",
    ];
    paragraph("Each row has a value from a paper, a formula or a different simulator, and ours beside it.")
        + &crate::page::list(points)
        + &paragraph(&format!(
            "Numbers have four digits; `--json` has full precision, such as {}.",
            shown(1.0 / 3.0, Unit::Plain)
        ))
}

#[cfg(test)]
mod tests {
    use super::{allowed, band, command};
    use serde_json::json;

    #[test]
    fn tolerances_are_bands() {
        for (tolerance, paper, below, above) in [
            ("exact", 7.0, Some(0.0), Some(0.0)),
            ("5 %", 7.0, Some(0.05), Some(0.05)),
            ("5 % +0.7000", 7.0, Some(0.15), Some(0.15)),
            ("5 %, +-0.0700", 7.0, Some(0.01), Some(0.01)),
            ("+-2.000", 10.0, Some(0.2), Some(0.2)),
            ("gain 25 %", 100.0, Some(0.5), Some(0.5)),
            (">=", 1.0, Some(0.0), None),
            ("<=", 1.0, None, Some(0.0)),
        ] {
            let (low, high) = allowed(tolerance, paper).unwrap();
            for (found, expected) in [(low, below), (high, above)] {
                match (found, expected) {
                    (Some(found), Some(expected)) => {
                        assert!((found - expected).abs() < 1e-9, "{tolerance}: {found}")
                    }
                    other => assert_eq!(other, (None, None), "{tolerance}"),
                }
            }
        }
        assert_eq!(allowed("gap > 5 %", 1.0), None);
    }

    #[test]
    fn what_is_far_off_is_an_arrow_and_what_was_skipped_no_picture() {
        let row =
            |measured| json!({ "paper": 1.0, "measured": measured, "tolerance": "5 %", "within": false });
        assert!(band(&row(json!(1.04))).contains("circle"));
        assert!(band(&row(json!(9.0))).contains("<path"));
        assert_eq!(band(&row(json!(null))), "");
    }

    #[test]
    fn a_row_says_its_command() {
        assert_eq!(command("zng", "fig 3", "--full"), "nandscape reproduce zng --only 'fig 3' --full");
    }
}
