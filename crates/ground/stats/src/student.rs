//! Student's t distribution with whole degrees of freedom, by its finite sums.

/// Probability that Student's t with `df` degrees of freedom is at most `t`.
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

/// The `p`-quantile of Student's t with `df` degrees of freedom, for `p` strictly between 0 and 1.
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
    // Halving until no number lies between.
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if student_t_cdf(middle, df) < p { low = middle } else { high = middle }
    }
}

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
