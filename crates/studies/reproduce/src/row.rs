//! Row: a reference value beside ours.

use serde::{Serialize, Serializer};
use std::fmt;

/// Kind of a row that counts, and whose value must come from simulated runs.
pub(super) const MEASURED: &str = "measured";

/// Rule that compares a measured value with its reference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Rule {
    /// Equal, bit for bit.
    Exact,
    /// Within this share of the reference.
    Share(f64),
    /// Within this share of the reference and inside a confidence interval of this half width, which must itself be
    /// narrower than the share.
    Interval {
        /// Share of the reference.
        share: f64,
        /// Half width of the interval, in the row's unit.
        half_width: f64,
    },
    /// Within this share of the reference, to which the uncertainty of a short run is added.
    Sampled {
        /// Share of the reference.
        share: f64,
        /// Half width of the confidence interval, in the row's unit.
        half_width: f64,
    },
    /// Within this distance of the reference, in the row's unit.
    Points(f64),
    /// Gain in per cent: the share applies to 100 per cent plus ours, over 100 per cent plus the reference.
    Gain(f64),
    /// Not below the reference.
    AtLeast,
    /// Not above the reference.
    AtMost,
    /// A known gap: further from the reference than this share of it. The row fails when the gap closes.
    Apart(f64),
}

impl Rule {
    /// Returns whether `measured` satisfies the rule for `paper`. A value that is not finite never does.
    pub fn holds(&self, paper: f64, measured: f64) -> bool {
        if !(paper.is_finite() && measured.is_finite()) {
            return false;
        }
        let (apart, near) = ((measured - paper).abs(), |share: f64| share * paper.abs());
        match *self {
            Rule::Exact => measured == paper,
            Rule::Share(share) => apart <= near(share),
            Rule::Interval { share, half_width } => half_width < near(share) && apart <= half_width,
            Rule::Sampled { share, half_width } => apart <= near(share) + half_width,
            Rule::Points(points) => apart <= points,
            Rule::Gain(share) => ((100.0 + measured) / (100.0 + paper) - 1.0).abs() <= share,
            Rule::AtLeast => measured >= paper,
            Rule::AtMost => measured <= paper,
            Rule::Apart(share) => apart > near(share),
        }
    }

    /// Same rule for a short run, with `half_width` of uncertainty added.
    pub(crate) fn sampled(self, half_width: f64) -> Rule {
        match self {
            Rule::Share(share) | Rule::Interval { share, .. } => Rule::Sampled { share, half_width },
            other => other,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Rule::Exact => f.write_str("exact"),
            Rule::Share(share) => write!(f, "{} %", percent(share)),
            Rule::Interval { share, half_width } => write!(f, "{} %, +-{half_width:.4}", percent(share)),
            Rule::Sampled { share, half_width } => write!(f, "{} % +{half_width:.4}", percent(share)),
            Rule::Points(points) => write!(f, "+-{points:.3}"),
            Rule::Gain(share) => write!(f, "gain {} %", percent(share)),
            Rule::AtLeast => f.write_str(">="),
            Rule::AtMost => f.write_str("<="),
            Rule::Apart(share) => write!(f, "gap > {} %", percent(share)),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Formats a share in per cent, without the digits of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Evidence of a measured value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Decided entirely before the value had been seen.
    Clean,
    /// Seen when something was corrected that has a source other than the value.
    Seen,
    /// Used to choose a parameter, directly or through a related value.
    Fit,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Evidence::Clean => "clean",
            Evidence::Seen => "seen",
            Evidence::Fit => "fit",
        })
    }
}

/// Reference value beside ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Name, by which `--only` selects it.
    pub id: String,
    /// Formula and citation, or place in the source.
    #[serde(rename = "where")]
    pub place: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// Origin of the reference value: `measured` if ours must come from simulated runs.
    pub kind: &'static str,
    /// Reference value.
    pub paper: f64,
    /// Our value; `None` if its run failed or its data is missing.
    pub measured: Option<f64>,
    /// Tolerance, or another comparison.
    pub tolerance: Rule,
    /// True if our value is within the tolerance; `None` if the row was skipped for missing data.
    pub within: Option<bool>,
    /// Evidence of a value within its tolerance.
    pub evidence: Evidence,
    /// Notes: configuration, statistics, the terms of a sum.
    pub note: String,
}

impl Row {
    /// Creates a row and judges it by its rule.
    pub(crate) fn new(
        id: impl Into<String>,
        unit: &'static str,
        paper: f64,
        measured: f64,
        rule: Rule,
    ) -> Row {
        Row {
            id: id.into(),
            place: String::new(),
            unit,
            kind: MEASURED,
            paper,
            measured: Some(measured),
            tolerance: rule,
            within: Some(rule.holds(paper, measured)),
            evidence: Evidence::Clean,
            note: String::new(),
        }
    }

    /// Marks a row of a sweep, which does not count.
    pub(crate) fn swept(self) -> Row {
        Row { kind: "sweep", evidence: Evidence::Clean, ..self }
    }

    /// Sets the place of the reference value.
    pub(crate) fn place(mut self, place: impl Into<String>) -> Row {
        self.place = place.into();
        self
    }

    /// Sets the notes.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }

    /// Adds to the notes.
    pub(crate) fn remark(mut self, remark: &str) -> Row {
        self.note = [self.note.as_str(), remark]
            .into_iter()
            .filter(|n| !n.is_empty())
            .collect::<Vec<_>>()
            .join(" | ");
        self
    }

    /// Creates a row whose run failed.
    pub(crate) fn failed(id: &str, why: impl fmt::Display) -> Row {
        Row { measured: None, within: Some(false), ..Row::new(id, "", 0.0, 0.0, Rule::Exact) }
            .note(format!("no value: {why}"))
    }

    /// Marks a row as skipped for a missing file of the data sets. It contradicts nothing.
    pub(crate) fn skipped(self, file: &str) -> Row {
        Row { measured: None, within: None, ..self }.note(format!("skipped: no data ({file})"))
    }

    /// Returns whether the row was skipped: it is neither within its tolerance nor outside.
    pub fn is_skipped(&self) -> bool {
        self.within.is_none()
    }

    /// Returns whether our value comes from simulated runs and counts.
    pub(crate) fn is_measured(&self) -> bool {
        self.kind == MEASURED && !self.is_skipped()
    }

    /// Measured minus reference: in per cent of the reference, or absolute where that is not meaningful.
    pub fn difference(&self) -> Option<Difference> {
        let measured = self.measured?;
        let apart = measured - self.paper;
        Some(if self.tolerance == Rule::Exact || self.paper == 0.0 {
            Difference::Absolute(apart)
        } else {
            Difference::Percent(100.0 * apart / self.paper)
        })
    }
}

/// Difference between a measured value and its reference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Difference {
    /// In the row's unit.
    Absolute(f64),
    /// In per cent of the reference.
    Percent(f64),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Difference::Absolute(apart) => f.pad(&format!("{apart}")),
            Difference::Percent(apart) => f.pad(&format!("{apart:+.3} %")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Rule};

    #[test]
    fn rules_hold_up_to_their_bounds_and_no_further() {
        let cases = [
            (Rule::Exact, 7.0, 7.0, true),
            (Rule::Exact, 7.0, 7.000_000_001, false),
            (Rule::Share(0.02), 100.0, 98.0, true),
            (Rule::Share(0.02), 100.0, 102.1, false),
            (Rule::Share(0.02), f64::INFINITY, 100.0, false),
            (Rule::AtMost, f64::INFINITY, 100.0, false),
            (Rule::Share(0.02), 100.0, f64::NAN, false),
            (Rule::Interval { share: 0.01, half_width: 0.5 }, 100.0, 100.4, true),
            (Rule::Interval { share: 0.01, half_width: 0.5 }, 100.0, 100.6, false),
            (Rule::Interval { share: 0.01, half_width: 1.1 }, 100.0, 100.0, false),
            (Rule::Sampled { share: 0.01, half_width: 1.0 }, 100.0, 101.9, true),
            (Rule::Sampled { share: 0.01, half_width: 1.0 }, 100.0, 102.1, false),
            (Rule::AtLeast, 95.0, 95.0, true),
            (Rule::AtLeast, 95.0, 94.9, false),
            (Rule::AtMost, 95.0, 95.1, false),
            (Rule::Points(2.0), 10.0, 12.0, true),
            (Rule::Points(2.0), 10.0, 7.9, false),
            (Rule::Gain(0.25), 100.0, 149.0, true),
            (Rule::Gain(0.25), 100.0, 151.0, false),
            (Rule::Apart(0.05), 100.0, 106.0, true),
            (Rule::Apart(0.05), 100.0, 104.0, false),
        ];
        for (rule, paper, measured, expected) in cases {
            assert_eq!(rule.holds(paper, measured), expected, "{rule:?} {paper} {measured}");
            assert!(!rule.holds(paper, f64::NAN), "{rule:?} holds for no number");
        }
    }

    #[test]
    fn a_row_has_the_fields_of_the_contract() {
        let row = Row::new("a.b", "ns", 2.0, 2.0, Rule::Share(0.1)).place("formula");
        let json = serde_json::to_value(row).expect("rows serialise");
        for field in ["id", "where", "unit", "kind", "paper", "measured", "within", "evidence", "note"] {
            assert!(json.get(field).is_some(), "no {field}");
        }
        assert_eq!((&json["kind"], &json["within"]), (&"measured".into(), &true.into()));
        let skipped = Row::new("a.b", "ns", 2.0, f64::NAN, Rule::Exact).skipped("a.trace");
        assert!(skipped.is_skipped());
        let json = serde_json::to_value(skipped).expect("rows serialise");
        assert!(json["measured"].is_null() && json["within"].is_null(), "{json}");
    }
}
