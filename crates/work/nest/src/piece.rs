//! Parts of a microblock: the work of a screen or of a section of it.

use std::ops::Range;

use crate::domain::{Affine, DEPTH, Domain, Level};
use crate::kernel::{Kernel, Loop, Microblock, Node, Split};

/// A part of a microblock: a range of iterations for some of its loops, from the outermost inwards.
///
/// Iterations are counted from zero in the order in which they run, whatever the value of the variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the microblock in the kernel.
    pub microblock: usize,
    /// Iterations of the split loop, from and below: all in a piece that is not part of a screen.
    pub(crate) screen: Option<(u64, u64)>,
    pub(crate) steps: [Step; DEPTH],
    pub(crate) depth: usize,
    /// Range of nodes in the loop of the last step, which is in one iteration.
    pub(crate) nodes: Option<(usize, usize)>,
    /// Steps whose single iteration begins with this piece, a bit each: the piece then has the loop's own operations.
    pub(crate) opens: u8,
}

/// A loop on the path inwards. All but the last are in one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index among its siblings.
    pub(crate) node: usize,
    /// Loop number.
    pub(crate) id: usize,
    pub(crate) from: u64,
    pub(crate) below: u64,
}

impl Piece {
    /// Returns a whole microblock.
    pub fn whole(microblock: usize) -> Piece {
        let steps = [Step::default(); DEPTH];
        Piece { microblock, screen: None, steps, depth: 0, nodes: None, opens: 0 }
    }

    /// Returns the iterations of the split loop that contain this piece; none if it is not part of a screen.
    pub fn screen(&self) -> Option<Range<u64>> {
        self.screen.map(|(from, below)| from..below)
    }

    /// Returns the loops with less than all their iterations, from the outermost inwards: number and iterations.
    pub fn steps(&self) -> impl Iterator<Item = (usize, Range<u64>)> + '_ {
        self.steps[..self.depth].iter().map(|step| (step.id, step.from..step.below))
    }

    /// Returns the loop of which it is a range of iterations, by number, with that range; none if it consists of
    /// several nodes.
    pub fn range(&self) -> Option<(usize, Range<u64>)> {
        let last = self.path().last().filter(|_| self.nodes.is_none());
        last.map(|step| (step.id, step.from..step.below))
    }

    /// Returns only these iterations of a range.
    ///
    /// # Panics
    /// If it is not a range ([`Piece::range`]), or does not have them.
    #[must_use]
    pub fn narrowed(&self, iterations: Range<u64>) -> Piece {
        let (_, own) = self.range().expect("a range of iterations");
        assert!(own.start <= iterations.start && iterations.end <= own.end, "{iterations:?} of {own:?}");
        let mut piece = *self;
        if iterations.start > own.start {
            // The path to the range began with its first iteration.
            piece.opens = 0;
        }
        piece.steps[piece.depth - 1].from = iterations.start;
        piece.steps[piece.depth - 1].below = iterations.end;
        piece
    }

    pub(crate) fn path(&self) -> &[Step] {
        &self.steps[..self.depth]
    }

    /// Returns the number of steps in one iteration with selected nodes, as opposed to the last, whose range is
    /// executed whole.
    pub(crate) fn fixed(&self) -> usize {
        if self.nodes.is_some() { self.depth } else { self.depth.saturating_sub(1) }
    }

    /// Returns true if the first iteration of step `at` begins in this piece.
    pub(crate) fn is_opened(&self, at: usize) -> bool {
        self.opens >> at & 1 == 1
    }

    /// Returns the iterations of the loops around a place that are in this piece. `None` if the place is not: `nodes`
    /// is its position, from and below, in the innermost loop.
    pub(crate) fn domain(
        &self,
        microblock: &Microblock,
        innermost: Option<usize>,
        nodes: Option<(usize, usize)>,
    ) -> Option<Domain> {
        let (chain, depth) = microblock.chain(innermost);
        let mut domain = Domain::default();
        for (level, id) in chain[..depth].iter().enumerate() {
            let one = &microblock.loops[*id];
            let is_within = match (self.path().get(level), self.nodes) {
                (Some(step), _) => step.id == *id,
                (None, Some((from, below))) if level == self.depth => (from..below).contains(&one.node),
                (None, _) => true,
            };
            if !is_within {
                return None;
            }
            domain.push(match self.path().get(level) {
                Some(step) => between(step.from, step.below),
                None => self.all(one),
            });
        }
        if let Some((first, last)) = nodes
            && depth <= self.depth
        {
            let is_within = match self.nodes {
                _ if depth < self.depth => false,
                Some((from, below)) => first < below && from <= last,
                None => true,
            };
            return is_within.then_some(domain);
        }
        Some(domain)
    }

    /// Returns all iterations of a loop that are in the screen.
    fn all(&self, one: &Loop) -> Level {
        match self.screen {
            Some((from, below)) if one.is_split => between(from, below),
            _ => Level { from: Affine::default(), below: one.trips, most: one.most },
        }
    }
}

fn between(from: u64, below: u64) -> Level {
    // Iterations of a loop from a text fit into 63 bits.
    Level { from: Affine::number(from as i64), below: Affine::number(below as i64), most: None }
}

impl Kernel {
    /// Divides a microblock into at most `count` pieces that may run at once: ranges of the split loop with equal
    /// numbers of iterations, the last with the rest. A serial microblock is one piece, and so is one whose split
    /// loop has no iterations.
    pub fn screens(&self, microblock: usize, count: u64) -> impl Iterator<Item = Piece> + use<> {
        let split = self.microblocks[microblock].split.as_ref();
        let trips = split.map_or(1, |Split { trips, .. }| *trips);
        let each = trips.div_ceil(count.max(1)).max(1);
        let is_split = split.is_some();
        (0..trips.div_ceil(each).max(1)).map(move |at| {
            let screen = is_split.then(|| (at * each, ((at + 1) * each).min(trips)));
            Piece { screen, ..Piece::whole(microblock) }
        })
    }

    /// Divides a section of a whole microblock into at most `count` pieces that may run at once: equal ranges of its
    /// iterations of the split loop, the last with the rest. It is one piece if the microblock is serial, or if the
    /// section lies within one iteration of the split loop.
    pub fn dealt(&self, section: &Piece, count: u64) -> Vec<Piece> {
        let microblock = self.of(section);
        let Some(Split { trips, .. }) = microblock.split else { return vec![*section] };
        let is_split = |step: &Step| microblock.loops[step.id].is_split;
        let own = match section.range() {
            Some((id, range)) if microblock.loops[id].is_split => range,
            _ if section.path().iter().any(is_split) => return vec![*section],
            _ => section.screen().unwrap_or(0..trips),
        };
        let each = (own.end - own.start).div_ceil(count.max(1)).max(1);
        let piece = |from: u64| {
            let iterations = from..(from + each).min(own.end);
            match section.range() {
                Some((id, _)) if microblock.loops[id].is_split => section.narrowed(iterations),
                _ => Piece { screen: Some((iterations.start, iterations.end)), ..*section },
            }
        };
        let from = std::iter::successors(Some(own.start), |from| Some(from + each));
        let pieces: Vec<Piece> = from.take_while(|from| *from < own.end).map(piece).collect();
        if pieces.is_empty() { vec![*section] } else { pieces }
    }

    /// Returns the parts that a piece executes one after another: each loop with all its iterations, and the
    /// statements between loops. One iteration of a loop consists of the nodes in that loop; several are one part,
    /// the piece itself. Together the parts are the piece.
    pub fn parts(&self, piece: &Piece) -> Vec<Piece> {
        let microblock = self.of(piece);
        let mut outer = *piece;
        if let Some((_, range)) = piece.range() {
            if range.end - range.start != 1 {
                return vec![*piece];
            }
            outer.opens |= 1 << (piece.depth - 1);
        }
        let around = piece.path().last().map(|step| step.id);
        let inside = microblock.inside(around);
        let (mut node, below) = piece.nodes.unwrap_or((0, inside.len()));
        let mut parts = Vec::new();
        while node < below {
            let mut part = outer;
            match inside[node] {
                Node::Statement(_) => {
                    let rest = inside[node..below].iter();
                    let count = rest.take_while(|node| matches!(node, Node::Statement(_))).count();
                    part.nodes = Some((node, node + count));
                    node += count;
                }
                Node::Loop(id) => {
                    let (from, below) = self.iterations_of(piece, id);
                    part.nodes = None;
                    part.steps[part.depth] = Step { node, id, from, below };
                    part.depth += 1;
                    node += 1;
                    if from >= below {
                        continue;
                    }
                }
            }
            parts.push(part);
            // The path to the parts begins with the first.
            outer.opens = 0;
        }
        if parts.is_empty() {
            parts.push(Piece { nodes: Some((below, below)), ..outer });
        }
        parts
    }

    /// Returns the iterations of a loop in the first iteration of each loop of a piece's path, from and below.
    pub(crate) fn iterations_of(&self, piece: &Piece, id: usize) -> (u64, u64) {
        let one = &self.of(piece).loops[id];
        if let Some(range) = piece.screen.filter(|_| one.is_split) {
            return range;
        }
        let mut point = [0; DEPTH];
        for (t, step) in point.iter_mut().zip(piece.path()) {
            *t = step.from as i64;
        }
        (0, u64::try_from(one.trips_at(&point)).unwrap_or(0))
    }

    /// Returns the microblock of a piece.
    pub(crate) fn of(&self, piece: &Piece) -> &Microblock {
        &self.microblocks[piece.microblock]
    }
}

/// Returns the nodes at which a piece begins to be whole, with the loop of the last step.
pub(crate) fn nodes<'m>(microblock: &'m Microblock, piece: &Piece) -> &'m [Node] {
    let fixed = piece.fixed();
    let around = fixed.checked_sub(1).map(|at| piece.steps[at].id);
    let inside = microblock.inside(around);
    match piece.nodes {
        Some((from, below)) => &inside[from..below],
        None if piece.depth > 0 => {
            let at = piece.steps[fixed].node;
            &inside[at..=at]
        }
        None => inside,
    }
}
