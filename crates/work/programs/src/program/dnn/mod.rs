//! Inference of deep neural networks: BERT, GPT-2, ResNet-50, and models from ONNX files.
//!
//! A model calls operators ([`eager`]), each of which launches its kernels as PyTorch's eager mode does; parameters have an
//! allocation each, what a pass computes lies in memory that is used again ([`memory`]). Kernels compute no values, but
//! their tiles, edges, loop counts and addresses are real ([`kernels`]). The sequence of launches is never in memory:
//! [`launches`] iterates over it, and a program may execute only some of it. docs/dnn.md has the counts and the sources.

mod eager;
mod entries;
mod kernels;
mod memory;
mod model;
mod network;
mod onnx;
mod selection;
mod store;
#[cfg(test)]
mod tests;
mod view;

pub(super) use entries::ENTRIES;
pub use entries::launches;
pub use network::Launches;
pub(crate) use onnx::is_onnx;
