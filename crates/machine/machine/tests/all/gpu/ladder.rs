//! Rungs of single instructions and single requests: their time follows from the spec, to the picosecond.

use super::script::{Warp, kernel, run};
use crate::gpu::figure;
use engine::Time;

/// A cycle of every clock on the GPU side: ZnG's Table I, 1.2 GHz, in whole picoseconds.
const CYCLE: Time = Time::period(1_200_000_000);

fn cycles(document: &serde_json::Value) -> f64 {
    figure(document, "/gpu/0/cycles")
}

#[test]
fn a_lone_multiprocessor_issues_an_instruction_a_cycle() {
    const EACH: u32 = 2_000;
    for warps in [1, 4, 32] {
        let arithmetic = kernel(1, warps, |_, _, warp| (0..EACH).for_each(|_| warp.alu()));
        let document = run("ideal", 0, &[arithmetic], &["gpu.sms=1"]);
        // The first is issued in cycle 0.
        let all = f64::from(EACH * warps);
        assert!(
            (cycles(&document) - (all - 1.0)).abs() < 1e-6,
            "{warps} warps: {} cycles",
            cycles(&document)
        );
        assert!((figure(&document, "/gpu/0/ipc") - all / (all - 1.0)).abs() < 1e-9);
    }
}

#[test]
fn a_chain_of_arithmetic_takes_its_latency_a_link() {
    let chain = |links: u32| kernel(1, 1, |_, _, warp| (0..links).for_each(|_| warp.add(1, 1)));
    for latency in [4_u32, 25] {
        let set = format!("gpu.alu.latency={latency}");
        let run = |links| cycles(&run("ideal", 0, &[chain(links)], &[&set]));
        assert!((run(300) - run(100) - 200.0 * f64::from(latency)).abs() < 1e-6, "{latency}");
    }
}

/// The address of each load is the value of the one before, and all are of one line.
#[test]
fn a_chain_of_first_level_hits_takes_its_latency_a_link() {
    let chain = |links: u32| kernel(1, 1, |_, _, warp| (0..links).for_each(|_| warp.load(1, 1, 4, 0)));
    for latency in [1_u32, 18, 28] {
        let set = format!("gpu.l1.latency={latency}");
        let run = |links| run("ideal", 4096, &[chain(links)], &[&set]);
        let (short, long) = (run(101), run(301));
        assert!((cycles(&long) - cycles(&short) - 200.0 * f64::from(latency)).abs() < 1e-6, "{latency}");
        assert!((figure(&long, "/gpu/0/l1_hit_share") - 300.0 / 301.0).abs() < 1e-12);
        let hit = CYCLE.times(latency.into()).as_ns_f64();
        assert!((figure(&long, "/gpu/0/read_latency_ns/min") - hit).abs() < 1e-9, "{latency}");
    }
}

/// A load of a line that nobody has, on a machine where nothing else happens.
fn lone_load(_block: u32, _number: u32, warp: &mut Warp) {
    warp.load(1, 2, 4, 0);
}

/// ZnG, Table I: what a line costs on its way from the array to the register, in a page.
#[test]
fn a_lone_read_of_zng_costs_the_sum_of_its_way() {
    let document = run("zng", 4096, &[kernel(1, 1, lone_load)], &[]);
    let cycles = |n: u64| CYCLE.times(n);
    // A packet of `bytes` crosses in 8 cycles, and takes a cycle for every 32 bytes, 8 of them its header.
    let packet = |bytes: u64| cycles(8 + (bytes + 8).div_ceil(32));
    // 8 bytes, 800 million times a second, on each link of the flash network; a router passes a head on in 2.5 ns. The
    // controller of a package stands at the package's own router.
    let mesh = |bytes: u64| Time::from_ps(2_500) + Time::transfer(bytes, 8 * 800_000_000);
    let stages = [
        // Until the TLB has been asked, and, once the translation is there, until the cache has.
        ("l1", cycles(1) + cycles(1)),
        ("tlb", cycles(10)),
        // The block table is in the unit's own buffer.
        ("walk", cycles(4)),
        ("network", packet(0) + packet(0) + packet(128) + packet(128)),
        ("l2", cycles(1)),
        // The dispatcher, and the controller behind it.
        ("controller", Time::from_ps(833) + Time::from_ns(10)),
        ("array", Time::from_ns(10) + Time::from_us(3)),
        // The whole page comes.
        ("flash_network", mesh(8) + mesh(4096)),
    ];
    let parts = document["breakdown_ns"]["load"].as_object().expect("a breakdown of loads");
    for (name, time) in stages {
        let found = parts.get(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
        assert!((found - time.as_ns_f64()).abs() < 1e-6, "{name}: {found} ns instead of {time}");
    }
    assert_eq!(parts.len(), stages.len(), "{parts:?}");
    let sum = stages.iter().fold(Time::ZERO, |sum, (_, time)| sum + *time);
    for what in ["mean", "min", "max"] {
        let found = figure(&document, &format!("/gpu/0/read_latency_ns/{what}"));
        assert!((found - sum.as_ns_f64()).abs() < 1e-6, "{what}: {found} ns instead of {sum}");
    }
}
