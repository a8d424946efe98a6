//! Write throughput as the number of outstanding writes grows.

use crate::allocation::bench::*;
use ssd::spec::{FlashSpec, MultiPlaneRule, ReclaimUnit};

/// What links, channels and gathering may take of the time of a program.
const COST: f64 = 1e-3;

/// Whether it is that many, but for what links, channels and gathering take.
fn is_exact(got: f64, expected: f64) -> bool {
    (expected * (1.0 - COST)..=expected).contains(&got)
}

/// Page writes at work with `n` outstanding, at addresses `stride` pages apart.
fn measured(planes: Planes, order: &str, free: &str, n: u64, stride: u64) -> f64 {
    measured_on(&striped(spec(planes, free), order), n, 12 * n.min(count(planes)), stride)
}

/// The same of a device, over the first `counted` writes of a host that goes on.
fn measured_on(spec: &FlashSpec, n: u64, counted: u64, stride: u64) -> f64 {
    let mut bench = Bench::new(spec);
    let pages = bench.device.capacity() / PAGE;
    bench.run(writes((0..counted + n).map(|i| i * stride % pages)), n);
    at_work(counted, bench.ends[counted as usize - 1])
}

#[test]
fn full_allocation_grows_as_the_lesser_of_writes_and_planes() {
    let geometries: [Planes; 7] =
        [[1, 1, 1, 1], [4, 1, 1, 1], [1, 1, 1, 2], [2, 2, 1, 2], [1, 1, 1, 4], [2, 1, 2, 4], [3, 2, 1, 2]];
    let mut faults = String::new();
    for planes in geometries {
        let p = count(planes);
        for order in ["CWDP", "PDWC", "WCDP"] {
            for n in (1..=p + 3).chain([2 * p, 3 * p + 1]) {
                // All addresses belong to one plane under static allocation.
                let got = measured(planes, order, "CWDP", n, p);
                let expected = n.min(p) as f64;
                if !is_exact(got, expected) {
                    faults += &format!("{planes:?} {order} n={n}: {got:.4} not {expected}\n");
                }
            }
        }
    }
    assert_eq!(faults, "");
}

/// All addresses on one plane: what is chosen at the write is all there is to spread over.
#[test]
fn colliding_writes_use_what_is_free() {
    let planes: Planes = [2, 3, 2, 2];
    let p = count(planes);
    let mut faults = String::new();
    for set in 0..16u32 {
        let is_free = |at: usize| set >> at & 1 == 1;
        let free: String = (0..4).filter(|at| is_free(*at)).map(|at| ["C", "W", "D", "P"][at]).collect();
        let choices: u64 = (0..4).filter(|at| is_free(*at)).map(|at| u64::from(planes[at])).product();
        for (order, n) in [("CWDP", 1), ("CWDP", 7), ("PDWC", 12), ("DCPW", 24), ("CWDP", 30)] {
            let device = striped(spec(planes, &free), order);
            let got = measured_on(&device, n, 12 * n.min(choices), p);
            let expected = n.min(choices) as f64;
            if !is_exact(got, expected) {
                faults += &format!("`{free}` {order} n={n}: {got:.4} not {expected}\n");
            }
        }
    }
    assert_eq!(faults, "");
}

/// Consecutive addresses lie on all planes in turn: there is nothing left to gain.
#[test]
fn static_allocation_of_consecutive_writes_uses_all_planes() {
    // Dies of one plane: under static allocation, planes of a die are not waited for.
    for free in ["", "P", "WD", "CWDP"] {
        let got = measured([4, 2, 1, 1], "CWDP", free, 8, 1);
        assert!(is_exact(got, 8.0), "`{free}`: {got}");
    }
}

/// The planes of a set take turns: as many dies as there are writes, and whole rows of planes.
#[test]
fn plane_sets_spread_over_dies() {
    let planes: Planes = [2, 1, 2, 4];
    let mut spec = spec(planes, "CWDP");
    spec.ftl.reclaim_unit = ReclaimUnit::plane_set;
    for (n, expected) in [(1, 1.0), (3, 3.0), (4, 4.0), (16, 16.0), (19, 16.0), (32, 16.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 16);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// One superblock over the device is written in stripe order: the dies follow without a choice.
#[test]
fn a_superblock_spreads_over_all_planes() {
    let mut spec = spec([4, 2, 1, 1], "CWDP");
    spec.ftl.reclaim_unit = ReclaimUnit::superblock;
    for n in [1u64, 5, 8, 11] {
        let expected = n.min(8) as f64;
        let got = measured_on(&spec, n, 12 * n.min(8), 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// Dies of a package that take turns are one: a quarter of the planes of four dies work at once.
#[test]
fn dies_that_take_turns_share_no_command() {
    let mut spec = spec([2, 1, 2, 2], "CWDP");
    spec.die.interleave = false;
    for (n, expected) in [(1, 1.0), (2, 2.0), (4, 4.0), (8, 4.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}

/// Without multi-plane commands a die works on one plane.
#[test]
fn without_multi_plane_commands_dies_count() {
    let mut spec = spec([2, 1, 2, 4], "CWDP");
    spec.die.multi_plane = MultiPlaneRule::off;
    for (n, expected) in [(3, 3.0), (4, 4.0), (9, 4.0)] {
        let got = measured_on(&spec, n, 12 * expected as u64, 8);
        assert!(is_exact(got, expected), "n={n}: {got}");
    }
}
