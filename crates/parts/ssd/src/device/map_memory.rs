//! Controller memory for the map, in time: entries are looked up one command after the other, and changed translation
//! pages wait there.

use super::{Device, Event, Out, milestone};
use engine::resource::Serial;
use engine::{Cx, Snapshot, Time};
use ftl::page_map::map_cache::WriteBack;
use net::Rate;
use std::collections::BTreeSet;

/// Memory that holds the map, or its cached part.
#[derive(Clone, Debug)]
pub struct MapMemory {
    /// Bytes per entry.
    pub entry: u64,
    /// Bytes taken by the map.
    pub bytes: u64,
    /// Latency of an access, up to its first byte.
    pub latency: Time,
    /// Rate of further entries.
    pub rate: Rate,
    port: Serial,
}

impl MapMemory {
    /// Creates an idle memory.
    pub fn new(entry: u64, bytes: u64, latency: Time, rate: Rate) -> MapMemory {
        MapMemory { entry, bytes, latency, rate, port: Serial::default() }
    }

    /// Returns the time at which the entries of `units` neighbours have been looked up.
    fn look_up(&mut self, now: Time, units: u64) -> Time {
        self.port.grant(now, self.latency + self.rate.time(units * self.entry))
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.port.save(out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.port = Serial::load(input)?;
        Some(())
    }
}

impl Device {
    /// Memory that holds the map, if it takes time.
    pub fn map_memory(&self) -> Option<&MapMemory> {
        self.map_memory.as_ref()
    }

    /// Looks up the entries of a command's units; they are known at [`Event::Known`], or now if a look-up takes no
    /// time.
    #[inline]
    pub(super) fn look_up_entries(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let units = self.active[id].end - self.active[id].next;
        match &mut self.map_memory {
            Some(memory) if units > 0 => {
                let end = memory.look_up(cx.now(), units);
                cx.after(end - cx.now(), Event::Known(id));
            }
            _ => self.start(id, cx),
        }
    }

    /// Continues a command whose entries have been looked up.
    pub(super) fn known(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].life.reach(milestone::MAPPING, cx.now());
        self.start(id, cx);
    }
}

// Translation pages changed by units that garbage collection moves, and their write-back.
//
// Scattered moved units each change a different page. Writing all of these back may take more space than their victim
// has given, and the pages they replace are the next victims: garbage collection would feed itself for ever. So such
// pages wait in memory, each once however often it changes. A group writes its own back while it has room to spare, or
// when its collection ends, for at most half of the space gained. An ordinary write-back of a page takes waiting
// changes along.
//
// Waiting pages are not part of the cache's capacity: at most every translation page once. A drive has the same entries
// in the out-of-band area of the pages it has just moved.

/// Changed pages whose place is in one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    /// Pages waiting for write-back.
    pages: BTreeSet<u64>,
    /// Page at which the next turn begins: otherwise pages with the lowest numbers would always be written.
    turn: u64,
    /// Map units gained by garbage collection here, less two for each page written.
    gained: i64,
}

engine::snapshot!(Moved { pages, turn, gained });

impl Moved {
    /// Returns true if a page waits.
    pub(super) fn has(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// Adds a changed page.
    pub(super) fn note(&mut self, page: u64) {
        self.pages.insert(page);
    }

    /// Removes a page that is being written with all its changes.
    pub(super) fn written(&mut self, page: u64) {
        self.pages.remove(&page);
    }

    /// Deducts units of the group taken by moves.
    fn spend(&mut self, units: u32) {
        self.gained -= i64::from(units);
    }

    /// Adds units of the group that have been erased. Unused gains are capped at `most`.
    fn gain(&mut self, units: u32, most: i64) {
        self.gained = (self.gained + i64::from(units)).min(most);
    }

    /// Takes the next page that may be written; with `room` it costs nothing.
    fn take(&mut self, room: bool) -> Option<u64> {
        if !room && self.gained <= 0 {
            return None;
        }
        let page = self.pages.range(self.turn..).next().or_else(|| self.pages.first()).copied()?;
        self.pages.remove(&page);
        self.turn = page + 1;
        self.gained -= if room { 0 } else { 2 };
        Some(page)
    }
}

impl Device {
    /// Accounts for a program unit of moved data in a group.
    pub(super) fn spends_on_moves(&mut self, group: u32) {
        if let Some(translation) = &mut self.translation {
            translation.moved[group as usize].spend(self.ftl.geo.units_per_program);
        }
    }

    /// Accounts for a reclaim unit of a group that is free again.
    pub(super) fn gains_by_erase(&mut self, group: u32) {
        if let Some(translation) = &mut self.translation {
            let units = self.ftl.geo.units_per_ru;
            let chain = i64::from(self.ftl.thresholds.stop - self.ftl.thresholds.start);
            translation.moved[group as usize].gain(units, chain * i64::from(units));
        }
    }

    /// Largest gain of garbage collection in any group, in map units.
    #[cfg(any(test, feature = "soak"))]
    pub fn gained(&self) -> Option<i64> {
        self.translation.as_ref()?.moved.iter().map(|moved| moved.gained).max()
    }

    /// Writes back changed pages where that is allowed now.
    pub(super) fn write_back_moved(&mut self, cx: &mut impl Cx<Event, Out>) {
        if self.translation.is_none() {
            return;
        }
        for group in 0..self.ftl.geo.groups {
            while self.jobs[group as usize].is_none() {
                // More than the level at which garbage collection stops: writing does not start it.
                let room = self.ftl.free(group) > self.ftl.thresholds.stop;
                let page = self.translation.as_mut().and_then(|t| t.moved[group as usize].take(room));
                let Some(page) = page else { break };
                self.write_back(Some(WriteBack { page, needs_read: true }), cx);
            }
        }
    }
}
