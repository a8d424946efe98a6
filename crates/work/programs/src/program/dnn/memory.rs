//! Tensors of a model: their views, those that outlive a pass, and the memory layout of those of a pass. Memory is
//! reused as soon as its content has had its last read.
//!
//! As in PyTorch's caching allocator (`CUDACachingAllocator.cpp`): sizes are rounded to 512 B, the smallest free
//! piece that is large enough is split, neighbouring free pieces are merged. Its pools and segments are left out.

use super::eager::Eager;
use super::kernels::{At, Matrix, Operand, Task};

/// Rounding of sizes in bytes (`kMinBlockSize`).
const GRAIN: u64 = 512;

/// Place and lifetime of a pass's tensor, from its first to its last kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) tensor: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// A pass with its tensors laid out from zero up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) tasks: Vec<Task>,
    /// Tensors that live within the pass, in order of their numbers.
    pub(crate) places: Vec<Place>,
    /// Bytes of their memory in total.
    pub(crate) bytes: u64,
}

/// Free pieces of an arena that grows at its end.
#[derive(Default)]
struct Arena {
    /// Offset and bytes of free pieces, by offset.
    free: Vec<(u64, u64)>,
    end: u64,
}

impl Arena {
    fn take(&mut self, bytes: u64) -> u64 {
        let fits = self.free.iter().enumerate().filter(|(_, (_, room))| *room >= bytes);
        let Some((n, (offset, room))) = fits.min_by_key(|(_, (_, room))| *room).map(|(n, p)| (n, *p)) else {
            let offset = self.end;
            self.end += bytes;
            return offset;
        };
        if room == bytes {
            self.free.remove(n);
        } else {
            self.free[n] = (offset + bytes, room - bytes);
        }
        offset
    }

    fn give(&mut self, offset: u64, bytes: u64) {
        let n = self.free.partition_point(|(at, _)| *at < offset);
        self.free.insert(n, (offset, bytes));
        if let Some((at, room)) = self.free.get(n + 1).copied().filter(|(at, _)| offset + bytes == *at) {
            self.free[n].1 += room;
            debug_assert_eq!(at, offset + bytes);
            self.free.remove(n + 1);
        }
        if n > 0 && self.free[n - 1].0 + self.free[n - 1].1 == offset {
            self.free[n - 1].1 += self.free[n].1;
            self.free.remove(n);
        }
    }
}

/// Lays out a recorded pass. A tensor lives from the first to the last kernel that touches it.
pub(crate) fn lay_out(mut eager: Eager) -> Pass {
    let lasting = eager.lasting;
    let within = eager.sizes.len() - lasting as usize;
    let mut places: Vec<Place> = (0..within)
        .map(|n| {
            let bytes = eager.sizes[n + lasting as usize].max(1).next_multiple_of(GRAIN);
            Place { tensor: n as u32 + lasting, offset: 0, bytes, first: usize::MAX, last: 0 }
        })
        .collect();
    let mut touched: Vec<Vec<usize>> = Vec::with_capacity(eager.tasks.len());
    for (number, task) in eager.tasks.iter_mut().enumerate() {
        let (read, written) = task.operands();
        let tensors = read.into_iter().chain([written]).filter_map(|at| at.tensor.checked_sub(lasting));
        let mut here: Vec<usize> = tensors.map(|n| n as usize).collect();
        here.sort_unstable();
        here.dedup();
        for n in &here {
            places[*n].first = places[*n].first.min(number);
            places[*n].last = number;
        }
        touched.push(here);
    }
    let mut arena = Arena::default();
    for (number, here) in touched.iter().enumerate() {
        let mut done = Vec::new();
        for n in here {
            let place = &mut places[*n];
            if place.first == number {
                place.offset = arena.take(place.bytes);
            }
            if place.last == number {
                done.push((place.offset, place.bytes));
            }
        }
        // A kernel's inputs are freed only after all of its outputs are placed.
        for (offset, bytes) in done {
            arena.give(offset, bytes);
        }
    }
    places.retain(|place| place.first != usize::MAX);
    Pass { tasks: eager.tasks, places, bytes: arena.end }
}

// Tensors that outlive a pass: parameters, buffers, inputs, caches.

/// A tensor with a fixed place.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) dims: Vec<u64>,
    /// Bytes of an element.
    pub(crate) width: u8,
    /// True if training would change it: such tensors count towards a model's size.
    pub(crate) is_parameter: bool,
}

/// Lasting tensors of a model, one allocation each.
#[derive(Clone, Default, Debug)]
pub(crate) struct Store {
    tensors: Vec<Tensor>,
}

impl Store {
    /// Adds a parameter.
    pub(crate) fn parameter(&mut self, name: &'static str, dims: &[u64], width: u8) -> View {
        self.add(name, dims, width, true)
    }
    /// Adds any other tensor.
    pub(crate) fn buffer(&mut self, name: &'static str, dims: &[u64], width: u8) -> View {
        self.add(name, dims, width, false)
    }
    fn add(&mut self, name: &'static str, dims: &[u64], width: u8, is_parameter: bool) -> View {
        let number = self.tensors.len() as u32;
        self.tensors.push(Tensor { name, dims: dims.to_vec(), width, is_parameter });
        View::of(number, dims, width)
    }
    /// Returns all tensors, in order of their numbers.
    pub(crate) fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
    /// Elements of all parameters.
    #[cfg(test)]
    pub(crate) fn parameters(&self) -> u64 {
        let parameters = self.tensors.iter().filter(|tensor| tensor.is_parameter);
        parameters.map(|tensor| tensor.dims.iter().product::<u64>()).sum()
    }
}

// Views of tensors for operators: a piece of memory with dimensions and strides.

/// A view of a tensor; dimensions and strides in elements, outermost first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct View {
    pub(super) tensor: u32,
    offset: u64,
    pub(super) dims: Vec<u64>,
    pub(super) strides: Vec<u64>,
    pub(super) width: u8,
}

/// Returns the strides of contiguous dimensions.
fn in_order(dims: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; dims.len()];
    for n in (1..dims.len()).rev() {
        strides[n - 1] = strides[n] * dims[n];
    }
    strides
}

impl View {
    /// Returns a view of a whole tensor.
    pub(super) fn of(tensor: u32, dims: &[u64], width: u8) -> View {
        View { tensor, offset: 0, dims: dims.to_vec(), strides: in_order(dims), width }
    }
    /// Returns the number of elements.
    pub(super) fn count(&self) -> u64 {
        self.dims.iter().product()
    }
    /// Returns the length of the last dimension.
    pub(super) fn last(&self) -> u64 {
        self.dims.last().copied().unwrap_or(1)
    }
    /// Returns the first byte in its tensor.
    pub(super) fn at(&self) -> At {
        At { tensor: self.tensor, address: self.offset * u64::from(self.width) }
    }
    /// Returns true if its elements are contiguous. Dimensions of one element are ignored.
    pub(super) fn is_contiguous(&self) -> bool {
        let ordered = in_order(&self.dims);
        self.dims.iter().zip(self.strides.iter().zip(&ordered)).all(|(d, (s, o))| *d == 1 || s == o)
    }
    /// Returns its dimensions in a different order.
    pub(super) fn permute(&self, order: &[usize]) -> View {
        let pick = |of: &[u64]| order.iter().map(|n| of[*n]).collect();
        View { dims: pick(&self.dims), strides: pick(&self.strides), ..self.clone() }
    }
    /// Returns `length` elements of a dimension, from `from` on.
    pub(super) fn slice(&self, axis: usize, from: u64, length: u64) -> View {
        let mut view = self.clone();
        view.offset += from * view.strides[axis];
        view.dims[axis] = length;
        view
    }
    /// Returns the same elements in order with different dimensions.
    ///
    /// # Panics
    /// If they are not contiguous, or the numbers of elements differ: operators copy first.
    pub(super) fn reshape(&self, dims: &[u64]) -> View {
        assert!(self.is_contiguous(), "a view that does not lie in order");
        assert_eq!(dims.iter().product::<u64>(), self.count(), "{:?} as {dims:?}", self.dims);
        View { dims: dims.to_vec(), strides: in_order(dims), ..self.clone() }
    }
    /// Splits the last dimension into several.
    pub(super) fn split_last(&self, dims: &[u64]) -> View {
        let mut view = self.clone();
        let (_, stride) = (view.dims.pop(), view.strides.pop().unwrap_or(1));
        view.dims.extend(dims);
        view.strides.extend(in_order(dims).into_iter().map(|s| s * stride));
        view
    }
    /// Returns a view with the given strides, for windows of a buffer.
    pub(super) fn strided(&self, dims: &[u64], strides: &[u64]) -> View {
        View { dims: dims.to_vec(), strides: strides.to_vec(), ..self.clone() }
    }
    /// Returns it as an operand over `dims`, repeated where it has one element or no such dimension.
    pub(super) fn over(&self, dims: &[u64]) -> Operand {
        let mut strides = [0; super::kernels::RANK];
        let missing = dims.len() - self.dims.len();
        for (n, slot) in strides.iter_mut().enumerate().take(dims.len()).skip(missing) {
            let own = n - missing;
            *slot = if self.dims[own] == 1 && dims[n] != 1 { 0 } else { self.strides[own] };
        }
        Operand { at: self.at(), width: self.width, strides }
    }
    /// Returns it as a matrix of its last two dimensions; the dimension before them is the batch.
    pub(super) fn matrix(&self) -> Matrix {
        let n = self.dims.len();
        let stride = |back: usize| if n >= back { self.strides[n - back] } else { 0 };
        Matrix { at: self.at(), row: stride(2), column: stride(1), batch: stride(3) }
    }
}
