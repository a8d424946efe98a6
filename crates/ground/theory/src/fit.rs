//! Goodness of fit of a sample to a distribution.

use std::f64::consts::{E, PI};

/// Outcome of a goodness-of-fit test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Test statistic.
    pub statistic: f64,
    /// Probability of a statistic at least as large if the sample follows the distribution.
    pub p_value: f64,
}

/// Returns the probability that chi-square with `df` degrees of freedom exceeds `x`.
pub fn chi_square_tail(x: f64, df: u32) -> f64 {
    regularized_gamma_q(0.5 * f64::from(df), 0.5 * x)
}

/// Pearson's chi-square test of counts against expected counts, with one degree of freedom less than the number of
/// cells. The approximation needs expected counts of five or more: join cells first.
///
/// # Panics
/// If the two differ in length or there are fewer than two cells.
pub fn chi_square(observed: &[u64], expected: &[f64]) -> Fit {
    assert_eq!(observed.len(), expected.len(), "counts and expected counts differ in length");
    assert!(observed.len() >= 2, "at least two cells are needed");
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

/// Returns the probability that Kolmogorov's limiting statistic exceeds `x`: `2 sum (-1)^(k-1) exp(-2 k^2 x^2)`.
pub fn kolmogorov_tail(x: f64) -> f64 {
    if x < 0.2 {
        // The series converges too slowly; the tail differs from one by less than 1e-12.
        return 1.0;
    }
    let term = |k: i32| (-2.0 * f64::from(k * k) * x * x).exp();
    let sum: f64 = (1..=40).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

// Special functions.

/// Returns the principal branch of Lambert's W: the `w >= -1` with `w e^w = x`; NaN below `-1/e`.
///
/// R. Corless et al., On the Lambert W function, Advances in Computational Mathematics 5, 1996: the
/// branch-point series (4.22) as a start and Halley's iteration (5.9).
pub fn lambert_w0(x: f64) -> f64 {
    if x < -1.0 / E {
        // Rounding may push the argument of a drive without over-provisioning below the branch point.
        return if x > -1.0 / E - 1e-15 { -1.0 } else { f64::NAN };
    }
    let p = (2.0 * (E * x + 1.0)).max(0.0).sqrt();
    let mut w = if x < 0.0 { -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p } else { (1.0 + x).ln() };
    for _ in 0..50 {
        let (e, d) = (w.exp(), w + 1.0);
        let f = w * e - x;
        if f == 0.0 || d == 0.0 {
            break;
        }
        let step = f / (e * d - (w + 2.0) * f / (2.0 * d));
        w -= step;
        if step.abs() <= 1e-16 * w.abs() {
            break;
        }
    }
    w
}

/// Returns the natural logarithm of the gamma function for positive `x`, relative error below `1e-13`.
///
/// Stirling's series after shifting the argument to 10 or more (M. Abramowitz, I. A. Stegun, 6.1.41).
pub fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 1.0);
    while x < 10.0 {
        shift *= x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let tail = 1.0 / 12.0
        + y * (-1.0 / 360.0
            + y * (1.0 / 1260.0 + y * (-1.0 / 1680.0 + y * (1.0 / 1188.0 - y * 691.0 / 360_360.0))));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * PI).ln() + tail / x - shift.ln()
}

/// Returns the regularised upper incomplete gamma function `Q(a, x)`, for positive `a` and non-negative `x`.
///
/// Uses series 6.5.29 below `a + 1`, and above it the continued fraction 6.5.31 by Lentz's method (M. Abramowitz, I. A.
/// Stegun).
pub fn regularized_gamma_q(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return 1.0 - front * sum;
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (f64::INFINITY, 1.0 / b);
    let mut h = d;
    for i in 1..10_000 {
        let n = -f64::from(i) * (f64::from(i) - a);
        b += 2.0;
        d = 1.0 / (b + n * d);
        c = b + n / c;
        h *= c * d;
        if (c * d - 1.0).abs() < 1e-16 {
            break;
        }
    }
    front * h
}

#[cfg(test)]
mod tests {
    use super::{
        chi_square, chi_square_tail, kolmogorov_smirnov, kolmogorov_tail, lambert_w0, ln_gamma,
        regularized_gamma_q,
    };

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

    #[test]
    fn lambert_inverts_and_has_its_known_values() {
        assert!((lambert_w0(1.0) - 0.567_143_290_409_783_8).abs() < 1e-15);
        assert!((lambert_w0(std::f64::consts::E) - 1.0).abs() < 1e-15);
        assert_eq!(lambert_w0(0.0), 0.0);
        assert!(lambert_w0(-0.4).is_nan());
        for w in [-0.9999f64, -0.99, -0.7, -0.1, -1e-9, 1e-3, 2.0, 50.0] {
            let back = lambert_w0(w * w.exp());
            // Near the branch point digits are lost in the argument itself: dw/dx = w / (x (1 + w)).
            assert!((back - w).abs() < 1e-14 * w.abs() + 1e-15 / (1.0 + w), "{w} {back}");
        }
    }

    #[test]
    fn gamma_of_halves_and_factorials() {
        let mut factorial = 1.0f64;
        for n in 1..100 {
            assert!((ln_gamma(f64::from(n)) - factorial.ln()).abs() < 1e-12 * factorial.ln().max(1.0));
            factorial *= f64::from(n);
        }
        assert!((ln_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-14);
    }

    #[test]
    fn incomplete_gamma_of_a_whole_number_is_a_poisson_sum() {
        for n in [1, 2, 5, 20, 60] {
            for x in [0.01f64, 0.5, 1.0, 3.0, 10.0, 25.0, 90.0] {
                let (mut term, mut sum) = ((-x).exp(), 0.0);
                for k in 0..n {
                    sum += term;
                    term *= x / f64::from(k + 1);
                }
                let q = regularized_gamma_q(f64::from(n), x);
                assert!((q - sum).abs() < 1e-13, "Q({n}, {x}) = {q} for {sum}");
            }
        }
    }
}
