//! The files of a MacSim trace: a folder's, or a tar archive's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};

use config::Diagnostic;
use text::Input;
use text::fault::{self, Bad};

use crate::simt_trace::builder::Builder;
use crate::simt_trace::macsim::record::{self, Recording};
use crate::simt_trace::macsim::tar::Tar;

/// The longest text file: a list of 100 million warps is none that we could run.
const MOST_TEXT: u64 = 1 << 30;

/// The files of a trace.
pub(super) enum Tree {
    /// Those of a folder, read when they are asked for.
    Folder(PathBuf),
    /// Those of an archive, which can only be read from front to back: warps are read as they come.
    Archive { source: String, texts: BTreeMap<String, String>, warps: BTreeMap<String, Recording> },
}

impl Tree {
    /// Reads an archive.
    pub(super) fn archive(path: &Path, builder: &mut Builder) -> Result<Tree, Diagnostic> {
        let source = fault::name(path);
        let io = |error: io::Error| Bad::new(format!("cannot read the archive: {error}")).in_file(&source);
        let mut tar = Tar::new(File::open(path).and_then(Input::new).map_err(io)?.bytes);
        let (mut texts, mut warps) = (BTreeMap::new(), BTreeMap::new());
        while let Some(member) = tar.next().map_err(io)? {
            let name = member.name.trim_start_matches("./").to_owned();
            let shown = format!("{source}:{name}");
            if name.ends_with(".raw") {
                warps.insert(name, record::read(&shown, Cursor::new(member.bytes), builder)?);
            } else if name.ends_with(".txt") {
                let text =
                    String::from_utf8(member.bytes).map_err(|_| Bad::new("not text").in_file(&shown))?;
                texts.insert(name, text);
            }
        }
        Ok(Tree::Archive { source, texts, warps })
    }

    /// What diagnostics call a file.
    pub(super) fn source(&self, name: &str) -> String {
        match self {
            Tree::Folder(folder) => fault::name(&folder.join(name)),
            Tree::Archive { source, .. } => format!("{source}:{name}"),
        }
    }

    /// A text file, if it is there.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Diagnostic> {
        let folder = match self {
            Tree::Archive { texts, .. } => return Ok(texts.get(name).cloned()),
            Tree::Folder(folder) => folder,
        };
        let path = folder.join(name);
        if !path.is_file() {
            return Ok(None);
        }
        let read = || {
            if path.metadata()?.len() > MOST_TEXT {
                return Err(io::Error::other("a text of more than 1 GiB"));
            }
            std::fs::read_to_string(&path)
        };
        read()
            .map(Some)
            .map_err(|error| Bad::new(format!("cannot read the file: {error}")).in_file(&self.source(name)))
    }

    /// A warp, if its file is there.
    pub(super) fn warp(&self, name: &str, builder: &mut Builder) -> Result<Option<Recording>, Diagnostic> {
        let folder = match self {
            Tree::Archive { warps, .. } => return Ok(warps.get(name).copied()),
            Tree::Folder(folder) => folder,
        };
        match File::open(folder.join(name)) {
            Ok(file) => record::read(&self.source(name), file, builder).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Bad::new(format!("cannot read the file: {error}")).in_file(&self.source(name))),
        }
    }

    /// The configuration to begin with: the list of kernels, or the only kernel.
    pub(super) fn root(&self) -> Result<String, Diagnostic> {
        let names: Vec<String> = match self {
            Tree::Folder(folder) => ROOTS
                .iter()
                .filter(|name| folder.join(name).is_file())
                .map(|name| (*name).to_owned())
                .collect(),
            Tree::Archive { texts, .. } => texts.keys().cloned().collect(),
        };
        for root in ROOTS {
            let mut found = names.iter().filter(|name| is_named(name, root));
            let Some(first) = found.next() else { continue };
            if let Some(second) = found.next() {
                let what = format!("more than one trace: `{first}` and `{second}`");
                return Err(Bad::new(what).in_file(&self.source("")).help("unpack it and name one of them"));
            }
            return Ok(first.clone());
        }
        let what = format!("no trace: there is none of {}", ROOTS.join(", "));
        Err(Bad::new(what).in_file(&self.source("")))
    }
}

/// Names of configuration files, the list of kernels first.
pub(in crate::simt_trace) const ROOTS: [&str; 3] = ["kernel_config.txt", "trace.txt", "Trace.txt"];

/// Whether a path ends in this file name.
pub(super) fn is_named(path: &str, name: &str) -> bool {
    path.rsplit('/').next() == Some(name)
}
