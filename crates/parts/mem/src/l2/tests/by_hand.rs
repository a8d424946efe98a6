//! Times, queues, miss registers, parked pages and purges: by hand.

use super::*;
use proto::memory::Stage;

fn answered_ns(rig: &Rig, tags: &[u32]) -> Vec<u64> {
    tags.iter().map(|tag| rig.answered(*tag).expect("answered") / 1000).collect()
}

#[test]
fn a_hit_takes_the_read_latency() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let miss = rig.read(0, 0);
    let hit = rig.read(2000, 0);
    rig.run();
    // Look-up, memory; then the look-up alone.
    assert_eq!(answered_ns(&rig, &[miss, hit]), [1001, 2001]);
    assert_eq!((rig.cache.stats.hits, rig.cache.stats.misses, rig.cache.stats.reads), (1, 1, 2));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn cycles_follow_the_clock() {
    let mut spec = spec(WritePolicy::write_back);
    spec.clock = Frequency::new(1_200_000_000);
    let mut rig = Rig::new(&spec, 1000);
    let write = rig.write(0, 0, 128);
    rig.run();
    assert_eq!(rig.answered(write), Some(5 * 833));
}

#[test]
fn a_write_occupies_the_bank() {
    let mut rig = Rig::new(&spec(WritePolicy::write_back), 1000);
    let tags = [rig.write(0, 0, 128), rig.read(0, 0), rig.atomic(0, 0), rig.read(0, 0)];
    rig.run();
    // 5 for the write, 1 for a read, 1 + 5 for an atomic.
    assert_eq!(answered_ns(&rig, &tags), [5, 6, 12, 13]);
    assert_eq!(rig.cache.busy(ns(13)), ns(13));
    assert!(rig.commands().is_empty());
}

#[test]
fn a_fill_occupies_the_bank_by_the_line() {
    let mut spec = spec(WritePolicy::read_only);
    spec.prefetch = fixed(1024);
    let mut rig = Rig::new(&spec, 1000);
    let first = rig.read(0, 0);
    // It comes when the fill has begun: 8 lines of 5 ns, then its own look-up.
    let second = rig.read(1002, 128);
    rig.run();
    assert_eq!(answered_ns(&rig, &[first, second]), [1001, 1001 + 40 + 1]);
    assert_eq!(rig.commands(), [(false, 0, 0xff)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.prefetched_lines, stats.used_prefetched_lines, stats.fetched_lines), (7, 1, 8));
    assert_eq!(stats.prefetch.granularity(LINE), Some(1024.0));
}

#[test]
fn misses_to_a_line_in_flight_merge() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let tags = [rig.read(0, 0), rig.read(0, 0), rig.read(0, 128), rig.read(500, 0)];
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (false, 0, 2)], "the next line has a fetch of its own");
    assert_eq!(answered_ns(&rig, &tags), [1001, 1001, 1003, 1001]);
    let stats = rig.cache.stats;
    assert_eq!((stats.misses, stats.merges, stats.hits, stats.fetches), (2, 2, 0, 2));
}

#[test]
fn stages_sum_to_the_latency() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let tags = [rig.read(0, 0), rig.read(0, 0), rig.write(0, 128, 4), rig.read(2000, 0)];
    rig.run();
    let waited: Vec<u64> = tags.iter().map(|tag| rig.answered(*tag).expect("answered")).collect();
    let (reads, writes) = (rig.cache.tally.reads(), rig.cache.tally.writes());
    // 1000 ns of the first read and of the write are reported by memory.
    assert_eq!(waited, [1_001_000, 1_001_000, 1_003_000, 2_001_000]);
    assert_eq!(reads[Stage::L2 as usize], 1_000 + 2_000 + 1_000);
    assert_eq!(reads[Stage::L2Merge as usize], 999_000);
    assert_eq!(writes[Stage::L2 as usize], 3_000);
    assert_eq!(reads.iter().chain(writes).sum::<u128>(), 4_000 + 999_000 + 3_000);
}

#[test]
fn without_a_register_the_bank_waits_first_in_first_out() {
    let mut spec = spec(WritePolicy::read_only);
    spec.registers = 1;
    let mut rig = Rig::new(&spec, 1000);
    let warm = rig.read(0, 4096);
    rig.run();
    let at = rig.world.now();
    assert_eq!(at, ns(1001));
    // From 9 ns on, when the line has been filled: a miss, a miss that finds no register, a hit behind it.
    let tags = [rig.read(9, 0), rig.read(9, 128), rig.read(9, 4096)];
    rig.run();
    assert_eq!(answered_ns(&rig, &[warm]), [1001]);
    // The second goes to memory when the first has come, at 2011; the hit waits for the fill's 5 ns.
    assert_eq!(answered_ns(&rig, &tags), [2011, 3011, 2011 + 5 + 1]);
    let stats = rig.cache.stats;
    assert_eq!((stats.stalls, stats.stalled), (1, ns(2011 - 1012)));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn as_many_as_fit_wait_for_a_fetch() {
    let mut spec = spec(WritePolicy::read_only);
    spec.merges = 2;
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.read(0, 0), rig.read(0, 0), rig.read(0, 0)];
    rig.run();
    // The third had its look-up; it finds the line when it comes.
    assert_eq!(answered_ns(&rig, &tags), [1001, 1001, 1001]);
    let stats = rig.cache.stats;
    assert_eq!((stats.merges, stats.hits, stats.stalls), (1, 1, 1));
}

#[test]
fn a_prefetch_leaves_out_what_is_here_or_on_its_way() {
    let mut spec = spec(WritePolicy::write_back);
    spec.prefetch = fixed(4096);
    let mut rig = Rig::new(&spec, 1000);
    // Line 1 is written whole, line 2 in part, line 3 is fetched for an atomic, alone.
    rig.write(0, 128, 128);
    rig.write(0, 256, 32);
    rig.atomic(0, 384);
    let first = rig.read(100, 0);
    // A line of the page that comes with it; a line that was written in part needs its own fetch.
    let (merged, partial) = (rig.read(200, 4 * 128), rig.read(200, 256));
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 8), (false, 0, 0xffff_fff1), (false, 0, 4)]);
    assert_eq!(answered_ns(&rig, &[first, merged, partial]), [1101, 1101, 1202]);
    assert_eq!(rig.cache.stats.used_prefetched_lines, 1);
}

#[test]
fn page_walks_fetch_their_line_alone() {
    let mut spec = spec(WritePolicy::read_only);
    spec.prefetch = fixed(4096);
    let mut rig = Rig::new(&spec, 1000);
    let walk = rig.read(0, 0);
    rig.world.accesses[walk as usize].pc = 0;
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1)]);
    assert_eq!(rig.cache.stats.prefetch.prefetches, 0);
}

#[test]
fn the_least_recently_used_line_makes_room() {
    let mut spec = spec(WritePolicy::read_only);
    (spec.sets, spec.ways) = (1, 2);
    let mut rig = Rig::new(&spec, 10);
    for (n, line) in [0u64, 1, 0, 2, 0, 1].into_iter().enumerate() {
        rig.read(100 * n as u64, line * 128);
    }
    rig.run();
    // Lines 0, 1, then 2 over 1, then 1 over 2: line 0 is hit twice.
    let stats = rig.cache.stats;
    assert_eq!((stats.hits, stats.misses, stats.evictions), (2, 4, 2));
}

#[test]
fn a_measured_window_begins_at_zero() {
    let mut rig = Rig::new(&spec(WritePolicy::write_back), 1000);
    rig.write(0, 0, 128);
    rig.run();
    rig.cache.reset_stats(ns(5));
    assert_eq!((rig.cache.stats, rig.cache.busy(ns(5))), (L2Stats::default(), Time::ZERO));
    rig.read(0, 0);
    rig.run();
    assert_eq!((rig.cache.stats.hits, rig.cache.busy(ns(6))), (1, ns(1)));
    assert_eq!(rig.cache.tally.reads()[Stage::L2 as usize], 1_000);
}

#[test]
fn values_that_do_not_fit_are_named() {
    let key = |change: fn(&mut L2Spec)| {
        let mut spec = spec(WritePolicy::read_only);
        change(&mut spec);
        spec.check().map_err(|e| e.key)
    };
    assert_eq!(key(|_| {}), Ok(()));
    assert_eq!(key(|s| s.banks = 0), Err("banks".into()));
    assert_eq!(key(|s| s.write_slots = 0), Err("write_slots".into()));
    assert_eq!(key(|s| s.sets = 1 << 27), Err("sets".into()));
    assert_eq!(key(|s| s.interleave = Bytes::new(3000)), Err("interleave".into()));
    assert_eq!(key(|s| s.interleave = Bytes::new(256)), Ok(()));
    assert_eq!(key(|s| (s.interleave, s.prefetch) = (Bytes::new(256), fixed(256))), Err("interleave".into()));
    assert_eq!(key(|s| s.prefetch = fixed(8192)), Err("prefetch.fixed.chunk".into()));
    assert_eq!(key(|s| s.prefetch = fixed(200)), Err("prefetch.fixed.chunk".into()));
    assert_eq!(key(|s| s.parked = Bytes::new(2048)), Err("parked".into()));
    assert_eq!(key(|s| (s.parked, s.sets) = (Bytes::new(4096), 16)), Err("parked".into()));
    assert_eq!(key(|s| s.parked = Bytes::new(64 * 3 * 128)), Ok(()));
    assert_eq!(key(|s| s.parked = Bytes::new(64 * 4 * 128)), Err("parked".into()));
    assert_eq!(key(|s| s.replacement = ReplacementPolicy::srrip), Ok(()));
}

// Parked pages and purges: by hand.

/// Room for two pages in one bank.
fn parking(writes: WritePolicy) -> L2Spec {
    L2Spec { parked: Bytes::new(2 * PAGE), ..spec(writes) }
}

impl Rig {
    fn park(&mut self, page: u64, lines: u64) -> bool {
        self.cache.park(page * PAGE, lines, 0, &mut self.world)
    }
}

#[test]
fn parked_lines_are_read_and_written_here() {
    let mut rig = Rig::new(&parking(WritePolicy::read_only), 1000);
    assert!(rig.park(0, 0b11));
    // Handing two lines over takes 10 ns.
    let tags = [rig.read(0, 0), rig.write(0, 0, 4), rig.atomic(0, 128), rig.write(0, 3 * 128, 4)];
    rig.run();
    let at = tags.map(|tag| rig.answered(tag).expect("answered") / 1000);
    assert_eq!(at, [11, 16, 22, 27]);
    assert!(rig.commands().is_empty());
    assert_eq!((rig.cache.stats.absorbed, rig.cache.stats.parked_pages), (3, 1));
    // The line that was written in part is fetched to be read; another page's writes go away.
    let tags = [rig.read(100, 3 * 128), rig.read(3000, 3 * 128), rig.write(5000, PAGE, 4)];
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 8), (true, PAGE, 1)]);
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(1_128_000), Some(3_028_000), Some(6_028_000)]);
}

#[test]
fn the_page_written_least_recently_goes_first() {
    let mut rig = Rig::new(&parking(WritePolicy::read_only), 1000);
    assert!(rig.park(0, 1) && rig.park(1, 1));
    rig.write(0, 5 * 128, 4);
    rig.run();
    assert!(rig.park(2, 0xf0), "page 1 makes room: page 0 has been written since");
    assert!(rig.park(3, 1), "then page 0, with the line it took");
    assert_eq!(rig.commands(), [(true, PAGE, 1), (true, 0, 0b10_0001)]);
    assert!(rig.world.commands.iter().all(|(_, c)| !c.demand));
    // What went stays as a clean copy if it was whole.
    rig.run();
    let (whole, part) = (rig.read(100, PAGE), rig.read(100, 5 * 128));
    rig.run();
    assert_eq!(rig.commands()[2..], [(false, 0, 0b10_0000)]);
    assert!(rig.answered(whole) < rig.answered(part));
    assert_eq!((rig.cache.stats.unparked_pages, rig.cache.stats.parked_pages), (2, 4));
    // Memory has pages 0 and 1; only the others are dirty.
    rig.cache.purge(0, &mut rig.world);
    rig.run();
    assert_eq!(rig.commands()[3..], [(true, 2 * PAGE, 0xf0), (true, 3 * PAGE, 1)]);
}

#[test]
fn a_page_of_which_a_line_is_being_fetched_stays() {
    let mut rig = Rig::new(&parking(WritePolicy::read_only), 1000);
    assert!(rig.park(0, 1));
    rig.write(0, 5 * 128, 4);
    rig.run();
    assert!(rig.park(1, 1));
    let read = rig.read(100, 5 * 128);
    while rig.world.commands.is_empty() {
        rig.step();
    }
    // Page 0 is the one written least recently, but what it has of line 5 belongs to what is on its way.
    assert!(rig.park(2, 1));
    assert_eq!(rig.commands(), [(false, 0, 1 << 5), (true, PAGE, 1)]);
    rig.run();
    assert!(rig.answered(read).is_some());
}

#[test]
fn a_page_is_refused_for_want_of_room() {
    let mut off = Rig::new(&spec(WritePolicy::read_only), 1000);
    assert!(!off.park(0, 1));
    let mut rig = Rig::new(&L2Spec { write_slots: 1, ..parking(WritePolicy::read_only) }, 1000);
    rig.write(0, 7 * PAGE, 4);
    while rig.world.commands.is_empty() {
        rig.step();
    }
    assert!(!rig.park(7, 1), "memory will have something newer");
    assert!(rig.park(0, 1) && rig.park(1, 1));
    assert!(!rig.park(2, 1), "the only slot is taken");
    rig.run();
    assert!(rig.park(2, 1) && !rig.park(3, 1));
    rig.run();
    assert!(rig.park(3, 1) && rig.park(3, 2), "a parked page takes more lines");
    assert_eq!((rig.cache.stats.refused_pages, rig.cache.stats.unparked_pages), (3, 2));
}

#[test]
fn pinned_lines_do_not_make_room() {
    // Keys of pages 0, 2, 4, ... lie in the same sets of 64.
    let mut rig = Rig::new(&parking(WritePolicy::read_only), 10);
    assert!(rig.park(0, u32::MAX.into()));
    for page in 1..20 {
        rig.read(1000 * page, 2 * page * PAGE);
    }
    rig.run();
    let stats = rig.cache.stats;
    assert_eq!((stats.evictions, stats.misses), (16, 19), "three ways are left to others");
    let hit = rig.read(0, 0);
    rig.run();
    assert_eq!((rig.cache.stats.hits, rig.answered(hit).is_some()), (1, true));
}

#[test]
fn one_way_of_a_set_stays_free_of_pinned_lines() {
    let full = L2Spec { ways: 2, parked: Bytes::new(2 * PAGE), ..spec(WritePolicy::read_only) };
    let mut rig = Rig::new(&full, 10);
    assert!(rig.park(0, 1));
    assert!(!rig.park(2, 1), "the same set");
    assert!(rig.park(1, 1), "another set");
    assert_eq!(rig.commands(), []);
}

#[test]
fn a_purged_application_leaves_and_others_stay() {
    let mut spec = parking(WritePolicy::write_back);
    spec.write_slots = 1;
    let mut rig = Rig::new(&spec, 1000);
    for (app, line) in [(0, 0), (0, 1), (0, 40), (1, 2), (1, 3)] {
        rig.send_for(app, 10, AccessKind::Write, line * 128, 128);
    }
    rig.read(2000, 50 * 128);
    rig.run();
    assert!(rig.park(3, 6));
    let before = rig.world.commands.len();
    let now = rig.world.now();
    rig.cache.purge(0, &mut rig.world);
    rig.run();
    // The parked page first, then by place; a page's lines together; one after another for want of slots.
    let written: Vec<_> =
        rig.world.commands[before..].iter().map(|(t, c)| (*t - now, c.page, c.lines)).collect();
    assert_eq!(written, [(ns(0), 3 * PAGE, 6), (ns(1000), 0, 3), (ns(2000), PAGE, 1 << 8)]);
    assert_eq!(rig.cache.stats.purged_lines, 2 + 3 + 1);
    assert_eq!(rig.cache.outstanding(), 0);
    let before = rig.world.commands.len();
    let tags = [2, 3, 0].map(|line| rig.read(100, line * 128));
    rig.run();
    assert_eq!(rig.commands()[before..], [(false, 0, 1)], "only the purged line is fetched again");
    assert!(tags.iter().all(|tag| rig.answered(*tag).is_some()));
}

#[test]
fn what_is_fetched_for_a_purged_application_is_not_kept() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let read = rig.read(0, 0);
    while rig.world.commands.is_empty() {
        rig.step();
    }
    rig.cache.purge(0, &mut rig.world);
    rig.run();
    assert_eq!(rig.answered(read), Some(1_001_000));
    rig.read(0, 0);
    rig.run();
    assert_eq!((rig.cache.stats.hits, rig.cache.stats.misses), (0, 2));
}
