//! Loops with independent iterations, and the lanes of a warp that execute them, one instruction for all.

use crate::kernel::{Loop, Microblock, Node, Reference, Statement};
use crate::{
    domain::{Affine, DEPTH, Point},
    piece::Piece,
};

/// Threads of a warp.
pub const LANES: usize = 32;

/// Distribution of a microblock to threads: each has one value of up to two axes.
///
/// `x` is the innermost axis that has a value for each lane of a warp: adjacent lanes have adjacent elements, as far
/// as the program lays out its arrays that way. Without such an axis, it is the longest. `y` is the loop that the
/// text splits, if that is a different one, otherwise the outermost remaining axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Axis along which the lanes of a warp differ.
    pub x: Option<Axis>,
    /// Axis along which warps differ as well.
    pub y: Option<Axis>,
    /// Role of each loop, by its number.
    roles: Vec<Role>,
    /// Level at which lanes differ in each loop, and last outside all, with the iterations from lane to lane.
    lanes: Vec<Option<(usize, i64)>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Each thread executes all of its iterations.
    Walked,
    /// Each thread has at most one iteration.
    X(Place),
    Y(Place),
}

impl Grid {
    /// Returns the grid of a microblock.
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
            let one = &microblock.loops[loop_around(microblock, &axis.name, parent)?];
            Some((one.level, axis.place(one).sign))
        };
        let lanes = (0..microblock.loops.len()).map(Some).chain([None]).map(differ).collect();
        Grid { roles: microblock.loops.iter().map(role).collect(), lanes, x, y }
    }

    /// Returns a grid of a single thread, which executes all loops.
    pub fn alone(microblock: &Microblock) -> Grid {
        let loops = microblock.loops.len();
        Grid { x: None, y: None, roles: vec![Role::Walked; loops], lanes: vec![None; loops + 1] }
    }

    /// Returns the threads along both axes, at least one.
    pub fn threads(&self) -> [u64; 2] {
        [&self.x, &self.y].map(|axis| axis.as_ref().map_or(1, |axis| axis.values.max(1)))
    }

    /// Returns the value of a sum in lane 0 and its increment from lane to lane, inside a loop or outside all.
    #[inline]
    fn span(&self, sum: &Affine, within: Option<usize>, point: &Point) -> Span {
        let differ = self.lanes[within.unwrap_or(self.roles.len())];
        Span { first: sum.at(point), each: differ.map_or(0, |(level, by)| by * sum.by[level]) }
    }
}

/// Number that grows evenly from lane to lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Value in lane 0, whether or not it is active.
    pub first: i64,
    /// Increment from lane to lane.
    pub each: i64,
}

impl Span {
    /// Returns the value in a lane.
    #[inline]
    pub fn of(self, lane: usize) -> i64 {
        self.first + self.each * lane as i64
    }
}

/// Event of a warp, with a bit mask of its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// An iteration begins of a loop that the threads execute.
    Iteration(usize, u32),
    /// A statement is executed.
    Statement(usize, u32),
}

/// A body that lanes are in.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Loop number; meaningless for the outermost body.
    id: usize,
    /// Index of the next node.
    node: usize,
    /// Lanes in the body.
    mask: u32,
}

/// A warp executing a microblock. Lanes whose loop has fewer iterations than that of others wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lanes {
    /// Value of x in lane 0, and value of y.
    at: [i64; 2],
    /// Iterations; lanes differ in one of them, for which it has that of lane 0.
    point: Point,
    frames: [Frame; DEPTH + 1],
    /// Number of loops that lanes are in.
    depth: usize,
}

impl Lanes {
    /// Creates a warp at the beginning: values of both axes, counted from zero, x of lane 0, and the existing lanes.
    pub fn new(x: u64, y: u64, mask: u32) -> Lanes {
        let mut lanes = Lanes { at: [x as i64, y as i64], ..Lanes::default() };
        lanes.frames[0].mask = mask;
        lanes
    }

    /// Returns the next event; none at the end.
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

    /// Begins a loop, if it has iterations for any lane.
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

    /// Continues with the next iteration of a loop, or leaves it.
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

    /// Returns the lanes for which a loop has their current iteration.
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

    /// Returns the byte offset of the element that a statement names, lane by lane.
    #[inline]
    pub fn bytes(&self, microblock: &Microblock, grid: &Grid, statement: usize, reference: usize) -> Span {
        let one = &microblock.statements[statement];
        grid.span(&one.references[reference].byte, one.parent, &self.point)
    }
}

// Loops with independent iterations.

/// Loop variable, by name, whose values can be distributed: the loops of that name enclose all statements and have
/// fixed bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name of the variable.
    pub name: String,
    /// Number of values, over all loops of the name.
    pub values: u64,
    /// Smallest value.
    first: i64,
    /// Difference between values.
    step: i64,
}

/// Iteration of a loop for a value of its axis: iteration `sign * (value - offset)`, where values are counted from
/// zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sign: i64,
    pub(crate) offset: i64,
}

impl Place {
    /// Returns the iteration of a value.
    #[inline]
    pub(crate) fn iteration(self, value: i64) -> i64 {
        self.sign * (value - self.offset)
    }
}

/// Returns the value of a loop's variable in its first iteration and its increment; none if other loops change it.
pub(crate) fn fixed_bounds(one: &Loop) -> Option<(i64, i64)> {
    let mut value = one.value;
    let by = std::mem::take(&mut value.by[one.level]);
    value.as_number().map(|from| (from, by))
}

impl Axis {
    /// Returns the axis of the loops of a name, if they can be one: their bounds are numbers, and each has the values
    /// of the others or some between.
    pub(crate) fn of(microblock: &Microblock, name: &str) -> Option<Axis> {
        let own = || microblock.loops.iter().filter(|one| one.name == name);
        let (begin, by) = fixed_bounds(own().next()?)?;
        let step = by.abs();
        let mut reach: Option<(i64, i64)> = None;
        for one in own() {
            let (from, by) = fixed_bounds(one)?;
            let trips = one.trips.as_number().filter(|_| one.most.is_none())?;
            if by.abs() != step || (from - begin) % step != 0 {
                return None;
            }
            if trips > 0 {
                let last = from + by * (trips - 1);
                let (least, most) = reach.unwrap_or((from, from));
                reach = Some((least.min(from).min(last), most.max(from).max(last)));
            }
        }
        let first = reach.map_or(begin, |(least, _)| least);
        let values = reach.map_or(0, |(least, most)| (most - least) / step + 1) as u64;
        Some(Axis { name: name.to_owned(), values, first, step })
    }

    /// Returns the place of its values in one of its loops.
    pub(crate) fn place(&self, one: &Loop) -> Place {
        let (from, by) = fixed_bounds(one).unwrap_or((self.first, self.step));
        Place { sign: by.signum(), offset: (from - self.first) / self.step }
    }

    /// Returns true if each statement is in one of its loops, and no two values touch the same element if one of them
    /// writes it.
    fn is_independent(&self, microblock: &Microblock) -> bool {
        let mut all = Vec::new();
        for statement in &microblock.statements {
            if level_of(microblock, &self.name, statement.parent).is_none() {
                return false;
            }
            for (id, reference) in statement.references.iter().enumerate() {
                all.push((reference.array, id == 0, forms(microblock, self, statement, reference)));
            }
        }
        let stores = all.iter().filter(|(_, is_store, _)| *is_store);
        stores.into_iter().all(|(array, _, stored)| {
            let mut same = all.iter().filter(|(other, ..)| other == array);
            same.all(|(.., other)| is_apart(stored, other))
        })
    }
}

impl Microblock {
    /// Returns the loops with independent iterations, from the outermost. Any combination of them is independent as
    /// well: two iterations that differ in one do not touch the same element, whatever the others are.
    pub fn axes(&self) -> Vec<Axis> {
        let mut names: Vec<&str> = Vec::new();
        for one in &self.loops {
            if !names.contains(&one.name.as_str()) {
                names.push(&one.name);
            }
        }
        let axes = names.into_iter().filter_map(|name| Axis::of(self, name));
        axes.filter(|axis| axis.is_independent(self)).collect()
    }
}

/// Returns the number of the loop of a name around a place.
pub(crate) fn loop_around(microblock: &Microblock, name: &str, parent: Option<usize>) -> Option<usize> {
    let (chain, depth) = microblock.chain(parent);
    chain[..depth].iter().copied().find(|id| microblock.loops[*id].name == name)
}

/// Returns the level of the loop of a name around a place.
pub(crate) fn level_of(microblock: &Microblock, name: &str, parent: Option<usize>) -> Option<usize> {
    loop_around(microblock, name, parent).map(|id| microblock.loops[id].level)
}

/// Subscript as seen by the dependence test.
pub(crate) struct Form {
    /// Increment per value of the axis.
    factor: i64,
    /// Minimum and maximum of the rest.
    rest: (i64, i64),
    /// Minimum and maximum of the whole subscript.
    whole: (i64, i64),
}

/// Returns the subscripts of a reference.
pub(crate) fn forms(
    microblock: &Microblock,
    axis: &Axis,
    statement: &Statement,
    reference: &Reference,
) -> Vec<Form> {
    let own = loop_around(microblock, &axis.name, statement.parent);
    let domain = Piece::whole(0).domain(microblock, statement.parent, None).unwrap_or_default();
    let form = |subscript: &Affine| {
        let mut rest = *subscript;
        let mut factor = 0;
        if let Some(one) = own.map(|id| &microblock.loops[id]) {
            let Place { sign, offset } = axis.place(one);
            factor = sign * std::mem::take(&mut rest.by[one.level]);
            rest.constant -= factor * offset;
        }
        let mut reach: Option<[(i64, i64); 2]> = None;
        domain.each(&mut |side| {
            let mut side = *side;
            if side.tighten() {
                let both = [side.range(rest), side.range(*subscript)];
                let own = reach.unwrap_or(both);
                reach = Some([0, 1].map(|n| (own[n].0.min(both[n].0), own[n].1.max(both[n].1))));
            }
        });
        // Code that is never executed has no elements, so it shares none.
        let [rest, whole] = reach.unwrap_or([(0, 0), (i64::MAX, i64::MIN)]);
        Form { factor, rest, whole }
    };
    reference.subscripts.iter().map(form).collect()
}

/// Returns true if two references to the same element have the same value of the axis.
pub(crate) fn is_apart(a: &[Form], b: &[Form]) -> bool {
    // Possible distances of the first value from the second, by the dimensions so far.
    let (mut least, mut most) = (i64::MIN, i64::MAX);
    for (a, b) in a.iter().zip(b) {
        if a.whole.0 > b.whole.1 || b.whole.0 > a.whole.1 {
            return true;
        }
        if a.factor != b.factor {
            continue;
        }
        // `factor * values` compensates the difference between the rest of the second and that of the first.
        let (low, high) = (b.rest.0 - a.rest.1, b.rest.1 - a.rest.0);
        let factor = a.factor.abs();
        if factor == 0 {
            continue;
        }
        let (low, high) = if a.factor > 0 { (low, high) } else { (-high, -low) };
        least = least.max(-(-low).div_euclid(factor));
        most = most.min(high.div_euclid(factor));
    }
    least > most || (least, most) == (0, 0)
}
