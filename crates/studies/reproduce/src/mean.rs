//! Means over workloads and seeds.

use super::study::{Found, Point};
use config::Diagnostic;
use machine::result::Document;
use stats::student_t_quantile;

/// Values of runs, named by workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(Vec<(String, f64)>);

/// Metric read from a run.
pub(crate) type Metric = fn(&Document) -> Result<f64, Diagnostic>;

/// Programs of a point, without their parameters.
fn name(point: &Point) -> String {
    let programs: Vec<&str> = point.workloads.iter().map(|w| w.split(':').next().unwrap_or(w)).collect();
    match point.seed {
        1 => programs.join("-"),
        seed => format!("{}#{seed}", programs.join("-")),
    }
}

impl Values {
    /// Metric of each point.
    ///
    /// # Errors
    /// A run failed.
    pub(crate) fn of(found: &Found, points: &[Point], metric: Metric) -> Result<Values, Diagnostic> {
        let value = |point: &Point| Ok((name(point), metric(found.get(point)?)?));
        points.iter().map(value).collect::<Result<_, _>>().map(Values)
    }

    /// Ratio of a metric, point by point.
    ///
    /// # Errors
    /// A run failed.
    pub(crate) fn ratios(
        found: &Found,
        over: &[Point],
        under: &[Point],
        metric: Metric,
    ) -> Result<Values, Diagnostic> {
        Ok(Values::of(found, over, metric)?.over(Values::of(found, under, metric)?))
    }

    /// Ratio to values of the same runs, in the same order.
    pub(crate) fn over(self, under: Values) -> Values {
        let pairs = self.0.into_iter().zip(under.0);
        Values(pairs.map(|((name, a), (_, b))| (name, a / b)).collect())
    }

    /// Half width of the 95 % confidence interval of the arithmetic mean over workloads, where each workload ran with
    /// the same number of consecutive seeds; `None` for a single seed.
    pub(crate) fn interval(&self, seeds: usize) -> Option<f64> {
        if seeds < 2 {
            return None;
        }
        let of_seed = |seed: usize| {
            let values: Vec<f64> = self.0.iter().skip(seed).step_by(seeds).map(|(_, v)| *v).collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let means: Vec<f64> = (0..seeds).map(of_seed).collect();
        let n = seeds as f64;
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0);
        Some(student_t_quantile(0.975, seeds as u32 - 1) * (variance / n).sqrt())
    }

    /// Values with their names.
    pub(crate) fn new(values: Vec<(String, f64)>) -> Values {
        Values(values)
    }

    /// Applies a function to each value.
    pub(crate) fn map(self, change: impl Fn(f64) -> f64) -> Values {
        Values(self.0.into_iter().map(|(name, value)| (name, change(value))).collect())
    }

    /// Sum with values of the same runs, in the same order.
    pub(crate) fn plus(self, other: Values) -> Values {
        let pairs = self.0.into_iter().zip(other.0);
        Values(pairs.map(|((name, a), (_, b))| (name, a + b)).collect())
    }

    /// Product with values of the same runs, in the same order.
    pub(crate) fn times(self, other: Values) -> Values {
        let pairs = self.0.into_iter().zip(other.0);
        Values(pairs.map(|((name, a), (_, b))| (name, a * b)).collect())
    }

    fn count(&self) -> f64 {
        self.0.len() as f64
    }

    /// Geometric mean.
    pub(crate) fn geometric(&self) -> f64 {
        libm::exp(self.0.iter().map(|(_, v)| libm::log(*v)).sum::<f64>() / self.count())
    }

    /// Arithmetic mean.
    pub(crate) fn arithmetic(&self) -> f64 {
        self.0.iter().map(|(_, v)| v).sum::<f64>() / self.count()
    }

    fn harmonic(&self) -> f64 {
        self.count() / self.0.iter().map(|(_, v)| 1.0 / v).sum::<f64>()
    }

    /// Maximum.
    pub(crate) fn max(&self) -> f64 {
        self.0.iter().map(|(_, v)| *v).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Minimum.
    pub(crate) fn min(&self) -> f64 {
        self.0.iter().map(|(_, v)| *v).fold(f64::INFINITY, f64::min)
    }

    /// Half width of the 95 % confidence interval of the geometric mean, as a factor; `None` for a single value.
    fn spread(&self) -> Option<f64> {
        let n = self.count();
        if n < 2.0 {
            return None;
        }
        let logs: Vec<f64> = self.0.iter().map(|(_, v)| libm::log(*v)).collect();
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>() / (n - 1.0);
        Some(libm::exp(student_t_quantile(0.975, self.0.len() as u32 - 1) * (variance / n).sqrt()))
    }

    /// Formats every value.
    pub(crate) fn each(&self) -> String {
        let each: Vec<String> = self.0.iter().map(|(name, v)| format!("{name} {v:.3}")).collect();
        each.join(", ")
    }

    /// Formats every value, and the means that are not the row's.
    pub(crate) fn note(&self) -> String {
        // A value of zero has no logarithm.
        let spread = self
            .spread()
            .filter(|s| s.is_finite())
            .map_or(String::new(), |s| format!(", 95 % within a factor {s:.2}"));
        format!(
            "{}; geometric {:.3}{spread}, arithmetic {:.3}, harmonic {:.3}",
            self.each(),
            self.geometric(),
            self.arithmetic(),
            self.harmonic()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Values;

    #[test]
    fn the_three_means_of_one_and_four() {
        let values = Values(vec![("a".into(), 1.0), ("b".into(), 4.0)]);
        assert!((values.geometric() - 2.0).abs() < 1e-12);
        assert!((values.arithmetic() - 2.5).abs() < 1e-12 && (values.harmonic() - 1.6).abs() < 1e-12);
        assert_eq!((values.min(), values.max()), (1.0, 4.0));
        let squares = values.clone().times(values.clone());
        assert_eq!((squares.min(), squares.max()), (1.0, 16.0));
        assert_eq!(squares.over(values).max(), 4.0);
    }

    /// Means of the seeds are 2, 4 and 6: a variance of 4 over three seeds, and a quantile of 4.303 for two degrees of
    /// freedom.
    #[test]
    fn the_interval_is_of_the_means_of_the_seeds() {
        let of = |values: &[f64]| Values(values.iter().map(|v| (String::new(), *v)).collect());
        let values = of(&[1.0, 3.0, 5.0, 3.0, 5.0, 7.0]);
        let half = values.interval(3).expect("three seeds");
        assert!((half - 4.302_65 * (4.0f64 / 3.0).sqrt()).abs() < 1e-3, "{half}");
        assert_eq!(values.interval(1), None);
    }
}
