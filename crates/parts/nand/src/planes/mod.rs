//! Planes behind a network: each does one array operation at a time, on its own; what waits for it is in order of a
//! die scheduler.

pub mod network;
pub mod spec;

use crate::dies::op::Class;
use crate::dies::sched::{DieView, Scheduler};
use crate::numbers::NONE;
use engine::{Slab, Time};

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Senses a page.
    Read,
    /// Programs a page.
    Program,
}

impl Kind {
    /// What die schedulers take it for.
    fn class(self) -> Class {
        match self {
            Kind::Read => Class::HostRead,
            Kind::Program => Class::HostProgram,
        }
    }
}

/// An operation that waits or is at work, with what its controller knows of it.
#[derive(Clone, Copy, Debug)]
struct Op<T> {
    what: T,
    plane: u32,
    kind: Kind,
    /// Place in the order of arrival, and the time.
    arrived: u64,
    queued: Time,
    after: u32,
}

/// What the array of a plane does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Nothing.
    Idle,
    /// An operation that has waited.
    Op(u32),
    /// What its controller does where nothing waits.
    Step,
}

/// Operations in order.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    first: u32,
    last: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { first: NONE, last: NONE }
    }
}

impl Queue {
    fn push<T>(&mut self, ops: &mut Slab<Op<T>>, op: u32) {
        ops[op].after = NONE;
        match std::mem::replace(&mut self.last, op) {
            NONE => self.first = op,
            last => ops[last].after = op,
        }
    }

    fn pop<T>(&mut self, ops: &Slab<Op<T>>) -> Option<u32> {
        let first = (self.first != NONE).then_some(self.first)?;
        self.first = ops[first].after;
        if self.first == NONE {
            self.last = NONE;
        }
        Some(first)
    }

    /// Puts all of another queue in front.
    fn precede<T>(&mut self, ops: &mut Slab<Op<T>>, front: Queue) {
        if front.first == NONE {
            return;
        }
        ops[front.last].after = self.first;
        self.first = front.first;
        if self.last == NONE {
            self.last = front.last;
        }
    }
}

/// A plane.
#[derive(Clone, Debug)]
pub struct Plane {
    /// What waits: reads and programs.
    queues: [Queue; 2],
    /// What its array does.
    pub work: Work,
    /// Until when the data register is not free.
    pub held: Time,
    /// Whether a look at the plane is due then.
    pub woken: bool,
    /// Time that the array has worked since the window began, as far as it is booked; the last of it, and its end.
    busy: Time,
    last: Time,
    until: Time,
}

/// All planes.
pub struct Planes<T> {
    planes: Vec<Plane>,
    ops: Slab<Op<T>>,
    arrivals: u64,
    scheduler: Box<dyn Scheduler>,
}

impl<T: Copy> Planes<T> {
    /// `count` idle planes.
    pub fn new(count: u32, scheduler: Box<dyn Scheduler>) -> Planes<T> {
        let plane = Plane {
            queues: [Queue::default(); 2],
            work: Work::Idle,
            held: Time::ZERO,
            woken: false,
            busy: Time::ZERO,
            last: Time::ZERO,
            until: Time::ZERO,
        };
        Planes { planes: vec![plane; count as usize], ops: Slab::default(), arrivals: 0, scheduler }
    }

    /// A plane.
    #[inline]
    pub fn get(&mut self, plane: u32) -> &mut Plane {
        &mut self.planes[plane as usize]
    }

    /// What is known of an operation.
    #[inline]
    pub fn op(&self, op: u32) -> &T {
        &self.ops[op].what
    }

    /// What is known of an operation, to be changed.
    #[inline]
    pub fn op_mut(&mut self, op: u32) -> &mut T {
        &mut self.ops[op].what
    }

    /// An operation is over.
    #[inline]
    pub fn remove(&mut self, op: u32) {
        self.ops.remove(op);
    }

    /// All operations, waiting and at work.
    pub fn live(&self) -> impl Iterator<Item = &T> {
        self.ops.live().map(|(_, op)| &op.what)
    }

    /// An operation joins those that wait for its plane.
    #[inline]
    pub fn join(&mut self, now: Time, plane: u32, kind: Kind, what: T) -> u32 {
        self.arrivals += 1;
        let op = Op { what, plane, kind, arrived: self.arrivals, queued: now, after: NONE };
        let id = self.ops.insert(op);
        self.planes[plane as usize].queues[kind as usize].push(&mut self.ops, id);
        id
    }

    /// The operation that goes next.
    #[inline]
    pub fn next(&mut self, plane: u32, now: Time) -> Option<u32> {
        let [reads, programs] = &self.planes[plane as usize].queues;
        let kind = match (reads.first, programs.first) {
            (_, NONE) => Kind::Read,
            (NONE, _) => Kind::Program,
            heads => self.pick(heads, now),
        };
        self.planes[plane as usize].queues[kind as usize].pop(&self.ops)
    }

    /// Which of two that have waited longest goes next, the read or the program.
    fn pick(&mut self, (read, program): (u32, u32), now: Time) -> Kind {
        let heads = [(Kind::Read, read), (Kind::Program, program)];
        let (mut oldest, mut waiting) = ([0; Class::COUNT], 0);
        for (kind, op) in heads {
            oldest[kind.class() as usize] = self.ops[op].arrived;
            waiting |= 1 << kind.class() as u8;
        }
        let ops = &self.ops;
        let since = |class| {
            let head = heads.iter().find(|(kind, _)| kind.class() == class);
            head.map_or(Time::MAX, |(_, op)| ops[*op].queued)
        };
        let picked = self.scheduler.pick(&DieView { now, waiting, oldest: &oldest, since: &since });
        if picked == Some(Kind::Program.class()) { Kind::Program } else { Kind::Read }
    }

    /// Whether an operation waits.
    #[inline]
    pub fn waits(&self, plane: u32) -> bool {
        self.planes[plane as usize].queues.iter().any(|queue| queue.first != NONE)
    }

    /// A program that would have gone next is set aside, behind others.
    pub fn set_aside(&mut self, queue: &mut Queue, op: u32) {
        debug_assert_eq!(self.ops[op].kind, Kind::Program);
        queue.push(&mut self.ops, op);
    }

    /// The operations that have been set aside, in order.
    pub fn aside(&self, queue: Queue) -> impl Iterator<Item = &T> {
        let some = |op: u32| (op != NONE).then_some(op);
        let names = std::iter::successors(some(queue.first), move |op| some(self.ops[*op].after));
        names.map(|op| &self.ops[op].what)
    }

    /// Programs of a plane that had been set aside go before all that wait.
    pub fn resume(&mut self, plane: u32, programs: Queue) {
        debug_assert!(programs.first == NONE || self.ops[programs.first].plane == plane);
        self.planes[plane as usize].queues[Kind::Program as usize].precede(&mut self.ops, programs);
    }

    /// The array works for `service`, until `until`.
    #[inline]
    pub fn works(&mut self, plane: u32, service: Time, until: Time) {
        let plane = self.get(plane);
        plane.busy += service;
        (plane.last, plane.until) = (service, until);
    }

    /// Arrays that are at work.
    pub fn at_work(&self) -> u64 {
        self.planes.iter().filter(|plane| plane.work != Work::Idle).count() as u64
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        for plane in &mut self.planes {
            plane.busy = plane.until.since(now).min(plane.last);
        }
    }

    /// Planes, and how long their arrays have worked or will have, in picoseconds, since then.
    pub fn booked(&self) -> (u64, u128) {
        (self.planes.len() as u64, self.planes.iter().map(|plane| u128::from(plane.busy.ps())).sum())
    }

    /// How long arrays have worked since then.
    pub fn busy(&self, now: Time) -> Spread {
        Spread::of(self.planes.iter().map(|p| p.busy - p.until.since(now).min(p.last)))
    }
}

// How evenly resources are used.

/// A time over several resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Of the one with the least.
    pub min: Time,
    /// Their mean.
    pub mean: Time,
    /// Of the one with the most.
    pub max: Time,
}

impl Spread {
    /// Least, mean and most of `times`; zeros of none.
    pub fn of(times: impl Iterator<Item = Time>) -> Spread {
        let (mut spread, mut sum, mut count) = (Spread { min: Time::MAX, ..Spread::default() }, 0u128, 0u128);
        for time in times {
            spread.min = spread.min.min(time);
            spread.max = spread.max.max(time);
            sum += u128::from(time.ps());
            count += 1;
        }
        if count == 0 {
            return Spread::default();
        }
        spread.mean = Time::from_ps((sum / count) as u64);
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dies::sched::Scheduling;

    fn planes(count: u32, scheduler: &Scheduling) -> Planes<()> {
        Planes::new(count, scheduler.build(&()))
    }

    fn drain(planes: &mut Planes<()>, now: Time) -> Vec<u32> {
        std::iter::from_fn(|| planes.next(0, now)).collect()
    }

    #[test]
    fn what_was_set_aside_goes_first_and_in_order() {
        let mut planes = planes(1, &Scheduling::oldest);
        let names: Vec<u32> = (0..5).map(|_| planes.join(Time::ZERO, 0, Kind::Program, ())).collect();
        let mut aside = Queue::default();
        for _ in 0..2 {
            let op = planes.next(0, Time::ZERO).expect("queued");
            planes.set_aside(&mut aside, op);
        }
        assert_eq!(planes.aside(aside).count(), 2);
        planes.resume(0, aside);
        assert_eq!(drain(&mut planes, Time::ZERO), names);
        planes.resume(0, Queue::default());
        assert!(!planes.waits(0));
    }

    #[test]
    fn the_schedulers_of_dies_order_reads_and_programs() {
        let read_first: Scheduling = toml::from_str::<std::collections::BTreeMap<String, Scheduling>>(
            "it = { read_first = { max_wait = \"50us\" } }",
        )
        .expect("a scheduler")["it"]
            .clone();
        let us = Time::from_us;
        // Program, read, program, read: one a time, ten microseconds apart.
        for (scheduler, at, expected) in [
            (&Scheduling::oldest, us(30), [0, 1, 2, 3]),
            (&Scheduling::priority, us(30), [1, 3, 0, 2]),
            (&read_first, us(30), [1, 3, 0, 2]),
            // The first program has waited for 60 us: it goes first, the second has not waited for so long.
            (&read_first, us(60), [0, 1, 3, 2]),
        ] {
            let mut planes = planes(1, scheduler);
            for n in 0..2 {
                planes.join(us(20 * n), 0, Kind::Program, ());
                planes.join(us(20 * n + 10), 0, Kind::Read, ());
            }
            assert_eq!(drain(&mut planes, at), expected, "{} at {at}", scheduler.name());
        }
    }

    #[test]
    fn work_counts_where_it_falls() {
        let us = Time::from_us;
        let mut planes = planes(2, &Scheduling::oldest);
        planes.works(0, us(10), us(10));
        assert_eq!(planes.busy(us(4)), Spread { min: us(0), mean: us(2), max: us(4) });
        planes.reset(us(4));
        assert_eq!(planes.busy(us(9)).max, us(5));
        assert_eq!(planes.busy(us(20)).max, us(6));
    }

    #[test]
    fn a_spread_has_its_ends_and_its_mean() {
        let us = Time::from_us;
        let spread = Spread::of([us(1), us(2), us(6)].into_iter());
        assert_eq!(spread, Spread { min: us(1), mean: us(3), max: us(6) });
        assert_eq!(Spread::of(std::iter::empty()), Spread::default());
    }
}
