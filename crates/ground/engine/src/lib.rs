//! The event engine: simulated time, the event queue, contexts, resources, slabs, waiting lists, named random streams, snapshots, and the faults that
//! mutation tests plant.
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

// Answers that follow from their question alone, worked out once in a process: runs of a study have the same programs on the
// same cores, and the same data.

/// The last so many answers, the newest last. Whoever finds one has what working it out would have given, so that results do not depend on it.
pub struct Known<K, V> {
    kept: Mutex<Vec<(K, V)>>,
    most: usize,
}

impl<K: PartialEq, V: Clone> Known<K, V> {
    /// No answers, and room for so many.
    pub const fn new(most: usize) -> Known<K, V> {
        Known { kept: Mutex::new(Vec::new()), most }
    }

    /// The answer to a question, which is worked out if it is not known. Two who ask at the same time may both work it out.
    ///
    /// # Errors
    /// What working it out says; that is not kept.
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
        // Nothing that failed is kept.
        assert_eq!(asked, [1, 2, 3, 3]);
        assert_eq!(known.ask(4, |_| Ok::<_, ()>(40)), Ok(40));
        assert_eq!(known.ask(1, |_| Ok::<_, ()>(11)), Ok(11));
    }
}
