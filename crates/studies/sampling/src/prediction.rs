//! Prediction of the time of all kernels from the drawn ones: its bound and confidence, and the number of samples
//! required.

use crate::plan::{Moments, Plan};
use crate::selection::Sample;
use config::{Diagnostic, Place};
use stats::student_t_quantile;

/// Degrees of freedom from which Student's quantile equals that of the normal distribution to four digits.
const MANY: f64 = 10_000.0;

/// Predicted time of all kernels, with its confidence interval.
///
/// `Y = sum N_i mean_i` over groups of `N_i` kernels with the mean `mean_i` of `m_i` samples. Its variance is `V = sum
/// N_i^2 (1 - m_i / N_i) s_i^2 / m_i` with the variance `s_i^2` of the samples, its degrees of freedom `f = V^2 /
/// sum(V_i^2 / (m_i - 1))` (F. E. Satterthwaite, Biometrics Bulletin 2, 1946), and the half width of the interval `t_f
/// sqrt(V)`. Few samples may be equal by chance: the half width is at least `z sqrt(U)`, where `U` is the variance that
/// the durations of the profile give the same draw, each group in proportion to its sampled mean. A group sampled once,
/// because its durations are all equal in the profile, is assumed to be equal in the simulation, too.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    total_ns: f64,
    half_width_ns: f64,
    sampled_ns: f64,
}

impl Prediction {
    pub(crate) fn of(plan: &Plan, sample: &Sample, mut duration_ns: impl FnMut(u32) -> f64) -> Prediction {
        let (mut total, mut sampled) = (0.0, 0.0);
        let (mut variance, mut freedom, mut profiled) = (0.0, 0.0, 0.0);
        let mut durations = Vec::new();
        for (group, drawn) in plan.groups().iter().zip(sample.drawn()) {
            durations.clear();
            durations.extend(drawn.iter().map(|kernel| duration_ns(*kernel)));
            let (n, m) = (group.count() as f64, drawn.len() as f64);
            let sum: f64 = durations.iter().sum();
            let mean = sum / m;
            total += n * mean;
            sampled += sum;
            if group.count() == drawn.len() as u64 {
                continue;
            }
            if m > 1.0 {
                let squares: f64 = durations.iter().map(|ns| (ns - mean) * (ns - mean)).sum();
                let own = n * n * (1.0 - m / n) * squares / (m - 1.0) / m;
                variance += own;
                freedom += own * own / (m - 1.0);
            }
            if group.mean_ns() > 0.0 {
                let relative = group.deviation_ns() / group.mean_ns();
                profiled += (n * mean * relative).powi(2) / m * (n - m) / (n - 1.0);
            }
        }
        let bound = plan.bound();
        let quantile = match variance * variance / freedom {
            few if few < MANY => student_t_quantile(0.5 + 0.5 * bound.confidence(), few.max(1.0) as u32),
            // Very many, or a variance of zero.
            _ => quantile(0.5 + 0.5 * bound.confidence()),
        };
        let half_width_ns = (quantile * variance.sqrt()).max(bound.z() * profiled.sqrt());
        Prediction { total_ns: total, half_width_ns, sampled_ns: sampled }
    }

    /// Predicted time of all kernels together in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.total_ns
    }

    /// Half the width of the confidence interval of the total in nanoseconds.
    pub fn half_width_ns(&self) -> f64 {
        self.half_width_ns
    }

    /// Time of the simulated kernels in nanoseconds.
    pub fn sampled_ns(&self) -> f64 {
        self.sampled_ns
    }

    /// Relative error of the prediction; `None` if the actual total is zero and the prediction is not.
    pub fn error(&self, actual_ns: f64) -> Option<f64> {
        if self.total_ns == actual_ns {
            return Some(0.0);
        }
        (actual_ns > 0.0).then(|| (self.total_ns - actual_ns) / actual_ns)
    }

    /// Returns whether a total lies inside the interval.
    pub fn covers(&self, actual_ns: f64) -> bool {
        // Rounding of the sums does not count as an error.
        (self.total_ns - actual_ns).abs() <= self.half_width_ns + 1e-9 * actual_ns
    }
}

/// Number of samples from which the mean of a group counts as normal: `n_min` of Allegro's published script, the usual
/// rule of thumb for the central limit theorem.
const NORMAL: u64 = 30;

/// Minimum number of samples that show a spread.
const SPREAD: u64 = 2;

/// Bound on the relative error of the predicted total, and its confidence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bound {
    error: f64,
    confidence: f64,
    z: f64,
}

impl Bound {
    /// Creates a bound from shares: `Bound::new(0.05, 0.95)` is 5 % with a confidence of 95 %.
    ///
    /// # Errors
    /// The error is not between 0 and 1, or the confidence is below 0.5 or not below 1.
    pub fn new(error: f64, confidence: f64) -> Result<Bound, Diagnostic> {
        let refuse = |option: &str, what: String, allowed: &str, help: &str| {
            let mut diagnostic =
                Diagnostic::new(what).at(Place { source: option.to_owned(), ..Place::default() }).help(help);
            diagnostic.allowed = vec![allowed.to_owned()];
            diagnostic
        };
        if !(error > 0.0 && error < 1.0) {
            return Err(refuse(
                "--error",
                format!("the error bound of {} % is out of range", 100.0 * error),
                "above 0 % and below 100 %",
                "5% is Allegro's bound; without any error all kernels must be simulated",
            ));
        }
        if !(0.5..1.0).contains(&confidence) {
            return Err(refuse(
                "--confidence",
                format!("the confidence of {} % is out of range", 100.0 * confidence),
                "at least 50 %, and below 100 %",
                "95% is usual; only simulating all kernels is certain",
            ));
        }
        Ok(Bound { error, confidence, z: quantile(0.5 + 0.5 * confidence) })
    }

    /// Bound on the relative error, as a share.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Confidence, as a share.
    pub fn confidence(&self) -> f64 {
        self.confidence
    }

    /// Two-sided quantile of the normal distribution at the confidence: 1.96 at 95 %.
    pub fn z(&self) -> f64 {
        self.z
    }

    /// Number of samples that keep the mean of an infinite group within the bound: `(z sigma / (e mu))^2`.
    pub(crate) fn endless(&self, of: &Moments) -> f64 {
        if of.min == of.max {
            return 0.0;
        }
        // A group with a spread has a mean above zero: durations are not negative.
        let z_by_e = self.z / self.error;
        z_by_e * z_by_e * of.variance() / (of.mean * of.mean)
    }

    /// Number of samples, drawn without replacement, that keep the mean of a group of `of.count` kernels within the
    /// bound; `total_ns` is the duration of all groups together.
    pub(crate) fn samples(&self, of: &Moments, total_ns: f64) -> u64 {
        let endless = self.endless(of);
        let count = of.count as f64;
        let needed = count * endless / (count - 1.0 + endless);
        self.at_least(of, total_ns, (needed * (1.0 - 1e-12)).ceil() as u64)
    }

    /// `samples`, or the larger number that the formulas need for the distribution that they assume of the mean.
    pub(crate) fn at_least(&self, of: &Moments, total_ns: f64, samples: u64) -> u64 {
        if of.min == of.max {
            return 1;
        }
        let floor = if of.count as f64 * of.reach() > self.error * total_ns { NORMAL } else { SPREAD };
        samples.max(floor).min(of.count)
    }
}

/// Quantile `p` of the standard normal distribution, for `p` in [0.5, 1).
///
/// By bisection on the complementary error function: exact to the last bits wherever libm's erfc is.
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
    use super::*;
    use crate::{Bound, Plan, Profile, Rule};

    #[test]
    fn estimate_and_interval_by_hand() {
        // Two kinds, both sampled three times of 2,000 or 4,000, with durations that a simulation might give.
        let mut profile = Profile::default();
        for kernel in 0..6000_u32 {
            let name = if kernel < 2000 { "a" } else { "b" };
            profile.push(name, None, None, 1000.0 + f64::from(kernel % 3)).unwrap();
        }
        let bound = Bound::new(0.05, 0.95).unwrap();
        let plan = Plan::new(&profile, bound, Rule::Allegro).unwrap();
        assert!(plan.groups().iter().all(|group| group.samples() == 2));
        let sample = plan.draw(3);
        let durations = |kernel: u32| {
            let (group, drawn) =
                sample.drawn().iter().enumerate().find(|(_, g)| g.contains(&kernel)).unwrap();
            [[10.0, 14.0], [100.0, 106.0]][group][drawn.iter().position(|k| *k == kernel).unwrap()]
        };
        let prediction = sample.predict(&plan, durations);
        assert_eq!(prediction.total_ns(), 2000.0 * 12.0 + 4000.0 * 103.0);
        assert_eq!(prediction.sampled_ns(), 230.0);
        // s^2 = 8 and 18; V = 2000^2 x 0.999 x 4 + 4000^2 x 0.9995 x 9.
        let (a, b) = (2000.0_f64.powi(2) * 0.999 * 4.0, 4000.0_f64.powi(2) * 0.9995 * 9.0);
        // Satterthwaite: (a + b)^2 / (a^2 + b^2) = 1.2 degrees of freedom, so 1; t at 97.5 % is 12.7062 (NIST
        // 1.3.6.7.2).
        assert!(((a + b) * (a + b) / (a * a + b * b)) as u32 == 1);
        let expected = 12.7062 * (a + b).sqrt();
        assert!((prediction.half_width_ns() - expected).abs() < 1e-4 * expected, "{prediction:?}");
        assert!(
            prediction.covers(436_000.0 + expected * 0.999)
                && !prediction.covers(436_000.0 + expected * 1.001)
        );
        assert!((prediction.error(400_000.0).unwrap() - 0.09).abs() < 1e-12);
    }

    #[test]
    fn all_kernels_leave_no_doubt() {
        let mut profile = Profile::default();
        for ns in [1.0, 2.0, 10.0, 400.0] {
            profile.push("k", None, None, ns).unwrap();
        }
        profile.push("other", None, None, 0.0).unwrap();
        let plan = Plan::new(&profile, Bound::new(0.001, 0.95).unwrap(), Rule::Allegro).unwrap();
        let prediction = plan.draw(1).predict(&plan, |kernel| profile.durations_ns()[kernel as usize]);
        assert_eq!((prediction.total_ns(), prediction.half_width_ns()), (413.0, 0.0));
        assert_eq!(prediction.error(413.0), Some(0.0));
    }

    #[test]
    fn nothing_takes_no_time() {
        let mut profile = Profile::default();
        for _ in 0..10 {
            profile.push("k", None, None, 0.0).unwrap();
        }
        let plan = Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), Rule::Allegro).unwrap();
        let prediction = plan.draw(1).predict(&plan, |_| 0.0);
        assert_eq!((prediction.total_ns(), prediction.error(0.0)), (0.0, Some(0.0)));
        assert!(prediction.covers(0.0));
    }

    fn moments(count: u64, mean: f64, sigma: f64) -> Moments {
        Moments { count, mean, squares: sigma * sigma * count as f64, min: mean - sigma, max: mean + sigma }
    }

    #[test]
    fn bounds_that_cannot_be() {
        for (error, confidence, option) in [
            (0.0, 0.95, "--error"),
            (1.0, 0.95, "--error"),
            (2.0, 0.95, "--error"),
            (f64::NAN, 0.95, "--error"),
            (0.05, 1.0, "--confidence"),
            (0.05, 0.0, "--confidence"),
            (0.05, f64::NAN, "--confidence"),
        ] {
            let fault = Bound::new(error, confidence).unwrap_err();
            assert_eq!(fault.place.as_ref().unwrap().source, option, "{fault}");
            assert!(!fault.allowed.is_empty());
        }
    }

    /// (1.959964 x 0.2 / 0.05)^2 = 61.4633 of an endless group; of 1,000 kernels 1000 x 61.4633 / 1060.4633 = 57.96; of
    /// 100 it is 6146.33 / 160.4633 = 38.30.
    #[test]
    fn published_formula_with_a_finite_population() {
        let bound = Bound::new(0.05, 0.95).unwrap();
        assert!((bound.endless(&moments(1_000, 10.0, 2.0)) - 61.4633).abs() < 1e-3);
        let samples = |count| bound.samples(&moments(count, 10.0, 2.0), 10.0 * count as f64);
        assert_eq!([samples(u64::from(u32::MAX)), samples(1_000), samples(100)], [62, 58, 39]);
        assert_eq!([samples(2), samples(30), samples(40)], [2, 30, 30]);
    }

    /// The error of a sample of m of N without replacement is z sigma sqrt((N - m) / (m (N - 1))).
    #[test]
    fn one_sample_fewer_is_not_enough() {
        for (error, sigma, count) in [(0.05, 0.5, 500), (0.01, 0.1, 10_000), (0.02, 0.9, 9_999)] {
            let bound = Bound::new(error, 0.95).unwrap();
            let m = bound.samples(&moments(count, 1.0, sigma), count as f64);
            let half_width = |m: u64| {
                let (m, n) = (m as f64, count as f64);
                1.959_964 * sigma * ((n - m) / (m * (n - 1.0))).sqrt()
            };
            assert!(half_width(m) <= error * (1.0 + 1e-6) && half_width(m - 1) > error, "{m} of {count}");
        }
    }

    #[test]
    fn a_kernel_that_can_move_the_total_needs_a_normal_mean() {
        let bound = Bound::new(0.05, 0.95).unwrap();
        // One sample would do for a standard deviation of 2.5 %, but a kernel may be 10 % off.
        let of = Moments { max: 11.0, ..moments(1_000, 10.0, 0.25) };
        assert_eq!(bound.samples(&of, 10_000.0), 30);
        // The same group among others that take twenty times as long cannot.
        assert_eq!(bound.samples(&of, 200_000.0), 2);
        // And all equal is known from one.
        let equal = Moments { min: 10.0, max: 10.0, squares: 0.0, ..of };
        assert_eq!(bound.samples(&equal, 10_000.0), 1);
    }

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
