//! Models: tensors that last, and the operators of a pass.

pub(super) mod bert;
pub(super) mod gpt2;
pub(super) mod resnet;

use super::eager::Eager;
use super::memory::Store;

/// A model. An input (a pair of sentences, a sentence, a batch of images) takes one pass or several, each of which launches
/// the same kernels for every input.
pub(crate) trait Model {
    /// What outlives a pass.
    fn store(&self) -> &Store;
    /// Passes of an input.
    fn passes(&self) -> u32;
    /// Calls the operators of one of them.
    fn record(&self, pass: u32, eager: &mut Eager);
}
