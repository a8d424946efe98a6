//! Synthetic requests: a [`Job`] describes them, a [`Generator`] draws them.
//!
//! Terms and their meaning are fio's; [`crate::fio`] reads them.

mod generator;
mod job;
mod pace;
mod permute;
mod place;
mod popularity;

pub use generator::{Generator, Poll};
pub use job::{
    Access, Arrival, Choice, Direction, Each, Files, Flushes, Follow, Job, Limits, Order, Rate, Region,
    Service, Share, Sizes, Think,
};
pub use permute::Permutation;
pub use popularity::{Measured, Popularity, Zone};

use rand_pcg::{Pcg64Mcg, rand_core::Rng as _};

// Request sizes: fixed, a range, or a weighted split.

impl Sizes {
    /// Draws a size that fits into `room` bytes, or none if even the smallest does not fit.
    #[inline]
    pub(crate) fn draw(&self, room: u64, stream: &mut Stream) -> Option<u64> {
        match self {
            Sizes::Fixed(bytes) => (*bytes <= room).then_some(*bytes),
            Sizes::Range { min, max } => draw_range(*min, *max, room, stream),
            Sizes::Split(shares) => draw_split(shares, room, stream),
        }
    }
}

/// Draws a size by fio's formula: `min + max * u`, rounded down to a multiple of `min`, at most `max`. If that does
/// not fit, fio draws again until it does; drawing among the multiples that fit gives the same distribution without
/// the wait.
fn draw_range(min: u64, max: u64, room: u64, stream: &mut Stream) -> Option<u64> {
    if min > room {
        return None;
    }
    let drawn = min + stream.below(max);
    let bytes = (drawn - drawn % min).min(max);
    if bytes <= room { Some(bytes) } else { Some(min * (1 + stream.below(room / min))) }
}

fn draw_split(shares: &[Share], room: u64, stream: &mut Stream) -> Option<u64> {
    let fits = |share: &&Share| share.bytes <= room;
    let total: u64 = shares.iter().filter(fits).map(|s| s.weight as u64).sum();
    if total == 0 {
        return None;
    }
    let mut ticket = stream.below(total);
    for share in shares.iter().filter(fits) {
        if ticket < share.weight as u64 {
            return Some(share.bytes);
        }
        ticket -= share.weight as u64;
    }
    None
}

// Progress of a job, and the limits that end it.

/// Counters of a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of this pass that count against the limits.
    pub(crate) pass_bytes: u64,
    /// Bytes of all passes that count against the limits.
    pub(crate) bytes: u64,
    /// Requests since the ramp ended.
    pub(crate) requests: u64,
    /// Requests since the start.
    pub(crate) issued: u64,
    /// Completions since the start, excluding flushes.
    pub(crate) completed: u64,
    /// Writes since the start.
    pub(crate) writes: u64,
    /// Passes ended.
    pub(crate) passes: u64,
}

/// Phase after the end of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    Pass,
    Done,
}

impl Progress {
    /// Counts a request.
    #[inline]
    pub(crate) fn count(&mut self, access: Access, d: Direction, bytes: u64) {
        // Trims of trim-write pairs do not count against byte limits: fio doubles the limits instead.
        if access != Access::TrimWrite || d == Direction::Write {
            self.bytes += bytes;
            self.pass_bytes += bytes;
        }
        self.requests += 1;
        self.issued += 1;
        self.writes += (d == Direction::Write) as u64;
    }

    /// Returns true if bytes or requests end the job or the pass. A time-based job ends only by the clock, as in fio.
    pub(crate) fn limit_reached(&self, job: &Job) -> bool {
        let limits = &job.limits;
        let spent = self.bytes >= limits.bytes || limits.requests.is_some_and(|n| self.requests >= n);
        !limits.time_based && (spent || self.pass_bytes >= limits.pass_bytes)
    }

    /// Returns how many requests cannot reach a limit, whatever their size.
    pub(crate) fn carefree_requests(&self, job: &Job) -> u64 {
        let limits = &job.limits;
        if limits.time_based {
            return u64::MAX;
        }
        let bytes = limits.bytes.saturating_sub(self.bytes);
        let pass_bytes = limits.pass_bytes.saturating_sub(self.pass_bytes);
        let requests = limits.requests.map_or(u64::MAX, |n| n.saturating_sub(self.requests));
        (bytes.min(pass_bytes) / job.largest().max(1)).min(requests)
    }

    /// Returns the share of the work limited by bytes or requests, zero to one; zero for a job that only the clock
    /// ends.
    pub(crate) fn share(&self, job: &Job) -> f64 {
        let limits = &job.limits;
        if limits.time_based {
            return 0.0;
        }
        let of = |done: u64, all: u64| if all > 0 { done as f64 / all as f64 } else { 1.0 };
        // A first pass that runs out of blocks ends the job, unless more passes are requested.
        let bytes = if limits.passes > 1 || limits.refill {
            limits.bytes
        } else {
            limits.bytes.min(limits.pass_bytes)
        };
        let requests = limits.requests.map_or(0.0, |n| of(self.requests, n));
        of(self.bytes, bytes).max(requests).min(1.0)
    }

    /// Returns true if a write flush is due after the last request.
    pub(crate) fn flush_due(&self, job: &Job) -> bool {
        let every = [job.flushes.fsync, job.flushes.fdatasync];
        every.into_iter().any(|every| every > 0 && self.writes.is_multiple_of(every))
    }

    /// Returns the phase after the pass that ends now: fio's `keep_running`. `exhausted` says that no block was left.
    /// A pass without a request is the last.
    pub(crate) fn end_pass(&mut self, job: &Job, exhausted: bool) -> Next {
        let limits = &job.limits;
        self.passes += 1;
        let spent = limits.requests.is_some_and(|n| self.requests >= n);
        let left = limits.bytes.saturating_sub(self.bytes);
        let more = !spent && left >= job.largest() && (!exhausted || limits.refill);
        if self.pass_bytes > 0 && (limits.time_based || self.passes < limits.passes || more) {
            Next::Pass
        } else {
            Next::Done
        }
    }
}

// Random streams of one generator: one per purpose, so that a change of, say, the block-size split leaves the offsets
// unchanged (fio separates its states in the same way).

/// Purpose of a random stream.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Offsets.
    Offset = 1,
    /// Direction of a request: read, write or trim.
    Direction,
    /// Sizes of requests.
    Size,
    /// Choice between random and sequential in a partly random job.
    Mixture,
    /// Times between arrivals.
    Arrival,
    /// Start times of jobs.
    Delay,
    /// Place of the most popular block.
    Scatter,
    /// Content of a request to a program.
    Request,
    /// File of a request.
    File,
    /// Sizes of files.
    FileSize,
}

/// A stream of random numbers, 16 bytes of state.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// Opens the stream for one purpose under `seed`.
    pub fn new(seed: u64, purpose: Purpose) -> Stream {
        let mut state = seed ^ (purpose as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let high = split_mix(&mut state);
        let low = split_mix(&mut state);
        Stream(Pcg64Mcg::new((high as u128) << 64 | low as u128))
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a uniform number in `0..n`. The multiply-shift without rejection is off by at most `n / 2^64` per value,
    /// which no run is long enough to see.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }

    /// Draws a uniform number in `1..=100`.
    #[inline]
    pub fn percent(&mut self) -> u8 {
        1 + self.below(100) as u8
    }

    /// Draws a uniform number in the open interval (0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }
}

/// Performs one step of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): spreads a counter over 64 bits.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    engine::mix(*state)
}

/// Draws ranks `0..n` with probability proportional to `(rank + 1)^-theta`, in constant time and memory.
///
/// Rejection-inversion: W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996. The distribution is exact for every `n`; fio uses the approximation of Gray
/// et al. (SIGMOD 1994) with the normaliser summed over the first ten million ranks only.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    n: f64,
    theta: f64,
    /// Value of `1 - theta`, or zero if it is so small that the logarithmic limit is the better formula.
    rest: f64,
    inverse_rest: f64,
    low: f64,
    width: f64,
    accept: f64,
}

/// Limit below which `(x^rest - 1) / rest` loses more digits than its limit `ln x` is off by.
const NEARLY_ONE: f64 = 1e-8;

impl Zipf {
    /// Largest accepted skew: beyond it every draw is rank 0 in double precision.
    pub const MAX_THETA: f64 = 50.0;

    /// Creates ranks `0..n` with skew `theta` in `0 < theta <= 50`.
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

    /// Draws a rank, from draws that are uniform between 0 and 1.
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

    /// Returns `x^-theta`.
    fn height(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Returns the integral of the height from 1 to `x`.
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
    use super::*;
    use super::{Purpose, Stream};

    #[test]
    fn a_range_gives_each_multiple_evenly() {
        let mut stream = Stream::new(1, Purpose::Size);
        let sizes = Sizes::Range { min: 4096, max: 16_384 };
        let mut counts = [0u32; 5];
        for _ in 0..40_000 {
            let bytes = sizes.draw(u64::MAX, &mut stream).unwrap();
            assert_eq!(bytes % 4096, 0);
            counts[(bytes / 4096) as usize] += 1;
        }
        // Three degrees of freedom: the 99.99 % point is 21.1.
        let chi: f64 = counts[1..].iter().map(|&n| (n as f64 - 1e4).powi(2) / 1e4).sum();
        assert!(counts[0] == 0 && chi < 21.1, "{counts:?}");
    }

    #[test]
    fn little_room_leaves_only_what_fits() {
        let mut stream = Stream::new(1, Purpose::Size);
        let range = Sizes::Range { min: 4096, max: 65_536 };
        let split = Sizes::Split(vec![Share { bytes: 8192, weight: 99 }, Share { bytes: 4096, weight: 1 }]);
        for sizes in [range, split] {
            for _ in 0..100 {
                assert_eq!(sizes.draw(5000, &mut stream), Some(4096));
                assert_eq!(sizes.draw(4095, &mut stream), None);
            }
        }
    }

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

    /// Compares draws with the naively summed probabilities; ranks beyond `head` are one cell.
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
