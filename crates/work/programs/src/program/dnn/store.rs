//! Tensors that outlive a pass: parameters, buffers, inputs, caches.

use super::view::View;

/// A tensor that stays where it is.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: &'static str,
    pub(crate) dims: Vec<u64>,
    /// Bytes of an element.
    pub(crate) width: u8,
    /// Whether training would change it: what is counted as a model's size.
    pub(crate) is_parameter: bool,
}

/// All of a model's, an allocation each.
#[derive(Clone, Default, Debug)]
pub(crate) struct Store {
    tensors: Vec<Tensor>,
}

impl Store {
    /// A parameter.
    pub(crate) fn parameter(&mut self, name: &'static str, dims: &[u64], width: u8) -> View {
        self.add(name, dims, width, true)
    }
    /// Anything else.
    pub(crate) fn buffer(&mut self, name: &'static str, dims: &[u64], width: u8) -> View {
        self.add(name, dims, width, false)
    }
    fn add(&mut self, name: &'static str, dims: &[u64], width: u8, is_parameter: bool) -> View {
        let number = self.tensors.len() as u32;
        self.tensors.push(Tensor { name, dims: dims.to_vec(), width, is_parameter });
        View::of(number, dims, width)
    }
    /// All of them, in order of their numbers.
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
