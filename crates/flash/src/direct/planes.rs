//! Planes: one array operation at a time, the operations that wait.

use super::blocks::NONE;
use super::layout::Place;
use super::spec::ArrayOrder;
use super::stats::Spread;
use kernel::{Slab, Time};

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Reads a page for commands.
    Read,
    /// Programs the page of a register.
    Program {
        /// The register.
        register: u32,
    },
}

/// An operation on a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) page: u64,
    /// Lines that a read is for.
    pub(super) lines: u64,
    /// First command of a read.
    pub(super) first: u32,
    /// Until when the data register holds what a read has sensed; `MAX` before it is sensed.
    pub(super) held: Time,
    after: u32,
}

impl Op {
    pub(super) fn new(kind: Kind, place: Place, page: u64, lines: u64, first: u32) -> Op {
        Op { kind, place, page, lines, first, held: Time::MAX, after: NONE }
    }
}

/// What the array of a plane does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Idle,
    /// An operation that a command or a register waits for.
    Op(u32),
    /// A step of the plane's merge.
    Step,
}

/// Operations in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    first: u32,
    last: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { first: NONE, last: NONE }
    }
}

impl Queue {
    pub(super) fn push(&mut self, ops: &mut Slab<Op>, op: u32) {
        ops[op].after = NONE;
        match std::mem::replace(&mut self.last, op) {
            NONE => self.first = op,
            last => ops[last].after = op,
        }
    }

    pub(super) fn pop(&mut self, ops: &Slab<Op>) -> Option<u32> {
        let first = (self.first != NONE).then_some(self.first)?;
        self.first = ops[first].after;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(first)
    }

    /// Puts all of another queue in front.
    fn precede(&mut self, ops: &mut Slab<Op>, front: Queue) {
        if front.first == NONE {
            return;
        }
        ops[front.last].after = self.first;
        self.first = front.first;
        if self.last == NONE {
            self.last = front.last;
        }
    }

    /// The operations, in order.
    pub(super) fn iter(self, ops: &Slab<Op>) -> impl Iterator<Item = u32> {
        let some = |op: u32| (op != NONE).then_some(op);
        std::iter::successors(some(self.first), move |op| some(ops[*op].after))
    }
}

/// A plane.
#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// What waits: reads and programs, or all in the first queue.
    queues: [Queue; 2],
    pub(super) work: Work,
    /// Until when the data register is not free.
    pub(super) held: Time,
    /// Whether a look at the plane is due then.
    pub(super) woken: bool,
    /// Time that the array has worked since the window began, as far as it is booked; the last of it, and its end.
    busy: Time,
    last: Time,
    until: Time,
}

/// All planes.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    planes: Vec<Plane>,
    pub(super) ops: Slab<Op>,
    order: ArrayOrder,
}

impl Planes {
    pub(super) fn new(count: u32, order: ArrayOrder) -> Planes {
        let plane = Plane {
            queues: [Queue::default(); 2],
            work: Work::Idle,
            held: Time::ZERO,
            woken: false,
            busy: Time::ZERO,
            last: Time::ZERO,
            until: Time::ZERO,
        };
        Planes { planes: vec![plane; count as usize], ops: Slab::default(), order }
    }

    #[inline]
    pub(super) fn get(&mut self, plane: u32) -> &mut Plane {
        &mut self.planes[plane as usize]
    }

    fn queue_of(&self, kind: Kind) -> usize {
        usize::from(self.order == ArrayOrder::reads_first && kind != Kind::Read)
    }

    /// An operation joins those that wait for its plane.
    #[inline]
    pub(super) fn join(&mut self, op: Op) -> u32 {
        let queue = self.queue_of(op.kind);
        let id = self.ops.insert(op);
        self.planes[op.place.plane as usize].queues[queue].push(&mut self.ops, id);
        id
    }

    /// The operation that goes next.
    #[inline]
    pub(super) fn next(&mut self, plane: u32) -> Option<u32> {
        let ops = &self.ops;
        self.planes[plane as usize].queues.iter_mut().find_map(|queue| queue.pop(ops))
    }

    /// Whether an operation waits.
    #[inline]
    pub(super) fn waits(&self, plane: u32) -> bool {
        self.planes[plane as usize].queues.iter().any(|queue| queue.first != NONE)
    }

    /// Programs that had been set aside go before all that wait.
    pub(super) fn resume(&mut self, plane: u32, programs: Queue) {
        let queue = self.queue_of(Kind::Program { register: NONE });
        self.planes[plane as usize].queues[queue].precede(&mut self.ops, programs);
    }

    /// The array works for `service`, until `until`.
    #[inline]
    pub(super) fn works(&mut self, plane: u32, service: Time, until: Time) {
        let plane = self.get(plane);
        plane.busy += service;
        (plane.last, plane.until) = (service, until);
    }

    /// Starts the measured window.
    pub(super) fn reset(&mut self, now: Time) {
        for plane in &mut self.planes {
            plane.busy = plane.until.since(now).min(plane.last);
        }
    }

    /// How long arrays have worked since then.
    pub(super) fn busy(&self, now: Time) -> Spread {
        Spread::of(self.planes.iter().map(|p| p.busy - p.until.since(now).min(p.last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: Kind) -> Op {
        Op::new(kind, Place { plane: 0, slot: 0, index: 0 }, 0, 0, NONE)
    }

    #[test]
    fn what_was_set_aside_goes_first_and_in_order() {
        let mut planes = Planes::new(1, ArrayOrder::fifo);
        let program = op(Kind::Program { register: 0 });
        let names: Vec<u32> = (0..5).map(|_| planes.join(program)).collect();
        let mut aside = Queue::default();
        for _ in 0..2 {
            let op = planes.next(0).expect("queued");
            aside.push(&mut planes.ops, op);
        }
        assert_eq!(aside.iter(&planes.ops).collect::<Vec<_>>(), names[..2]);
        planes.resume(0, aside);
        let order: Vec<u32> = std::iter::from_fn(|| planes.next(0)).collect();
        assert_eq!(order, names);
        planes.resume(0, Queue::default());
        assert!(!planes.waits(0));
    }

    #[test]
    fn reads_pass_programs_if_they_may() {
        for (order, expected) in [(ArrayOrder::fifo, [0, 1, 2, 3]), (ArrayOrder::reads_first, [1, 3, 0, 2])] {
            let mut planes = Planes::new(1, order);
            for _ in 0..2 {
                planes.join(op(Kind::Program { register: 0 }));
                planes.join(op(Kind::Read));
            }
            assert_eq!(std::iter::from_fn(|| planes.next(0)).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn work_counts_where_it_falls() {
        let us = Time::from_us;
        let mut planes = Planes::new(2, ArrayOrder::fifo);
        planes.works(0, us(10), us(10));
        assert_eq!(planes.busy(us(4)), Spread { min: us(0), mean: us(2), max: us(4) });
        planes.reset(us(4));
        assert_eq!(planes.busy(us(9)).max, us(5));
        assert_eq!(planes.busy(us(20)).max, us(6));
    }
}
