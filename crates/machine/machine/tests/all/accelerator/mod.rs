//! An accelerator as a machine: kernels from their offload to their end, under every scheduler, with all checks.

mod driven;

use machine::run::{self, Plan, run_alone};
use serde_json::Value;

/// 128 MiB of flash on two dies behind four channels, 16 MiB of memory.
const SMALL: &[&str] = &[
    "group_flash.groups.geometry.packages=2",
    "group_flash.groups.geometry.dies=1",
    "group_flash.groups.geometry.blocks=32",
    "group_flash.groups.geometry.pages=32",
    "accelerator.memory.size=16MiB",
    "accelerator.sample=16384",
    "sim.shadow=true",
];
const DOUBLE: &str = "nest:file=tests/accelerator/double.toml";
const ALL: [&str; 4] =
    ["flashabacus", "flashabacus-inter-dy", "flashabacus-inter-st", "flashabacus-intra-io"];

/// A plan with values of its own behind those that all share.
fn with(system: &str, workloads: &[&str], common: &[&str], set: &[&str]) -> Plan {
    let mut plan = Plan::new(system, "");
    plan.workloads = workloads.iter().map(|text| (*text).to_owned()).collect();
    plan.set = common.iter().chain(set).map(|text| (*text).to_owned()).collect();
    plan
}

/// Result of a run, with all its checks.
fn ran(plan: &Plan) -> Value {
    let document = run_alone(plan).unwrap_or_else(|fault| panic!("{}: {fault}", plan.system));
    let failed: Vec<_> = document.checks.iter().filter(|check| !check.ok).collect();
    assert!(document.ok, "{}: {failed:?}", plan.system);
    serde_json::to_value(document).expect("a document has a JSON form")
}

/// Returns the reason why a plan is refused.
fn refused(plan: &Plan) -> String {
    run_alone(plan).expect_err("it is refused").to_string()
}

fn plan(system: &str, workloads: &[&str], set: &[&str]) -> Plan {
    with(system, workloads, SMALL, set)
}

fn document(system: &str, workloads: &[&str], set: &[&str]) -> Value {
    ran(&plan(system, workloads, set))
}

fn figure(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no figure {path}"))
}

fn told(system: &str, workload: &str, set: &[&str]) -> String {
    refused(&plan(system, &[workload], set))
}

/// One worker and one section, with the numbers of the spec: the kernel's table, the lock, Flashvisor's decision, the boot, the map, a group from flash, the
/// computation, caches that are written back, the end, a group to flash. Nothing overlaps.
#[test]
fn a_makespan_is_the_sum_of_its_steps() {
    let found = document("flashabacus", &[DOUBLE], &["accelerator.workers=1", "accelerator.ahead=0"]);
    let one = |path: &str| figure(&found, path);
    assert_eq!((one("/accelerator/0/screens"), one("/accelerator/0/sections")), (1.0, 1.0));
    assert_eq!((one("/accelerator/0/groups_fetched"), one("/accelerator/0/groups_fresh")), (1.0, 1.0));
    assert_eq!(one("/accelerator/0/input_bytes"), 65_536.0);
    // Two lanes of 500 MB/s, packets of 128 B with 24 B around them.
    let table = 65_536.0 / (1e9 * 128.0 / 152.0) * 1e9;
    assert!((one("/accelerator/0/offload_ns") - table).abs() < 1.0);
    let offload = table + 250.0 + 10_000.0;
    // Flashvisor takes the message, decides and sends; the worker takes it, and boots.
    let begins = 100.0 + (500.0 + 100.0) + 100.0 + 10_000.0;
    assert!((one("/accelerator/0/kernels/0/begun_ns") - offload - begins).abs() < 1.0);
    // A message with two entries, and one back.
    let map = 100.0 + 2.0 * 100.0 + 100.0;
    let (read, write) = (one("/group_flash/0/group_read_ns/mean"), one("/group_flash/0/group_write_ns/mean"));
    // 16,384 iterations with a load and a store each, for two units.
    let busy = one("/accelerator/0/workers/0/busy_share") * one("/accelerator/0/makespan_ns");
    assert!((16_384.0..10.0 * 16_384.0).contains(&busy), "{busy}");
    // It begins an iteration a cycle; the last loads, multiplies and stores for 5 + 4 + 1. For the rest of its time the worker stands still: each of 512 lines of 128 B of `a` and of `out` is missed once, and the first level
    // has lines of 64 B, of which the second of each line of `a` is missed there alone.
    let (utilisation, computing) = (one("/accelerator/0/utilisation"), one("/accelerator/0/computing_share"));
    assert!((computing * one("/accelerator/0/makespan_ns") - (16_384.0 + 9.0)).abs() < 1.0);
    let stalled = one("/accelerator/0/stalled_share");
    assert!((computing + stalled - utilisation).abs() < 1e-12, "{computing} + {stalled}, not {utilisation}");
    let misses = stalled * one("/accelerator/0/makespan_ns");
    assert!((misses - (1_024.0 * 85.0 + 512.0 * 8.0)).abs() < 1.0, "{misses}");
    // Two groups have 1,024 lines of 128 B.
    let ends = 1_024.0 * 65.0 + 100.0 + 100.0;
    let expected = offload + begins + map + read + busy + ends + write;
    let makespan = one("/accelerator/0/makespan_ns");
    assert!((makespan - expected).abs() < 3.0, "{makespan}, not {expected}");
    // The group lies on pages 2 of their blocks, behind two of metadata: the fastest type, both planes together. Eight pages of 8 KiB leave four channels of 800 MB/s in pairs,
    // and cross a link of 1.83 GB/s one after another.
    let (sense, pair, page) = (58_000.0, 2.0 * 8_192.0 / 0.8, 8_192.0 / 1.83);
    assert!(read > sense + pair + page && read < sense + pair + 8.0 * page + 2_000.0, "{read}");
    let program = 558_000.0 + 65_536.0 / 1.83;
    assert!(write > program + pair && write < program + pair + 2_000.0, "{write}");
}

/// Four schedulers, two programs, all checks; the same twice.
#[test]
fn every_scheduler_ends_two_programs() {
    let jobs = ["atax:m=512,n=512,instances=3", "gemm:ni=128,nj=128,nk=128,t=64,instances=3"];
    for system in ALL {
        let found = document(system, &jobs, &["accelerator.workers=3"]);
        let kernels = found.pointer("/accelerator/0/kernels").and_then(Value::as_array).expect("kernels");
        let programs: Vec<_> =
            kernels.iter().map(|kernel| kernel["program"].as_str().expect("a name")).collect();
        assert_eq!(programs, ["atax", "atax", "atax", "gemm", "gemm", "gemm"], "{system}");
        assert!(kernels.iter().all(|kernel| kernel["over_ns"].as_f64().is_some()), "{system}");
        // A matrix and a vector, and three matrices, for each instance.
        let input = 3.0 * 4.0 * (512.0 * 512.0 + 512.0 + 3.0 * 128.0 * 128.0);
        assert_eq!(figure(&found, "/accelerator/0/input_bytes"), input, "{system}");
        // ATAX's matrix and vector, A and B once; C for each instance.
        assert_eq!(figure(&found, "/group_flash/0/groups_read"), 16.0 + 1.0 + 2.0 + 3.0, "{system}");
        let checks = found["checks"].to_string();
        assert!(checks.contains("reads bring what was written last"), "{system}: no shadow");
        let greedy = ["flashabacus", "flashabacus-inter-dy"].contains(&system);
        assert_eq!(checks.contains("Graham's bound"), greedy, "{system}");
        let again = document(system, &jobs, &["accelerator.workers=3"]);
        for part in ["accelerator", "group_flash", "simulated_ns", "checks"] {
            assert_eq!(found[part], again[part], "{system}: {part}");
        }
    }
}

/// Reads without events of their pages: fewer events, and nothing else is different, in a run that ends in the middle neither.
#[test]
fn folding_changes_no_result() {
    let jobs = ["gemm:ni=512,nj=512,nk=512,t=64,instances=2", "atax:m=512,n=512,instances=3"];
    for system in ALL {
        for end in [&[][..], &["sim.until=200ms"]] {
            let [folded, each] = ["true", "false"].map(|fold| {
                let fold = format!("sim.fold={fold}");
                let set = [&["sim.shadow=false", &fold], end].concat();
                let document =
                    run_alone(&plan(system, &jobs, &set)).unwrap_or_else(|fault| panic!("{fault}"));
                serde_json::to_value(document).expect("a document has a JSON form")
            });
            let events = [&folded, &each].map(|found| figure(found, "/run/events"));
            assert!(!end.is_empty() || events[0] < events[1], "{system}: {events:?}");
            let parts = each.as_object().expect("an object").keys();
            for part in parts.filter(|part| !["run", "spec", "spec_sha256"].contains(&part.as_str())) {
                assert_eq!(folded[part], each[part], "{system}, {end:?}: {part}");
            }
        }
    }
}

/// A matrix of 16 groups and a vector of one: read once for all instances, or for each of them where each has its own.
#[test]
fn instances_share_what_they_only_read_or_have_their_own() {
    for (inputs, times) in [("shared", 1.0), ("own", 3.0)] {
        let job = format!("atax:m=512,n=512,instances=3,inputs={inputs}");
        let found = document("flashabacus", &[&job], &["accelerator.workers=3"]);
        assert_eq!(figure(&found, "/group_flash/0/groups_read"), times * 17.0, "{inputs}");
        assert_eq!(
            figure(&found, "/accelerator/0/input_bytes"),
            3.0 * 4.0 * (512.0 * 512.0 + 512.0),
            "{inputs}"
        );
    }
}

/// An instance has 19 groups of data: a matrix of 16, and a vector of one each for input, output and what is between. The flash has 64 blocks of 30 groups of data, some of which stay free: room for three instances with
/// input of their own, and not for a hundred. Those share their input and fit.
#[test]
fn instances_have_their_own_input_where_all_of_it_fits() {
    for (instances, read, whose) in
        [(3, 3.0 * 17.0, "each instance has separate input"), (100, 17.0, "share their input")]
    {
        let job = format!("atax:m=512,n=512,instances={instances},inputs=fit");
        let found = document("flashabacus", &[&job], &["accelerator.workers=3"]);
        assert_eq!(figure(&found, "/group_flash/0/groups_read"), read, "{instances}");
        let warnings = found["warnings"].to_string();
        assert!(warnings.contains(whose) && warnings.contains("inputs=fit"), "{warnings}");
    }
}

/// Three bookings on the same balances: each waits for its lock until all that the one before has left is on flash, four groups each time. Entries are read once, balances once for all. Balances of their own wait for nothing.
#[test]
fn instances_that_change_the_same_data_take_turns() {
    for system in ALL {
        let run = |results: &str| {
            let file = "../../../examples/kernels/balances.toml";
            let job = format!("nest:file={file},n=65536,instances=3,results={results}");
            document(system, &[&job], &["accelerator.workers=3"])
        };
        let (own, shared) = (run("own"), run("shared"));
        let at = |found: &Value, kernel: usize, time: &str| {
            figure(found, &format!("/accelerator/0/kernels/{kernel}/{time}_ns"))
        };
        for next in 1..3 {
            let (over, released) = (at(&shared, next - 1, "over"), at(&shared, next, "released"));
            assert!(released > over && at(&shared, next, "begun") > released, "{system}: {released}, {over}");
        }
        // The third waits for the second from its release to its end, and before that for the first.
        let waited = figure(&shared, "/group_flash/0/lock_wait_ns/max");
        assert!(waited > at(&shared, 1, "over") - at(&shared, 1, "released"), "{system}: {waited}");
        assert_eq!(own.pointer("/group_flash/0/lock_wait_ns/max"), Some(&Value::Null), "{system}");
        let groups = |found: &Value, did: &str| figure(found, &format!("/group_flash/0/groups_{did}"));
        assert_eq!((groups(&own, "read"), groups(&own, "written")), (16.0, 12.0), "{system}");
        assert_eq!((groups(&shared, "read"), groups(&shared, "written")), (8.0, 12.0), "{system}");
    }
    let host = run_alone(&with("flashabacus-simd", &["atax:m=64,n=64,results=shared"], &[], &[]));
    assert!(host.expect_err("it is refused").to_string().contains("`results` applies to accelerators only"));
    let both = told("flashabacus", "atax:m=64,n=64,results=shared,inputs=own", &[]);
    assert!(both.contains("cannot have separate input"), "{both}");
}

/// Six instances of one application are on one core with the static scheduler, and on three with the dynamic one.
#[test]
fn static_scheduling_keeps_an_application_on_its_core() {
    let busy = |system: &str| -> Vec<bool> {
        let found = document(system, &["mvt:n=256,t=64,instances=6"], &["accelerator.workers=3"]);
        (0..3).map(|n| figure(&found, &format!("/accelerator/0/workers/{n}/busy_share")) > 0.0).collect()
    };
    assert_eq!(busy("flashabacus-inter-st"), [true, false, false]);
    assert_eq!(busy("flashabacus-inter-dy"), [true, true, true]);
}

/// 32 GB of page groups of 64 KiB have a map of 2 MiB: four bytes each.
#[test]
fn the_map_of_the_prototype_has_four_bytes_a_group() {
    let mut plan = Plan::new("flashabacus", DOUBLE);
    plan.set = vec!["accelerator.sample=16384".to_owned()];
    let found = ran(&plan);
    let groups = 16.0 * 2.0 * 342.0 / 2.0 * 384.0 / 4.0;
    assert_eq!(figure(&found, "/group_flash/0/groups"), groups);
    assert_eq!(figure(&found, "/group_flash/0/map_bytes"), 4.0 * groups);
    assert!((figure(&found, "/group_flash/0/map_bytes") / f64::from(2 << 20) - 1.0).abs() < 0.003);
}

#[test]
fn what_cannot_run_is_told() {
    let much = told("flashabacus", "fdtd:nx=4096,ny=4096", &[]);
    assert!(
        much.contains("page groups") && much.contains("are left") && much.contains("--workload"),
        "{much}"
    );
    let none = told("flashabacus", "bfs1", &[]);
    assert!(none.contains("without a loop nest") && none.contains("gaus, FDT, gram"), "{none}");
    let block = told("flashabacus", "atax:m=64,n=64,block=64", &[]);
    assert!(block.contains("`block` applies to GPUs"), "{block}");
    let warm = {
        let mut plan = plan("flashabacus", &[DOUBLE], &[]);
        plan.warmup = Some(machine::Warmup::Requests(10));
        refused(&plan)
    };
    assert!(warm.contains("no warm-up"), "{warm}");
    let other = refused(&Plan::new("pm9a3", "atax"));
    assert!(other.contains("the system `pm9a3` has no accelerator"), "{other}");
    let odd = told("flashabacus", DOUBLE, &["group_flash.groups.geometry.page=4KiB"]);
    assert!(odd.contains("32768 B") && odd.contains("65536 B"), "{odd}");
    // 8 channels of 2 planes have 64 KiB with pages of 4 KiB, or of one plane with 8 KiB.
    let channels = "group_flash.groups.geometry.channels=8";
    let wide = told("flashabacus", DOUBLE, &[channels]);
    let keys = ["page=4KiB", "planes=1"].map(|key| format!("group_flash.groups.geometry.{key}"));
    assert!(keys.iter().all(|key| wide.contains(key)), "{wide}");
    for key in &keys {
        let found = document("flashabacus", &[DOUBLE], &[channels, key]);
        assert_eq!(figure(&found, "/group_flash/0/groups"), 2_048.0, "{key}");
    }
    let three = told("flashabacus", DOUBLE, &["group_flash.groups.geometry.channels=3"]);
    assert!(three.contains("channels x planes x page"), "{three}");
    let unknown = told("flashabacus", "atax:instance=2", &[]);
    assert!(unknown.contains("instances"), "{unknown}");
}

/// Looking through a plan finds what a run would refuse.
#[test]
fn a_check_places_all_kernels() {
    assert!(run::check(&plan("flashabacus", &["mvt:n=256,t=64"], &[])).is_ok());
    assert!(run::check(&plan("flashabacus", &["fdtd:nx=4096,ny=4096"], &[])).is_err());
}
