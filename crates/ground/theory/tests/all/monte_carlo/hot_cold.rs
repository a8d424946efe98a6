//! Write amplification with hot and cold data.

use crate::monte_carlo::drive::{Drive, Victim};
use theory::wa::{self, Frontiers, Skew, Spare};

const BLOCKS: usize = 1500;
const UNITS: usize = 32;

fn simulate(spare: f64, skew: (f64, f64), victim: Victim, frontiers: Frontiers) -> (f64, Vec<f64>, Spare) {
    let physical = (BLOCKS * UNITS) as f64;
    let logical = (physical / (1.0 + spare)).round() as usize;
    let hot = (logical as f64 * skew.0).round() as usize;
    let mut drive = Drive::new(BLOCKS, UNITS, logical, hot, victim, frontiers);
    // Cold data must have turned over several times.
    let (amplification, census) = drive.measure(25.0, 10.0, skew.1);
    (amplification, census, Spare::of_units((BLOCKS * UNITS) as u64, logical as u64))
}

fn compare(frontiers: Frontiers, tolerance: f64) {
    for (spare, skew) in [(0.15, (0.2, 0.8)), (0.28, (0.1, 0.9)), (0.28, (0.5, 0.5))] {
        let (measured, census, of) = simulate(spare, skew, Victim::Choices(10), frontiers);
        let model = wa::hot_cold(UNITS as u32, of, Skew::new(skew.0, skew.1), 10, frontiers);
        let error = measured / model.amplification - 1.0;
        let what =
            format!("{frontiers:?} spare {spare} skew {skew:?}: {measured} for {}", model.amplification);
        println!("{what}");
        assert!(error.abs() < tolerance, "{what}");
        let apart: f64 = 0.5 * census.iter().zip(&model.histogram).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(apart < 0.03, "{what}, histograms {apart} apart");
    }
}

#[test]
fn single_frontier() {
    compare(Frontiers::Single, 0.01);
}

#[test]
fn host_and_collector_apart() {
    compare(Frontiers::HostAndGc, 0.02);
}

#[test]
fn hot_and_cold_apart() {
    compare(Frontiers::HotAndCold, 0.02);
}

#[test]
fn oldest_first() {
    for (spare, skew) in [(0.15, (0.2, 0.8)), (0.28, (0.1, 0.9))] {
        let (measured, _, of) = simulate(spare, skew, Victim::Oldest, Frontiers::Single);
        let expected = wa::fifo_classes(of, &Skew::new(skew.0, skew.1).classes());
        assert!((measured / expected - 1.0).abs() < 0.01, "spare {spare}: {measured} for {expected}");
    }
}

#[test]
fn without_skew_the_frontiers_make_no_difference() {
    let spare = Spare::of_logical(0.2);
    let plain = wa::d_choices(16, spare, 5);
    for frontiers in [Frontiers::Single, Frontiers::HostAndGc, Frontiers::HotAndCold] {
        let mixed = wa::hot_cold(16, spare, Skew::new(0.4, 0.4), 5, frontiers);
        assert!((mixed.amplification / plain - 1.0).abs() < 1e-7, "{frontiers:?}: {mixed:?} for {plain}");
        let valid: f64 = mixed.histogram.iter().enumerate().map(|(j, m)| j as f64 * m).sum();
        assert!((valid / 16.0 - spare.utilisation()).abs() < 1e-7);
    }
}

#[test]
fn separation_helps_in_the_known_order() {
    // Van Houdt 2014: one frontier is worst, separating the collector helps, knowing the temperature helps
    // more.
    let (spare, skew) = (Spare::of_logical(0.15), Skew::new(0.2, 0.8));
    let of = |frontiers| wa::hot_cold(32, spare, skew, 10, frontiers).amplification;
    let (single, double, apart) =
        (of(Frontiers::Single), of(Frontiers::HostAndGc), of(Frontiers::HotAndCold));
    assert!(single > double && double > apart, "{single} {double} {apart}");
}
