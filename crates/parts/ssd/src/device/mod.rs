//! Flash device, a component of the machine: commands in, completions out, events in between.
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

/// Command inside the device.
#[derive(Clone, Debug)]
pub(crate) struct Active {
    command: Command,
    /// Operations and host transfers still outstanding.
    pending: u32,
    /// First map unit that has not been turned into an operation yet, and the end of its map units.
    next: u64,
    end: u64,
    status: Status,
    /// Bytes of a read that come from the buffer.
    buffered_bytes: u64,
    /// True if the command waits for space.
    waits: bool,
    /// Units that the command writes in part.
    merge: Option<Box<Merge>>,
    life: Milestones<{ stats::COUNT }>,
}

impl Active {
    /// Records a milestone, unless a later one was reached: operations of one command overlap.
    #[inline]
    fn reach(&mut self, milestone: usize, at: Time) {
        if at > self.life.last() {
            self.life.reach(milestone, at);
        }
    }
}

/// Parts of a device.
pub struct DeviceParts {
    /// The translation layer.
    pub ftl: Ftl,
    /// Allocation policy for host data.
    pub allocator: Box<dyn Allocator>,
    /// Data buffer, if any.
    pub buffer: Option<BufferParts>,
    /// Cached part of the map, if the map is on flash.
    pub translation: Option<TranslationParts>,
    /// Memory of the map, if a look-up takes time.
    pub map_memory: Option<MapMemory>,
    /// Times of the array and the channels.
    pub timing: Timing,
    /// Policies of the back end.
    pub policy: BackendPolicy,
    /// Host interface.
    pub host: HostParams,
    /// Policy of garbage collection in time.
    pub gc: ReclaimPolicy,
    /// Fold policy of the SLC cache, if any.
    pub folding: Option<FoldPolicy>,
    /// Host data streams: higher placements use the last one.
    pub placements: u8,
    /// Cost of reading a unit that was never written.
    pub unwritten: Unwritten,
    /// Energy of media and controllers, if known.
    pub energy: Option<FlashCosts>,
}

/// Flash device.
pub struct Device {
    /// The translation layer.
    pub ftl: Ftl,
    /// Dies and channels.
    pub backend: Backend,
    allocator: Box<dyn Allocator>,
    /// Buffer; taken out while it is worked on.
    buffered: Option<Buffered>,
    /// Read-ahead into the buffer.
    ahead: Option<Box<Ahead>>,
    translation: Option<Translation>,
    map_memory: Option<MapMemory>,
    host: Host,
    active: Slab<Active>,
    jobs: Vec<Option<Box<Job>>>,
    /// Commands that wait for space: by group, or all in the first list if the allocator chooses the group.
    waiting: Vec<VecDeque<u32>>,
    /// True if a command waits for space where nothing is being reclaimed: it has to be retried.
    stalled: bool,
    /// Units moved by each garbage collection program, by operation.
    moves: Vec<Vec<(Lpn, Slot)>>,
    gc: ReclaimPolicy,
    /// Round-robin position for moved data, if any group may take it.
    gc_turn: u64,
    /// Fold timer of the SLC cache, if any.
    folding: Option<Box<Folding>>,
    /// Finished jobs, with their lists, for reuse.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    spare_jobs: Vec<Box<Job>>,
    /// Pages read by garbage collection that wait for cores to find new places: the requesting group, and the first
    /// unit.
    placing: Slab<(u32, Slot)>,
    placements: u8,
    absent: Absent,
    parity: Parity,
    unit_bytes: u64,
    /// Statistics of the window.
    pub stats: DeviceStats,
    /// Counts since the beginning, for the checks.
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    /// Deallocations, if the device can be recovered.
    journal: Option<Box<Journal>>,
    /// Accounts of waits, if kept.
    accounts: Option<Box<host::Accounts>>,
    /// Unit deallocated last, for a mutant.
    #[cfg(debug_assertions)]
    trimmed: Option<(Lpn, Slot)>,
}

impl Device {
    /// Creates an idle device.
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

    /// Capacity addressable by the host, in bytes.
    pub fn capacity(&self) -> u64 {
        self.ftl.logical() * self.unit_bytes
    }

    /// Commands inside the device.
    pub fn in_flight(&self) -> usize {
        self.active.len()
    }

    /// Attaches a shadow, which assumes that the present state is correct. It costs memory and time, and does not
    /// change results.
    ///
    /// # Panics
    /// Panics if the device is at work.
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

    /// Shadow of the device, if any.
    pub fn shadow(&self) -> Option<&Shadow> {
        self.shadow.as_deref()
    }

    /// Runs one internal event of the device.
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

    /// Erase count of a block if the timing depends on wear; zero otherwise.
    fn erases_of(&self, slot: Slot) -> u32 {
        if self.backend.wears() { self.ftl.array.erases(self.ftl.geo.block_of_slot(slot).0) } else { 0 }
    }

    /// Erase count of a block for its reads, if pages have errors; zero otherwise.
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

    /// Counters of back end and FTL since the window began.
    pub fn window_counters(&self) -> (BackendCounters, FtlCounters) {
        let origin = &self.stats.origin;
        (self.backend.counters.since(&origin.backend), self.ftl.counters.since(&origin.ftl))
    }

    /// Programs by purpose and page type since the window began, and the reclaim units that have skipped pages; `None`
    /// where pages are programmed in order.
    pub fn window_pages(&self) -> Option<(PageCounters, u64)> {
        let (counters, skipping) = self.ftl.page_counters()?;
        Some((counters.since(&self.stats.origin.pages), skipping))
    }

    /// Busy time of each channel and each die since the window began.
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

    /// Busy time of the host's link since the window began, both directions together; `None` if it is full duplex.
    pub fn window_link(&self, now: Time) -> Option<Time> {
        Some(self.host.busy(now).0.either()?.since(self.stats.origin.link_busy))
    }

    /// Energy of dies, channels, controllers and the host's link since the window began; `None` without energies in the
    /// spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        let mut energy = self.backend.meter.as_ref()?.report(now);
        energy.add(&self.host.energy(now)?);
        Some(energy)
    }

    /// Activity of dies, channels and the host's link since the window began.
    pub fn counts(&self, now: Time) -> DeviceCounts {
        let dies = self.window_busy(now).1;
        // Before the window, an operation may have been counted at its beginning and spent at its end.
        let is_whole = self.stats.origin.backend == BackendCounters::default();
        let gathers = matches!(&self.buffered, Some(Buffered { place: Place::Registers(_), .. }));
        DeviceCounts {
            dies: dies.len() as u64,
            dies_busy_ps: dies.iter().map(|busy| u128::from(busy.ps())).sum(),
            channel_bytes: self.backend.channel_bytes().filter(|_| is_whole && !gathers),
            link_bytes: self.host.carried(),
        }
    }

    /// Starts the measured window and clears the statistics.
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

    /// Buffered data that is not on flash, now and at the start of the window.
    pub fn left_in_buffer(&self) -> Left {
        let (units, sectors) = self.buffered.as_ref().map_or((0, 0), |b| b.buffer.left());
        Left { bytes: sectors * 512, units, units_before: self.stats.origin.owed }
    }
}
