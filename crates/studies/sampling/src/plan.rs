//! Groups of kernels, split until each is homogeneous, and how many samples each needs.

use crate::bound::Bound;
use crate::profile::{Kind, Profile};
use crate::rule::Rule;
use crate::sample::Sample;
use crate::split::{Moments, Run, two_means};
use config::Diagnostic;

/// Which kernels stand for which, and how many of them to simulate.
///
/// **Groups.** Kernels of one name, grid and block are one group. Where the [`Rule`] takes it for not homogeneous, it is
/// parted in two by 1-D k-means, and its parts again. A split is kept if its parts, parted as far as that helps, need
/// fewer samples than the whole: it cannot make a plan larger. Splits that a tighter bound asks for are taken where they need
/// fewer samples in all: a wider bound never takes more kernels.
///
/// **Samples.** By [`Rule`], and at least two of a group whose durations differ; at least 30 if a single kernel of the group
/// may move the predicted total by more than the bound (N times its distance from the mean is above e T), so that no
/// mean that matters is taken as normal without being so; one of a group whose durations are all equal; never more than
/// there are.
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
    /// Kernels by group, in a group by duration, then by start.
    order: Vec<u32>,
    total_ns: f64,
}

/// Bounds whose plans are looked at where a wider one is asked for: *chosen*, the round shares that people ask for.
const TIGHTER: [f64; 6] = [0.1, 0.05, 0.03, 0.02, 0.01, 0.005];

/// Kernels that stand for each other.
#[derive(Clone, Debug)]
pub struct Group {
    kind: usize,
    part: usize,
    /// Where its kernels begin in the plan's order.
    first: usize,
    moments: Moments,
    samples: u64,
}

impl Group {
    /// The place of its kind in [`Plan::kinds`].
    pub fn kind(&self) -> usize {
        self.kind
    }
    /// Which part of its kind it is, from zero, by ascending duration.
    pub fn part(&self) -> usize {
        self.part
    }
    /// Kernels in it.
    pub fn count(&self) -> u64 {
        self.moments.count
    }
    /// Kernels of it to simulate.
    pub fn samples(&self) -> u64 {
        self.samples
    }
    /// Mean duration in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.moments.mean
    }
    /// Standard deviation of the durations in nanoseconds, of the group as a population.
    pub fn deviation_ns(&self) -> f64 {
        self.moments.variance().sqrt()
    }
    /// The shortest and the longest duration in nanoseconds.
    pub fn range_ns(&self) -> (f64, f64) {
        (self.moments.min, self.moments.max)
    }
    /// The sum of its durations in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.moments.sum()
    }
}

impl Plan {
    /// Groups the kernels of a profile and says how many of each to simulate.
    ///
    /// # Errors
    /// A profile without kernels.
    pub fn new(profile: &Profile, bound: Bound, rule: Rule) -> Result<Plan, Diagnostic> {
        if profile.is_empty() {
            return Err(Diagnostic::new("the profile has no kernels").help("there is nothing to sample"));
        }
        // Splits are chosen one by one: those of a tighter bound, which this one allows as well, may need fewer samples in all.
        let mut least = Plan::of(profile, bound, rule);
        for error in TIGHTER.into_iter().filter(|error| *error < bound.error()) {
            let tighter = Plan::of(profile, Bound::new(error, bound.confidence())?, rule);
            if tighter.samples() < least.samples() {
                least = Plan { bound, ..tighter };
            }
        }
        Ok(least)
    }

    /// The plan of the splits that this very bound asks for.
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

    /// Draws the samples of every group, without replacement. The same seed draws the same kernels, and what is drawn of
    /// one group does not depend on the others.
    pub fn draw(&self, seed: u64) -> Sample {
        Sample::draw(self, seed)
    }

    /// The bound it keeps.
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// How samples are shared out.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// The groups: by kind in order of their first kernels, then by duration.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Name, grid and block of groups, by [`Group::kind`].
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The kernels of a group by their numbers in order of starts, here in order of durations.
    pub fn kernels_of(&self, group: &Group) -> &[u32] {
        &self.order[group.first..group.first + group.moments.count as usize]
    }

    /// Kernels in all.
    pub fn kernels(&self) -> u64 {
        self.order.len() as u64
    }

    /// Kernels to simulate.
    pub fn samples(&self) -> u64 {
        self.groups.iter().map(|group| group.samples).sum()
    }

    /// The sum of all durations in nanoseconds.
    pub fn total_ns(&self) -> f64 {
        self.total_ns
    }
}

/// The kernels by kind, in order of their starts within each: a counting sort.
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

/// Sorts the kernels of a kind by duration, then by start, and gathers runs of equal durations.
fn sort_by_duration(kernels: &mut [u32], ns: &[f64], pairs: &mut Vec<(u64, u32)>, runs: &mut Vec<Run>) {
    pairs.clear();
    // Durations are not negative: their bits have their order.
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

/// Appends the parts of a group by ascending duration; the samples they need, each by itself.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bound, Plan, Profile, Rule, profile::Dims};

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
        // A standard deviation of 1.7 %: q = 0.46. No kernel can move the total by more than 3 %: two are enough, of which no split needs fewer.
        let durations: Vec<f64> = (0..12_000).map(|i| f64::from(970 + i % 60)).collect();
        assert_eq!(shape(&plan_of(&durations)), [(12_000, 2)]);
    }

    #[test]
    fn splits_of_a_tighter_bound_are_taken_where_they_need_less() {
        // A standard deviation of 10 %: q = 15.4 is below 50, and 5 % alone would take 30 of the whole, as one kernel can move the total by
        // 10 %. Two constants need one each, as 1 % finds.
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
}
