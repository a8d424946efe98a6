//! What the tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

use config::Diagnostic;
use sampling::Profile;
use std::io::Write;
use std::path::PathBuf;

/// The recorded profiles, by name; empty where there are none.
pub(crate) fn recorded() -> Vec<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data")),
        PathBuf::from,
    );
    let mut found = Vec::new();
    for folder in ["kernels_csv", "raw/tracelens", "raw/kineto", "raw/hta"] {
        let Ok(entries) = std::fs::read_dir(root.join("gpu_profiles").join(folder)) else { continue };
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort_unstable();
        found.append(&mut files);
    }
    if found.is_empty() {
        println!("skipped: no data");
    }
    found
}

/// A recorded profile whose path ends so.
pub(crate) fn recorded_as(end: &str) -> Option<PathBuf> {
    recorded().into_iter().find(|path| path.ends_with(end))
}

pub(crate) fn read(text: impl AsRef<[u8]>) -> Result<Profile, Diagnostic> {
    Profile::from_reader("test", text.as_ref())
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

pub(crate) const KERNEL_CSV: &str = "id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name
0,0.000,3.136,0,7,564x1x1,128x1x1,32,0,27,\"void f<float, 2>(int)\"
1,40.864,1.5,0,7,2x3x4,128x1x1,32,0,27,gemm
2,50.0,0,0,7,,,,,,from_a_graph
3,60.0,3.2,0,7,564x1x1,128x1x1,32,0,27,\"void f<float, 2>(int)\"
";

/// As PyTorch writes it, new and old, with events other than kernels and keys in a different order.
pub(crate) const CHROME: &str = r#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "V100"}],
"traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 9, "args": {"grid": "no", "Input Dims": [[2, 3], []]}},
  {"ph": "X", "cat": "kernel", "name": "void f<float, 2>(int)", "pid": 0, "tid": 7, "ts": 100.0, "dur": 3.136,
   "args": {"stream": 7, "grid": [564, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 75}},
  {"args": {"block": [128, 1, 1], "grid": [564, 1, 1]}, "dur": 3.2, "ts": 160.0, "name": "void f<float, 2>(int)",
   "cat": "Kernel", "ph": "X"},
  {"ph": "X", "cat": "Kernel", "name": "gemm", "tid": "stream 7", "ts": 140, "dur": 1.5,
   "args": {"grid": [2, 3, 4], "block": [128, 1, 1]}},
  {"ph": "s", "cat": "kernel", "name": "flow", "ts": 3}, {"name": "process_name", "ph": "M", "args": {"name": "python"}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 5, "dur": 8, "args": {}}, 7, null, [1], "text",
  {"ph": "X", "cat": "kernel", "name": "from_a_graph", "ts": 150, "dur": 0, "args": {"stream": 7}}
], "traceName": "x.json"}"#;

pub(crate) const NSYS: &str = "
NOTICE: Existing SQLite export found: x.sqlite
Processing [x.sqlite] with [cuda_gpu_trace.py]...
Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1134711990,661398,123,,,,,,,,,,4.194,6337.593,Pinned,Device,NVIDIA RTX 5000 (0),1,,13,[CUDA memcpy Host-to-Device]
100000,3136,1,564,1,1,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000 (0),1,,13,\"void f<float, 2>(int)\"
140000,1500,2,2,3,4,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000 (0),1,,13,gemm
150000,0,3,,,,,,,,,,,,,,NVIDIA RTX 5000 (0),1,,13,from_a_graph
160000,3200,4,564,1,1,128,1,1,16,0.000,0.000,,,,,NVIDIA RTX 5000 (0),1,,13,\"void f<float, 2>(int)\"
170000,50,5,,,,,,,,,,0.1,1.0,,,NVIDIA RTX 5000 (0),1,,13,[CUDA memset]
";

pub(crate) const NSYS_KERNELS: &str = "API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),PID,TID,DevId,API Function,GridXYZ,BlockXYZ,Kernel Name
5,9,14,2,100000,3136,31,1,1,0,cudaLaunchKernel, 564    1    1, 128    1    1,\"void f<float, 2>(int)\"
6,9,14,2,140000,1500,31,1,1,0,cudaLaunchKernel,   2    3    4, 128    1    1,gemm
7,9,14,2,150000,0,31,1,1,0,cudaGraphLaunch,,,from_a_graph
8,9,14,2,160000,3200,31,1,1,0,cudaLaunchKernel, 564    1    1, 128    1    1,\"void f<float, 2>(int)\"
";

pub(crate) const NCU: &str = r#"==PROF== Connected to process 20798 (/usr/bin/python3)
the program says, "hello"
==PROF== Profiling "f" - 0: 0%....50%....100% - 1 pass
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","20798","python3","127.0.0.1","void f<float, 2>(int)","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","GPU Speed Of Light Throughput","SM Frequency","cycle/nsecond","1.10"
"0","20798","python3","127.0.0.1","void f<float, 2>(int)","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","nsecond","3,136"
"1","20798","python3","127.0.0.1","gemm","1","7","(128, 1, 1)","(2, 3, 4)","0","8.0","Command line profiler metrics","gpu__time_duration.sum","usecond","1.50"
"2","20798","python3","127.0.0.1","from_a_graph","1","7","","","0","8.0","Command line profiler metrics","gpu__time_duration.sum","ns","0"
"2","20798","python3","127.0.0.1","from_a_graph","1","7","","","0","8.0","Launch Statistics","Registers Per Thread","register/thread","18"
"3","20798","python3","127.0.0.1","void f<float, 2>(int)","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","GPU Speed Of Light Throughput","Duration","us","3.20"
==PROF== Disconnected from process 20798
"#;

pub(crate) const NCU_RAW: &str = r#"==PROF== Connected to process 20798 (/usr/bin/python3)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","gpu__time_duration.sum","launch__registers_per_thread"
"","","","","","","","","","","","usecond","register/thread"
"0","1","python3","127.0.0.1","void f<float, 2>(int)","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","3.136","16"
"1","1","python3","127.0.0.1","gemm","1","7","(128, 1, 1)","(2, 3, 4)","0","8.0","1.50","16"
"2","1","python3","127.0.0.1","from_a_graph","1","7","","","0","8.0","0","16"
"3","1","python3","127.0.0.1","void f<float, 2>(int)","1","7","(128, 1, 1)","(564, 1, 1)","0","8.0","3.20","16"
"#;
