//! Search of the dynamic policies: an idle plane, a plane whose write shares a command, the least loaded die.
//!
//! Planes of idle dies come first, and equally a plane whose next page is at the same place in its block as a program
//! not yet begun on another plane of the die: both go in one multi-plane command. The order decides between the two. If
//! every die is busy, the write joins a waiting command, or begins one at the least loaded die. The search goes through
//! words of bits; unusable planes are skipped, and at most `look` busy dies are examined.

use super::{Backend, Ftl, Stream};
use config::units::Duration;
use engine::{Snapshot, Time};
use nand::dies::{MultiPlane, Wanted};
use nand::geometry::{Digit, Geometry};
use nand::numbers::Positions;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Maximum number of planes in one multi-plane command.
const MOST: usize = 16;

/// Parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Time that a free die waits for writes that complete its next multi-plane command; 0: only for writes of the same
    /// instant.
    pub gather: Duration,
    /// Number of busy dies examined for the least loaded one: the cost of a decision when no plane is idle.
    #[schemars(range(min = 1))]
    pub look: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { gather: Duration::new(Time::from_us(5)), look: 16 }
    }
}

/// Search state.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    look: u32,
    gather: Time,
    /// Planes in search order; the position of each follows.
    order: Vec<u32>,
    position: Vec<u32>,
    /// Length of the range of positions that one address may choose among.
    span: u32,
    /// Position at which the search begins, by range.
    turns: Vec<u32>,
    /// Number of programs in the command that was begun last, by set of planes that share commands.
    sizes: Vec<u8>,
    /// Planes beside one with a program that may not have begun.
    beside: Positions,
}

/// Options of a plane beside one that has programs.
enum Beside {
    /// Joins a command that has not begun.
    Joins,
    /// Cannot join.
    Differs,
    /// Begun: nothing waits there any more.
    Begun,
}

impl Scan {
    /// Creates a search. The digits in `free` are chosen, in stripe order; the address decides the others.
    pub(super) fn new(params: &Params, free: &[Digit], geo: &Geometry) -> Scan {
        let (mut order, fixed): (Vec<Digit>, Vec<Digit>) =
            geo.shape.stripe.iter().partition(|digit| free.contains(digit));
        let span = order.iter().map(|digit| geo.shape.count(*digit)).product();
        order.extend(fixed);
        let order = geo.planes_in_order([order[0], order[1], order[2], order[3]]);
        let mut position = vec![0; order.len()];
        (0u32..).zip(&order).for_each(|(at, plane)| position[*plane as usize] = at);
        Scan {
            look: params.look.max(1),
            gather: params.gather.time(),
            span,
            turns: (0..geo.plane_count / span).map(|range| range * span).collect(),
            sizes: vec![0; (geo.plane_count / geo.shape.planes) as usize],
            beside: Positions::none(geo.plane_count),
            order,
            position,
        }
    }

    pub(super) fn wanted(&self) -> Wanted {
        Wanted { order: self.order.clone(), gather: self.gather }
    }

    /// Returns the number of sets of positions that addresses are restricted to.
    pub(super) fn ranges(&self) -> usize {
        self.turns.len()
    }

    /// Returns the set of positions that an address may go to.
    #[inline]
    pub(super) fn range(&self, stripe: u64, geo: &Geometry) -> usize {
        let plane = geo.group_at(stripe) * geo.lanes;
        (self.position[plane as usize] / self.span) as usize
    }

    /// Returns the group for a write to the positions of a range.
    pub(super) fn place(&mut self, range: usize, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32 {
        if ftl.geo.groups == 1 {
            return 0;
        }
        let view = View { stream, ftl, backend };
        let all = range as u32 * self.span..(range as u32 + 1) * self.span;
        let turn = self.turns[range];
        let found = self.at_once(&all, turn, &view).or_else(|| self.least_loaded(&all, turn, &view));
        let Some((position, group)) = found else {
            return self.order[turn as usize] / ftl.geo.lanes;
        };
        self.turns[range] = if position + 1 < all.end { position + 1 } else { all.start };
        group
    }

    /// Returns an idle plane, or one that joins a command that is still open; otherwise one that joins a waiting
    /// command.
    fn at_once(&mut self, all: &Range<u32>, turn: u32, view: &View) -> Option<(u32, u32)> {
        let idle = view.backend.idle.positions();
        let mut waits: Option<(u32, u32)> = None;
        let mut seen = 0;
        for part in [turn..all.end, all.start..turn] {
            let mut from = part.start;
            loop {
                let beside = (seen < self.look).then_some(&self.beside);
                let Some(position) = idle.first(beside, from..part.end) else { break };
                from = position + 1;
                let plane = self.order[position as usize];
                if idle.has(position) {
                    if let Some(group) = self.begin(plane, all, true, view) {
                        return Some((position, group));
                    }
                    continue;
                }
                match view.joins(plane) {
                    Beside::Begun => self.beside.set(position, false),
                    Beside::Differs => seen += 1,
                    Beside::Joins => {
                        let die = view.die(plane);
                        if view.backend.is_open(die) {
                            return Some((position, self.join(plane, view)));
                        }
                        seen += 1;
                        let load = view.backend.load(die);
                        if waits.is_none_or(|(least, _)| load < least) {
                            waits = Some((load, position));
                        }
                    }
                }
            }
        }
        waits.map(|(_, position)| (position, self.join(self.order[position as usize], view)))
    }

    /// Returns the least loaded of the next few dies with space.
    fn least_loaded(&mut self, all: &Range<u32>, turn: u32, view: &View) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        let mut seen = 0;
        for position in (turn..all.end).chain(all.start..turn) {
            let plane = self.order[position as usize];
            if !view.ftl.can_reserve(plane / view.ftl.geo.lanes, view.stream) {
                continue;
            }
            let load = view.backend.load(view.die(plane));
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, position));
            }
            seen += 1;
            if seen == self.look {
                break;
            }
        }
        let (_, position) = best?;
        let group = self.begin(self.order[position as usize], all, false, view)?;
        Some((position, group))
    }

    /// Starts a command on that plane or another one of its set; returns the group of its first program.
    ///
    /// Planes whose next pages are at the same place in their blocks can proceed together. Those that lag behind come
    /// first, so that all planes reach the same place. But an idle die keeps together as many planes as were last
    /// written together, if they exist: a host with as many outstanding writes finds them again.
    fn begin(&mut self, plane: u32, all: &Range<u32>, idle: bool, view: &View) -> Option<u32> {
        let geo = &view.ftl.geo;
        let set = plane / geo.shape.planes;
        let wanted = if idle { usize::from(self.sizes[set as usize]) } else { 0 };
        let group = if geo.lanes > 1 {
            let group = plane / geo.lanes;
            view.ftl.can_reserve(group, view.stream).then_some(group)?
        } else {
            self.choose(set, plane, wanted, all, view)?
        };
        self.sizes[set as usize] = 1;
        if view.backend.shares() != MultiPlane::Off {
            let first = set * geo.shape.planes;
            for mate in (first..first + geo.shape.planes).filter(|mate| geo.lanes > 1 || *mate != group) {
                self.beside.set(self.position[mate as usize], true);
            }
        }
        Some(group)
    }

    /// Returns the plane of a set that a command begins on, if each plane has its own blocks.
    fn choose(&self, set: u32, from: u32, wanted: usize, all: &Range<u32>, view: &View) -> Option<u32> {
        let geo = &view.ftl.geo;
        let (first, planes) = (set * geo.shape.planes, geo.shape.planes);
        let mut rows = [None; MOST];
        for (n, row) in rows.iter_mut().enumerate().take(planes as usize) {
            let plane = first + n as u32;
            if all.contains(&self.position[plane as usize]) && view.ftl.can_reserve(plane, view.stream) {
                *row = view.ftl.next_program(plane, view.stream).map(|(_, _, row)| row);
            }
        }
        let in_block = geo.programs_per_block;
        let ahead = |a: u32, b: u32| if a >= b { a - b } else { a + in_block - b };
        let others = |row: u32| rows.iter().flatten().filter(move |other| **other != row);
        // The plane with the widest gap behind it lags behind all others.
        let gap = |row: u32| others(row).map(|other| ahead(row, *other)).min().unwrap_or(in_block);
        let lagging = rows.iter().flatten().copied().max_by_key(|row| (gap(*row), u32::MAX - row))?;
        let size = |row: u32| rows.iter().flatten().filter(|other| **other == row).count();
        let row = rows.iter().flatten().copied().max_by_key(|row| {
            let together = size(*row).min(wanted);
            (together, in_block - ahead(*row, lagging))
        })?;
        // Among equals, the plane with more space, then the next in turn.
        let planes_of_row = (0..planes).filter(|n| rows[*n as usize] == Some(row)).map(|n| first + n);
        let behind = |plane: u32| (plane + planes - from % planes) % planes;
        planes_of_row.min_by_key(|plane| (u32::MAX - view.ftl.free(*plane), behind(*plane)))
    }

    /// Adds one more program to a command.
    fn join(&mut self, plane: u32, view: &View) -> u32 {
        let geo = &view.ftl.geo;
        let set = (plane / geo.shape.planes) as usize;
        self.sizes[set] = self.sizes[set].saturating_add(1);
        if geo.lanes == 1 {
            self.beside.set(self.position[plane as usize], false);
        }
        plane / geo.lanes
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.turns.save(out);
        self.sizes.save(out);
    }

    /// Restores the state. Nothing waits in a loaded device, so planes beside others are cleared.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.turns = Vec::load(input).filter(|t: &Vec<u32>| t.len() == self.turns.len())?;
        self.sizes = Vec::load(input).filter(|s: &Vec<u8>| s.len() == self.sizes.len())?;
        Some(())
    }
}

/// Inputs of a decision.
struct View<'a> {
    stream: Stream,
    ftl: &'a Ftl,
    backend: &'a Backend,
}

impl View<'_> {
    fn die(&self, plane: u32) -> u32 {
        self.ftl.geo.die_of_plane(plane).0
    }

    /// Returns whether the next program of a plane's group shares a command with one that waits at the die.
    fn joins(&self, plane: u32) -> Beside {
        let geo = &self.ftl.geo;
        let (die, in_die) = geo.die_of_plane(plane);
        let first = in_die / geo.shape.planes * geo.shape.planes;
        let waiting = self.backend.waiting_programs(die) >> first;
        let mates = u32::from(waiting) & ((1 << geo.shape.planes) - 1);
        if mates == 0 {
            return Beside::Begun;
        }
        let group = plane / geo.lanes;
        let next = self.ftl.next_program(group, self.stream);
        let Some((target, block, row)) = next.filter(|_| self.ftl.can_reserve(group, self.stream)) else {
            return Beside::Differs;
        };
        let page = geo.page_of_program(die, row);
        let target = geo.die_of_plane(target).1;
        let goes_with = |mate: u32| {
            let same_block = |other| self.backend.shares() == MultiPlane::SamePage || other == block;
            let last = self.backend.last_program(die, mate);
            last.is_some_and(|(other, at)| at == page && same_block(other))
        };
        let mut mates = (0..geo.shape.planes).filter(|n| mates >> n & 1 == 1).map(|n| first + n);
        if mates.any(|mate| mate != target && goes_with(mate)) { Beside::Joins } else { Beside::Differs }
    }
}
