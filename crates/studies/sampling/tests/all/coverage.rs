//! How often a draw keeps its bound: on recorded profiles, and on distributions that are hard.
//!
//! `cargo test -p nandscape-sampling --test all coverage -- --nocapture` prints the table of `docs/sampling.md`.

#![allow(clippy::disallowed_methods, reason = "distributions of rand_distr; the last bit decides nothing")]

use rand::SeedableRng;
use rand_distr::{Distribution, LogNormal, Normal, Pareto};
use rand_pcg::Pcg64;
use sampling::{Bound, Plan, Profile, Rule};

/// Outcome of the draws of a plan.
struct Draws {
    /// Share of draws with an error of the total within the bound.
    within: f64,
    /// Share of draws whose confidence interval has the actual total.
    covered: f64,
    /// The largest error of the total, a part of one.
    worst: f64,
    /// All kernel time over the simulated kernel time, in the mean over the draws.
    time: f64,
}

fn draws(profile: &Profile, plan: &Plan, seeds: u64) -> Draws {
    let total: f64 = profile.durations_ns().iter().sum();
    let (mut within, mut covered, mut worst, mut sampled) = (0_u64, 0_u64, 0.0_f64, 0.0);
    for seed in 0..seeds {
        let prediction = plan.draw(seed).predict(plan, |kernel| profile.durations_ns()[kernel as usize]);
        let error = (prediction.total_ns() - total).abs() / total;
        within += u64::from(error <= plan.bound().error());
        covered += u64::from(prediction.covers(total));
        worst = worst.max(error);
        sampled += prediction.sampled_ns();
    }
    let share = |n: u64| n as f64 / seeds as f64;
    Draws { within: share(within), covered: share(covered), worst, time: total * seeds as f64 / sampled }
}

#[test]
fn recorded_profiles_keep_the_bound() {
    const SEEDS: u64 = 200;
    println!(
        "| profile | rule, bound | kernels | groups: by kind, split | simulated | fewer kernels | less kernel time | \
         draws inside e | worst error | intervals that hold |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for path in crate::support::recorded() {
        let profile = Profile::read(&path).unwrap_or_else(|fault| panic!("{fault}"));
        let name =
            path.file_name().unwrap().to_string_lossy().replace(".kernels.csv.gz", "").replace(".gz", "");
        for (rule, error) in Rule::ALL.into_iter().flat_map(|rule| [(rule, 0.05), (rule, 0.01)]) {
            let plan = Plan::new(&profile, Bound::new(error, 0.95).unwrap(), rule).unwrap();
            let Draws { within, covered, worst, time } = draws(&profile, &plan, SEEDS);
            println!(
                "| {name} | {rule}, {:.0} % | {} | {}, {} | {} | {:.1}x | {time:.1}x | {:.1} % | {:.2} % | {:.1} % |",
                100.0 * error,
                profile.len(),
                profile.kinds().len(),
                plan.groups().len(),
                plan.samples(),
                profile.len() as f64 / plan.samples() as f64,
                100.0 * within,
                100.0 * worst,
                100.0 * covered,
            );
            assert!(within >= 0.95, "{name}: {rule} at {error}: only {within} of the draws inside");
        }
    }
}

/// A share of n draws at a true probability of 95 % is below this with a probability of one in a thousand.
fn least(n: u64) -> f64 {
    0.95 - 3.09 * (0.95 * 0.05 / n as f64).sqrt()
}

/// One kind of kernel whose durations come from a distribution: nothing averages out between groups.
fn one_kind(distribution: &impl Distribution<f64>, count: usize, seed: u64) -> Profile {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut profile = Profile::default();
    for _ in 0..count {
        profile.push("k", None, None, distribution.sample(&mut rng).max(0.0)).unwrap();
    }
    profile
}

/// Two modes with a deviation of 3 % each: a share `rare` of kernels takes `apart` times as long.
struct Modes {
    apart: f64,
    rare: f64,
}

impl Distribution<f64> for Modes {
    fn sample<R: rand::Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let is_rare = Distribution::<f64>::sample(&rand_distr::StandardUniform, rng) < self.rare;
        let mean = if is_rare { 1e4 * self.apart } else { 1e4 };
        mean * (1.0 + 0.03 * Distribution::<f64>::sample(&rand_distr::StandardNormal, rng))
    }
}

fn keeps(what: &str, profile: &Profile) {
    const SEEDS: u64 = 1000;
    for (rule, error) in [
        (Rule::Allegro, 0.05),
        (Rule::Allegro, 0.01),
        (Rule::Fewest, 0.05),
        (Rule::Fewest, 0.01),
        (Rule::Neyman, 0.01),
    ] {
        let plan = Plan::new(profile, Bound::new(error, 0.95).unwrap(), rule).unwrap();
        let Draws { within, covered, worst, .. } = draws(profile, &plan, SEEDS);
        let shown = format!(
            "{what}, {rule} at {error}: {} of {} in {} groups, inside {within}, covered {covered}, worst {worst:.4}",
            plan.samples(),
            profile.len(),
            plan.groups().len()
        );
        println!("{shown}");
        assert!(within >= least(SEEDS) && covered >= least(SEEDS), "{shown}");
        // A plan that took all kernels would show nothing.
        assert!(plan.samples() < profile.len() as u64 / 2, "{shown}");
    }
}

#[test]
fn normal_groups() {
    for deviation in [0.03, 0.15, 0.3] {
        keeps(
            &format!("normal {deviation}"),
            &one_kind(&Normal::new(1e4, deviation * 1e4).unwrap(), 20_000, 1),
        );
    }
}

#[test]
fn groups_of_two_modes() {
    for (apart, rare) in [(1.1, 0.2), (1.3, 0.05), (10.0, 0.1), (100.0, 0.002)] {
        keeps(&format!("modes {apart} at {rare}"), &one_kind(&Modes { apart, rare }, 20_000, 2));
    }
}

#[test]
fn heavy_tails() {
    for sigma in [0.5, 1.0, 2.0] {
        keeps(&format!("lognormal {sigma}"), &one_kind(&LogNormal::new(9.0, sigma).unwrap(), 20_000, 3));
    }
    for shape in [1.2, 2.5] {
        keeps(&format!("pareto {shape}"), &one_kind(&Pareto::new(1e3, shape).unwrap(), 20_000, 4));
    }
}

/// The worst for a small sample: two durations so near that one sample would do by the formula, were a mean of one
/// normal.
#[test]
fn two_durations_just_apart() {
    for (far, one_in) in [(1.12, 5), (1.25, 10), (1.6, 50)] {
        let mut profile = Profile::default();
        for kernel in 0..5000 {
            profile.push("k", None, None, if kernel % one_in == 0 { 1e4 * far } else { 1e4 }).unwrap();
        }
        keeps(&format!("two durations {far}, one in {one_in}"), &profile);
    }
}

/// A simulation need not make those kernels long that were long in the profile. Here it gives every kernel the duration
/// of another, so that the total is the same: Allegro's bound holds, because it takes the spread within a group for
/// chance; that of `fewest`, whose groups are slices of the spread, does not.
#[test]
fn durations_of_a_simulation() {
    const SEEDS: u64 = 1000;
    let profile = one_kind(&Normal::new(1e4, 1.5e3).unwrap(), 20_000, 6);
    let mut rng = Pcg64::seed_from_u64(7);
    let mut simulated = profile.durations_ns().to_vec();
    for last in (1..simulated.len()).rev() {
        let other = (Distribution::<f64>::sample(&rand_distr::StandardUniform, &mut rng) * (last + 1) as f64)
            as usize;
        simulated.swap(last, other);
    }
    let total: f64 = simulated.iter().sum();
    let [allegro, fewest] = [Rule::Allegro, Rule::Fewest].map(|rule| {
        let plan = Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), rule).unwrap();
        let is_inside = |seed: &u64| {
            let prediction = plan.draw(*seed).predict(&plan, |kernel| simulated[kernel as usize]);
            (prediction.total_ns() - total).abs() <= 0.05 * total
        };
        (0..SEEDS).filter(is_inside).count() as f64 / SEEDS as f64
    });
    println!("of another order: allegro {allegro}, fewest {fewest}");
    assert!(allegro >= least(SEEDS), "{allegro}");
    assert!(fewest < 0.95, "{fewest}: the warning at Rule::Fewest is not needed");
}

/// A seed gives one draw and prediction, to the last bit, whatever else is in the profile before it.
#[test]
fn draws_repeat() {
    let profile = one_kind(&LogNormal::new(9.0, 1.0).unwrap(), 5_000, 5);
    let plan = || Plan::new(&profile, Bound::new(0.05, 0.95).unwrap(), Rule::Allegro).unwrap();
    let predict = |plan: &Plan| {
        plan.draw(7).predict(plan, |kernel| profile.durations_ns()[kernel as usize]).total_ns().to_bits()
    };
    assert_eq!(plan().draw(7), plan().draw(7));
    assert_eq!(predict(&plan()), predict(&plan()));
    // Another kind beside it that cannot move the total draws no other kernels of the first.
    let mut with_another = profile.clone();
    for _ in 0..10 {
        with_another.push("other", None, None, 1e-6).unwrap();
    }
    let beside = Plan::new(&with_another, Bound::new(0.05, 0.95).unwrap(), Rule::Allegro).unwrap();
    let groups = plan().groups().len();
    assert_eq!(beside.draw(7).drawn()[..groups], *plan().draw(7).drawn());
}
