//! Paging of a server by its operating system (OS-Swap of AstriFlash, HPCA 2023, sections II-C and V-B): DRAM holds pages of the
//! data, and a page that is missing is brought from flash by the kernel.
//!
//! A walk of a page table asks here at its end. If the page is there it is answered at once. If it is missing, the core takes an
//! exception: its kernel looks the page up and gives a command to the flash device, while the thread waits and another one may
//! run. When the page has come, the same core is interrupted and maps it. So that frames stay free, a fault also makes a page leave,
//! after its own command: it is chosen by a clock, unmapped, taken out of the TLBs of all cores by a shoot-down, and
//! written to flash if it was changed.
//!
//! Decisions, where the paper leaves it open:
//!
//! * What the kernel does on a core it does one after another, each piece to its end; programs run on that core in between. Every
//!   piece is told as [`Out::Interrupt`] when it begins.
//! * There is one lock, for changes of the page table, and a core spins for it. Shoot-downs go on side by side, outside of the lock:
//!   each core's begins with an interrupt of all others and ends with their acknowledgements.
//! * A core that answers a shoot-down loses `respond`; what its kernel does meanwhile is not delayed.
//! * A fault for a page that is coming joins it, and costs its exception. One for a page that is leaving waits until it has left, and
//!   then for its return: the kernel does not take back what it has begun to write.
//! * Whether a page was changed is known by lines of it that came to memory ([`Swap::written`]). One that comes later than its page has left
//!   makes the next page of the frame look changed.
//! * Virtual pages count from zero and lie in the same order on the flash device. There is one application.
//!
//! Bounds: faults are bounded by the walks of the cores' memory management units; pages that leave by faults.

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
    /// What happens inside the kernel.
    pub enum Event {
        /// The kernel has come to the end of a piece of work on a core.
        Worked(u16),
        /// A page has come or has been taken, after the fixed time.
        Moved(u32),
    }
}

/// Messages that paging sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The page of a translation is in memory.
    Resolve(Translation),
    /// The page of a translation is missing: its thread waits for it.
    Refuse(Translation),
    /// A command to the flash device.
    Submit(proto::Command),
    /// A page that threads of a core wait for is in memory. Said once for a core and page.
    Arrived {
        /// Virtual page.
        page: u64,
        /// The core.
        core: u16,
    },
    /// A page is leaving: it is in no TLB from now on.
    Evict {
        /// Virtual page.
        page: u64,
    },
    /// The kernel takes a core for so long from now on, or from the end of what it takes it for already.
    Interrupt {
        /// The core.
        core: u16,
        /// How long.
        time: Time,
    },
}

/// What is being done with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Coming,
    Leaving,
}

/// A page that comes or leaves.
#[derive(Clone, Copy, Debug)]
struct Job {
    page: u64,
    phase: Phase,
    /// The core whose kernel has it: the one that faulted, or that made it leave.
    core: u16,
    /// None until one is free.
    frame: Option<u32>,
    /// Translations that wait for the page.
    waiting: List,
}

/// Where a page is, if not in flash alone.
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
    /// Frames that are kept free.
    keep: usize,
    frames: Frames,
    /// The lock of the page table.
    lock: Serial,
    kernels: Vec<Kernel>,
    at: FxHashMap<u64, Place>,
    jobs: Slab<Job>,
    /// Pages that leave.
    leaving: usize,
    /// Pages that wait for a frame before they can be read.
    without_frame: VecDeque<u32>,
    /// Translations that wait for the pages of jobs.
    waiting: Lists<Translation>,
    ledger: Ledger,
    /// What happened since the window began.
    pub stats: SwapStats,
    /// What threads have waited for: all of it is [`Stage::Fault`], and a read.
    pub tally: Tally,
}

impl Swap {
    /// An empty memory before `cores` cores, at most 64: all pages are in flash.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
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

    /// Frames of the memory: frame `n` of an answer is below it.
    pub fn frames(&self) -> u32 {
        (self.frames.free() + self.frames.held() + self.frames.mapped()) as u32
    }

    /// Of them, what is kept free.
    pub fn kept(&self) -> u32 {
        self.keep as u32
    }

    /// A walk for a virtual page has ended; its port is the core. Answered by [`Out::Resolve`] at once if the page is there. Else by
    /// [`Out::Refuse`] at once and [`Out::Arrived`] when it has come, or, if the translation waits, by [`Out::Resolve`] then.
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

    /// The flash device has done a command.
    pub fn completed(&mut self, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        self.stats.failed += u64::from(completion.status != Status::Success);
        self.moved(completion.tag, cx);
    }

    /// A page has come, or has been taken: the core whose kernel has it is interrupted.
    fn moved(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let job = self.jobs[name];
        let work = match job.phase {
            Phase::Coming => Work::Came(name),
            Phase::Leaving => Work::Stored(name),
        };
        self.enqueue(job.core, work, cx);
    }

    /// A line of a frame was written to memory: its page is changed. Frames that are none of paging's do not count.
    pub fn written(&mut self, frame: u32) {
        self.frames.write(frame);
    }

    /// An access to a page before the run, without time: it is in memory afterwards.
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

    /// Appends which pages are in memory, and what [`warm`](Swap::warm) has changed besides, before the first fault.
    ///
    /// # Panics
    /// If pages are on their way.
    pub fn save_warm(&self, out: &mut Vec<u8>) {
        assert_eq!(self.outstanding(), 0, "paging is saved before its first fault");
        self.frames.save(out);
        self.ledger.stored.save(out);
    }

    /// Takes what was saved of a memory of as many frames off the front of `input`, as it was built itself; `None` if that is malformed,
    /// if a page lies beyond the first `pages`, or if its counts contradict one another. Then it must not be used any more before
    /// something else has been loaded.
    pub fn load_warm(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        self.frames.load(input)?;
        self.ledger.stored = u64::load(input)?;
        let is_there = |(page, _): (u64, u32)| page < pages;
        let keeps = self.frames.free() >= self.keep && self.frames.pages().all(is_there);
        self.at = self.frames.pages().map(|(page, frame)| (page, Place::Mapped(frame))).collect();
        let sum = self.ledger.stored.checked_add(self.frames.late)?.checked_add(self.frames.dirty())?;
        (keeps && sum == self.frames.dirtied && self.at.len() == self.frames.mapped()).then_some(())
    }

    /// Whether a page is in memory.
    pub fn is_present(&self, page: u64) -> bool {
        matches!(self.at.get(&page), Some(Place::Mapped(_)))
    }

    /// Pages on their way, and pieces of the kernel's work.
    pub fn outstanding(&self) -> usize {
        self.jobs.len() + self.kernels.iter().map(Kernel::outstanding).sum::<usize>()
    }

    /// Everybody who waits for a page is told that it is there.
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

// What paging by the operating system counts.

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwapStats {
    /// Translations whose page was there.
    pub present: u64,
    /// Faults for a page that nobody had asked for.
    pub faults: u64,
    /// Faults for a page that was coming or leaving.
    pub merged: u64,
    /// Faults whose page has come, of both kinds: what [`Swap::tally`] has waited for.
    pub served: u64,
    /// Pages mapped.
    pub mapped: u64,
    /// Pages that left.
    pub evictions: u64,
    /// Pages that left and were written to flash.
    pub write_backs: u64,
    /// TLB shoot-downs.
    pub shootdowns: u64,
    /// Faults that found no free frame.
    pub starved: u64,
    /// Commands that the flash device could not do.
    pub failed: u64,
    /// Core time of the kernel, all cores together.
    pub kernel: Time,
    /// Of it, spinning for the lock of the page table.
    pub spinning: Time,
    /// Of it, shoot-downs, on both sides.
    pub shooting: Time,
}

/// What has been counted since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    missing: u64,
    served: u64,
    /// Changed pages that flash has taken.
    stored: u64,
}

impl Swap {
    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = SwapStats::default();
        self.tally = Tally::default();
    }

    /// Holds the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, waiting) = (self.ledger, self.waiting.len() as u64);
        if ledger.missing != ledger.served + waiting {
            return Err(format!("{} faults, {} served, {waiting} waiting", ledger.missing, ledger.served));
        }
        let without = self.jobs.live().filter(|(_, job)| job.frame.is_none()).count();
        let (jobs, held) = (self.jobs.len(), self.frames.held());
        if jobs != held + without {
            return Err(format!(
                "{jobs} pages on their way, {held} frames held, {without} pages without a frame"
            ));
        }
        let (dirtied, late, dirty) = (self.frames.dirtied, self.frames.late, self.frames.dirty());
        if dirtied != ledger.stored + late + dirty {
            return Err(format!(
                "{dirtied} pages changed, {} stored, {late} late, {dirty} changed and here",
                ledger.stored
            ));
        }
        let places = self.at.len();
        if places != jobs + self.frames.mapped() {
            return Err(format!(
                "{places} pages known, {jobs} on their way, {} mapped",
                self.frames.mapped()
            ));
        }
        Ok(())
    }
}
