//! Text form of a fit.

use super::report::{Fit, Prediction, Row, Value};
use std::fmt::{self, Write};

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Value| {
            let Value { key, before, value, job, measure, unit, measured, reached, met, why } = value;
            let met = if *met { "" } else { "  NOT MET" };
            let from = format!("{measure} of {job}, {} {unit} ({why})", number(*measured));
            [key.clone(), before.clone(), value.clone(), from, format!("{}{met}", number(*reached))]
        };
        table(f, ["fitted value", "was", "is", "chosen by", "reached"], self.values.iter().map(value))?;
        writeln!(f)?;
        let row = |row: &Row| {
            let simulated = row.simulated.map_or_else(|| "-".to_owned(), number);
            let error = match row.error() {
                _ if row.fitted => "fitted".to_owned(),
                Some(error) if row.beyond_queue => format!("{}, beyond the queue", percent(error)),
                Some(error) => percent(error),
                None => "too few requests".to_owned(),
            };
            let range = row.low.zip(row.high).map_or_else(String::new, |(low, high)| {
                let outside = if low <= row.measured && row.measured <= high { "" } else { ", outside" };
                format!("{} to {}{outside}", number(low), number(high))
            });
            let figure = format!("{} {}", row.measure, row.unit);
            [row.job.clone(), figure, number(row.measured), simulated, error, range]
        };
        table(
            f,
            ["measured job", "metric", "measured", "fitted drive", "error", "stated range"],
            self.points.iter().map(row),
        )?;
        writeln!(f)?;
        let prediction = |p: &Prediction| {
            let range = format!("{} to {}", number(p.low), number(p.high));
            let apart = format!("{} {}", percent(p.low / p.value - 1.0), percent(p.high / p.value - 1.0));
            [p.job.clone(), format!("{} {}", p.measure, p.unit), number(p.value), range, apart]
        };
        table(
            f,
            ["predicted job", "metric", "fitted drive", "stated range", "deviation"],
            self.predictions.iter().map(prediction),
        )?;
        writeln!(f)?;
        for other in &self.readings {
            let verdict =
                if other.is_met { "has the same metrics" } else { "does not have the same metrics" };
            writeln!(f, "reading: {}: {verdict}", other.name)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        for (name, mean, rows, worst) in self.errors() {
            let worst = format!("{} {}", worst.job, percent(worst.error().unwrap_or_default()));
            writeln!(
                f,
                "mean error of {name}: {:.1} % over {rows} that were not fitted; worst: {worst}",
                100.0 * mean
            )?;
        }
        let (inside, all) = self.inside();
        if all > 0 {
            writeln!(
                f,
                "inside the stated range: {:.1} % of {all} metrics that were not fitted",
                100.0 * inside as f64 / all as f64
            )?;
        }
        let unmet = self.values.iter().filter(|value| !value.met);
        for Value { key, job, measured, reached, value, .. } in unmet {
            let short = percent(reached / measured - 1.0);
            writeln!(
                f,
                "not met: with {key} = {value} {job} reaches {}, {short}: a different component of the drive is the limit",
                number(*reached)
            )?;
        }
        write!(f, "{} runs", self.runs)
    }
}

/// Formats at least four significant digits, with all digits before the point.
fn number(value: f64) -> String {
    let digits = if value.abs() >= 1000.0 {
        0
    } else if value.abs() >= 100.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// Writes a table with columns as wide as needed.
fn table<const N: usize>(
    f: &mut fmt::Formatter<'_>,
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> fmt::Result {
    let all: Vec<[String; N]> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    let wide: [usize; N] =
        std::array::from_fn(|n| all.iter().map(|row| row[n].chars().count()).max().unwrap_or(0));
    for row in &all {
        let mut line = String::new();
        for (cell, wide) in row.iter().zip(wide) {
            write!(line, "{cell:<wide$}  ")?;
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}
