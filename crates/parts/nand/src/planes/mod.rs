//! Planes behind a network: each does one array operation at a time; a die scheduler orders the waiting ones.

pub mod network;
pub mod spec;

use crate::dies::op::Class;
use crate::dies::sched::{DieView, Scheduler};
use crate::numbers::NONE;
use engine::{Slab, Time};

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Senses a page.
    Read,
    /// Programs a page.
    Program,
}

impl Kind {
    /// Returns the class under which die schedulers handle the operation.
    fn class(self) -> Class {
        match self {
            Kind::Read => Class::HostRead,
            Kind::Program => Class::HostProgram,
        }
    }
}

/// Waiting or active operation, with data of its controller.
#[derive(Clone, Copy, Debug)]
struct Op<T> {
    what: T,
    plane: u32,
    kind: Kind,
    /// Position in the order of arrival; the time follows.
    arrived: u64,
    queued: Time,
    after: u32,
}

/// Work of a plane's array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// No work.
    Idle,
    /// Operation that has waited.
    Op(u32),
    /// Background step of the controller when nothing waits.
    Step,
}

/// Ordered operations.
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

    /// Prepends all of a different queue.
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

/// State of a plane.
#[derive(Clone, Debug)]
pub struct Plane {
    /// Waiting reads and waiting programs.
    queues: [Queue; 2],
    /// Work of the array.
    pub work: Work,
    /// Time until which the data register is occupied.
    pub held: Time,
    /// True if a wake-up of the plane is due then.
    pub woken: bool,
    /// Time that the array has worked since the window began, as far as it is booked; the last booking and its end
    /// follow.
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
    /// Creates `count` idle planes.
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

    /// Returns a plane.
    #[inline]
    pub fn get(&mut self, plane: u32) -> &mut Plane {
        &mut self.planes[plane as usize]
    }

    /// Returns the data of an operation.
    #[inline]
    pub fn op(&self, op: u32) -> &T {
        &self.ops[op].what
    }

    /// Returns the data of an operation, mutably.
    #[inline]
    pub fn op_mut(&mut self, op: u32) -> &mut T {
        &mut self.ops[op].what
    }

    /// Removes a finished operation.
    #[inline]
    pub fn remove(&mut self, op: u32) {
        self.ops.remove(op);
    }

    /// Iterates over all operations, waiting and active.
    pub fn live(&self) -> impl Iterator<Item = &T> {
        self.ops.live().map(|(_, op)| &op.what)
    }

    /// Adds an operation to those that wait for its plane.
    #[inline]
    pub fn join(&mut self, now: Time, plane: u32, kind: Kind, what: T) -> u32 {
        self.arrivals += 1;
        let op = Op { what, plane, kind, arrived: self.arrivals, queued: now, after: NONE };
        let id = self.ops.insert(op);
        self.planes[plane as usize].queues[kind as usize].push(&mut self.ops, id);
        id
    }

    /// Returns the operation that goes next.
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

    /// Chooses between the longest-waiting read and program.
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

    /// Returns whether an operation waits.
    #[inline]
    pub fn waits(&self, plane: u32) -> bool {
        self.planes[plane as usize].queues.iter().any(|queue| queue.first != NONE)
    }

    /// Sets aside a program that would have gone next, after those set aside before.
    pub fn set_aside(&mut self, queue: &mut Queue, op: u32) {
        debug_assert_eq!(self.ops[op].kind, Kind::Program);
        queue.push(&mut self.ops, op);
    }

    /// Iterates over the operations set aside, in order.
    pub fn aside(&self, queue: Queue) -> impl Iterator<Item = &T> {
        let some = |op: u32| (op != NONE).then_some(op);
        let names = std::iter::successors(some(queue.first), move |op| some(self.ops[*op].after));
        names.map(|op| &self.ops[op].what)
    }

    /// Puts the programs set aside for a plane before all waiting ones.
    pub fn resume(&mut self, plane: u32, programs: Queue) {
        debug_assert!(programs.first == NONE || self.ops[programs.first].plane == plane);
        self.planes[plane as usize].queues[Kind::Program as usize].precede(&mut self.ops, programs);
    }

    /// Marks the array as working for `service`, until `until`.
    #[inline]
    pub fn works(&mut self, plane: u32, service: Time, until: Time) {
        let plane = self.get(plane);
        plane.busy += service;
        (plane.last, plane.until) = (service, until);
    }

    /// Returns the number of busy arrays.
    pub fn at_work(&self) -> u64 {
        self.planes.iter().filter(|plane| plane.work != Work::Idle).count() as u64
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        for plane in &mut self.planes {
            plane.busy = plane.until.since(now).min(plane.last);
        }
    }

    /// Returns the number of planes, and the time that their arrays have worked or will have, in picoseconds, since the
    /// window began.
    pub fn booked(&self) -> (u64, u128) {
        (self.planes.len() as u64, self.planes.iter().map(|plane| u128::from(plane.busy.ps())).sum())
    }

    /// Returns the time that arrays have worked since the window began.
    pub fn busy(&self, now: Time) -> Spread {
        Spread::of(self.planes.iter().map(|p| p.busy - p.until.since(now).min(p.last)))
    }
}

// Evenness of the use of resources.

/// Spread of a time over several resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Time of the resource with the least.
    pub min: Time,
    /// Mean time.
    pub mean: Time,
    /// Time of the resource with the most.
    pub max: Time,
}

impl Spread {
    /// Computes minimum, mean and maximum of `times`; zeros for none.
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
        // Program, read, program, read: one at a time, ten microseconds apart.
        for (scheduler, at, expected) in [
            (&Scheduling::oldest, us(30), [0, 1, 2, 3]),
            (&Scheduling::priority, us(30), [1, 3, 0, 2]),
            (&read_first, us(30), [1, 3, 0, 2]),
            // The first program has waited for 60 us: it goes first, the second has not waited for as long.
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
