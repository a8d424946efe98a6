//! Values that cannot be.

use super::*;
use crate::soak::Combination;
use crate::spec::Built;

/// The key of a spec's fault and what it says, after a change.
fn fault(change: impl FnOnce(&mut ErrorsSpec)) -> (String, String) {
    let mut spec = Combination { errors: true, ..Combination::plain() }.spec();
    change(spec.cell.errors.as_mut().expect("it has errors"));
    let built = Built { seed: 1, name: "errors".into(), fold: true };
    let fault = spec.build(&built).err().expect("it is refused");
    (fault.key, fault.what)
}

#[test]
fn each_value_out_of_range_is_named_with_what_is_allowed() {
    type Change = fn(&mut ErrorsSpec);
    let cases: [(&str, Change, &str); 16] = [
        ("fresh", |e| e.fresh = 0.6, "allowed are 0 to 0.5"),
        ("fresh", |e| e.fresh = f64::NAN, "allowed are 0 to 0.5"),
        ("wear", |e| e.wear = -0.1, "allowed are 0 to 0.5"),
        ("retention", |e| e.retention = f64::INFINITY, "allowed are 0 to 0.5"),
        ("reads", |e| e.reads = 1.0, "allowed are 0 to 0.5"),
        ("age", |e| e.age = Some(-1.0), "allowed are 0 to 36500 days"),
        ("age", |e| e.age = Some(f64::NAN), "allowed are 0 to 36500 days"),
        ("types", |e| e.types = Some(vec![1.0, -1.0]), "factors from 0 to 1000"),
        ("types", |e| e.types = Some(vec![f64::NAN]), "factors from 0 to 1000"),
        ("types", |e| e.types = Some(vec![1.0; 3]), "needs 1 or 2"),
        ("types", |e| e.types = Some(Vec::new()), "needs 1 or 2"),
        ("retry.correctable", |e| e.retry.correctable = 0.0, "above 0 up to 0.5"),
        ("retry.correctable", |e| e.retry.correctable = f64::NAN, "above 0 up to 0.5"),
        ("retry.gain", |e| e.retry.gain = 0.0, "above 0 up to 1"),
        ("retry.gain", |e| e.retry.gain = 1.1, "above 0 up to 1"),
        ("retry.limit", |e| e.retry.limit = 0, "must be at least 1"),
    ];
    for (name, change, said) in cases {
        let (key, what) = fault(change);
        assert_eq!(key, format!("cell.errors.{name}"), "{what}");
        assert!(what.contains(said), "{key}: {what}");
    }
}

/// Times beside which nothing else changes: a code that corrects everything leaves a device as it is without errors.
#[test]
fn errors_that_are_corrected_change_nothing() {
    use crate::soak::{Host, combinations};
    for combination in &combinations(8)[..12] {
        let run = |errors: bool| {
            let combination = Combination { errors, ..combination.clone() };
            let mut spec = combination.spec();
            if let Some(errors) = &mut spec.cell.errors {
                errors.retry.correctable = 0.5;
            }
            let built = Built { seed: 8, name: "soak".into(), fold: combination.fold };
            let device = combination.filled(spec.build(&built).expect("a sound spec"), 8).expect("it fits");
            let mut host = Host::new(device, 8, combination.depth);
            host.drive(1_500);
            (host.digest(), host.now(), host.device.backend.counters.clone())
        };
        assert_eq!(run(false), run(true), "{combination}");
    }
}
