//! Threads that go through a microblock together: lanes of a warp, one instruction for all.

use crate::affine::{Affine, DEPTH, Point};
use crate::axis::{Axis, Place, around};
use crate::microblock::{Loop, Microblock, Node};

/// Threads of a warp.
pub const LANES: usize = 32;

/// How a microblock is dealt out to threads: each has one value of up to two axes.
///
/// `x` is the innermost axis that has a value for each lane of a warp: lanes beside each other have elements beside each other, as far as the program has its
/// arrays that way. Is there none, it is the longest. `y` is the loop that the text splits, if that is another one, otherwise the outermost axis that is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What the lanes of a warp differ in.
    pub x: Option<Axis>,
    /// What warps differ in besides.
    pub y: Option<Axis>,
    /// What each loop is, by its number.
    roles: Vec<Role>,
    /// Where lanes differ in each loop, and last outside all: its level, and by how many iterations from lane to lane.
    lanes: Vec<Option<(usize, i64)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Each thread goes through it.
    Walked,
    /// Each thread has an iteration at most.
    X(Place),
    Y(Place),
}

impl Grid {
    /// The grid of a microblock.
    pub fn of(microblock: &Microblock) -> Grid {
        let mut axes = microblock.axes();
        let enough = axes.iter().rposition(|axis| axis.values >= LANES as u64);
        let longest = || (0..axes.len()).max_by_key(|at| axes[*at].values);
        let x = enough.or_else(longest).map(|at| axes.remove(at));
        let is_split = |axis: &Axis| microblock.split.as_ref().is_some_and(|split| split.name == axis.name);
        let at = axes.iter().position(is_split).unwrap_or(0);
        let y = (at < axes.len()).then(|| axes.remove(at));
        let role = |one: &Loop| {
            let place = |axis: &Option<Axis>| {
                axis.as_ref().filter(|axis| axis.name == one.name).map(|axis| axis.place(one))
            };
            match (place(&x), place(&y)) {
                (Some(place), _) => Role::X(place),
                (_, Some(place)) => Role::Y(place),
                _ => Role::Walked,
            }
        };
        let differ = |parent: Option<usize>| {
            let axis = x.as_ref()?;
            let one = &microblock.loops[around(microblock, &axis.name, parent)?];
            Some((one.level, axis.place(one).sign))
        };
        let lanes = (0..microblock.loops.len()).map(Some).chain([None]).map(differ).collect();
        Grid { roles: microblock.loops.iter().map(role).collect(), lanes, x, y }
    }

    /// A single thread, which goes through all loops.
    pub fn alone(microblock: &Microblock) -> Grid {
        let loops = microblock.loops.len();
        Grid { x: None, y: None, roles: vec![Role::Walked; loops], lanes: vec![None; loops + 1] }
    }

    /// Threads along both axes, one at least.
    pub fn threads(&self) -> [u64; 2] {
        [&self.x, &self.y].map(|axis| axis.as_ref().map_or(1, |axis| axis.values.max(1)))
    }

    /// What a sum is in lane 0, and what it is more from lane to lane, inside a loop or outside all.
    #[inline]
    fn span(&self, sum: &Affine, within: Option<usize>, point: &Point) -> Span {
        let differ = self.lanes[within.unwrap_or(self.roles.len())];
        Span { first: sum.at(point), each: differ.map_or(0, |(level, by)| by * sum.by[level]) }
    }
}

/// A number that grows evenly from lane to lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Of lane 0, whether or not it is at work.
    pub first: i64,
    /// What each lane has more than the one before.
    pub each: i64,
}

impl Span {
    /// Of a lane.
    #[inline]
    pub fn of(self, lane: usize) -> i64 {
        self.first + self.each * lane as i64
    }
}

/// What lanes pass, and which of them: a bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// An iteration of a loop begins that the threads go through.
    Iteration(usize, u32),
    /// A statement is executed.
    Statement(usize, u32),
}

/// A body that lanes are in.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Its loop; that of the outermost has no meaning.
    id: usize,
    /// The next of its nodes.
    node: usize,
    /// The lanes in it.
    mask: u32,
}

/// A warp on its way through a microblock. Lanes whose loop has fewer iterations than that of others wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lanes {
    /// The value of x in lane 0, and that of y.
    at: [i64; 2],
    /// Iterations; lanes differ in one of them, which has that of lane 0.
    point: Point,
    frames: [Frame; DEPTH + 1],
    /// Loops that lanes are in.
    depth: usize,
}

impl Lanes {
    /// At the beginning: values of both axes, counted from zero, x of lane 0, and which lanes there are.
    pub fn new(x: u64, y: u64, mask: u32) -> Lanes {
        let mut lanes = Lanes { at: [x as i64, y as i64], ..Lanes::default() };
        lanes.frames[0].mask = mask;
        lanes
    }

    /// What comes next; nothing at the end.
    pub fn next(&mut self, microblock: &Microblock, grid: &Grid) -> Option<Passed> {
        loop {
            let depth = self.depth;
            let Frame { id, node, mask } = self.frames[depth];
            let around = (depth > 0).then_some(id);
            match microblock.inside(around).get(node) {
                Some(_) if mask == 0 => return None,
                Some(Node::Statement(statement)) => {
                    self.frames[depth].node += 1;
                    return Some(Passed::Statement(*statement, mask));
                }
                Some(Node::Loop(inner)) => {
                    self.frames[depth].node += 1;
                    if let Some(passed) = self.enter(microblock, grid, *inner, mask) {
                        return Some(passed);
                    }
                }
                None if depth == 0 => return None,
                None => {
                    if let Some(passed) = self.again(microblock, grid, id) {
                        return Some(passed);
                    }
                }
            }
        }
    }

    /// Begins a loop, if there is a lane that it has iterations for.
    fn enter(&mut self, microblock: &Microblock, grid: &Grid, id: usize, mask: u32) -> Option<Passed> {
        let one = &microblock.loops[id];
        let role = grid.roles[id];
        self.point[one.level] = match role {
            Role::Walked => 0,
            Role::X(place) => place.iteration(self.at[0]),
            Role::Y(place) => place.iteration(self.at[1]),
        };
        let mask = mask & self.within(grid, id, one);
        if mask == 0 {
            self.point[one.level] = 0;
            return None;
        }
        self.depth += 1;
        self.frames[self.depth] = Frame { id, node: 0, mask };
        (role == Role::Walked).then_some(Passed::Iteration(id, mask))
    }

    /// Goes on with the next iteration of a loop, or leaves it.
    fn again(&mut self, microblock: &Microblock, grid: &Grid, id: usize) -> Option<Passed> {
        let one = &microblock.loops[id];
        if grid.roles[id] == Role::Walked {
            self.point[one.level] += 1;
            let mask = self.frames[self.depth].mask & self.within(grid, id, one);
            if mask != 0 {
                self.frames[self.depth] = Frame { id, node: 0, mask };
                return Some(Passed::Iteration(id, mask));
            }
        }
        self.point[one.level] = 0;
        self.depth -= 1;
        None
    }

    /// The lanes for which a loop has the iteration that they are in.
    fn within(&self, grid: &Grid, id: usize, one: &Loop) -> u32 {
        let t = Span {
            first: self.point[one.level],
            each: if let Role::X(place) = grid.roles[id] { place.sign } else { 0 },
        };
        let end = |sum: &Affine| grid.span(sum, one.parent, &self.point);
        let (trips, most) = (end(&one.trips), one.most.as_ref().map(end));
        let holds = |lane| {
            (0..trips.of(lane)).contains(&t.of(lane)) && most.is_none_or(|most| t.of(lane) < most.of(lane))
        };
        if t.each == 0 && trips.each == 0 && most.is_none_or(|most| most.each == 0) {
            return if holds(0) { u32::MAX } else { 0 };
        }
        (0..LANES).filter(|lane| holds(*lane)).fold(0, |mask, lane| mask | 1 << lane)
    }

    /// Where in its array's addresses the element is that a statement names, lane by lane.
    #[inline]
    pub fn bytes(&self, microblock: &Microblock, grid: &Grid, statement: usize, reference: usize) -> Span {
        let one = &microblock.statements[statement];
        grid.span(&one.references[reference].byte, one.parent, &self.point)
    }
}
