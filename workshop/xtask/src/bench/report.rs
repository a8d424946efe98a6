//! The tables and the JSON document of a bench.

use super::Spread;
use super::cases::{Case, Goal};
use serde_json::{Value, json};
use std::fmt::Write;

/// Result of one case.
pub(super) struct CaseReport {
    pub(super) case: &'static Case,
    pub(super) rows: Vec<(&'static Goal, Spread)>,
    pub(super) pairs: Vec<Pair>,
    pub(super) skipped: Option<&'static str>,
    pub(super) failure: Option<String>,
}

/// Ratio of this binary to a different program: above 1 this one is better.
pub(super) struct Pair {
    /// Other program.
    pub(super) over: String,
    pub(super) what: &'static str,
    /// Ratio; `None` if the other did not run to its end.
    pub(super) ratio: Option<Spread>,
    pub(super) remark: Option<String>,
}

impl CaseReport {
    pub(super) fn new(case: &'static Case) -> CaseReport {
        CaseReport { case, rows: Vec::new(), pairs: Vec::new(), skipped: None, failure: None }
    }
}

/// Prints the tables.
pub(super) fn to_text(reports: &[CaseReport]) -> String {
    let mut lines = vec![row(["case", "figure", "median", "min", "max", "target", "ratio"])];
    for report in reports {
        let name = report.case.name;
        for (goal, spread) in &report.rows {
            let ratio = goal.ratio(spread.median).map_or("-".into(), |ratio| format!("{ratio:.2}"));
            let target = goal.target.map_or("-".into(), number);
            let [median, min, max] = [spread.median, spread.min, spread.max].map(number);
            lines.push(row([name, goal.metric.name(), &median, &min, &max, &target, &ratio]));
        }
        lines.extend(report.skipped.map(|reason| format!("{name:<11} skipped: {reason}")));
        lines.extend(report.failure.as_ref().map(|reason| format!("{name:<11} FAILED: {reason}")));
    }
    if reports.iter().any(|report| !report.pairs.is_empty()) {
        lines.push(String::new());
        lines.push("nandscape over others, run by run (above 1: nandscape is better)".into());
        for report in reports {
            lines.extend(report.pairs.iter().map(|pair| pair_line(report.case.name, pair)));
        }
    }
    lines.iter().fold(String::new(), |mut text, line| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
        text
    })
}

fn row([case, figure, median, min, max, target, ratio]: [&str; 7]) -> String {
    format!("{case:<11} {figure:<24} {median:>12} {min:>12} {max:>12} {target:>12} {ratio:>7}")
}

fn pair_line(name: &str, pair: &Pair) -> String {
    let ratio = match &pair.ratio {
        Some(Spread { median, min, max }) => format!("{median:.2} [{min:.2} .. {max:.2}]"),
        None => "-".into(),
    };
    let remark = pair.remark.as_ref().map_or(String::new(), |remark| format!("   {remark}"));
    format!("{name:<11} {:<32} over {:<16} {ratio}{remark}", pair.what, pair.over)
}

/// Formats whole thousands for large numbers, three digits for small ones.
fn number(value: f64) -> String {
    if value >= 1e5 {
        format!("{:.0} k", value / 1e3)
    } else if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}

/// Formats the reports as one document.
pub(super) fn to_json(reports: &[CaseReport]) -> Value {
    let spread = |s: &Spread| json!({ "median": s.median, "min": s.min, "max": s.max });
    let cases: Vec<Value> = reports
        .iter()
        .map(|report| {
            let rows: Vec<Value> = report
                .rows
                .iter()
                .map(|(goal, s)| {
                    json!({
                        "figure": goal.metric.name(), "value": spread(s), "target": goal.target,
                        "ratio": goal.ratio(s.median),
                    })
                })
                .collect();
            let pairs: Vec<Value> = report
                .pairs
                .iter()
                .map(|p| json!({ "figure": p.what, "over": p.over, "ratio": p.ratio.as_ref().map(spread), "remark": p.remark }))
                .collect();
            json!({
                "case": report.case.name, "rows": rows, "pairs": pairs, "skipped": report.skipped,
                "failure": report.failure,
            })
        })
        .collect();
    json!({ "schema": "nandscape.bench/2", "cases": cases })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cases::CASES;

    fn report() -> CaseReport {
        let mut report = CaseReport::new(&CASES[0]);
        report.rows.push((&CASES[0].goals[0], Spread { median: 6.6e6, min: 3.3e6, max: 9.9e6 }));
        let ratio = Some(Spread { median: 20.0, min: 19.0, max: 21.0 });
        report.pairs.push(Pair {
            over: "MQSim".into(),
            what: "requests per CPU second",
            ratio,
            remark: None,
        });
        report.pairs.push(Pair {
            over: "MQSim".into(),
            what: "x",
            ratio: None,
            remark: Some("aborted".into()),
        });
        report
    }

    #[test]
    fn the_table_has_value_target_and_ratio() {
        let text = to_text(&[report()]);
        let words: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words[words.len() - 9..], ["6600", "k", "3300", "k", "9900", "k", "3300", "k", "2.00"]);
        assert!(text.contains("20.00 [19.00 .. 21.00]") && text.contains("-   aborted"), "{text}");
    }

    #[test]
    fn a_failure_is_said() {
        let mut failed = CaseReport::new(&CASES[1]);
        failed.failure = Some("no requests".into());
        assert!(to_text(&[failed]).contains("FAILED: no requests"));
    }

    #[test]
    fn the_document_has_the_same_figures() {
        let document = to_json(&[report()]);
        assert_eq!(document["cases"][0]["rows"][0]["ratio"], 2.0);
        assert_eq!(document["cases"][0]["pairs"][0]["ratio"]["max"], 21.0);
        assert_eq!(document["cases"][0]["pairs"][1]["ratio"], Value::Null);
    }
}
