//! Rates against their formula, steps against the distribution that deviations are drawn from.

use super::*;
use crate::dies::op::Class;
use crate::geometry::Address;
use crate::geometry::tests::small;
use crate::geometry::{Reclaim, Shape};
use proto::Slot;

const RATES: ErrorRates = ErrorRates {
    seed: 11,
    fresh: 0.001,
    wear: 0.0,
    retention: 0.0,
    age: 0.0,
    reads: 0.0,
    types: Vec::new(),
    spread: 0.0,
    correctable: 0.004,
    gain: 0.5,
    limit: 8,
    latency: Time::ZERO,
};

fn errors(rates: &ErrorRates) -> Errors {
    let geo = Geometry::new(Shape { blocks: 16, pages: 48, ..small(Reclaim::Block) });
    let types = if rates.types.is_empty() { vec![1.0, 1.0] } else { rates.types.clone() };
    // Types take turns.
    let page_type: Vec<u8> = (0..geo.shape.pages).map(|page| (page % 2) as u8).collect();
    Errors::new(ErrorRates { types, ..rates.clone() }, &page_type, &geo)
}

fn op(kind: OpKind, block: u32, page: u32, erases: u32) -> Op {
    let at = Address { die: 1, plane: 1, block, page };
    Op { erases, ..Op::new(kind, Class::HostRead, at, Slot(0), 1, 4096, 0) }
}

fn rate(errors: &mut Errors, op: &Op, now: Time) -> f64 {
    let past = *errors.past(op, op.block);
    errors.rate(op, op.page, past, now)
}

fn is_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
}

/// Probability that the sum of four uniform numbers is below `x` (Irwin and Hall).
fn below(x: f64) -> f64 {
    let terms = [1.0, -4.0, 6.0, -4.0, 1.0].into_iter().enumerate();
    terms.map(|(k, c)| c * (x - k as f64).max(0.0).powi(4)).sum::<f64>() / 24.0
}

#[test]
fn steps_are_distributed_as_deviations_are() {
    let rates = ErrorRates { fresh: 0.003, spread: 0.6, ..RATES };
    let mut errors = errors(&rates);
    let mut with = [0u32; 10];
    let (mut uncorrectable, mut all) = (0, 0);
    for erases in 0..40 {
        for (block, page) in (0..16).flat_map(|block| (0..48).map(move |page| (block, page))) {
            let (steps, ends_well) = errors.judge(&op(OpKind::Read, block, page, erases), Time::ZERO);
            (0..=usize::from(steps)).for_each(|n| with[n] += 1);
            uncorrectable += u32::from(!ends_well);
            all += 1;
        }
    }
    assert_eq!((with[0], uncorrectable), (all, 0));
    for n in 1..4 {
        // The nth step is needed if what the steps before leave is above what can be corrected.
        let threshold = libm::log(rates.correctable / rates.gain.powi(n - 1) / rates.fresh) / rates.spread;
        let expected = 1.0 - below(2.0 + threshold / 3f64.sqrt());
        let found = f64::from(with[n as usize]) / f64::from(all);
        let error = (expected * (1.0 - expected) / f64::from(all)).sqrt();
        assert!((found - expected).abs() < 4.0 * error, "{n} steps: {found}, expected {expected} +-{error}");
    }
    let due: u32 = with[1..].iter().sum();
    assert_eq!(errors.due, u64::from(due));
}

#[test]
fn what_wears_a_page_adds_up() {
    let types = vec![1.0, 3.0];
    let rates = ErrorRates { wear: 1e-5, retention: 2e-4, age: 30.0, reads: 1e-7, types, ..RATES };
    let mut errors = errors(&rates);
    let hours = |n: u64| Time::from_ms(n * 3_600_000);
    let old = op(OpKind::Read, 3, 4, 20);
    is_near(rate(&mut errors, &old, Time::ZERO), 0.001 + 20.0 * 1e-5 + 30.0 * 2e-4);
    is_near(rate(&mut errors, &op(OpKind::Read, 3, 5, 20), Time::ZERO), 3.0 * 0.0072);
    (0..50).for_each(|_| errors.worked(&old, Time::ZERO));
    is_near(rate(&mut errors, &old, hours(12)), 0.0012 + 30.5 * 2e-4 + 50.0 * 1e-7);
    // The block goes on where preconditioning stopped: what lies before is older.
    errors.worked(&op(OpKind::Program, 3, 8, 20), hours(24));
    errors.worked(&op(OpKind::Program, 3, 10, 20), hours(48));
    is_near(rate(&mut errors, &op(OpKind::Read, 3, 6, 20), hours(72)), 0.0012 + 33.0 * 2e-4 + 5e-6);
    is_near(rate(&mut errors, &op(OpKind::Read, 3, 8, 20), hours(72)), 0.0012 + 2.0 * 2e-4 + 5e-6);
    is_near(rate(&mut errors, &op(OpKind::Read, 3, 10, 20), hours(72)), 0.0012 + 2.0 * 2e-4 + 5e-6);
    // An erase ends all of it, and other blocks have known of nothing.
    errors.worked(&op(OpKind::Erase, 3, 0, 20), hours(72));
    errors.worked(&op(OpKind::Program, 3, 0, 21), hours(72));
    is_near(rate(&mut errors, &op(OpKind::Read, 3, 0, 21), hours(96)), 0.001 + 21.0 * 1e-5 + 2e-4);
    is_near(rate(&mut errors, &op(OpKind::Read, 4, 0, 0), Time::ZERO), 0.001 + 30.0 * 2e-4);
    // A copy reads one block and programs another.
    let copy = Op { source_block: 5, ..op(OpKind::CopyBack, 6, 0, 0) };
    errors.worked(&copy, hours(100));
    assert_eq!((errors.past(&copy, 5).reads, errors.past(&copy, 6).reads), (1, 0));
    assert_eq!((errors.past(&copy, 5).first, errors.past(&copy, 6).first), (NO_PAGE, 0));
}

#[test]
fn a_page_keeps_its_deviation_until_it_is_erased() {
    let of = |seed: u64, erases: u32| {
        let mut errors = errors(&ErrorRates { seed, spread: 0.3, ..RATES });
        (0..48).map(|page| rate(&mut errors, &op(OpKind::Read, 2, page, erases), Time::ZERO)).collect()
    };
    let first: Vec<f64> = of(1, 7);
    assert_eq!(of(1, 7), first);
    for other in [of(2, 7), of(1, 8)] {
        assert!(first.iter().zip(&other).all(|(a, b)| a != b));
    }
    let furthest = libm::exp(0.3 * 3.4642);
    assert!(first.iter().all(|rate| (1.0 / furthest..furthest).contains(&(rate / RATES.fresh))));
}

#[test]
fn steps_end_where_the_code_corrects_or_nobody_goes_on() {
    let errors = errors(&RATES);
    for (rate, steps) in [
        (0.0, (0, true)),
        (0.004, (0, true)),
        (0.0041, (1, true)),
        (0.008, (1, true)),
        (0.5, (7, true)),
        (1.0, (8, true)),
        (1.1, (8, false)),
    ] {
        assert_eq!(errors.steps(rate), steps, "{rate}");
    }
}
