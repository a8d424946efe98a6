//! A host's path from system calls to drives, in time: what threads do on cores, over the page cache, the file system, the block layer and the
//! driver, which know no time.
//!
//! A thread is a stack of frames (`frame::Frame`). A step of the innermost frame happens in no time; what it costs on a core is owed by the thread, which is
//! on its core for that long before anything of it is seen outside, or before it sleeps. Steps are small where others could come between: a few
//! pages, one bio, one pause. Whoever wakes looks again at what it waited for.
//!
//! Work comes from programs ([`Host::add_program`]) and from flows of requests ([`Host::submit_request`]): each flow is a thread that reads and
//! writes one file of a drive.

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
    /// What happens on a host.
    pub enum Event {
        /// Something of its cores.
        Cores(tasks::Event),
        /// The time is over for which a thread wanted to sleep.
        Alarm(u32),
        /// A command has been prepared.
        Issue(u32),
        /// A hardware queue is run by the kernel's worker.
        Run(u32),
        /// Completions have waited for others as long as they may.
        Coalesced(u32),
        /// The handler of an interrupt has begun.
        Interrupted(u32),
        /// It has done what it had taken.
        Handled(u32),
        /// The handler of a coprocessor's interrupt has ended an order.
        Ordered(u32),
        /// A timer of a disk's queue.
        QueueTimer(u16),
        /// The timer of a disk's flusher.
        Flusher(u16),
        /// The timer of a disk's journal.
        Commit(u16),
    }
}

impl From<tasks::Event> for Event {
    fn from(event: tasks::Event) -> Event {
        Event::Cores(event)
    }
}

/// What a host says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command for one of its drives.
    Submit {
        /// Which of them.
        disk: u16,
        /// The command.
        command: Command,
    },
    /// An order for one of its coprocessors, which says when it is done ([`Host::ordered`]).
    Order {
        /// What the host calls it.
        tag: u32,
        /// Which coprocessor.
        device: u16,
        /// What it shall do.
        order: Order,
    },
    /// A request of a flow has been served.
    Complete(Completion),
}

/// Length of a window of what is recorded over time, and how many there are at most.
const WINDOW: Time = Time::from_ms(100);
const WINDOWS: usize = 1024;

/// A drive as its host has it.
struct Disk {
    queue: Queue,
    fs: Option<Ext4>,
    vectors: Vec<Vector>,
    /// When the queue's timer fires, if it is set.
    timer: Option<Time>,
    /// The thread of its flusher, that of its journal, and the worker that makes new blocks a file's.
    flusher: Task,
    journal: Option<Task>,
    converter: Option<Task>,
    /// Bytes.
    bytes: u64,
    /// The file that fills it.
    whole: Option<Inode>,
    /// Files that are there in its place, by the addresses of requests.
    laid: Vec<Laid>,
    /// The block device, whose pages are blocks of metadata; of them, those that are dirty.
    device: Inode,
    home: u64,
    /// Whether data go through the journal.
    journals_data: bool,
    /// Whether a transaction is being committed; its blocks of the log that are under way; when the timer of the running one is.
    committing: bool,
    log: Option<u32>,
    commit_timer: Option<Time>,
    /// Whether the journal's superblock is being written, and the transaction that it begins with.
    writes_tail: bool,
    tail: Tid,
    /// The newest transaction whose commit block is on the drive.
    committed: Tid,
    /// Pages that are on the drive, in blocks that are not the file's yet.
    converting: VecDeque<IoEnd>,
    /// Direct writes that nobody waits for and whose data are on the drive, and the worker that ends them, once there was one.
    finishing: VecDeque<u32>,
    finisher: Option<Task>,
    /// Whether its journal could not write.
    aborted: bool,
}

/// What a host is told of a drive.
#[derive(Clone, PartialEq, Debug)]
pub struct DiskSpec {
    /// Bytes.
    pub bytes: u64,
    /// What its driver tells the block layer.
    pub device: Device,
    /// Scheduler of the drive, if it differs from that of the host's block layer.
    pub scheduler: Option<SchedulerPolicy>,
}

/// A host.
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
    /// Threads that are to be woken when the step is over.
    woken: Vec<Task>,
    /// Lists that are empty between steps.
    runs: Vec<Run>,
    blocks: Vec<u64>,
    pageouts: Vec<Folio>,
    effects: Effects,
    /// An account of what pages hold, for a soak.
    shadow: Option<Box<Shadow>>,
    /// Dirty pages, and pages that are being written, over time.
    pub dirty: Levels,
    /// The latter.
    pub under_writeback: Levels,
    /// What no floor knows alone.
    pub stats: PathStats,
}

impl<P: Program> Host<P> {
    /// An idle host with these drives.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn new(spec: &PathSpec, disks: &[DiskSpec]) -> Result<Host<P>, SpecError> {
        if !matches!(spec.hz, 100 | 250 | 300 | 1000) {
            return Err(SpecError::new(
                "hz",
                format!("`hz` is {}; Linux has 100, 250, 300 and 1000", spec.hz),
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
            let what = format!("{poll_queues} polled queues (`poll_queues`) and a scheduler");
            let help = "polled queues are for `block.scheduler = \"none\"` here";
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

    /// Gives the host a program, whose files are laid out on its drives.
    ///
    /// # Errors
    /// Its files do not fit.
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

    /// Whether all programs have ended and every request has been served. Dirty pages may be left.
    pub fn is_done(&self) -> bool {
        self.programs.iter().all(|running| running.left == 0) && self.requests() == 0
    }

    /// The programs.
    pub fn programs(&self) -> impl Iterator<Item = &P> {
        self.programs.iter().map(|running| &running.program)
    }

    /// The programs, to be reset.
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

    /// The cores.
    pub fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The page cache.
    pub fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// Write-back.
    pub fn writeback(&self) -> &Writeback {
        &self.writeback
    }

    /// Drives.
    pub fn disks(&self) -> u16 {
        self.disks.len() as u16
    }

    /// The block layer in front of a drive.
    pub fn queue(&self, disk: u16) -> &Queue {
        &self.disks[usize::from(disk)].queue
    }

    /// The file system of a drive.
    pub fn fs(&self, disk: u16) -> Option<&Ext4> {
        self.disks[usize::from(disk)].fs.as_ref()
    }

    fn thread(&mut self, task: Task) -> &mut Thread {
        &mut self.threads[task.0 as usize]
    }

    /// A new thread of the kernel or of a program, asleep.
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

// What happened on a host that none of its floors knows alone.

/// Counts since the window began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathStats {
    /// Interrupts of drives.
    pub interrupts: u64,
    /// Orders that coprocessors have done, each with an interrupt of its own.
    pub orders: u64,
    /// Completions that threads have looked for themselves.
    pub polled: u64,
    /// Bios that ended with an error.
    pub errors: u64,
    /// Writes that found no space on a drive.
    pub no_space: u64,
    /// Dirty pages that found none when they were written back: their data are lost.
    pub lost: u64,
    /// Syncs that returned before the commit block of their transaction was on the drive.
    pub early_syncs: u64,
    /// Times a thread waited for a page that was being read.
    pub page_waits: u64,
    /// Pages that were announced to drives before they were written.
    pub announced: u64,
    /// Times the dirty ratios changed because a drive was full, or was so no more.
    pub ratio_changes: u64,
    /// Times a thread had to reclaim memory itself.
    pub direct_reclaims: u64,
}
