//! The long soak: `cargo test --release -p nandscape-flash --test soak -- --ignored`.

#[test]
#[ignore = "ten million operations take minutes"]
fn ten_million_operations_keep_their_data() {
    let mut operations = 0;
    let mut seed = 1;
    while operations < 10_000_000 {
        let report = flash::soak::soak(30_000, seed);
        let bad: Vec<_> = report.outcomes.iter().filter(|o| !o.is_ok()).collect();
        assert!(bad.is_empty(), "seed {seed}: {bad:#?}");
        operations += report.operations();
        println!("seed {seed}: {operations} operations, {} units compared", report.units_checked());
        seed += 1;
    }
}
