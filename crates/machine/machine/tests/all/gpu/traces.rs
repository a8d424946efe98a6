//! Recorded traces of real GPUs run on every kind of memory.

use crate::gpu::{PLATFORMS, data, figure, lasting, run};

/// Each trace, with the warp instructions and kernels that its description counts.
const TRACES: [(&str, f64, usize); 3] = [
    ("gpu_traces/accelsim_traceg/kernelslist.g", 26_601.0, 1),
    ("gpu_traces/macsim_nvbit_vectormultadd_4096.tar.xz", 5_376.0, 3),
    ("gpu_traces/macsim_nvbit_vectormultadd_16384.tar.xz", 21_504.0, 3),
];

#[test]
fn recorded_traces_run_whole() {
    for (path, instructions, kernels) in TRACES {
        let Some(file) = data(path) else { return };
        for system in PLATFORMS {
            let document = lasting(&run(system, &[&file.display().to_string()], &[]));
            assert_eq!(figure(&document, "/gpu/0/warp_instructions"), instructions, "{system}, {path}");
            let launched = document["gpu"][0]["applications"][0]["kernels"].as_array().map_or(0, Vec::len);
            assert_eq!(launched, kernels, "{system}, {path}");
        }
    }
}
