//! Planes that read independently: each has a read of its own under way, begun when its plane is free.
//!
//! Such a plane is a unit of its own behind the dies in the list of units: it asks for the channel, senses and hands out data
//! like a die. Whatever else a die does - programs, erases, collection - takes all of its planes at once.

use super::Event;
use super::op::Class;
use super::sched::DieView;
use super::{Backend, DieState, PLANE_READS, Want};
use engine::{Cx, Time};
use std::convert::Infallible;

impl Backend {
    /// The unit of a plane.
    fn plane_unit(&self, die: u32, plane: u32) -> u32 {
        self.die_count + die * self.reading_planes + plane
    }

    /// The die of a unit.
    pub(super) fn die_of(&self, unit: u32) -> u32 {
        if unit < self.die_count { unit } else { (unit - self.die_count) / self.reading_planes }
    }

    /// Whether a unit is a plane.
    pub(super) fn is_plane(&self, unit: u32) -> bool {
        unit >= self.die_count
    }

    /// The units of a die: itself, and its planes if they read independently.
    pub(super) fn units(&self, die: u32) -> impl Iterator<Item = u32> + use<> {
        let first = self.plane_unit(die, 0);
        std::iter::once(die).chain(first..first + self.reading_planes)
    }

    fn is_free(&self, unit: u32) -> bool {
        self.dies[unit as usize].state == DieState::Idle
    }

    /// A die whose planes read independently looks for work.
    pub(super) fn next_for_planes(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let mut waiting = self.eligible(die);
        while waiting != 0 && self.is_free(die) {
            let Some(class) = self.pick_among(die, waiting, cx.now()) else { return };
            let reads = !self.units(die).all(|unit| self.is_free(unit));
            if !class.is_plane_read() {
                // Reads that go on are let out first, and no others begin.
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

    /// A unit asks for its channel, or gets it at once.
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

    /// The first operation of the command that a unit may give now that it has its channel.
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

    /// A die that wanted to do something else has its channel, but a read came meanwhile that goes first: its plane gets it.
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

    /// A plane's read occupies its die from now on.
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

    /// A plane's read has left its die.
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
