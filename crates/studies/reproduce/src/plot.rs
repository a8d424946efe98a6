//! Rows that are points of curves, as tables that a plotting program reads.

use super::Row;
use std::collections::BTreeMap;

/// A table of curves over one quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plot {
    /// `mqms.curve`.
    pub name: String,
    /// CSV: the quantity, then for each curve its reference and its value.
    pub csv: String,
}

/// The tables in rows whose ids end as `curve.NAME.X`, in the order in which the curves come.
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

/// `mqms.curve`, `pm9a3` and 64 of `mqms.curve.pm9a3.64`.
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
