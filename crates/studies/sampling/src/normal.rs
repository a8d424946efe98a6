//! The standard normal distribution.

/// The `p`-quantile of the standard normal distribution, for `p` in [0.5, 1).
///
/// By halving on the complementary error function: exact to the last bits wherever libm's erfc is.
pub(crate) fn quantile(p: f64) -> f64 {
    debug_assert!((0.5..1.0).contains(&p), "probability {p}");
    let above = |x: f64| 0.5 * libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    // Beyond 39 the tail is below the smallest number.
    let (mut low, mut high) = (0.0, 39.0);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if above(middle) > 1.0 - p { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::quantile;

    /// M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), table 26.5.
    #[test]
    fn published_quantiles() {
        for (p, x) in [
            (0.5, 0.0),
            (0.75, 0.674_490),
            (0.9, 1.281_552),
            (0.975, 1.959_964),
            (0.995, 2.575_829),
            (0.9995, 3.290_527),
        ] {
            assert!((quantile(p) - x).abs() < 1e-6, "{p}: {}", quantile(p));
        }
    }
}
