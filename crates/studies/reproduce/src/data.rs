//! Files of the data sets.

use std::path::PathBuf;

/// Finds a file of the data sets: under `NANDSCAPE_DATA`, else under `shared/data` beside the present folder or above it.
pub(super) fn data(path: &str) -> Option<PathBuf> {
    let found = |root: PathBuf| Some(root.join(path)).filter(|file| file.is_file());
    if let Some(root) = std::env::var_os("NANDSCAPE_DATA") {
        return found(root.into());
    }
    let here = std::env::current_dir().ok()?;
    here.ancestors().find_map(|folder| found(folder.join("shared/data")))
}
