//! A step, from its launch until the last core is through.

use super::observe::{Act, Done};
use super::plan::{Share, Step};
use super::{Coprocessor, Event, Out};
use crate::vliw::meter::State;
use engine::{Cx, Time};

/// An order to execute a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    pub(super) tag: u32,
    pub(super) at: Time,
    pub(super) program: usize,
    pub(super) step: usize,
}

/// The step that is executed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    order: Ordered,
    /// When its first core could begin, and when all had their shares.
    launched: Time,
    dealt: Time,
    /// Cores that are not through.
    left: usize,
}

impl Coprocessor {
    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("a step is under way")
    }

    fn step(&self, of: Ordered) -> &Step {
        &self.programs[of.program].steps[of.step]
    }

    /// Launches the next step if none is under way.
    pub(super) fn launch(&mut self, cx: &mut impl Cx<Event, Out>) {
        if self.running.is_some() {
            return;
        }
        let Some(order) = self.waiting.pop_front() else { return };
        self.running = Some(Running { order, launched: Time::ZERO, dealt: Time::ZERO, left: 0 });
        cx.after(self.spec.launch.time(), Event::Launched(order.tag));
    }

    /// All cores are in a step from now on, also those that get no share of it.
    pub(super) fn launched(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let running = self.running();
        running.launched = now;
        let order = running.order;
        self.turn(now, self.spec.cores.into(), State::Idle, State::Waits);
        cx.after(self.step(order).parallel, Event::Dealt(order.tag));
    }

    /// Cores compute their shares.
    pub(super) fn dealt(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let order = self.running().order;
        let step = &self.programs[order.program].steps[order.step];
        let count = step.shares.len();
        for (core, share) in step.shares.iter().enumerate() {
            self.since[core] = now;
            cx.after(share.computes, Event::Computed(core as u16));
        }
        self.turn(now, count, State::Waits, State::Computes);
        let running = self.running();
        (running.dealt, running.left) = (now, count);
    }

    /// A core has computed its share: its caches are written back.
    pub(super) fn computed(&mut self, core: u16, cx: &mut impl Cx<Event, Out>) {
        let (now, at) = (cx.now(), usize::from(core));
        let order = self.running().order;
        let Share { issue, computes, bytes, write_back, .. } = self.step(order).shares[at];
        self.stats.busy[at] += computes;
        self.stats.stalled[at] += computes - issue;
        self.stats.computed[at] += now - self.since[at];
        self.carry(self.since[at], now, bytes);
        let program = &self.programs[order.program].plan.name;
        if let Some(observer) = &mut self.observer {
            let act = Act::Share { core, program, stalled: computes - issue };
            observer.done(&Done { act, from: self.since[at], to: now });
        }
        self.turn(now, 1, State::Computes, State::Waits);
        cx.after(write_back, Event::Clean(core));
    }

    /// A core is through: with the last, the step is over.
    pub(super) fn clean(&mut self, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let running = self.running();
        running.left -= 1;
        if running.left > 0 {
            return;
        }
        let Running { order, launched, dealt, .. } = *running;
        self.running = None;
        self.turn(now, self.spec.cores.into(), State::Waits, State::Idle);
        let took = now - dealt;
        let all = self.step(order).shares.iter().map(|share| share.alone);
        let work = all.clone().fold(Time::ZERO, |sum, one| sum + one);
        let is_short = Some(took) < all.max() || took.times(self.spec.cores.into()) < work;
        self.stats.short += u64::from(is_short);
        self.stats.executing += now - launched;
        let program = &self.programs[order.program].plan.name;
        if let Some(observer) = &mut self.observer {
            let act = Act::Step { program, step: order.step as u32 };
            observer.done(&Done { act, from: launched, to: now });
        }
        let latency = self.spec.link.latency.time();
        self.stats.worked.add(0, now + latency - order.at);
        cx.after(latency, Event::Done(order.tag));
        self.launch(cx);
    }
}
