//! Where states are kept: in a file of the user's, in a folder that runs share, in the memory of a sweep.

mod file;
mod folder;
mod shared;

pub(crate) use file::{Given, Saved};
pub(crate) use folder::{Folder, folder_of};
pub(crate) use shared::shared;

use config::Diagnostic;
use machine::Loaded;
use machine::run::Plan;
use machine::state::has_any;

/// What a machine does anew in each run, whatever states are kept.
fn done_anew(loaded: &Loaded) -> Option<&'static str> {
    loaded.spec.memory.iter().find_map(|part| part.spec.done_anew())
}

/// Refuses to keep the state of a machine that has none; what is not part of the state that it has.
///
/// # Errors
/// There is no drive, and no memory that is filled.
pub(crate) fn left_out(
    option: &str,
    plan: &Plan,
    loaded: &Loaded,
) -> Result<Option<&'static str>, Diagnostic> {
    if has_any(plan, loaded)? {
        return Ok(done_anew(loaded));
    }
    let what =
        format!("{option}: `{}` has no drive and no filled memory whose state could be kept", loaded.name);
    let why = done_anew(loaded).unwrap_or(
        "a state is that of a drive after preconditioning, or of a server's memory after it was filled",
    );
    Err(Diagnostic::new(what).help(why))
}
