//! Paging of a discrete GPU: data reside in an SSD, and the host brings the pages on which the GPU faults (the platform
//! "Hetero").
//!
//! A page fault of the GPU's memory management unit goes into a **fault buffer** and interrupts the host. A thread of
//! the driver takes a **batch** of faults, and for each reads a **granule** from the SSD through the file system. When
//! the data have arrived, they are **copied** in host memory: from page cache to user buffer to pinned buffer, the
//! copies between user and privileged mode blamed by NVMMU (PACT 2015) and ZnG (ISCA 2020, section II-C). Then they
//! move over **PCIe** into the GPU's memory, and are mapped; finally, every translation that waits for the granule is
//! answered.
//!
//! Decisions where the papers leave details open:
//!
//! * Threads both handle faults and copy; data from the SSD go first, because warps have waited longest for them. A
//!   thread does not wait for the SSD: it reads all of its batch, in the order of the faults, and goes on.
//! * A granule's translations are answered when it is mapped, not at the end of the batch.
//! * A thread that finds faults in the buffer takes them without an interrupt. One sleeping thread is woken for each
//!   batch in the buffer.
//! * A fault for a granule under way joins it; one for a granule in the GPU's memory is answered at once, because the
//!   driver has mapped all of it.
//! * When the GPU's memory is full, the granule mapped longest ago is evicted, just before the data that need the room
//!   move: host software does not see uses. With `write_back` it first goes to the SSD: over PCIe, the same copies, a
//!   write. A fault for it in the meantime waits for that write.
//! * The place of data in the GPU's memory is decided elsewhere: the frame of a translation is returned unchanged.
//! * Virtual addresses of an application count from zero; applications follow each other on the SSD.
//!
//! Bounds: faults are bounded by the memory management unit, which sends one for each of its open walks; evictions by
//! arrivals.

mod driver;
#[cfg(test)]
mod tests;

pub use driver::{PagingBusy, PagingStats};

use config::{
    SpecError,
    units::{Bandwidth, Bytes, Duration},
};
use driver::{Thread, Work};
use engine::{Cx, List, Lists, Mutant, Slab, Time, planted_nth};
use net::{
    energy::LinkEnergySpec,
    pcie::{Link, lane_bytes_per_s},
};
use proto::memory::{PAGE, Stage, Tally, Translation};
use proto::{Completion, Status};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

engine::events! {
    /// Internal events of paging.
    pub enum Event {
        /// A thread of the driver that slept runs.
        Woken(u32),
        /// A thread of the driver has finished a piece of work.
        Worked(u32),
        /// An evicted granule has arrived at the host.
        Left(u32),
        /// The place for a granule is free.
        Room(u32),
        /// A granule is in the GPU's memory and mapped.
        Mapped(u32),
    }
}

/// Messages sent by paging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The page of a translation is in the GPU's memory.
    Resolved(Translation),
    /// A page has left the GPU's memory.
    Evict {
        /// Application of the page.
        app: u8,
        /// Virtual page number, as in translations.
        page: u64,
    },
    /// A command to the SSD.
    Submit(proto::Command),
}

/// Phase of the work on a granule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Expected, and not yet read from the SSD.
    Coming,
    /// Being read from the SSD, or in flight from there.
    Reading,
    /// Being evicted from the GPU's memory to the SSD.
    Leaving,
}

/// Granule with work under way.
#[derive(Clone, Copy, Debug)]
struct Job {
    granule: Granule,
    phase: Phase,
    /// Translations that wait for the granule.
    waiting: List,
}

/// Granule of an application, by its number from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Granule {
    app: u8,
    number: u64,
}

/// Location of a granule that is not only in the SSD.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the GPU's memory.
    Gpu,
    /// Work is under way.
    Busy(u32),
}

/// Data of an application on the SSD.
#[derive(Clone, Copy, Debug)]
struct Extent {
    base: u64,
    bytes: u64,
}

/// Paging of a discrete GPU by the host.
pub struct Paging {
    granule: u64,
    /// Size of a translation's page in bytes.
    reach: u64,
    /// Granules that fit into the GPU's memory.
    capacity: u64,
    write_back: bool,
    batch: usize,
    interrupt: Time,
    batch_time: Time,
    /// Thread time of a fault, including its command to the SSD.
    fault_time: Time,
    resume: Time,
    submit: Time,
    complete: Time,
    copies: u64,
    copy_rate: u64,
    link: Link,
    threads: Vec<Thread>,
    /// Number of threads woken and not running yet.
    called: usize,
    /// Faults not yet taken by a thread.
    buffer: VecDeque<u32>,
    /// Data that wait for a copy.
    copying: VecDeque<Work>,
    /// Granules that wait until something in the GPU's memory can be evicted.
    without_room: VecDeque<u32>,
    /// Granules in the GPU's memory, in the order of mapping.
    mapped: VecDeque<Granule>,
    /// Number of occupied places in the GPU's memory.
    taken: u64,
    at: FxHashMap<Granule, Place>,
    jobs: Slab<Job>,
    /// Translations that wait for the granules of jobs.
    waiting: Lists<Translation>,
    apps: Vec<Option<Extent>>,
    end: u64,
    ledger: driver::Ledger,
    /// Statistics since the window began.
    pub stats: PagingStats,
    /// Waits of faults: all of them are [`Stage::Fault`].
    pub tally: Tally,
}

impl Paging {
    /// Creates an idle host, with all data in the SSD.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn new(spec: &PagingSpec) -> Result<Paging, SpecError> {
        spec.check()?;
        let driver = &spec.driver;
        Ok(Paging {
            granule: spec.granule.get(),
            reach: PAGE,
            capacity: spec.memory.get() / spec.granule.get(),
            write_back: spec.write_back,
            batch: driver.batch as usize,
            interrupt: driver.interrupt.time(),
            batch_time: driver.batch_time.time(),
            fault_time: driver.fault_time.time() + spec.submit.time(),
            resume: driver.resume.time(),
            submit: spec.submit.time(),
            complete: spec.complete.time(),
            copies: spec.copies.into(),
            copy_rate: spec.copy_bandwidth.bytes_per_s(),
            link: spec.link.build()?,
            threads: vec![Thread::default(); driver.handlers as usize],
            called: 0,
            buffer: VecDeque::new(),
            copying: VecDeque::new(),
            without_room: VecDeque::new(),
            mapped: VecDeque::new(),
            taken: 0,
            at: FxHashMap::default(),
            jobs: Slab::default(),
            waiting: Lists::default(),
            apps: vec![None; usize::from(u8::MAX) + 1],
            end: 0,
            ledger: driver::Ledger::default(),
            stats: PagingStats::default(),
            tally: Tally::default(),
        })
    }

    /// Sets the size of a translation's page in bytes; the default is 4 KiB.
    ///
    /// # Panics
    /// Panics if a granule is not a multiple of it: the machine checks its spec for that.
    pub fn set_reach(&mut self, bytes: u64) {
        assert!(self.granule.is_multiple_of(bytes), "granules of {} B, pages of {bytes} B", self.granule);
        self.reach = bytes;
    }

    /// Adds an application with `bytes` of data, behind the previous ones. Returns its offset on the SSD.
    pub fn add_app(&mut self, app: u8, bytes: u64) -> u64 {
        let extent = Extent { base: self.end, bytes: bytes.next_multiple_of(PAGE) };
        self.end += bytes.next_multiple_of(self.granule);
        self.apps[usize::from(app)] = Some(extent);
        extent.base
    }

    /// Bytes of the SSD taken by the applications added so far.
    pub fn ssd_bytes(&self) -> u64 {
        self.end
    }

    /// Handles a page fault.
    ///
    /// # Panics
    /// Panics if the page is outside of its application's data.
    pub fn fault(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        let byte = translation.page * self.reach;
        let granule = Granule { app: translation.app, number: byte / self.granule };
        assert!(byte < self.extent(granule).bytes, "a fault outside of the data: {translation:?}");
        self.ledger.entered += 1;
        match self.at.get(&granule) {
            Some(Place::Gpu) => {
                self.stats.present += 1;
                self.resolve(translation, cx);
            }
            Some(Place::Busy(job)) => {
                self.stats.merged += 1;
                self.waiting.push(&mut self.jobs[*job].waiting, translation);
            }
            None => {
                self.stats.faults += 1;
                let mut waiting = List::EMPTY;
                self.waiting.push(&mut waiting, translation);
                let job = self.jobs.insert(Job { granule, phase: Phase::Coming, waiting });
                self.at.insert(granule, Place::Busy(job));
                self.report(job, cx);
            }
        }
    }

    /// Handles a completion of the SSD.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.stats.failed += u64::from(completion.status != Status::Success);
        let job = completion.tag;
        if self.jobs[job].phase == Phase::Reading {
            self.copy(Work::CopyIn(job), cx);
        } else {
            self.stored(job, cx);
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Woken(thread) => self.woken(thread as usize, cx),
            Event::Worked(thread) => self.worked(thread as usize, cx),
            Event::Left(job) => self.copy(Work::CopyOut(job), cx),
            Event::Room(job) => self.send(job, cx),
            Event::Mapped(job) => self.mapped(job, cx),
        }
    }

    /// Number of granules with work under way.
    pub fn outstanding(&self) -> usize {
        self.jobs.len()
    }

    fn extent(&self, granule: Granule) -> Extent {
        self.apps[usize::from(granule.app)].expect("an application that has been added")
    }

    /// First byte of a granule on the SSD, and its size: the last granule may be short.
    fn bytes_of(&self, granule: Granule) -> (u64, u64) {
        let extent = self.extent(granule);
        let first = granule.number * self.granule;
        (extent.base + first, self.granule.min(extent.bytes - first))
    }

    fn resolve(&mut self, mut translation: Translation, cx: &mut impl Cx<Event, Out>) {
        if planted_nth(Mutant::LostFault, 16) {
            return;
        }
        self.ledger.resolved += 1;
        self.tally.reach(Stage::Fault, false, &mut translation.since, cx.now());
        cx.emit(Out::Resolved(translation));
    }
}

// Data in flight to and from the GPU's memory.

impl Paging {
    /// Moves data from a pinned buffer as soon as there is room.
    fn move_in(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let mut free = cx.now();
        if self.taken == self.capacity {
            let Some(victim) = self.mapped.pop_front() else {
                self.without_room.push_back(job);
                return;
            };
            free = self.evict(victim, cx);
        } else {
            self.taken += 1;
        }
        if free > cx.now() {
            cx.after(free - cx.now(), Event::Room(job));
        } else {
            self.send(job, cx);
        }
    }

    /// Evicts a granule; returns the time at which its place is free.
    fn evict(&mut self, granule: Granule, cx: &mut impl Cx<Event, Out>) -> Time {
        self.stats.evictions += 1;
        let (_, bytes) = self.bytes_of(granule);
        let first = granule.number * self.granule / self.reach;
        for page in first..first + bytes.div_ceil(self.reach) {
            cx.emit(Out::Evict { app: granule.app, page });
        }
        if self.write_back {
            self.ledger.evicted += 1;
        }
        if !self.write_back || planted_nth(Mutant::DroppedGranule, 4) {
            self.at.remove(&granule);
            return cx.now();
        }
        let job = self.jobs.insert(Job { granule, phase: Phase::Leaving, waiting: List::EMPTY });
        self.at.insert(granule, Place::Busy(job));
        let end = self.link.to_host(cx.now(), bytes);
        cx.after(end + self.link.latency() - cx.now(), Event::Left(job));
        end
    }

    /// Moves a granule over PCIe and maps it.
    fn send(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let (_, bytes) = self.bytes_of(self.jobs[job].granule);
        self.stats.moved_bytes += bytes;
        let end = self.link.to_device(cx.now(), bytes);
        cx.after(end + self.link.latency() + self.resume - cx.now(), Event::Mapped(job));
    }

    fn mapped(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let Job { granule, mut waiting, .. } = self.jobs[job];
        self.jobs.remove(job);
        self.at.insert(granule, Place::Gpu);
        self.mapped.push_back(granule);
        self.stats.mapped += 1;
        while let Some(translation) = self.waiting.pop(&mut waiting) {
            self.resolve(translation, cx);
        }
        if let Some(next) = self.without_room.pop_front() {
            self.move_in(next, cx);
        }
    }

    /// Handles an evicted granule that is in the SSD; a fault for it may have arrived.
    fn stored(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let Job { granule, waiting, .. } = self.jobs[job];
        self.ledger.stored += 1;
        if waiting.is_empty() {
            self.at.remove(&granule);
            self.jobs.remove(job);
        } else {
            self.stats.faults += 1;
            self.jobs[job].phase = Phase::Coming;
            self.report(job, cx);
        }
    }
}

// Spec of paging.

/// Paging of a discrete GPU: the host brings pages from an SSD when the GPU faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PagingSpec {
    /// Granule: aligned amount brought by a fault, a multiple of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-multiple-of" = "4KiB"))]
    pub granule: Bytes,
    /// GPU memory available to the data of programs; data brought first are evicted first.
    pub memory: Bytes,
    /// Write-back of evicted data to the SSD. The host does not know which data have been written: it copies all or
    /// nothing.
    pub write_back: bool,
    /// Driver that handles faults.
    pub driver: DriverSpec,
    /// Host time of a command to the SSD before submission: system call, file system, block layer, driver.
    pub submit: Duration,
    /// Host time of a command to the SSD after completion: interrupt handler, waking the thread, return to user mode.
    pub complete: Duration,
    /// Number of copies of the data in host memory, between the SSD and the GPU.
    #[schemars(range(max = 64))]
    pub copies: u32,
    /// Bandwidth of one such copy, in bytes per second.
    pub copy_bandwidth: Bandwidth,
    /// Link between host and GPU.
    pub link: GpuLinkSpec,
}

/// Driver that handles faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriverSpec {
    /// Time from a fault in the GPU until a sleeping thread of the driver runs: fault buffer, interrupt, wake-up.
    pub interrupt: Duration,
    /// Number of threads. They handle faults and copy data.
    #[schemars(range(min = 1, max = 65_536))]
    pub handlers: u32,
    /// Batch: maximum faults that a thread takes from the fault buffer at once.
    #[schemars(range(min = 1))]
    pub batch: u32,
    /// Thread time of a batch, beyond its faults: reading and sorting the fault buffer, locks, replay.
    pub batch_time: Duration,
    /// Thread time of a fault.
    pub fault_time: Duration,
    /// Time from data in the GPU's memory to the translation in the GPU: page table, invalidation, replay.
    pub resume: Duration,
}

/// PCI Express link between host and GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuLinkSpec {
    /// Generation, 1 to 6.
    #[schemars(range(min = 1, max = 6))]
    pub generation: u32,
    /// Number of lanes.
    #[schemars(extend("enum" = [1, 2, 4, 8, 16]))]
    pub lanes: u32,
    /// Maximum packet payload.
    #[schemars(extend("x-minimum" = "1B"))]
    pub max_payload: Bytes,
    /// Latency in one direction.
    pub latency: Duration,
    /// Energy of the link; if omitted, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<LinkEnergySpec>,
}

impl PagingSpec {
    /// Checks the whole spec.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn check(&self) -> Result<(), SpecError> {
        let granule = self.granule.get();
        if granule == 0 || !granule.is_multiple_of(PAGE) {
            let what = format!("a granule of {} is not a multiple of the page size, {PAGE} B", self.granule);
            return Err(SpecError::new("granule", what).help("choose a multiple of 4KiB, such as 64KiB"));
        }
        if self.memory.get() < granule {
            let what = format!("{} of GPU memory are less than one granule of {}", self.memory, self.granule);
            return Err(SpecError::new("memory", what));
        }
        SpecError::positive("driver.handlers", self.driver.handlers.into())?;
        SpecError::positive("driver.batch", self.driver.batch.into())?;
        SpecError::positive("copy_bandwidth", self.copy_bandwidth.bytes_per_s())?;
        self.link.build().map(|_| ())
    }
}

impl GpuLinkSpec {
    fn build(&self) -> Result<Link, SpecError> {
        let lane = lane_bytes_per_s(self.generation).ok_or_else(|| {
            let what = format!("PCIe generation {}; allowed are 1 to 6", self.generation);
            SpecError::new("link.generation", what)
        })?;
        if ![1, 2, 4, 8, 16].contains(&self.lanes) {
            let what = format!("{} lanes; allowed are 1, 2, 4, 8, 16", self.lanes);
            return Err(SpecError::new("link.lanes", what));
        }
        SpecError::positive("link.max_payload", self.max_payload.get())?;
        let link = Link::new(lane * u64::from(self.lanes), self.max_payload.get(), self.latency.time());
        Ok(match &self.energy {
            Some(energy) => link.with_energy(energy),
            None => link,
        })
    }
}
