//! Random streams of one generator: one per purpose, so that a change of, say, the block-size split leaves the
//! offsets as they were (fio keeps its states apart in the same way).

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

/// What a stream is drawn for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Offsets.
    Offset = 1,
    /// Whether a request reads, writes or trims.
    Direction,
    /// Sizes of requests.
    Size,
    /// Whether a request is random, of a job that is in part.
    Mixture,
    /// Times between arrivals.
    Arrival,
    /// When a job begins.
    Delay,
    /// Where the most popular block lies.
    Scatter,
    /// What a request asks of a program.
    Request,
    /// Which file a request is of.
    File,
    /// Sizes of files.
    FileSize,
}

/// A stream of random numbers, 16 bytes of state.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream for one purpose under `seed`.
    pub fn new(seed: u64, purpose: Purpose) -> Stream {
        let mut state = seed ^ (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = split_mix(&mut state);
        let low = split_mix(&mut state);
        Stream(Pcg64Mcg::new((high as u128) << 64 | low as u128))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`. The multiply-shift without rejection is off by at most `n / 2^64` per value, which no
    /// run is long enough to see.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }

    /// Uniform in `1..=100`.
    #[inline]
    pub fn percent(&mut self) -> u8 {
        1 + self.below(100) as u8
    }

    /// Uniform in the open interval (0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): spreads a counter over 64 bits.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    engine::mix(*state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_sequence() {
        // First outputs for seed 1234567, from the reference implementation by Sebastiano Vigna.
        let mut state = 1_234_567;
        let drawn: Vec<u64> = (0..3).map(|_| split_mix(&mut state)).collect();
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn percent_covers_exactly_one_to_a_hundred_evenly() {
        let mut stream = Stream::new(3, Purpose::Direction);
        let mut seen = [0u32; 102];
        for _ in 0..1_000_000 {
            seen[stream.percent() as usize] += 1;
        }
        assert_eq!((seen[0], seen[101]), (0, 0));
        // Chi-square with 99 degrees of freedom: the 99.99 % point is 157.
        let chi: f64 = seen[1..=100].iter().map(|&n| (n as f64 - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 157.0, "{chi}");
    }

    #[test]
    fn purposes_are_independent_streams() {
        let mut a = Stream::new(9, Purpose::Offset);
        let mut b = Stream::new(9, Purpose::Size);
        assert_ne!(a.bits(), b.bits());
    }
}
