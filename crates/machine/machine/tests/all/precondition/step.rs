//! Planes that share commands are in step after any state: writes in order are paired as on a fresh drive.

use crate::precondition::bench::{prepared, small};
use crate::precondition::{SHAPES, STATES};
use machine::run::{Plan, run_alone};
use nand::dies::MultiPlane;
use serde_json::Value;

/// Bandwidth, multi-plane commands and programs of 128 KiB writes in order on D16.
fn in_order(state: &str, set: &[&str], requests: u32) -> (f64, f64, f64) {
    let job = format!("fio:rw=write,bs=128k,iodepth=16,number_ios={requests}");
    let mut plan = set.iter().fold(Plan::new("d16", &job), |plan, set| plan.set(set));
    plan.precondition = Some(machine::precondition::parse(state).unwrap_or_else(|e| panic!("{e}")));
    let document = run_alone(&plan).unwrap_or_else(|e| panic!("{state}, {set:?}: {e}"));
    assert!(document.ok, "{state}: {:?}", document.checks);
    let document = serde_json::to_value(document).expect("a document has a JSON form");
    let figure =
        |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}"));
    (
        figure("/io/write/bandwidth_bytes_per_s"),
        figure("/flash/0/multi_plane"),
        figure("/flash/0/host_programs"),
    )
}

#[test]
fn no_plane_lags_behind_its_mates_after_any_state() {
    for state in STATES {
        for shape in SHAPES {
            let (device, _) = prepared(&small(shape), state, 11);
            let lags = device.ftl.lags(MultiPlane::SamePage);
            assert!(lags.iter().all(|lag| *lag == 0), "{state}, {shape:?}: {lags:?}");
        }
    }
}

/// Where no space is short, every figure is that of a fresh drive.
#[test]
fn writes_in_order_are_paired_as_on_a_fresh_drive() {
    let fresh = in_order("none", &[], 500);
    // All but what is alone at the beginning and at the end goes in pairs.
    assert!(fresh.1 > 0.99 * fresh.2 / 2.0, "{fresh:?}");
    let shares = (1..=20).map(|n| format!("sequential:share={}%", n * 5 - n % 3));
    let others = ["interleaved:share=33%", "uniform:share=60%", "uniform:share=60%,invalid=10%"];
    for state in shares.chain(others.map(str::to_owned)) {
        let (bandwidth, pairs, programs) =
            in_order(&state, &["flash.ftl.gc.start=4", "flash.ftl.gc.stop=5"], 500);
        assert_eq!((pairs, programs), (fresh.1, fresh.2), "{state}");
        assert!((bandwidth / fresh.0 - 1.0).abs() < 0.02, "{state}: {bandwidth}, fresh {}", fresh.0);
    }
}

/// Where collection goes on beside them, programs of one plane wait for space and the mate goes alone now and then; the next
/// ones find each other again.
#[test]
fn collection_does_not_put_planes_out_of_step() {
    let small = ["flash.geometry.blocks=64", "flash.ftl.gc.start=4", "flash.ftl.gc.stop=5"];
    for state in ["analytic:share=80%", "steady:share=80%,tolerance=5%", "zipf:share=80%,writes=1"] {
        let (_, pairs, programs) = in_order(state, &small, 3000);
        assert!(pairs > 0.9 * programs / 2.0, "{state}: {pairs} pairs of {programs} programs");
    }
}
