//! Writes: registers, evictions, moves between planes, redirection.

use crate::direct::Out;
use crate::direct::spec::{DirectRedirect, DirectSpec};
use crate::direct::testing::{ALL, Rig, small};
use config::units::Share;
use engine::Time;
use nand::registers::spec::{NifSpec, RegisterNetwork};
use proto::memory::{PAGE, Stage};

fn ps(ns: f64) -> Time {
    Time::from_ps((ns * 1e3) as u64)
}

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

/// A page that is written again while it is being programmed takes a second register, which is the newer one.
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
    // The lines go out over the port, with nobody waiting.
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
