//! MacSim's traces of type `nvbit`: a list of kernels, for each kernel a list of warps, for each warp a compressed file of
//! records; as a folder, or as a tar archive of one.

mod lists;
mod record;
mod tar;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use config::Diagnostic;
use proto::simt::LANES;
use text::Bad;

use crate::program::Kernel;
use crate::simt_trace::builder::{Builder, Grid, blocks, threads};
use crate::simt_trace::macsim::lists::{Config, Launched, WarpId};
use crate::simt_trace::macsim::tree::Tree;
use crate::simt_trace::program::Recorded;

pub(super) use lists::is_config;
pub(super) use tree::ROOTS;

/// Whether bytes are the start of an archive of a trace.
pub(super) fn is_archive(start: &[u8]) -> bool {
    let mut head = start;
    while tar::is_head(head) {
        let name = tar::name(head);
        if name.ends_with(".raw") || ROOTS.iter().any(|root| tree::is_named(&name, root)) {
            return true;
        }
        // Folders have no content; anything else that is not ours ends the search.
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

/// Reads a folder, or the configuration file that is named.
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
    let kernels = match lists::read(&source, &text)? {
        Config::Kernel(warps) => return read_kernel(tree, root, &warps, None, builder),
        Config::Application(kernels) => kernels,
    };
    let names = beside(root, "kernel_names.txt");
    let launched = match tree.text(&names)? {
        Some(text) => lists::read_names(&tree.source(&names), &text)?,
        None => BTreeMap::new(),
    };
    for kernel in kernels {
        let name = beside(root, &kernel);
        let here = tree.source(&name);
        let absent = || Bad::new(format!("no configuration of a kernel `{kernel}` beside the list"));
        let text = tree.text(&name)?.ok_or_else(|| absent().in_file(&source))?;
        let Config::Kernel(warps) = lists::read(&here, &text)? else {
            return Err(Bad::new("a list of kernels in a list of kernels").in_file(&here));
        };
        let folder = kernel.split('/').next().unwrap_or_default();
        read_kernel(tree, &name, &warps, launched.get(folder), builder)?;
    }
    Ok(())
}

/// A path relative to the folder of a file.
fn beside(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None => path.to_owned(),
    }
}

/// Shared memory is handed out in such pieces (CUDA occupancy calculator, compute capability 7 and later: 256 B).
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
        Some(text) => lists::read_counts(&tree.source(&info), &text)?.into_iter().collect(),
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
    // Names live as long as the process, as those of the programs that are built in.
    let name = String::leak(name.clone());
    let kernel = Kernel { name, blocks, threads: *threads, registers: *registers, shared: *shared };
    builder.kernel(Recorded { kernel, warps });
    Ok(())
}
