//! The flash device as a part of a machine: commands in, completions out, events in between.
//!
//! `host` takes commands in and hands completions out, `read` and `write` turn them into operations of the back end,
//! `reclaim` runs garbage collection. The FTL has no time; everything that takes time is in the back end, on the
//! link, or in the controller's cores.

mod buffered;
mod checks;
mod destage;
mod evict;
mod fold;
mod gather;
mod host;
mod look_ahead;
mod map_memory;
mod mutant;
mod parity;
mod power;
mod read;
mod reclaim;
mod registers;
mod snapshot;
mod stats;
mod translate;
mod write;

pub use buffered::{BufferMemory, BufferParts, Buffered};
pub use fold::{FoldPolicy, SlcCounters};
pub use gather::{Exit, RegisterCounters, RegisterParts};
pub use host::{Event, Out};
pub use look_ahead::AheadCounters;
pub use map_memory::MapMemory;
pub use parity::ParityCounters;
pub use read::Unwritten;
pub use snapshot::SnapshotFault;
pub use stats::{DeviceCounts, DeviceStats, EvictionCounters, Left, MILESTONES, milestone};
pub use translate::TranslationParts;

use crate::port::host::{Host, HostParams};
use crate::shadow::Shadow;
use ::stats::{EnergyReport, Milestones};
use buffered::Place;
use checks::Ledger;
use engine::{Cx, Inside, Mutant, Slab, Time, planted};
use fold::Folding;
use ftl::page_map::alloc::Allocator;
use ftl::page_map::pages::PageCounters;
use ftl::page_map::{Ftl, FtlCounters};
use ftl::purpose::Purpose;
use ftl::recovery::Journal;
use look_ahead::Ahead;
use nand::dies::FlashCosts;
use nand::dies::{self, op::OpKind};
use nand::dies::{Backend, BackendCounters, BackendPolicy, timing::Timing};
use parity::Parity;
use proto::{Command, IoOp, Lpn, Slot, Status};
use read::Absent;
use reclaim::Job;
pub use reclaim::{GcMode, ReclaimPolicy};
use std::collections::VecDeque;
use translate::Translation;
use write::Merge;

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
    /// Bytes of a read that come from the buffer.
    buffered_bytes: u64,
    /// Whether it waits for space.
    waits: bool,
    /// Units that it writes in part.
    merge: Option<Box<Merge>>,
    life: Milestones<{ stats::COUNT }>,
}

impl Active {
    /// A milestone is reached, unless a later one was: operations of one command overlap.
    #[inline]
    fn reach(&mut self, milestone: usize, at: Time) {
        if at > self.life.last() {
            self.life.reach(milestone, at);
        }
    }
}

/// Everything a device is built from.
pub struct DeviceParts {
    /// The translation layer.
    pub ftl: Ftl,
    /// Where host data goes.
    pub allocator: Box<dyn Allocator>,
    /// The data buffer, if there is one.
    pub buffer: Option<BufferParts>,
    /// The cached part of the map, if it does not lie in memory as a whole.
    pub translation: Option<TranslationParts>,
    /// The memory that the map is looked up in, if that takes time.
    pub map_memory: Option<MapMemory>,
    /// Times of the array and the channels.
    pub timing: Timing,
    /// Policies of the back end.
    pub policy: BackendPolicy,
    /// How the host reaches the device.
    pub host: HostParams,
    /// Garbage collection in time.
    pub gc: ReclaimPolicy,
    /// When the cache of one bit a cell is emptied, if there is one.
    pub folding: Option<FoldPolicy>,
    /// Host data streams: placements above are folded onto the last one.
    pub placements: u8,
    /// What reading a unit costs that was never written.
    pub unwritten: Unwritten,
    /// What media and controllers cost, if it is known.
    pub energy: Option<FlashCosts>,
}

/// One flash device.
pub struct Device {
    /// The translation layer.
    pub ftl: Ftl,
    /// Dies and channels.
    pub backend: Backend,
    allocator: Box<dyn Allocator>,
    /// Taken out while it is worked on.
    buffered: Option<Buffered>,
    /// What is read into the buffer before anybody asks for it.
    ahead: Option<Box<Ahead>>,
    translation: Option<Translation>,
    map_memory: Option<MapMemory>,
    host: Host,
    active: Slab<Active>,
    jobs: Vec<Option<Box<Job>>>,
    /// Commands that wait for space: by group, or all in the first list if the allocator chooses the group.
    waiting: Vec<VecDeque<u32>>,
    /// A command waits for space where nothing is being reclaimed: it has to be tried again.
    stalled: bool,
    /// What each garbage collection program moves, by operation.
    moves: Vec<Vec<(Lpn, Slot)>>,
    gc: ReclaimPolicy,
    /// Whose turn it is to take moved data, if any group may.
    gc_turn: u64,
    /// When the cache of one bit a cell is emptied, if there is one.
    folding: Option<Box<Folding>>,
    /// Jobs that have ended, with their lists.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    spare_jobs: Vec<Box<Job>>,
    /// Pages that collection has read and cores find new places for: the group that asked, and the first of their units.
    placing: Slab<(u32, Slot)>,
    placements: u8,
    absent: Absent,
    parity: Parity,
    unit_bytes: u64,
    /// What happened.
    pub stats: DeviceStats,
    /// What happened since the beginning, for the checks.
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    /// Deallocations, if the device can be recovered.
    journal: Option<Box<Journal>>,
    /// What commands waited for, if that is kept.
    accounts: Option<Box<host::Accounts>>,
    /// What was deallocated last, for a mutant.
    #[cfg(debug_assertions)]
    trimmed: Option<(Lpn, Slot)>,
}

impl Device {
    /// An idle device.
    pub fn new(mut parts: DeviceParts) -> Device {
        let policy = parts.buffer.as_mut().and_then(|b| b.look_ahead.take());
        let ahead = policy.filter(|p| !p.is_off()).map(|p| Box::new(Ahead::new(p)));
        let geo = &parts.ftl.geo;
        let groups = geo.groups as usize;
        let mut backend = Backend::new(geo, parts.timing, parts.policy);
        if let Some(costs) = parts.energy {
            backend.set_energy(costs);
        }
        Device {
            backend,
            ahead,
            buffered: parts
                .buffer
                .map(|b| Buffered::new(b, parts.allocator.lines(geo), geo, parts.placements)),
            translation: parts.translation.map(|t| Translation::new(t, groups)),
            map_memory: parts.map_memory,
            allocator: parts.allocator,
            host: Host::new(parts.host),
            active: Slab::default(),
            jobs: std::iter::repeat_with(|| None).take(groups).collect(),
            waiting: vec![VecDeque::new(); groups],
            stalled: false,
            moves: Vec::new(),
            gc: parts.gc,
            gc_turn: 0,
            folding: parts.folding.map(|policy| Box::new(Folding::new(policy))),
            spare_jobs: Vec::new(),
            placing: Slab::default(),
            placements: parts.placements.max(1),
            absent: Absent::new(parts.unwritten, groups),
            parity: Parity::default(),
            unit_bytes: u64::from(geo.shape.unit_bytes),
            stats: DeviceStats::default(),
            ledger: Ledger::default(),
            shadow: None,
            journal: None,
            accounts: None,
            #[cfg(debug_assertions)]
            trimmed: None,
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
        let cache = self.translation.as_ref().map(|t| &t.cache);
        let mut shadow = Shadow::new(&self.ftl, cache);
        if let Some(buffered) = &self.buffered {
            shadow.takes_over(&buffered.buffer, &self.ftl);
        }
        if self.backend.reads_registers() {
            shadow.watch_registers();
        }
        self.shadow = Some(Box::new(shadow));
        self.ftl.watch_opening();
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
            Event::Buffered(id) => self.buffer_accessed(id, cx),
            Event::HostDone(id) => self.host_done(id, cx),
            Event::Known(id) => self.known(id, cx),
            Event::Placed(id) => self.place_found(id, cx),
            Event::Sampled(_) => self.sampled(cx),
            Event::Dies(event) => self.dies_event(event, cx),
            Event::Rested(_) => self.rested(cx),
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
        self.backend.kick(&mut Inside::of(cx));
        while let Some(die) = self.backend.went_idle.pop() {
            self.die_idle(die, cx);
            self.backend.kick(&mut Inside::of(cx));
        }
    }

    #[inline]
    fn dies_event(&mut self, event: dies::Event, cx: &mut impl Cx<Event, Out>) {
        match (event, &mut self.shadow) {
            (dies::Event::Moved(name), _) => return self.transferred(name, cx),
            (dies::Event::ArrayDone(die), Some(shadow)) => {
                self.backend.at_work(die, |name, op, held| shadow.sensed(name, op, held, &self.ftl));
            }
            _ => {}
        }
        self.backend.handle(event, &mut Inside::of(cx));
    }

    fn finished(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let op = self.backend.ops[name];
        if (op.is_lost || Purpose::of(&op).is_for_parity()) && self.ends_for_parity(name, cx) {
            return;
        }
        self.backend.ops.remove(name);
        self.mutate_data(name, &op);
        if self.shadow.is_some()
            && !self.loses(&op)
            && let Some(shadow) = &mut self.shadow
        {
            shadow.finished(name, &op, &self.ftl);
        }
        if self.journal.is_some() {
            self.stamp(name, &op);
        }
        match (Purpose::of(&op), op.kind) {
            (Purpose::Host, OpKind::Program) => self.host_program_done(&op, cx),
            (Purpose::Host, _) => self.host_read_done(&op, cx),
            (Purpose::Absent, _) => self.absent_done(&op, cx),
            (Purpose::AbsentMerge, _) => self.absent_merge_done(&op, cx),
            (Purpose::Flush | Purpose::Foreground | Purpose::Background, _) => self.flush_done(&op, cx),
            (Purpose::FlushMerge, _) => self.flush_merge_done(&op, cx),
            (Purpose::Reclaim, OpKind::Read) => self.gc_read_done(&op, cx),
            (Purpose::Reclaim, OpKind::Erase) => self.erase_done(&op, cx),
            (Purpose::Reclaim, _) => self.gc_program_done(name, &op, cx),
            (Purpose::Map, _) => self.map_done(&op, cx),
            (Purpose::Ahead, _) => self.ahead_done(&op, cx),
            (Purpose::Parity | Purpose::Rebuild, _) => {}
        }
        if self.journal.is_some() {
            self.void_refused(&op);
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

    /// The errors of a page depend on it too, if there are any; then it goes along with its reads.
    fn erases_of_read(&self, slot: Slot) -> u32 {
        if self.backend.has_errors() { self.ftl.array.erases(self.ftl.geo.block_of_slot(slot).0) } else { 0 }
    }

    /// Starts a deallocation or a flush, which need no data.
    fn start_dataless(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let command = self.active[id].command;
        if command.op == IoOp::Flush {
            self.start_flush(id, cx);
            return;
        }
        if command.op == IoOp::WriteZeroes && self.buffered.is_some() {
            self.accept(id, cx);
            return;
        }
        let (first, end) = self.whole_units(&command);
        for unit in first..end {
            self.discard_buffered(Lpn(unit));
            self.trim(Lpn(unit), cx);
        }
        self.after_discard(cx);
        if command.op == IoOp::WriteZeroes {
            self.write_journal();
        }
        if command.op == IoOp::WriteZeroes && self.zero_edges(id, cx) {
            return;
        }
        self.complete(id, cx);
    }

    fn trim(&mut self, lpn: Lpn, cx: &mut impl Cx<Event, Out>) {
        self.mutate_trim(lpn);
        if planted(Mutant::TrimIgnored) || !self.ftl.trim(lpn) {
            return;
        }
        self.stats.trimmed_units += 1;
        self.map_changed(lpn, cx);
        if self.journal.is_some() {
            self.note_trim(lpn);
        }
    }

    /// What back end and FTL have counted since the window began.
    pub fn window_counters(&self) -> (BackendCounters, FtlCounters) {
        let origin = &self.stats.origin;
        (self.backend.counters.since(&origin.backend), self.ftl.counters.since(&origin.ftl))
    }

    /// What has been programmed by purpose and type of page since the window began, and the reclaim units that have skipped pages;
    /// `None` where pages are programmed in order.
    pub fn window_pages(&self) -> Option<(PageCounters, u64)> {
        let (counters, skipping) = self.ftl.page_counters()?;
        Some((counters.since(&self.stats.origin.pages), skipping))
    }

    /// Time that each channel and each die has been busy since the window began.
    pub fn window_busy(&self, now: Time) -> (Vec<Time>, Vec<Time>) {
        let origin = &self.stats.origin;
        let since = |all: Vec<Time>, before: &[Time]| {
            all.into_iter()
                .enumerate()
                .map(|(n, t)| t.since(before.get(n).copied().unwrap_or_default()))
                .collect()
        };
        (
            since(self.backend.channel_busy(now), &origin.channel_busy),
            since(self.backend.die_busy(now), &origin.die_busy),
        )
    }

    /// Time that the host's link has been busy since the window began, both ways together; `None` if it sends both ways at once.
    pub fn window_link(&self, now: Time) -> Option<Time> {
        Some(self.host.busy(now).0.either()?.since(self.stats.origin.link_busy))
    }

    /// Energy of dies, channels, controllers and the host's link since the window began; `None` if the spec does not say what they
    /// cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        let mut energy = self.backend.meter.as_ref()?.report(now);
        energy.add(&self.host.energy(now)?);
        Some(energy)
    }

    /// What dies, channels and the host's link have done since the window began.
    pub fn counts(&self, now: Time) -> DeviceCounts {
        let dies = self.window_busy(now).1;
        // Before the window, something may have been counted at its beginning and spent at its end.
        let is_whole = self.stats.origin.backend == BackendCounters::default();
        let gathers = matches!(&self.buffered, Some(Buffered { place: Place::Registers(_), .. }));
        DeviceCounts {
            dies: dies.len() as u64,
            dies_busy_ps: dies.iter().map(|busy| u128::from(busy.ps())).sum(),
            channel_bytes: self.backend.channel_bytes().filter(|_| is_whole && !gathers),
            link_bytes: self.host.carried(),
        }
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, now: Time) {
        if let Some(meter) = &mut self.backend.meter {
            meter.reset(now);
        }
        self.host.reset_energy(now);
        self.ledger.begin_window();
        let ahead = self.ahead_totals().unwrap_or_default();
        if let Some(Buffered { place: Place::Registers(registers), .. }) = &mut self.buffered {
            registers.reset();
        }
        let owed = self.buffered.as_ref().map_or(0, |b| b.buffer.left().0);
        let link = self.host.busy(now).0.either().unwrap_or_default();
        self.stats = DeviceStats::starting(now, &self.ftl, &self.backend, link, owed, ahead);
    }

    /// What the buffer holds that is not on flash, and what it held when the window began.
    pub fn left_in_buffer(&self) -> Left {
        let (units, sectors) = self.buffered.as_ref().map_or((0, 0), |b| b.buffer.left());
        Left { bytes: sectors * 512, units, units_before: self.stats.origin.owed }
    }
}
