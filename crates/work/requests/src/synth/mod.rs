//! Synthetic requests: a [`Job`] says what they are, a [`Generator`] draws them.
//!
//! The words and their meaning are fio's; [`crate::fio`] reads them.

mod generator;
mod job;
mod measured;
mod pace;
mod permute;
mod place;
mod places;
mod popularity;
mod progress;
mod rng;
mod size;
mod zipf;

pub use generator::{Generator, Poll};
pub use job::{
    Access, Arrival, Choice, Direction, Each, Files, Flushes, Follow, Job, Limits, Order, Rate, Region,
    Service, Share, Sizes, Think,
};
pub use measured::Measured;
pub use permute::Permutation;
pub use popularity::{Popularity, Zone};
pub use rng::{Purpose, Stream};
pub use zipf::Zipf;
