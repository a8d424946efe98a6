//! Sums of loop variables with whole coefficients.

/// Loops inside one another at most.
pub const DEPTH: usize = 6;

/// How often each loop around a place has been passed, from the outermost: the iteration it is in, counted from zero.
pub type Point = [i64; DEPTH];

/// A constant plus whole multiples of the iteration numbers of the loops around it.
///
/// Loop variables themselves are such sums: `for i in 2..n step 3` has `i = 2 + 3 t`, where `t` counts iterations from zero. Sizes
/// are numbers by the time a kernel is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affine {
    /// The value where every loop is in its first iteration.
    pub constant: i64,
    /// What one more iteration of a loop adds, by its depth from the outermost.
    pub by: [i64; DEPTH],
}

impl Affine {
    /// A number.
    pub(crate) fn number(constant: i64) -> Affine {
        Affine { constant, by: [0; DEPTH] }
    }

    /// The value at a point.
    #[inline]
    pub fn at(&self, point: &Point) -> i64 {
        self.by.iter().zip(point).fold(self.constant, |sum, (by, t)| sum + by * t)
    }

    /// The value if no loop changes it.
    pub fn as_number(&self) -> Option<i64> {
        self.by.iter().all(|by| *by == 0).then_some(self.constant)
    }

    /// The depth of the innermost loop that changes it.
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

    /// As [`Affine::with`], of numbers that somebody else has written; nothing where they are too large.
    pub(crate) fn checked_with(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let add = |a: i64, b: i64| a.checked_add(b.checked_mul(factor)?).filter(is_small);
        let mut sum = Affine::number(add(self.constant, other.constant)?);
        for level in 0..DEPTH {
            sum.by[level] = add(self.by[level], other.by[level])?;
        }
        Some(sum)
    }

    /// A whole part of it, rounded down: nothing if the quotient is no such sum.
    pub(crate) fn divided(&self, divisor: i64) -> Option<Affine> {
        let whole = self.by.iter().all(|by| by % divisor == 0);
        whole.then(|| Affine {
            constant: self.constant.div_euclid(divisor),
            by: self.by.map(|by| by / divisor),
        })
    }
}

/// Whether a number is small enough to be written in a kernel.
pub(crate) fn is_small(number: &i64) -> bool {
    number.unsigned_abs() <= 1 << 40
}
