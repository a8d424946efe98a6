//! Values of a paper: `papers/<name>/expected.toml`, and their tolerances.
//!
//! The rules are stated at the head of each file.

use super::{Row, Rule};
use config::Diagnostic;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Tolerance of a paper's rows. A file may set it at its head: `[tolerance]` with `within` and `points`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tolerance {
    /// Relative tolerance to the paper's value.
    within: f64,
    /// Tolerance of percentages below 100, in points: minimum and maximum.
    points: (f64, f64),
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance { within: 0.25, points: (2.0, 10.0) }
    }
}

/// Value of a paper.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Figure {
    pub(crate) id: String,
    #[serde(rename = "where")]
    place: String,
    of: String,
    unit: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    cmp: Comparison,
    value: Option<toml::Value>,
    #[serde(default)]
    note: String,
    /// Columns, for a table with one unit.
    #[serde(default)]
    columns: Vec<String>,
    /// Values of each program, for a table, in the order of its columns; `unit` names the columns if they have
    /// different units.
    #[serde(flatten)]
    programs: BTreeMap<String, toml::Value>,
    /// Tolerance of the file.
    #[serde(skip)]
    tolerance: Tolerance,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Measured,
    Arithmetic,
    Input,
    Cited,
    Undecidable,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
enum Comparison {
    #[default]
    #[serde(rename = "~")]
    Near,
    #[serde(rename = ">=")]
    AtLeast,
    #[serde(rename = "<=")]
    AtMost,
    #[serde(rename = "log10")]
    Decade,
    #[serde(rename = "order")]
    Order,
    #[serde(rename = "grid")]
    Grid,
}

/// Values of a paper.
pub(crate) struct Expected {
    figures: Vec<Figure>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    tolerance: Tolerance,
    target: Vec<Figure>,
}

impl Expected {
    /// Parses the text of an `expected.toml`.
    ///
    /// # Panics
    /// The text is malformed, or has an unknown key: the files ship with the program.
    pub(crate) fn read(text: &str) -> Expected {
        let file: File = toml::from_str(text).expect("expected.toml ships with the program");
        Expected {
            figures: file
                .target
                .into_iter()
                .map(|figure| Figure { tolerance: file.tolerance, ..figure })
                .flat_map(Figure::cells)
                .collect(),
        }
    }

    /// All values, in the order of the file. A table has one for each program and column: `table.program.column`.
    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }
}

impl Figure {
    /// Expands a table into its values; any other entry stays unchanged.
    fn cells(self) -> Vec<Figure> {
        if self.value.is_some() {
            let unknown = self.programs.keys().next();
            assert!(unknown.is_none(), "{}: unknown key {unknown:?}", self.id);
        }
        if self.programs.is_empty() {
            return vec![self];
        }
        let own = !self.columns.is_empty();
        let columns: Vec<String> =
            if own { self.columns.clone() } else { self.unit.split(", ").map(str::to_owned).collect() };
        let cell = |program: &str, column: &str, value: &toml::Value| Figure {
            id: format!("{}.{program}.{}", self.id, column.replace(' ', "_")),
            of: if own {
                format!("{}, {column}, {program}", self.of)
            } else {
                format!("{column} of {program}")
            },
            unit: if own { self.unit.clone() } else { column.to_owned() },
            value: Some(value.clone()),
            programs: BTreeMap::new(),
            ..self.clone()
        };
        let rows = self.programs.iter().flat_map(|(program, values)| {
            let values = values.as_array().map_or(&[][..], Vec::as_slice);
            columns.iter().zip(values).map(|(column, value)| cell(program, column, value)).collect::<Vec<_>>()
        });
        rows.collect()
    }

    /// Value of the paper, if it is a single number.
    pub(crate) fn number(&self) -> Option<f64> {
        let value = self.value.as_ref()?;
        value.as_float().or_else(|| value.as_integer().map(|n| n as f64))
    }

    /// Order of the paper: groups, the best first.
    pub(crate) fn groups(&self) -> Vec<Vec<String>> {
        let list = |value: &toml::Value| value.as_array().cloned().unwrap_or_default();
        let names =
            |group: &toml::Value| list(group).iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
        self.value.as_ref().map(list).unwrap_or_default().iter().map(names).collect()
    }

    /// Rule that compares ours with the paper's.
    fn rule(&self, paper: f64) -> Rule {
        let Tolerance { within, points } = self.tolerance;
        match self.cmp {
            Comparison::AtLeast => Rule::AtLeast,
            Comparison::AtMost => Rule::AtMost,
            Comparison::Decade => Rule::Points(0.5),
            Comparison::Order | Comparison::Grid => Rule::Exact,
            Comparison::Near if self.unit == "pct" && paper.abs() >= 100.0 => Rule::Gain(within),
            Comparison::Near if self.unit == "pct" => {
                Rule::Points((within * paper.abs()).clamp(points.0, points.1))
            }
            Comparison::Near => Rule::Share(within),
        }
    }

    fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Measured => "measured",
            Kind::Arithmetic => "arithmetic",
            Kind::Input => "input",
            Kind::Cited => "cited",
            Kind::Undecidable => "undecidable",
        }
    }

    /// Builds the row of a numeric value.
    ///
    /// # Errors
    /// The value is not a number.
    pub(crate) fn row(&self, measured: f64, note: impl Into<String>) -> Result<Row, Diagnostic> {
        let paper = self
            .number()
            .ok_or_else(|| Diagnostic::new(format!("the paper's value of {} is not a number", self.id)))?;
        let signs_agree = measured == 0.0 || paper == 0.0 || measured.signum() == paper.signum();
        let row = Row::new(self.id.clone(), unit(&self.unit), paper, measured, self.rule(paper));
        Ok(Row { within: row.within.map(|within| within && signs_agree), ..self.finish(row, note.into()) })
    }

    /// Builds the row of an order: `values` of each name, more is better. Ours is 1 if every group lies above the next.
    pub(crate) fn order(&self, values: &[(&str, f64)], note: impl Into<String>) -> Row {
        let of = |name: &String| values.iter().find(|(n, _)| n == name).map_or(f64::NAN, |(_, value)| *value);
        let holds = self
            .groups()
            .windows(2)
            .all(|pair| pair[0].iter().all(|better| pair[1].iter().all(|worse| of(better) > of(worse))));
        let shown: Vec<String> = values.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
        let note = [shown.join(", "), note.into()].join("; ");
        self.finish(
            Row::new(self.id.clone(), "holds", 1.0, f64::from(u8::from(holds)), Rule::Exact),
            note.trim_end_matches("; ").to_owned(),
        )
    }

    /// Builds the row of a property: ours is 1 if it holds.
    pub(crate) fn holds(&self, holds: bool, note: impl Into<String>) -> Row {
        let row = Row::new(self.id.clone(), "holds", 1.0, f64::from(u8::from(holds)), Rule::Exact);
        self.finish(row, note.into())
    }

    /// Builds the row of a grid: ours is the value at the paper's point relative to that at the best point.
    pub(crate) fn grid(&self, share_of_best: f64, note: impl Into<String>) -> Row {
        let row = Row::new(self.id.clone(), "of best", 1.0, share_of_best, Rule::Points(0.01));
        self.finish(row, note.into())
    }

    fn finish(&self, row: Row, note: String) -> Row {
        let remarks: Vec<&str> =
            [note.as_str(), self.note.as_str()].into_iter().filter(|n| !n.is_empty()).collect();
        Row {
            kind: self.kind(),
            place: format!("{}: {}", self.place, self.of),
            note: remarks.join(" | "),
            ..row
        }
    }
}

/// Unit in the form of rows.
fn unit(text: &str) -> &'static str {
    match text {
        "x" => "x",
        "pct" => "%",
        "GB/s" => "GB/s",
        "per page" => "per page",
        "KB" => "KB",
        "kernels" => "kernels",
        "us" => "us",
        "ms" => "ms",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(text: &str) -> Figure {
        let text = format!("[[target]]\nid = \"a.b\"\nwhere = \"V\"\nof = \"it\"\n{text}");
        Expected::read(&text).figures[0].clone()
    }

    #[test]
    fn tolerances_are_those_of_the_head_of_the_file() {
        for (text, measured, within) in [
            ("unit = \"x\"\nvalue = 4", 5.0, true),
            ("unit = \"x\"\nvalue = 4", 5.1, false),
            // 25 % of 31, and no sign but the paper's.
            ("unit = \"pct\"\nvalue = 31", 38.7, true),
            ("unit = \"pct\"\nvalue = 31", 38.8, false),
            // At least two points, at most ten.
            ("unit = \"pct\"\nvalue = 5", 7.0, true),
            ("unit = \"pct\"\nvalue = 1", -0.5, false),
            ("unit = \"pct\"\nvalue = 93", 82.9, false),
            // A gain of 186 % is a ratio of 2.86.
            ("unit = \"pct\"\nvalue = 186", 257.0, true),
            ("unit = \"pct\"\nvalue = 186", 258.0, false),
            ("unit = \"pct\"\ncmp = \">=\"\nvalue = 90", 91.0, true),
            ("unit = \"pct\"\ncmp = \">=\"\nvalue = 90", 89.0, false),
        ] {
            let row = figure(text).row(measured, "").expect("a number");
            assert_eq!(row.within, Some(within), "{text}: {measured}");
        }
    }

    #[test]
    fn a_table_has_a_figure_for_each_program_and_column() {
        let text = "[[target]]\nid = \"a.b\"\nwhere = \"V\"\nof = \"it\"\nkind = \"input\"\nunit = \"read ratio, kernels\"\n\
                    x = [0.5, 7]\ny = [1.0, 1]";
        let expected = Expected::read(text);
        let cells: Vec<_> = expected.figures().iter().map(|f| (f.id.as_str(), f.number())).collect();
        let known = [("x.read_ratio", 0.5), ("x.kernels", 7.0), ("y.read_ratio", 1.0), ("y.kernels", 1.0)];
        let known = known.map(|(id, value)| (format!("a.b.{id}"), Some(value)));
        assert!(known.iter().map(|(id, value)| (id.as_str(), *value)).eq(cells));
        let row = expected.figures()[1].row(7.0, "").expect("a number");
        assert_eq!((row.kind, row.unit, row.within), ("input", "kernels", Some(true)));
    }

    #[test]
    fn a_table_may_have_columns_of_one_unit() {
        let text = "[[target]]\nid = \"a.b\"\nwhere = \"V\"\nof = \"it\"\nunit = \"x\"\ncolumns = [\"p\", \"q-r\"]\ns = [1.5, 2]";
        let expected = Expected::read(text);
        let rows = expected.figures().iter().map(|f| (f.id.clone(), f.row(2.0, "").expect("a number")));
        let rows: Vec<_> = rows.map(|(id, row)| (id, row.unit, row.paper)).collect();
        assert_eq!(rows, [("a.b.s.p".to_owned(), "x", 1.5), ("a.b.s.q-r".to_owned(), "x", 2.0)]);
    }

    #[test]
    fn an_order_holds_between_groups_and_not_inside() {
        let order = figure("unit = \"order\"\ncmp = \"order\"\nvalue = [[\"a\"], [\"b\", \"c\"]]");
        assert_eq!(order.order(&[("a", 3.0), ("b", 1.0), ("c", 2.0)], "").within, Some(true));
        assert_eq!(order.order(&[("a", 3.0), ("b", 3.0), ("c", 2.0)], "").within, Some(false));
        assert_eq!(
            order.order(&[("a", 3.0), ("b", 1.0)], "").within,
            Some(false),
            "a missing value holds nothing"
        );
    }
}
