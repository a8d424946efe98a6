//! Where states of drives are kept: in a file of the user's, in a folder that runs share, in the memory of a sweep.

mod file;
mod folder;
mod shared;

pub(crate) use file::{Given, Saved};
pub(crate) use folder::Folder;
pub(crate) use shared::{Shared, expected};

use config::Diagnostic;
use machine::Loaded;
use machine::spec::MemorySpec;
use std::path::Path;

/// The word for no folder, and no sharing.
const NONE: &str = "none";

/// The folder of `--state-cache`; `None` for the word that says none.
pub(crate) fn folder_of(text: &Path) -> Option<&Path> {
    (text != Path::new(NONE)).then_some(text)
}

/// What a machine does anew in each run, although its drive's state is kept.
fn done_anew(loaded: &Loaded) -> Option<&'static str> {
    let spec = &loaded.spec;
    let is_there = |form: fn(&MemorySpec) -> bool| spec.memory.iter().any(|part| form(&part.spec));
    if is_there(|memory| matches!(memory, MemorySpec::Direct(_))) {
        Some("flash as memory is filled with what its programs place in it: each run does that anew")
    } else if is_there(|memory| matches!(memory, MemorySpec::DramCache(_))) {
        Some(
            "what fills the DRAM cache of a server before the run depends on the program's data, which filling changes: each run does it anew",
        )
    } else if spec.swap.is_empty() {
        None
    } else {
        Some(
            "what fills the memory of a server before the run depends on the program's data, which filling changes: each run does it anew",
        )
    }
}

/// Refuses to keep the state of a machine that has none; what is not part of the state that it has.
///
/// # Errors
/// There is no drive.
pub(crate) fn left_out(option: &str, loaded: &Loaded) -> Result<Option<&'static str>, Diagnostic> {
    if loaded.drive().is_ok() {
        return Ok(done_anew(loaded));
    }
    let what = format!("{option}: `{}` has no drive whose state could be kept", loaded.name);
    let why = done_anew(loaded).unwrap_or("a state is that of a drive after preconditioning");
    Err(Diagnostic::new(what).help(why))
}
