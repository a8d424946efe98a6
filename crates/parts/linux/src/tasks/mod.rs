//! Threads on cores: run queues, time slices, interrupts.
//!
//! The scheduler is the fair one of Linux 6.1 (`kernel/sched/fair.c`) with threads of one weight. A thread runs in *bursts*: whoever owns it says how much
//! time of a core it needs ([`Cores::run`]), and is told when it has had it ([`Cores::handle`]). Between two bursts the thread is still on its core, in no
//! time at all: its owner must then let it run on, sleep or end.
//!
//! What is left out: weights and groups, the scheduling domains of several sockets, and load balancing but for what an idle core pulls.

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
    /// What happens on cores.
    pub enum Event {
        /// The thread of a core has had its burst, or its slice is over.
        Due(u16),
    }
}

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Task(pub u32);

/// Whose time it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A program's own.
    User,
    /// The kernel's.
    System,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Waits for somebody to wake it.
    Asleep,
    /// Waits for a core.
    Queued,
    /// On a core.
    Running,
    /// Over.
    Ended,
}

#[derive(Clone, Debug)]
struct Thread {
    state: State,
    /// The core that it is on, or was on last.
    core: u16,
    /// Time that it has run, as its core counts, picoseconds.
    vruntime: u64,
    /// What is left of its burst.
    need: Time,
    mode: Mode,
    /// Time that it has had a core.
    ran: Time,
}

/// Time of a core by use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoreTime {
    /// Programs.
    pub user: Time,
    /// The kernel in threads.
    pub system: Time,
    /// Interrupts.
    pub interrupt: Time,
}

/// What the scheduler did.
#[derive(Clone, Debug, Default)]
pub struct CoresStats {
    /// By core.
    pub time: Vec<CoreTime>,
    /// Changes from one thread to another.
    pub switches: u64,
    /// Threads that were taken off their core while they wanted to go on.
    pub preemptions: u64,
    /// Threads that went on elsewhere than before.
    pub migrations: u64,
    /// The longest that a thread has waited for a core.
    pub waited_max: Time,
}

/// Cores, and the threads that run on them.
pub struct Cores {
    threads: Vec<Thread>,
    cores: Vec<Core>,
    /// When a thread that waits for a core began to.
    since: Vec<Time>,
    latency: u64,
    min_granularity: u64,
    wakeup_granularity: u64,
    tick: u64,
    switch: Time,
    wake: Time,
    meter: Option<Box<CoresMeter>>,
    /// What was measured.
    pub stats: CoresStats,
}

impl Cores {
    /// Idle cores without threads; `hz` ticks a second, at which slices end.
    pub fn new(spec: &CoresSpec, hz: u32) -> Cores {
        let count = usize::from(spec.count);
        // `get_update_sysctl_factor`: by the logarithm of the cores, of which eight are counted at most.
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

    /// Cores.
    pub fn count(&self) -> u16 {
        self.cores.len() as u16
    }

    /// A new thread, asleep.
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

    /// The core that a thread is on, or was on last.
    pub fn core_of(&self, task: Task) -> u16 {
        self.thread(task).core
    }

    /// How long a thread that is between two bursts has had a core, changes of threads included.
    pub fn ran(&self, task: Task) -> Time {
        self.thread(task).ran
    }

    /// Whether a thread sleeps.
    pub fn sleeps(&self, task: Task) -> bool {
        self.thread(task).state == State::Asleep
    }

    /// Whether no core has anything to do.
    pub fn idle(&self) -> bool {
        self.cores.iter().all(|core| core.current.is_none())
    }

    fn thread(&self, task: Task) -> &Thread {
        &self.threads[task.0 as usize]
    }

    fn thread_mut(&mut self, task: Task) -> &mut Thread {
        &mut self.threads[task.0 as usize]
    }

    /// A thread that is on its core, between two bursts, needs another one. It may lose its core first.
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

    /// A thread that is on its core, between two bursts, sleeps.
    pub fn sleep(&mut self, task: Task, cx: &mut impl Cx<Event, Infallible>) {
        self.leave(task, State::Asleep, cx);
    }

    /// A thread that is on its core, between two bursts, ends.
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

    /// A thread that sleeps shall run a burst: it gets the core that it was on, if that is idle, else one that is, else the queue of its own
    /// (`select_idle_sibling`), and goes before the thread there if it has run for much less.
    ///
    /// One that does not sleep stays as it is.
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
        // Migration keeps the distance; sleep is worth half a latency at most (`place_entity`).
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

    /// A thread that spins has what it spins for: its burst was so long, and what is left of it is no more. It is told as soon as it is on its
    /// core.
    pub fn cut(&mut self, task: Task, burst: Time, cx: &mut impl Cx<Event, Infallible>) {
        let at = self.thread(task).core;
        let runs = self.cores[usize::from(at)].current == Some(task);
        let armed = runs && self.cores[usize::from(at)].armed.is_some();
        if armed {
            self.account(at, cx.now());
        }
        // What is beyond the burst is the change to the thread, which it has not paid yet.
        let thread = self.thread_mut(task);
        thread.need = thread.need.since(burst);
        if armed {
            self.rearm(at, cx);
        }
    }

    /// The core that a thread wakes on.
    fn select(&self, from: u16) -> u16 {
        if self.cores[usize::from(from)].is_idle() {
            return from;
        }
        let count = self.count();
        let others = (1..count).map(|step| (from + step) % count);
        others.into_iter().find(|core| self.cores[usize::from(*core)].is_idle()).unwrap_or(from)
    }

    /// An interrupt takes a core for a time, before whatever runs there; how long from now until its handler is done, which may wait for another.
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

    /// Runs an event: the thread that has had its burst, if one has. It is on its core.
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

    /// Forgets what was measured.
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

// What a user writes about the cores of a host.

/// The cores of a host and the scheduler of their threads: Linux's fair one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CoresSpec {
    /// Cores.
    #[schemars(range(min = 1, max = 1024))]
    pub count: u16,
    /// In this time every thread of a core gets its turn, on a machine of one core (`sysctl_sched_latency`); 1 + log2 of the cores times as much on
    /// others.
    pub sched_latency: Duration,
    /// The least slice, scaled likewise (`sysctl_sched_min_granularity`).
    pub sched_min_granularity: Duration,
    /// By how much longer the thread of a core must have run for one that wakes to go before it, scaled likewise
    /// (`sysctl_sched_wakeup_granularity`).
    pub sched_wakeup_granularity: Duration,
    /// Core time of a change from one thread to another.
    pub context_switch: Duration,
    /// More of it where the core was idle.
    pub idle_exit: Duration,
    /// What the processor and its memory spend; left out, the host reports no energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<HostEnergySpec>,
}

impl Default for CoresSpec {
    /// The scheduler's are Linux's (`kernel/sched/fair.c`).
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
