//! Path of a host from system calls to drives, in time: the work of threads on cores, over the page cache, the file
//! system, the block layer and the driver, which have no clock.
//!
//! A thread is a stack of frames (`frame::Frame`). A step of the innermost frame takes no time; the thread owes its
//! core cost. It spends that time on its core before any effect becomes visible outside, and before it sleeps. Steps
//! are small where others could interleave: a few pages, one bio, one pause. A woken thread checks again for the
//! condition that it waited for.
//!
//! Work comes from programs ([`Host::add_program`]) and from flows of requests ([`Host::submit_request`]): each flow is
//! a thread that reads and writes one file of a drive.

mod buffered;
mod direct;
mod driver;
mod files;
mod flow;
mod frame;
mod io;
mod journal;
mod names;
mod queued;
#[cfg_attr(not(any(test, feature = "soak")), expect(dead_code, reason = "a soak drives it"))]
mod shadow;
#[cfg(any(test, feature = "soak"))]
pub mod soak;
mod spec;
mod sync;
#[cfg(test)]
mod tests;
mod thread;
mod victims;
mod wait;
mod writeback;

pub use names::{Unfit, file_bytes};
pub use spec::{CostsSpec, DriverSpec, OnDrives, PathSpec};
pub use victims::{RatiosSpec, VictimizationSpec};

use self::driver::{Ordered, Sent, Vector};
use self::files::{Node, Open, Running};
use self::flow::Flow;
use self::frame::Frame;
use self::io::{Dio, Io, IoEnd};
use self::names::Laid;
use self::shadow::Shadow;
use self::spec::Costs;
use self::thread::Thread;
use self::victims::Victims;
use self::wait::Waits;
use crate::Inode;
use crate::block::{BlockSpec, Device, Effects, Plug, Queue, SchedulerPolicy};
use crate::fs::{Ext4, JournalMode, Tid};
use crate::pagecache::{Folio, PageCache, Run};
use crate::tasks::{self, Cores, Task};
use crate::writeback::Writeback;
use config::SpecError;
use engine::{Cx, Inside, Lists, Slab, Time};
use proto::file::Program;
use proto::offload::Order;
use proto::{Command, Completion};
use stats::Levels;
use std::collections::VecDeque;

engine::events! {
    /// Events on a host.
    pub enum Event {
        /// Event of its cores.
        Cores(tasks::Event),
        /// End of the time for which a thread wanted to sleep.
        Alarm(u32),
        /// Command prepared.
        Issue(u32),
        /// Run of a hardware queue by the kernel's worker.
        Run(u32),
        /// End of the coalescing time of completions.
        Coalesced(u32),
        /// Start of an interrupt handler.
        Interrupted(u32),
        /// End of an interrupt handler's batch.
        Handled(u32),
        /// End of an order in the handler of a coprocessor's interrupt.
        Ordered(u32),
        /// Timer of a disk's queue.
        QueueTimer(u16),
        /// Timer of a disk's flusher.
        Flusher(u16),
        /// Timer of a disk's journal.
        Commit(u16),
    }
}

impl From<tasks::Event> for Event {
    fn from(event: tasks::Event) -> Event {
        Event::Cores(event)
    }
}

/// Output of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// Command for one of its drives.
    Submit {
        /// Drive.
        disk: u16,
        /// Command.
        command: Command,
    },
    /// Order for one of its coprocessors, which answers when it is done ([`Host::ordered`]).
    Order {
        /// Host's tag of the order.
        tag: u32,
        /// Coprocessor.
        device: u16,
        /// Order.
        order: Order,
    },
    /// Served request of a flow.
    Complete(Completion),
}

/// Window length of time series, and maximum number of windows.
const WINDOW: Time = Time::from_ms(100);
const WINDOWS: usize = 1024;

/// State of a drive on its host.
struct Disk {
    queue: Queue,
    fs: Option<Ext4>,
    vectors: Vec<Vector>,
    /// Expiry of the queue's timer, if set.
    timer: Option<Time>,
    /// Threads of the flusher and of the journal, and the worker that converts new blocks.
    flusher: Task,
    journal: Option<Task>,
    converter: Option<Task>,
    /// Capacity in bytes.
    bytes: u64,
    /// File that fills the drive.
    whole: Option<Inode>,
    /// Files laid out instead, by the addresses of requests.
    laid: Vec<Laid>,
    /// Block device, whose pages are metadata blocks, and the dirty ones among them.
    device: Inode,
    home: u64,
    /// True if data go through the journal.
    journals_data: bool,
    /// Commit in progress; log blocks in flight; expiry of the running transaction's timer.
    committing: bool,
    log: Option<u32>,
    commit_timer: Option<Time>,
    /// Write of the journal's superblock in progress, and the first transaction that it names.
    writes_tail: bool,
    tail: Tid,
    /// Newest transaction whose commit block is on the drive.
    committed: Tid,
    /// Written extents whose blocks are not yet converted.
    converting: VecDeque<IoEnd>,
    /// Unwaited direct writes whose data are on the drive, and the worker that ends them, once needed.
    finishing: VecDeque<u32>,
    finisher: Option<Task>,
    /// True if the journal has been aborted.
    aborted: bool,
}

/// Properties of a drive.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskSpec {
    /// Capacity in bytes.
    pub bytes: u64,
    /// Properties that its driver passes to the block layer.
    pub device: Device,
    /// Scheduler of the drive, if it differs from that of the host's block layer.
    pub scheduler: Option<SchedulerPolicy>,
}

/// Host.
pub struct Host<P> {
    cores: Cores,
    threads: Vec<Thread>,
    cache: PageCache,
    writeback: Writeback,
    disks: Vec<Disk>,
    nodes: Vec<Node>,
    open: Slab<Open>,
    programs: Vec<Running<P>>,
    flows: Vec<Flow>,
    sent: Slab<Sent>,
    orders: Slab<Ordered>,
    ios: Slab<Io>,
    dios: Slab<Dio>,
    io_ends: Slab<IoEnd>,
    waits: Waits,
    locks: Lists<Task>,
    kswapd: Task,
    victims: Victims,
    costs: Costs,
    coalescing: (u16, Time),
    tick: Time,
    ra_pages: u32,
    /// Threads to be woken after the step.
    woken: Vec<Task>,
    /// Scratch lists, empty between steps.
    runs: Vec<Run>,
    blocks: Vec<u64>,
    pageouts: Vec<Folio>,
    effects: Effects,
    /// Record of page contents, for a soak.
    shadow: Option<Box<Shadow>>,
    /// Dirty pages over time.
    pub dirty: Levels,
    /// Pages under write-back over time.
    pub under_writeback: Levels,
    /// Counters that involve several layers.
    pub stats: PathStats,
}

impl<P: Program> Host<P> {
    /// Creates an idle host with these drives.
    ///
    /// # Errors
    /// The first invalid value, with its key.
    pub fn new(spec: &PathSpec, disks: &[DiskSpec]) -> Result<Host<P>, SpecError> {
        if !matches!(spec.hz, 100 | 250 | 300 | 1000) {
            return Err(SpecError::new(
                "hz",
                format!("`hz` is {}; allowed values: 100, 250, 300, 1000", spec.hz),
            ));
        }
        let pages = spec.memory.get() / crate::PAGE;
        if let Some(energy) = &spec.cores.energy {
            energy.check().map_err(|error| error.within("cores.energy"))?;
        }
        let cores = Cores::new(&spec.cores, spec.hz);
        let cache = PageCache::new(&spec.page_cache, pages).map_err(|error| error.within("page_cache"))?;
        let at_boot = spec.memory_at_boot.map_or(pages, |memory| (memory.get() / crate::PAGE).max(pages));
        let avail = at_boot.saturating_sub(cache.watermarks().high);
        let writeback = Writeback::new(&spec.writeback, spec.hz, disks.len() as u16, cores.count(), avail)
            .map_err(|error| error.within("writeback"))?;
        let victims = Victims::new(spec.victimization.as_ref(), writeback.bounds(), disks.len())?;
        let mut host = Host {
            cores,
            threads: Vec::new(),
            cache,
            writeback,
            disks: Vec::new(),
            nodes: Vec::new(),
            open: Slab::default(),
            programs: Vec::new(),
            flows: Vec::new(),
            sent: Slab::default(),
            orders: Slab::default(),
            ios: Slab::default(),
            dios: Slab::default(),
            io_ends: Slab::default(),
            waits: Waits::default(),
            locks: Lists::default(),
            kswapd: Task(0),
            victims,
            costs: Costs::new(&spec.costs),
            coalescing: (spec.driver.coalescing_threshold, spec.driver.coalescing_time.time()),
            tick: Time::period(u64::from(spec.hz)),
            ra_pages: spec.page_cache.ra_pages(),
            woken: Vec::new(),
            runs: Vec::new(),
            blocks: Vec::new(),
            pageouts: Vec::new(),
            effects: Effects::default(),
            shadow: None,
            dirty: Levels::new(Time::ZERO, WINDOW, WINDOWS),
            under_writeback: Levels::new(Time::ZERO, WINDOW, WINDOWS),
            stats: PathStats::default(),
        };
        for (number, about) in (0..).zip(disks) {
            let disk = host.disk(spec, number, about)?;
            host.disks.push(disk);
        }
        let plugs = disks.len();
        host.threads.iter_mut().for_each(|thread| thread.plugs.resize_with(plugs, Plug::default));
        host.kswapd = host.spawn(Frame::Kswapd);
        Ok(host)
    }

    fn disk(&mut self, spec: &PathSpec, number: u16, about: &DiskSpec) -> Result<Disk, SpecError> {
        let poll_queues = spec.driver.poll_queues.unwrap_or(0);
        let scheduler = about.scheduler.as_ref().unwrap_or(&spec.block.scheduler).clone();
        let block = BlockSpec { scheduler, ..spec.block.clone() };
        let queue = Queue::polled(&block, about.device, self.cores.count(), poll_queues)
            .map_err(|error| error.within("block"))?;
        if poll_queues > 0 && queue.has_elevator() {
            let what = format!("`poll_queues` is {poll_queues}, but polled queues cannot have a scheduler");
            let help = "set `block.scheduler = \"none\"`, or leave `poll_queues` out";
            return Err(SpecError::new("driver.poll_queues", what).help(help));
        }
        let (fs, journals_data) = match &spec.fs {
            OnDrives::Raw => (None, false),
            OnDrives::Ext4(fs) => {
                let made = Ext4::new(fs, about.bytes).map_err(|error| error.within("fs.ext4"))?;
                (Some(made), fs.data == JournalMode::journal)
            }
        };
        let vectors = vec![Vector::default(); usize::from(queue.hctxs())];
        let worker = fs.is_some();
        Ok(Disk {
            queue,
            fs,
            vectors,
            timer: None,
            flusher: self.spawn(Frame::Flusher(number)),
            journal: worker.then(|| self.spawn(Frame::Journal(number))),
            converter: worker.then(|| self.spawn(Frame::Convert(number))),
            bytes: about.bytes,
            whole: None,
            laid: Vec::new(),
            device: self.new_inode(number, about.bytes, true),
            home: 0,
            journals_data,
            committing: false,
            log: None,
            commit_timer: None,
            writes_tail: false,
            tail: Tid(0),
            committed: Tid(0),
            converting: VecDeque::new(),
            finishing: VecDeque::new(),
            finisher: None,
            aborted: false,
        })
    }

    /// Adds a program, whose files are laid out on the host's drives.
    ///
    /// # Errors
    /// If its files do not fit.
    pub fn add_program(&mut self, program: P) -> Result<(), Unfit> {
        let inodes = self.lay_out(&program)?;
        let (number, first) = (self.programs.len() as u16, self.threads.len() as u32);
        for thread in 0..program.threads() {
            self.spawn(Frame::Program { program: number, thread });
        }
        self.programs.push(Running::new(program, first, inodes));
        Ok(())
    }

    /// Starts the programs.
    pub fn begin(&mut self, cx: &mut impl Cx<Event, Out>) {
        for program in 0..self.programs.len() {
            let (first, threads) = (self.programs[program].first, self.programs[program].left);
            for thread in 0..threads {
                self.wake(Task(first + thread), cx);
            }
        }
    }

    /// Returns whether all programs have ended and every request has been served. Dirty pages may be left.
    pub fn is_done(&self) -> bool {
        self.programs.iter().all(|running| running.left == 0) && self.requests() == 0
    }

    /// Programs of the host.
    pub fn programs(&self) -> impl Iterator<Item = &P> {
        self.programs.iter().map(|running| &running.program)
    }

    /// Programs of the host, to be reset.
    pub fn programs_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.programs.iter_mut().map(|running| &mut running.program)
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.cores.reset_stats(now);
        self.cache.reset_stats();
        self.writeback.reset_stats();
        for disk in &mut self.disks {
            disk.queue.reset_stats(now);
            if let Some(fs) = &mut disk.fs {
                fs.reset_stats(now);
            }
        }
        self.stats = PathStats::default();
        self.dirty.reset(now);
        self.under_writeback.reset(now);
    }

    /// Cores of the host.
    pub fn cores(&self) -> &Cores {
        &self.cores
    }

    /// Page cache of the host.
    pub fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// Write-back state of the host.
    pub fn writeback(&self) -> &Writeback {
        &self.writeback
    }

    /// Number of drives.
    pub fn disks(&self) -> u16 {
        self.disks.len() as u16
    }

    /// Block layer in front of a drive.
    pub fn queue(&self, disk: u16) -> &Queue {
        &self.disks[usize::from(disk)].queue
    }

    /// File system of a drive.
    pub fn fs(&self, disk: u16) -> Option<&Ext4> {
        self.disks[usize::from(disk)].fs.as_ref()
    }

    fn thread(&mut self, task: Task) -> &mut Thread {
        &mut self.threads[task.0 as usize]
    }

    /// Creates a thread of the kernel or of a program, asleep.
    fn spawn(&mut self, bottom: Frame) -> Task {
        self.threads.push(Thread::new(bottom, self.disks.len()));
        self.cores.spawn()
    }

    /// Runs an event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Cores(event) => {
                if let Some(task) = self.cores.handle(event, &mut Inside::of(cx)) {
                    self.resume(task, cx);
                }
            }
            Event::Alarm(task) => self.alarm(Task(task), cx),
            Event::Issue(sent) => self.issue(sent, cx),
            Event::Run(queue) => self.run_queue(queue, cx),
            Event::Coalesced(vector) => self.coalesced(vector, cx),
            Event::Interrupted(vector) => self.interrupted(vector, cx),
            Event::Handled(vector) => self.handled(vector, cx),
            Event::Ordered(tag) => self.order_ended(tag, cx),
            Event::QueueTimer(disk) => self.queue_timer(disk, cx),
            Event::Flusher(disk) => self.flusher_due(disk, cx),
            Event::Commit(disk) => self.commit_due(disk, cx),
        }
        self.wake_woken(cx);
        let now = cx.now();
        self.dirty.set(now, self.writeback.dirty());
        self.under_writeback.set(now, self.writeback.writeback());
    }
}

// Counters that involve several layers of a host.

/// Counters since the window began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Interrupts of drives.
    pub interrupts: u64,
    /// Orders done by coprocessors, each with its own interrupt.
    pub orders: u64,
    /// Completions found by polling threads.
    pub polled: u64,
    /// Bios that ended with an error.
    pub errors: u64,
    /// Writes that failed for lack of space on a drive.
    pub no_space: u64,
    /// Dirty pages that found no space when they were written back: their data are lost.
    pub lost: u64,
    /// Syncs that returned before the commit block of their transaction was on the drive.
    pub early_syncs: u64,
    /// Waits of threads for a page that was being read.
    pub page_waits: u64,
    /// Pages announced to drives before they were written.
    pub announced: u64,
    /// Changes of the dirty ratios because a drive became full, or had room again.
    pub ratio_changes: u64,
    /// Times that a thread had to reclaim memory itself.
    pub direct_reclaims: u64,
}
