//! Confidence intervals for the mean of a correlated sequence: non-overlapping batch means.

use crate::student::student_t_quantile;

/// Batches held before neighbours are joined; between half of this and this many enter an estimate. More than
/// about 30 buys little (B. Schmeiser, Operations Research 30(3), 1982).
const BATCHES: usize = 32;

/// Mean of a stationary, correlated sequence with a confidence interval, in bounded memory.
///
/// The sequence is cut into batches of equal length, which doubles whenever there are 32; once batches are
/// long against the correlation, their means are nearly independent and normal. The unfinished last batch is
/// left out.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMeans {
    size: u64,
    sums: Vec<f64>,
    open: f64,
    in_open: u64,
}

/// An estimate `mean ± half_width`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Mean of the complete batches.
    pub mean: f64,
    /// Half the width of the confidence interval.
    pub half_width: f64,
    /// Batches it rests on.
    pub batches: u32,
    /// Observations in each.
    pub batch_size: u64,
}

impl Default for BatchMeans {
    fn default() -> BatchMeans {
        BatchMeans::new()
    }
}

impl BatchMeans {
    /// No observations.
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
        if self.sums.len() == BATCHES {
            for i in 0..BATCHES / 2 {
                self.sums[i] = self.sums[2 * i] + self.sums[2 * i + 1];
            }
            self.sums.truncate(BATCHES / 2);
            self.size *= 2;
        }
    }

    /// The mean with a two-sided interval that covers the true mean with probability `confidence` (0.95,
    /// 0.99), or `None` with fewer than two complete batches.
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
