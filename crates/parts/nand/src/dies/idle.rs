//! Planes of dies that have nothing to do, for an allocator that looks for them; and how long a die waits for programs
//! that could share its next command.

use super::Event;
use super::{Backend, Class, DieState, MultiPlane};
use crate::geometry::Geometry;
use crate::positions::Positions;
use engine::{Cx, Time};
use std::convert::Infallible;

/// What an allocator wants of the back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The device's planes in the order in which it looks at them.
    pub order: Vec<u32>,
    /// How long a free die waits for host programs that fill up a multi-plane command.
    pub gather: Time,
}

/// Planes of dies without work, by their place in an allocator's order.
#[derive(Clone, Debug)]
pub struct IdlePlanes {
    /// Place of each plane; empty if nobody looks.
    position: Vec<u32>,
    idle: Positions,
    die_planes: u32,
    /// Whether the planes of a die are in the set.
    dies: Vec<bool>,
}

impl IdlePlanes {
    /// All planes idle.
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

    /// The set.
    #[inline]
    pub fn positions(&self) -> &Positions {
        &self.idle
    }
}

impl Backend {
    /// Whether a die waits for others before it takes the host programs that it has.
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

    /// A die has waited long enough.
    pub(super) fn gathered(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[die as usize];
        d.gathering = None;
        d.has_gathered = true;
        if d.state == DieState::Idle {
            self.next_for(die, cx);
        }
    }

    /// The die takes host programs: the next ones are waited for anew.
    #[inline]
    pub(super) fn ends_gathering(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[die as usize];
        d.has_gathered = false;
        if let Some(ticket) = d.gathering.take() {
            cx.cancel(ticket);
        }
    }

    /// Whether what a die takes next is still open.
    #[inline]
    pub fn is_open(&self, die: u32) -> bool {
        matches!(self.dies[die as usize].state, DieState::Idle | DieState::Asking)
    }

    /// Planes of a die at which host programs wait.
    #[inline]
    pub fn waiting_programs(&self, die: u32) -> u16 {
        self.queues.planes(die, Class::HostProgram)
    }

    /// Block and page of the last host program that waits at a plane.
    #[inline]
    pub fn last_program(&self, die: u32, plane: u32) -> Option<(u32, u32)> {
        self.queues.last(&self.ops, die, Class::HostProgram, plane as usize)
    }

    /// Which operations share a command.
    #[inline]
    pub fn shares(&self) -> MultiPlane {
        self.sharing.rule
    }
}
