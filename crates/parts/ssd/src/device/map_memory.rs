//! The controller's memory for the map, in time: entries are looked up one command after another, and changed translation
//! pages wait there.

use super::{Device, Event, Out, milestone};
use engine::resource::Serial;
use engine::{Cx, Snapshot, Time};
use ftl::page_map::map_cache::WriteBack;
use net::Rate;
use std::collections::BTreeSet;

/// The memory that holds the map, or the part of it that is held.
#[derive(Clone, Debug)]
pub struct MapMemory {
    /// Bytes an entry.
    pub entry: u64,
    /// Bytes that the map takes.
    pub bytes: u64,
    /// Time of an access before its first byte.
    pub latency: Time,
    /// Rate at which entries follow.
    pub rate: Rate,
    port: Serial,
}

impl MapMemory {
    /// A memory that nobody has looked into.
    pub fn new(entry: u64, bytes: u64, latency: Time, rate: Rate) -> MapMemory {
        MapMemory { entry, bytes, latency, rate, port: Serial::default() }
    }

    /// When the entries of `units` neighbours have been looked up.
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
    /// The memory that holds the map, if it takes time.
    pub fn map_memory(&self) -> Option<&MapMemory> {
        self.map_memory.as_ref()
    }

    /// Looks up the entries of a command's units; they are known at [`Event::Known`], or now if that takes no time.
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

    /// The entries of a command's units have been looked up.
    pub(super) fn known(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].life.reach(milestone::MAPPING, cx.now());
        self.start(id, cx);
    }
}

// Translation pages that garbage collection has changed by moving units, and when they are written back.
//
// Where moved units are scattered, each changes a page of its own. Writing all of them back may take more space than
// their victim has given, and the pages they replace are the next victims: collection would feed itself for ever. So
// such pages wait in memory, each once however often it changes, and a group writes back its own while it has room to
// spare, or when its collection ends, for at most half of the space that this has gained. An ordinary write-back of a
// page takes what waits along.
//
// What waits is not part of the cache's capacity: at most every translation page once. A drive has the same entries in
// the out-of-band area of what it has just moved.

/// The changed pages that have their place in one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved {
    /// Wait to be written back.
    pages: BTreeSet<u64>,
    /// Where the turn goes on: pages with the lowest numbers would be written for ever otherwise.
    turn: u64,
    /// Map units that collection has gained here, less two for each page written.
    gained: i64,
}

engine::snapshot!(Moved { pages, turn, gained });

impl Moved {
    /// Whether a page waits.
    pub(super) fn has(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// A page has changed.
    pub(super) fn note(&mut self, page: u64) {
        self.pages.insert(page);
    }

    /// A page is being written with all that has changed.
    pub(super) fn written(&mut self, page: u64) {
        self.pages.remove(&page);
    }

    /// Moves have taken units of the group.
    fn spend(&mut self, units: u32) {
        self.gained -= i64::from(units);
    }

    /// Units of the group have been erased. What it does not use is not saved up beyond `most`.
    fn gain(&mut self, units: u32, most: i64) {
        self.gained = (self.gained + i64::from(units)).min(most);
    }

    /// The next page that may be written; with `room` it costs nothing.
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
    /// A program unit of moved data goes to a group.
    pub(super) fn spends_on_moves(&mut self, group: u32) {
        if let Some(translation) = &mut self.translation {
            translation.moved[group as usize].spend(self.ftl.geo.units_per_program);
        }
    }

    /// A reclaim unit of a group is free again.
    pub(super) fn gains_by_erase(&mut self, group: u32) {
        if let Some(translation) = &mut self.translation {
            let units = self.ftl.geo.units_per_ru;
            let chain = i64::from(self.ftl.thresholds.stop - self.ftl.thresholds.start);
            translation.moved[group as usize].gain(units, chain * i64::from(units));
        }
    }

    /// The most map units that collection has gained in a group.
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
                // More than collection stops at: writing does not start it.
                let room = self.ftl.free(group) > self.ftl.thresholds.stop;
                let page = self.translation.as_mut().and_then(|t| t.moved[group as usize].take(room));
                let Some(page) = page else { break };
                self.write_back(Some(WriteBack { page, needs_read: true }), cx);
            }
        }
    }
}
