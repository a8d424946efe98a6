//! Samples against whole executions, address by address.

use super::*;
use crate::vliw::testing::cache;

fn caches(scale: u64) -> (CacheSpec, CacheSpec) {
    (cache(32 / scale, 2, 64, 12), cache(512 / scale, 4, 128, 60))
}

/// Every access of a screen.
fn whole(kernel: &Kernel, screen: &Piece, (first, second, streams): (&CacheSpec, &CacheSpec, u32)) -> Misses {
    let mut caches = Caches::new(first, second).expect("caches").with_streams(streams);
    let starts = starts(kernel);
    let mut misses = Misses::default();
    kernel.accesses(screen, &mut |access: Access| {
        misses += caches.access(starts[access.array] + access.byte, access.write);
    });
    misses
}

/// Cycles for which a core stands still.
fn stalls(misses: &Misses, (first, second, _): (&CacheSpec, &CacheSpec, u32)) -> f64 {
    let lone = misses.first * u64::from(first.miss) + misses.second * u64::from(second.miss);
    (lone + misses.ahead * u64::from(second.miss) / 2) as f64
}

/// The programs on caches a sixteenth of the size, with matrices from half of the first level to six times the second.
#[test]
fn samples_are_within_five_per_cent_of_whole_executions() {
    check_samples(0);
}

/// The same with a prefetcher of eight streams, which takes half of a miss.
#[test]
fn the_same_with_streams_that_are_fetched_ahead() {
    check_samples(8);
}

fn check_samples(streams: u32) {
    let (first, second) = caches(16);
    let specs = (&first, &second, streams);
    let mut off = Vec::new();
    for (name, text) in nest::programs() {
        for side in [16, 90, 128] {
            let sizes: Vec<(String, i64)> = Kernel::read(text, name, &[])
                .expect("a program")
                .sizes()
                .iter()
                .map(|(name, _)| (name.clone(), side))
                .collect();
            let Ok(kernel) = Kernel::read(text, name, &sizes) else { continue };
            for microblock in 0..kernel.microblocks().len() {
                let screen = kernel
                    .screens(microblock, 6)
                    .nth(2)
                    .or_else(|| kernel.screens(microblock, 6).last())
                    .expect("a screen");
                let sampled = Stalls::sample(&kernel, screen, specs, 1 << 16).expect("a sample");
                let mut iterations = Vec::new();
                kernel.iterations(&screen, &mut iterations);
                let found = stalls(&sampled.of(&iterations, true), specs);
                let wanted = stalls(&whole(&kernel, &screen, specs), specs);
                let error = (found - wanted).abs() / wanted.max(1.0);
                if error > 0.05 {
                    off.push(format!(
                        "{name} {side} {microblock}: {found} against {wanted}, {:.1} %",
                        100.0 * error
                    ));
                }
            }
        }
    }
    assert!(off.is_empty(), "{}:\n{}", off.len(), off.join("\n"));
}
