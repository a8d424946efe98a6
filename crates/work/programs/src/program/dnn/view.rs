//! Tensors as operators see them: a piece of memory with dimensions and strides.

use super::kernels::{At, Matrix, Operand};

/// A view of a tensor; dimensions and strides in elements, outermost first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct View {
    pub(super) tensor: u32,
    offset: u64,
    pub(super) dims: Vec<u64>,
    pub(super) strides: Vec<u64>,
    pub(super) width: u8,
}

/// Strides of dimensions that lie in order.
fn in_order(dims: &[u64]) -> Vec<u64> {
    let mut strides = vec![1; dims.len()];
    for n in (1..dims.len()).rev() {
        strides[n - 1] = strides[n] * dims[n];
    }
    strides
}

impl View {
    /// A whole tensor.
    pub(super) fn of(tensor: u32, dims: &[u64], width: u8) -> View {
        View { tensor, offset: 0, dims: dims.to_vec(), strides: in_order(dims), width }
    }
    /// Elements.
    pub(super) fn count(&self) -> u64 {
        self.dims.iter().product()
    }
    /// Length of the last dimension.
    pub(super) fn last(&self) -> u64 {
        self.dims.last().copied().unwrap_or(1)
    }
    /// First byte, in its tensor.
    pub(super) fn at(&self) -> At {
        At { tensor: self.tensor, address: self.offset * u64::from(self.width) }
    }
    /// Whether its elements lie in order without gaps. Dimensions of one element say nothing.
    pub(super) fn is_contiguous(&self) -> bool {
        let ordered = in_order(&self.dims);
        self.dims.iter().zip(self.strides.iter().zip(&ordered)).all(|(d, (s, o))| *d == 1 || s == o)
    }
    /// Its dimensions in another order.
    pub(super) fn permute(&self, order: &[usize]) -> View {
        let pick = |of: &[u64]| order.iter().map(|n| of[*n]).collect();
        View { dims: pick(&self.dims), strides: pick(&self.strides), ..self.clone() }
    }
    /// `length` elements of a dimension, from `from` on.
    pub(super) fn slice(&self, axis: usize, from: u64, length: u64) -> View {
        let mut view = self.clone();
        view.offset += from * view.strides[axis];
        view.dims[axis] = length;
        view
    }
    /// The same elements in order under other dimensions.
    ///
    /// # Panics
    /// If they do not lie in order, or are not as many: operators copy first.
    pub(super) fn reshape(&self, dims: &[u64]) -> View {
        assert!(self.is_contiguous(), "a view that does not lie in order");
        assert_eq!(dims.iter().product::<u64>(), self.count(), "{:?} as {dims:?}", self.dims);
        View { dims: dims.to_vec(), strides: in_order(dims), ..self.clone() }
    }
    /// The last dimension as several.
    pub(super) fn split_last(&self, dims: &[u64]) -> View {
        let mut view = self.clone();
        let (_, stride) = (view.dims.pop(), view.strides.pop().unwrap_or(1));
        view.dims.extend(dims);
        view.strides.extend(in_order(dims).into_iter().map(|s| s * stride));
        view
    }
    /// Every stride as given: for windows of a buffer.
    pub(super) fn strided(&self, dims: &[u64], strides: &[u64]) -> View {
        View { dims: dims.to_vec(), strides: strides.to_vec(), ..self.clone() }
    }
    /// As an operand over `dims`, repeated where it has one element or none of a dimension.
    pub(super) fn over(&self, dims: &[u64]) -> Operand {
        let mut strides = [0; super::kernels::RANK];
        let missing = dims.len() - self.dims.len();
        for (n, slot) in strides.iter_mut().enumerate().take(dims.len()).skip(missing) {
            let own = n - missing;
            *slot = if self.dims[own] == 1 && dims[n] != 1 { 0 } else { self.strides[own] };
        }
        Operand { at: self.at(), width: self.width, strides }
    }
    /// As a matrix of its last two dimensions; the dimension before them numbers the batch.
    pub(super) fn matrix(&self) -> Matrix {
        let n = self.dims.len();
        let stride = |back: usize| if n >= back { self.strides[n - back] } else { 0 };
        Matrix { at: self.at(), row: stride(2), column: stride(1), batch: stride(3) }
    }
}
