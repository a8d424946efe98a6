//! The controller's memory for the map, in time: the entries of a command's units are looked up one command after another.

use super::{Device, Event, Out, milestone};
use engine::resource::Serial;
use engine::{Cx, Snapshot, Time};
use net::Rate;

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
