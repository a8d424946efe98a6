//! The long soak: `cargo test --release -p nandscape-ssd --test all soaked::long -- --ignored --nocapture`.
//!
//! `SOAK_OPS` sets how many operations at least, ten million otherwise; `SOAK_SEED` the first seed; `SOAK_EACH` the
//! operations of one combination with one seed.

use engine::Digest;
use ssd::soak::Combination;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
}

#[test]
#[ignore = "ten million operations take minutes: `cargo xtask soak` runs it"]
fn ten_million_operations_keep_their_data() {
    let (wanted, mut seed) = (setting("SOAK_OPS", 10_000_000), setting("SOAK_SEED", 1));
    let each = setting("SOAK_EACH", 30_000);
    let (mut operations, mut compared, mut bad) = (0, 0, 0);
    let mut digest = Digest::default();
    while operations < wanted {
        for combination in ssd::soak::combinations(seed) {
            let outcome = ssd::soak::run(&combination, each, seed, true).expect("it can be built");
            operations += outcome.operations;
            compared += outcome.units_checked;
            digest.word(outcome.digest);
            // The same without shadow, and the other way round with folding.
            let other = Combination { fold: !combination.fold, ..combination.clone() };
            let other = ssd::soak::run(&other, each, seed, false).expect("it can be built");
            let is_ok = outcome.is_ok() && (other.digest, other.moves) == (outcome.digest, outcome.moves);
            bad += u64::from(!is_ok);
            let verdict = if is_ok { "ok" } else { "FAILED" };
            println!("seed {seed} {verdict} {} operations: {}", outcome.operations, outcome.name);
            if !is_ok {
                println!("{outcome:#?}, other way folded: {other:#?}");
            }
        }
        seed += 1;
    }
    println!("{operations} operations, {compared} units compared, {bad} runs failed");
    println!("digest {:016x}", digest.value());
    assert_eq!(bad, 0, "failed runs");
}
