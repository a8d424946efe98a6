//! A folder of states by digest, which any number of runs share.

use crate::output::{Fault, cannot_write, make_folder, write_durable};
use config::Diagnostic;
use machine::state::{Found, Kept, Place, State, StateSpec, States, agree, read, write};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

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
    pub(super) fn get(&self, wanted: &StateSpec) -> Result<Option<State>, Diagnostic> {
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
    pub(super) fn refuse(&self, wanted: &StateSpec, fault: &Diagnostic) {
        made_again(&self.path(wanted).display().to_string(), fault);
    }

    /// Puts a state in, whole or not at all. Who puts the same one in at the same time writes the same bytes. If there is no room,
    /// that is said, and the run goes on: it has its state.
    pub(super) fn put(&self, wanted: &StateSpec, state: &State) {
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
