//! Flash of page groups in time: serves an accelerator with dies behind channels behind a link.
//!
//! [`control::groups`](ftl::page_groups) decides, without time; this component executes. A read of a group is a read of
//! its pages on the dies of all channels, planes together; each page crosses the link when it has left its channel. A
//! write crosses the link as a whole, and is then programmed. The component speaks [`proto::groups`]; the requester
//! accounts for the core time of translation.
//!
//! All channels do the same at the same time: every operation is on a group, and a group is on the same page of the
//! same die of each channel. The planes of a die behave alike too. Where dies do not differ (`cell.spread`,
//! `cell.errors`), one channel is simulated for all, and an operation on a page represents those of all planes.
//!
//! Details that the paper leaves open are *chosen* as follows:
//!
//! * Groups of a request begin in the order of their numbers, all at once; dies serve in their scheduler's order. A
//!   write that finds no free number waits until reclaim has made room, and later ones wait behind it.
//! * Data that Storengine moves or dumps stay in the accelerator's memory meanwhile, and cross the link as data of
//!   kernels do: the controllers in front of the channels have queues and no memory (section 2.2).
//! * Each step of Storengine first asks for its core ([`Tell::Work`]). An operation is the unit of a request to the
//!   controllers: a page of all planes of a die on all channels. Entries are those of the map that are examined or
//!   changed, including the victims' counts of valid groups.
//! * The dies' classes are those of a drive: reads and data of kernels belong to a host, moved data to garbage
//!   collection, and groups of the map and metadata are mapping pages without waiters.
//! * Dumps begin at multiples of their period, where a kernel has changed an entry since the last one began. Changes
//!   made by reclaim alone wait for that dump, and are kept in spare areas until then: on full flash, dumps and reclaim
//!   would otherwise keep each other going for ever. A dump still under way at that time delays the next one.
//! * A group that was never written is zeroes, and is answered without media.
//! * Bad blocks (`bad_blocks`) are replaced by a plane's next good one, in the controllers: every plane has as many
//!   blocks as the worst one has good blocks.

mod access;
mod batch;
mod requests;
pub mod spec;
mod stats;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use spec::GroupsFlashSpec;
pub use stats::{GroupsBusy, GroupsCounts, GroupsFlashStats};

use crate::spec::{Built, energy, timing};
use ::stats::EnergyReport;
use access::{Access, Link, Media};
use batch::Batches;
use config::SpecError;
use engine::{Cx, Inside, Slab, Time};
use ftl::page_groups::locks::Granted;
use ftl::page_groups::{
    Flashvisor, GroupCounters, GroupError, Layout, Logical, Physical, Step, Storengine, Task, Write,
};
use nand::dies::observe::Observer;
use nand::dies::op::Class;
use nand::dies::{self, Alike, Backend, BackendCounters};
use nand::geometry::{Geometry, Shape};
use proto::groups::{Ask, Tell};
use requests::{Chore, Request, Section, Timer};
use rustc_hash::FxHashMap;
use stats::Ledger;
use std::collections::{BTreeMap, VecDeque};

engine::events! {
    /// Internal events of the component.
    pub enum Event {
        /// The last page of a group has reached the accelerator's memory.
        Arrived(u32),
        /// A group to be programmed has reached the controllers of the channels.
        Crossed(u32),
        /// A dump is due: only one timer exists, the first.
        Dump(u16),
        /// A read computed in one step is complete, unless this event is obsolete.
        Told(u32),
        /// An event of the dies or channels.
        Dies(dies::Event),
    }
}

impl From<dies::Event> for Event {
    #[inline]
    fn from(event: dies::Event) -> Event {
        Event::Dies(event)
    }
}

/// Flash of page groups.
pub struct GroupsFlash {
    visor: Flashvisor,
    storengine: Storengine,
    /// Blocks of planes that were bad from the factory.
    bad_blocks: u64,
    backend: Backend,
    media: Media,
    link: Link,
    /// Reads and writes that have not been answered.
    requests: Slab<Request>,
    /// Writes without a number for their next group.
    short: VecDeque<u32>,
    accesses: Slab<Access>,
    batches: Batches,
    sections: Slab<Section>,
    by_tag: FxHashMap<u32, u32>,
    /// Steps of Storengine's under way.
    chores: Slab<Chore>,
    /// True if Storengine may have a new step, or a write a number.
    stirred: bool,
    /// Entries examined by Storengine and not yet charged to a step.
    looked: u64,
    timer: Timer,
    /// Locks granted and not passed on.
    granted: Vec<Granted>,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    /// Counters at the start of the window.
    origin: (GroupCounters, BackendCounters, GroupsBusy),
    /// Statistics since the window began.
    pub stats: GroupsFlashStats,
}

impl GroupsFlash {
    /// Creates erased flash. Keys of errors are relative to the part's table.
    ///
    /// # Errors
    /// Returns the errors of [`GroupsFlashSpec::check`], or that the number of cell times differs from the number of
    /// page types.
    pub fn new(spec: &GroupsFlashSpec, context: &Built) -> Result<GroupsFlash, SpecError> {
        spec.check()?;
        let (groups, bad_blocks) = spec.good(context)?;
        let visor = Flashvisor::new(&groups).map_err(|fault| fault.within("groups"))?;
        let is_alike = spec.cell.spread.is_none() && spec.cell.errors.is_none();
        let shape = visor.layout().shape();
        let back_ends = if is_alike { shape.channels } else { 1 };
        let shape = Shape { channels: shape.channels / back_ends, ..shape };
        let timing = timing(&spec.cell, &spec.channel, &Geometry::new(shape), context)?;
        let joined = timing.of_planes(shape.planes, shape.page_bytes.into()).filter(|_| is_alike);
        let planes = if joined.is_some() { shape.planes } else { 1 };
        let alike = Alike { back_ends, planes };
        let geo = Geometry::new(Shape { planes: shape.planes / planes, ..shape });
        let mut backend = Backend::new(&geo, joined.unwrap_or(timing), spec.policy(context.fold));
        backend.set_alike(alike);
        if let Some(costs) = &spec.energy {
            backend.set_energy(energy(costs, &spec.cell)?);
        }
        let media = Media::new(&groups, visor.layout(), alike);
        Ok(GroupsFlash {
            storengine: Storengine::new(&groups),
            bad_blocks,
            backend,
            media,
            link: Link::new(spec.link.rate.bytes_per_s(), spec.energy.as_ref().map(|energy| &energy.link)),
            requests: Slab::default(),
            short: VecDeque::new(),
            accesses: Slab::default(),
            batches: Batches::default(),
            sections: Slab::default(),
            by_tag: FxHashMap::default(),
            chores: Slab::default(),
            stirred: false,
            looked: 0,
            timer: Timer::new(groups.dump.period.time()),
            granted: Vec::new(),
            ledger: Ledger::default(),
            shadow: None,
            origin: Default::default(),
            stats: GroupsFlashStats::default(),
            visor,
        })
    }

    /// Arithmetic of groups, blocks and addresses.
    pub fn layout(&self) -> &Layout {
        self.visor.layout()
    }

    /// Number of blocks of planes that were bad from the factory.
    pub fn bad_blocks(&self) -> u64 {
        self.bad_blocks
    }

    /// Capacity in groups of data.
    pub fn capacity(&self) -> u32 {
        self.visor.capacity()
    }

    /// Treats the first `groups` page groups as written before the start, once and in order. Takes no time.
    ///
    /// # Errors
    /// Returns an error if the groups do not fit.
    ///
    /// # Panics
    /// Panics if something has been written, or a shadow is attached already.
    pub fn assume_written(&mut self, groups: u32) -> Result<(), GroupError> {
        assert!(self.shadow.is_none(), "a shadow learns what is there when it is attached");
        self.visor.assume_written(groups)
    }

    /// Accepts a request of the accelerator.
    ///
    /// # Panics
    /// Panics if a range ends before it begins, two locks have one tag, or a tag of [`Ask::Unlock`] or [`Ask::Worked`]
    /// is unknown.
    pub fn ask(&mut self, ask: Ask, cx: &mut impl Cx<Event, Tell>) {
        if !matches!(ask, Ask::Read { .. }) {
            self.unfold(cx);
        }
        match ask {
            Ask::Lock { tag, groups, write } => self.lock(tag, groups, write, cx),
            Ask::Unlock { tag } => self.unlock(tag),
            Ask::Read { tag, groups } => self.read(tag, groups, cx),
            Ask::Write { tag, groups } => self.write(tag, groups, cx),
            Ask::Worked { tag } => self.worked(tag, cx),
        }
        self.settle(cx);
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Tell>) {
        if !matches!(event, Event::Told(_)) {
            self.unfold(cx);
        }
        self.happens(event, cx);
    }

    fn happens(&mut self, event: Event, cx: &mut impl Cx<Event, Tell>) {
        match event {
            Event::Arrived(access) => self.access_done(access, cx),
            Event::Crossed(access) => self.program(access, cx.now()),
            Event::Dump(_) => self.dump_is_due(),
            Event::Told(turn) => self.tell(turn, cx),
            Event::Dies(event) => self.backend.handle(event, &mut Inside::of(cx)),
        }
        self.settle(cx);
    }

    /// Takes finished operations from the dies and starts what is possible, until nothing is left to do now.
    #[inline]
    fn settle(&mut self, cx: &mut impl Cx<Event, Tell>) {
        while let Some(op) = self.backend.finished.pop_front() {
            self.page_done(op, cx);
        }
        if self.stirred {
            self.keep(cx);
        }
        self.backend.kick(&mut Inside::of(cx));
    }

    /// Returns true if no request and no step of Storengine is under way. Locks may be held, and a dump may be due
    /// later.
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty() && self.chores.is_empty() && self.storengine.is_idle()
    }

    /// Number of reads and writes that have not been answered.
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// Counters of Flashvisor and Storengine since the window began.
    pub fn counters(&self) -> GroupCounters {
        stats::between(&self.visor.counters, &self.origin.0)
    }

    /// Returns true if pages have errors, so that some are read again.
    pub fn has_errors(&self) -> bool {
        self.backend.has_errors()
    }

    /// Counters of the dies since the window began, pages by class.
    pub fn media(&self) -> BackendCounters {
        self.backend.counters.since(&self.origin.1).times(self.media.alike)
    }

    /// Busy times of resources since the window began.
    pub fn busy(&self, now: Time) -> GroupsBusy {
        self.busy_so_far(now).since(&self.origin.2)
    }

    /// Energy of dies, channels, their controllers and the link since the window began; `None` without energies in the
    /// spec. The controllers are active while a group is read or programmed or a block is erased, including its time on
    /// the link.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        let mut energy = self.backend.meter.as_ref()?.report(now);
        energy.add(&self.link.meter.as_ref()?.report(now));
        Some(energy)
    }

    /// Activity of dies and link since the beginning; `None` while a die has work.
    pub fn counts(&self) -> Option<GroupsCounts> {
        if !self.backend.is_at_rest() || !self.batches.is_empty() {
            return None;
        }
        let alike = u64::from(self.media.alike.pages());
        let done = |class: Class| self.backend.counters.done[class as usize] * alike;
        let programmed = done(Class::HostProgram) + done(Class::MapProgram) + done(Class::GcProgram);
        let read = done(Class::HostRead) + done(Class::GcRead);
        let page = u64::from(self.media.page_bytes);
        Some(GroupsCounts {
            dies: u64::from(self.media.dies) * u64::from(self.media.alike.back_ends),
            read,
            programmed,
            erased: done(Class::Erase),
            channel_bytes: (read + programmed) * page,
            link_bytes: self.link.inward.grants() * alike * page
                + self.link.outward.grants() * self.layout().group_bytes(),
        })
    }

    /// Resets the energy counters.
    pub fn reset_energy(&mut self, now: Time) {
        if let Some(meter) = &mut self.backend.meter {
            meter.reset(now);
        }
        if let Some(meter) = &mut self.link.meter {
            meter.reset(now);
        }
    }

    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        self.reset_energy(now);
        self.stats.reset(now);
        self.origin = (self.visor.counters, self.backend.counters.clone(), self.busy_so_far(now));
    }

    /// Attaches an observer of every die command. Channels that behave alike are shown as one.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.backend.observer = Some(observer);
    }

    /// Attaches a shadow that follows the version of every group; it costs memory and time, and does not change
    /// results. Call it after [`assume_written`](GroupsFlash::assume_written), before any request.
    ///
    /// # Panics
    /// Panics if a request has been made.
    pub fn attach_shadow(&mut self) {
        assert!(self.ledger.requests == 0, "a shadow sees every request");
        let counters = self.visor.counters;
        self.shadow = Some(Box::new(Shadow::new(&mut self.visor)));
        self.visor.counters = counters;
    }
}

// Shadow of the version of every group: a number with each write, which travels with the data.
//
// At its beginning and at its end, a read has to find the version of the newest write of its group that was done when
// the read began. Among overlapping writes of one group, the one that got its number last is the newest.

/// Number of a write, in the order of numbers; zero is the initial data.
type Version = u64;

/// Contents of a group of flash; `None` for a group of the map, or metadata.
type Held = Option<(Logical, Version)>;

/// Shadow of the version of every group.
struct Shadow {
    latest: Version,
    /// Writes under way, by destination.
    coming: FxHashMap<u32, Version>,
    /// Newest completed version of each group.
    newest: FxHashMap<u32, Version>,
    flash: BTreeMap<u32, Held>,
    /// Versions found by reads under way, by group and place: reads of one place find the same.
    found: FxHashMap<(u32, u32), (Version, u32)>,
    /// Data that Storengine has read and not programmed, by task.
    carried: FxHashMap<u32, Held>,
    /// Reads checked, and the wrong ones.
    checked: u64,
    wrong: u64,
}

impl Shadow {
    /// Takes the initial contents.
    fn new(visor: &mut Flashvisor) -> Shadow {
        let (mut newest, mut flash) = (FxHashMap::default(), BTreeMap::new());
        for logical in (0..visor.data()).map(Logical) {
            let group = visor.lookup(logical).expect("data fits").expect("the first groups are there");
            newest.insert(logical.0, 0);
            flash.insert(group.0, Some((logical, 0)));
        }
        Shadow {
            latest: 0,
            coming: FxHashMap::default(),
            newest,
            flash,
            found: FxHashMap::default(),
            carried: FxHashMap::default(),
            checked: 0,
            wrong: 0,
        }
    }

    /// Notes the place of a group when a read begins.
    fn looked_up(&mut self, logical: Logical, group: Option<Physical>) {
        let newest = self.newest.get(&logical.0).copied();
        let held = group.and_then(|group| self.flash.get(&group.0).copied().flatten());
        self.checked += 1;
        self.wrong += u64::from(held != newest.map(|version| (logical, version)));
        if let (Some(group), Some(version)) = (group, newest) {
            self.found.entry((logical.0, group.0)).or_insert((version, 0)).1 += 1;
        }
    }

    /// Checks at the end of a read that its data is still there.
    fn read(&mut self, logical: Logical, group: Physical) {
        let key = (logical.0, group.0);
        let Some((version, reads)) = self.found.get_mut(&key) else { return };
        let is_there = self.flash.get(&group.0) == Some(&Some((logical, *version)));
        self.wrong += u64::from(!is_there);
        *reads -= 1;
        if *reads == 0 {
            self.found.remove(&key);
        }
    }

    /// Notes the number of a write.
    fn begin_write(&mut self, write: Write) {
        self.latest += 1;
        self.coming.insert(write.group.0, self.latest);
    }

    /// Notes a programmed write.
    fn written(&mut self, write: Write) {
        let version = self.coming.remove(&write.group.0).expect("a write under way");
        self.hold(write.group, Some((write.logical, version)));
        let newest = self.newest.entry(write.logical.0).or_default();
        *newest = version.max(*newest);
    }

    /// Notes the contents of a programmed group, which was erased before.
    fn hold(&mut self, group: Physical, held: Held) {
        let old = self.flash.insert(group.0, held);
        self.wrong += u64::from(old.is_some());
    }

    /// Follows a completed step of Storengine.
    fn performed(&mut self, task: Task, step: Step) {
        match step {
            Step::Read { group, .. } => {
                // A group overwritten before its program stays behind until its name is reused.
                let held = self.flash.get(&group.0).copied().flatten();
                self.carried.insert(task.0, held);
            }
            Step::Program { group, .. } => {
                let held = self.carried.remove(&task.0).flatten();
                self.hold(group, held);
            }
            Step::WriteMeta { group, .. } => self.hold(group, None),
            Step::ReadMeta { .. } | Step::Copy { .. } | Step::Erase { .. } => {}
        }
    }

    /// Notes the start of a block's erase.
    fn erased(&mut self, block: u32, layout: &Layout) {
        let first = layout.group(block, 0).0;
        for group in first..first + layout.block_groups() {
            self.flash.remove(&group);
        }
    }
}
