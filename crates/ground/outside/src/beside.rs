//! Files on their way into their places.
//!
//! The names of all that are under way are kept, so that an interrupt that ends the process takes them along. Git's
//! temporary files work the same way (`tempfile.c`).

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files that mean nothing yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Numbers the files that are not yet in their place: two threads may write the same one.
static TURN: AtomicU64 = AtomicU64::new(0);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is not finished, and lets nobody begin a file any more: the process is about to end.
pub fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // One that has just got its name is gone, and need not be removed.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(all);
}

/// A file beside its place. It goes away unless it is settled.
#[derive(Debug)]
pub struct Beside {
    place: PathBuf,
    path: PathBuf,
}

impl Beside {
    /// Makes a file that nobody else has, under a name that hides it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn hidden(place: &Path) -> io::Result<(Beside, File)> {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}.{turn}", name_of(place), std::process::id());
        let path = place.with_file_name(name);
        Beside::made(place, path, |path| File::create(path))
    }

    /// Makes a file that grows for long under a name that says that it is not whole: what a killed process leaves is marked.
    ///
    /// # Errors
    /// It cannot be made, or another process is writing it.
    pub fn incomplete(place: &Path) -> io::Result<(Beside, File)> {
        let path = place.with_file_name(format!("{}.incomplete", name_of(place)));
        Beside::made(place, path, |path| {
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                // Where files cannot be locked, nobody is kept from writing.
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
            }
            file.set_len(0)?;
            Ok(file)
        })
    }

    /// Makes the file and notes its name in one: no interrupt comes between them.
    fn made(
        place: &Path,
        path: PathBuf,
        make: impl FnOnce(&Path) -> io::Result<File>,
    ) -> io::Result<(Beside, File)> {
        let mut all = unfinished();
        let file = make(&path)?;
        all.push(path.clone());
        Ok((Beside { place: place.to_owned(), path }, file))
    }

    /// Where it is until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it into its place.
    ///
    /// # Errors
    /// It cannot be moved; it is removed then.
    pub fn settle(self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.place)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.path);
        // One that is settled is not there any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Makes a folder with those above it; which of them were not there before, the outermost first.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_absent = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut made: Vec<PathBuf> = folder.ancestors().take_while(is_absent).map(Path::to_owned).collect();
    made.reverse();
    std::fs::create_dir_all(folder)?;
    Ok(made)
}
