//! Storage of states: in a file of the user's, in a folder shared by any number of runs, or in the memory of a sweep.

mod shared;

pub(crate) use shared::shared;

use crate::output::{Beside, Fault, cannot_write, make_folder, write_durable};
use config::Diagnostic;
use machine::Loaded;
use machine::run::Plan;
use machine::state::{Found, Kept, Place, State, StateSpec, States, agree, has_any, read, write};
use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Work that a machine repeats in each run, whatever states are kept.
fn done_anew(loaded: &Loaded) -> Option<&'static str> {
    loaded.spec.memory.iter().find_map(|part| part.spec.done_anew())
}

/// Refuses to keep the state of a machine without one; returns the part of the machine that a state does not cover.
///
/// # Errors
/// The machine has neither a drive nor memory that is filled.
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
    let why = done_anew(loaded)
        .unwrap_or("a state is that of a drive after preconditioning, or of server memory after filling");
    Err(Diagnostic::new(what).help(why))
}

/// States of `--load-state`.
pub(crate) struct Given {
    name: String,
    kept: Vec<Kept>,
}

impl Given {
    /// Reads a state file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a complete state file.
    pub(crate) fn read(path: &Path) -> Result<Given, Diagnostic> {
        let name = path.display().to_string();
        let file = std::fs::read(path).map_err(|fault| {
            Diagnostic::new(format!("cannot read {name}: {fault}")).help("`run --save-state FILE` writes one")
        })?;
        Ok(Given { kept: read(&name, &file)?, name })
    }
}

impl States for Given {
    fn expect(&self, wanted: &[Option<StateSpec>]) -> Result<(), Diagnostic> {
        agree(&self.name, &self.kept, wanted)
    }

    fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<Found<'a>, Diagnostic> {
        let kept = self.kept.iter().find(|kept| kept.spec == *wanted);
        Ok(kept.map_or(Found::Absent(None), |kept| Found::There(kept.state.clone())))
    }

    fn refuse<'a>(
        &'a self,
        _: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        let what = format!("{}: {}", self.name, fault.what);
        Err(Diagnostic::new(what).help("remove the file and save the state again: it is damaged"))
    }
}

/// States of `--save-state`: the file appears, whole, once the last state is available.
pub(crate) struct Saved {
    path: PathBuf,
    /// Temporary file beside the path, until it is written.
    file: RefCell<Option<(Beside, File)>>,
    /// States to be saved, and those available so far.
    wanted: RefCell<Vec<Option<StateSpec>>>,
    kept: RefCell<Vec<Kept>>,
    done: RefCell<Option<Result<(), Fault>>>,
}

impl Saved {
    /// Checks that the file can be written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn open(path: &Path) -> Result<Saved, Fault> {
        let file = Beside::hidden(path).map_err(|fault| cannot_write(path, &fault))?;
        Ok(Saved {
            path: path.to_owned(),
            file: RefCell::new(Some(file)),
            wanted: RefCell::default(),
            kept: RefCell::default(),
            done: RefCell::default(),
        })
    }

    /// Checks that the file was written.
    ///
    /// # Errors
    /// The file was not written.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        self.done.into_inner().unwrap_or_else(|| {
            let what = format!("no state was saved in {}", self.path.display());
            Err(Diagnostic::new(what)
                .help("a state is identified by the content of its trace: give `flash.precondition.trace.file` a file that can be read twice")
                .into())
        })
    }
}

impl States for Saved {
    fn expect(&self, wanted: &[Option<StateSpec>]) -> Result<(), Diagnostic> {
        self.wanted.replace(wanted.to_vec());
        Ok(())
    }

    fn find<'a>(&'a self, wanted: &StateSpec, _: &AtomicBool) -> Result<Found<'a>, Diagnostic> {
        let place = PlaceInFile { saved: self, wanted: wanted.clone() };
        Ok(Found::Absent(Some(Box::new(place))))
    }
}

struct PlaceInFile<'a> {
    saved: &'a Saved,
    wanted: StateSpec,
}

impl Place for PlaceInFile<'_> {
    /// Keeps a state; a run delivers states in the order in which it asked for them.
    fn keep(self: Box<Self>, state: &State) {
        let Saved { path, file, wanted, kept, done } = self.saved;
        let mut kept = kept.borrow_mut();
        kept.push(Kept { spec: self.wanted, state: state.clone() });
        if kept.len() < wanted.borrow().len() {
            return;
        }
        let Some((beside, mut file)) = file.take() else { return };
        let written = file.write_all(&write(&kept)).and_then(|()| file.sync_all());
        let settled = written.and_then(|()| beside.settle());
        done.replace(Some(settled.map_err(|fault| cannot_write(path, &fault))));
    }
}

/// Value that disables the cache folder and sharing.
const NONE: &str = "none";

/// Folder of `--state-cache`; `None` for the value that disables it.
pub(crate) fn folder_of(text: &Path) -> Option<&Path> {
    (text != Path::new(NONE)).then_some(text)
}

/// Folder of `--state-cache`.
pub(crate) struct Folder {
    folder: PathBuf,
}

impl Folder {
    /// Opens a folder, creating it if needed.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn open(folder: &Path) -> Result<Folder, Fault> {
        make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
        Ok(Folder { folder: folder.to_owned() })
    }

    fn path(&self, wanted: &StateSpec) -> PathBuf {
        self.folder.join(format!("{}.state", wanted.digest()))
    }

    /// Reads a state, if cached. A damaged one, as after a loss of power, is reported and made again.
    ///
    /// # Errors
    /// The file cannot be read.
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
                .help("give --state-cache a different folder, or `none`")),
        }
    }

    /// Reports that a state contradicts itself and is made again.
    fn refuse(&self, wanted: &StateSpec, fault: &Diagnostic) {
        made_again(&self.path(wanted).display().to_string(), fault);
    }

    /// Stores a state, whole or not at all. Concurrent writers of the same state write the same bytes. If the disk is
    /// full, that is reported and the run goes on: it has its state.
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
            None => Found::Absent(Some(Box::new(PlaceInFolder { folder: self, wanted: wanted.clone() }))),
        })
    }

    fn refuse<'a>(
        &'a self,
        wanted: &StateSpec,
        fault: Diagnostic,
    ) -> Result<Option<Box<dyn Place + 'a>>, Diagnostic> {
        self.refuse(wanted, &fault);
        Ok(Some(Box::new(PlaceInFolder { folder: self, wanted: wanted.clone() })))
    }
}

struct PlaceInFolder<'a> {
    folder: &'a Folder,
    wanted: StateSpec,
}

impl Place for PlaceInFolder<'_> {
    fn keep(self: Box<Self>, state: &State) {
        self.folder.put(&self.wanted, state);
    }
}
