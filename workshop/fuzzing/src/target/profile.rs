//! Profiles of GPU kernels, and the plans drawn from them.

use super::{Target, texts};
use sampling::{Bound, Plan, Profile, Rule, Selection};

pub(super) const TARGET: Target = Target {
    name: "profile",
    about: "profiles of GPU kernels: kernel CSV, PyTorch, Nsight Systems and Nsight Compute",
    run,
    examples,
    reads,
    cases: 20_000,
};

const KERNEL_CSV: &str = "id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name
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

/// What is read can be sampled, every kernel lies in one group, and the selection reads back.
fn run(bytes: &[u8]) {
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

fn examples() -> Vec<Vec<u8>> {
    texts(&[KERNEL_CSV, CHROME, NSYS, NCU])
}

fn reads(bytes: &[u8]) -> bool {
    Profile::from_reader("example", bytes).is_ok()
}
