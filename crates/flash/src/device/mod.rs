//! The flash device as a part of a machine: commands in, completions out, events in between.
//!
//! `host` takes commands in and hands completions out, `read` and `write` turn them into operations of the back end,
//! `reclaim` runs garbage collection. The FTL has no time; everything that takes time is in the back end, on the
//! link, or in the controller's cores.

mod checks;
mod host;
mod merge;
mod mutant;
mod read;
mod reclaim;
mod space;
mod stats;
mod write;

pub use checks::Check;
pub use host::{HostParams, NvmeParams};
#[cfg(test)]
pub(crate) use mutant::Mutant;
pub use stats::{DeviceStats, MILESTONES, milestone};

use crate::backend::op::Class;
use crate::backend::{Backend, BackendPolicy, timing::Timing};
use crate::ftl::Ftl;
use crate::ftl::alloc::Allocator;
use crate::shadow::Shadow;
use ::stats::Milestones;
use checks::Ledger;
use host::Host;
use kernel::{Cx, Slab, Time};
use merge::Merge;
use proto::{Command, Completion, IoOp, Lpn, Slot, Status};
use reclaim::Job;
use std::collections::VecDeque;

/// The device's own events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A doorbell write has reached the controller.
    Doorbell(u16),
    /// A command has been fetched.
    Fetched(u32),
    /// The controller has processed a command.
    Ready(u32),
    /// The data of a write has arrived.
    DataIn(u32),
    /// A completion has reached the host.
    HostDone(u32),
    /// The array of a die has finished.
    ArrayDone(u32),
    /// A read's data has left its die.
    TransferDone(u32),
    /// A channel has become free.
    ChannelFree(u32),
    /// A die that was told to suspend takes commands.
    Suspended(u32),
}

/// Messages that the device sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done.
    Complete(Completion),
}

/// A command inside the device.
#[derive(Clone, Debug)]
pub(crate) struct Active {
    command: Command,
    /// Operations and host transfers that it still waits for.
    pending: u32,
    /// First map unit that has not been turned into an operation yet, and the end of its map units.
    next: u64,
    end: u64,
    status: Status,
    /// Whether it waits for space.
    waits: bool,
    /// Units that it writes in part.
    merge: Option<Box<Merge>>,
    life: Milestones<{ stats::COUNT }>,
}

/// Everything a device is built from.
pub struct DeviceParts {
    /// The translation layer.
    pub ftl: Ftl,
    /// Where host data goes.
    pub allocator: Box<dyn Allocator>,
    /// Times of the array and the channels.
    pub timing: Timing,
    /// Policies of the back end.
    pub policy: BackendPolicy,
    /// How the host reaches the device.
    pub host: HostParams,
    /// Program units that garbage collection holds in flight a group.
    pub gc_window: u32,
    /// Whether garbage collection copies inside a plane.
    pub copy_back: bool,
    /// Host data streams: placements above are folded onto the last one.
    pub placements: u8,
}

/// One flash device.
pub struct Device {
    /// The translation layer.
    pub ftl: Ftl,
    /// Dies and channels.
    pub backend: Backend,
    allocator: Box<dyn Allocator>,
    host: Host,
    active: Slab<Active>,
    jobs: Vec<Option<Job>>,
    /// Commands that wait for space: by group, or all in the first list if the allocator chooses the group.
    waiting: Vec<VecDeque<u32>>,
    /// A command waits for space where nothing is being reclaimed: it has to be tried again.
    stalled: bool,
    /// What each garbage collection program moves, by operation.
    moves: Vec<Vec<(Lpn, Slot)>>,
    gc_window: u32,
    copy_back: bool,
    placements: u8,
    unit_bytes: u64,
    /// What happened.
    pub stats: DeviceStats,
    /// What happened since the beginning, for the checks.
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    #[cfg(test)]
    mutant: mutant::State,
}

impl Device {
    /// An idle device.
    pub fn new(parts: DeviceParts) -> Device {
        let geo = &parts.ftl.geo;
        let groups = geo.groups as usize;
        Device {
            backend: Backend::new(geo, parts.timing, parts.policy),
            allocator: parts.allocator,
            host: Host::new(parts.host),
            active: Slab::default(),
            jobs: std::iter::repeat_with(|| None).take(groups).collect(),
            waiting: vec![VecDeque::new(); groups],
            stalled: false,
            moves: Vec::new(),
            gc_window: parts.gc_window,
            copy_back: parts.copy_back,
            placements: parts.placements.max(1),
            unit_bytes: u64::from(geo.shape.unit_bytes),
            stats: DeviceStats::default(),
            ledger: Ledger::default(),
            shadow: None,
            #[cfg(test)]
            mutant: mutant::State::default(),
            ftl: parts.ftl,
        }
    }

    /// Bytes that the host can address.
    pub fn capacity(&self) -> u64 {
        self.ftl.logical() * self.unit_bytes
    }

    /// Commands inside the device.
    pub fn in_flight(&self) -> usize {
        self.active.len()
    }

    /// Gives the device a shadow, which takes its present state for granted. It costs memory and time, and changes no
    /// result.
    ///
    /// # Panics
    /// If the device is at work.
    pub fn attach_shadow(&mut self) {
        assert!(self.active.is_empty() && self.backend.ops.is_empty(), "a shadow joins an idle device");
        self.shadow = Some(Box::new(Shadow::new(&self.ftl)));
    }

    /// The shadow, if there is one.
    pub fn shadow(&self) -> Option<&Shadow> {
        self.shadow.as_deref()
    }

    /// Runs one of the device's own events.
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Doorbell(queue) => self.doorbell(queue, cx),
            Event::Fetched(id) => self.fetched(id, cx),
            Event::Ready(id) => self.ready(id, cx),
            Event::DataIn(id) => self.data_in(id, cx),
            Event::HostDone(id) => self.host_done(id, cx),
            Event::ArrayDone(die) => self.array_done(die, cx),
            Event::TransferDone(die) => self.backend.transfer_done(die, cx),
            Event::ChannelFree(channel) => self.backend.channel_free(channel, cx),
            Event::Suspended(die) => self.backend.suspended(die, cx),
        }
        self.settle(cx);
    }

    /// Takes finished operations from the back end and starts what has been queued, until nothing is left to do now.
    #[inline]
    fn settle(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(op) = self.backend.finished.pop_front() {
            self.finished(op, cx);
        }
        if self.stalled {
            self.retry(cx);
        }
        self.backend.kick(cx);
    }

    #[inline]
    fn array_done(&mut self, die: u32, cx: &mut impl Cx<Event, Out>) {
        if let Some(shadow) = &mut self.shadow {
            self.backend.at_work(die, |name, op| shadow.sensed(name, op, &self.ftl));
        }
        self.backend.array_done(die, cx);
    }

    fn finished(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let op = self.backend.ops[name];
        self.backend.ops.remove(name);
        if self.shadow.is_some()
            && !self.loses(&op)
            && let Some(shadow) = &mut self.shadow
        {
            shadow.finished(name, &op, &self.ftl);
        }
        match (op.class, op.kind) {
            (Class::GcRead, _) => self.gc_read_done(&op, cx),
            (Class::GcProgram, _) => self.gc_program_done(name, &op, cx),
            (Class::Erase, _) => self.erase_done(&op, cx),
            (Class::HostProgram, _) => self.host_program_done(&op, cx),
            (Class::MapProgram | Class::MapRead, _) => unreachable!("nobody queues mapping operations"),
            (_, _) => self.host_read_done(&op, cx),
        }
    }

    /// First and one-past-last map unit that an extent touches.
    #[inline]
    fn units(&self, command: &Command) -> (u64, u64) {
        let first = command.offset / self.unit_bytes;
        (first, (command.offset + command.bytes).div_ceil(self.unit_bytes))
    }

    /// First and one-past-last map unit that an extent covers whole.
    fn whole_units(&self, command: &Command) -> (u64, u64) {
        let first = command.offset.div_ceil(self.unit_bytes);
        (first, ((command.offset + command.bytes) / self.unit_bytes).max(first))
    }

    /// Bytes of a map unit that an extent touches.
    #[inline]
    fn bytes_of_unit(&self, command: &Command, unit: u64) -> u32 {
        let start = (unit * self.unit_bytes).max(command.offset);
        let end = ((unit + 1) * self.unit_bytes).min(command.offset + command.bytes);
        (end - start) as u32
    }

    /// The array times of an operation depend on wear only if the timing says so; then the block's count goes along.
    fn erases_of(&self, slot: Slot) -> u32 {
        if self.backend.wears() { self.ftl.array.erases(self.ftl.geo.block_of_slot(slot).0) } else { 0 }
    }

    /// Starts a deallocation or a flush, which need no data.
    fn start_dataless(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let command = self.active[id].command;
        if command.op != IoOp::Flush {
            let (first, end) = self.whole_units(&command);
            for unit in first..end {
                self.trim(Lpn(unit));
            }
        }
        if command.op == IoOp::WriteZeroes && self.zero_edges(id, cx) {
            return;
        }
        self.complete(id, cx);
    }

    fn trim(&mut self, lpn: Lpn) {
        self.mutate_trim(lpn);
        self.stats.trimmed_units += u64::from(self.ftl.trim(lpn));
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = DeviceStats::starting(now, &self.ftl, &self.backend);
    }
}
