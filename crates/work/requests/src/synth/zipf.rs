//! Zipf ranks by rejection-inversion.

/// Draws ranks `0..n` with probability proportional to `(rank + 1)^-theta`, in constant time and memory.
///
/// Rejection-inversion: W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996. The distribution is exact for every `n`; fio uses the approximation of Gray
/// et al. (SIGMOD 1994) with the normaliser summed over the first ten million ranks only.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// `1 - theta`, or zero if it is so small that the logarithmic limit is the better formula.
    rest: f64,
    inverse_rest: f64,
    low: f64,
    width: f64,
    accept: f64,
}

/// Below this, `(x^rest - 1) / rest` loses more digits than its limit `ln x` is off by.
const NEARLY_ONE: f64 = 1e-8;

impl Zipf {
    /// The largest skew taken: beyond it every draw is rank 0 in double precision.
    pub const MAX_THETA: f64 = 50.0;

    /// Ranks `0..n` with skew `theta` in `0 < theta <= 50`.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let rest = if (1.0 - theta).abs() < NEARLY_ONE { 0.0 } else { 1.0 - theta };
        let inverse_rest = if rest == 0.0 { 0.0 } else { 1.0 / rest };
        let mut zipf =
            Zipf { n: n.max(1) as f64, theta, rest, inverse_rest, low: 0.0, width: 0.0, accept: 0.0 };
        zipf.low = zipf.area(1.5) - 1.0;
        zipf.width = zipf.area(zipf.n + 0.5) - zipf.low;
        zipf.accept = 2.0 - zipf.inverse_area(zipf.area(2.5) - zipf.height(2.0));
        zipf
    }

    /// A rank, from draws that are uniform between 0 and 1.
    #[inline]
    pub fn rank(&self, mut unit: impl FnMut() -> f64) -> u64 {
        loop {
            let area = self.low + unit() * self.width;
            let x = self.inverse_area(area);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= self.accept || area >= self.area(k + 0.5) - self.height(k) {
                return k as u64 - 1;
            }
        }
    }

    /// `x^-theta`.
    fn height(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of the height from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        if self.rest == 0.0 { log } else { libm::expm1(self.rest * log) * self.inverse_rest }
    }

    #[inline]
    fn inverse_area(&self, area: f64) -> f64 {
        if self.rest == 0.0 {
            libm::exp(area)
        } else {
            // Rounding may push the argument a hair below the pole at -1.
            let t = (area * self.rest).max(-1.0);
            libm::exp(libm::log1p(t) * self.inverse_rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Purpose, Stream};
    use super::*;

    /// Draws against the probabilities summed naively; ranks beyond `head` are one cell.
    fn chi_square(n: u64, theta: f64, head: usize, total: f64, draws: u64) -> f64 {
        let zipf = Zipf::new(n, theta);
        let mut stream = Stream::new(11, Purpose::Offset);
        let mut counts = vec![0u64; head + 1];
        for _ in 0..draws {
            let rank = zipf.rank(|| stream.unit());
            assert!(rank < n);
            counts[(rank as usize).min(head)] += 1;
        }
        let mut left = 1.0;
        let mut chi = 0.0;
        for (rank, &count) in counts.iter().enumerate() {
            let p = if rank == head { left } else { libm::pow((rank + 1) as f64, -theta) / total };
            left -= p;
            if p > 0.0 {
                let expected = p * draws as f64;
                chi += (count as f64 - expected).powi(2) / expected;
            }
        }
        chi
    }

    fn naive_zeta(n: u64, theta: f64) -> f64 {
        (1..=n).map(|k| libm::pow(k as f64, -theta)).sum()
    }

    #[test]
    fn ranks_follow_the_power_law() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.2, 2.5] {
            let n = 1000;
            // 30 degrees of freedom: the 99.99 % point is 67.6.
            let chi = chi_square(n, theta, 30, naive_zeta(n, theta), 400_000);
            assert!(chi < 67.6, "theta = {theta}: {chi}");
        }
    }

    #[test]
    fn a_thousand_million_ranks_are_no_different() {
        // Zeta by Euler-Maclaurin: the first million terms, then the integral and half the end terms.
        for theta in [0.6, 0.99, 1.1] {
            let (n, m) = (1_000_000_000u64, 1_000_000u64);
            let tail = (libm::pow(n as f64, 1.0 - theta) - libm::pow(m as f64, 1.0 - theta)) / (1.0 - theta);
            let ends = (libm::pow(n as f64, -theta) - libm::pow(m as f64, -theta)) / 2.0;
            let zeta = naive_zeta(m, theta) + tail + ends;
            let chi = chi_square(n, theta, 30, zeta, 400_000);
            assert!(chi < 67.6, "theta = {theta}: {chi}");
        }
    }

    #[test]
    fn extremes_stay_in_range() {
        let mut stream = Stream::new(1, Purpose::Offset);
        for (n, theta) in [(1, 0.99), (2, 50.0), (u64::MAX >> 12, 0.01), (1 << 40, 1.0 + 1e-12)] {
            let zipf = Zipf::new(n, theta);
            for _ in 0..1000 {
                assert!(zipf.rank(|| stream.unit()) < n, "{n} {theta}");
            }
        }
    }
}
