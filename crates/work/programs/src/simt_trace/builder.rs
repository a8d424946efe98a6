//! A trace while it is read: what both formats share.

use text::Bad;

use crate::simt_trace::code::{Code, Paths, Place, Static, Warp, WarpWriter};
use crate::simt_trace::opcode::Window;
use crate::simt_trace::program::{Recorded, Trace};
use crate::simt_trace::space::{Touched, WINDOW};

/// Where a kernel's shared and local memory begin as generic addresses see them; zero where the trace does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Windows {
    pub(super) shared: u64,
    pub(super) local: u64,
}

impl Windows {
    fn place(self, address: u64) -> Place {
        let within = |base: u64| base != 0 && address >= base && address - base < WINDOW;
        // No buffer lies in the lowest 16 MiB; an offset in shared memory does.
        if address < WINDOW || within(self.shared) {
            Place::Shared
        } else if within(self.local) {
            Place::Local
        } else {
            Place::Global
        }
    }
}

/// The most blocks of a grid, threads of a block: CUDA C++ programming guide, compute capabilities.
const MOST_BLOCKS: u64 = u32::MAX as u64;
pub(super) const MOST_THREADS: u64 = 1024;

/// A trace while it is read.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) code: Code,
    pub(super) paths: Paths,
    pub(super) touched: Touched,
    kernels: Vec<Recorded>,
}

impl Builder {
    /// Says where an access's addresses lie, and turns shared and local ones into offsets.
    pub(super) fn place(
        &mut self,
        window: Window,
        windows: Windows,
        width: u8,
        addresses: &mut [u64],
    ) -> Result<Place, Bad> {
        let Some(&first) = addresses.first() else { return Ok(Place::Global) };
        let place = match window {
            Window::Global => Place::Global,
            Window::Shared => Place::Shared,
            Window::Local => Place::Local,
            Window::Generic => windows.place(first),
        };
        if window == Window::Generic && addresses.iter().any(|&address| windows.place(address) != place) {
            return Err(Bad::new("lanes of one instruction access different address spaces"));
        }
        for address in addresses.iter_mut() {
            match place {
                Place::Global => self.touched.global(*address, width)?,
                Place::Shared => *address = offset(*address, windows.shared),
                Place::Local => {
                    *address = offset(*address, windows.local);
                    self.touched.local(*address, width);
                }
            }
        }
        Ok(place)
    }

    /// Adds a kernel whose warps have been read.
    pub(super) fn kernel(&mut self, kernel: Recorded) {
        self.kernels.push(kernel);
    }

    /// Appends an instruction to a warp.
    pub(super) fn push(
        &mut self,
        warp: &mut WarpWriter,
        inst: Static,
        mask: u32,
        access: Option<(Place, &[u64])>,
    ) {
        let number = self.code.number(inst);
        warp.push(number, mask, access);
    }

    /// The trace, whole.
    pub(super) fn finish(mut self, name: &'static str) -> Result<Trace, Bad> {
        if self.kernels.is_empty() {
            return Err(Bad::new("no kernel"));
        }
        self.paths.close();
        Ok(Trace::new(name, self.kernels, self.code.into_insts(), self.paths, self.touched.lay_out()?))
    }
}

/// An offset in a window of 16 MiB. The tracers give offsets or generic addresses, whatever the instruction takes; where
/// the trace does not say where the window begins, it begins at a multiple of its size, as on all devices.
fn offset(address: u64, base: u64) -> u64 {
    if address >= base && base != 0 && address - base < WINDOW { address - base } else { address % WINDOW }
}

/// The warps of a kernel's grid, in any order.
#[derive(Default)]
pub(super) struct Grid {
    warps: Vec<(u32, u32, Warp)>,
}

impl Grid {
    pub(super) fn add(&mut self, block: u32, warp: u32, taken: Warp) {
        self.warps.push((block, warp, taken));
    }

    /// All warps of `blocks` blocks, block by block.
    pub(super) fn finish(mut self, blocks: u32, warps: u32) -> Result<Vec<Warp>, Bad> {
        self.warps.sort_by_key(|(block, warp, _)| (*block, *warp));
        let mut expected = 0_u64;
        for (block, warp, _) in &self.warps {
            let here = u64::from(*block) * u64::from(warps) + u64::from(*warp);
            if here > expected {
                return Err(missing(expected, warps));
            }
            if here < expected {
                return Err(Bad::new(format!("warp {warp} of block {block} stands twice")));
            }
            expected += 1;
        }
        if expected != u64::from(blocks) * u64::from(warps) {
            return Err(missing(expected, warps));
        }
        Ok(self.warps.into_iter().map(|(_, _, taken)| taken).collect())
    }
}

fn missing(number: u64, warps: u32) -> Bad {
    let (block, warp) = (number / u64::from(warps), number % u64::from(warps));
    Bad::new(format!("warp {warp} of block {block} is not in the trace"))
}

/// Blocks of a grid, or threads of a block, from their three dimensions.
pub(super) fn volume(dimensions: [u64; 3], what: &str, most: u64) -> Result<u32, Bad> {
    let product = dimensions.iter().try_fold(1_u64, |product, &n| product.checked_mul(n));
    match product {
        Some(n @ 1..) if n <= most => Ok(n as u32),
        _ => {
            let [x, y, z] = dimensions;
            Err(Bad::new(format!("a {what} of {x} x {y} x {z}")).help(format!("it has 1 to {most}")))
        }
    }
}

/// Blocks of a grid.
pub(super) fn blocks(dimensions: [u64; 3]) -> Result<u32, Bad> {
    volume(dimensions, "grid", MOST_BLOCKS)
}

/// Threads of a block.
pub(super) fn threads(dimensions: [u64; 3]) -> Result<u32, Bad> {
    volume(dimensions, "block", MOST_THREADS)
}
