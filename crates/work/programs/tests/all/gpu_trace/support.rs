//! What the tests share.

use std::io::Write;
use std::path::{Path, PathBuf};

use config::Diagnostic;
use programs::program::{Kernel, Program, WarpAt};
use programs::simt_trace::open;
use proto::simt::{Inst, LANES, Tape};
use tempfile::TempDir;

/// A file of the shared data, or `None` with a word on stdout.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join("gpu_traces").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no data ({name})");
    None
}

/// A folder of files.
pub(crate) fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    folder
}

/// What opening a file of a folder of files says against it.
pub(crate) fn refused(files: &[(&str, &[u8])], name: &str) -> Diagnostic {
    let folder = folder(files);
    match open(&folder.path().join(name)) {
        Err(diagnostic) => diagnostic,
        Ok(_) => panic!("it is read"),
    }
}

/// A warp's instructions with their addresses.
pub(crate) type Executed = Vec<(Inst, Vec<u64>)>;

/// Every instruction of a trace with its addresses: kernels, and warp by warp what they execute.
pub(crate) fn unfold(path: &Path) -> Vec<(Kernel, Vec<Executed>)> {
    let mut program = open(path).unwrap_or_else(|refused| panic!("{refused}"));
    let mut kernels = Vec::new();
    while let Some(kernel) = program.launch() {
        let mut warps = Vec::new();
        for block in 0..kernel.blocks {
            for warp in 0..kernel.threads.div_ceil(LANES as u32) {
                warps.push(run(program.as_mut(), WarpAt::new(block, warp, kernel.threads)));
            }
        }
        kernels.push((kernel, warps));
    }
    kernels
}

fn run(program: &mut dyn Program, at: WarpAt) -> Executed {
    let (mut all, mut tape) = (Vec::new(), Tape::default());
    program.start(3, at);
    loop {
        tape.clear();
        let more = program.step(3, 0, &mut tape);
        for inst in &tape.insts {
            let from = inst.addresses as usize;
            let lanes = if inst.width > 0 { inst.mask.count_ones() as usize } else { 0 };
            all.push((*inst, tape.addresses[from..from + lanes].to_vec()));
        }
        if !more {
            return all;
        }
        assert!(!tape.insts.is_empty());
    }
}

/// Compressed with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}
