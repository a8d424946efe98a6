//! The same kernels on a coprocessor behind a host.

use super::{DOUBLE, figure, ran, refused, with};
use machine::result::human;
use machine::run::{self, Plan, run_alone};
use serde_json::Value;

/// 16 MiB of memory.
const SMALL: &[&str] = &["coprocessor.memory.size=16MiB", "coprocessor.sample=16384"];
const SYSTEM: &str = "flashabacus-simd";

fn plan(workloads: &[&str], set: &[&str]) -> Plan {
    with(SYSTEM, workloads, SMALL, set)
}

fn document(workloads: &[&str], set: &[&str]) -> Value {
    ran(&plan(workloads, set))
}

fn told(workload: &str, set: &[&str]) -> String {
    refused(&plan(&[workload], set))
}

/// A page group comes and one goes: each is read or written by the host, brought into order at 2 GB/s, copied at 5 GB/s, and crosses the link at 814 and 875 MB/s. Eight cores have 2,048 elements each,
/// of the same two groups: 1,024 lines of 128 B may have to be written back.
#[test]
fn a_kernel_is_the_sum_of_its_phases() {
    let found = document(&[DOUBLE], &[]);
    let one = |path: &str| figure(&found, &format!("/coprocessor/0/{path}"));
    let bytes = 65_536.0;
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1.0, "{found}, not {expected}");
    near(one("sends/time_ns"), bytes / 0.814 + 2.0 * 250.0);
    near(one("receives/time_ns"), bytes / 0.875 + 2.0 * 250.0);
    let phase = |name: &str| one(&format!("kernels/0/phases/{name}/core_ns"));
    near(phase("marshal"), 2.0 * bytes / 2.0);
    near(phase("copy"), 2.0 * bytes / 5.0);
    let busy: Vec<f64> = (0..8).map(|n| one(&format!("cores/{n}/busy_share")) * one("makespan_ns")).collect();
    // A load and a store each iteration, for two units.
    assert!(busy.iter().all(|busy| (2_048.0..16.0 * 2_048.0).contains(busy)), "{busy:?}");
    let longest = busy.iter().copied().fold(0.0, f64::max);
    near(one("steps/time_ns"), 20_000.0 + 10_400.0 + 7.0 * 2_443.0 + longest + 1_024.0 * 65.0 + 250.0);
    assert_eq!((one("steps/count"), one("sends/bytes"), one("receives/bytes")), (1.0, bytes, bytes));
    let phases = found.pointer("/coprocessor/0/kernels/0/phases").and_then(Value::as_object).expect("phases");
    let sum: f64 = phases.values().map(|phase| phase["time_ns"].as_f64().expect("a time")).sum();
    let kernel = one("kernels/0/over_ns") - one("kernels/0/begun_ns");
    near(sum, kernel);
    near(one("kernels/0/storage_ns") + one("kernels/0/cpu_ns") + one("kernels/0/accelerator_ns"), kernel);
    near(one("makespan_ns"), one("kernels/0/over_ns"));
    // The drive has read the group, and has been given it: read-ahead may bring no more than the file.
    assert!(figure(&found, "/flash/0/reads/host") >= 4.0);
}

/// Only the host sends requests to the drive: the speed of the run is counted in calls.
#[test]
fn the_speed_of_a_host_is_in_system_calls() {
    let page = human(&run_alone(&plan(&[DOUBLE], &[])).expect("it runs"));
    assert!(page.contains(" system calls/s, ") && !page.contains("requests/s"), "{page}");
}

/// Instances follow one another in the order of the command line; the same twice.
#[test]
fn kernels_are_executed_one_after_another() {
    let jobs = [
        "atax:m=512,n=512,instances=2",
        "gemm:ni=128,nj=128,nk=128,t=64,instances=2",
        "bfs:nodes=20000,degree=4",
    ];
    let found = document(&jobs, &[]);
    let kernels = found.pointer("/coprocessor/0/kernels").and_then(Value::as_array).expect("kernels");
    let programs: Vec<_> = kernels.iter().map(|kernel| kernel["program"].as_str().expect("a name")).collect();
    assert_eq!(programs, ["atax", "atax", "gemm", "gemm", "bfs"]);
    let mut last = 0.0;
    for kernel in kernels {
        let [begun, over] = ["begun_ns", "over_ns"].map(|time| kernel[time].as_f64().expect("a time"));
        assert!(begun >= last && over > begun);
        last = over;
    }
    // A matrix and a vector; three matrices. The matrix of ATAX and its vectors are sent for each instance, its scratch never.
    let sent: Vec<f64> = kernels.iter().map(|kernel| kernel["sent_bytes"].as_f64().expect("bytes")).collect();
    let (atax, gemm) = (4.0 * (512.0 * 512.0 + 512.0), 4.0 * 3.0 * 128.0 * 128.0);
    assert_eq!(sent[..4], [atax, atax, gemm, gemm]);
    let received: Vec<f64> =
        kernels.iter().map(|kernel| kernel["received_bytes"].as_f64().expect("bytes")).collect();
    assert_eq!(received[..4], [4.0 * 512.0, 4.0 * 512.0, gemm / 3.0, gemm / 3.0]);
    let checks = found["checks"].to_string();
    for name in ["what its plans say", "crosses the link", "shares of steps", "its longest core"] {
        assert!(checks.contains(name), "no check `{name}`");
    }
    let again = document(&jobs, &[]);
    for part in ["coprocessor", "host", "flash", "simulated_ns", "checks"] {
        assert_eq!(found[part], again[part], "{part}");
    }
}

/// Four passes over a hundred groups, all of which change. Memory for 64 has a section of 64 in it and then one of 36, which takes the place of as many: the next pass finds 28 of its first 64, and
/// none of the others.
#[test]
fn what_memory_has_no_room_for_comes_and_goes_again() {
    let job = ["nest:file=tests/keys/passes.toml"];
    let bytes = |size: &str| {
        let found = document(&job, &[&format!("coprocessor.memory.size={size}")]);
        ["sends", "receives"].map(|way| figure(&found, &format!("/coprocessor/0/{way}/bytes")) / 65_536.0)
    };
    assert_eq!(bytes("16MiB"), [100.0, 100.0]);
    assert_eq!(bytes("4MiB"), [100.0 + 3.0 * (36.0 + 36.0); 2]);
}

/// Four passes again, over memory for 64 groups. With two buffers a section has 32 of them, and a second thread moves the next one's meanwhile: the kernel is as long as the first thread's phases and
/// its waiting, shorter than with one buffer, and never shorter than all that is moved or all that is worked.
#[test]
fn with_two_buffers_data_move_beside_steps() {
    let of = |buffers: u32| {
        let set = ["coprocessor.memory.size=4MiB".to_owned(), format!("coprocessor.buffers={buffers}")];
        document(&["nest:file=tests/keys/passes.toml"], &[&set[0], &set[1]])
    };
    let [one, two] = [of(1), of(2)];
    let kernel = |found: &Value, path: &str| figure(found, &format!("/coprocessor/0/kernels/0/{path}"));
    let lasts = |found: &Value| kernel(found, "over_ns") - kernel(found, "begun_ns");
    let phases = |found: &Value, names: &[&str]| -> f64 {
        names.iter().map(|name| kernel(found, &format!("phases/{name}/time_ns"))).sum()
    };
    let (first, second) =
        (["files", "work", "sync"], ["read", "marshal", "copy", "send", "receive", "write"]);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1.0, "{found}, not {expected}");
    near(phases(&one, &first) + phases(&one, &second), lasts(&one));
    near(phases(&two, &first) + kernel(&two, "waited_ns"), lasts(&two));
    let moves = phases(&two, &second);
    assert!(lasts(&two) >= moves + phases(&two, &["files", "sync"]), "{moves} of {}", lasts(&two));
    assert!(lasts(&two) < lasts(&one), "{} and {}", lasts(&two), lasts(&one));
    assert!(one.pointer("/coprocessor/0/kernels/0/waited_ns").is_none());
}

/// The page cache has what instances share when the second asks for it, and nothing of what is its own: each reads its matrix and vector from the drive.
#[test]
fn instances_share_files_or_have_their_own() {
    let bytes = |inputs: &str| {
        let found = document(&[&format!("atax:m=512,n=512,instances=3,inputs={inputs}")], &[]);
        let sent = figure(&found, "/coprocessor/0/sends/bytes");
        assert_eq!(sent, 3.0 * 4.0 * (512.0 * 512.0 + 512.0), "{inputs}");
        let block = |figure_of: &str| figure(&found, &format!("/host/0/drives/0/block/{figure_of}"));
        block("requests/0") * block("read_bytes_mean") / (sent / 3.0)
    };
    let (shared, own) = (bytes("shared"), bytes("own"));
    // The file system reads a few more blocks.
    assert!(
        (1.0..1.1).contains(&shared) && (3.0..3.1).contains(&own),
        "{shared} and {own} of an instance's input"
    );
}

/// A drive has room for a matrix of each: files are those of `own`.
#[test]
fn files_are_each_instances_own_where_the_drive_has_room() {
    let sent = |inputs: &str| {
        let found = document(&[&format!("atax:m=512,n=512,instances=3,inputs={inputs}")], &[]);
        let block = |figure_of: &str| figure(&found, &format!("/host/0/drives/0/block/{figure_of}"));
        (block("requests/0") * block("read_bytes_mean"), found["warnings"].to_string())
    };
    let ((own, none), (fit, told)) = (sent("own"), sent("fit"));
    assert_eq!(own, fit);
    assert!(!none.contains("inputs") && told.contains("each instance has separate input"), "{told}");
}

/// Cores issue as long with a sum in a register as units need for it: with it in memory they wait for it. Stalls of caches stay what they are.
#[test]
fn computing_and_stalled_are_the_utilisation() {
    let found = document(&["gemm:ni=128,nj=128,nk=128,t=64"], &[]);
    let of = |name: &str| figure(&found, &format!("/coprocessor/0/{name}"));
    let (computing, stalled) = (of("computing_share"), of("stalled_share"));
    assert!((computing + stalled - of("utilisation")).abs() < 1e-12 && computing > stalled && stalled > 0.0);
}

/// Two threads have an instance each: they overlap, and are over sooner than one after the other, although steps follow one another. Each has half of memory, and none is left of too little.
#[test]
fn threads_move_data_beside_each_others_steps() {
    let job = ["atax:m=512,n=512,instances=2,inputs=own"];
    let (one, two) = (document(&job, &[]), document(&job, &["coprocessor.offload.threads=2"]));
    let of = |found: &Value, path: &str| figure(found, &format!("/coprocessor/0/{path}"));
    let over = |found: &Value, at: usize| of(found, &format!("kernels/{at}/over_ns"));
    assert!(of(&one, "kernels/1/begun_ns") >= over(&one, 0));
    assert!(of(&two, "kernels/1/begun_ns") < over(&two, 0));
    assert!(of(&two, "makespan_ns") < of(&one, "makespan_ns"));
    assert_eq!(of(&two, "makespan_ns"), over(&two, 0).max(over(&two, 1)));
    // Steps are as long, and never two at once.
    let executing = |found: &Value| of(found, "executing_share") * of(found, "makespan_ns");
    assert!((executing(&one) - executing(&two)).abs() < 1.0 && executing(&two) < of(&two, "makespan_ns"));
    let small = ["coprocessor.memory.size=128KiB", "coprocessor.offload.threads=4"];
    assert!(told("atax:m=512,n=512", &small).contains("memory.size"));
}

/// A program of the host goes on beside kernels.
#[test]
fn other_programs_run_beside_kernels() {
    let found = document(&["atax:m=512,n=512", "ungzip:processes=1"], &["sim.until=200ms"]);
    let programs = found.pointer("/host/0/programs").and_then(Value::as_array).expect("programs");
    assert_eq!(programs.len(), 2);
    assert!(figure(&found, "/coprocessor/0/kernels/0/over_ns") < 200e6);
}

#[test]
fn what_cannot_run_is_told() {
    let large = told("mvt:n=512,t=64", &["coprocessor.memory.size=64KiB"]);
    assert!(large.contains("memory has room for 1") && large.contains("--workload"), "{large}");
    let none = told("mvt:n=512,t=64", &["coprocessor.memory.size=60KiB"]);
    assert!(none.contains("coprocessor.memory.size") && none.contains("at least one"), "{none}");
    let halves = told("mvt:n=512,t=64", &["coprocessor.memory.size=64KiB", "coprocessor.buffers=2"]);
    assert!(halves.contains("at least one per buffer"), "{halves}");
    let mut warm = plan(&[DOUBLE], &[]);
    warm.warmup = Some(machine::Warmup::Requests(10));
    let warm = refused(&warm);
    assert!(warm.contains("no warm-up"), "{warm}");
    let drive = told("flash=mvt", &[]);
    assert!(drive.contains("is a kernel of an accelerator, and `flash` cannot run it"), "{drive}");
    assert!(drive.contains("coprocessor"), "{drive}");
    assert!(run::check(&plan(&["coprocessor=mvt:n=256,t=64"], &[])).is_ok());
    let small = ["coprocessor.memory.size=64KiB"];
    assert!(run::check(&plan(&["mvt:n=512,t=64"], &small)).is_err());
}
