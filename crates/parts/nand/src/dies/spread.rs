//! Blocks differ: each is a little faster or slower than its kind.
//!
//! A block's deviation is drawn once and for all from the run's seed and the block's place, as a hash: nothing is stored, and
//! no other random stream moves. It is the sum of four uniform numbers (Irwin and Hall), scaled to the standard deviation
//! that the spec names: bell-shaped, symmetric, and never beyond 3.46 standard deviations.

use super::op::Op;
use engine::{Time, mix};

/// Standard deviation of the sum of four numbers of 16 bits, doubled: `2 * sqrt(4 * (2^32 - 1) / 12)`.
const DEVIATION: i64 = 75_674;
/// Twice the mean of that sum.
const CENTRE: i64 = 4 * 65_535;
/// Parts per million of a whole.
const WHOLE: i64 = 1_000_000;

/// Standard deviations of the times of blocks, in parts per million of these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// What tells one device from another.
    pub seed: u64,
    /// Of sensing.
    pub read: u32,
    /// Of programs.
    pub program: u32,
    /// Of erases.
    pub erase: u32,
}

/// What a block is slower or faster at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Read,
    Program,
    Erase,
}

impl Spread {
    /// A time of a block of the operation's plane.
    pub(super) fn of(&self, work: Work, op: &Op, block: u32, time: Time) -> Time {
        let deviation = match work {
            Work::Read => self.read,
            Work::Program => self.program,
            Work::Erase => self.erase,
        };
        let plane = u64::from(op.die) << 8 | u64::from(op.plane);
        let place = mix(self.seed ^ mix(plane << 32 | u64::from(block)));
        let ppm = WHOLE + deviations(mix(place ^ work as u64), deviation);
        Time::from_ps((u128::from(time.ps()) * ppm as u128 / WHOLE as u128) as u64)
    }
}

/// How far 64 random bits lie from the middle, in parts per million; at most 3.47 times the deviation.
pub(super) fn deviations(bits: u64, deviation: u32) -> i64 {
    let sum: i64 = (0..4).map(|n| (bits >> (16 * n) & 0xffff) as i64).sum();
    i64::from(deviation) * (2 * sum - CENTRE) / DEVIATION
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, standard deviation and ends of the sum of four uniform numbers.
    #[test]
    fn deviations_are_those_of_four_uniform_numbers() {
        let draws: Vec<f64> =
            (0..40_000u64).map(|n| deviations(mix(n), 1_000_000) as f64 / 1_000_000.0).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let square = draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64;
        // Standard errors: 1 / sqrt(n), and sqrt((kurtosis - 1) / 4n) with a kurtosis of 2.7.
        assert!(mean.abs() < 4.0 / 200.0, "{mean}");
        assert!((square.sqrt() - 1.0).abs() < 4.0 * 0.65 / 200.0, "{square}");
        let ends = [deviations(0, 1_000_000), deviations(u64::MAX, 1_000_000)];
        assert!(ends.iter().all(|end| (end.abs() - 3_464_100).abs() < 100), "{ends:?}");
    }
}
