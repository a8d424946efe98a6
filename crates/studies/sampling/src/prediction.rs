//! The time of all kernels, from that of the drawn ones.

use crate::bound::quantile;
use crate::plan::Plan;
use crate::sample::Sample;
use stats::student_t_quantile;

/// Degrees of freedom from which Student's quantile is that of the normal distribution to four digits.
const MANY: f64 = 10_000.0;

/// The predicted time of all kernels, with its confidence interval.
///
/// `Y = sum N_i mean_i` over groups of `N_i` kernels with the mean `mean_i` of `m_i` samples. Its variance is
/// `V = sum N_i^2 (1 - m_i / N_i) s_i^2 / m_i` with the variance `s_i^2` of the samples, its degrees of freedom
/// `f = V^2 / sum(V_i^2 / (m_i - 1))` (F. E. Satterthwaite, Biometrics Bulletin 2, 1946), and the half width of the interval
/// `t_f sqrt(V)`. Few samples may be equal by chance: the half width is at least `z sqrt(U)` with the variance `U` that the
/// durations of the profile give the same draw, each group in proportion to its sampled mean. A group that was sampled once,
/// because its durations are all equal in the profile, is taken to be equal in the simulation, too.
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
            // Many, or none of a variance of zero.
            _ => quantile(0.5 + 0.5 * bound.confidence()),
        };
        let half_width_ns = (quantile * variance.sqrt()).max(bound.z() * profiled.sqrt());
        Prediction { total_ns: total, half_width_ns, sampled_ns: sampled }
    }

    /// The predicted time of all kernels together in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.total_ns
    }

    /// Half the width of the confidence interval of the total in nanoseconds.
    pub fn half_width_ns(&self) -> f64 {
        self.half_width_ns
    }

    /// The time of the simulated kernels in nanoseconds.
    pub fn sampled_ns(&self) -> f64 {
        self.sampled_ns
    }

    /// How far the prediction is from the actual total, in parts of it; none if that is zero and the prediction is not.
    pub fn error(&self, actual_ns: f64) -> Option<f64> {
        if self.total_ns == actual_ns {
            return Some(0.0);
        }
        (actual_ns > 0.0).then(|| (self.total_ns - actual_ns) / actual_ns)
    }

    /// Whether a total lies inside the interval.
    pub fn covers(&self, actual_ns: f64) -> bool {
        // Rounding of the sums is no error.
        (self.total_ns - actual_ns).abs() <= self.half_width_ns + 1e-9 * actual_ns
    }
}

#[cfg(test)]
mod tests {
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
        // Satterthwaite: (a + b)^2 / (a^2 + b^2) = 1.2 degrees of freedom, so 1; t at 97.5 % is 12.7062 (NIST 1.3.6.7.2).
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
}
