//! Orders of programs to coprocessors: a call of the driver, sleep, an interrupt.
//!
//! The driver's steps cost what those of a drive's driver cost ([`CostsSpec`](super::CostsSpec)): the call and the request before the device hears of it, the
//! interrupt and the completion after it is done, on the core that the thread slept on. What the device itself needs is the device's.

use super::frame::Frame;
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::tasks::Task;
use engine::{Cx, Inside};
use proto::file::Program;
use proto::offload::Order;

/// An order at a coprocessor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    /// The thread that sleeps until it is done.
    task: Task,
    /// Whether it is, as far as the kernel knows.
    pub(super) done: bool,
}

impl<P: Program> Host<P> {
    /// A thread that has paid for the driver's work gives a coprocessor an order.
    pub(super) fn order(
        &mut self,
        task: Task,
        device: u16,
        order: Order,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Order { device, order });
        }
        let tag = self.orders.insert(Ordered { task, done: false });
        cx.emit(Out::Order { tag, device, order });
        self.wait_for(task, Wait::Order(tag), Frame::Ordered(tag))
    }

    /// A coprocessor has done an order, and interrupts.
    pub fn ordered(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        let core = self.cores.core_of(self.orders[tag].task);
        let cost = self.costs.interrupt + self.costs.complete;
        let delay = self.cores.interrupt(core, cost, &mut Inside::of(cx));
        cx.after(delay, Event::Ordered(tag));
    }

    /// The handler of the interrupt wakes who waits.
    pub(super) fn order_ended(&mut self, tag: u32, cx: &mut impl Cx<Event, Out>) {
        self.stats.orders += 1;
        let at = &mut self.orders[tag];
        at.done = true;
        let task = at.task;
        self.wake(task, cx);
    }

    /// A thread looks whether its order is done.
    pub(super) fn wait_order(&mut self, task: Task, tag: u32) -> Step {
        if !self.orders[tag].done {
            return self.wait_for(task, Wait::Order(tag), Frame::Ordered(tag));
        }
        self.orders.remove(tag);
        Step::Again
    }
}
