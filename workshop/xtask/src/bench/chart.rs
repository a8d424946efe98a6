//! The ratios to a rival as a picture for the README.

use super::report::CaseReport;
use std::fmt::Write;

/// Metric that is drawn.
pub(super) const WHAT: &str = "requests per CPU second";

/// Height of a bar with its gap, and where bars begin and end, in pixels.
const BAR: f64 = 26.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 560.0;
const WIDTH: f64 = 640.0;

/// Draws the median ratio of each case with one to `rival`; none without a ratio.
pub(super) fn svg(reports: &[CaseReport], rival: &str) -> Option<String> {
    let ratios: Vec<(&str, f64)> = reports
        .iter()
        .filter_map(|report| {
            let pair = report.pairs.iter().find(|pair| pair.over == rival && pair.what == WHAT)?;
            Some((report.case.name, pair.ratio.as_ref()?.median))
        })
        .collect();
    let most = ratios.iter().map(|(_, ratio)| *ratio).reduce(f64::max)?.max(1.0);
    let height = 40.0 + BAR * ratios.len() as f64;
    let x = |ratio: f64| LEFT + (RIGHT - LEFT) * ratio / most;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" fill=\"#52606d\">nandscape over {rival}, {WHAT} ({rival} = 1)</text>\n"
    );
    for (at, (name, ratio)) in ratios.iter().enumerate() {
        let top = 32.0 + BAR * at as f64;
        let (baseline, end) = (top + 14.0, x(*ratio));
        // Text and numbers: writing to a string cannot fail.
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{baseline}\" text-anchor=\"end\" fill=\"#1f2933\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{:.1}\" height=\"18\" fill=\"#0072b2\"/>\
             <text x=\"{:.1}\" y=\"{baseline}\" fill=\"#1f2933\">{ratio:.1}x</text>",
            LEFT - 8.0,
            end - LEFT,
            end + 6.0
        );
    }
    let one = x(1.0);
    let _ = writeln!(
        text,
        "<line x1=\"{one:.1}\" y1=\"28\" x2=\"{one:.1}\" y2=\"{:.0}\" stroke=\"#d55e00\" stroke-width=\"1.5\"/>\n</svg>",
        height - 6.0
    );
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Spread;
    use crate::bench::cases::CASES;
    use crate::bench::report::Pair;

    #[test]
    fn each_ratio_is_a_bar_and_the_longest_fills_the_width() {
        let report = |case: usize, median: f64| {
            let mut report = CaseReport::new(&CASES[case]);
            let ratio = Some(Spread { median, min: median, max: median });
            report.pairs.push(Pair { over: "MQSim".into(), what: WHAT, ratio, remark: None });
            report
        };
        let text = svg(&[report(0, 20.0), report(1, 5.0)], "MQSim").unwrap();
        assert!(text.contains(&format!("width=\"{:.1}\"", RIGHT - LEFT)), "{text}");
        assert!(
            text.contains(&format!("width=\"{:.1}\"", (RIGHT - LEFT) / 4.0)) && text.contains("20.0x"),
            "{text}"
        );
        assert!(svg(&[CaseReport::new(&CASES[0])], "MQSim").is_none());
    }
}
