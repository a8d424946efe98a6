//! How dirty data left a drive's buffer, and into which pages.

use schemars::JsonSchema;
use serde::Serialize;
use ssd::Device;
use std::collections::BTreeMap;

/// How dirty data left a drive's buffer in the foreground and in the background.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evictions {
    /// Map units that foreground eviction has brought to flash.
    pub foreground_units: u64,
    /// Map units that background eviction has.
    pub background_units: u64,
    /// Programs of foreground eviction.
    pub foreground_programs: u64,
    /// Programs of background eviction.
    pub background_programs: u64,
    /// Page victimizations that the host has announced.
    pub announcements: u64,
    /// Pages of 4 KiB of them.
    pub announced_pages: u64,
}

/// Which pages were programmed, where their order is a choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PagesByType {
    /// Program units by type of page, the fastest first, for each purpose: `even`, `foreground`, `background`, `gc`.
    pub programs: BTreeMap<&'static str, Vec<u64>>,
    /// Program units that were skipped: they are programmed no more until their block is erased.
    pub skipped: u64,
    /// Share of those programmed among both; null if there was neither.
    pub used_share: Option<f64>,
    /// Reclaim units that have skipped ones, at the end.
    pub skipping: u64,
}

impl Evictions {
    /// Of a drive that was told of victimizations, or that tells foreground from background.
    pub(super) fn collect(device: &Device) -> Option<Evictions> {
        let c = &device.stats.evictions;
        let found = Evictions {
            foreground_units: c.units[1],
            background_units: c.units[2],
            foreground_programs: c.programs[1],
            background_programs: c.programs[2],
            announcements: c.announcements,
            announced_pages: c.announced_pages,
        };
        (c.units[1] + c.units[2] + c.announcements > 0).then_some(found)
    }
}

impl PagesByType {
    pub(super) fn collect(device: &Device) -> Option<PagesByType> {
        let (counters, skipping) = device.window_pages()?;
        let purposes = ["even", "foreground", "background", "gc"];
        let programs =
            purposes.into_iter().zip(counters.programs.iter().map(|types| types.to_vec())).collect();
        let programmed: u64 = counters.programs.iter().flatten().sum();
        let all = programmed + counters.skipped;
        let used_share = (all > 0).then(|| programmed as f64 / all as f64);
        Some(PagesByType { programs, skipped: counters.skipped, used_share, skipping })
    }
}
