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

use super::Ftl;
use super::index::{Links, NONE, VictimView};
use super::space::{Group, Stream};
use std::collections::VecDeque;

/// How far a frontier may lag behind `gap` until it is closed before it is full; one at work is never closed so.
pub const SLACK: u32 = 2;

/// How a translation layer levels wear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearRule {
    /// The least erased free unit is opened next (dynamic wear levelling); without, the one freed first.
    pub least_worn: bool,
    /// Erases that a closed unit may lie behind a free one of its group; `None`: any number.
    pub gap: Option<u32>,
}

/// What is known about one reclaim unit.
#[derive(Clone, Debug)]
struct Entry {
    erases: u32,
    list: Links,
}
kernel::snapshot!(Entry { erases, list });

const EMPTY: Links = Links { prev: NONE, next: NONE };

/// The closed reclaim units of a group by erase count: a list for each count, longest closed first. Every update is O(1);
/// a look for the least worn passes each empty list once.
#[derive(Clone, Debug)]
pub(crate) struct ByWear {
    /// Up to the highest number that was ever closed or erased; the others have never been erased.
    entries: Vec<Entry>,
    /// First and last of each list, from the erase count `first` on.
    lists: VecDeque<Links>,
    first: u32,
    /// Reclaim units of the group.
    count: u32,
}
kernel::snapshot!(ByWear { entries, lists, first, count });

impl ByWear {
    pub(crate) fn new(count: u32) -> ByWear {
        ByWear { entries: Vec::new(), lists: VecDeque::new(), first: 0, count }
    }

    /// Erase count of a reclaim unit.
    pub(crate) fn erases(&self, ru: u32) -> u32 {
        self.entries.get(ru as usize).map_or(0, |entry| entry.erases)
    }

    fn entry(&mut self, ru: u32) -> &mut Entry {
        if self.entries.is_empty() {
            self.entries.reserve_exact(self.count as usize);
        }
        if ru as usize >= self.entries.len() {
            self.entries.resize(ru as usize + 1, Entry { erases: 0, list: EMPTY });
        }
        &mut self.entries[ru as usize]
    }

    /// A unit that is not closed has been erased.
    pub(crate) fn erased(&mut self, ru: u32, erases: u32) {
        self.entry(ru).erases = erases;
    }

    /// A unit has been closed.
    pub(crate) fn insert(&mut self, ru: u32) {
        let erases = self.entry(ru).erases;
        if self.lists.is_empty() {
            self.first = erases;
        }
        while erases < self.first {
            self.lists.push_front(EMPTY);
            self.first -= 1;
        }
        while self.lists.len() as u32 <= erases - self.first {
            self.lists.push_back(EMPTY);
        }
        let ends = &mut self.lists[(erases - self.first) as usize];
        let last = std::mem::replace(&mut ends.next, ru);
        if last == NONE {
            ends.prev = ru;
        } else {
            self.entries[last as usize].list.next = ru;
        }
        self.entries[ru as usize].list = Links { prev: last, next: NONE };
    }

    /// A unit is closed no longer.
    pub(crate) fn remove(&mut self, ru: u32) {
        let Entry { erases, list: Links { prev, next } } = self.entries[ru as usize];
        let ends = &mut self.lists[(erases - self.first) as usize];
        match prev {
            NONE => ends.prev = next,
            p => self.entries[p as usize].list.next = next,
        }
        match next {
            NONE => ends.next = prev,
            n => self.entries[n as usize].list.prev = prev,
        }
    }

    /// The closed unit that was erased least often, of these the one closed first.
    pub(crate) fn least(&mut self) -> Option<u32> {
        while let Some(ends) = self.lists.front() {
            if ends.prev != NONE {
                return Some(ends.prev);
            }
            self.lists.pop_front();
            self.first += 1;
        }
        None
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.lists.capacity() * size_of::<Links>()) as u64
    }
}

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
