//! Static wear levelling: which closed reclaim unit gives its data away so that it is worn too.
//!
//! Data that is never written again keeps its unit from being erased. When a free unit of a group has been erased `gap`
//! times more than its least worn closed one, the data of that one moves into the free one, and stays there; the unit
//! that it has left takes data that is written more often (Chang, "On efficient wear leveling for large-scale flash-memory
//! storage systems", SAC 2007: cold data goes to the most worn blocks, and rests there). So a unit that comes back from
//! its `gap`th erase beyond the least worn one is put to rest before it is used again, and erase counts of a group lie
//! no more than `gap` and [`SLACK`] apart.
//!
//! The moved data has a frontier of its own, which opens the most worn free unit. A unit is moved once in about `gap`
//! erases of each unit of its group; that bounds the cost.
//!
//! Garbage collection leaves units that rest alone: where a victim policy chooses one, it takes the emptiest that does not
//! rest, if there is one among the emptiest few.
//!
//! A frontier that nobody writes on is no closed unit, and could lag for ever: it is closed before it is full.

pub use super::by_wear::WearRule;

use super::Ftl;
use super::index::NONE;
use super::space::{Group, Stream};
use super::view::VictimView;

/// How far a frontier may lag behind `gap` until it is closed before it is full; one at work is never closed so.
pub const SLACK: u32 = 2;

/// Lists of equal valid counts that are looked at for a unit that does not rest.
const LOOKS: usize = 16;

/// What garbage collection takes instead of a victim that was erased `rest` times or more: a unit with `most` valid map
/// units or fewer.
pub(super) fn unrested(view: &VictimView<'_>, victim: u32, rest: u32, most: u32) -> u32 {
    if view.erases(victim) < rest {
        return victim;
    }
    let fits = |ru: &u32| view.erases(*ru) < rest && view.valid(*ru) <= most;
    view.by_valid().take(LOOKS).find(fits).unwrap_or(victim)
}

impl Group {
    /// From this erase count on a unit rests: one more erase, and it is further than `gap` from the least worn.
    pub(super) fn rest(&mut self, gap: u32) -> Option<u32> {
        let by_wear = self.by_wear.as_mut()?;
        let least = by_wear.least()?;
        Some(by_wear.erases(least).saturating_add(gap))
    }

    /// The least worn closed unit, if it lags behind the most worn free one and moving it leaves `keep` units free.
    fn unworn(&mut self, gap: u32, keep: u32, clock: u64) -> Option<u32> {
        let limit = self.most_worn_free()?.checked_sub(gap)?;
        self.close_lagging(limit, clock);
        let by_wear = self.by_wear.as_mut()?;
        let least = by_wear.least()?;
        (by_wear.erases(least) <= limit && self.free() > keep).then_some(least)
    }

    /// Closes frontiers that lag and that nobody is writing on.
    fn close_lagging(&mut self, limit: u32, clock: u64) {
        for stream in 0..self.frontiers.len() {
            let slack = if Stream::levels_wear(stream) { 0 } else { SLACK };
            let ru = self.frontiers[stream].ru;
            if ru != NONE && self.rus[ru as usize].inflight == 0 && self.erases(ru) + slack <= limit {
                self.close_early(stream, clock);
            }
        }
    }
}

impl Ftl {
    /// Static wear levelling: the unit of a group that gives its data to [`Stream::Wear`] next, once a unit has been
    /// erased; it is taken out of the index. While space is short, `levelled` (the last unit was taken for wear) leaves
    /// the turn to garbage collection, so that neither keeps the other from its work.
    pub fn pick_unworn(&mut self, group: u32, levelled: bool) -> Option<u64> {
        let gap = self.wear.gap?;
        if levelled && self.free(group) < self.thresholds.stop {
            return None;
        }
        let g = &mut self.groups[group as usize];
        let number = g.unworn(gap, self.thresholds.hard, self.clock)?;
        g.collect(number);
        Some(self.join(group, number))
    }
}

#[cfg(test)]
mod tests;
