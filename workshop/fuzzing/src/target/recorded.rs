//! Recorded programs and profiles. Instruction traces of GPUs: the first byte says what the others are: a kernel of
//! Accel-Sim, its list of kernels, a list or a warp of MacSim; the files around it are valid. Programs of servers,
//! and the jobs cut from them. Profiles of GPU kernels, and the plans drawn from them.

use super::{Target, texts};
use config::Diagnostic;
use programs::cpu_trace::{self, Options, is_cpu_trace};
use programs::program::{Program, census};
use programs::simt_trace::{is_gpu_trace, open};
use sampling::{Bound, Plan, Profile, Rule, Selection};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(super) const GPU_TRACE: Target = Target {
    name: "gpu_trace",
    about: "instruction traces of Accel-Sim and MacSim",
    run,
    examples,
    reads,
    cases: 700,
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
/// Bytes of a damaged trace's memory that a census may mark.
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

/// Files of a trace, and the path to open.
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

/// Reads the files, and runs what can be read.
fn take(path: &Path) -> Result<(), Diagnostic> {
    let known = is_gpu_trace(path);
    let mut program = open(path)?;
    assert!(known, "opened, but not recognised as a trace");
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

pub(super) const RECORDING: Target = Target {
    name: "recording",
    about: "recorded programs: captures, lackey, memtrace, ChampSim, lists of addresses",
    run: run_recording,
    examples: recording_examples,
    reads: reads_recording,
    cases: 700,
};

const LACKEY: &str = "==77== Lackey, an example Valgrind tool
==77==
I  00401000,3
I  00401003,5
 L 1ffe000668,8
I  00401008,2
 S 1ffe00107c,8
I  00401030,4
 L 1ffe000000,16
I  0040103c,4
 M 00601000,4
--77-- a word of Valgrind's
==77== Exit code:       0
";

const ADDRESSES: &str = "l 0x10 1\ns 0x20 2\nl 0x1000 7\n";

const MEMTRACE: &str = "readi 0x10 4\nreadd 0x20 8\nreadi 0x14 4\nwrite 0x28 8\n";

/// Three records of ChampSim: an instruction, a load, a taken branch.
fn champsim() -> Vec<u8> {
    let mut bytes = vec![0_u8; 192];
    for n in 0..3 {
        bytes[n * 64..][..8].copy_from_slice(&(0x40_0000 + 4 * n as u64).to_le_bytes());
    }
    bytes[64 + 32..][..8].copy_from_slice(&0x7fff_0010_u64.to_le_bytes());
    (bytes[128 + 8], bytes[128 + 9]) = (1, 1);
    bytes
}

/// Reads the bytes as a file; runs two jobs if it is accepted, whose operations must stay inside its memory.
fn take_recording(bytes: &[u8]) -> Result<(), Diagnostic> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).expect("a file");
    let known = is_cpu_trace(&path);
    let options = Options::read("job=40", "job=40").expect("an option");
    let mut service = cpu_trace::open(&path, &options)?;
    assert!(known, "opened, but not recognised as a recording");
    let (footprint, text) = (service.footprint(), service.text());
    for job in 0..2 {
        service.start(0, job);
        loop {
            let mut tape = Vec::new();
            let more = service.step(0, &mut tape);
            assert!(!more || !tape.is_empty(), "a step without an operation");
            assert!(tape.iter().all(|op| op.address < footprint.max(1) && op.pc < text.max(1)));
            if !more {
                break;
            }
        }
    }
    Ok(())
}

fn run_recording(bytes: &[u8]) {
    if let Err(fault) = take_recording(bytes) {
        assert!(!fault.what.is_empty());
        assert!(fault.place.is_some(), "{fault}");
    }
}

fn recording_examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[LACKEY, ADDRESSES, MEMTRACE]);
    all.push(champsim());
    all
}

fn reads_recording(bytes: &[u8]) -> bool {
    take_recording(bytes).is_ok()
}

pub(super) const PROFILE: Target = Target {
    name: "profile",
    about: "profiles of GPU kernels: kernel CSV, PyTorch, Nsight Systems and Nsight Compute",
    run: run_profile,
    examples: profile_examples,
    reads: reads_profile,
    cases: 7_000,
};

const KERNELS_CSV: &str = "id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name
0,0.000,3.136,0,7,564x1x1,128x1x1,32,0,27,\"void f<float, 2>(int)\"
1,40.864,1.5,0,7,2x3x4,128x1x1,32,0,27,gemm
2,50.0,0,0,7,,,,,,from_a_graph
3,60.0,3.2,0,7,564x1x1,128x1x1,32,0,27,\"void f<float, 2>(int)\"
";

const CHROME: &str = r#"{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "kernel", "name": "f", "pid": 0, "tid": 7, "ts": 100.0, "dur": 3.136,
   "args": {"stream": 7, "grid": [564, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 75}},
  {"args": {"block": [128, 1, 1], "grid": [564, 1, 1]}, "dur": 3.2, "ts": 160.0, "name": "f", "cat": "Kernel", "ph": "X"},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 5, "dur": 8, "args": {}}, 7, null, [1], "text"
], "traceName": "x.json"}"#;

const NSYS: &str = "
NOTICE: Existing SQLite export found: x.sqlite
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1134711990,661398,123,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA RTX 5000 (0),1,,13,[CUDA memcpy Host-to-Device]
100000,3136,1,564,1,1,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000 (0),1,,13,\"void f<float, 2>(int)\"
160000,3200,4,564,1,1,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000 (0),1,,13,gemm
";

const NCU: &str = r#"==PROF== Connected to process 20798 (/usr/bin/python3)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","20798","python3","127.0.0.1","f","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","nsecond","3,136"
"1","20798","python3","127.0.0.1","gemm","1","7","(128, 1, 1)","(2, 3, 4)","0","8.0","Command line profiler metrics","gpu__time_duration.sum","usecond","1.50"
"#;

/// Checks that an accepted profile can be sampled, every kernel belongs to one group, and the selection reads back.
fn run_profile(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = Selection::from_toml("input", &text);
    let Ok(profile) = Profile::from_reader("input", bytes) else { return };
    assert!(!profile.is_empty() && profile.total_ns().is_finite());
    let bound = Bound::new(0.05, 0.95).expect("a bound");
    for rule in Rule::ALL {
        let plan = Plan::new(&profile, bound, rule).expect("a plan");
        let grouped: usize = plan.groups().iter().map(|group| plan.kernels_of(group).len()).sum();
        assert_eq!(grouped, profile.len());
        let sample = plan.draw(1);
        let prediction = sample.predict(&plan, |kernel| profile.durations_ns()[kernel as usize]);
        assert!(prediction.total_ns().is_finite() && prediction.half_width_ns().is_finite());
        let selection = Selection::new(&plan, &sample, "p", 1);
        assert_eq!(Selection::from_toml("t", &selection.to_toml()).expect("it reads back"), selection);
    }
}

fn profile_examples() -> Vec<Vec<u8>> {
    texts(&[KERNELS_CSV, CHROME, NSYS, NCU])
}

fn reads_profile(bytes: &[u8]) -> bool {
    Profile::from_reader("example", bytes).is_ok()
}
