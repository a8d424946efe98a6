//! Interval estimates of correlated sequences: Student's t distribution, batch means, percentiles of batches, and the
//! end of the transient.

use crate::histogram::Histogram;

/// Returns the probability that Student's t with `df` degrees of freedom is at most `t`.
///
/// M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
///
/// # Panics
/// If `df` is zero.
pub fn student_t_cdf(t: f64, df: u32) -> f64 {
    assert!(df > 0, "no degrees of freedom");
    let n = f64::from(df);
    let (sin, cos2) = (t / (n + t * t).sqrt(), n / (n + t * t));
    let odd = df % 2 == 1;
    // Terms of sum_k c_k cos^2k, c_k = c_(k-1) (2k - 1)/(2k), or (2k)/(2k + 1) if df is odd.
    let (mut term, mut sum) = (1.0, 0.0);
    let terms = if odd { (df - 1) / 2 } else { df / 2 };
    for k in 1..=terms {
        sum += term;
        let k = f64::from(2 * k);
        term *= cos2 * if odd { k / (k + 1.0) } else { (k - 1.0) / k };
    }
    let within = if odd {
        let angle = libm::atan(t / n.sqrt());
        (angle + sin * cos2.sqrt() * sum) * std::f64::consts::FRAC_2_PI
    } else {
        sin * sum
    };
    0.5 + 0.5 * within
}

/// Returns the `p`-quantile of Student's t with `df` degrees of freedom, for `p` strictly between 0 and 1.
///
/// # Panics
/// If `df` is zero or `p` is out of range.
pub fn student_t_quantile(p: f64, df: u32) -> f64 {
    assert!(p > 0.0 && p < 1.0, "probability {p} is not between 0 and 1");
    if p < 0.5 {
        return -student_t_quantile(1.0 - p, df);
    }
    let (mut low, mut high) = (0.0, 1.0);
    while student_t_cdf(high, df) < p && high < 1e300 {
        low = high;
        high *= 2.0;
    }
    // Bisect until no floating-point number lies between.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if student_t_cdf(middle, df) < p { low = middle } else { high = middle }
    }
}

/// Number of batches at which neighbours are joined; between half of this and this many enter an estimate. More than
/// about 30 gain little (B. Schmeiser, Operations Research 30(3), 1982).
const MEANS_MAX: usize = 32;

/// Mean of a stationary, correlated sequence with a confidence interval, in bounded memory.
///
/// The sequence is cut into batches of equal length, which doubles whenever there are 32. Once batches are long
/// compared with the correlation, their means are nearly independent and normal. The unfinished last batch is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    size: u64,
    sums: Vec<f64>,
    open: f64,
    in_open: u64,
}

/// Estimate `mean ± half_width`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the complete batches.
    pub mean: f64,
    /// Half-width of the confidence interval.
    pub half_width: f64,
    /// Number of batches in the estimate.
    pub batches: u32,
    /// Observations per batch.
    pub batch_size: u64,
}

impl Default for BatchMeans {
    fn default() -> BatchMeans {
        BatchMeans::new()
    }
}

impl BatchMeans {
    /// Creates an empty sequence.
    pub const fn new() -> BatchMeans {
        BatchMeans { size: 1, sums: Vec::new(), open: 0.0, in_open: 0 }
    }

    /// Adds the next observation of the sequence.
    #[inline]
    pub fn push(&mut self, x: f64) {
        self.open += x;
        self.in_open += 1;
        if self.in_open == self.size {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        self.sums.push(self.open);
        self.open = 0.0;
        self.in_open = 0;
        if self.sums.len() == MEANS_MAX {
            for i in 0..MEANS_MAX / 2 {
                self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
            }
            self.sums.truncate(MEANS_MAX / 2);
            self.size *= 2;
        }
    }

    /// Returns the mean with a two-sided interval that covers the true mean with probability `confidence` (0.95, 0.99),
    /// or `None` with fewer than two complete batches.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let batches = self.sums.len() as u32;
        if batches < 2 {
            return None;
        }
        let (k, size) = (f64::from(batches), self.size as f64);
        let mean = self.sums.iter().sum::<f64>() / k / size;
        let spread: f64 = self.sums.iter().map(|s| (s / size - mean) * (s / size - mean)).sum();
        let t = student_t_quantile(0.5 + 0.5 * confidence, batches - 1);
        let half_width = t * (spread / (k - 1.0) / k).sqrt();
        Some(Interval { mean, half_width, batches, batch_size: self.size })
    }
}

// Percentiles of a correlated sequence with confidence intervals: batches of equal length, each with its own histogram.

/// Number of batches at which neighbours are joined, as for [`BatchMeans`].
const HISTOGRAMS_MAX: usize = 32;

/// Initial number of values per batch.
const HISTOGRAM_FIRST: u64 = 16;

/// Minimum number of batches for an interval: with nine degrees of freedom Student's t is 15 % above the normal
/// quantile, with four 42 % (B. Schmeiser, Operations Research 30(3), 1982: between 10 and 30 batches).
const ESTIMATES_LEAST: usize = 10;

/// Stationary, correlated sequence of `u64` values: its histogram, with confidence intervals of the mean and of
/// percentiles, in bounded memory.
///
/// The sequence is cut into batches of equal length, which doubles whenever there are 32. The unfinished last batch
/// counts in [`Batched::whole`] but in no interval. Memory is that of at most 32 histograms.
///
/// Percentile intervals use sectioning: the percentile of the whole is the estimate, and the batches' own percentiles
/// scatter around it (S. Asmussen, P. W. Glynn, Stochastic Simulation, 2007, section III.5). A batch has a percentile
/// if [`Histogram::percentile`] returns one; neighbours are joined until they do, as long as ten are left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batched {
    size: u64,
    closed: Vec<Histogram>,
    open: Histogram,
}

impl Default for Batched {
    fn default() -> Batched {
        Batched::new()
    }
}

impl Batched {
    /// Creates an empty sequence.
    pub const fn new() -> Batched {
        Batched { size: HISTOGRAM_FIRST, closed: Vec::new(), open: Histogram::new() }
    }

    /// Counts the next value of the sequence.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.open.record(value);
        if self.open.count() == self.size {
            self.close();
        }
    }

    #[cold]
    fn close(&mut self) {
        self.closed.push(std::mem::take(&mut self.open));
        if self.closed.len() == HISTOGRAMS_MAX {
            self.closed = join(&self.closed, 2);
            self.size *= 2;
        }
    }

    /// Returns the complete batches, in order.
    pub fn batches(&self) -> &[Histogram] {
        &self.closed
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.size * self.closed.len() as u64 + self.open.count()
    }

    /// Returns the histogram of all values.
    pub fn whole(&self) -> Histogram {
        let mut whole = self.open.clone();
        self.closed.iter().for_each(|batch| whole.merge(batch));
        whole
    }

    /// Returns the half-width of the two-sided interval that covers the true mean with probability `confidence` (0.95,
    /// 0.99), or `None` with fewer than ten batches.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn mean_half_width(&self, confidence: f64) -> Option<f64> {
        let means: Vec<f64> = self.closed.iter().filter_map(Histogram::mean).collect();
        let centre = means.iter().sum::<f64>() / means.len() as f64;
        half_width(&means, centre, confidence)
    }

    /// Returns the same half-width for the value below which a share `p` of the values lies. `None` if too few batches
    /// have enough values above theirs: with fewer than about `100 / (1 - p)` values.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn percentile_half_width(&self, p: f64, confidence: f64) -> Option<f64> {
        let centre = self.whole().percentile(p)? as f64;
        (1..=self.closed.len() / ESTIMATES_LEAST).find_map(|group| {
            let joined = join(&self.closed, group);
            let own: Option<Vec<f64>> =
                joined.iter().map(|batch| batch.percentile(p).map(|own| own as f64)).collect();
            half_width(&own?, centre, confidence)
        })
    }

    /// Returns the minimum number of values for an interval of the percentile `p`, which is below one.
    pub fn least_for(p: f64) -> u64 {
        let needed = Histogram::least_for(p);
        let sizes = std::iter::successors(Some(HISTOGRAM_FIRST), |size| size.checked_mul(2));
        // Number of batches of a size at which there are half of the maximum, or ten groups of neighbours.
        let half = HISTOGRAMS_MAX as u64 / 2;
        let groups = 1..=(HISTOGRAMS_MAX - 1) / ESTIMATES_LEAST;
        let first = |size: u64| {
            let group = groups.clone().find(|group| *group as u64 * size >= needed)?;
            Some(size * half.max((group * ESTIMATES_LEAST) as u64))
        };
        sizes.filter_map(first).next().unwrap_or(u64::MAX)
    }

    /// Clears all values, at the end of warm-up.
    pub fn clear(&mut self) {
        *self = Batched::new();
    }
}

/// Joins groups of `neighbours` batches; an incomplete last group is dropped.
fn join(batches: &[Histogram], neighbours: usize) -> Vec<Histogram> {
    let one = |group: &[Histogram]| {
        let mut joined = group[0].clone();
        group[1..].iter().for_each(|batch| joined.merge(batch));
        joined
    };
    batches.chunks_exact(neighbours).map(one).collect()
}

/// Returns the half-width of the interval around `centre`, from the scatter of independent estimates around it.
fn half_width(estimates: &[f64], centre: f64, confidence: f64) -> Option<f64> {
    if estimates.len() < ESTIMATES_LEAST {
        return None;
    }
    let k = estimates.len() as f64;
    let spread: f64 = estimates.iter().map(|x| (x - centre) * (x - centre)).sum();
    let t = student_t_quantile(0.5 + 0.5 * confidence, estimates.len() as u32 - 1);
    Some(t * (spread / (k - 1.0) / k).sqrt())
}

// End of the transient of a sequence: the marginal standard error rule over batches of five, MSER-5.

/// Initial number of values per batch.
const MSER_FIRST: u64 = 5;

/// Number of batches at which neighbours are joined.
const MSER_BATCHES: usize = 128;

/// Minimum number of batches for an answer: half of those left after a join, so that joining never withdraws an answer.
const MSER_LEAST: usize = MSER_BATCHES / 4;

/// Batches at the end that the rule ignores: the standard error of a few batches that happen to be alike is small.
const MSER_END: usize = 5;

/// Growth of the sequence during which an answer must hold to count, a fourth: checked repeatedly, the rule finds a
/// lucky moment even in a growing sequence. This ratio misses hardly any steady sequence and costs little if all is
/// steady.
const MSER_HELD: (u64, u64) = (4, 5);

/// Detects, while a sequence grows, how much of its beginning is transient.
///
/// Among `n` batch means `Y`, the transient is the first `d` that minimise the squared standard error of the mean of
/// the rest, `sum over i > d of (Y_i - mean of these)^2 / (n - d)^2` (K. P. White, Simulation 69(6), 1997; batches of
/// five: K. P. White, M. J. Cobb, S. C. Spratt, Winter Simulation Conference 2000). If `d` is in the second half, the
/// sequence is too short to tell. The batch size doubles at 128 batches, so memory is bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Mser {
    size: u64,
    sums: Vec<f64>,
    open: f64,
    in_open: u64,
    /// Number of values when the rule began to have an answer, which it has had since.
    since: Option<u64>,
    steady: bool,
}

impl Default for Mser {
    fn default() -> Mser {
        Mser::new()
    }
}

impl Mser {
    /// Creates an empty sequence.
    pub const fn new() -> Mser {
        Mser { size: MSER_FIRST, sums: Vec::new(), open: 0.0, in_open: 0, since: None, steady: false }
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
        self.steady = self.since.is_some_and(|since| MSER_HELD.0 * pushed >= MSER_HELD.1 * since);
        if self.sums.len() == MSER_BATCHES {
            for i in 0..MSER_BATCHES / 2 {
                self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
            }
            self.sums.truncate(MSER_BATCHES / 2);
            self.size *= 2;
        }
    }

    /// Returns the number of transient values at the beginning, in whole batches; `None` with fewer than 32 batches, or
    /// if the sequence is too short to tell.
    pub fn transient(&self) -> Option<u64> {
        let n = self.sums.len();
        if n < MSER_LEAST {
            return None;
        }
        let size = self.size as f64;
        // From the end: count, mean and squared distances of the batches after `d` (B. P. Welford, Technometrics 4(3),
        // 1962).
        let (mut count, mut mean, mut spread) = (0.0, 0.0, 0.0);
        let (mut best, mut at) = (f64::INFINITY, n);
        for (d, sum) in self.sums.iter().enumerate().rev() {
            let apart = sum / size - mean;
            count += 1.0;
            mean += apart / count;
            spread += apart * (sum / size - mean);
            // Among equals the first: a constant has no transient.
            if n - d > MSER_END && spread / (count * count) <= best {
                (best, at) = (spread / (count * count), d);
            }
        }
        (2 * at <= n).then_some(at as u64 * self.size)
    }

    /// Returns whether [`Mser::transient`] has had an answer at every batch of the last fifth of the sequence.
    #[inline]
    pub fn is_steady(&self) -> bool {
        self.steady
    }
}

#[cfg(test)]
mod tests {
    use super::{student_t_cdf, student_t_quantile};

    /// NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, critical values of Student's t.
    const TABLE: [(u32, f64, f64, f64); 13] = [
        (1, 6.314, 12.706, 63.657),
        (2, 2.920, 4.303, 9.925),
        (3, 2.353, 3.182, 5.841),
        (4, 2.132, 2.776, 4.604),
        (5, 2.015, 2.571, 4.032),
        (7, 1.895, 2.365, 3.499),
        (10, 1.812, 2.228, 3.169),
        (15, 1.753, 2.131, 2.947),
        (19, 1.729, 2.093, 2.861),
        (30, 1.697, 2.042, 2.750),
        (40, 1.684, 2.021, 2.704),
        (60, 1.671, 2.000, 2.660),
        (100, 1.660, 1.984, 2.626),
    ];

    #[test]
    fn published_critical_values() {
        for (df, p95, p975, p995) in TABLE {
            for (p, t) in [(0.95, p95), (0.975, p975), (0.995, p995)] {
                assert!((student_t_quantile(p, df) - t).abs() <= 0.0005, "df {df} p {p}");
                assert_eq!(student_t_quantile(1.0 - p, df), -student_t_quantile(1.0 - (1.0 - p), df));
            }
        }
    }

    #[test]
    fn many_degrees_of_freedom_approach_the_normal() {
        assert!((student_t_quantile(0.975, 1_000_000) - 1.959_964).abs() < 1e-5);
        assert!((student_t_cdf(1.0, 1_000_000) - 0.841_344_7).abs() < 1e-6);
    }

    #[test]
    fn closed_forms_of_one_and_two_degrees() {
        for t in [-30.0, -1.0, 0.0, 0.3, 2.0, 100.0] {
            let cauchy = 0.5 + libm::atan(t) / std::f64::consts::PI;
            assert!((student_t_cdf(t, 1) - cauchy).abs() < 1e-14);
            let two = 0.5 + 0.5 * t / (2.0 + t * t).sqrt();
            assert!((student_t_cdf(t, 2) - two).abs() < 1e-14);
        }
    }
}
