//! The engine before a stub of a device: latencies by formula, limits, counts by hand.

mod device;
mod rig;

use super::cache::Outbound;
use super::*;
use proto::memory::LINE as LINE_BYTES;
use rig::{ALL, CROSS_LINE, CROSS_PAGE, DISPATCH, FTL, OPEN, PROGRAM, READ, Rig, at, page, spec};

#[test]
fn a_miss_is_dispatcher_ftl_device_and_two_crossings() {
    let mut rig = Rig::new(&spec());
    rig.read(page(5), 0b1, 1);
    // The page opens its row; the lines find it open.
    let miss = DISPATCH + FTL + READ + OPEN + CROSS_PAGE + CROSS_LINE;
    assert_eq!(rig.drain(), [(miss, 0)]);
    let sums = *rig.engine.tally.reads();
    assert_eq!(sums[Stage::Controller as usize], u128::from(DISPATCH));
    assert_eq!(sums[Stage::Ftl as usize], u128::from(FTL));
    assert_eq!(sums[Stage::Array as usize], u128::from(READ));
    assert_eq!(sums.iter().sum::<u128>(), u128::from(miss));
}

#[test]
fn a_hit_crosses_the_bus_once_and_never_pays_the_ftl() {
    let mut rig = Rig::new(&spec());
    rig.read(page(5), 0b1, 1);
    rig.drain();
    let start = rig.now();
    rig.read(page(5), 0b110, 1);
    assert_eq!(rig.drain(), [(start + DISPATCH + rig::COLUMN + 2 * (CROSS_LINE - rig::COLUMN), 1)]);
    assert_eq!(rig.engine.stats.ftl_requests, 1);
    assert_eq!(rig.engine.stats.reads, LookUps { requests: 2, hits: 1, merges: 0, misses: 1 });
}

#[test]
fn a_write_takes_a_place_and_later_ones_merge_with_it() {
    let mut rig = Rig::new(&spec());
    rig.write(page(3), 0b1);
    assert_eq!(rig.drain(), [(DISPATCH + OPEN + CROSS_LINE, 0)]);
    let start = rig.now();
    rig.write(page(3), 0b10);
    assert_eq!(rig.drain(), [(start + DISPATCH + CROSS_LINE, 1)]);
    // What was written is read from the write buffer.
    let start = rig.now();
    rig.read(page(3), 0b11, 1);
    assert_eq!(rig.drain(), [(start + DISPATCH + 2 * CROSS_LINE - rig::COLUMN, 2)]);
    let stats = &rig.engine.stats;
    assert_eq!(stats.writes, LookUps { requests: 2, hits: 1, merges: 0, misses: 1 });
    assert_eq!((stats.write_buffer_reads, stats.ftl_requests), (1, 0));
}

#[test]
fn requests_to_a_page_under_way_join_it() {
    let mut rig = Rig::new(&spec());
    for line in 0..4 {
        rig.read(page(9), 1 << line, 1);
    }
    let first = DISPATCH + FTL + READ + OPEN + CROSS_PAGE + CROSS_LINE;
    let burst = CROSS_LINE - rig::COLUMN;
    // One fetch; the lines follow each other on the bus.
    let expected: Vec<(u64, u32)> = (0..4).map(|n| (first + n * burst, n as u32)).collect();
    assert_eq!(rig.drain(), expected);
    assert_eq!(rig.engine.stats.reads, LookUps { requests: 4, hits: 0, merges: 3, misses: 1 });
    assert_eq!((rig.engine.stats.ftl_requests, rig.engine.stats.flash_reads), (1, 1));
}

/// Writes one line each of pages of one set of the write buffer until it is full.
fn fill_a_set(rig: &mut Rig) {
    for way in 0..2 {
        rig.write(page(4 * way), 0b1);
    }
    rig.drain();
}

#[test]
fn an_eviction_of_a_part_merges_with_flash_first() {
    let mut rig = Rig::new(&spec());
    fill_a_set(&mut rig);
    let start = rig.now();
    rig.write(page(8), 0b1);
    // FTL and read for the old page, 31 lines into the open row; FTL for the new place; 4 KiB out, and the line in.
    // While the FTL works the bus falls idle.
    let lines_in = 31 * (CROSS_LINE - rig::COLUMN);
    assert!(lines_in < FTL);
    let taken = start + DISPATCH + FTL + READ + FTL + CROSS_PAGE + CROSS_LINE;
    assert_eq!(rig.until_answer(), (taken, 2));
    let stats = rig.engine.stats;
    assert_eq!((stats.evictions, stats.merged_from_flash, stats.merged_from_buffer), (1, 1, 0));
    assert_eq!((stats.ftl_requests, stats.flash_reads), (2, 1));
    // The page goes to the device a column latency after its last byte left the bus.
    rig.drain();
    let submitted = start + DISPATCH + FTL + READ + FTL + CROSS_PAGE + rig::COLUMN;
    assert_eq!(rig.now(), submitted + PROGRAM);
    assert_eq!(rig.engine.stats.flash_writes, 1);
    assert_eq!(rig.engine.outstanding(), 0);
}

#[test]
fn an_eviction_of_a_part_takes_the_rest_from_the_read_buffer() {
    let mut rig = Rig::new(&spec());
    rig.read(page(0), 0b1, 1);
    rig.drain();
    fill_a_set(&mut rig);
    let start = rig.now();
    rig.write(page(8), 0b1);
    let taken = start + DISPATCH + FTL + CROSS_PAGE + CROSS_LINE;
    assert_eq!(rig.until_answer(), (taken, 3));
    assert_eq!((rig.engine.stats.merged_from_flash, rig.engine.stats.merged_from_buffer), (0, 1));
    // The copy was given up: the page comes from flash again, after its program.
    rig.read(page(0), 0b1, 1);
    rig.drain();
    assert_eq!(rig.engine.stats.flash_reads, 2);
}

#[test]
fn a_page_written_whole_is_not_merged() {
    let mut rig = Rig::new(&spec());
    rig.write(page(0), ALL);
    rig.drain();
    rig.write(page(4), 0b1);
    rig.drain();
    let start = rig.now();
    rig.write(page(8), 0b1);
    assert_eq!(rig.until_answer().0, start + DISPATCH + FTL + CROSS_PAGE + CROSS_LINE);
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.ftl_requests), (0, 1));
}

#[test]
fn reads_of_a_page_on_its_way_to_flash_wait_for_its_program() {
    let mut rig = Rig::new(&spec());
    rig.write(page(0), ALL);
    rig.write(page(4), 0b1);
    rig.write(page(8), 0b1);
    rig.step_until(|engine| engine.pages.live().any(|(_, b)| b.outbound == Outbound::Writing));
    let programmed = rig.now() + PROGRAM;
    rig.read(page(0), 0b1, 1);
    rig.drain();
    assert_eq!(rig.now(), programmed + FTL + READ + OPEN + CROSS_PAGE + CROSS_LINE);
}

#[test]
fn writes_wait_when_as_many_pages_as_allowed_are_on_their_way() {
    let mut few = spec();
    few.evictions = 1;
    let mut rig = Rig::new(&few);
    for n in 0..4 {
        rig.write(page(4 * n), ALL);
    }
    rig.drain();
    // Pages 0 and 4 had to go one after the other: two programs do not overlap.
    assert!(rig.now() > 2 * PROGRAM, "{}", rig.now());
    let mut rig = Rig::new(&spec());
    for n in 0..4 {
        rig.write(page(4 * n), ALL);
    }
    rig.drain();
    assert!(rig.now() < 2 * PROGRAM, "{}", rig.now());
}

#[test]
fn the_ftl_serves_as_many_as_it_has_in_service() {
    // 8 in service, 5 us each: 1.6 M pages a second.
    let mut rig = Rig::new(&EngineSpec { dram: rig::fast(), ..spec() });
    let pages = 4_000;
    rig.closed_loop(64, pages, |n| (page(n * 7), 0b1));
    let per_s = pages as f64 / (rig.now() as f64 / 1e12);
    assert!((per_s / 1.6e6 - 1.0).abs() < 0.02, "{per_s}");
}

#[test]
fn hits_are_limited_by_the_bus() {
    let mut rig = Rig::new(&spec());
    for n in 0..8 {
        rig.read(page(n), 0b1, 1);
    }
    rig.drain();
    let start = rig.now();
    let count = 4_000;
    rig.closed_loop(64, count, |n| (page(n % 8), 1 << (n % 32)));
    let rate = (count * LINE_BYTES) as f64 / ((rig.now() - start) as f64 / 1e12);
    assert!((rate / 6.4e9 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn misses_of_whole_pages_cross_the_bus_twice() {
    // Without the FTL's limit, 4 KiB a miss come through at half the bus.
    let mut quick = spec();
    quick.ftl_in_service = 64;
    let mut rig = Rig::new(&quick);
    let count = 1_000;
    rig.closed_loop(64, count, |n| (page(n), ALL));
    let rate = (count * PAGE) as f64 / (rig.now() as f64 / 1e12);
    assert!((rate / 3.2e9 - 1.0).abs() < 0.03, "{rate}");
}

#[test]
fn a_stream_fetches_superpages_and_an_end_of_the_device_is_respected() {
    let mut ahead = spec();
    ahead.prefetch = Some(PrefetchSpec { entries: 512, after: 15, pages: 16 });
    let mut rig = Rig::new(&ahead);
    rig.engine.set_capacity(40 * PAGE);
    // 16 accesses in pages 0 and 1 by one instruction: the last of them comes to a counter of 15.
    for n in 0..16 {
        rig.read(page(0), 1 << n, 77);
        rig.drain();
    }
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.prefetched), (1, 0));
    // A miss now fetches the 14 pages of 0..16 that are not here, besides itself.
    rig.read(page(1), 1, 77);
    rig.drain();
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.prefetched), (16, 14));
    rig.read(page(9), 1, 77);
    rig.drain();
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.prefetch_used), (16, 1));
    // The next superpage, whose count survives the border at the page that follows; the third is cut by the device.
    rig.read(page(15), 1, 77);
    rig.read(page(16), 1, 77);
    rig.drain();
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.prefetched), (32, 29));
    rig.read(page(31), 1, 77);
    rig.read(page(32), 1, 77);
    rig.drain();
    assert_eq!((rig.engine.stats.flash_reads, rig.engine.stats.prefetched), (40, 36));
    // Another instruction fetches single pages.
    rig.read(page(35), 1, 78);
    rig.drain();
    assert_eq!(rig.engine.stats.prefetch_used, 4);
    assert_eq!(rig.engine.outstanding(), 0);
}

#[test]
fn a_new_window_forgets_and_nothing_is_lost() {
    let mut rig = Rig::new(&spec());
    rig.read(page(1), 1, 1);
    rig.drain();
    rig.engine.reset_stats(at(rig.now()));
    assert_eq!(rig.engine.stats.reads, LookUps::default());
    assert_eq!((rig.engine.dram_traffic(), rig.engine.busy(at(rig.now()))), ((0, 0), EngineBusy::default()));
    let start = rig.now();
    rig.read(page(1), 1, 1);
    rig.drain();
    assert_eq!(rig.engine.dram_traffic(), (LINE_BYTES, 0));
    let busy = rig.engine.busy(at(rig.now()));
    assert_eq!(busy.dispatcher.ps(), DISPATCH);
    assert_eq!((busy.ftl, busy.dram.ps()), (Time::ZERO, CROSS_LINE - rig::COLUMN));
    assert!(rig.now() > start);
}

#[test]
fn bad_values_are_named() {
    let fault = |change: fn(&mut EngineSpec)| {
        let mut bad = spec();
        change(&mut bad);
        Engine::new(&bad, LINE_BYTES).err().map(|fault| fault.key)
    };
    let key = |key: &str| Some(key.to_owned());
    assert_eq!(fault(|s| s.ftl_in_service = 0), key("ftl_in_service"));
    assert_eq!(fault(|s| s.evictions = 0), key("evictions"));
    assert_eq!(fault(|s| s.read_buffer.ways = 0), key("read_buffer.ways"));
    assert_eq!(fault(|s| s.write_buffer.ways = 3), key("write_buffer.capacity"));
    assert_eq!(fault(|s| s.dram.banks = 0), key("dram.banks"));
    let prefetch = |pages| Some(PrefetchSpec { entries: 1, after: 1, pages });
    let mut bad = spec();
    bad.prefetch = prefetch(1);
    assert_eq!(Engine::new(&bad, LINE_BYTES).err().map(|fault| fault.key), key("prefetch.pages"));
    bad.prefetch = prefetch(2);
    assert!(Engine::new(&bad, LINE_BYTES).is_ok());
    for line in [0, 32, 96, 1024] {
        assert_eq!(Engine::new(&spec(), line).err().map(|fault| fault.key), key("line"));
    }
}

fn tracker() -> Tracker {
    Tracker::new(&PrefetchSpec { entries: 512, after: 15, pages: 16 })
}

#[test]
fn fifteen_in_sequence_turn_it_on_and_one_astray_turns_it_off() {
    let mut tracker = tracker();
    // The first access has nothing to compare with; 15 more follow it, across a border of superpages.
    for page in 8..8 + 15 {
        tracker.observe(7, page);
        assert_eq!(tracker.superpage(7, page), None, "{page}");
    }
    tracker.observe(7, 23);
    assert_eq!(tracker.superpage(7, 23), Some(16..32));
    tracker.observe(7, 1000);
    assert_eq!(tracker.superpage(7, 1000), None);
    tracker.observe(7, 1000);
    assert_eq!(tracker.superpage(7, 1000), Some(992..1008));
}

#[test]
fn instructions_share_an_entry_modulo_the_table() {
    let mut tracker = tracker();
    (0..16).for_each(|page| tracker.observe(1, page));
    assert!(tracker.superpage(1 + 512, 16).is_some());
    assert!(tracker.superpage(2, 16).is_none());
}

#[test]
fn no_instruction_is_no_stream() {
    let mut tracker = tracker();
    (0..64).for_each(|page| tracker.observe(0, page));
    assert_eq!(tracker.superpage(0, 64), None);
}
