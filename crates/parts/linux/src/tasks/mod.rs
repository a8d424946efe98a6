//! Threads on cores: run queues, time slices, interrupts.
//!
//! The scheduler is the fair one of Linux 6.1 (`kernel/sched/fair.c`) with threads of equal weight. A thread runs in
//! *bursts*: its owner requests core time ([`Cores::run`]), and is notified when the thread has had it
//! ([`Cores::handle`]). Between two bursts the thread is still on its core, for zero time: its owner must then let it
//! run on, sleep or end.
//!
//! Left out: weights and groups, scheduling domains of several sockets, and load balancing except pulls by idle cores.

mod core;
#[cfg(test)]
mod tests;

pub use core::HostEnergySpec;

use self::core::{Core, CoresMeter};
use config::units::Duration;
use engine::{Cx, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;

engine::events! {
    /// Events on cores.
    pub enum Event {
        /// End of the burst or of the slice of a core's thread.
        Due(u16),
    }
}

/// Thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task(pub u32);

/// Owner of core time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Program.
    User,
    /// Kernel.
    System,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Waits to be woken.
    Asleep,
    /// Waits for a core.
    Queued,
    /// On a core.
    Running,
    /// Ended.
    Ended,
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    /// Current or last core.
    core: u16,
    /// Virtual run time, as its core counts, picoseconds.
    vruntime: u64,
    /// Rest of its burst.
    need: Time,
    mode: Mode,
    /// Total run time.
    ran: Time,
}

/// Time of a core by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreTime {
    /// Time in programs.
    pub user: Time,
    /// Time in kernel threads and system calls.
    pub system: Time,
    /// Time in interrupts.
    pub interrupt: Time,
}

/// Counters of the scheduler.
#[derive(Clone, Debug, Default)]
pub struct CoresStats {
    /// Time by core and use.
    pub time: Vec<CoreTime>,
    /// Changes from one thread to another.
    pub switches: u64,
    /// Threads taken off their core while they wanted to go on.
    pub preemptions: u64,
    /// Threads that went on on a different core.
    pub migrations: u64,
    /// Longest wait of a thread for a core.
    pub waited_max: Time,
}

/// Cores and their threads.
pub struct Cores {
    threads: Vec<Thread>,
    cores: Vec<Core>,
    /// Time at which a waiting thread began to wait.
    since: Vec<Time>,
    latency: u64,
    min_granularity: u64,
    wakeup_granularity: u64,
    tick: u64,
    switch: Time,
    wake: Time,
    meter: Option<Box<CoresMeter>>,
    /// Measured statistics.
    pub stats: CoresStats,
}

impl Cores {
    /// Creates idle cores without threads; slices end at `hz` ticks a second.
    pub fn new(spec: &CoresSpec, hz: u32) -> Cores {
        let count = usize::from(spec.count);
        // `get_update_sysctl_factor`: by the logarithm of the core count, capped at eight.
        let factor = u64::from(1 + spec.count.min(8).ilog2());
        Cores {
            threads: Vec::new(),
            cores: vec![Core::default(); count],
            since: Vec::new(),
            latency: spec.sched_latency.time().ps() * factor,
            min_granularity: spec.sched_min_granularity.time().ps() * factor,
            wakeup_granularity: spec.sched_wakeup_granularity.time().ps() * factor,
            tick: Time::period(u64::from(hz)).ps(),
            switch: spec.context_switch.time(),
            wake: spec.idle_exit.time(),
            meter: spec.energy.as_ref().map(|costs| Box::new(CoresMeter::new(costs, spec.count))),
            stats: CoresStats { time: vec![CoreTime::default(); count], ..CoresStats::default() },
        }
    }

    /// Number of cores.
    pub fn count(&self) -> u16 {
        self.cores.len() as u16
    }

    /// Creates a thread, asleep.
    pub fn spawn(&mut self) -> Task {
        let task = self.threads.len() as u32;
        let core = (task % self.cores.len() as u32) as u16;
        let vruntime = self.cores[usize::from(core)].min_vruntime;
        self.threads.push(Thread {
            state: State::Asleep,
            core,
            vruntime,
            need: Time::ZERO,
            mode: Mode::System,
            ran: Time::ZERO,
        });
        self.since.push(Time::ZERO);
        Task(task)
    }

    /// Returns the current or last core of a thread.
    pub fn core_of(&self, task: Task) -> u16 {
        self.thread(task).core
    }

    /// Total run time of a thread between two bursts, context switches included.
    pub fn ran(&self, task: Task) -> Time {
        self.thread(task).ran
    }

    /// Returns whether a thread sleeps.
    pub fn sleeps(&self, task: Task) -> bool {
        self.thread(task).state == State::Asleep
    }

    /// Returns whether all cores are idle.
    pub fn idle(&self) -> bool {
        self.cores.iter().all(|core| core.current.is_none())
    }

    fn thread(&self, task: Task) -> &Thread {
        &self.threads[task.0 as usize]
    }

    fn thread_mut(&mut self, task: Task) -> &mut Thread {
        &mut self.threads[task.0 as usize]
    }

    /// Starts another burst of a thread on its core, between two bursts. It may lose its core first.
    pub fn run(&mut self, task: Task, need: Time, mode: Mode, cx: &mut impl Cx<Event, Infallible>) {
        let thread = self.thread_mut(task);
        debug_assert!(thread.state == State::Running);
        (thread.need, thread.mode) = (need, mode);
        let at = thread.core;
        if self.must_yield(at) {
            self.yield_core(at, cx);
        } else {
            self.arm(at, cx);
        }
    }

    /// Puts a thread on its core, between two bursts, to sleep.
    pub fn sleep(&mut self, task: Task, cx: &mut impl Cx<Event, Infallible>) {
        self.leave(task, State::Asleep, cx);
    }

    /// Ends a thread on its core, between two bursts.
    pub fn end(&mut self, task: Task, cx: &mut impl Cx<Event, Infallible>) {
        self.leave(task, State::Ended, cx);
    }

    fn leave(&mut self, task: Task, state: State, cx: &mut impl Cx<Event, Infallible>) {
        let thread = self.thread_mut(task);
        debug_assert!(thread.state == State::Running);
        thread.state = state;
        let at = thread.core;
        self.cores[usize::from(at)].current = None;
        self.pick(at, cx);
    }

    /// Wakes a sleeping thread for a burst. It gets its last core if that is idle, else any idle one, else the queue of
    /// its last core (`select_idle_sibling`). It preempts the thread there if it has run for much less.
    ///
    /// A thread that does not sleep stays as it is.
    pub fn wake(&mut self, task: Task, need: Time, mode: Mode, cx: &mut impl Cx<Event, Infallible>) {
        let from = self.thread(task).core;
        if !self.sleeps(task) {
            return;
        }
        let at = self.select(from);
        self.stats.migrations += u64::from(at != from);
        let (old, new) =
            (self.cores[usize::from(from)].min_vruntime, self.cores[usize::from(at)].min_vruntime);
        let latency = self.latency;
        let thread = self.thread_mut(task);
        // Migration keeps the distance; sleep is worth at most half a latency (`place_entity`).
        let moved = if at == from { thread.vruntime } else { (thread.vruntime + new).saturating_sub(old) };
        thread.vruntime = moved.max(new.saturating_sub(latency / 2));
        (thread.need, thread.mode, thread.core) = (need, mode, at);
        self.enqueue(task, cx.now());
        let core = &self.cores[usize::from(at)];
        match core.current {
            None => self.pick(at, cx),
            Some(current) => {
                let armed = core.armed.is_some();
                if armed {
                    self.account(at, cx.now());
                }
                let ahead = self.thread(current).vruntime.saturating_sub(self.thread(task).vruntime);
                if ahead > self.wakeup_granularity {
                    self.cores[usize::from(at)].resched = true;
                }
                if armed {
                    self.rearm(at, cx);
                }
            }
        }
    }

    /// Ends the spin of a thread whose wait is over: its burst was `burst` long, and the rest is dropped. Its owner is
    /// notified as soon as the thread is on its core.
    pub fn cut(&mut self, task: Task, burst: Time, cx: &mut impl Cx<Event, Infallible>) {
        let at = self.thread(task).core;
        let runs = self.cores[usize::from(at)].current == Some(task);
        let armed = runs && self.cores[usize::from(at)].armed.is_some();
        if armed {
            self.account(at, cx.now());
        }
        // The time beyond the burst is the context switch, which has not been paid yet.
        let thread = self.thread_mut(task);
        thread.need = thread.need.since(burst);
        if armed {
            self.rearm(at, cx);
        }
    }

    /// Selects the core on which a thread wakes.
    fn select(&self, from: u16) -> u16 {
        if self.cores[usize::from(from)].is_idle() {
            return from;
        }
        let count = self.count();
        let others = (1..count).map(|step| (from + step) % count);
        others.into_iter().find(|core| self.cores[usize::from(*core)].is_idle()).unwrap_or(from)
    }

    /// Takes a core for an interrupt, before whatever runs there; returns the time until its handler is done, which may
    /// wait for another handler.
    pub fn interrupt(&mut self, at: u16, cost: Time, cx: &mut impl Cx<Event, Infallible>) -> Time {
        let now = cx.now();
        let armed = self.cores[usize::from(at)].armed.is_some();
        if armed {
            self.account(at, now);
        }
        let core = &mut self.cores[usize::from(at)];
        core.interrupted_until = core.interrupted_until.max(now) + cost;
        self.stats.time[usize::from(at)].interrupt += cost;
        let until = core.interrupted_until;
        if let Some(meter) = &mut self.meter {
            meter.interrupts(until - cost, until);
        }
        if armed {
            self.rearm(at, cx);
        }
        until - now
    }

    /// Runs an event; returns the thread on its core whose burst has ended, if any.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Infallible>) -> Option<Task> {
        let Event::Due(at) = event;
        self.account(at, cx.now());
        let core = &mut self.cores[usize::from(at)];
        core.armed = None;
        let task = core.current?;
        if self.thread(task).need == Time::ZERO {
            return Some(task);
        }
        if self.is_alone(at) {
            self.arm(at, cx);
        } else {
            self.yield_core(at, cx);
        }
        None
    }

    /// Clears the statistics.
    pub fn reset_stats(&mut self, now: Time) {
        for at in 0..self.count() {
            if self.cores[usize::from(at)].armed.is_some() {
                self.account(at, now);
            }
        }
        let time = vec![CoreTime::default(); self.cores.len()];
        self.stats = CoresStats { time, ..CoresStats::default() };
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }
}

// User-visible configuration of a host's cores.

/// Cores of a host and their thread scheduler, Linux's CFS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoresSpec {
    /// Number of cores.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// Period in which every thread of a core gets its turn (`sysctl_sched_latency`), for a one-core machine;
    /// multiplied by 1 + log2 of the core count.
    pub sched_latency: Duration,
    /// Minimum slice, scaled likewise (`sysctl_sched_min_granularity`).
    pub sched_min_granularity: Duration,
    /// Lead in run time of the running thread at which a woken thread preempts it, scaled likewise
    /// (`sysctl_sched_wakeup_granularity`).
    pub sched_wakeup_granularity: Duration,
    /// Core time of a context switch.
    pub context_switch: Duration,
    /// Additional core time of a context switch on an idle core.
    pub idle_exit: Duration,
    /// Power of the processor and its memory; if omitted, the host reports no energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<HostEnergySpec>,
}

impl Default for CoresSpec {
    /// Scheduler values are Linux's (`kernel/sched/fair.c`).
    fn default() -> CoresSpec {
        let us = |us| Duration::new(Time::from_us(us));
        CoresSpec {
            // Chosen.
            count: 8,
            sched_latency: us(6000),
            sched_min_granularity: us(750),
            sched_wakeup_granularity: us(1000),
            // Lee et al., Asynchronous I/O Stack, USENIX ATC 2019.
            context_switch: Duration::new(Time::from_ns(950)),
            // Chosen: what a core needs to leave a shallow idle state (C1).
            idle_exit: us(2),
            energy: None,
        }
    }
}
