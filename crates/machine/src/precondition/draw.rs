//! Which unit is written next.

use super::permutation::Permutation;
use kernel::Rng;

/// The largest skew: beyond it every draw is the first rank in double precision.
pub(super) const MAX_THETA: f64 = 50.0;
/// Closer to one than this, the logarithm is a better integral of the power law than the power.
const NEARLY_ONE: f64 = 1e-8;

/// Draws of units of a share, with replacement.
pub(super) enum Draw {
    /// Each unit is as likely.
    Uniform(u64),
    /// By rank, and ranks scattered over the share.
    Zipf(Zipf, Permutation),
}

impl Draw {
    #[inline]
    pub(super) fn unit(&self, rng: &mut Rng) -> u64 {
        match self {
            Draw::Uniform(units) => rng.below(*units),
            Draw::Zipf(zipf, scatter) => scatter.at(zipf.rank(rng)),
        }
    }
}

/// Ranks `0..n` with probabilities in proportion to `(rank + 1)^-theta`, exact at any `n`, in constant time.
///
/// Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996): inversion of the integral of the power law,
/// and rejection of what lies above its histogram.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    n: f64,
    theta: f64,
    /// The integral from 1 at the lower and the upper end.
    low: f64,
    high: f64,
    /// A draw no further than this from its rank is accepted without a look at the histogram.
    near: f64,
}

impl Zipf {
    /// `theta` lies above zero and at most at [`MAX_THETA`].
    pub(super) fn new(n: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { n: n as f64, theta, low: 0.0, high: 0.0, near: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.n + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        zipf
    }

    #[inline]
    pub(super) fn rank(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.high + rng.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.n);
            if rank - x <= self.near || area >= self.integral(rank + 0.5) - self.height(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn is_harmonic(&self) -> bool {
        (self.theta - 1.0).abs() < NEARLY_ONE
    }

    /// `x^-theta`.
    fn height(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of [`Zipf::height`] from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        if self.is_harmonic() { log } else { libm::expm1((1.0 - self.theta) * log) / (1.0 - self.theta) }
    }

    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        if self.is_harmonic() {
            return libm::exp(area);
        }
        // Rounding must not push the argument below its pole.
        let power = ((1.0 - self.theta) * area).max(-1.0);
        libm::exp(libm::log1p(power) / (1.0 - self.theta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_power_law() {
        for theta in [0.2, 0.6, 0.99, 1.0, 1.2, 3.0] {
            let (n, draws, head) = (1000u64, 300_000, 30);
            let weight = |rank: u64| libm::pow((rank + 1) as f64, -theta);
            let sum: f64 = (0..n).map(weight).sum();
            let zipf = Zipf::new(n, theta);
            let mut rng = Rng::stream(7, "test");
            let mut counts = vec![0f64; head + 1];
            for _ in 0..draws {
                counts[(zipf.rank(&mut rng) as usize).min(head)] += 1.0;
            }
            let tail: f64 = (head as u64..n).map(weight).sum();
            let chi: f64 = counts
                .iter()
                .enumerate()
                .map(|(rank, count)| {
                    let p = if rank == head { tail } else { weight(rank as u64) };
                    let expected = p / sum * f64::from(draws);
                    (count - expected).powi(2) / expected
                })
                .sum();
            // 59.7 is the 0.999 quantile at 30 degrees of freedom.
            assert!(chi < 59.7, "theta {theta}: {chi}");
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut rng = Rng::stream(1, "test");
        for (n, theta) in [(1, 0.9), (2, MAX_THETA), (1 << 44, 0.01), (1 << 44, 1.0 + 1e-12)] {
            let zipf = Zipf::new(n, theta);
            assert!((0..1000).all(|_| zipf.rank(&mut rng) < n), "{n} {theta}");
        }
    }
}
