//! Where states are kept: in a file of the user's, in a folder that runs share, in the memory of a sweep.

mod file;
mod shared;

pub(crate) use file::{Given, Saved};
pub(crate) use shared::{Shared, shared};

use crate::output::{Fault, cannot_write, make_folder, write_durable};
use config::Diagnostic;
use machine::Loaded;
use machine::run::Plan;
use machine::state::{Found, Kept, Place, State, StateSpec, States, agree, has_any, read, write};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

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

// A folder of states by digest, which any number of runs share.

/// The word for no folder, and no sharing.
const NONE: &str = "none";

/// The folder of `--state-cache`; `None` for the word that says none.
pub(crate) fn folder_of(text: &Path) -> Option<&Path> {
    (text != Path::new(NONE)).then_some(text)
}

/// `--state-cache`.
pub(crate) struct Folder {
    folder: PathBuf,
}

impl Folder {
    /// A folder, made if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn open(folder: &Path) -> Result<Folder, Fault> {
        make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
        Ok(Folder { folder: folder.to_owned() })
    }

    fn path(&self, wanted: &StateSpec) -> PathBuf {
        self.folder.join(format!("{}.state", wanted.digest()))
    }

    /// The state, if it is there. One that is not what was written, as after a loss of power, is told and made again.
    ///
    /// # Errors
    /// It cannot be read.
    fn get(&self, wanted: &StateSpec) -> Result<Option<State>, Diagnostic> {
        let path = self.path(wanted);
        let name = path.display().to_string();
        match std::fs::read(&path) {
            Ok(file) => {
                let kept = read(&name, &file)
                    .and_then(|kept| agree(&name, &kept, &[Some(wanted.clone())]).map(|()| kept));
                Ok(match kept {
                    Ok(kept) => kept.into_iter().next().map(|kept| kept.state),
                    Err(fault) => {
                        made_again(&name, &fault);
                        None
                    }
                })
            }
            Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(None),
            Err(fault) => Err(Diagnostic::new(format!("cannot read {name}: {fault}"))
                .help("--state-cache names another folder, or none")),
        }
    }

    /// Tells that a state contradicts itself and is made again.
    fn refuse(&self, wanted: &StateSpec, fault: &Diagnostic) {
        made_again(&self.path(wanted).display().to_string(), fault);
    }

    /// Puts a state in, whole or not at all. Who puts the same one in at the same time writes the same bytes. If there is no room,
    /// that is said, and the run goes on: it has its state.
    fn put(&self, wanted: &StateSpec, state: &State) {
        let kept = Kept { spec: wanted.clone(), state: state.clone() };
        if let Err(fault) = write_durable(&self.path(wanted), &write(&[kept])) {
            tell!("{fault}");
        }
    }
}

fn made_again(name: &str, fault: &Diagnostic) {
    tell!("note: {name}: {}: the state is made again", fault.what);
}

impl States for Folder {
    fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<Found<'a>, Diagnostic> {
        Ok(match self.get(wanted)? {
            Some(state) => Found::There(state),
            None => Found::Absent(Some(Box::new(Awaited { folder: self, wanted: wanted.clone() }))),
        })
    }

    fn refuse<'a>(
        &'a self,
        wanted: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        self.refuse(wanted, &fault);
        Ok(Some(Box::new(Awaited { folder: self, wanted: wanted.clone() })))
    }
}

struct Awaited<'a> {
    folder: &'a Folder,
    wanted: StateSpec,
}

impl Place for Awaited<'_> {
    fn keep(self: Box<Self>, state: &State) {
        self.folder.put(&self.wanted, state);
    }
}
