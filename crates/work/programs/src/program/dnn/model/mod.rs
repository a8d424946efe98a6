//! Models: lasting tensors, and the operators of a pass.

pub(super) mod bert;
pub(super) mod gpt2;
pub(super) mod resnet;

use super::eager::Eager;
use super::memory::Store;

/// A model. An input (a pair of sentences, a sentence, a batch of images) takes one or more passes, each of which
/// launches the same kernels for every input.
pub(crate) trait Model {
    /// Returns the tensors that outlive a pass.
    fn store(&self) -> &Store;
    /// Returns the number of passes per input.
    fn passes(&self) -> u32;
    /// Calls the operators of a pass.
    fn record(&self, pass: u32, eager: &mut Eager);
}
