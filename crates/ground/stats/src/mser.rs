//! Where the transient of a sequence ends: the marginal standard error rule over batches of five, MSER-5.

/// Values of a batch at first.
const FIRST: u64 = 5;
/// Batches held before neighbours are joined.
const BATCHES: usize = 128;
/// Fewer batches have no answer: half of what is there after a join, so that joining never takes an answer back.
const LEAST: usize = BATCHES / 4;
/// Batches at the end of which the rule knows nothing: the standard error of a few batches that happen to be alike is small.
const END: usize = 5;
/// An answer counts when it has held while the sequence has become longer by a fourth: looked at again and again, the rule finds
/// a lucky moment in what still grows. It is about this that misses hardly any of them and costs little where all is steady.
const HELD: (u64, u64) = (4, 5);

/// Finds out while a sequence grows how much of its beginning is transient.
///
/// Of `n` batch means `Y`, the first `d` are the transient that minimises the squared standard error of the mean of the rest,
/// `sum over i > d of (Y_i - mean of these)^2 / (n - d)^2` (K. P. White, Simulation 69(6), 1997; batches of five: K. P. White,
/// M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000). A `d` in the latter half says that the sequence is too short
/// to tell. Batches double when there are 128, so that memory is bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Mser {
    size: u64,
    sums: Vec<f64>,
    open: f64,
    in_open: u64,
    /// Values so far when the rule began to have an answer, which it has had since.
    since: Option<u64>,
    steady: bool,
}

impl Default for Mser {
    fn default() -> Mser {
        Mser::new()
    }
}

impl Mser {
    /// No values.
    pub const fn new() -> Mser {
        Mser { size: FIRST, sums: Vec::new(), open: 0.0, in_open: 0, since: None, steady: false }
    }

    /// Adds the next value.
    #[inline]
    pub fn push(&mut self, x: f64) {
        self.open += x;
        self.in_open += 1;
        if self.in_open == self.size {
            self.close();
        }
    }

    fn close(&mut self) {
        self.sums.push(self.open);
        self.open = 0.0;
        self.in_open = 0;
        let pushed = self.sums.len() as u64 * self.size;
        self.since = self.transient().and(self.since.or(Some(pushed)));
        self.steady = self.since.is_some_and(|since| HELD.0 * pushed >= HELD.1 * since);
        if self.sums.len() == BATCHES {
            for i in 0..BATCHES / 2 {
                self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
            }
            self.sums.truncate(BATCHES / 2);
            self.size *= 2;
        }
    }

    /// Values at the beginning that are transient, by whole batches; none if there are fewer than 32 batches, or if the
    /// sequence is too short to tell.
    pub fn transient(&self) -> Option<u64> {
        let n = self.sums.len();
        if n < LEAST {
            return None;
        }
        let size = self.size as f64;
        // From the end: count, mean and squared distances of the batches behind `d` (B. P. Welford, Technometrics 4(3), 1962).
        let (mut count, mut mean, mut spread) = (0.0, 0.0, 0.0);
        let (mut best, mut at) = (f64::INFINITY, n);
        for (d, sum) in self.sums.iter().enumerate().rev() {
            let apart = sum / size - mean;
            count += 1.0;
            mean += apart / count;
            spread += apart * (sum / size - mean);
            // Of equals the first: a constant has no transient.
            if n - d > END && spread / (count * count) <= best {
                (best, at) = (spread / (count * count), d);
            }
        }
        (2 * at <= n).then_some(at as u64 * self.size)
    }

    /// Whether [`Mser::transient`] has had an answer at every batch of the last fifth of the sequence.
    #[inline]
    pub fn is_steady(&self) -> bool {
        self.steady
    }
}
