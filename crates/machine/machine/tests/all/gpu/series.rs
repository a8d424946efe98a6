//! Instructions over time: all of them, and nothing else changes.

use crate::gpu::{PLATFORMS, lasting, run};
use serde_json::Value;

#[test]
fn a_series_holds_every_instruction_and_changes_nothing() {
    for system in PLATFORMS {
        let workloads: &[&str] = &["bfs1:scale=9", "gaus:n=64"];
        let without = lasting(&run(system, workloads, &[]));
        assert!(without["gpu"][0].get("series").is_none(), "{system}: not asked for");
        for width in ["100ns", "10us"] {
            let mut with = lasting(&run(system, workloads, &[&format!("sim.series={width}")]));
            let gpu = with["gpu"][0].as_object_mut().expect("a GPU");
            let series = gpu.remove("series").expect("asked for");
            for app in 0..workloads.len() {
                let issued = |window: &Value| window["warp_instructions"][app].as_u64().unwrap_or_default();
                let sum: u64 = series.as_array().into_iter().flatten().map(issued).sum();
                let all = &with["gpu"][0]["applications"][app]["warp_instructions"];
                assert_eq!(Some(sum), all.as_u64(), "{system}: application {app} in windows of {width}");
            }
            for part in ["simulated_ns", "gpu", "flash", "breakdown_ns", "checks"] {
                assert_eq!(with[part], without[part], "{system}, {width}: {part}");
            }
        }
    }
}

/// An interval of no length, one without instructions to record, and a share for a program that is not there.
#[test]
fn what_cannot_be_recorded_or_filled_is_refused() {
    let refused = |system: &str, set: &str, workload: &str| {
        let plan = machine::run::Plan::new(system, workload).set(set);
        machine::run::run_alone(&plan).err().map(|why| why.to_string()).unwrap_or_default()
    };
    let fio = "fio:rw=randread,bs=4k,iodepth=1,number_ios=1";
    assert!(refused("ideal", "sim.series=0ns", "gaus:n=64").contains("no length"));
    assert!(refused("d16", "sim.series=1us", fio).contains("without a GPU"));
    let shares = "memory.direct.mapping.log_filled=[\"0%\", \"50%\"]";
    assert!(refused("zng", shares, "gaus:n=64").contains("2 shares for 1 programs"));
    assert!(refused("zng", "memory.direct.mapping.log_filled=[\"101%\"]", "gaus:n=64").contains("101%"));
    assert!(refused("zng", "memory.direct.mapping.log_filled=[]", "gaus:n=64").contains("no share"));
}
