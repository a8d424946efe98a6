//! One core: its running thread, its queue and its timers.

use super::{CoreTime, Cores, Event, Mode, State, Task};
use config::{SpecError, StatePower, units::Power};
use engine::{Cx, Mutant, Ticket, Time, planted_nth};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, EnergyReport, Meter};
use std::convert::Infallible;

#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    /// Running thread.
    pub(super) current: Option<Task>,
    /// End of the burst, or of the slice; `None` between two bursts.
    pub(super) armed: Option<Ticket>,
    /// Time up to which the thread's run time has been accounted.
    pub(super) counted: Time,
    /// Time at which the thread came onto the core.
    picked: Time,
    /// Waiting threads, in order of arrival.
    queue: Vec<Task>,
    /// Lower bound of the virtual time of all running or waiting threads (`cfs_rq->min_vruntime`), picoseconds.
    pub(super) min_vruntime: u64,
    /// End of the last interrupt's handler.
    pub(super) interrupted_until: Time,
    /// True if the thread must leave as soon as it can.
    pub(super) resched: bool,
    /// Thread that ran last.
    last: Option<Task>,
}

impl Core {
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_none() && self.queue.is_empty()
    }
}

impl Cores {
    pub(super) fn enqueue(&mut self, task: Task, now: Time) {
        self.since[task.0 as usize] = now;
        let thread = self.thread_mut(task);
        thread.state = State::Queued;
        let at = thread.core;
        self.cores[usize::from(at)].queue.push(task);
    }

    /// Puts the thread that has run least onto a free core; an empty queue pulls from the longest one.
    pub(super) fn pick(&mut self, at: u16, cx: &mut impl Cx<Event, Infallible>) {
        let Some(task) = self.take(at).or_else(|| self.pull(at)) else { return };
        let now = cx.now();
        let waited = now.since(self.since[task.0 as usize]);
        self.stats.waited_max = self.stats.waited_max.max(waited);
        let (switch, wake) = (self.switch, self.wake);
        let core = &mut self.cores[usize::from(at)];
        let mut cost = Time::ZERO;
        if core.last != Some(task) {
            cost += switch;
            self.stats.switches += 1;
        }
        if core.last.is_none() {
            cost += wake;
        }
        core.last = Some(task);
        core.current = Some(task);
        core.picked = now;
        core.resched = false;
        let vruntime = self.threads[task.0 as usize].vruntime;
        core.min_vruntime = core.min_vruntime.max(vruntime);
        let thread = self.thread_mut(task);
        thread.state = State::Running;
        thread.need += cost;
        self.arm(at, cx);
    }

    /// Takes the thread of a core's queue that has run least, the earliest arrival of several.
    fn take(&mut self, at: u16) -> Option<Task> {
        let queue = &self.cores[usize::from(at)].queue;
        let least = (0..queue.len()).min_by_key(|index| (self.thread(queue[*index]).vruntime, *index))?;
        Some(self.cores[usize::from(at)].queue.remove(least))
    }

    /// Pulls a thread from the longest queue to an idle core (`newidle_balance`).
    fn pull(&mut self, at: u16) -> Option<Task> {
        // The idle time begins here, whether or not a thread is pulled.
        let longest = (0..self.count())
            .max_by_key(|core| (self.cores[usize::from(*core)].queue.len(), std::cmp::Reverse(*core)))?;
        let Some(task) = self.take(longest) else {
            self.cores[usize::from(at)].last = None;
            return None;
        };
        let (old, new) =
            (self.cores[usize::from(longest)].min_vruntime, self.cores[usize::from(at)].min_vruntime);
        let thread = self.thread_mut(task);
        thread.vruntime = (thread.vruntime + new).saturating_sub(old);
        thread.core = at;
        self.stats.migrations += 1;
        Some(task)
    }

    /// Accounts the run time of a core's thread since the last account.
    pub(super) fn account(&mut self, at: u16, now: Time) {
        let core = &mut self.cores[usize::from(at)];
        let Some(task) = core.current else { return };
        let (from, ran) = (core.counted, now.since(core.counted));
        core.counted = core.counted.max(now);
        let thread = &mut self.threads[task.0 as usize];
        if let Some(meter) = &mut self.meter {
            meter.ran(thread.mode, from, now);
        }
        debug_assert!(ran <= thread.need);
        thread.need = thread.need.since(ran);
        thread.vruntime += ran.ps();
        thread.ran += ran;
        let time = &mut self.stats.time[usize::from(at)];
        *match thread.mode {
            Mode::User => &mut time.user,
            Mode::System => &mut time.system,
        } += ran;
        let waiting = core.queue.iter().map(|task| self.threads[task.0 as usize].vruntime);
        let least = waiting.fold(self.threads[task.0 as usize].vruntime, u64::min);
        core.min_vruntime = core.min_vruntime.max(least);
    }

    /// Returns whether a core's queue is empty.
    pub(super) fn is_alone(&self, at: u16) -> bool {
        self.cores[usize::from(at)].queue.is_empty()
    }

    /// Returns whether a core's thread, which wants to go on, must leave first.
    pub(super) fn must_yield(&self, at: u16) -> bool {
        self.cores[usize::from(at)].resched && !self.is_alone(at)
    }

    /// Queues a core's thread, which wants to go on.
    pub(super) fn yield_core(&mut self, at: u16, cx: &mut impl Cx<Event, Infallible>) {
        let core = &mut self.cores[usize::from(at)];
        core.armed = None;
        if let Some(task) = core.current.take() {
            self.stats.preemptions += 1;
            self.enqueue(task, cx.now());
        }
        self.pick(at, cx);
    }

    /// Runs a core's thread to the end of its burst or slice.
    pub(super) fn arm(&mut self, at: u16, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let core = &self.cores[usize::from(at)];
        let Some(task) = core.current else { return };
        let begin = now.max(core.interrupted_until);
        let mut end = begin + self.thread(task).need;
        if !core.queue.is_empty() {
            end = end.min(self.slice_end(at, task).max(begin));
        }
        let core = &mut self.cores[usize::from(at)];
        core.counted = begin;
        core.armed = Some(cx.after(end - now, Event::Due(at)));
    }

    /// Runs a core's thread that is already running to its new end.
    pub(super) fn rearm(&mut self, at: u16, cx: &mut impl Cx<Event, Infallible>) {
        if let Some(ticket) = self.cores[usize::from(at)].armed.take() {
            cx.cancel(ticket);
        }
        if self.must_yield(at) {
            self.yield_core(at, cx);
        } else {
            self.arm(at, cx);
        }
    }

    /// Tick at which a thread's slice is over (`check_preempt_tick`): its share of the latency, or of a minimum slice
    /// per thread.
    fn slice_end(&self, at: u16, task: Task) -> Time {
        let core = &self.cores[usize::from(at)];
        let running = core.queue.len() as u64 + 1;
        // `sched_nr_latency`: eight threads with a minimum slice each fill the latency.
        let period = if running > 8 { running * self.min_granularity } else { self.latency };
        let slice = (period / running).max(self.min_granularity);
        let least = core.queue.iter().map(|other| self.thread(*other).vruntime).min().unwrap_or(0);
        let ahead = self.thread(task).vruntime.saturating_sub(least);
        // A thread a whole slice ahead leaves as soon as it has had the minimum slice.
        let has = if ahead > slice { self.min_granularity } else { slice };
        Time::from_ps((core.picked.ps() + has).div_ceil(self.tick) * self.tick)
    }
}

// Energy of a host's cores and memory.

const CORES_ON: usize = 0;

const USER: usize = 1;

const SYSTEM: usize = 2;

const INTERRUPT: usize = 3;

const PACKAGE_ON: usize = 4;

const MEMORY_ON: usize = 5;

const ACTIVITIES: [Activity; 6] = [
    Activity::state("cores on"),
    Activity::state("core in user mode"),
    Activity::state("core in system mode"),
    Activity::state("core in interrupts"),
    Activity::state("package on"),
    Activity::state("memory on"),
];

/// Power of a host's processor and memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostEnergySpec {
    /// Power of a core, busy (a program, the kernel or an interrupt) or idle.
    pub core: StatePower,
    /// Power of the rest of the package: caches, ring, memory and PCIe controllers.
    pub package_on: Power,
    /// Power of all main memory, averaged over what programs do with it.
    pub memory_on: Power,
}

impl HostEnergySpec {
    /// # Errors
    /// If busy power is lower than idle power.
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.core;
        if busy < idle {
            let what = format!("busy power {busy} is lower than idle power {idle}");
            return Err(SpecError::new("core.busy", what));
        }
        Ok(())
    }
}

/// Energy meter of cores: all take the idle power all the time, busy ones more.
#[derive(Clone, Debug)]
pub(super) struct CoresMeter {
    meter: Meter,
    /// Power that work adds, microwatts.
    work: u64,
}

impl CoresMeter {
    /// Creates a meter for `cores` cores.
    pub(super) fn new(costs: &HostEnergySpec, cores: u16) -> CoresMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        let idle = costs.core.idle.microwatts();
        let on = [
            (CORES_ON, idle * u64::from(cores)),
            (PACKAGE_ON, costs.package_on.microwatts()),
            (MEMORY_ON, costs.memory_on.microwatts()),
        ];
        on.into_iter().for_each(|(activity, power)| meter.set_power(activity, Time::ZERO, power));
        CoresMeter { meter, work: costs.core.busy.microwatts().saturating_sub(idle) }
    }

    /// Accounts a thread's run on a core.
    pub(super) fn ran(&mut self, mode: Mode, from: Time, to: Time) {
        let activity = match mode {
            Mode::User => USER,
            Mode::System => SYSTEM,
        };
        let work = if planted_nth(Mutant::UnpaidThread, 16) { 0 } else { self.work };
        self.meter.spend_over(activity, from, to, work);
    }

    /// Accounts an interrupt on a core until `to`, which may lie ahead.
    pub(super) fn interrupts(&mut self, from: Time, to: Time) {
        self.meter.spend_over(INTERRUPT, from, to, self.work);
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Cores {
    /// Time of all cores by use since the measured window began, up to `now`, running threads included.
    pub fn used(&self, now: Time) -> CoreTime {
        let mut used = self.stats.time.iter().fold(CoreTime::default(), |sum, of| CoreTime {
            user: sum.user + of.user,
            system: sum.system + of.system,
            interrupt: sum.interrupt + of.interrupt,
        });
        for core in self.cores.iter().filter(|core| core.armed.is_some()) {
            let Some(task) = core.current else { continue };
            match self.thread(task).mode {
                Mode::User => used.user += now.since(core.counted),
                Mode::System => used.system += now.since(core.counted),
            }
        }
        used
    }

    /// Energy of cores, package and memory since the measured window began; `None` if the spec has no power values.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        let mut meter = CoresMeter::clone(self.meter.as_ref()?);
        for core in self.cores.iter().filter(|core| core.armed.is_some()) {
            if let Some(task) = core.current {
                meter.ran(self.thread(task).mode, core.counted, now);
            }
        }
        Some(meter.meter.report(now))
    }
}
