//! Recorded instruction traces of GPUs.

// A diagnostic ends a test: its size costs nothing.
#![allow(clippy::result_large_err)]

mod accelsim;
mod macsim;

use config::Diagnostic;
use programs::{
    program::{Kernel, Program, WarpAt, census},
    simt_trace::{is_gpu_trace, open},
};
use proto::{
    memory::PAGE,
    simt::{Inst, LANES, Tape},
};
use std::{
    io::Write,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

// Real traces: a reader is right if it reproduces their statistics, which were counted independently.

#[test]
fn accel_sims_vector_addition() {
    let Some(list) = data("accelsim_traceg/kernelslist.g") else { return };
    assert!(is_gpu_trace(&list));
    for path in [list.clone(), list.parent().unwrap().to_owned(), list.with_file_name("kernel-1.traceg")] {
        let mut program = open(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let census = census(program.as_mut());
        let [kernel] = census.kernels[..] else { panic!("{} kernels", census.kernels.len()) };
        assert_eq!(kernel.name, "_Z9vectorAddPKfS0_Pfi");
        assert_eq!((kernel.blocks, kernel.threads, kernel.registers, kernel.shared), (196, 256, 12, 0));
        assert_eq!(census.warp_instructions, 26_601);
        // 50,000 elements of three arrays: two are loaded, one is stored.
        assert_eq!(
            (census.loads.instructions, census.loads.lanes, census.loads.bytes),
            (3126, 100_000, 400_000)
        );
        assert_eq!(
            (census.stores.instructions, census.stores.lanes, census.stores.lines),
            (1563, 50_000, 1563)
        );
        assert_eq!(census.loads.lines, 3126);
        // Three buffers of 200,000 bytes, 0xe00 bytes over page borders apart: 147 pages in a row.
        assert_eq!((census.footprint, census.touched_pages, census.written_pages), (147 * PAGE, 147, 50));
    }
}

#[test]
fn macsims_vector_multiplication() {
    // Warps per kernel; pages touched and written, counted independently.
    for (name, warps, touched, written) in [
        ("macsim_nvbit_vectormultadd_4096.tar.xz", 128, 40, 24),
        ("macsim_nvbit_vectormultadd_16384.tar.xz", 512, 160, 96),
    ] {
        let Some(path) = data(name) else { return };
        assert!(is_gpu_trace(&path));
        let mut program = open(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let census = census(program.as_mut());
        assert_eq!(census.kernels.len(), 3);
        for (n, kernel) in census.kernels.iter().enumerate() {
            // 32 warps per block; registers R0 to R9.
            assert_eq!((kernel.blocks, kernel.threads), (warps as u32 / 32, 1024));
            assert_eq!((kernel.registers, kernel.shared), (10, 0));
            assert_eq!(kernel.name, format!("Kernel{n}"));
        }
        assert_eq!(census.warp_instructions, 3 * warps * 14);
        // Each thread loads two doubles and stores one.
        assert_eq!((census.loads.instructions, census.loads.lines), (3 * warps * 2, 3 * warps * 2 * 2));
        assert_eq!((census.stores.bytes, census.stores.lines), (3 * warps * 32 * 8, 3 * warps * 2));
        assert_eq!((census.touched_pages, census.written_pages), (touched, written));
        assert_eq!(census.footprint, touched * PAGE);
    }
}

// Helpers shared by the tests.

/// Returns a file of the shared data, or `None` with a message on stdout.
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

/// Returns the diagnostic of opening a file in a folder of files.
pub(crate) fn refused(files: &[(&str, &[u8])], name: &str) -> Diagnostic {
    let folder = folder(files);
    match open(&folder.path().join(name)) {
        Err(diagnostic) => diagnostic,
        Ok(_) => panic!("it is read"),
    }
}

/// A warp's instructions with their addresses.
pub(crate) type Executed = Vec<(Inst, Vec<u64>)>;

/// Returns every instruction of a trace with its addresses: kernels, and warp by warp what they execute.
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

/// Compresses with gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}
