//! The soak in small.

use super::*;

#[test]
fn every_combination_keeps_its_data() {
    let report = soak(20_000, 1);
    for outcome in &report.outcomes {
        assert!(outcome.is_ok(), "{outcome:#?}");
        assert!(outcome.units_checked > 2_000, "{outcome:#?}");
    }
    // The soak is worth nothing if nothing races.
    let sum = |f: &dyn Fn(&Outcome) -> u64| report.outcomes.iter().map(f).sum::<u64>();
    assert!(sum(&|o| o.moves) > 100_000);
    assert!(sum(&|o| o.moves_dropped) > 1_000);
    assert!(sum(&|o| o.merges_dropped) > 1_000);
}

#[test]
fn the_shadow_changes_nothing() {
    for combination in &combinations(2) {
        let run = |shadow| run(combination, 2_000, 2, shadow).expect("it can be built").digest;
        assert_eq!(run(true), run(false), "{combination}");
    }
}

#[test]
fn folding_changes_nothing() {
    for combination in combinations(3).iter().chain(&combinations(4)) {
        let run = |fold| {
            let folded = Combination { fold, ..combination.clone() };
            run(&folded, 2_000, 3, false).expect("it can be built").digest
        };
        assert_eq!(run(true), run(false), "{combination}");
    }
}
