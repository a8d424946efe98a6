//! Write amplification and valid-count histograms under uniform random writes.

use crate::monte_carlo::drive::{Drive, Victim};
use theory::wa::{self, Frontiers, Spare};

const SPARES: [f64; 4] = [0.07, 0.12, 0.28, 0.5];

fn simulate(blocks: usize, units: usize, spare: f64, victim: Victim, turns: f64) -> (f64, Vec<f64>, Spare) {
    let logical = ((blocks * units) as f64 / (1.0 + spare)).round() as usize;
    let mut drive = Drive::new(blocks, units, logical, 0, victim, Frontiers::Single);
    let (amplification, histogram) = drive.measure(4.0, turns, 0.0);
    (amplification, histogram, Spare::of_units((blocks * units) as u64, logical as u64))
}

/// Half the sum of the differences: the largest error in the probability of any set of counts.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    0.5 * a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>()
}

fn compare(
    blocks: usize,
    units: usize,
    victim: Victim,
    amplification: impl Fn(Spare) -> f64,
    histogram: impl Fn(Spare) -> Vec<f64>,
) {
    for spare in SPARES {
        let (measured, census, of) = simulate(blocks, units, spare, victim, 4.0);
        let expected = amplification(of);
        assert!(
            (measured / expected - 1.0).abs() < 0.01,
            "{victim:?} spare {spare}: {measured} for {expected}"
        );
        let apart = distance(&census, &histogram(of));
        assert!(apart < 0.03, "{victim:?} spare {spare}: histograms {apart} apart");
    }
}

#[test]
fn greedy_64() {
    compare(768, 64, Victim::Greedy, |s| wa::greedy(64, s), |s| wa::greedy_histogram(64, s));
}

#[test]
fn greedy_128() {
    compare(768, 128, Victim::Greedy, |s| wa::greedy(128, s), |s| wa::greedy_histogram(128, s));
}

#[test]
fn greedy_of_small_blocks() {
    compare(3000, 8, Victim::Greedy, |s| wa::greedy(8, s), |s| wa::greedy_histogram(8, s));
}

#[test]
fn two_choices() {
    compare(768, 64, Victim::Choices(2), |s| wa::d_choices(64, s, 2), |s| wa::d_choices_histogram(64, s, 2));
}

#[test]
fn ten_choices() {
    compare(
        768,
        64,
        Victim::Choices(10),
        |s| wa::d_choices(64, s, 10),
        |s| wa::d_choices_histogram(64, s, 10),
    );
}

#[test]
fn random() {
    compare(768, 64, Victim::Choices(1), wa::random, |s| wa::random_histogram(64, s));
}

#[test]
fn oldest() {
    compare(768, 64, Victim::Oldest, wa::fifo, |s| wa::fifo_histogram(64, s));
}

#[test]
fn few_blocks_are_exact() {
    for (blocks, units, logical) in [(4usize, 8usize, 24usize), (6, 8, 40), (8, 4, 27)] {
        let exact = wa::exact_greedy(blocks as u32, units as u16, logical as u32).unwrap();
        let mut drive = Drive::new(blocks, units, logical, 0, Victim::Greedy, Frontiers::Single);
        let (measured, _) = drive.measure(100.0, 20_000.0, 0.0);
        assert!((measured / exact - 1.0).abs() < 0.004, "{blocks} blocks: {measured} for {exact}");
    }
}

#[test]
fn more_blocks_approach_the_mean_field() {
    // The deviation is of order 1/N: halved by doubling, and extrapolated away by 2 A(2N) - A(N).
    let limit = wa::greedy(4, Spare::of_logical(1.0 / 3.0));
    let exact = |blocks: u32| wa::exact_greedy(blocks, 4, blocks * 3).unwrap();
    let errors = [8, 16, 32].map(|blocks| exact(blocks) / limit - 1.0);
    println!("{errors:?}");
    assert!(errors[0] > 1.6 * errors[1] && errors[1] > 1.6 * errors[2], "{errors:?}");
    let extrapolated = 2.0 * exact(32) - exact(16);
    assert!((extrapolated / limit - 1.0).abs() < 0.01, "{extrapolated} for {limit}");
}
