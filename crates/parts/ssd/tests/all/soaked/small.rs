//! The soak in small.

use nand::dies::observe::{Observer, Tenure};
use ssd::soak::*;
use std::cell::Cell;
use std::rc::Rc;

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
    assert!(sum(&|o| o.register_hits) > 10_000);
    assert!(sum(&|o| o.joined_reads) > 10_000);
    assert!((0..2).all(|n| sum(&|o| o.retried_reads[n]) > 1_000));
    assert!(sum(&|o| o.ahead.used) > 1_000);
    assert!(sum(&|o| o.ahead.met) > 1_000);
    assert!(sum(&|o| o.ahead.dropped) > 1_000);
    assert!((0..3).all(|pace| sum(&|o| o.evicted[pace]) > 1_000));
    assert!(sum(&|o| o.skipped) > 1_000);
}

/// Wherever planes can read on their own, they lose nothing, and folding leaves them as they are.
#[test]
fn planes_that_read_independently_keep_their_data() {
    let mut all = combinations(1);
    all.retain(|c| !matches!(c.scheduler, nand::dies::sched::Scheduling::in_order));
    assert!(all.len() > 20);
    for combination in &mut all {
        combination.independent_reads = true;
        let [folded, whole] = [true, false].map(|fold| {
            combination.fold = fold;
            let outcome = run(combination, 4_000, 1, true).expect("it can be built");
            assert!(outcome.is_ok() && outcome.units_checked > 200, "{outcome:#?}");
            outcome.digest
        });
        assert_eq!(folded, whole, "{combination}");
    }
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

/// Counts the commands that it is shown.
struct Counts(Rc<Cell<u64>>);

impl Observer for Counts {
    fn ended(&mut self, _: &Tenure) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn observers_change_nothing() {
    for combination in &combinations(5) {
        let seen = Rc::new(Cell::new(0));
        let run = |observer: Option<Box<dyn Observer>>| {
            let mut device = combination.build(5).expect("it can be built");
            device.backend.observer = observer;
            let mut host = Host::new(device, 5, combination.depth);
            (host.drive(2_000), host.digest(), host.now())
        };
        let alone = run(None);
        assert_eq!(run(Some(Box::new(Counts(seen.clone())))), alone, "{combination}");
        assert!(seen.get() > 0, "{combination}: the observer has seen nothing");
    }
}
