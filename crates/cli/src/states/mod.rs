//! Where states of drives are kept: in a file of the user's, in a folder that runs share, in the memory of a sweep.

mod file;
mod folder;
mod shared;

pub(crate) use file::{Given, Saved};
pub(crate) use folder::Folder;
pub(crate) use shared::{Shared, expected};

use config::Diagnostic;
use machine::Loaded;
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
    let of_memory = spec.memory.iter().find_map(|part| part.spec.done_anew(!spec.cpu.is_empty()));
    let of_swap = "what fills the memory of a server before the run depends on the program's data, which filling changes: each run does it anew";
    of_memory.or((!spec.swap.is_empty()).then_some(of_swap))
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
