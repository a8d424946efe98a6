//! Which objects jobs ask for, and where these lie.

use requests::synth::{Measured, Permutation, Stream, Zipf};

use crate::service::common::{Common, Placement, Skew};
use std::sync::Arc;

/// Draws for an object that is not taken yet.
const DRAWS: u32 = 64;

/// How ranks are drawn.
enum Ranks {
    Zipf(Zipf),
    Measured(Arc<Measured>),
}

/// Objects `0..n` with their popularity, independent of their numbers, and their slots `0..n` in memory.
pub(crate) struct Objects {
    ranks: Ranks,
    /// From rank to object.
    by_rank: Permutation,
    /// From object to slot; `None` if the slot is the rank.
    scatter: Option<Permutation>,
}

impl Objects {
    /// `n` objects, at least one.
    pub(crate) fn new(n: u64, common: &Common) -> Objects {
        let scatter = (common.placement == Placement::Scattered).then(|| Permutation::new(n, common.salt(2)));
        let ranks = match &common.skew {
            Skew::Zipf(theta) => Ranks::Zipf(Zipf::new(n, *theta)),
            Skew::Measured(measured) => Ranks::Measured(Arc::clone(measured)),
        };
        Objects { ranks, by_rank: Permutation::new(n, common.salt(1)), scatter }
    }

    fn rank(&self, stream: &mut Stream) -> u64 {
        match &self.ranks {
            Ranks::Zipf(zipf) => zipf.rank(|| stream.unit()),
            Ranks::Measured(measured) => measured.rank(self.len(), stream.unit()),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.by_rank.len()
    }

    /// An object that a job asks for.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        self.ranked(self.rank(stream))
    }

    /// An object that a job asks for besides those of `taken`, of which there are fewer than objects. The steeper the
    /// skew the longer that may take: after [`DRAWS`] draws it is the next rank that is not taken.
    pub(crate) fn draw_other(&self, taken: &[u64], stream: &mut Stream) -> u64 {
        let mut rank = 0;
        for _ in 0..DRAWS {
            rank = self.rank(stream);
            if !taken.contains(&self.ranked(rank)) {
                return self.ranked(rank);
            }
        }
        while taken.contains(&self.ranked(rank)) {
            rank = (rank + 1) % self.len();
        }
        self.ranked(rank)
    }

    /// The object of a rank; rank 0 is the most popular.
    pub(crate) fn ranked(&self, rank: u64) -> u64 {
        self.by_rank.at(rank)
    }

    /// The slot in which an object lies.
    pub(crate) fn slot(&self, object: u64) -> u64 {
        match &self.scatter {
            Some(scatter) => scatter.at(object),
            None => self.by_rank.place_of(object),
        }
    }
}
