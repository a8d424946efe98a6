//! A screen in parts that fit into memory.

use crate::affine::DEPTH;
use crate::footprint::Footprint;
use crate::kernel::Kernel;
use crate::microblock::{Microblock, Node};
use crate::piece::{Piece, Step};

/// Where the walk is in one body.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    /// The loop whose body it is.
    around: Option<usize>,
    /// The next thing to do in it.
    node: usize,
    /// Iterations of the loop there that are done, and all of them; none before it begins.
    trips: Option<(u64, u64)>,
    /// Whether the iteration of the loop around has not been in any piece yet.
    is_fresh: bool,
}

/// The sections of a screen, in the order in which they run: see [`Kernel::sections`].
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
    /// How many iterations the last section of each loop had: the next will have about as many.
    sizes: [u64; DEPTH],
}

impl Kernel {
    /// A screen in sections, in the order in which they run.
    ///
    /// A section is the largest number of consecutive iterations of an outermost loop whose footprint, in whole groups of
    /// `group` bytes, has at most `budget` bytes. If one iteration alone has more, it is executed by itself, and the loops in it section by section; if no loop is in it, it is a
    /// section in spite of its size. Together the sections are the screen: each operation is in exactly one of them.
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
    /// A body is at its end: on to the next iteration of the loop around it.
    ///
    /// Something of that iteration has been in a piece: one in which nothing is executed touches nothing, and so it fits as it is.
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

    /// Statements beside loops.
    fn statements(&mut self, inside: &[Node]) -> Piece {
        let from = self.frames[self.depth].node;
        let rest = &inside[from..];
        let count = rest.iter().take_while(|node| matches!(node, Node::Statement(_))).count();
        self.frames[self.depth].node += count;
        self.piece(Some((from, from + count)))
    }

    /// As many iterations of a loop as fit, or one step into it.
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

    /// The largest number of iterations, up to `rest`, whose footprint fits.
    fn fitting(&mut self, id: usize, done: u64, rest: u64) -> u64 {
        let level = self.depth;
        // From what fitted last time outwards by doubling, then by halves.
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

    /// The way to where the walk is.
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

    /// A piece there, with the iterations that it begins.
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
