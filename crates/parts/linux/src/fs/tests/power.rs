//! Cuts of power in all modes.

use crate::fs::soak::{Outcome, Plan, run};
use crate::fs::{FsSpec, JournalMode};
use config::units::Bytes;
use engine::Mutant;
use engine::mutant::arm;

fn spec(data: JournalMode) -> FsSpec {
    FsSpec { data, journal_size: Some(Bytes::new(4 << 20)), ..FsSpec::default() }
}

/// Runs of growing length; all of them are sound. The sum of what they found.
fn soak(spec: &FsSpec, cuts: u64) -> Outcome {
    let mut sum = Outcome::default();
    for seed in 0..cuts {
        let plan =
            Plan { spec: spec.clone(), bytes: 96 << 20, seed, actions: 50 + (seed as u32 * 37) % 1500 };
        let outcome = run(&plan).expect("it can be built");
        assert_eq!(outcome.faults, [""; 0], "{plan:?}");
        sum.stale += outcome.stale;
        sum.acknowledged += outcome.acknowledged;
        sum.promised += outcome.promised;
        sum.replayed += outcome.replayed;
        sum.commits += outcome.commits;
        sum.checkpoints += outcome.checkpoints;
    }
    // Something was promised, and something had to be replayed.
    assert!(sum.acknowledged > cuts / 2 && sum.promised > cuts, "{sum:?}");
    assert!(spec.data == JournalMode::none || (sum.replayed > 0 && sum.commits > cuts), "{sum:?}");
    sum
}

#[test]
fn ordered_data_survive() {
    assert_eq!(soak(&spec(JournalMode::ordered), 150).stale, 0);
}

#[test]
fn ordered_data_survive_without_delayed_allocation() {
    assert_eq!(soak(&FsSpec { delalloc: false, ..spec(JournalMode::ordered) }, 150).stale, 0);
}

#[test]
fn ordered_data_survive_in_blocks_that_count_at_once() {
    assert_eq!(soak(&FsSpec { dioread_nolock: false, ..spec(JournalMode::ordered) }, 150).stale, 0);
}

#[test]
fn journaled_data_survive() {
    assert_eq!(soak(&spec(JournalMode::journal), 150).stale, 0);
}

/// Blocks that are freed can be used before that is committed (`ext4_free_blocks`), and without delayed allocation blocks count
/// before they are written.
#[test]
fn with_writeback_files_may_show_what_was_in_their_blocks() {
    assert!(soak(&spec(JournalMode::writeback), 100).stale > 0);
    assert!(soak(&FsSpec { delalloc: false, ..spec(JournalMode::writeback) }, 100).stale > 0);
}

/// Long enough for the smallest journal to be full a few times. (With metadata only, each commit takes over most of the blocks of the
/// one before, so that the log frees itself.)
#[test]
fn what_is_promised_survives_a_full_log() {
    let mut checkpoints = 0;
    for seed in 0..6 {
        let plan = Plan { spec: spec(JournalMode::journal), bytes: 96 << 20, seed, actions: 10_000 };
        let outcome = run(&plan).expect("it can be built");
        assert_eq!(outcome.faults, [""; 0], "{plan:?}");
        checkpoints += outcome.checkpoints;
    }
    assert!(checkpoints > 60, "{checkpoints}");
}

#[test]
fn without_a_journal_what_was_synced_survives() {
    soak(&spec(JournalMode::none), 150);
}

#[test]
fn without_barriers_promises_are_broken() {
    let spec = FsSpec { barrier: false, ..spec(JournalMode::ordered) };
    let broken = (0..40).filter(|seed| {
        let plan = Plan { spec: spec.clone(), bytes: 96 << 20, seed: *seed, actions: 600 };
        !run(&plan).expect("it can be built").faults.is_empty()
    });
    assert!(broken.count() > 20);
}

/// Whether a fault is found in some of so many runs.
fn is_found(mutant: Mutant, spec: &FsSpec) -> bool {
    let _armed = arm(mutant);
    (0..200).any(|seed| {
        let plan = Plan { spec: spec.clone(), bytes: 96 << 20, seed, actions: 200 + 2 * seed as u32 };
        !run(&plan).expect("it can be built").faults.is_empty()
    })
}

#[test]
#[cfg(debug_assertions)]
fn mutants_are_found() {
    assert!(is_found(Mutant::EarlyCommit, &FsSpec { delalloc: false, ..spec(JournalMode::ordered) }));
    assert!(is_found(Mutant::UnflushedSync, &FsSpec { delalloc: false, ..spec(JournalMode::ordered) }));
    assert!(is_found(Mutant::UnflushedSync, &spec(JournalMode::ordered)));
}
