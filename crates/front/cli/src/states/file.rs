//! The states of a machine in a file of the user's.

use crate::output::{Beside, Fault, cannot_write};
use config::Diagnostic;
use machine::state::{Found, Kept, Place, State, StateSpec, States, agree, read, write};
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// `--load-state`.
pub(crate) struct Given {
    name: String,
    kept: Vec<Kept>,
}

impl Given {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no state, or not a whole one.
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
        Err(Diagnostic::new(what).help("remove it and save it again: nothing of it can be trusted"))
    }
}

/// `--save-state`: the file appears, whole, as soon as the last of the states is there.
pub(crate) struct Saved {
    path: PathBuf,
    /// The file beside its place, until it is written.
    file: RefCell<Option<(Beside, File)>>,
    /// The states that it is to have, and those that it has by now.
    wanted: RefCell<Vec<Option<StateSpec>>>,
    kept: RefCell<Vec<Kept>>,
    done: RefCell<Option<Result<(), Fault>>>,
}

impl Saved {
    /// Makes sure that the file can be written.
    ///
    /// # Errors
    /// It cannot.
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

    /// Whether it was written.
    ///
    /// # Errors
    /// It could not be.
    pub(crate) fn finish(self) -> Result<(), Fault> {
        self.done.into_inner().unwrap_or_else(|| {
            let what = format!("no state was saved in {}", self.path.display());
            Err(Diagnostic::new(what)
                .help("a state has its trace's content in its name: give `flash.precondition.trace.file` a file that can be read again")
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
        let place = Awaited { saved: self, wanted: wanted.clone() };
        Ok(Found::Absent(Some(Box::new(place))))
    }
}

struct Awaited<'a> {
    saved: &'a Saved,
    wanted: StateSpec,
}

impl Place for Awaited<'_> {
    /// The states of a run come in the order in which it said that it wants them.
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
