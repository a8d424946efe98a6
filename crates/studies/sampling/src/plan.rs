//! Groups of kernels, split until each is homogeneous, the number of samples of each, and the best split of a sorted
//! list in two: exact 1-D k-means with k = 2.

use crate::prediction::Bound;
use crate::profile::{Kind, Profile};
use crate::rule::Rule;
use crate::selection::Sample;
use config::Diagnostic;

/// Plan: groups of interchangeable kernels, and the number of each to simulate.
///
/// **Groups.** Kernels of one name, grid and block are one group. If the [`Rule`] finds it not homogeneous, it is split
/// in two by 1-D k-means, and so are its parts. A split is kept if its parts, split as far as that helps, need fewer
/// samples than the whole: it cannot make a plan larger. Splits that a tighter bound asks for are used if they need
/// fewer samples in total: a wider bound never takes more kernels.
///
/// **Samples.** By [`Rule`], and at least two of a group whose durations differ; at least 30 if a single kernel of the
/// group can move the predicted total by more than the bound (N times its distance from the mean is above e T), so that
/// normality is not assumed for a mean that matters; one of a group whose durations are all equal; never more than
/// exist.
///
/// **Claim.** With samples that keep every group within e at the confidence, `z sd(N mean) <= e N mu` for each, so
/// `z sd(Y) <= e sqrt(sum (N mu)^2) <= e sum N mu = e T`: the total is within e at that confidence or more. The rule
/// `neyman` asks for `z sd(Y) <= e T` directly.
#[derive(Clone, Debug)]
pub struct Plan {
    bound: Bound,
    rule: Rule,
    kinds: Vec<Kind>,
    groups: Vec<Group>,
    /// Kernels by group; within a group by duration, then by start.
    order: Vec<u32>,
    total_ns: f64,
}

/// Bounds whose plans are tried for a wider bound: *chosen*, common round shares.
const TIGHTER: [f64; 6] = [0.1, 0.05, 0.03, 0.02, 0.01, 0.005];

/// Group of interchangeable kernels.
#[derive(Clone, Debug)]
pub struct Group {
    kind: usize,
    part: usize,
    /// Index of its first kernel in the plan's order.
    first: usize,
    moments: Moments,
    samples: u64,
}

impl Group {
    /// Index of its kind in [`Plan::kinds`].
    pub fn kind(&self) -> usize {
        self.kind
    }
    /// Index of the part within its kind, from zero, by ascending duration.
    pub fn part(&self) -> usize {
        self.part
    }
    /// Number of kernels in the group.
    pub fn count(&self) -> u64 {
        self.moments.count
    }
    /// Number of its kernels to simulate.
    pub fn samples(&self) -> u64 {
        self.samples
    }
    /// Mean duration in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.moments.mean
    }
    /// Standard deviation of the durations in nanoseconds, with the group as the population.
    pub fn deviation_ns(&self) -> f64 {
        self.moments.variance().sqrt()
    }
    /// Shortest and longest duration in nanoseconds.
    pub fn range_ns(&self) -> (f64, f64) {
        (self.moments.min, self.moments.max)
    }
    /// Sum of the durations in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.moments.sum()
    }
}

impl Plan {
    /// Groups the kernels of a profile and decides how many of each to simulate.
    ///
    /// # Errors
    /// The profile has no kernels.
    pub fn new(profile: &Profile, bound: Bound, rule: Rule) -> Result<Plan, Diagnostic> {
        if profile.is_empty() {
            return Err(
                Diagnostic::new("the profile has no kernels").help("give a profile with at least one kernel")
            );
        }
        // Splits are chosen greedily: those of a tighter bound, also valid for this one, may need fewer samples in
        // total.
        let mut least = Plan::of(profile, bound, rule);
        for error in TIGHTER.into_iter().filter(|error| *error < bound.error()) {
            let tighter = Plan::of(profile, Bound::new(error, bound.confidence())?, rule);
            if tighter.samples() < least.samples() {
                least = Plan { bound, ..tighter };
            }
        }
        Ok(least)
    }

    /// Plan with the splits of exactly this bound.
    fn of(profile: &Profile, bound: Bound, rule: Rule) -> Plan {
        let mut order = by_kind(profile);
        let total_ns = profile.total_ns();
        let (mut groups, mut pairs, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        while first < order.len() {
            let kind = profile.kind_of()[order[first] as usize];
            let is_same = |kernel: &u32| profile.kind_of()[*kernel as usize] == kind;
            let count = order[first..].partition_point(is_same);
            sort_by_duration(&mut order[first..first + count], profile.durations_ns(), &mut pairs, &mut runs);
            let mut parts = Vec::new();
            split(&runs, rule, &bound, total_ns, &mut parts);
            for (part, moments) in parts.into_iter().enumerate() {
                groups.push(Group { kind: kind as usize, part, first, moments, samples: 0 });
                first += moments.count as usize;
            }
        }
        let moments: Vec<Moments> = groups.iter().map(|group| group.moments).collect();
        for (group, samples) in groups.iter_mut().zip(rule.samples(&bound, &moments, total_ns)) {
            group.samples = samples;
        }
        Plan { bound, rule, kinds: profile.kinds().to_vec(), groups, order, total_ns }
    }

    /// Draws the samples of every group, without replacement. A seed always draws the same kernels, and the draw of a
    /// group does not depend on other groups.
    pub fn draw(&self, seed: u64) -> Sample {
        Sample::draw(self, seed)
    }

    /// Bound of the plan.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// Rule that distributes samples.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Groups: by kind in order of their first kernels, then by duration.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Name, grid and block of groups, by [`Group::kind`].
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Kernels of a group in order of duration, as indices in order of starts.
    pub fn kernels_of(&self, group: &Group) -> &[u32] {
        &self.order[group.first..group.first + group.moments.count as usize]
    }

    /// Number of kernels.
    pub fn kernels(&self) -> u64 {
        self.order.len() as u64
    }

    /// Number of kernels to simulate.
    pub fn samples(&self) -> u64 {
        self.groups.iter().map(|group| group.samples).sum()
    }

    /// Sum of all durations in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.total_ns
    }
}

/// Kernels by kind, in order of their starts within each: a counting sort.
fn by_kind(profile: &Profile) -> Vec<u32> {
    let mut ends = vec![0_u32; profile.kinds().len()];
    for kind in profile.kind_of() {
        ends[*kind as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        sum += *end;
        *end = sum;
    }
    let mut order = vec![0; profile.len()];
    for (kernel, kind) in profile.kind_of().iter().enumerate().rev() {
        ends[*kind as usize] -= 1;
        order[ends[*kind as usize] as usize] = kernel as u32;
    }
    order
}

/// Sorts the kernels of a kind by duration, then by start, and collects runs of equal durations.
fn sort_by_duration(kernels: &mut [u32], ns: &[f64], pairs: &mut Vec<(u64, u32)>, runs: &mut Vec<Run>) {
    pairs.clear();
    // Durations are not negative, so their bits sort in the same order.
    pairs.extend(kernels.iter().map(|kernel| (ns[*kernel as usize].to_bits(), *kernel)));
    pairs.sort_unstable();
    runs.clear();
    for (kernel, (bits, sorted)) in kernels.iter_mut().zip(pairs.iter()) {
        *kernel = *sorted;
        let ns = f64::from_bits(*bits);
        match runs.last_mut() {
            Some(run) if run.ns == ns => run.count += 1,
            _ => runs.push(Run { ns, count: 1 }),
        }
    }
}

/// Appends the parts of a group by ascending duration; returns the number of samples that they need separately.
fn split(runs: &[Run], rule: Rule, bound: &Bound, total_ns: f64, parts: &mut Vec<Moments>) -> u64 {
    let whole = Moments::of(runs);
    let samples = bound.samples(&whole, total_ns);
    if rule.tries(bound.endless(&whole), samples) {
        let before = parts.len();
        let (left, right) = runs.split_at(two_means(runs));
        let mut part = |runs| split(runs, rule, bound, total_ns, parts);
        let parted = part(left) + part(right);
        if parted < samples {
            return parted;
        }
        parts.truncate(before);
    }
    parts.push(whole);
    samples
}

/// Run of equal durations.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// Duration in nanoseconds.
    pub ns: f64,
    /// Number of kernels with this duration.
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
    /// Computes the moments of at least one run, in ascending order.
    pub(crate) fn of(runs: &[Run]) -> Moments {
        let count: u64 = runs.iter().map(|run| run.count).sum();
        let sum: f64 = runs.iter().map(|run| run.ns * run.count as f64).sum();
        let (min, max) = (runs[0].ns, runs[runs.len() - 1].ns);
        // Rounding must not put the mean outside.
        let mean = (sum / count as f64).clamp(min, max);
        let squares = runs.iter().map(|run| (run.ns - mean) * (run.ns - mean) * run.count as f64).sum();
        Moments { count, mean, squares, min, max }
    }

    /// Population variance: divided by the count.
    pub(crate) fn variance(&self) -> f64 {
        self.squares / self.count as f64
    }

    /// Maximum distance of a kernel from the mean.
    pub(crate) fn reach(&self) -> f64 {
        (self.max - self.mean).max(self.mean - self.min)
    }

    pub(crate) fn sum(&self) -> f64 {
        self.mean * self.count as f64
    }
}

/// Exact 1-D 2-means: the number of runs in the left cluster that minimises the squared distances of all kernels from
/// the mean of their cluster. Runs ascend strictly; ties take the first place.
///
/// In one dimension the clusters of an optimum are intervals (W. D. Fisher, On Grouping for Maximum Homogeneity,
/// Journal of the American Statistical Association 53, 1958), so trying every place with prefix sums is exact, where
/// Lloyd's iteration from random starts is not.
///
/// # Panics
/// Fewer than two runs.
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
    use crate::profile::Dims;
    use crate::{Bound, Plan, Profile, Rule};
    use proptest::prelude::*;

    fn plan_of(durations: &[f64]) -> Plan {
        plan_by(Rule::Allegro, durations)
    }

    fn plan_by(rule: Rule, durations: &[f64]) -> Plan {
        let mut profile = Profile::default();
        for ns in durations {
            profile.push("k", Some(Dims([1, 1, 1])), None, *ns).unwrap();
        }
        Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), rule).unwrap()
    }

    fn shape(plan: &Plan) -> Vec<(u64, u64)> {
        plan.groups().iter().map(|group| (group.count(), group.samples())).collect()
    }

    #[test]
    fn one_kernel_is_simulated_and_equal_ones_once() {
        assert_eq!(shape(&plan_of(&[7.0])), [(1, 1)]);
        assert_eq!(shape(&plan_of(&[7.0; 500])), [(500, 1)]);
        assert_eq!(shape(&plan_of(&[0.0; 500])), [(500, 1)]);
    }

    #[test]
    fn modes_become_groups() {
        // Zeros of a quantised profile, two modes, one that is far out: constants all, so one sample each.
        let mut durations = [vec![0.0; 40], vec![1000.0; 300], vec![5000.0; 100], vec![90_000.0]].concat();
        durations.rotate_left(170);
        let plan = plan_of(&durations);
        assert_eq!(shape(&plan), [(40, 1), (300, 1), (100, 1), (1, 1)]);
        assert_eq!(plan.kernels_of(&plan.groups()[3]), [270]);
        assert_eq!(plan.groups().iter().map(Group::part).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_homogeneous_group_stays_whole() {
        // A standard deviation of 1.7 %: q = 0.46. No kernel can move the total by more than 3 %: two are enough, of
        // which no split needs fewer.
        let durations: Vec<f64> = (0..12_000).map(|i| f64::from(970 + i % 60)).collect();
        assert_eq!(shape(&plan_of(&durations)), [(12_000, 2)]);
    }

    #[test]
    fn splits_of_a_tighter_bound_are_taken_where_they_need_less() {
        // A standard deviation of 10 %: q = 15.4 is below 50, and 5 % alone would take 30 of the whole, as one kernel
        // can move the total by 10 %. Two constants need one each, as 1 % finds.
        let durations: Vec<f64> = (0..10_000).map(|i| if i % 2 == 0 { 900.0 } else { 1100.0 }).collect();
        for rule in [Rule::Allegro, Rule::Fewest] {
            assert_eq!(shape(&plan_by(rule, &durations)), [(5_000, 1), (5_000, 1)]);
        }
    }

    #[test]
    fn a_split_that_saves_nothing_is_not_kept() {
        // All three are needed either way.
        assert_eq!(shape(&plan_of(&[1.0, 2.0, 10.0])), [(3, 3)]);
    }

    #[test]
    fn an_empty_profile_is_refused() {
        let fault =
            Plan::new(&Profile::default(), Bound::new(0.05, 0.95).unwrap(), Rule::Allegro).unwrap_err();
        assert!(fault.what.contains("no kernels"));
    }

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
