//! Domains: the iterations of the loops around a place, sums of iteration numbers with their ranges, and polynomials
//! summed exactly over a domain.

/// Iterations of one loop: from `from`, below `below`, and below `most` if there is one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    pub(crate) from: Affine,
    pub(crate) below: Affine,
    pub(crate) most: Option<Affine>,
}

/// Iterations of nested loops; the bounds of each depend on those around it.
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

    /// Calls with the domains without `most` that make up this one: one for each side of a `min`.
    ///
    /// The arguments of a `min` differ by a multiple of one loop's iterations, whose bounds are numbers: this was
    /// checked when the kernel was read.
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
        // `below` is smaller while `slope * t + constant <= 0`.
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

    /// Removes iterations in which an inner loop has none; returns whether any are left. Without `most`.
    pub(crate) fn tighten(&mut self) -> bool {
        for level in (0..self.depth).rev() {
            let Level { from, below, .. } = self.levels[level];
            // An iteration exists while this is not negative.
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

    /// Returns the maximum (or the minimum) of a sum over the first `depth` loops. Without `most`.
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

    /// Returns the minimum and maximum of a sum. Without `most`, and tightened.
    pub(crate) fn range(&self, sum: Affine) -> (i64, i64) {
        (self.reach(sum, self.depth, false), self.reach(sum, self.depth, true))
    }

    /// Returns the point where a sum is minimal or maximal.
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

// Sums of loop variables with whole coefficients.

/// Maximum number of nested loops.
pub const DEPTH: usize = 6;

/// Iteration number of each loop around a place, from the outermost, counted from zero.
pub type Point = [i64; DEPTH];

/// A constant plus whole multiples of the iteration numbers of the loops around it.
///
/// Loop variables themselves are such sums: `for i in 2..n step 3` has `i = 2 + 3 t`, where `t` counts iterations from zero. Sizes
/// are numbers by the time a kernel is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affine {
    /// Value when every loop is in its first iteration.
    pub constant: i64,
    /// Increment per iteration of each loop, by its depth from the outermost.
    pub by: [i64; DEPTH],
}

impl Affine {
    /// Creates a constant.
    pub(crate) fn number(constant: i64) -> Affine {
        Affine { constant, by: [0; DEPTH] }
    }

    /// Returns the value at a point.
    #[inline]
    pub fn at(&self, point: &Point) -> i64 {
        self.by.iter().zip(point).fold(self.constant, |sum, (by, t)| sum + by * t)
    }

    /// Returns the value if no loop changes it.
    pub fn as_number(&self) -> Option<i64> {
        self.by.iter().all(|by| *by == 0).then_some(self.constant)
    }

    /// Returns the depth of the innermost loop that changes it.
    pub(crate) fn deepest(&self) -> Option<usize> {
        self.by.iter().rposition(|by| *by != 0)
    }

    pub(crate) fn minus(&self, other: &Affine) -> Affine {
        self.with(other, -1)
    }

    pub(crate) fn with(&self, other: &Affine, factor: i64) -> Affine {
        let mut sum = *self;
        sum.constant += factor * other.constant;
        for (by, more) in sum.by.iter_mut().zip(other.by) {
            *by += factor * more;
        }
        sum
    }

    pub(crate) fn shifted(mut self, by: i64) -> Affine {
        self.constant += by;
        self
    }

    /// Computes [`Affine::with`] on numbers from outside; none if they are too large.
    pub(crate) fn checked_with(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let add = |a: i64, b: i64| a.checked_add(b.checked_mul(factor)?).filter(is_small);
        let mut sum = Affine::number(add(self.constant, other.constant)?);
        for level in 0..DEPTH {
            sum.by[level] = add(self.by[level], other.by[level])?;
        }
        Some(sum)
    }

    /// Divides it, rounding down; none if the quotient is not such a sum.
    pub(crate) fn divided(&self, divisor: i64) -> Option<Affine> {
        let whole = self.by.iter().all(|by| by % divisor == 0);
        whole.then(|| Affine {
            constant: self.constant.div_euclid(divisor),
            by: self.by.map(|by| by / divisor),
        })
    }
}

/// Returns true if a number is small enough for a kernel's text.
pub(crate) fn is_small(number: &i64) -> bool {
    number.unsigned_abs() <= 1 << 40
}

// Polynomials of iteration numbers, summed exactly.

/// Fraction in lowest terms with a positive denominator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: i128,
    under: i128,
}

impl Fraction {
    fn new(over: i128, under: i128) -> Fraction {
        let divisor = common_divisor(over.unsigned_abs(), under.unsigned_abs()).max(1) as i128;
        Fraction { over: over / divisor, under: under / divisor }
    }

    fn plus(self, other: Fraction) -> Fraction {
        if self.under == other.under {
            return Fraction::new(self.over + other.over, self.under);
        }
        Fraction::new(self.over * other.under + other.over * self.under, self.under * other.under)
    }

    fn times(self, other: Fraction) -> Fraction {
        Fraction::new(self.over * other.over, self.under * other.under)
    }
}

fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Exponents of the iteration numbers, by level.
type Powers = [u8; DEPTH];

/// Polynomial: a sum of products of powers.
#[derive(Clone, Debug)]
struct Polynomial(Vec<(Powers, Fraction)>);

/// `1^p + ... + (x - 1)^p` as coefficients of `x`, `x^2`, ... (Faulhaber), each over 60.
const SUMS: [[i128; DEPTH]; DEPTH] = [
    [60, 0, 0, 0, 0, 0],
    [-30, 30, 0, 0, 0, 0],
    [10, -30, 20, 0, 0, 0],
    [0, 15, -30, 15, 0, 0],
    [-2, 0, 20, -30, 12, 0],
    [0, -5, 0, 25, -30, 10],
];

impl Polynomial {
    fn number(number: i128) -> Polynomial {
        Polynomial(vec![([0; DEPTH], Fraction { over: number, under: 1 })])
    }

    fn of(sum: &Affine) -> Polynomial {
        let mut polynomial = Polynomial::number(sum.constant.into());
        for (level, by) in sum.by.iter().enumerate().filter(|(_, by)| **by != 0) {
            let mut powers = [0; DEPTH];
            powers[level] = 1;
            polynomial.add(powers, Fraction { over: (*by).into(), under: 1 });
        }
        polynomial
    }

    fn add(&mut self, powers: Powers, factor: Fraction) {
        match self.0.iter_mut().find(|(own, _)| *own == powers) {
            Some((_, own)) => *own = own.plus(factor),
            None => self.0.push((powers, factor)),
        }
    }

    fn add_product(&mut self, a: &Polynomial, powers: Powers, factor: Fraction) {
        for (own, by) in &a.0 {
            let mut both = powers;
            both.iter_mut().zip(own).for_each(|(power, own)| *power += own);
            self.add(both, factor.times(*by));
        }
    }

    fn times(&self, other: &Polynomial) -> Polynomial {
        let mut product = Polynomial(Vec::new());
        for (powers, factor) in &other.0 {
            product.add_product(self, *powers, *factor);
        }
        product
    }

    /// Returns the sum of `t^power` over `t` from zero below `end`.
    fn sum_below(end: &Affine, power: usize) -> Polynomial {
        let end = Polynomial::of(end);
        let mut raised = Polynomial::number(1);
        let mut sum = Polynomial(Vec::new());
        for over in &SUMS[power][..=power] {
            raised = raised.times(&end);
            sum.add_product(&raised, [0; DEPTH], Fraction::new(*over, 60));
        }
        sum
    }

    /// Returns the polynomial summed over the iterations of a loop.
    fn summed(&self, level: usize, Level { from, below, .. }: &Level) -> Polynomial {
        let mut sum = Polynomial(Vec::new());
        for (powers, factor) in &self.0 {
            let power = usize::from(powers[level]);
            let mut rest = *powers;
            rest[level] = 0;
            let minus = Fraction { over: -factor.over, ..*factor };
            sum.add_product(&Polynomial::sum_below(below, power), rest, *factor);
            sum.add_product(&Polynomial::sum_below(from, power), rest, minus);
        }
        sum.0.retain(|(_, factor)| factor.over != 0);
        sum
    }

    fn as_number(&self) -> Option<i128> {
        match self.0[..] {
            [] => Some(0),
            [(powers, Fraction { over, under: 1 })] if powers == [0; DEPTH] => Some(over),
            _ => None,
        }
    }
}

/// Returns the number of iterations of a domain: exactly, without enumerating them. Without `most`.
pub(crate) fn points(domain: &Domain) -> u64 {
    // While bounds are numbers, multiply their distances.
    let mut number: i128 = 1;
    let mut polynomial: Option<Polynomial> = None;
    for level in (0..domain.depth).rev() {
        let bounds = &domain.levels[level];
        let trips = bounds.below.minus(&bounds.from);
        match (&polynomial, trips.as_number()) {
            (None, Some(trips)) => number *= i128::from(trips.max(0)),
            (None, None) => polynomial = Some(Polynomial::number(number).times(&Polynomial::of(&trips))),
            (Some(inner), _) => {
                let sum = inner.summed(level, bounds);
                match sum.as_number() {
                    Some(sum) => (number, polynomial) = (sum, None),
                    None => polynomial = Some(sum),
                }
            }
        }
    }
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}
