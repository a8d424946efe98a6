//! Pooling: a thread for each output pixel reads its window.

use super::{At, Warp, such};
use crate::program::{Emit, Kernel, cost};

/// A pooling kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Pool {
    pub(crate) name: &'static str,
    /// Images times channels.
    pub(crate) planes: u64,
    pub(crate) size: [u64; 2],
    pub(crate) window: [u64; 2],
    pub(crate) stride: [u64; 2],
    pub(crate) pad: [u64; 2],
    pub(crate) out: [u64; 2],
    pub(crate) input: At,
    pub(crate) output: At,
    pub(crate) width: u8,
}

/// Threads of a block (`DilatedMaxPool2d.cu`, forward).
const THREADS: u32 = 256;

impl Pool {
    fn count(&self) -> usize {
        (self.planes * self.out[0] * self.out[1]) as usize
    }

    pub(super) fn kernel(&self) -> Kernel {
        let blocks = self.count().div_ceil(THREADS as usize) as u32;
        Kernel { name: self.name, blocks, threads: THREADS, registers: 32, shared: 0 }
    }

    /// One row of the window a step.
    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let (first, inside) = (warp.at.thread() as u64, warp.at.below(self.count()));
        if warp.turn == 0 {
            e.alu(cost::THREAD + cost::IF + 6, 1, []);
        }
        if inside == 0 {
            e.exit();
            return false;
        }
        let row = u64::from(warp.turn);
        if row == self.window[0] {
            e.block(2);
            e.lanes(inside);
            e.store_at(self.width, [1, 12], |lane| self.output.element(first + lane as u64, self.width));
            e.lanes(warp.at.mask);
            e.exit();
            return false;
        }
        let element = |lane: usize, column: u64| {
            let n = first + lane as u64;
            let (plane, pixel) = (n / (self.out[0] * self.out[1]), n % (self.out[0] * self.out[1]));
            let y = pixel / self.out[1] * self.stride[0] + row;
            let x = pixel % self.out[1] * self.stride[1] + column;
            let y = y.checked_sub(self.pad[0]).filter(|y| *y < self.size[0])?;
            let x = x.checked_sub(self.pad[1]).filter(|x| *x < self.size[1])?;
            Some((plane * self.size[0] + y) * self.size[1] + x)
        };
        e.block(1);
        e.lanes(inside);
        e.alu(cost::LOOP + cost::ADDRESS, 1, [1]);
        for column in 0..self.window[1] {
            // A wide window's columns come from the same code each time round the loop.
            e.block(3);
            let mask = such(inside, |lane| element(lane, column).is_some());
            if mask == 0 {
                continue;
            }
            e.lanes(mask);
            e.load_at(self.width, 10, [1], |lane| {
                self.input.element(element(lane, column).unwrap_or_default(), self.width)
            });
            e.alu(2 + cost::LOOP, 12, [10, 12]);
        }
        warp.turn += 1;
        true
    }
}
