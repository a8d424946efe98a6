//! Element-wise kernels and copies: four elements per thread, as PyTorch's `vectorized_elementwise_kernel` if all
//! operands are contiguous, otherwise as its `elementwise_kernel` with strides (`CUDALoops.cuh`).

use super::{At, Warp, blocks, packed, such};
use crate::program::{Emit, Kernel, cost};

/// Maximum number of dimensions of an operand, after merging contiguous neighbours.
pub(crate) const RANK: usize = 6;

/// An operand: its element at coordinates is their product with the strides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operand {
    pub(crate) at: At,
    /// Bytes of an element.
    pub(crate) width: u8,
    /// Strides in elements; zero where it is repeated.
    pub(crate) strides: [u64; RANK],
}

/// Box of elements.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    /// Number of blocks of the parts before it.
    before: u64,
    dims: [u64; RANK],
    rank: usize,
    inputs: Vec<Operand>,
    output: Operand,
}

/// An element-wise kernel. A concatenation has a part for each of its inputs, all others have one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Map {
    name: &'static str,
    parts: Vec<Part>,
    /// Arithmetic and special functions per element.
    work: [u8; 2],
}

/// Threads per block, and elements per thread (`num_threads`, `thread_work_size`).
const THREADS: u32 = 128;
const ITEMS: u64 = 4;
const BLOCK: u64 = THREADS as u64 * ITEMS;

impl Part {
    fn count(&self) -> u64 {
        self.dims[..self.rank].iter().product()
    }

    /// Returns the number of blocks before the next part.
    fn end(&self) -> u64 {
        self.before + self.count().div_ceil(BLOCK).max(1)
    }

    /// Merges neighbouring dimensions that are contiguous in every operand.
    fn collapse(mut self) -> Part {
        let mut n = self.rank;
        while n > 1 {
            n -= 1;
            let inner = self.dims[n];
            let is_joint = |o: &Operand| o.strides[n - 1] == o.strides[n] * inner;
            let joint = self.inputs.iter().all(is_joint) && is_joint(&self.output);
            // The stride of a dimension of one element does not matter.
            let (empty, lone) = (self.dims[n] == 1, self.dims[n - 1] == 1);
            if !(joint || empty || lone) {
                continue;
            }
            let keep = if empty { n - 1 } else { n };
            self.dims[n - 1] *= inner;
            for operand in self.inputs.iter_mut().chain([&mut self.output]) {
                operand.strides[n - 1] = operand.strides[keep];
                operand.strides.copy_within(n + 1.., n);
            }
            self.dims.copy_within(n + 1.., n);
            self.rank -= 1;
        }
        self
    }

    /// Returns true if every operand is contiguous and aligned for four elements at once.
    fn in_order(&self) -> bool {
        self.rank == 1
            && self.inputs.iter().chain([&self.output]).all(|o| {
                o.width <= 4 && o.strides[0] == 1 && o.at.address.is_multiple_of(ITEMS * u64::from(o.width))
            })
    }

    /// Returns the element numbers of consecutive elements, from `first` on, in one operand.
    fn places(&self, first: u64, operand: &Operand) -> [u64; 32] {
        let mut coordinates = [0; RANK];
        let (mut rest, mut place) = (first, 0);
        for n in (0..self.rank).rev() {
            coordinates[n] = rest % self.dims[n];
            rest /= self.dims[n];
            place += coordinates[n] * operand.strides[n];
        }
        let mut places = [0; 32];
        for slot in &mut places {
            *slot = place;
            for n in (0..self.rank).rev() {
                coordinates[n] += 1;
                place += operand.strides[n];
                if coordinates[n] < self.dims[n] {
                    break;
                }
                place -= coordinates[n] * operand.strides[n];
                coordinates[n] = 0;
            }
        }
        places
    }
}

impl Map {
    /// Creates a kernel over `dims`, of at most [`RANK`] dimensions, with these inputs and output.
    pub(crate) fn new(
        name: &'static str,
        dims: &[u64],
        inputs: Vec<Operand>,
        output: Operand,
        work: [u8; 2],
    ) -> Map {
        let mut map = Map { name, parts: Vec::new(), work };
        map.part(dims, inputs, output);
        map
    }

    /// Adds a part.
    pub(crate) fn part(&mut self, dims: &[u64], inputs: Vec<Operand>, output: Operand) {
        let mut all = [1; RANK];
        all[..dims.len()].copy_from_slice(dims);
        let before = self.parts.last().map_or(0, Part::end);
        let part = Part { before, dims: all, rank: dims.len().max(1), inputs, output };
        self.parts.push(part.collapse());
    }

    pub(super) fn kernel(&self) -> Kernel {
        let grid = self.parts.iter().map(|part| part.count().div_ceil(BLOCK)).sum();
        Kernel { name: self.name, blocks: blocks(grid), threads: THREADS, registers: 24, shared: 0 }
    }

    pub(super) fn operands(&mut self) -> (Vec<&mut At>, &mut At) {
        let mut read = Vec::new();
        let mut written = None;
        for part in &mut self.parts {
            read.extend(part.inputs.iter_mut().map(|operand| &mut operand.at));
            if let Some(last) = written.replace(&mut part.output.at) {
                read.push(last);
            }
        }
        (read, written.expect("a kernel has a part"))
    }

    pub(super) fn step(&self, warp: &mut Warp, e: &mut Emit) -> bool {
        let block = u64::from(warp.at.block);
        let part = &self.parts[self.parts.partition_point(|part| part.end() <= block)];
        let block = block - part.before;
        let (from, end) = (block * BLOCK, part.count());
        e.alu(cost::THREAD + cost::IF, 1, []);
        if part.in_order() && from + BLOCK <= end {
            self.fours(part, warp, from, e);
        } else {
            self.singles(part, warp, from, end, e);
        }
        e.lanes(warp.at.mask);
        e.exit();
        false
    }

    fn arithmetic(&self, from: u8, to: u8, count: u64, width: u8, e: &mut Emit) {
        let [alu, sfu] = self.work;
        if alu > 0 {
            e.alu(packed(u64::from(alu) * count, width), to, [from, from + 1]);
        }
        if sfu > 0 {
            e.sfu(u16::from(sfu) * count as u16, to, [from]);
        }
    }

    fn fours(&self, part: &Part, warp: &Warp, from: u64, e: &mut Emit) {
        let first = |lane: usize| from + warp.thread(lane) as u64 * ITEMS;
        e.block(1);
        for (n, input) in part.inputs.iter().enumerate() {
            e.alu(cost::ADDRESS, 1, [1]);
            let bytes = ITEMS as u8 * input.width;
            e.load_at(bytes, 10 + n as u8, [1], |lane| input.at.element(first(lane), input.width));
        }
        self.arithmetic(10, 30, ITEMS, part.output.width, e);
        e.alu(cost::ADDRESS, 1, [1]);
        let output = &part.output;
        e.store_at(ITEMS as u8 * output.width, [1, 30], |lane| output.at.element(first(lane), output.width));
    }

    fn singles(&self, part: &Part, warp: &Warp, from: u64, end: u64, e: &mut Emit) {
        let first = |item: u64| from + item * u64::from(THREADS) + warp.thread(0) as u64;
        let inside = |item: u64| such(warp.at.mask, |lane| first(item) + (lane as u64) < end);
        // Coordinates: a division by each dimension but the first, by multiplication.
        let index = 2 * part.rank as u16;
        e.block(2);
        for (n, input) in part.inputs.iter().enumerate() {
            for item in (0..ITEMS).filter(|item| inside(*item) != 0) {
                let places = part.places(first(item), input);
                e.lanes(inside(item));
                e.alu(index + cost::ADDRESS, 1, [1]);
                let to = 10 + 4 * n as u8 + item as u8;
                e.load_at(input.width, to, [1], |lane| input.at.element(places[lane], input.width));
            }
        }
        e.block(3);
        for item in (0..ITEMS).filter(|item| inside(*item) != 0) {
            let places = part.places(first(item), &part.output);
            e.lanes(inside(item));
            self.arithmetic(10 + item as u8, 50 + item as u8, 1, 4, e);
            e.alu(cost::ADDRESS, 1, [1]);
            let (width, at) = (part.output.width, part.output.at);
            e.store_at(width, [1, 50 + item as u8], |lane| at.element(places[lane], width));
        }
    }
}
