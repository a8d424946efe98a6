//! Evictions of dirty data from a drive's buffer, and the pages that they were programmed into.

use schemars::JsonSchema;
use serde::Serialize;
use ssd::Device;
use std::collections::BTreeMap;

/// Evictions of dirty data from a drive's buffer, in the foreground and in the background.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Evictions {
    /// Map units written to flash by foreground eviction.
    pub foreground_units: u64,
    /// Map units written to flash by background eviction.
    pub background_units: u64,
    /// Programs by foreground eviction.
    pub foreground_programs: u64,
    /// Programs by background eviction.
    pub background_programs: u64,
    /// Page victimizations announced by the host.
    pub announcements: u64,
    /// Announced pages, of 4 KiB each.
    pub announced_pages: u64,
}

/// Programmed pages by type, where their order is a choice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PagesByType {
    /// Program units by type of page, the fastest first, for each purpose: `even`, `foreground`, `background`, `gc`.
    pub programs: BTreeMap<&'static str, Vec<u64>>,
    /// Program units skipped: not programmable until their block is erased.
    pub skipped: u64,
    /// Share of programmed units among programmed and skipped ones; null without either.
    pub used_share: Option<f64>,
    /// Reclaim units with skipped program units, at the end.
    pub skipping: u64,
}

impl Evictions {
    /// Returns results of a drive that received announcements, or that distinguishes foreground from background.
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
