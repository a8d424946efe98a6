//! Traces of MacSim of type `nvbit`: a list of kernels, for each kernel a list of warps, for each warp a compressed
//! file of records; as a folder, or as a tar archive of one.

mod files;
mod record;

use std::path::{Path, PathBuf};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Cursor},
};

use config::Diagnostic;
use proto::simt::LANES;
use text::{Bad, Input, fault};

use super::{Builder, Grid, Recorded, blocks, threads};
use crate::program::Kernel;
use crate::simt_trace::macsim::files::{Config, Launched, WarpId};
use files::Tar;
use record::Recording;

pub(super) use files::is_config;

/// Returns true if bytes are the start of an archive of a trace.
pub(super) fn is_archive(start: &[u8]) -> bool {
    let mut head = start;
    while files::is_member_head(head) {
        let name = files::member_name(head);
        if name.ends_with(".raw") || ROOTS.iter().any(|root| is_named(&name, root)) {
            return true;
        }
        // Folders have no content; any other foreign file ends the search.
        if head[156] != b'5' {
            return false;
        }
        head = &head[512..];
    }
    false
}

/// Reads an archive.
pub(super) fn read_archive(path: &Path, builder: &mut Builder) -> Result<(), Diagnostic> {
    let tree = Tree::archive(path, builder)?;
    let root = tree.root()?;
    read(&tree, &root, builder)
}

/// Reads a folder, or the named configuration file.
pub(super) fn read_files(path: &Path, builder: &mut Builder) -> Result<(), Diagnostic> {
    if path.is_dir() {
        let tree = Tree::Folder(path.to_owned());
        let root = tree.root()?;
        return read(&tree, &root, builder);
    }
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    read(&Tree::Folder(folder), &name, builder)
}

fn read(tree: &Tree, root: &str, builder: &mut Builder) -> Result<(), Diagnostic> {
    let source = tree.source(root);
    let text = tree.text(root)?.ok_or_else(|| Bad::new("no such file").in_file(&source))?;
    let kernels = match files::read(&source, &text)? {
        Config::Kernel(warps) => return read_kernel(tree, root, &warps, None, builder),
        Config::Application(kernels) => kernels,
    };
    let names = beside(root, "kernel_names.txt");
    let launched = match tree.text(&names)? {
        Some(text) => files::read_names(&tree.source(&names), &text)?,
        None => BTreeMap::new(),
    };
    for kernel in kernels {
        let name = beside(root, &kernel);
        let here = tree.source(&name);
        let absent = || Bad::new(format!("no configuration of a kernel `{kernel}` beside the list"));
        let text = tree.text(&name)?.ok_or_else(|| absent().in_file(&source))?;
        let Config::Kernel(warps) = files::read(&here, &text)? else {
            return Err(Bad::new("a list of kernels in a list of kernels").in_file(&here));
        };
        let folder = kernel.split('/').next().unwrap_or_default();
        read_kernel(tree, &name, &warps, launched.get(folder), builder)?;
    }
    Ok(())
}

/// Returns a path relative to the folder of a file.
fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None => path.to_owned(),
    }
}

/// Allocation unit of shared memory (CUDA occupancy calculator, compute capability 7 and later: 256 B).
const SHARED_UNIT: u64 = 256;

fn read_kernel(
    tree: &Tree,
    name: &str,
    warps: &[WarpId],
    launched: Option<&Launched>,
    builder: &mut Builder,
) -> Result<(), Diagnostic> {
    let source = tree.source(name);
    let whole = |bad: Bad| bad.in_file(&source);
    let base = name.rsplit_once('.').map_or(name, |(base, _)| base);
    let info = format!("{base}_info.txt");
    let counts: BTreeMap<u32, u64> = match tree.text(&info)? {
        Some(text) => files::read_counts(&tree.source(&info), &text)?.into_iter().collect(),
        None => BTreeMap::new(),
    };
    let (mut grid, mut registers, mut shared) = (Grid::default(), 0, 0);
    let (mut last_block, mut last_warp) = (0, 0);
    for warp in warps {
        let file = format!("{base}_{}.raw", warp.number);
        let Some(read) = tree.warp(&file, builder)? else {
            return Err(Bad::new(format!("no file of warp {}", warp.number)).in_file(&tree.source(&file)));
        };
        if let Some(count) = counts.get(&warp.number).filter(|count| **count != read.records) {
            let what = format!("{} records; `{info}` says {count}", read.records);
            return Err(Bad::new(what).in_file(&tree.source(&file)));
        }
        grid.add(warp.block, warp.warp, read.warp);
        registers = registers.max(read.registers);
        shared = shared.max(read.shared);
        (last_block, last_warp) = (last_block.max(warp.block), last_warp.max(warp.warp));
    }
    if warps.is_empty() {
        return Err(whole(Bad::new("a kernel without warps")));
    }
    let blocks = blocks([u64::from(last_block) + 1, 1, 1]).map_err(whole)?;
    let per_block = last_warp + 1;
    let threads = threads([u64::from(per_block) * LANES as u64, 1, 1]).map_err(whole)?;
    let warps = grid.finish(blocks, per_block).map_err(whole)?;
    let implied = Launched {
        name: name.rsplit('/').nth(1).unwrap_or("kernel").to_owned(),
        blocks,
        threads,
        registers: u32::from(registers),
        shared: shared.next_multiple_of(SHARED_UNIT) as u32,
    };
    let Launched { name, threads, registers, shared, .. } = launched.unwrap_or(&implied);
    if launched.is_some_and(|l| l.blocks != blocks || l.threads.div_ceil(LANES as u32) != per_block) {
        let what = format!("{blocks} blocks of {per_block} warps; `kernel_names.txt` says otherwise");
        return Err(whole(Bad::new(what)));
    }
    // Names live as long as the process, like those of built-in programs.
    let name = String::leak(name.clone());
    let kernel = Kernel { name, blocks, threads: *threads, registers: *registers, shared: *shared };
    builder.kernel(Recorded { kernel, warps });
    Ok(())
}

// Files of a MacSim trace: a folder's, or a tar archive's.

/// Maximum size of a text file: a list of 100 million warps could not be run.
const MOST_TEXT: u64 = 1 << 30;

/// Files of a trace.
enum Tree {
    /// Files of a folder, read on demand.
    Folder(PathBuf),
    /// Files of an archive, which can only be read from front to back: warps are read as they come.
    Archive { source: String, texts: BTreeMap<String, String>, warps: BTreeMap<String, Recording> },
}

impl Tree {
    /// Reads an archive.
    fn archive(path: &Path, builder: &mut Builder) -> Result<Tree, Diagnostic> {
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

    /// Returns the name of a file in diagnostics.
    fn source(&self, name: &str) -> String {
        match self {
            Tree::Folder(folder) => fault::name(&folder.join(name)),
            Tree::Archive { source, .. } => format!("{source}:{name}"),
        }
    }

    /// Returns a text file, if it exists.
    fn text(&self, name: &str) -> Result<Option<String>, Diagnostic> {
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

    /// Returns a warp, if its file exists.
    fn warp(&self, name: &str, builder: &mut Builder) -> Result<Option<Recording>, Diagnostic> {
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

    /// Returns the root configuration: the list of kernels, or the only kernel.
    fn root(&self) -> Result<String, Diagnostic> {
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
        let what = format!("no trace: it has none of {}", ROOTS.join(", "));
        Err(Bad::new(what).in_file(&self.source("")))
    }
}

/// Names of configuration files, the list of kernels first.
pub(in crate::simt_trace) const ROOTS: [&str; 3] = ["kernel_config.txt", "trace.txt", "Trace.txt"];

/// Returns true if a path ends in this file name.
fn is_named(path: &str, name: &str) -> bool {
    path.rsplit('/').next() == Some(name)
}
