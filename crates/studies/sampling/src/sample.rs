//! The kernels that were drawn.

use crate::plan::{Group, Plan};
use crate::prediction::Prediction;
use engine::Rng;
use rustc_hash::FxHashSet;

/// The kernels to simulate of each group of a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// In the order of the plan's groups; numbers of kernels in order of starts, ascending.
    drawn: Vec<Vec<u32>>,
}

impl Sample {
    pub(crate) fn draw(plan: &Plan, seed: u64) -> Sample {
        Sample { drawn: plan.groups().iter().map(|group| draw(plan, group, seed)).collect() }
    }

    /// The kernels of each group of the plan, by their numbers in order of starts, ascending.
    pub fn drawn(&self) -> &[Vec<u32>] {
        &self.drawn
    }

    /// Kernels in all.
    pub fn len(&self) -> u64 {
        self.drawn.iter().map(|group| group.len() as u64).sum()
    }

    /// Whether there is none; of a plan there always is one.
    pub fn is_empty(&self) -> bool {
        self.drawn.iter().all(Vec::is_empty)
    }

    /// What the sample says of the time of all kernels of the plan that it was drawn from. `duration_ns` tells how long a
    /// drawn kernel took, in nanoseconds: in the simulation, or in the profile itself to see how good the sample is.
    pub fn predict(&self, plan: &Plan, duration_ns: impl FnMut(u32) -> f64) -> Prediction {
        Prediction::of(plan, self, duration_ns)
    }
}

/// Draws without replacement (R. W. Floyd, in J. Bentley, More Programming Pearls, 1988, column 13).
fn draw(plan: &Plan, group: &Group, seed: u64) -> Vec<u32> {
    let kernels = plan.kernels_of(group);
    let (count, samples) = (group.count(), group.samples());
    let mut drawn: Vec<u32> = if samples == count {
        kernels.to_vec()
    } else {
        let kind = &plan.kinds()[group.kind()];
        let dims = |dims: Option<crate::Dims>| dims.map_or_else(|| "?".to_owned(), |dims| dims.to_string());
        let stream =
            format!("sampling/{}/{}/{}/{}", kind.name, dims(kind.grid), dims(kind.block), group.part());
        let mut rng = Rng::stream(seed, &stream);
        let mut taken = FxHashSet::default();
        let mut places = Vec::with_capacity(samples as usize);
        for last in count - samples..count {
            let place = rng.below(last + 1);
            let place = if taken.insert(place) { place } else { last };
            taken.insert(place);
            places.push(place);
        }
        places.into_iter().map(|place| kernels[place as usize]).collect()
    };
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use crate::{Bound, Plan, Profile, Rule};

    fn plan() -> Plan {
        let mut profile = Profile::default();
        for kernel in 0..200_u32 {
            let name = ["a", "b"][kernel as usize % 2];
            profile.push(name, None, None, 3000.0 + f64::from(kernel * 7919 % 163)).unwrap();
        }
        Plan::new(&profile, Bound::new(0.01, 0.95).unwrap(), Rule::Allegro).unwrap()
    }

    #[test]
    fn distinct_kernels_of_the_group_and_as_many_as_asked_for() {
        let plan = plan();
        for seed in 0..50 {
            for (group, drawn) in plan.groups().iter().zip(plan.draw(seed).drawn()) {
                assert_eq!(drawn.len() as u64, group.samples());
                assert!(drawn.windows(2).all(|pair| pair[0] < pair[1]));
                assert!(drawn.iter().all(|kernel| plan.kernels_of(group).contains(kernel)));
            }
        }
    }

    #[test]
    fn a_seed_draws_the_same_and_another_something_else() {
        let plan = plan();
        assert_eq!(plan.draw(1), plan.draw(1));
        assert_ne!(plan.draw(1), plan.draw(2));
    }

    /// Chi-square over the kernels of a group; 140 is beyond the 0.999 quantile at 99 degrees of freedom less what drawing
    /// without replacement takes from it.
    #[test]
    fn every_kernel_is_drawn_alike() {
        let plan = plan();
        let group = &plan.groups()[0];
        let mut times = vec![0.0; 200];
        let draws = 2000;
        for seed in 0..draws {
            for kernel in &plan.draw(seed).drawn()[0] {
                times[*kernel as usize] += 1.0;
            }
        }
        let expected = draws as f64 * group.samples() as f64 / group.count() as f64;
        assert!(group.samples() < group.count() && group.count() == 100);
        let chi: f64 = times.iter().step_by(2).map(|n| (n - expected) * (n - expected) / expected).sum();
        assert!(chi < 140.0, "{chi}");
    }
}
