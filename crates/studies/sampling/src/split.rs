//! The best split of a sorted list in two: 1-D k-means with k = 2, exactly.

/// Equal durations that stand together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// The duration in nanoseconds.
    pub ns: f64,
    /// How many kernels have it.
    pub count: u64,
}

/// Count, mean and spread of a group.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Moments {
    pub(crate) count: u64,
    pub(crate) mean: f64,
    /// Sum of the squared distances from the mean.
    pub(crate) squares: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Moments {
    /// Of runs in ascending order; at least one.
    pub(crate) fn of(runs: &[Run]) -> Moments {
        let count: u64 = runs.iter().map(|run| run.count).sum();
        let sum: f64 = runs.iter().map(|run| run.ns * run.count as f64).sum();
        let (min, max) = (runs[0].ns, runs[runs.len() - 1].ns);
        // Rounding must not put the mean outside.
        let mean = (sum / count as f64).clamp(min, max);
        let squares = runs.iter().map(|run| (run.ns - mean) * (run.ns - mean) * run.count as f64).sum();
        Moments { count, mean, squares, min, max }
    }

    /// The variance of the group as a population: divided by its count.
    pub(crate) fn variance(&self) -> f64 {
        self.squares / self.count as f64
    }

    /// How far a kernel may be from the mean.
    pub(crate) fn reach(&self) -> f64 {
        (self.max - self.mean).max(self.mean - self.min)
    }

    pub(crate) fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }
}

/// Where two means part the runs: the number of runs of the left cluster for which the squared distances of all kernels
/// from the mean of their cluster are least. The runs ascend strictly; the first of equally good places is taken.
///
/// In one dimension the clusters of an optimum are intervals (W. D. Fisher, On Grouping for Maximum Homogeneity,
/// Journal of the American Statistical Association 53, 1958), so trying every place with prefix sums is exact, where
/// Lloyd's iteration from random starts is not.
///
/// # Panics
/// If there are fewer than two runs.
pub fn two_means(runs: &[Run]) -> usize {
    assert!(runs.len() >= 2, "one duration cannot be parted");
    let whole = Moments::of(runs);
    // With distances from the common mean, the sum of the right side is minus that of the left: the squares within
    // clusters are those of the whole less s^2 / n_left + s^2 / n_right.
    let (mut best, mut place) = (f64::NEG_INFINITY, 1);
    let (mut sum, mut count) = (0.0, 0_u64);
    for (at, run) in runs[..runs.len() - 1].iter().enumerate() {
        sum += (run.ns - whole.mean) * run.count as f64;
        count += run.count;
        let gain = sum * sum * (1.0 / count as f64 + 1.0 / (whole.count - count) as f64);
        if gain > best {
            (best, place) = (gain, at + 1);
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The squared distances of the kernels from the mean of their side, straight from the definition.
    fn within(values: &[f64]) -> f64 {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|x| (x - mean) * (x - mean)).sum()
    }

    fn runs(values: &[f64]) -> Vec<Run> {
        values.chunk_by(|a, b| a == b).map(|equal| Run { ns: equal[0], count: equal.len() as u64 }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// No assignment of kernels to two clusters, intervals or not, is better.
        #[test]
        fn no_assignment_is_better(values in proptest::collection::vec(0_u32..40, 2..11)) {
            let mut values: Vec<f64> = values.into_iter().map(f64::from).collect();
            values.sort_unstable_by(f64::total_cmp);
            prop_assume!(values[0] < values[values.len() - 1]);
            let runs = runs(&values);
            let left: u64 = runs[..two_means(&runs)].iter().map(|run| run.count).sum();
            let (left, right) = values.split_at(left as usize);
            let found = within(left) + within(right);
            for mask in 1_u32..(1 << values.len()) - 1 {
                let side = |bit| -> Vec<f64> {
                    let chosen = values.iter().enumerate().filter(|(at, _)| mask >> at & 1 == bit);
                    chosen.map(|(_, x)| *x).collect()
                };
                prop_assert!(found <= within(&side(0)) + within(&side(1)) + 1e-9, "{mask:b}");
            }
        }

        #[test]
        fn moments_are_those_of_the_definition(values in proptest::collection::vec(0.0_f64..1e9, 1..50)) {
            let mut values = values;
            values.sort_unstable_by(f64::total_cmp);
            let of = Moments::of(&runs(&values));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            prop_assert_eq!(of.count, values.len() as u64);
            prop_assert!((of.mean - mean).abs() <= 1e-9 * mean);
            prop_assert!((of.variance() - within(&values) / n).abs() <= 1e-6 * of.variance() + 1e-6);
            prop_assert_eq!((of.min, of.max), (values[0], values[values.len() - 1]));
        }
    }

    #[test]
    fn two_modes_are_parted_between_them() {
        let at = |ns: f64, count| Run { ns, count };
        assert_eq!(two_means(&[at(10.0, 500), at(11.0, 400), at(50.0, 3), at(51.0, 2)]), 2);
        assert_eq!(two_means(&[at(0.0, 1), at(1.0, 1)]), 1);
    }
}
