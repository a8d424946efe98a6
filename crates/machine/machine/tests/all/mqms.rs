//! A GPU inside a drive: what turns it back into what it is compared with, and who else uses the drive.

use machine::run::{Plan, run_alone};
use serde_json::Value;

const OFF: [&str; 3] =
    ["flash.ftl.allocation=striped", "flash.ftl.map_unit=16KiB", "memory.initiator.entrance=host"];

fn run(system: &str, set: &[&str], workloads: &[&str]) -> Value {
    let mut plan = Plan::new(system, "");
    plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
    plan.set = set.iter().map(|text| (*text).to_owned()).collect();
    let document = run_alone(&plan).expect("it runs");
    assert!(document.ok, "{:?}", document.checks);
    serde_json::to_value(document).expect("a document has a JSON form")
}

/// What a run found, without what it was asked and what it cost.
fn found(mut document: Value) -> Value {
    let all = document.as_object_mut().expect("a document is an object");
    for apart in ["system", "spec", "spec_sha256", "run"] {
        all.remove(apart);
    }
    document
}

/// Bit for bit: every figure of the document. One switch turned back alone leaves a difference, so that the comparison can fail.
#[test]
fn with_every_switch_off_mqms_is_the_baseline() {
    // More than caches hold, so that it writes to flash.
    let workload = ["back:n=16384"];
    let baseline = found(run("mqsim-macsim", &[], &workload));
    assert_eq!(found(run("mqms", &OFF, &workload)), baseline);
    for left_on in OFF {
        let off: Vec<&str> = OFF.into_iter().filter(|set| *set != left_on).collect();
        assert_ne!(found(run("mqms", &off, &workload)), baseline, "{left_on}");
    }
}

/// The host keeps its queues: both are flows of the same drive, and each waits for the other.
#[test]
fn host_and_gpu_share_the_drive() {
    const HOST: &str = "fio:name=host,rw=randread,bs=4k,iodepth=64,number_ios=20000";
    const GPU: &str = "back:n=4096";
    let together = run("mqms", &[], &[GPU, HOST]);
    let flows = together["io"]["flows"].as_array().expect("a list");
    let names: Vec<&str> = flows.iter().filter_map(|flow| flow["name"].as_str()).collect();
    assert_eq!(names, ["host", "gpu:back"]);
    let requests = |document: &Value, flow: usize| document["io"]["flows"][flow]["all"]["requests"].as_u64();
    assert_eq!(requests(&together, 0), Some(20_000));
    let all = together["io"]["all"]["requests"].as_u64();
    assert_eq!(all, requests(&together, 0).zip(requests(&together, 1)).map(|(a, b)| a + b));
    let mean = |document: &Value, flow: usize| {
        document["io"]["flows"][flow]["read"]["latency_ns"]["mean"].as_f64().expect("it reads")
    };
    let (gpu, host) = (run("mqms", &[], &[GPU]), run("mqms", &[], &[HOST]));
    assert!(mean(&together, 1) > mean(&gpu, 0), "the GPU waits for the host's reads");
    assert!(mean(&together, 0) > mean(&host, 0), "the host waits for the GPU's");
}
