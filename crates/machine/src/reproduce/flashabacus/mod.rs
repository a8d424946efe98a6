//! FlashAbacus (Zhang and Jung, 2018). How each figure is read from runs was decided before any was; it stands in `papers/flashabacus/README.md`.

mod constants;
mod metrics;
mod rows;
mod serial;
mod spent;
mod suite;
mod variants;

use super::Effort;
use super::expected::Expected;
use super::study::Entry;
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/flashabacus/expected.toml"))
}

/// Figures that had been seen with a provisional table of the rival's energies and steps of SYR2K that used one core, before both were as they are.
const SEEN: [&str; 11] = [
    "flashabacus.energy.simd_transfer_share",
    "flashabacus.energy.interst_vs_simd_compute",
    "flashabacus.power.intrao3_compute",
    "flashabacus.motivation.transfer_time_share.all",
    "flashabacus.motivation.transfer_energy_share.all",
    "flashabacus.motivation.transfer_energy_share.computing",
    "flashabacus.real.energy_vs_simd.interst",
    "flashabacus.real.energy_vs_simd.intraio",
    "flashabacus.real.energy_vs_simd.interdy",
    "flashabacus.real.energy_vs_simd.intrao3",
    "flashabacus.real.simd_transfer_energy",
];

/// The rows: the paper's, and beside them those under other assumptions.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    let own = own.map(|entry| if SEEN.contains(&entry.id.as_str()) { entry.seen() } else { entry });
    own.chain(variants::entries(expected.figures(), effort)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let expected = expected();
        let figures: Vec<String> = expected.figures().iter().map(|figure| figure.id.clone()).collect();
        let suite = Suite::of(Effort::Full);
        let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
        let rows: Vec<String> = own.map(|entry| entry.id).collect();
        assert_eq!(rows, figures);
        assert!(SEEN.iter().all(|id| figures.iter().any(|figure| figure == id)));
    }
}
