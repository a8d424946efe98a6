//! What follows from its question alone, worked out once in a process: runs of a study have the same programs on the same cores, and the same data.

use std::sync::{Mutex, PoisonError};

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
