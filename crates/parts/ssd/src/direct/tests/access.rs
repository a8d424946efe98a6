//! Reads and writes: latency, bandwidth and energy against formulas and counts.

use super::{ALL, Rig, small, table_i};
use crate::direct::{
    DirectEnergySpec, Out,
    spec::{DirectRedirect, DirectSpec, Transfer},
};
use config::{
    StatePower,
    units::{Bytes, Duration, Energy, Power, Share},
};
use engine::{Rng, Time};
use nand::{
    planes::spec::{BusSpec, FlashNetwork},
    registers::{NifSpec, RegisterNetwork},
};
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

/// A page crosses once for all its requesters, whether they arrive before it is sensed or while its data register holds
/// it; a later one fetches it again.
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

// Energy, against what the part counts for itself.

fn metered() -> DirectSpec {
    let power = Power::new;
    let energy = DirectEnergySpec {
        read: Energy::new(1_003),
        program: Energy::new(90_001),
        erase: Energy::new(400_009),
        transfer: Energy::new(37),
        plane: StatePower { idle: power(500), busy: power(1_700) },
        controllers_on: power(2_000),
    };
    DirectSpec { energy: Some(energy), ..small() }
}

/// Whole and partial writes over few pages, and reads between them: pages leave their registers, log blocks fill up and are merged.
#[test]
fn arrays_and_network_cost_what_they_do() {
    let (mut rig, mut rng) = (Rig::new(&metered()), Rng::stream(3, "direct/energy"));
    for n in 0..3_000 {
        let page = rig.page((n % 4) as u32, rng.below(8) as u32, rng.below(8) as u32);
        let lines = if rng.below(3) == 0 { ALL } else { 1 << rng.below(32) };
        rig.send(rng.below(3) > 0, page, lines, 0);
        for _ in 0..rng.below(40) {
            rig.step();
        }
    }
    while rig.step() {}
    let (now, stats) = (rig.now(), &rig.direct.stats);
    let energy = rig.direct.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    assert!(stats.erases > 0 && stats.fill_reads > 0 && stats.gc_programs > 0, "{stats:?}");
    assert_eq!(energy.of("read"), u128::from(1_003 * stats.senses()));
    assert_eq!(energy.of("program"), u128::from(90_001 * (stats.eviction_programs + stats.gc_programs)));
    assert_eq!(energy.of("erase"), u128::from(400_009 * stats.erases));
    assert_eq!(energy.of("flash network transfer"), u128::from(37 * (stats.bytes_out + stats.bytes_in)));
    assert_eq!(energy.of("planes on"), 4 * 500 * u128::from(now.ps()));
    assert_eq!(energy.of("controllers on"), 2_000 * u128::from(now.ps()));
    // Of every read 3 us and the search of 10 ns, of programs 100 us, of erases 1 ms.
    let work = Time::from_ns(3_010).times(stats.senses())
        + Time::from_us(100).times(stats.eviction_programs + stats.gc_programs)
        + Time::from_ms(1).times(stats.erases);
    assert_eq!(energy.of("planes at work"), 1_200 * u128::from(work.ps()));
}

// Writes: registers, evictions, moves between planes, redirection.

/// A write of one line into a register: dispatcher, controller, router, 8 + 128 B at 6.4 GB/s.
const WRITE: f64 = 1.0 + 5.0 + 2.5 + 21.25;

fn networks() -> Vec<RegisterNetwork> {
    RegisterNetwork::all_defaults()
}

fn with(network: RegisterNetwork) -> DirectSpec {
    let mut spec = small();
    spec.registers.network = network;
    spec
}

#[test]
fn a_write_is_done_when_a_register_has_it() {
    for network in networks() {
        let mut rig = Rig::new(&with(network));
        assert_eq!(rig.latency(true, 0, 1), ps(WRITE));
        // It merges with what is there; all lines at once take 8 + 4096 B.
        assert_eq!(rig.latency(true, 0, 2), ps(WRITE));
        assert_eq!(rig.latency(true, 0, ALL), ps(6.0 + 2.5 + 641.25));
        let stats = &rig.direct.stats;
        assert_eq!((stats.register_misses, stats.register_hits, stats.evictions), (1, 2, 0));
        assert_eq!((stats.writes, stats.pages_written, stats.plane_writes[0]), (3, 1, 3));
        let dirty = rig.direct.dirty();
        assert_eq!((dirty.registers, dirty.lines), (1, 32));
    }
}

/// A read of lines that a register holds needs no array; of other lines of the page it does.
#[test]
fn registers_serve_reads_of_what_they_hold() {
    let mut rig = Rig::new(&small());
    rig.latency(true, 0, 0b110);
    assert_eq!(rig.latency(false, 0, 0b010), ps(6.0 + 3.75 + 22.5));
    assert_eq!(rig.latency(false, 0, 0b011), ps(6.0 + 3.75 + 3_010.0 + 642.5));
    let stats = &rig.direct.stats;
    assert_eq!((stats.register_reads, stats.partial_reads, stats.array_reads), (1, 1, 1));
}

/// Two registers a plane: the page used longest ago goes, and the write waits for its program.
#[test]
fn the_least_recently_used_page_is_programmed() {
    let mut rig = Rig::new(&small());
    let pages: Vec<u64> = (0..4).map(|n| rig.page(0, 0, n)).collect();
    rig.latency(true, pages[0], ALL);
    rig.latency(true, pages[1], ALL);
    rig.latency(true, pages[0], 1);
    assert_eq!(rig.latency(true, pages[2], 1), ps(WRITE + 100_000.0));
    assert_eq!(rig.direct.registers.lines(pages[1] / PAGE), 0);
    assert_eq!(rig.direct.registers.lines(pages[0] / PAGE), ALL);
    // Of page 2 one line was written: the old page is read before it is programmed.
    rig.latency(true, pages[0], 1);
    assert_eq!(rig.latency(true, pages[3], 1), ps(WRITE + 103_010.0));
    let stats = &rig.direct.stats;
    assert_eq!((stats.eviction_programs, stats.fill_reads, stats.evictions), (2, 1, 2));
    assert_eq!((stats.pages_programmed, stats.write_redundancy()), (2, 1.0));
    // The Register stage is the wait for the two programs.
    let wait = rig.direct.tally.writes()[Stage::Register as usize];
    assert_eq!(wait, u128::from(ps(203_010.0).ps()));
    // Another plane has registers of its own.
    let elsewhere = rig.page(2, 0, 0);
    assert_eq!(rig.latency(true, elsewhere, 1), ps(WRITE));
}

/// ZnG, section IV-C: the registers of a package serve all its planes.
#[test]
fn a_package_shares_its_registers() {
    for network in networks() {
        let private = network == RegisterNetwork::private;
        let mut rig = Rig::new(&with(network));
        for n in 0..4 {
            let page = rig.page(0, 0, n);
            rig.latency(true, page, ALL);
        }
        assert_eq!(rig.direct.stats.evictions, if private { 2 } else { 0 });
    }
}

/// Four pages of plane 0 in the registers of planes 0, 0, 2, 2; the third has not been used for longest, so it has to cross
/// from plane 2 to plane 0 before its program. By hand: FCnet 0; NiF 4 KiB at 6.4 GB/s, 640 ns; SWnet out, 2.5 + 640, and
/// back with a command, 2.5 + 641.25.
#[test]
fn a_page_in_a_remote_register_is_moved_first() {
    let cost = |network| {
        let mut rig = Rig::new(&with(network));
        let pages: Vec<u64> = (0..5).map(|n| rig.page(0, 0, n)).collect();
        for n in [0, 1, 2, 3, 0, 1] {
            rig.latency(true, pages[n], ALL);
        }
        let latency = rig.latency(true, pages[4], 1);
        let ports = rig.direct.stats.bytes_out;
        (latency - ps(WRITE + 100_000.0), rig.direct.stats.moves, ports)
    };
    assert_eq!(cost(RegisterNetwork::fcnet), (Time::ZERO, 0, 0));
    assert_eq!(cost(RegisterNetwork::nif(NifSpec::default())), (ps(640.0), 1, 0));
    assert_eq!(cost(RegisterNetwork::swnet), (ps(2.5 + 640.0 + 2.5 + 641.25), 1, PAGE));
}

/// Writes to a page that waits for a register wait with it, and need no second one.
#[test]
fn writes_to_a_waiting_page_share_its_register() {
    let mut rig = Rig::new(&small());
    let pages: Vec<u64> = (0..3).map(|n| rig.page(0, 0, n)).collect();
    rig.latency(true, pages[0], ALL);
    rig.latency(true, pages[1], ALL);
    let tags = [1, 2, 4].map(|lines| rig.send(true, pages[2], lines, 0));
    rig.rest();
    assert_eq!(rig.direct.stats.evictions, 1);
    let done: Vec<_> = tags.iter().map(|tag| rig.done(*tag)).collect();
    assert!(done[0].is_some() && done.iter().all(|time| *time == done[0]));
    assert_eq!(rig.direct.registers.lines(pages[2] / PAGE), 7);
}

/// Page written again while it is being programmed: it takes a second register, the newer one.
#[test]
fn a_leaving_page_can_be_written_again() {
    let mut rig = Rig::new(&small());
    let pages: Vec<u64> = (0..3).map(|n| rig.page(0, 0, n)).collect();
    rig.latency(true, pages[0], ALL);
    rig.latency(true, pages[1], ALL);
    rig.send(true, pages[2], 1, 0);
    let begin = rig.now();
    rig.run_until(begin + Time::from_us(50));
    // Page 0 is being programmed; its second copy waits for page 1 to be programmed.
    let again = rig.send(true, pages[0], 1, 0);
    rig.run_until(begin + Time::from_us(60));
    let read = rig.send(false, pages[0], 0b110, 0);
    let behind = rig.send(false, pages[0], 0b11, 0);
    rig.rest();
    assert_eq!(rig.done(again), Some(begin + ps(WRITE + 200_000.0)));
    assert_eq!(rig.done(read), Some(begin + ps(60_000.0 + 6.0 + 3.75 + 2.5 + 40.0)), "from the old register");
    // Line 0 is read once the write of it is in its register: dispatched anew, it finds line 1 in the array alone.
    let read = 6.0 + 3.75 + 3_010.0 + 642.5;
    assert_eq!(rig.done(behind), Some(begin + ps(WRITE + 200_000.0 + read)));
    assert_eq!(rig.direct.stats.held_reads, 1);
}

/// Of 4 writes 2 evict a page, more than a quarter: the next pages are offered instead, and the writes wait for no
/// program; refused, they are programmed.
#[test]
fn thrashing_registers_offer_their_pages() {
    let mut spec = small();
    spec.redirect = Some(DirectRedirect { window: 4, threshold: Share::percent(25) });
    let mut rig = Rig::new(&spec);
    let pages: Vec<u64> = (0..8).map(|n| rig.page(0, 0, n)).collect();
    for page in &pages[..4] {
        rig.latency(true, *page, 0b101);
    }
    assert_eq!((rig.direct.stats.evictions, rig.direct.stats.parked), (2, 0));
    assert_eq!(rig.latency(true, pages[4], 1), ps(WRITE));
    let park = rig.cx.sent.iter().filter(|(_, out)| matches!(out, Out::Park { .. }));
    let offered: Vec<_> = park.map(|(_, out)| *out).collect();
    assert_eq!(offered, [Out::Park { page: pages[2], lines: 0b101, app: 0 }]);
    assert_eq!(rig.direct.stats.eviction_programs, 2);
    // The lines go out over the port, without waiters.
    assert_eq!(rig.direct.stats.bytes_out, 2 * 128);
    let began = rig.now();
    let tag = rig.send(true, pages[5], 1, 0);
    while rig.cx.sent.last().is_none_or(|(_, out)| !matches!(out, Out::Park { .. })) {
        assert!(rig.step());
    }
    rig.direct.refused(pages[3], 0b101, 0, &mut rig.cx);
    rig.rest();
    assert_eq!(rig.done(tag), Some(began + ps(WRITE + 103_010.0)));
    let stats = &rig.direct.stats;
    assert_eq!((stats.parked, stats.refused, stats.eviction_programs), (2, 1, 3));
}

/// Few evictions in a window: the checker lets go again.
#[test]
fn registers_that_no_longer_thrash_keep_their_pages() {
    let mut spec = small();
    spec.redirect = Some(DirectRedirect { window: 4, threshold: Share::percent(25) });
    let mut rig = Rig::new(&spec);
    let pages: Vec<u64> = (0..8).map(|n| rig.page(0, 0, n)).collect();
    for page in &pages[..4] {
        rig.latency(true, *page, 1);
    }
    for _ in 0..4 {
        rig.latency(true, pages[3], 1);
    }
    rig.latency(true, pages[5], 1);
    let stats = &rig.direct.stats;
    assert_eq!((stats.evictions, stats.parked, stats.eviction_programs), (3, 0, 3));
}
