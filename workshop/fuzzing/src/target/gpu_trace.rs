//! Instruction traces of GPUs. The first byte says what the others are: a kernel of Accel-Sim, its list of kernels, a list or a warp of
//! MacSim; the files around it are good.

use super::Target;
use config::Diagnostic;
use programs::program::{Program, census};
use programs::simt_trace::{is_gpu_trace, open};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(super) const TARGET: Target = Target {
    name: "gpu_trace",
    about: "instruction traces of Accel-Sim and MacSim",
    run,
    examples,
    reads,
    cases: 2_000,
};

const KERNEL: &str = "-kernel name = k
-grid dim = (2,1,1)
-block dim = (32,1,1)
-shmem = 0
-nregs = 8
-shmem base_addr = 0x00007fb139000000
-local mem base_addr = 0x00007fb137000000
-accelsim tracer version = 5

#traces format = whatever

#BEGIN_TB
thread block = 0,0,0
warp = 0
insts = 4
0000 ffffffff 1 R1 MOV 0 0 0
0010 ffffffff 1 R4 LDG.E 1 R4 4 1 0x7fb0fc430e00 4 0
0020 00000003 0 STL 2 R4 R5 4 2 0xfffc00 0 0
0030 ffffffff 0 EXIT 0 0 0
#END_TB
#BEGIN_TB
thread block = 1,0,0
warp = 0
insts = 1
0000 00000007 0 STS.64 2 R1 R3 8 0 0x10 0x20 0x30 0
#END_TB
";
const LIST: &str = "MemcpyHtoD,0x7fb0fc400000,200000\nkernel-1.traceg\n";
const WARPS: &str = "nvbit\n14\n16\n2\n0 0\n65536 0\n";
/// The bytes of a damaged trace's memory that a census may mark.
const MARKED: u64 = 1 << 34;

/// Four records of MacSim.
fn warp() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    for (n, opcode) in [60_u8, 73, 78, 139].into_iter().enumerate() {
        let record = &mut bytes[n * 64..][..64];
        record[0] = opcode;
        (record[4], record[5], record[6], record[14]) = (1, 1, 3, 4);
        record[24..28].fill(0xff);
        record[32] = n as u8 * 16;
        record[50] = 9;
        record[56] = 4;
    }
    bytes
}

/// The files of a trace, and the path that is opened.
fn written(bytes: &[u8]) -> Option<(TempDir, PathBuf)> {
    let (choice, content) = bytes.split_first()?;
    let warp = warp();
    let (files, opened): (Vec<(&str, &[u8])>, &str) = match choice % 5 {
        0 => (vec![("kernel-1.traceg", content)], "kernel-1.traceg"),
        1 => (vec![("kernelslist.g", content), ("kernel-1.traceg", KERNEL.as_bytes())], "kernelslist.g"),
        2 => (vec![("trace.txt", content), ("trace_0.raw", &warp), ("trace_65536.raw", &warp)], ""),
        3 => {
            (vec![("trace.txt", WARPS.as_bytes()), ("trace_0.raw", content), ("trace_65536.raw", &warp)], "")
        }
        _ => (vec![("archive.tar", content)], "archive.tar"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file");
    }
    let path = folder.path().join(opened);
    Some((folder, path))
}

/// Reads whatever is there, and runs what can be read.
fn take(path: &Path) -> Result<(), Diagnostic> {
    let known = is_gpu_trace(path);
    let mut program = open(path)?;
    assert!(known, "what is no trace was opened");
    if program.space().footprint() < MARKED {
        assert!(!census(program.as_mut() as &mut dyn Program).kernels.is_empty());
    }
    Ok(())
}

fn run(bytes: &[u8]) {
    let Some((_folder, path)) = written(bytes) else { return };
    if let Err(fault) = take(&path) {
        assert!(!fault.what.is_empty());
        assert!(fault.place.is_some(), "{fault}");
    }
}

fn examples() -> Vec<Vec<u8>> {
    let warp = warp();
    let all: [(u8, &[u8]); 4] =
        [(0, KERNEL.as_bytes()), (1, LIST.as_bytes()), (2, WARPS.as_bytes()), (3, &warp)];
    all.iter().map(|(choice, content)| [&[*choice], *content].concat()).collect()
}

fn reads(bytes: &[u8]) -> bool {
    written(bytes).is_some_and(|(_folder, path)| take(&path).is_ok())
}
