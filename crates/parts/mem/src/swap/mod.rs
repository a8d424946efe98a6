//! Paging of a server by its operating system (OS-Swap of AstriFlash, HPCA 2023, sections II-C and V-B): DRAM holds
//! some pages of the data, and the kernel brings missing pages from flash.
//!
//! A page-table walk asks here at its end. If the page is present, it is answered at once. If it is missing, the core
//! takes an exception: its kernel looks the page up and gives a command to the flash device, while the thread waits and
//! another one may run. When the page has arrived, the same core is interrupted and maps it. To keep frames free, a
//! fault also evicts a page, after its own command: it is chosen by a clock, unmapped, removed from the TLBs of all
//! cores by a shoot-down, and written to flash if it is dirty.
//!
//! Decisions where the paper leaves details open:
//!
//! * The kernel's work on a core is done one piece at a time, each to its end; programs run on that core in between.
//!   Every piece is reported as [`Out::Interrupt`] when it begins.
//! * One lock protects changes of the page table, and a core spins for it. Shoot-downs run concurrently, outside of the
//!   lock: each begins with an interrupt of all other cores and ends with their acknowledgements.
//! * A core that answers a shoot-down loses `respond`; what its kernel does meanwhile is not delayed.
//! * A fault for a page that is being read joins it, and costs its exception. One for a page that is being evicted
//!   waits until it has left, and then for its return: the kernel does not take back a page it has begun to write.
//! * A page is known to be dirty by its lines that were written to memory ([`Swap::written`]). A line written after its
//!   page was evicted makes the next page of the frame look dirty.
//! * Virtual pages count from zero and are in the same order on the flash device. There is one application.
//!
//! Bounds: faults are bounded by the walks of the cores' memory management units; evictions by faults.

mod frames;
mod spec;
#[cfg(test)]
mod tests;
mod work;

pub use spec::{Fixed, ShootdownSpec, SwapBacking, SwapSpec};

use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, List, Lists, Slab, Snapshot as _, Time};
use frames::Frames;
use proto::memory::{Absent, PAGE, Stage, Tally, Translation};
use proto::{Completion, Status};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use work::{Kernel, Work};

engine::events! {
    /// Internal events of the kernel.
    pub enum Event {
        /// The kernel has finished a piece of work on a core.
        Worked(u16),
        /// A page has arrived or has been written, after the fixed time.
        Moved(u32),
    }
}

/// Messages sent by paging.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The page of a translation is in memory.
    Resolve(Translation),
    /// The page of a translation is missing: its thread waits for it.
    Refuse(Translation),
    /// A command to the flash device.
    Submit(proto::Command),
    /// A page that threads of a core wait for is in memory. Sent once per core and page.
    Arrived {
        /// Virtual page number.
        page: u64,
        /// Number of the core.
        core: u16,
    },
    /// A page is being evicted: it is in no TLB from now on.
    Evict {
        /// Virtual page number.
        page: u64,
    },
    /// The kernel takes a core for this time from now on, or from the end of its present work.
    Interrupt {
        /// Number of the core.
        core: u16,
        /// Duration of the work.
        time: Time,
    },
}

/// Phase of the work on a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Coming,
    Leaving,
}

/// Page that is being read or evicted.
#[derive(Clone, Copy, Debug)]
struct Job {
    page: u64,
    phase: Phase,
    /// Core whose kernel handles it: the one that faulted, or that evicted it.
    core: u16,
    /// Frame of the page; `None` until one is free.
    frame: Option<u32>,
    /// Translations that wait for the page.
    waiting: List,
}

/// Location of a page that is not only in flash.
#[derive(Clone, Copy, Debug)]
enum Place {
    Mapped(u32),
    Busy(u32),
}

/// Times of the kernel's pieces of work.
#[derive(Clone, Copy, Debug)]
struct Times {
    fault: Time,
    submit: Time,
    complete: Time,
    select: Time,
    lock: Time,
    shootdown: Time,
    respond: Time,
}

/// Paging of a server by its operating system.
pub struct Swap {
    times: Times,
    backing: SwapBacking,
    /// Number of frames kept free.
    keep: usize,
    frames: Frames,
    /// Lock of the page table.
    lock: Serial,
    kernels: Vec<Kernel>,
    at: FxHashMap<u64, Place>,
    jobs: Slab<Job>,
    /// Number of pages being evicted.
    leaving: usize,
    /// Pages that wait for a frame before they can be read.
    without_frame: VecDeque<u32>,
    /// Translations that wait for the pages of jobs.
    waiting: Lists<Translation>,
    ledger: Ledger,
    /// Statistics since the window began.
    pub stats: SwapStats,
    /// Waits of threads: all of them are [`Stage::Fault`], and a read.
    pub tally: Tally,
}

impl Swap {
    /// Creates an empty memory in front of `cores` cores, at most 64: all pages are in flash.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key.
    pub fn new(spec: &SwapSpec, cores: u16) -> Result<Swap, SpecError> {
        spec.check()?;
        let others = u64::from(cores).saturating_sub(1);
        let shootdown = &spec.shootdown;
        let begun = if others > 0 { shootdown.base.time() } else { Time::ZERO };
        Ok(Swap {
            times: Times {
                fault: spec.fault.time(),
                submit: spec.submit.time(),
                complete: spec.complete.time(),
                select: spec.select.time(),
                lock: spec.lock.time(),
                shootdown: begun + Time::from_ps(shootdown.per_core.time().ps() * others),
                respond: shootdown.respond.time(),
            },
            backing: spec.backing.clone(),
            keep: (spec.free.get() / PAGE) as usize,
            frames: Frames::new((spec.memory.get() / PAGE) as u32),
            lock: Serial::default(),
            kernels: vec![Kernel::default(); usize::from(cores)],
            at: FxHashMap::default(),
            jobs: Slab::default(),
            leaving: 0,
            without_frame: VecDeque::new(),
            waiting: Lists::default(),
            ledger: Ledger::default(),
            stats: SwapStats::default(),
            tally: Tally::default(),
        })
    }

    /// Number of frames of the memory: frame `n` of an answer is below it.
    pub fn frames(&self) -> u32 {
        (self.frames.free() + self.frames.held() + self.frames.mapped()) as u32
    }

    /// Number of frames kept free.
    pub fn kept(&self) -> u32 {
        self.keep as u32
    }

    /// Handles the end of a walk for a virtual page; its port is the core. Answered by [`Out::Resolve`] at once if the
    /// page is present. Otherwise by [`Out::Refuse`] at once and [`Out::Arrived`] on its arrival or, if the translation
    /// waits, by [`Out::Resolve`] then.
    pub fn fault(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(translation.app, 0, "one application");
        let core = translation.port;
        let (job, work) = match self.at.get(&translation.page) {
            Some(Place::Mapped(frame)) => {
                let frame = *frame;
                self.stats.present += 1;
                self.frames.reference(frame);
                cx.emit(Out::Resolve(Translation { frame: frame.into(), ..translation }));
                return;
            }
            Some(Place::Busy(job)) => {
                self.stats.merged += 1;
                (*job, Work::Joined)
            }
            None => {
                self.stats.faults += 1;
                let (page, phase, waiting) = (translation.page, Phase::Coming, List::EMPTY);
                let job = self.jobs.insert(Job { page, phase, core, frame: None, waiting });
                self.at.insert(translation.page, Place::Busy(job));
                (job, Work::Fault(job))
            }
        };
        self.ledger.missing += 1;
        self.waiting.push(&mut self.jobs[job].waiting, translation);
        if translation.absent != Absent::Wait {
            cx.emit(Out::Refuse(translation));
        }
        self.enqueue(core, work, cx);
    }

    /// Handles a completion of the flash device.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.stats.failed += u64::from(completion.status != Status::Success);
        self.moved(completion.tag, cx);
    }

    /// Handles a page that has been read or written: the core whose kernel handles it is interrupted.
    fn moved(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let job = self.jobs[name];
        let work = match job.phase {
            Phase::Coming => Work::Came(name),
            Phase::Leaving => Work::Stored(name),
        };
        self.enqueue(job.core, work, cx);
    }

    /// Notes a line of a frame written to memory: its page is dirty. Frames that do not belong to paging are ignored.
    pub fn written(&mut self, frame: u32) {
        self.frames.write(frame);
    }

    /// Accesses a page before the run, without time: it is in memory afterwards.
    pub fn warm(&mut self, page: u64, write: bool) {
        let frame = match self.at.get(&page) {
            Some(Place::Mapped(frame)) => *frame,
            Some(Place::Busy(_)) => return,
            None => {
                if self.frames.free() <= self.keep
                    && let Some((frame, gone)) = self.frames.victim()
                {
                    self.at.remove(&gone);
                    // Before the run nothing has to be written.
                    self.ledger.stored += u64::from(self.frames.is_dirty(frame));
                    self.frames.release(frame);
                }
                let Some(frame) = self.frames.take() else { return };
                self.frames.map(frame, page);
                self.at.insert(page, Place::Mapped(frame));
                frame
            }
        };
        self.frames.reference(frame);
        if write {
            self.frames.write(frame);
        }
    }

    /// Appends the pages in memory, and other changes by [`warm`](Swap::warm), before the first fault.
    ///
    /// # Panics
    /// Panics if pages are in flight.
    pub fn save_warm(&self, out: &mut Vec<u8>) {
        assert_eq!(self.outstanding(), 0, "paging is saved before its first fault");
        self.frames.save(out);
        self.ledger.stored.save(out);
    }

    /// Loads the saved state of a memory of as many frames, into one as built, from the front of `input`. Returns
    /// `None` if it is malformed, if a page is beyond the first `pages`, or if its counts contradict each other. The
    /// memory must then not be used before a different state has been loaded.
    pub fn load_warm(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        self.frames.load(input)?;
        self.ledger.stored = u64::load(input)?;
        let is_there = |(page, _): (u64, u32)| page < pages;
        let keeps = self.frames.free() >= self.keep && self.frames.pages().all(is_there);
        self.at = self.frames.pages().map(|(page, frame)| (page, Place::Mapped(frame))).collect();
        let sum = self.ledger.stored.checked_add(self.frames.late)?.checked_add(self.frames.dirty())?;
        (keeps && sum == self.frames.dirtied && self.at.len() == self.frames.mapped()).then_some(())
    }

    /// Returns true if a page is in memory.
    pub fn is_present(&self, page: u64) -> bool {
        matches!(self.at.get(&page), Some(Place::Mapped(_)))
    }

    /// Number of pages in flight, plus pieces of the kernel's work.
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.kernels.iter().map(Kernel::outstanding).sum::<usize>()
    }

    /// Tells every waiter of a page that it is present.
    fn tell(&mut self, mut waiting: List, frame: u32, cx: &mut impl Cx<Event, Out>) {
        let mut told = 0u64;
        while let Some(mut translation) = self.waiting.pop(&mut waiting) {
            self.ledger.served += 1;
            self.stats.served += 1;
            self.tally.reach(Stage::Fault, false, &mut translation.since, cx.now());
            if translation.absent == Absent::Wait {
                cx.emit(Out::Resolve(Translation { frame: frame.into(), ..translation }));
            } else if told >> translation.port & 1 == 0 {
                told |= 1 << translation.port;
                cx.emit(Out::Arrived { page: translation.page, core: translation.port });
            }
        }
    }
}

// Statistics of paging by the operating system.

/// Statistics of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// Translations whose page was present.
    pub present: u64,
    /// Faults for a page that had not been requested.
    pub faults: u64,
    /// Faults for a page being read or evicted.
    pub merged: u64,
    /// Faults of both kinds whose page has arrived: those counted in [`Swap::tally`].
    pub served: u64,
    /// Pages mapped.
    pub mapped: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages evicted and written to flash.
    pub write_backs: u64,
    /// TLB shoot-downs.
    pub shootdowns: u64,
    /// Faults that found no free frame.
    pub starved: u64,
    /// Commands that the flash device failed.
    pub failed: u64,
    /// Core time of the kernel, over all cores.
    pub kernel: Time,
    /// Kernel time spent spinning for the lock of the page table.
    pub spinning: Time,
    /// Kernel time spent in shoot-downs, on both sides.
    pub shooting: Time,
}

/// Counts since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    missing: u64,
    served: u64,
    /// Dirty pages that flash has taken.
    stored: u64,
}

impl Swap {
    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = SwapStats::default();
        self.tally = Tally::default();
    }

    /// Checks the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// Returns the violated equation, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, waiting) = (self.ledger, self.waiting.len() as u64);
        if ledger.missing != ledger.served + waiting {
            return Err(format!("{} faults, {} served, {waiting} waiting", ledger.missing, ledger.served));
        }
        let without = self.jobs.live().filter(|(_, job)| job.frame.is_none()).count();
        let (jobs, held) = (self.jobs.len(), self.frames.held());
        if jobs != held + without {
            return Err(format!(
                "{jobs} pages in flight, {held} frames held, {without} pages without a frame"
            ));
        }
        let (dirtied, late, dirty) = (self.frames.dirtied, self.frames.late, self.frames.dirty());
        if dirtied != ledger.stored + late + dirty {
            return Err(format!(
                "{dirtied} pages dirtied, {} stored, {late} late, {dirty} dirty and present",
                ledger.stored
            ));
        }
        let places = self.at.len();
        if places != jobs + self.frames.mapped() {
            return Err(format!("{places} pages known, {jobs} in flight, {} mapped", self.frames.mapped()));
        }
        Ok(())
    }
}
