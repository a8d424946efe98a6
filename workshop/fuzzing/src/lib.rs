//! Damaged input for every reader of outside data, and the promises that must hold.
//!
//! A [`Target`] takes any bytes. It panics if a promise of the reader is broken: input is accepted, or refused with
//! exactly one diagnostic, and accepted input can be used. [`drive`] damages the target's valid examples in a seeded
//! order, the same on every machine; the targets of `workshop/fuzz/` pass on what libFuzzer generates. A new target is
//! one file in `target/` and its line in [`TARGETS`].
//!
//! * Knows every reader of outside input.
//! * Does not know correct results: it looks for panics and broken promises.
//! * Read first: `target/`.

mod damage;
mod target;

pub use damage::Damage;
pub use target::{TARGETS, Target, find};

use std::ops::Range;
use std::path::Path;

/// Runs a range of cases, each determined by the seed and its number; `watch` sees each number before the case runs.
///
/// # Panics
/// A promise is broken.
pub fn drive(target: &Target, seed: u64, cases: Range<u64>, watch: &mut dyn FnMut(u64)) {
    let examples = (target.examples)();
    for case in cases {
        watch(case);
        (target.run)(&Damage::new(seed, target.name, case).apply(&examples));
    }
}

/// Writes every target's valid examples into a folder of its name, as the corpus of libFuzzer: `FOLDER/TARGET/NUMBER`.
///
/// # Errors
/// A folder or a file cannot be written.
pub fn write_seeds(folder: &Path) -> std::io::Result<()> {
    for target in TARGETS {
        let own = folder.join(target.name);
        std::fs::create_dir_all(&own)?;
        for (n, example) in (target.examples)().iter().enumerate() {
            std::fs::write(own.join(n.to_string()), example)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid examples are accepted unchanged, so that damage starts from input that is read.
    #[test]
    fn examples_are_read() {
        for target in TARGETS {
            let examples = (target.examples)();
            assert!(!examples.is_empty(), "{}", target.name);
            for example in &examples {
                assert!((target.reads)(example), "{}: {}", target.name, String::from_utf8_lossy(example));
            }
        }
    }

    #[test]
    fn seeds_are_the_examples() {
        let folder = tempfile::tempdir().expect("a folder");
        write_seeds(folder.path()).expect("room");
        for target in TARGETS {
            let read = |n: usize| std::fs::read(folder.path().join(target.name).join(n.to_string()));
            let examples = (target.examples)();
            for (n, example) in examples.iter().enumerate() {
                assert_eq!(read(n).ok().as_ref(), Some(example), "{} {n}", target.name);
            }
            assert!(read(examples.len()).is_err(), "{}", target.name);
        }
    }

    #[test]
    fn names_are_unique() {
        for (n, target) in TARGETS.iter().enumerate() {
            assert!(TARGETS[..n].iter().all(|other| other.name != target.name), "{}", target.name);
        }
    }
}
