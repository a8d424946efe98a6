//! Dense linear algebra, stencils and particles: backprop, gaussian, hotspot and lavaMD after Rodinia, FDTD-2D and
//! Gram-Schmidt after PolyBench.
//!
//! Loops, block shapes and element sizes are those of the public CUDA sources (Rodinia 3.1; PolyBench/ACC). Each runs
//! a *window* of its application: the launches from the beginning up to a number set by a key. The inputs are made so
//! that results can be compared: those of the sources are rank one, or contain zero columns.

mod backprop;
mod fdtd;
mod gaussian;
mod gramschmidt;
mod hotspot;
mod lavamd;

#[cfg(test)]
mod tests;

use crate::program::{Entry, Params};
use config::Diagnostic;

pub(super) use gaussian::divide;
pub(super) use gramschmidt::root;

/// Programs of this module.
pub(super) const ENTRIES: &[Entry] =
    &[backprop::ENTRY, gaussian::ENTRY, fdtd::ENTRY, gramschmidt::ENTRY, hotspot::ENTRY, lavamd::ENTRY];

// Initial values of the programs, sizes, and lanes.

/// Reason why a warp's state for its block exists.
const LIVES: &str = "a block's shared memory lives as long as its warps";

/// Returns element `n` of a stream of numbers in [0, 1): SplitMix64 (Steele, Lea, Flood 2014), with random access to
/// its elements.
#[inline]
fn uniform(stream: u64, n: usize) -> f32 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = (stream << 40).wrapping_add(n as u64 + 1).wrapping_mul(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 40) as f32 / (1_u64 << 24) as f32
}

/// Returns the rows of a program's matrix of `n` columns: also `n`, unless its parameter `rows` is given.
fn rows(params: &Params, n: usize) -> Result<usize, Diagnostic> {
    if params.text("rows").is_none_or(str::is_empty) {
        Ok(n)
    } else {
        Ok(params.integer("rows", 2..=32_768)? as usize)
    }
}

/// Returns the lanes of a mask, lowest first.
#[inline]
fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        let lane = rest.trailing_zeros();
        (lane < u32::BITS).then(|| {
            rest &= rest - 1;
            lane as usize
        })
    })
}

/// Returns the lanes of a mask for which a condition holds.
#[inline]
fn such(mask: u32, mut holds: impl FnMut(usize) -> bool) -> u32 {
    lanes(mask).filter(|lane| holds(*lane)).fold(0, |such, lane| such | 1 << lane)
}
