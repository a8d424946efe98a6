//! Percentiles of a correlated sequence with confidence intervals: batches of equal length, each with its own histogram.

use crate::histogram::Histogram;
use crate::student::student_t_quantile;

/// Batches held before neighbours are joined, as for [`BatchMeans`](crate::BatchMeans).
const BATCHES: usize = 32;
/// Values of a batch at first.
const FIRST: u64 = 16;
/// Fewer batches give no interval: with nine degrees of freedom Student's t is 15 % above the normal quantile, with four 42 %
/// (B. Schmeiser, Operations Research 30(3), 1982: between 10 and 30 batches).
const LEAST: usize = 10;

/// A stationary, correlated sequence of `u64` values: its histogram, with confidence intervals of mean and percentiles, in
/// bounded memory.
///
/// The sequence is cut into batches of equal length, which doubles whenever there are 32. The unfinished last batch counts in
/// [`Batched::whole`] and in no interval. Memory is that of at most 32 histograms.
///
/// An interval of a percentile is that of sectioning: the whole's percentile is the estimate, and the batches' own percentiles
/// scatter around it (S. Asmussen, P. W. Glynn, Stochastic Simulation, 2007, section III.5). Batches have a percentile where
/// [`Histogram::percentile`] gives one; neighbours are joined until they have, as long as ten are left.
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
    /// No values.
    pub const fn new() -> Batched {
        Batched { size: FIRST, closed: Vec::new(), open: Histogram::new() }
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
        if self.closed.len() == BATCHES {
            self.closed = join(&self.closed, 2);
            self.size *= 2;
        }
    }

    /// The complete batches, in order.
    pub fn batches(&self) -> &[Histogram] {
        &self.closed
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.size * self.closed.len() as u64 + self.open.count()
    }

    /// All values.
    pub fn whole(&self) -> Histogram {
        let mut whole = self.open.clone();
        self.closed.iter().for_each(|batch| whole.merge(batch));
        whole
    }

    /// Half the width of the two-sided interval that covers the true mean with probability `confidence` (0.95, 0.99), or `None`
    /// with fewer than ten batches.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn mean_half_width(&self, confidence: f64) -> Option<f64> {
        let means: Vec<f64> = self.closed.iter().filter_map(Histogram::mean).collect();
        let centre = means.iter().sum::<f64>() / means.len() as f64;
        half_width(&means, centre, confidence)
    }

    /// The same for the value below which a share `p` of the values lies, or `None` where too few batches have enough values
    /// above theirs: with fewer than about `100 / (1 - p)` values.
    ///
    /// # Panics
    /// If `confidence` is not strictly between 0 and 1.
    pub fn percentile_half_width(&self, p: f64, confidence: f64) -> Option<f64> {
        let centre = self.whole().percentile(p)? as f64;
        (1..=self.closed.len() / LEAST).find_map(|group| {
            let joined = join(&self.closed, group);
            let own: Option<Vec<f64>> =
                joined.iter().map(|batch| batch.percentile(p).map(|own| own as f64)).collect();
            half_width(&own?, centre, confidence)
        })
    }

    /// The least number of values that give the value below which a share `p` of them lies an interval; `p` below one.
    pub fn least_for(p: f64) -> u64 {
        let needed = Histogram::least_for(p);
        let sizes = std::iter::successors(Some(FIRST), |size| size.checked_mul(2));
        // When the batches of a size become as many as half of the most, or as ten groups of neighbours take.
        let half = BATCHES as u64 / 2;
        let groups = 1..=(BATCHES - 1) / LEAST;
        let first = |size: u64| {
            let group = groups.clone().find(|group| *group as u64 * size >= needed)?;
            Some(size * half.max((group * LEAST) as u64))
        };
        sizes.filter_map(first).next().unwrap_or(u64::MAX)
    }

    /// Forgets every value: the end of warm-up.
    pub fn clear(&mut self) {
        *self = Batched::new();
    }
}

/// Joins so many neighbours at a time; what is left over is left out.
fn join(batches: &[Histogram], neighbours: usize) -> Vec<Histogram> {
    let one = |group: &[Histogram]| {
        let mut joined = group[0].clone();
        group[1..].iter().for_each(|batch| joined.merge(batch));
        joined
    };
    batches.chunks_exact(neighbours).map(one).collect()
}

/// Half the width of the interval around `centre` that the scatter of independent estimates around it allows.
fn half_width(estimates: &[f64], centre: f64, confidence: f64) -> Option<f64> {
    if estimates.len() < LEAST {
        return None;
    }
    let k = estimates.len() as f64;
    let spread: f64 = estimates.iter().map(|x| (x - centre) * (x - centre)).sum();
    let t = student_t_quantile(0.5 + 0.5 * confidence, estimates.len() as u32 - 1);
    Some(t * (spread / (k - 1.0) / k).sqrt())
}
