//! Log-linear histogram over `u64`, in the manner of HdrHistogram: octaves cut into equal sub-buckets.

use engine::{Mutant, planted};

/// Resolution of percentiles, as parts of one, so that `0.9` of 100 samples leaves exactly ten above it.
const PARTS: u64 = 1_000_000_000;

/// Minimum number of samples above a percentile that is reported.
const SAMPLES_ABOVE: u64 = 10;

/// Counts of `u64` values (usually picoseconds) in buckets whose width is at most `2^-bits` of their lower
/// bound, with exact count, sum, sum of squares, minimum and maximum.
///
/// Values below `2^(bits + 1)` have a bucket each. Memory is `8 * 2^bits` bytes for each octave between the
/// smallest and the largest value seen; an empty histogram owns none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    bits: u32,
    /// Index of the bucket at `counts[0]`; a multiple of `2^bits`.
    base: usize,
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    squares: Wide,
    min: u64,
    max: u64,
}

/// Occupied bucket of a [`Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value of the bucket.
    pub low: u64,
    /// Largest value of the bucket.
    pub high: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// Creates a histogram of 128 sub-buckets per octave: a bucket is less than 0.8 % wide.
    pub const fn new() -> Histogram {
        Histogram::with_bits(7)
    }

    /// Creates a histogram of `2^bits` sub-buckets per octave.
    ///
    /// # Panics
    /// If `bits` exceeds 16.
    pub const fn with_bits(bits: u32) -> Histogram {
        assert!(bits <= 16, "at most 16 sub-bucket bits are supported");
        Histogram {
            bits,
            base: 0,
            counts: Vec::new(),
            count: 0,
            sum: 0,
            squares: Wide::ZERO,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let slot = self.index(value).wrapping_sub(self.base);
        match self.counts.get_mut(slot) {
            Some(c) => *c += 1,
            None => self.count_beyond(value),
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.squares.add_square(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    #[cold]
    fn count_beyond(&mut self, value: u64) {
        self.cover(value, value);
        let slot = self.index(value) - self.base;
        self.counts[slot] += 1;
    }

    /// Allocates the octaves from `low` to `high` now, so that recording values between them never does.
    pub fn cover(&mut self, low: u64, high: u64) {
        let octave = 1usize << self.bits;
        let mut first = self.index(low) & !(octave - 1);
        let mut end = (self.index(high) | (octave - 1)) + 1;
        if !self.counts.is_empty() {
            first = first.min(self.base);
            end = end.max(self.base + self.counts.len());
        }
        if end - first == self.counts.len() {
            return;
        }
        let mut counts = vec![0; end - first];
        if !self.counts.is_empty() {
            let at = self.base - first;
            counts[at..at + self.counts.len()].copy_from_slice(&self.counts);
        }
        self.counts = counts;
        self.base = first;
    }

    /// Adds everything that `other` has counted.
    ///
    /// # Panics
    /// If the two differ in sub-bucket bits.
    pub fn merge(&mut self, other: &Histogram) {
        assert_eq!(self.bits, other.bits, "cannot merge histograms of different precision");
        if other.count == 0 {
            return;
        }
        self.cover(other.min, other.max);
        for b in other.buckets() {
            let slot = self.index(b.low) - self.base;
            self.counts[slot] += b.count;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares.add(other.squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Clears all values and keeps the memory, at the end of warm-up.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        self.count = 0;
        self.sum = 0;
        self.squares = Wide::ZERO;
        self.min = u64::MAX;
        self.max = 0;
    }

    /// Returns the number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the exact sum of the values.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Returns the largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns the arithmetic mean of the values themselves, not of the buckets.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Returns the sample standard deviation (divisor `N - 1`, as fio prints it); zero for a single value.
    pub fn stddev(&self) -> Option<f64> {
        if self.count < 2 {
            return (self.count == 1).then_some(0.0);
        }
        // Relative to the integer part m of the mean, everything stays integer and nothing cancels: sum (x-m)^2 = S2 -
        // m (S1 + r) with S1 = m N + r.
        let n = u128::from(self.count);
        let (m, r) = ((self.sum / n) as u64, self.sum % n);
        let around_m = self.squares.minus(Wide::product(m, self.sum + r)).as_f64();
        let r = r as f64;
        let spread = (around_m - r * r / self.count as f64).max(0.0);
        Some((spread / (self.count - 1) as f64).sqrt())
    }

    /// Returns the value below which a share `p` of the samples lies (`0.99` for p99), or `None` if fewer than ten
    /// samples would lie above it: `N (1 - p) < 10`. See [`Histogram::percentile_unchecked`] for the error.
    pub fn percentile(&self, p: f64) -> Option<u64> {
        let above = u128::from(self.count) * u128::from(PARTS - parts(p)?);
        if above < u128::from(SAMPLES_ABOVE) * u128::from(PARTS) {
            return None;
        }
        self.percentile_unchecked(p)
    }

    /// Returns the minimum number of samples for a percentile `p`, which is below one.
    pub fn least_for(p: f64) -> u64 {
        let left = parts(p).map_or(0, |parts| PARTS - parts).max(1);
        (SAMPLES_ABOVE * PARTS).div_ceil(left)
    }

    /// Returns the nearest-rank percentile, however few the samples: an estimate of the sample of rank `ceil(p N)`, at
    /// least 1.
    ///
    /// `p` counts to nine decimals. Samples are assumed to be spread evenly over their bucket, and the result is
    /// clamped to the minimum and the maximum. It is always in the same bucket as the true sample, so its error is less
    /// than `2^-bits` of it (0.8 % at 7 bits), and zero below `2^(bits + 1)`. `None` if the histogram is empty or `p`
    /// is not in 0..=1.
    pub fn percentile_unchecked(&self, p: f64) -> Option<u64> {
        let parts = parts(p)?;
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(parts)).div_ceil(u128::from(PARTS)).max(1) as u64;
        let mut below = 0;
        for b in self.buckets() {
            if below + b.count >= rank {
                if planted(Mutant::LowPercentile) {
                    return Some(b.low.max(self.min));
                }
                let within = rank - below;
                let span = u128::from(b.high - b.low);
                let offset = span * (2 * u128::from(within) - 1) / (2 * u128::from(b.count));
                return Some((b.low + offset as u64).clamp(self.min, self.max));
            }
            below += b.count;
        }
        None
    }

    /// Iterates over the occupied buckets in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> + '_ {
        self.counts.iter().enumerate().filter(|(_, c)| **c > 0).map(|(slot, &count)| {
            let (low, high) = self.bounds(slot + self.base);
            Bucket { low, high, count }
        })
    }

    /// Returns the bucket index of a value. Octave `k` above the linear part starts at index `(k + 1) << bits`; values
    /// below `2^bits` are their own index.
    #[inline]
    fn index(&self, value: u64) -> usize {
        let shift = 63 - (value | (1 << self.bits)).leading_zeros() - self.bits;
        ((shift as usize) << self.bits) + (value >> shift) as usize
    }

    fn bounds(&self, index: usize) -> (u64, u64) {
        let octave = index >> self.bits;
        if octave == 0 {
            return (index as u64, index as u64);
        }
        let shift = octave - 1;
        let mantissa = (index - (shift << self.bits)) as u64;
        let low = mantissa << shift;
        (low, low + ((1u64 << shift) - 1))
    }
}

/// Converts `p` to an integer number of billionths.
fn parts(p: f64) -> Option<u64> {
    (0.0..=1.0).contains(&p).then(|| (p * PARTS as f64).round() as u64)
}

// Unsigned 192-bit sum: wide enough for 2^64 squares of any `u64`.

/// 192-bit number: `high * 2^128 + low`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide {
    high: u64,
    low: u128,
}

impl Wide {
    pub(crate) const ZERO: Wide = Wide { high: 0, low: 0 };

    /// Returns the exact product `a * b`.
    pub(crate) fn product(a: u64, b: u128) -> Wide {
        let low = u128::from(a) * (b & u128::from(u64::MAX));
        let high = u128::from(a) * (b >> 64);
        let (sum, carry) = low.overflowing_add(high << 64);
        Wide { high: (high >> 64) as u64 + u64::from(carry), low: sum }
    }

    #[inline]
    pub(crate) fn add(&mut self, o: Wide) {
        let (low, carry) = self.low.overflowing_add(o.low);
        self.low = low;
        self.high += o.high + u64::from(carry);
    }

    #[inline]
    pub(crate) fn add_square(&mut self, v: u64) {
        let (low, carry) = self.low.overflowing_add(u128::from(v) * u128::from(v));
        self.low = low;
        self.high += u64::from(carry);
    }

    /// Returns `self - o`; the caller knows that `o` is not larger.
    pub(crate) fn minus(self, o: Wide) -> Wide {
        let (low, borrow) = self.low.overflowing_sub(o.low);
        Wide { high: self.high - o.high - u64::from(borrow), low }
    }

    pub(crate) fn as_f64(self) -> f64 {
        const TWO_POW_128: f64 = (1u128 << 127) as f64 * 2.0;
        self.high as f64 * TWO_POW_128 + self.low as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Histogram, Wide};

    #[test]
    fn buckets_tile_the_whole_range() {
        for bits in [0, 3, 7, 16] {
            let h = Histogram::with_bits(bits);
            let last = h.index(u64::MAX);
            let mut next = 0u64;
            for i in 0..=last {
                let (low, high) = h.bounds(i);
                assert_eq!(low, next, "bits {bits} index {i}");
                assert_eq!((h.index(low), h.index(high)), (i, i));
                next = high.wrapping_add(1);
            }
            assert_eq!(next, 0, "the last bucket ends at u64::MAX");
        }
    }

    #[test]
    fn memory_follows_the_octaves_in_use() {
        let mut h = Histogram::new();
        assert_eq!(h.counts.capacity(), 0);
        h.record(50_000_000);
        assert_eq!(h.counts.len(), 128);
        h.record(50_000_000 * 4);
        assert_eq!(h.counts.len(), 3 * 128);
        h.record(50_000_000 / 2);
        assert_eq!(h.counts.len(), 4 * 128);
        let before = h.counts.as_ptr();
        h.record(100_000_000);
        h.clear();
        h.record(25_000_000);
        assert_eq!(h.counts.as_ptr(), before, "no new allocation inside the range");
    }

    #[test]
    fn product_carries_into_the_high_word() {
        // (2^64 - 1) * (2^128 - 1) = 2^192 - 2^128 - 2^64 + 1
        let p = Wide::product(u64::MAX, u128::MAX);
        assert_eq!(p, Wide { high: u64::MAX - 1, low: u128::MAX - u128::from(u64::MAX) + 1 });
    }

    #[test]
    fn squares_sum_beyond_128_bits_and_subtract_back() {
        let mut s = Wide::ZERO;
        for _ in 0..1000 {
            s.add_square(u64::MAX);
        }
        let all = Wide::product(1000, u128::from(u64::MAX) * u128::from(u64::MAX));
        assert_eq!(s, all);
        let mut again = s.minus(Wide::product(1, 7));
        again.add(Wide::product(1, 7));
        assert_eq!(again, s);
        assert_eq!(s.minus(all), Wide::ZERO);
    }

    #[test]
    fn as_real_number() {
        assert_eq!(Wide { high: 1, low: 0 }.as_f64(), libm::exp2(128.0));
    }
}
