//! Host of a soak: keeps commands in flight whose extents overlap as often as possible.

use crate::check::Check;
use crate::device::{Device, Event, Out};
use engine::{Digest, Recorder, Rng, Time};
use nand::dies;
use proto::{Command, IoOp, Status};
use serde::Serialize;
use std::ops::Range;

/// Events without a completion after which the device counts as livelocked.
const FUTILE_EVENTS: u64 = 2_000_000;
/// Size of a sector in bytes.
const SECTOR: u64 = 512;
/// Map units of the hot spot.
const HOT_UNITS: u64 = 6;
/// Commands between two pauses, in which the host waits for everything, including garbage collection.
const PAUSE: u64 = 3_000;

/// Outcome of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum End {
    /// All commands were answered.
    Done,
    /// Commands are left, but no event.
    Deadlock,
    /// Events continue, but no command completes and no end is reached.
    Livelock,
    /// A command failed.
    Refused,
    /// Shadow violation.
    Violated,
}

/// Host and its device.
pub struct Host {
    /// Device of the host.
    pub device: Device,
    cx: Recorder<Event, Out>,
    rng: Rng,
    depth: u32,
    issued: u64,
    /// Commands answered.
    pub completed: u64,
    digest: Digest,
    /// Checks that have failed.
    pub failed: Vec<Check>,
    unit_bytes: u64,
    /// End of the last read, in bytes.
    read_to: u64,
    refused: bool,
}

impl Host {
    /// Creates a host that keeps `depth` commands in flight.
    pub fn new(device: Device, seed: u64, depth: u32) -> Host {
        Host {
            unit_bytes: u64::from(device.ftl.geo.shape.unit_bytes),
            device,
            cx: Recorder::default(),
            rng: Rng::stream(seed, "soak/host"),
            depth,
            issued: 0,
            completed: 0,
            digest: Digest::default(),
            failed: Vec::new(),
            read_to: 0,
            refused: false,
        }
    }

    /// Digest of all completions with their times.
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Present time.
    pub fn now(&self) -> Time {
        self.cx.queue.now()
    }

    /// Runs `operations` commands, with pauses. Checks are made in the middle, and whenever all is idle.
    pub fn drive(&mut self, operations: u64) -> End {
        while self.completed < operations && self.failed.is_empty() {
            let target = (self.issued + PAUSE).min(operations);
            let end = self.burst(target);
            self.check();
            if end != End::Done {
                return end;
            }
        }
        End::Done
    }

    fn check(&mut self) {
        let checks = self.device.checks(self.now());
        self.failed.extend(checks.into_iter().filter(|c| !c.ok));
    }

    /// Issues commands up to the `target`th, and waits until no event is left.
    fn burst(&mut self, target: u64) -> End {
        let checked = self.issued + self.rng.below(PAUSE);
        let mut futile = 0;
        loop {
            while self.issued < target && self.issued - self.completed < u64::from(self.depth) {
                let command = self.command();
                self.issued += 1;
                self.device.submit(command, &mut self.cx);
                if self.issued == checked {
                    self.check();
                }
            }
            let Some(event) = self.cx.queue.pop() else {
                return if self.refused {
                    End::Refused
                } else if self.device.in_flight() > 0 {
                    End::Deadlock
                } else {
                    End::Done
                };
            };
            self.device.handle(event, &mut self.cx);
            if self.device.shadow().is_some_and(|s| s.violations > 0) {
                return End::Violated;
            }
            futile = if self.cx.sent.is_empty() { futile + 1 } else { 0 };
            if futile > FUTILE_EVENTS {
                return End::Livelock;
            }
            for (time, Out::Complete(completion)) in self.cx.sent.drain(..) {
                self.completed += 1;
                self.refused |= completion.status != Status::Success;
                self.digest.word(time.ps());
                self.digest.word(u64::from(completion.tag));
            }
        }
    }

    fn command(&mut self) -> Command {
        let op = match self.rng.below(100) {
            0..40 => IoOp::Read,
            40..82 => IoOp::Write,
            82..91 => IoOp::Trim,
            91..97 => IoOp::WriteZeroes,
            _ => IoOp::Flush,
        };
        let extent = match op {
            IoOp::Flush => 0..0,
            IoOp::Read => self.read_extent(),
            _ => self.extent(),
        };
        Command {
            fua: self.rng.below(16) == 0,
            queue: self.rng.below(3) as u16,
            placement: self.rng.below(4) as u8,
            priority: self.rng.below(4) as u8,
            // Exceeds the size of every buffer at times.
            announced: if self.issued % 16 == 5 { self.issued as u32 % 97 } else { 0 },
            ..Command::new(self.issued as u32, op, extent.start, extent.end - extent.start)
        }
    }

    /// Extent of a read in bytes: often it continues where the last one ended.
    fn read_extent(&mut self) -> Range<u64> {
        let mut extent = self.extent();
        if self.rng.below(3) == 0 {
            let bytes = extent.end - extent.start;
            let start = if self.read_to + bytes <= self.device.capacity() { self.read_to } else { 0 };
            extent = start..start + bytes;
        }
        self.read_to = extent.end;
        extent
    }

    /// Extent of a command in bytes: a unit, sectors of one, sectors across borders, or several units.
    fn extent(&mut self) -> Range<u64> {
        let units = self.device.capacity() / self.unit_bytes;
        let sectors = self.unit_bytes / SECTOR;
        let hot = HOT_UNITS.min(units);
        // The hot spot is at the end, where extents are truncated.
        let unit =
            if self.rng.below(2) == 0 { units - hot + self.rng.below(hot) } else { self.rng.below(units) };
        let first = unit * sectors;
        let (start, count) = match self.rng.below(4) {
            0 => (first, sectors),
            1 => {
                let skip = self.rng.below(sectors);
                (first + skip, 1 + self.rng.below(sectors - skip))
            }
            2 => (first + self.rng.below(sectors), 1 + self.rng.below(3 * sectors)),
            _ => (first, sectors * (1 + self.rng.below(8))),
        };
        let end = (start + count).min(units * sectors);
        start * SECTOR..end * SECTOR
    }
}

// Hosts that stop, and resume elsewhere.

impl Host {
    /// Returns this host, at this moment, in front of a different device.
    pub fn before(&self, device: Device) -> Host {
        let mut other = Host::new(device, 0, self.depth);
        other.cx.queue.after(self.now(), dies::Event::ChannelFree(0).into());
        other.cx.queue.pop();
        Host {
            rng: self.rng.clone(),
            issued: self.issued,
            completed: self.completed,
            digest: self.digest,
            read_to: self.read_to,
            ..other
        }
    }

    /// Keeps the device busy for a number of events, then stops immediately.
    pub fn run_events(&mut self, events: u64) -> End {
        self.run_events_of(events, |_| true)
    }

    /// As [`Host::run_events`], with commands of some kinds only.
    pub fn run_events_of(&mut self, events: u64, wanted: impl Fn(IoOp) -> bool) -> End {
        for _ in 0..events {
            while self.issued - self.completed < u64::from(self.depth) {
                let command = self.command();
                if !wanted(command.op) {
                    continue;
                }
                self.issued += 1;
                self.device.submit(command, &mut self.cx);
            }
            let Some(event) = self.cx.queue.pop() else { return End::Deadlock };
            self.device.handle(event, &mut self.cx);
            self.completed += self.cx.sent.drain(..).count() as u64;
        }
        match self.device.shadow() {
            Some(shadow) if shadow.violations > 0 => End::Violated,
            _ => End::Done,
        }
    }
}
