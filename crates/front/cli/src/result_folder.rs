//! The two files of `run --out`: the resolved spec and the result. Either both are there and belong together, or neither is.
//!
//! Both are written beside their places and moved at the end. Of two renames a kill may come between: so an older result goes
//! first, and what is left at any moment is the old pair, a spec without a result, or the new pair. Each names the other: the
//! result has `spec_sha256`, and the spec says that digest and the one of the result's file.

use crate::output::{Beside, Fault, cannot_write, make_folder};
use config::Diagnostic;
use machine::Loaded;
use machine::result::{Document, spec_digest};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const SPEC: &str = "spec.toml";
const RESULT: &str = "result.json";

/// A folder that waits for its two files.
pub(crate) struct ResultFolder {
    folder: PathBuf,
    /// Folders that were made for it.
    made: Vec<PathBuf>,
    loaded: Loaded,
    spec: Option<(Beside, File)>,
}

impl ResultFolder {
    /// Its files.
    pub(crate) const NAMES: [&str; 2] = [SPEC, RESULT];

    /// Makes the folder and sees that it can be written: one that cannot be costs no run.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn open(folder: &Path, loaded: Loaded) -> Result<ResultFolder, Fault> {
        let made = make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
        let mut this = ResultFolder { folder: folder.to_owned(), made, loaded, spec: None };
        let place = folder.join(SPEC);
        this.spec = Some(Beside::hidden(&place).map_err(|fault| cannot_write(&place, &fault))?);
        Ok(this)
    }

    /// Puts both files into their places.
    ///
    /// # Errors
    /// One cannot be written; then there is neither of the new ones.
    pub(crate) fn deliver(mut self, document: &Document) -> Result<(), Fault> {
        if spec_digest(&self.loaded.spec) != document.spec_sha256 {
            let what =
                Diagnostic::new(format!("the system `{}` was changed while it was read", document.system));
            return Err(Fault::Undelivered(what.help("the run must be made again")));
        }
        let (spec_place, result_place) = (self.folder.join(SPEC), self.folder.join(RESULT));
        let result = document.to_json();
        let spec = headed(&self.loaded.to_toml(), &document.spec_sha256, &result);
        if let Some((spec_beside, mut spec_file)) = self.spec.take() {
            fill(&mut spec_file, &spec).map_err(|fault| cannot_write(&spec_place, &fault))?;
            let cannot = |fault: io::Error| cannot_write(&result_place, &fault);
            let (result_beside, mut result_file) = Beside::hidden(&result_place).map_err(cannot)?;
            fill(&mut result_file, &result).map_err(cannot)?;
            // Of two runs that end at once in one folder, one comes after the other.
            let turn = File::open(&self.folder).ok().filter(|folder| folder.lock().is_ok());
            remove_if_there(&result_place).map_err(cannot)?;
            spec_beside.settle().map_err(|fault| cannot_write(&spec_place, &fault))?;
            result_beside.settle().map_err(cannot)?;
            drop(turn);
        }
        self.made.clear();
        Ok(())
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        self.spec = None;
        for folder in self.made.iter().rev() {
            // One that somebody else has put something into stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The spec with what says which result is its.
fn headed(spec: &str, digest: &str, result: &str) -> String {
    let file = Sha256::digest(result.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "# {RESULT} beside has the result; its SHA-256 is {file}\n# spec_sha256 in it is {digest}\n{spec}"
    )
}

fn fill(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}
