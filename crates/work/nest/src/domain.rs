//! The iterations of the loops around a place, and how far a sum of their numbers reaches in them.

use crate::affine::{Affine, DEPTH, Point};

/// The iterations of one loop: from `from`, below `below`, and below `most` where there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    pub(crate) from: Affine,
    pub(crate) below: Affine,
    pub(crate) most: Option<Affine>,
}

/// The iterations of loops inside one another; bounds of each depend on those around it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Domain {
    pub(crate) levels: [Level; DEPTH],
    pub(crate) depth: usize,
}

impl Domain {
    pub(crate) fn push(&mut self, level: Level) {
        self.levels[self.depth] = level;
        self.depth += 1;
    }

    /// Calls with domains without `most` that make up this one: one for each side of a `min`.
    ///
    /// The arguments of a `min` differ by a multiple of one loop's iterations, whose bounds are numbers: that was asked when the
    /// kernel was read.
    pub(crate) fn each(&self, call: &mut dyn FnMut(&Domain)) {
        let Some(at) = (0..self.depth).find(|at| self.levels[*at].most.is_some()) else { return call(self) };
        let Level { below, most, .. } = self.levels[at];
        let most = most.unwrap_or(below);
        let sided = |side: Affine| {
            let mut one = *self;
            one.levels[at].below = side;
            one.levels[at].most = None;
            one
        };
        let apart = below.minus(&most);
        let Some(by) = apart.deepest() else {
            return sided(if apart.constant <= 0 { below } else { most }).each(call);
        };
        // `below` is the lesser one while `slope * t + constant <= 0`.
        let slope = apart.by[by];
        let start = self.levels[by].from.constant;
        let end = self.levels[by].below.constant;
        let (cut, first, second) = if slope > 0 {
            ((-apart.constant).div_euclid(slope) + 1, below, most)
        } else {
            (-((-apart.constant).div_euclid(-slope)), most, below)
        };
        let cut = cut.clamp(start, end.max(start));
        for (side, from, to) in [(first, start, cut), (second, cut, end)] {
            if from < to {
                let mut one = sided(side);
                one.levels[by].from = Affine::number(from);
                one.levels[by].below = Affine::number(to);
                one.each(call);
            }
        }
    }

    /// Leaves out iterations in which an inner loop has none; whether any are left. Without `most`.
    pub(crate) fn tighten(&mut self) -> bool {
        for level in (0..self.depth).rev() {
            let Level { from, below, .. } = self.levels[level];
            // There is an iteration while this is not negative.
            let spare = below.minus(&from).shifted(-1);
            let Some(by) = spare.deepest() else {
                if spare.constant < 0 {
                    return false;
                }
                continue;
            };
            if self.reach(spare, level, false) >= 0 {
                continue;
            }
            let slope = spare.by[by];
            let mut rest = spare;
            rest.by[by] = 0;
            let Some(bound) = rest.divided(slope.abs()) else { continue };
            let Level { from, below, .. } = self.levels[by];
            if slope < 0 {
                let bound = bound.shifted(1);
                if self.reach(bound.minus(&below), by, true) <= 0 {
                    self.levels[by].below = bound;
                }
            } else {
                let bound = Affine::default().minus(&bound);
                if self.reach(bound.minus(&from), by, false) >= 0 {
                    self.levels[by].from = bound;
                }
            }
        }
        true
    }

    /// The most (or the least) that a sum reaches in the first `depth` loops. Without `most`.
    fn reach(&self, mut sum: Affine, depth: usize, most: bool) -> i64 {
        for level in (0..depth).rev() {
            let by = sum.by[level];
            if by != 0 {
                sum.by[level] = 0;
                sum = sum.with(&self.end(level, (by > 0) == most), by);
            }
        }
        sum.constant
    }

    fn end(&self, level: usize, last: bool) -> Affine {
        let Level { from, below, .. } = self.levels[level];
        if last { below.shifted(-1) } else { from }
    }

    /// The least and the most that a sum reaches. Without `most`, and tightened.
    pub(crate) fn range(&self, sum: Affine) -> (i64, i64) {
        (self.reach(sum, self.depth, false), self.reach(sum, self.depth, true))
    }

    /// Where a sum is least or most.
    pub(crate) fn point(&self, mut sum: Affine, most: bool) -> Point {
        let mut ends = [Affine::default(); DEPTH];
        for level in (0..self.depth).rev() {
            let by = sum.by[level];
            ends[level] = self.end(level, by != 0 && (by > 0) == most);
            sum.by[level] = 0;
            sum = sum.with(&ends[level], by);
        }
        let mut point = [0; DEPTH];
        for level in 0..self.depth {
            point[level] = ends[level].at(&point);
        }
        point
    }
}
