//! Event engine: simulated time, the event queue, contexts, resources, slabs, waiting lists, named random streams,
//! snapshots, and the faults that mutation tests inject.
//!
//! * Knows order of events, one clock per machine, determinism: the same events in the same order on every machine.
//! * Does not know any component, any unit but time and bytes. It depends on no other crate.
//! * Read first: `event.rs`, the context that a component sees; then `queue/`.

mod event;
mod lists;
pub mod mutant;
mod queue;
pub mod resource;
mod rng;
mod slab;
mod snapshot;
mod time;

pub use event::{At, Cx, Event, Inside, Recorder};
pub use lists::{Digest, Flags, List, Lists};
pub use mutant::{Mutant, planted, planted_nth};
pub use queue::{EventQueue, Ticket};
pub use rng::{Rng, mix};
pub use slab::{Slab, prefetch};
pub use snapshot::Snapshot;
pub use time::Time;

use std::sync::{Mutex, PoisonError};

// Results that depend only on their input, computed once per process: runs of a study share the programs, cores and
// data.

/// Cache of the most recent results, the newest last. A hit equals what computing the result would give, so results do
/// not depend on the cache.
pub struct Known<K, V> {
    kept: Mutex<Vec<(K, V)>>,
    most: usize,
}

impl<K: PartialEq, V: Clone> Known<K, V> {
    /// Creates an empty cache with room for `most` results.
    pub const fn new(most: usize) -> Known<K, V> {
        Known { kept: Mutex::new(Vec::new()), most }
    }

    /// Returns the result for an input, computing it if it is not cached. Two concurrent callers may both compute it.
    ///
    /// # Errors
    /// The error of the computation; it is not cached.
    pub fn ask<E>(&self, of: K, work_out: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept().iter().find(|(other, _)| *other == of) {
            return Ok(found.clone());
        }
        let answer = work_out(&of)?;
        let mut kept = kept();
        if kept.len() == self.most {
            kept.remove(0);
        }
        kept.push((of, answer.clone()));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answers_are_kept() {
        let known: Known<u32, u32> = Known::new(2);
        let mut asked = Vec::new();
        for question in [1, 2, 1, 3, 2, 1, 3] {
            let answer = known.ask(question, |of| {
                asked.push(*of);
                if *of == 3 { Err("three") } else { Ok(10 * of) }
            });
            assert_eq!(answer, if question == 3 { Err("three") } else { Ok(10 * question) });
        }
        // Failed computations are not cached.
        assert_eq!(asked, [1, 2, 3, 3]);
        assert_eq!(known.ask(4, |_| Ok::<_, ()>(40)), Ok(40));
        assert_eq!(known.ask(1, |_| Ok::<_, ()>(11)), Ok(11));
    }
}
