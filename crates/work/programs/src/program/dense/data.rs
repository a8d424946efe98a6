//! Values that the programs begin with, sizes, and lanes.

use crate::program::Params;
use config::Diagnostic;

/// Why what a warp keeps for its block is there.
pub(super) const LIVES: &str = "a block's shared memory lives as long as its warps";

/// Element `n` of a stream of numbers in [0, 1): SplitMix64 (Steele, Lea, Flood 2014), of which any element can be had alone.
#[inline]
pub(super) fn uniform(stream: u64, n: usize) -> f32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = (stream << 40).wrapping_add(n as u64 + 1).wrapping_mul(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 40) as f32 / (1_u64 << 24) as f32
}

/// Rows of a program's matrix of `n` columns: as many, unless its parameter `rows` says otherwise.
pub(super) fn rows(params: &Params, n: usize) -> Result<usize, Diagnostic> {
    if params.text("rows").is_none_or(str::is_empty) {
        Ok(n)
    } else {
        Ok(params.integer("rows", 2..=32_768)? as usize)
    }
}

/// The lanes of a mask, lowest first.
#[inline]
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        (lane < u32::BITS).then(|| {
            rest &= rest - 1;
            lane as usize
        })
    })
}

/// The lanes, among those of a mask, for which something holds.
#[inline]
pub(super) fn such(mask: u32, mut holds: impl FnMut(usize) -> bool) -> u32 {
    lanes(mask).filter(|lane| holds(*lane)).fold(0, |such, lane| such | 1 << lane)
}

#[cfg(test)]
mod tests {
    use super::{lanes, such, uniform};

    #[test]
    fn numbers_are_even_and_streams_differ() {
        let mean = (0..10_000).map(|n| f64::from(uniform(1, n))).sum::<f64>() / 10_000.0;
        // The standard deviation of the mean is 1 / sqrt(12 * 10,000) = 0.0029.
        assert!((mean - 0.5).abs() < 0.012, "{mean}");
        assert!((0..100).any(|n| uniform(1, n) != uniform(2, n)));
    }

    #[test]
    fn lanes_of_a_mask() {
        assert_eq!(lanes(0x8000_0011).collect::<Vec<_>>(), [0, 4, 31]);
        assert_eq!(such(0x8000_0011, |lane| lane > 3), 0x8000_0010);
    }
}
