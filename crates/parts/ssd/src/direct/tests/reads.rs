//! Reads: latency and bandwidth against formulas.

use crate::direct::spec::{DirectSpec, Transfer};
use crate::direct::testing::{ALL, Rig, table_i};
use config::units::{Bytes, Duration};
use engine::{Rng, Time};
use nand::planes::spec::{BusSpec, FlashNetwork};
use net::mesh::{MeshSpec, Switching};
use proto::memory::{PAGE, Stage};

fn ps(ns: f64) -> Time {
    Time::from_ps((ns * 1e3) as u64)
}

/// Dispatcher 1 ns, controller 5 ns; a command of 8 B at 6.4 GB/s behind a router of 2.5 ns; search 10 ns, tR 3 us; 4 KiB or
/// a line behind a router.
#[test]
fn a_read_takes_the_sum_of_its_parts() {
    let mut spec = table_i();
    let front = 1.0 + 5.0 + (2.5 + 1.25) + (10.0 + 3_000.0);
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(front + 2.5 + 640.0));
    spec.transfer = Transfer::lines;
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(front + 2.5 + 20.0));
    assert_eq!(Rig::new(&spec).latency(false, 12 * PAGE, 0b1011), ps(front + 2.5 + 60.0));
    // On a bus of 1 B at 800 MT/s.
    spec.network = FlashNetwork::bus(BusSpec::default());
    spec.geometry.ports = 1;
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(6.0 + 10.0 + 3_010.0 + 160.0));
    spec.transfer = Transfer::page;
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(6.0 + 10.0 + 3_010.0 + 5_120.0));
}

/// With four controllers, in the third column of each row, package 0 is two hops away: three routers each way.
#[test]
fn hops_to_a_far_controller_count() {
    let mut spec = table_i();
    spec.controller.count = 4;
    let front = 6.0 + (7.5 + 1.25) + 3_010.0;
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(front + 7.5 + 640.0));
    // Stored and forwarded, the page takes the port, two links and the way out one after another.
    let mesh = MeshSpec { switching: Switching::store_and_forward, ..MeshSpec::default() };
    spec.network = FlashNetwork::mesh(mesh);
    let front = 6.0 + (7.5 + 4.0 * 1.25) + 3_010.0;
    assert_eq!(Rig::new(&spec).latency(false, 0, 1), ps(front + 7.5 + 4.0 * 640.0));
}

#[test]
fn stages_tile_a_read() {
    let mut rig = Rig::new(&table_i());
    let latency = rig.latency(false, 0, 1);
    let reads = rig.direct.tally.reads();
    assert_eq!(reads.iter().sum::<u128>(), u128::from(latency.ps()));
    assert_eq!(reads[Stage::Controller as usize], 6_000);
    assert_eq!(reads[Stage::Array as usize], 3_010_000);
    assert_eq!(reads[Stage::FlashNetwork as usize], 3_750 + 642_500);
}

/// Bytes a second of `rounds` random reads a plane, three of them outstanding at any time.
fn read_bandwidth(spec: &DirectSpec, rounds: u32) -> f64 {
    let mut rig = Rig::new(spec);
    rig.direct.shadow = None;
    let planes = spec.geometry.all_planes();
    let mut rng = Rng::stream(1, "test");
    let mut left = vec![rounds - 3; planes as usize];
    let mut page = |rig: &Rig, plane| rig.page(plane, rng.below(512) as u32, rng.below(384) as u32);
    for plane in (0..3 * planes).map(|n| n % planes) {
        let page = page(&rig, plane);
        rig.send(false, page, 1, 0);
    }
    while rig.step() {
        for (_, out) in std::mem::take(&mut rig.cx.sent) {
            let crate::direct::Out::Done(command) = out else { panic!("{out:?}") };
            let plane = rig.direct.layout.place(command.page / PAGE).plane;
            if left[plane as usize] > 0 {
                left[plane as usize] -= 1;
                let page = page(&rig, plane);
                rig.send(false, page, 1, 0);
            }
        }
    }
    rig.check();
    assert_eq!(rig.direct.stats.bytes_sensed(), u64::from(rounds * planes) * PAGE);
    rig.direct.stats.bytes_sensed() as f64 / rig.now().as_s_f64()
}

fn within(measured: f64, expected: f64, share: f64) {
    assert!((measured / expected - 1.0).abs() < share, "{measured:e} against {expected:e}");
}

/// 1,024 planes x 4 KiB / (tR + search), if nothing else takes time.
#[test]
fn planes_work_at_once() {
    let mut spec = table_i();
    let mesh = MeshSpec { width: Bytes::from_kib(1 << 10), ..MeshSpec::default() };
    spec.network = FlashNetwork::mesh(mesh);
    spec.controller.dispatch = Duration::default();
    let bandwidth = read_bandwidth(&spec, 60);
    within(bandwidth, 1_024.0 * 4_096.0 / 3.010e-6, 0.02);
}

/// Whole pages cannot leave faster than over the links to the controllers, 6.4 GB/s each; from one line in 32, 32 times as
/// many pages can.
#[test]
fn pages_leave_at_the_rate_of_the_links_to_the_controllers() {
    let mut spec = table_i();
    within(read_bandwidth(&spec, 20), 16.0 * 6.4e9, 0.02);
    spec.controller.count = 4;
    within(read_bandwidth(&spec, 10), 4.0 * 6.4e9, 0.02);
    spec.controller.count = 16;
    spec.network = FlashNetwork::bus(BusSpec::default());
    spec.geometry.ports = 1;
    within(read_bandwidth(&spec, 6), 16.0 * 0.8e9, 0.02);
}

/// A page crosses once for all that ask for it, whether they come before it is sensed or while its data register holds
/// it; who comes later fetches it again.
#[test]
fn reads_of_a_page_share_a_fetch() {
    let mut rig = Rig::new(&table_i());
    let first = rig.send(false, 0, 1, 0);
    let second = rig.send(false, 0, 2, 0);
    // Sensed at about 3.02 us, through the port until 3.66 us.
    rig.run_until(Time::from_ns(3_300));
    let third = rig.send(false, 0, 4, 0);
    rig.rest();
    let at = rig.done(first).expect("answered");
    assert_eq!(at, ps(6.0 + 3.75 + 3_010.0 + 642.5));
    assert_eq!([rig.done(second), rig.done(third)], [Some(at); 2]);
    assert_eq!((rig.direct.stats.array_reads, rig.direct.stats.merged_reads), (1, 2));
    rig.latency(false, 0, 1);
    let stats = &rig.direct.stats;
    assert_eq!((stats.array_reads, stats.pages_read, stats.reaccess()), (2, 1, 2.0));
    let mut apart = table_i();
    apart.array.merge_reads = false;
    let mut rig = Rig::new(&apart);
    let tags = [rig.send(false, 0, 1, 0), rig.send(false, 0, 2, 0)];
    rig.rest();
    // The second is sensed when the first has left the data register, and leaves 640 ns after it is sensed.
    let apart = rig.done(tags[1]).expect("answered") - rig.done(tags[0]).expect("answered");
    assert_eq!((apart, rig.direct.stats.array_reads), (ps(640.0 + 3_010.0), 2));
}

/// The data register is taken until its page has left: a slow port holds the plane.
#[test]
fn a_page_on_its_way_out_holds_its_plane() {
    let mut spec = table_i();
    spec.network = FlashNetwork::bus(BusSpec::default());
    spec.geometry.ports = 1;
    let mut rig = Rig::new(&spec);
    // Two pages of plane 0, one of another plane of the same channel.
    let pages = [rig.page(0, 0, 0), rig.page(0, 0, 1), rig.page(16, 0, 0)];
    let tags = pages.map(|page| rig.send(false, page, ALL, 0));
    rig.rest();
    let sensed = 7.0 + 10.0 + 3_010.0 - 1.0;
    let done = tags.map(|tag| rig.done(tag).expect("answered"));
    assert_eq!(done[0], ps(sensed + 5_120.0));
    assert_eq!(done[2], ps(sensed + 2.0 * 5_120.0), "the other plane has sensed meanwhile");
    assert_eq!(done[1], ps(sensed + 3.0 * 5_120.0), "sensed while the bus was busy");
    let busy = rig.direct.busy(rig.now());
    assert_eq!(busy.planes.max, Time::from_ns(6_020));
    assert_eq!(busy.ports.max, Time::from_ns(3 * 5_120));
}

/// A window counts what happens in it alone.
#[test]
fn a_window_forgets_what_was_before() {
    let mut rig = Rig::new(&table_i());
    rig.latency(false, 0, 1);
    rig.latency(true, PAGE, 1);
    rig.direct.reset_stats(rig.now());
    assert_eq!((rig.direct.stats.writes, rig.direct.stats.plane_writes[1]), (0, 0));
    let busy = rig.direct.busy(rig.now());
    assert_eq!((busy.planes.max, busy.ports.max, busy.links.max), (Time::ZERO, Time::ZERO, Time::ZERO));
    rig.latency(false, 0, 1);
    let stats = &rig.direct.stats;
    assert_eq!((stats.reads, stats.array_reads, stats.pages_read, stats.bytes_out), (1, 1, 1, PAGE));
    let busy = rig.direct.busy(rig.now());
    let page = Time::from_ns(640);
    assert_eq!((busy.planes.max, busy.ports.max, busy.links.max), (Time::from_ns(3_010), page, page));
    assert_eq!(rig.direct.tally.reads().iter().sum::<u128>(), 3_662_250);
}
