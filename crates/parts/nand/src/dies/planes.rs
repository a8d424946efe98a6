//! Planes of dies: independently reading planes, and idle planes.
//!
//! Each independently reading plane has its own read in flight, begun when the plane is free.
//!
//! Such a plane is a separate unit after the dies in the list of units: it requests the channel, senses and hands out
//! data like a die. All other work of a die - programs, erases, garbage collection - takes all of its planes at once.

use super::op::Class;
use super::sched::DieView;
use super::{Backend, DieState, Event, MultiPlane, PLANE_READS, Want};
use crate::{geometry::Geometry, numbers::Positions};
use engine::{Cx, Time};
use std::convert::Infallible;

impl Backend {
    /// Returns the unit of a plane.
    fn plane_unit(&self, die: u32, plane: u32) -> u32 {
        self.die_count + die * self.reading_planes + plane
    }

    /// Returns the die of a unit.
    pub(super) fn die_of(&self, unit: u32) -> u32 {
        if unit < self.die_count { unit } else { (unit - self.die_count) / self.reading_planes }
    }

    /// Returns whether a unit is a plane.
    pub(super) fn is_plane(&self, unit: u32) -> bool {
        unit >= self.die_count
    }

    /// Returns the units of a die: itself, and its planes if they read independently.
    pub(super) fn units(&self, die: u32) -> impl Iterator<Item = u32> + use<> {
        let first = self.plane_unit(die, 0);
        std::iter::once(die).chain(first..first + self.reading_planes)
    }

    fn is_free(&self, unit: u32) -> bool {
        self.dies[unit as usize].state == DieState::Idle
    }

    /// Looks for work for a die whose planes read independently.
    pub(super) fn next_for_planes(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let mut waiting = self.eligible(die);
        while waiting != 0 && self.is_free(die) {
            let Some(class) = self.pick_among(die, waiting, cx.now()) else { return };
            let reads = !self.units(die).all(|unit| self.is_free(unit));
            if !class.is_plane_read() {
                // Reads in flight finish first, and no others begin.
                if !reads && !self.gathers(die, cx) {
                    let want = Want::of(self.queues.head(&self.ops, die, class));
                    self.begin(die, want, cx);
                }
                return;
            }
            for plane in 0..self.reading_planes {
                let unit = self.plane_unit(die, plane);
                if self.is_free(unit) && self.queues.is_waiting(die, class, plane) {
                    self.begin(unit, Want::Read, cx);
                }
            }
            waiting &= !(1 << class as u16);
        }
        if self.eligible(die) == 0 && self.units(die).all(|unit| self.is_free(unit)) {
            self.out_of_work(die, cx);
        }
    }

    /// Requests the channel for a unit, or gets it at once.
    fn begin(&mut self, unit: u32, want: Want, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[unit as usize];
        d.state = DieState::Asking;
        let c = &self.channels[d.channel as usize];
        if cx.now() >= c.busy_until && !c.is_wanted() {
            self.grant_command(unit, cx);
        } else {
            self.ask(unit, want, cx);
        }
    }

    fn pick_among(&mut self, die: u32, waiting: u16, now: Time) -> Option<Class> {
        let (queues, ops) = (&self.queues, &self.ops);
        let since = |class: Class| queues.waiting_since(ops, die, class);
        self.scheduler.pick(&DieView { now, waiting, oldest: queues.oldest(die), since: &since })
    }

    /// Returns the first operation of the command that a unit may issue now that it has its channel.
    pub(super) fn take_for(&mut self, unit: u32, now: Time) -> Option<u32> {
        let die = self.die_of(unit);
        if !self.is_plane(unit) {
            let class = self.pick(die, now)?;
            return Some(self.queues.take(&mut self.ops, die, class, self.sharing));
        }
        let plane = unit - self.plane_unit(die, 0);
        let waiting = self.queues.classes_of(die, plane) & self.eligible(die) & PLANE_READS;
        let class = self.pick_among(die, waiting, now)?;
        Some(self.queues.take_alone(&mut self.ops, die, class, plane))
    }

    /// Yields the channel of a die to a plane whose read came meanwhile and goes first.
    pub(super) fn yields_to_read(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) -> bool {
        if self.reading_planes == 0 || self.is_plane(die) {
            return false;
        }
        match self.pick(die, cx.now()) {
            Some(class) if class.is_plane_read() => {
                self.dies[die as usize].state = DieState::Idle;
                let unit = self.plane_unit(die, self.queues.lead(die, class));
                self.dies[unit as usize].state = DieState::Asking;
                self.grant_command(unit, cx);
                self.next_for_planes(die, cx);
                true
            }
            _ => false,
        }
    }

    /// Marks the die as occupied by a plane's read from now on.
    pub(super) fn occupy(&mut self, unit: u32, now: Time) {
        let die = self.die_of(unit);
        let d = &mut self.dies[die as usize];
        d.reading += 1;
        if d.reading == 1 && d.suspended.is_none() {
            d.busy_since = now;
            if let Some(meter) = &mut self.meter {
                meter.die_begins(now);
            }
        }
    }

    /// Marks the end of a plane's read in its die.
    pub(super) fn vacate(&mut self, unit: u32, now: Time) {
        let die = self.die_of(unit);
        let d = &mut self.dies[die as usize];
        d.reading -= 1;
        if d.reading == 0 && d.suspended.is_none() {
            d.busy += now - d.busy_since;
            if let Some(meter) = &mut self.meter {
                meter.die_ends(now);
            }
        }
    }
}

// Planes of idle dies, for an allocator that prefers them; and the time that a die waits for programs that could share
// its next command.

/// Requirements of an allocator on the back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Planes of the device, in the order in which the allocator tries them.
    pub order: Vec<u32>,
    /// Time that a free die waits for host programs that complete a multi-plane command.
    pub gather: Time,
}

/// Planes of dies without work, by their position in an allocator's order.
#[derive(Clone, Debug)]
pub struct IdlePlanes {
    /// Position of each plane; empty if unused.
    position: Vec<u32>,
    idle: Positions,
    die_planes: u32,
    /// True if the planes of a die are in the set.
    dies: Vec<bool>,
}

impl IdlePlanes {
    /// Creates the set with all planes idle.
    pub(super) fn new(geo: &Geometry, wanted: Option<&Wanted>) -> IdlePlanes {
        let order = wanted.map_or(&[][..], |w| &w.order);
        let mut position = vec![0; order.len()];
        let mut idle = Positions::none(order.len() as u32);
        for (at, plane) in order.iter().enumerate() {
            position[*plane as usize] = at as u32;
            idle.set(at as u32, true);
        }
        let dies = if order.is_empty() { 0 } else { geo.die_count as usize };
        IdlePlanes { position, idle, die_planes: geo.die_planes, dies: vec![true; dies] }
    }

    #[inline]
    pub(super) fn note(&mut self, die: u32, is_idle: bool) {
        if self.dies.get(die as usize).is_some_and(|was| *was != is_idle) {
            self.change(die, is_idle);
        }
    }

    fn change(&mut self, die: u32, is_idle: bool) {
        self.dies[die as usize] = is_idle;
        let first = die * self.die_planes;
        for plane in first..first + self.die_planes {
            self.idle.set(self.position[plane as usize], is_idle);
        }
    }

    /// Returns the set.
    #[inline]
    pub fn positions(&self) -> &Positions {
        &self.idle
    }
}

impl Backend {
    /// Returns whether a die waits for further host programs before it takes those that it has.
    pub(super) fn gathers(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) -> bool {
        let Some(window) = self.gather else { return false };
        if self.dies[die as usize].has_gathered
            || self.pick(die, cx.now()) != Some(Class::HostProgram)
            || self.queues.fills_command(&self.ops, die, Class::HostProgram, self.sharing)
        {
            return false;
        }
        let d = &mut self.dies[die as usize];
        if d.gathering.is_none() {
            d.gathering = Some(cx.late(window, Event::Gathered(die)));
        }
        true
    }

    /// Handles a die that has waited long enough.
    pub(super) fn gathered(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[die as usize];
        d.gathering = None;
        d.has_gathered = true;
        if d.state == DieState::Idle {
            self.next_for(die, cx);
        }
    }

    /// Ends the wait of a die that takes host programs: the next ones are waited for anew.
    #[inline]
    pub(super) fn ends_gathering(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[die as usize];
        d.has_gathered = false;
        if let Some(ticket) = d.gathering.take() {
            cx.cancel(ticket);
        }
    }

    /// Returns whether the next command of a die is still undecided.
    #[inline]
    pub fn is_open(&self, die: u32) -> bool {
        matches!(self.dies[die as usize].state, DieState::Idle | DieState::Asking)
    }

    /// Returns the planes of a die at which host programs wait.
    #[inline]
    pub fn waiting_programs(&self, die: u32) -> u16 {
        self.queues.planes(die, Class::HostProgram)
    }

    /// Returns block and page of the last host program that waits at a plane.
    #[inline]
    pub fn last_program(&self, die: u32, plane: u32) -> Option<(u32, u32)> {
        self.queues.last(&self.ops, die, Class::HostProgram, plane as usize)
    }

    /// Returns the rule of multi-plane commands.
    #[inline]
    pub fn shares(&self) -> MultiPlane {
        self.sharing.rule
    }
}
