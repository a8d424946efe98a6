//! One row: a reference value beside ours.

use serde::{Serialize, Serializer};
use std::fmt;

/// The kind of a row whose value must come out of simulated runs, and that counts.
pub(super) const MEASURED: &str = "measured";

/// How a measured value is held against its reference.
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
    /// Within so much of the reference, in the row's unit.
    Points(f64),
    /// A gain in per cent: 100 per cent and ours, over 100 per cent and the reference, within this share of one.
    Gain(f64),
    /// Not below the reference.
    AtLeast,
    /// Not above the reference.
    AtMost,
    /// A known gap: further from the reference than this share of it. The row fails when the gap closes.
    Apart(f64),
}

impl Rule {
    /// Whether `measured` stands beside `paper` as the rule demands. Nothing stands beside what is no number, or without end.
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

    /// The same rule for a run so short that `half_width` of uncertainty is left.
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

/// A share in per cent, without the digits that binary fractions leave behind.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// What stands behind a measured value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Everything that it depends on was decided before it had been seen.
    Clean,
    /// It had been seen when something was corrected, for which there is a source beside the figure.
    Seen,
    /// A value was chosen by the figure, or by one that goes with it.
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

/// A reference value beside ours.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Its name, by which `--only` selects it.
    pub id: String,
    /// Formula and citation, or the place of the figure.
    #[serde(rename = "where")]
    pub place: String,
    /// Unit of both values.
    pub unit: &'static str,
    /// What the reference value is: `measured` if ours must come out of simulated runs.
    pub kind: &'static str,
    /// The reference value.
    pub paper: f64,
    /// Ours; none if the run that should have given it failed, or its data is not here.
    pub measured: Option<f64>,
    /// The tolerance, or how else the two are compared.
    pub tolerance: Rule,
    /// Whether ours stands as the tolerance demands; none if the row was skipped, because its data is not here.
    pub within: Option<bool>,
    /// What a value within its tolerance proves.
    pub evidence: Evidence,
    /// What a reader must know: configuration, statistics, the sum's parts.
    pub note: String,
}

impl Row {
    /// A row judged by its rule.
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

    /// A row of a sweep, which counts as no figure of the paper.
    pub(crate) fn swept(self) -> Row {
        Row { kind: "sweep", evidence: Evidence::Clean, ..self }
    }

    /// Says where the reference value comes from.
    pub(crate) fn place(mut self, place: impl Into<String>) -> Row {
        self.place = place.into();
        self
    }

    /// Says what a reader must know.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Row {
        self.note = note.into();
        self
    }

    /// Adds to what a reader must know.
    pub(crate) fn remark(mut self, remark: &str) -> Row {
        self.note = [self.note.as_str(), remark]
            .into_iter()
            .filter(|n| !n.is_empty())
            .collect::<Vec<_>>()
            .join(" | ");
        self
    }

    /// A row whose run failed.
    pub(crate) fn failed(id: &str, why: impl fmt::Display) -> Row {
        Row { measured: None, within: Some(false), ..Row::new(id, "", 0.0, 0.0, Rule::Exact) }
            .note(format!("no value: {why}"))
    }

    /// The same row where it cannot be measured, for want of a file of the data sets. It contradicts nothing.
    pub(crate) fn skipped(self, file: &str) -> Row {
        Row { measured: None, within: None, ..self }.note(format!("skipped: no data ({file})"))
    }

    /// Whether the row was skipped: it is neither within its tolerance nor off it.
    pub fn is_skipped(&self) -> bool {
        self.within.is_none()
    }

    /// Whether ours came out of simulated runs and counts.
    pub(crate) fn is_measured(&self) -> bool {
        self.kind == MEASURED && !self.is_skipped()
    }

    /// Measured less reference: as a share of the reference in per cent, or as it is where that says nothing.
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

/// How far a measured value is from its reference.
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
