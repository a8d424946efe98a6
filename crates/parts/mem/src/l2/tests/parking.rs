//! Parked pages and purges: by hand.

use super::*;

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
