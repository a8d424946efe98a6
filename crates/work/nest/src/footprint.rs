//! Footprint of a piece in bytes, and the division of a screen into sections that fit into memory.

use std::ops::Range;

use crate::domain::{Affine, DEPTH, Domain};
use crate::kernel::{Array, Kernel, Microblock, Node};
use crate::piece::{Piece, Step};

/// Bytes of an array that a piece touches: one range, or rows of a block at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Array number.
    pub array: usize,
    /// Byte offset of the first row in the array.
    pub first: u64,
    /// Bytes per row.
    pub row: u64,
    /// Distance between the starts of rows, in bytes.
    pub stride: u64,
    /// Number of rows.
    pub rows: u64,
    /// True if any of it is read.
    pub reads: bool,
    /// True if any of it is written.
    pub writes: bool,
}

impl Extent {
    /// Returns the range from the first to the last byte.
    pub fn hull(&self) -> Range<u64> {
        self.first..self.first + (self.rows - 1) * self.stride + self.row
    }

    /// Returns the number of bytes in its rows.
    pub fn bytes(&self) -> u64 {
        self.row * self.rows
    }

    /// Returns the number of touched groups of `group` bytes, of which the first begins with the array. The cost does
    /// not depend on the number of rows.
    pub fn groups(&self, group: u64) -> u64 {
        let Extent { first, row, stride, rows, .. } = *self;
        let hull = self.hull();
        if rows == 1 || stride - row < group {
            // Gaps between rows are smaller than a group.
            return (hull.end - 1) / group - hull.start / group + 1;
        }
        let sum = |from: u64| sum_of_quotients(rows.into(), stride.into(), from.into(), group.into());
        rows + (sum(first + row - 1) - sum(first)) as u64
    }

    /// Returns the bytes of each row.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let Extent { first, row, stride, rows, .. } = *self;
        (0..rows).map(move |at| first + at * stride..first + at * stride + row)
    }
}

/// Returns the sum of `(step * i + start) / divisor`, each rounded down, over `i` from zero below `count`; as in
/// Euclid's algorithm.
fn sum_of_quotients(count: u128, step: u128, start: u128, divisor: u128) -> u128 {
    if count == 0 {
        return 0;
    }
    let whole = step / divisor * (count * (count - 1) / 2) + start / divisor * count;
    let (step, start) = (step % divisor, start % divisor);
    let last = step * count + start;
    // Points under the line, counted along the other axis.
    whole + sum_of_quotients(last / divisor, divisor, last % divisor, step.max(1))
}

/// Maximum number of dimensions of an array.
pub(crate) const DIMENSIONS: usize = 4;

/// Minimum and maximum of each subscript of some references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    array: usize,
    ends: [(i64, i64); DIMENSIONS],
    reads: bool,
    writes: bool,
}

impl Block {
    fn grow(&mut self, other: &[(i64, i64); DIMENSIONS]) {
        for (own, more) in self.ends.iter_mut().zip(other) {
            *own = (own.0.min(more.0), own.1.max(more.1));
        }
    }

    /// Returns true if both together are a block at most as large as the two apart.
    fn joins(&self, other: &Block) -> bool {
        let is_inside = |a: &(i64, i64), b: &(i64, i64)| b.0 <= a.0 && a.1 <= b.1;
        let pairs = || self.ends.iter().zip(&other.ends);
        if pairs().all(|(a, b)| is_inside(a, b)) || pairs().all(|(a, b)| is_inside(b, a)) {
            return true;
        }
        let mut unlike = pairs().filter(|(a, b)| a != b);
        match (unlike.next(), unlike.next()) {
            (Some((a, b)), None) => a.0 <= b.1 + 1 && b.0 <= a.1 + 1,
            (one, _) => one.is_none(),
        }
    }

    fn extent(&self, array: &Array) -> Extent {
        let element = array.element.bytes();
        let dimensions = array.shape.len();
        // A row is everything inside the outermost dimension with more than one value.
        let outer = (0..dimensions).find(|at| self.ends[*at].0 < self.ends[*at].1).unwrap_or(dimensions - 1);
        let stride = element * array.shape[outer + 1..].iter().product::<u64>();
        let place = |end: fn((i64, i64)) -> i64| {
            self.ends[..dimensions]
                .iter()
                .zip(&array.shape)
                .fold(0, |sum, (ends, n)| sum * n + end(*ends) as u64)
        };
        let (low, high) = self.ends[outer];
        let rows = (high - low) as u64 + 1;
        let first = element * place(|ends| ends.0);
        let row = element * place(|ends| ends.1) - (rows - 1) * stride + element - first;
        let (row, rows) = if row == stride { (row * rows, 1) } else { (row, rows) };
        let Block { array, reads, writes, .. } = *self;
        Extent { array, first, row, stride: if rows == 1 { row } else { stride }, rows, reads, writes }
    }
}

/// Buffers for footprints, so that many of them need no allocation.
#[derive(Clone, Debug, Default)]
pub struct Footprint {
    blocks: Vec<Block>,
    /// Extents of the result, in the order of the arrays.
    pub extents: Vec<Extent>,
}

impl Footprint {
    /// Returns the bytes of the groups of `group` bytes that the extents touch, if each array begins with a group.
    /// Overlaps of extents count more than once.
    pub fn bytes_in_groups(&self, group: u64) -> u64 {
        self.extents.iter().map(|extent| extent.groups(group) * group).sum()
    }
}

impl Kernel {
    /// Returns the bytes that a piece touches, array by array. Each touched byte is in at least one extent.
    ///
    /// Extents are as small as blocks can be: references that together fill a block share an extent, separate
    /// references have one each.
    pub fn footprint(&self, piece: &Piece) -> Vec<Extent> {
        let mut footprint = Footprint::default();
        self.footprint_into(piece, &mut footprint);
        footprint.extents
    }

    /// Computes [`Kernel::footprint`] into a buffer, which is overwritten.
    pub fn footprint_into(&self, piece: &Piece, into: &mut Footprint) {
        let microblock = self.of(piece);
        into.blocks.clear();
        for site in &microblock.sites {
            let Some(domain) = piece.domain(microblock, site.parent, Some(site.nodes)) else { continue };
            let mut found: Option<Block> = None;
            domain.each(&mut |one| {
                let Some(ends) = ends(*one, &site.subscripts) else { return };
                match &mut found {
                    Some(block) => block.grow(&ends),
                    None => {
                        let (reads, writes) = (site.reads, site.writes);
                        found = Some(Block { array: site.array, ends, reads, writes });
                    }
                }
            });
            if let Some(block) = found {
                join(&mut into.blocks, block);
            }
        }
        into.extents.clear();
        into.extents.extend(into.blocks.iter().map(|block| block.extent(&self.arrays[block.array])));
    }
}

/// Adds a block, merged with those that it fills a block with. Sites are in the order of their arrays, and so are
/// blocks.
fn join(blocks: &mut Vec<Block>, mut block: Block) {
    let first = blocks.iter().position(|own| own.array == block.array).unwrap_or(blocks.len());
    let mut at = first;
    while at < blocks.len() {
        if !blocks[at].joins(&block) {
            at += 1;
            continue;
        }
        let own = blocks.swap_remove(at);
        block.grow(&own.ends);
        block.reads |= own.reads;
        block.writes |= own.writes;
        // The larger block may fill a block with others.
        at = first;
    }
    blocks.push(block);
}

/// Returns the minimum and maximum of each subscript; none if no iteration is left.
fn ends(mut domain: Domain, subscripts: &[Affine]) -> Option<[(i64, i64); DIMENSIONS]> {
    if !domain.tighten() {
        return None;
    }
    let mut ends = [(0, 0); DIMENSIONS];
    for (end, subscript) in ends.iter_mut().zip(subscripts) {
        *end = domain.range(*subscript);
    }
    Some(ends)
}

// Division of a screen into sections that fit into memory.

/// Position of the walk in one body.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// Loop of the body.
    around: Option<usize>,
    /// Index of the next node.
    node: usize,
    /// Iterations done and total iterations of the loop there; none before it begins.
    trips: Option<(u64, u64)>,
    /// True if the current iteration of the enclosing loop has not been in any piece yet.
    is_fresh: bool,
}

/// Sections of a screen, in the order in which they run: see [`Kernel::sections`].
#[derive(Clone, Debug)]
pub struct Sections<'k> {
    kernel: &'k Kernel,
    screen: Piece,
    budget: u64,
    group: u64,
    frames: [Frame; DEPTH + 1],
    depth: usize,
    is_done: bool,
    footprint: Footprint,
    /// Iterations in the last section of each loop: the next will have about as many.
    sizes: [u64; DEPTH],
}

impl Kernel {
    /// Divides a screen into sections, in the order in which they run.
    ///
    /// A section is the largest number of consecutive iterations of an outermost loop whose footprint, in whole
    /// groups of `group` bytes, has at most `budget` bytes. If a single iteration exceeds that, it is executed
    /// separately, with its inner loops section by section; without inner loops it is a section in spite of its size.
    /// Together the sections are the screen: each operation is in exactly one of them.
    pub fn sections(&self, screen: Piece, budget: u64, group: u64) -> Sections<'_> {
        Sections {
            kernel: self,
            screen,
            budget,
            group: group.max(1),
            frames: [Frame::default(); DEPTH + 1],
            depth: 0,
            is_done: false,
            footprint: Footprint::default(),
            sizes: [0; DEPTH],
        }
    }
}

impl Iterator for Sections<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let kernel = self.kernel;
        let microblock = kernel.of(&self.screen);
        while !self.is_done {
            let frame = self.frames[self.depth];
            let inside = microblock.inside(frame.around);
            let found = match inside.get(frame.node) {
                None => {
                    self.leave();
                    None
                }
                Some(Node::Statement(_)) => Some(self.statements(inside)),
                Some(Node::Loop(id)) => self.iterations(microblock, *id),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

impl Sections<'_> {
    /// Leaves a finished body for the next iteration of the loop around it.
    ///
    /// Part of that iteration has been in a piece: an iteration that executes nothing touches nothing, so it fits
    /// whole.
    fn leave(&mut self) {
        match self.depth.checked_sub(1) {
            None => self.is_done = true,
            Some(outer) => {
                self.depth = outer;
                if let Some((done, _)) = &mut self.frames[outer].trips {
                    *done += 1;
                }
            }
        }
    }

    /// Returns a piece of statements beside loops.
    fn statements(&mut self, inside: &[Node]) -> Piece {
        let from = self.frames[self.depth].node;
        let rest = &inside[from..];
        let count = rest.iter().take_while(|node| matches!(node, Node::Statement(_))).count();
        self.frames[self.depth].node += count;
        self.piece(Some((from, from + count)))
    }

    /// Returns a piece with as many iterations of a loop as fit, or descends into it.
    fn iterations(&mut self, microblock: &Microblock, id: usize) -> Option<Piece> {
        let one = &microblock.loops[id];
        let (done, all) = match self.frames[self.depth].trips {
            Some(trips) => trips,
            None => self.kernel.iterations_of(&self.path(), id),
        };
        self.frames[self.depth].trips = Some((done, all));
        if done >= all {
            self.frames[self.depth].trips = None;
            self.frames[self.depth].node += 1;
            return None;
        }
        let fitting = self.fitting(id, done, all - done);
        if fitting == 0 && !one.is_innermost() {
            self.depth += 1;
            self.frames[self.depth] = Frame { around: Some(id), node: 0, trips: None, is_fresh: true };
            return None;
        }
        let count = fitting.max(1);
        let mut piece = self.piece(None);
        piece.steps[piece.depth] = self.step(id, done, done + count);
        piece.depth += 1;
        self.frames[self.depth].trips = Some((done + count, all));
        Some(piece)
    }

    fn step(&self, id: usize, from: u64, below: u64) -> Step {
        Step { node: self.frames[self.depth].node, id, from, below }
    }

    /// Returns the largest number of iterations, up to `rest`, whose footprint fits.
    fn fitting(&mut self, id: usize, done: u64, rest: u64) -> u64 {
        let level = self.depth;
        // Search outwards from the last fit by doubling, then by bisection.
        let guess = self.sizes[level].clamp(1, rest);
        let (mut least, mut beyond) = if self.fits(id, done, guess) { (guess, rest + 1) } else { (0, guess) };
        let mut stride = 1;
        while least > 0 && least + stride < beyond {
            if self.fits(id, done, least + stride) {
                least += stride;
                stride *= 2;
            } else {
                beyond = least + stride;
            }
        }
        while least + 1 < beyond {
            let middle = least + (beyond - least) / 2;
            if self.fits(id, done, middle) {
                least = middle;
            } else {
                beyond = middle;
            }
        }
        if least > 0 && least < rest {
            self.sizes[level] = least;
        }
        least
    }

    fn fits(&mut self, id: usize, done: u64, count: u64) -> bool {
        let mut piece = self.path();
        piece.steps[piece.depth] = self.step(id, done, done + count);
        piece.depth += 1;
        self.kernel.footprint_into(&piece, &mut self.footprint);
        self.footprint.bytes_in_groups(self.group) <= self.budget
    }

    /// Returns the path to the position of the walk.
    fn path(&self) -> Piece {
        let mut piece = self.screen;
        for (level, (frame, inner)) in self.frames.iter().zip(&self.frames[1..=self.depth]).enumerate() {
            let done = frame.trips.map_or(0, |(done, _)| done);
            let id = inner.around.unwrap_or(0);
            piece.steps[level] = Step { node: frame.node, id, from: done, below: done + 1 };
        }
        piece.depth = self.depth;
        piece
    }

    /// Returns a piece at that position, with the iterations that it begins.
    fn piece(&mut self, nodes: Option<(usize, usize)>) -> Piece {
        let mut piece = self.path();
        piece.nodes = nodes;
        for level in 0..self.depth {
            let is_fresh = std::mem::take(&mut self.frames[level + 1].is_fresh);
            piece.opens |= u8::from(is_fresh) << level;
        }
        piece
    }
}
