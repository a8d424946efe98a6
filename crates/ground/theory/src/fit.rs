//! Goodness of fit of a sample to a distribution.

use crate::special::regularized_gamma_q;

/// Outcome of a goodness-of-fit test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The test statistic.
    pub statistic: f64,
    /// Probability of a statistic at least as large if the sample is of the distribution.
    pub p_value: f64,
}

/// Probability that chi-square with `df` degrees of freedom exceeds `x`.
pub fn chi_square_tail(x: f64, df: u32) -> f64 {
    regularized_gamma_q(0.5 * f64::from(df), 0.5 * x)
}

/// Pearson's chi-square test of counts against expected counts, with one degree of freedom less than there
/// are cells. The approximation wants expected counts of five or more: join cells first.
///
/// # Panics
/// If the two differ in length or there are fewer than two cells.
pub fn chi_square(observed: &[u64], expected: &[f64]) -> Fit {
    assert_eq!(observed.len(), expected.len(), "cells do not match");
    assert!(observed.len() >= 2, "fewer than two cells");
    let statistic = observed.iter().zip(expected).map(|(&o, e)| (o as f64 - e) * (o as f64 - e) / e).sum();
    Fit { statistic, p_value: chi_square_tail(statistic, observed.len() as u32 - 1) }
}

/// Kolmogorov and Smirnov's one-sample test of `sample` against the continuous distribution function `cdf`;
/// sorts the sample.
///
/// The p-value is asymptotic with Stephens's correction for small samples (M. A. Stephens, J. Royal
/// Statistical Society B 32(1), 1970).
///
/// # Panics
/// If the sample is empty.
pub fn kolmogorov_smirnov(sample: &mut [f64], cdf: impl Fn(f64) -> f64) -> Fit {
    assert!(!sample.is_empty(), "empty sample");
    sample.sort_unstable_by(f64::total_cmp);
    let n = sample.len() as f64;
    let mut statistic: f64 = 0.0;
    for (i, &x) in sample.iter().enumerate() {
        let f = cdf(x);
        statistic = statistic.max((i + 1) as f64 / n - f).max(f - i as f64 / n);
    }
    let root = n.sqrt();
    Fit { statistic, p_value: kolmogorov_tail(statistic * (root + 0.12 + 0.11 / root)) }
}

/// Probability that Kolmogorov's limiting statistic exceeds `x`: `2 sum (-1)^(k-1) exp(-2 k^2 x^2)`.
pub fn kolmogorov_tail(x: f64) -> f64 {
    if x < 0.2 {
        // The series converges too slowly; the tail differs from one by less than 1e-12.
        return 1.0;
    }
    let term = |k: i32| (-2.0 * f64::from(k * k) * x * x).exp();
    let sum: f64 = (1..=40).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{chi_square, chi_square_tail, kolmogorov_smirnov, kolmogorov_tail};

    #[test]
    fn published_critical_values_of_chi_square() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4.
        let table = [
            (1, 3.841, 6.635),
            (2, 5.991, 9.210),
            (10, 18.307, 23.209),
            (30, 43.773, 50.892),
            (100, 124.342, 135.807),
        ];
        for (df, five, one) in table {
            assert!((chi_square_tail(five, df) - 0.05).abs() < 3e-5, "df {df}");
            assert!((chi_square_tail(one, df) - 0.01).abs() < 3e-5, "df {df}");
        }
    }

    #[test]
    fn published_critical_values_of_kolmogorov() {
        // N. Smirnov, Annals of Mathematical Statistics 19(2), 1948.
        for (x, p) in [(1.2238, 0.10), (1.3581, 0.05), (1.6276, 0.01)] {
            assert!((kolmogorov_tail(x) - p).abs() < 1e-4);
        }
        assert!((kolmogorov_tail(0.2) - 1.0).abs() < 1e-11);
    }

    #[test]
    fn dice_and_uniform_numbers() {
        let fair = chi_square(&[22, 21, 22, 27, 22, 36], &[25.0; 6]);
        assert!((fair.statistic - 6.72).abs() < 1e-12);
        assert!((fair.p_value - 0.2423).abs() < 1e-4);
        let mut even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
        let fit = kolmogorov_smirnov(&mut even, |x| x);
        assert!((fit.statistic - 0.005).abs() < 1e-12);
        assert!(fit.p_value > 0.999);
        assert!(kolmogorov_smirnov(&mut even, |x| x * x).p_value < 1e-4);
    }
}
