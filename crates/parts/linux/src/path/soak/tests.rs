//! Some cuts; the long soak has more.

use super::{Outcome, Plan, run};
use engine::Mutant;
use engine::mutant::arm;

/// Runs of drawn plans; all of them are sound. The sum of what they found.
fn soak(seeds: std::ops::Range<u64>) -> Outcome {
    let mut sum = Outcome::default();
    for seed in seeds {
        let outcome = run(&Plan::draw(seed)).expect("it can be built");
        assert_eq!(outcome.faults, [""; 0], "seed {seed}: {:?}", Plan::draw(seed));
        sum.stale += outcome.stale;
        sum.acknowledged += outcome.acknowledged;
        sum.promised += outcome.promised;
        sum.compared += outcome.compared;
        sum.replayed += outcome.replayed;
        sum.reclaimed += outcome.reclaimed;
        sum.events += outcome.events;
    }
    sum
}

#[test]
fn what_is_promised_survives_a_cut_of_power() {
    let sum = soak(0..300);
    // Much was promised, replayed, reclaimed and read again.
    assert!(sum.acknowledged > 10_000 && sum.promised > 30_000, "{sum:?}");
    assert!(sum.replayed > 2_000 && sum.reclaimed > 10_000 && sum.compared > 100_000, "{sum:?}");
    // Where the journal allows it.
    assert!(sum.stale > 0, "{sum:?}");
}

/// Plans that few others are like, and what each has shown.
const RARE: [(u64, &str); 9] = [
    (1_518, "a page read before the blocks of a direct write have data, and kept"),
    (22_934, "overlapping direct writes, of which the drive takes the older one last"),
    (151_174, "data on their way to blocks while the metadata that were there are"),
    (177_133, "the same, found after the cut"),
    (154_395, "a synchronous write in front of data without blocks"),
    (517_137, "the same, while another thread gives them blocks"),
    (681, "a page that is seen before a write's data are in it"),
    (2_184, "the same"),
    (410_215, "a file with the number of one that the flusher is still at"),
];

#[test]
fn what_few_plans_meet() {
    for (seed, what) in RARE {
        println!("{seed}: {what}");
        soak(seed..seed + 1);
    }
}

#[test]
#[ignore = "10,000 cuts take a minute: `cargo xtask soak` runs it"]
fn ten_thousand_cuts_of_power() {
    let setting =
        |name, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"));
    let (first, cuts) = (setting("SOAK_SEED", 1), setting("SOAK_CUTS", 10_000));
    let sum = soak(first..first + cuts);
    println!("{cuts} cuts: {sum:?}");
}

/// The first of so many plans in which a mutant is found, and how.
#[cfg(debug_assertions)]
fn found(mutant: Mutant) -> Option<(u64, String)> {
    let _armed = arm(mutant);
    (0..300).find_map(|seed| {
        let outcome = run(&Plan::draw(seed)).expect("it can be built");
        Some((seed, outcome.faults.into_iter().next()?))
    })
}

#[test]
#[cfg(debug_assertions)]
fn mutants_are_found() {
    for (mutant, says) in [
        (Mutant::EarlyCommit, "before"),
        (Mutant::UnflushedSync, "promised"),
        // A read sees it, or the look after the cut.
        (Mutant::ReclaimedDirty, "was "),
        (Mutant::CorruptedHead, "the drive has told"),
    ] {
        let (seed, fault) = found(mutant).unwrap_or_else(|| panic!("{mutant:?} survives"));
        println!("{mutant:?}: plan {seed}: {fault}");
        assert!(fault.contains(says), "{mutant:?}, plan {seed}: {fault}");
    }
}
