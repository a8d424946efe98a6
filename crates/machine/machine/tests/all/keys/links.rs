//! Links between parts: a name of nothing is refused, with the names that would do.

use super::{BFS, Case, GAUS, ONE_READ, Predicted, SWAP};

const fn link(key: &'static str, values: &'static [&'static str], jobs: &'static [&'static str]) -> Case {
    let predicted = Predicted::RefusedAfterFirst("there is no part `nowhere`");
    Case { key, context: &[], jobs, values, predicted }
}

/// Of a drive.
pub(crate) const DRIVE: &[Case] = &[link("host.drives", &["flash", "nowhere"], ONE_READ)];
/// Of a GPU with DRAM.
pub(crate) const GPU: &[Case] = &[
    link("gpu.mmu", &["mmu", "nowhere"], GAUS),
    link("gpu.network", &["network", "nowhere"], GAUS),
    link("gpu.l2", &["l2", "nowhere"], GAUS),
    link("l2.memory", &["memory", "nowhere"], GAUS),
];
/// Of a GPU inside a drive.
pub(crate) const INSIDE: &[Case] = &[link("memory.drive", &["flash", "nowhere"], BFS)];
/// Of a GPU that the host pages for.
pub(crate) const PAGED: &[Case] =
    &[link("gpu.paging", &["paging", "nowhere"], GAUS), link("paging.drive", &["flash", "nowhere"], GAUS)];
/// Of a DRAM cache over another memory.
pub(crate) const CACHED: &[Case] = &[link("memory.memory", &["nand", "nowhere"], GAUS)];
/// Of a server that pages.
pub(crate) const SWAPPED: &[Case] = &[
    link("cpu.mmu", &["mmu", "nowhere"], SWAP),
    link("cpu.fabric", &["fabric", "nowhere"], SWAP),
    link("cpu.directory", &["directory", "nowhere"], SWAP),
    link("cpu.l2", &["l2", "nowhere"], SWAP),
    link("cpu.swap", &["swap", "nowhere"], SWAP),
    link("swap.drive", &["flash", "nowhere"], SWAP),
];
