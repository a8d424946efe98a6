//! The unit with a memory of fixed latency behind it.

use super::Residency::{self, Always, Asked, ByPage};
use super::table::{ENTRY, PageTable, block, radix};
use super::{Event, Mmu, MmuSpec, Out, SharedTlbSpec};
use config::units::{Bytes, Frequency};
use engine::{Cx, EventQueue, Time};
use proptest::prelude::*;
use proto::memory::{Absent, Access, LINE, PAGE, Stage, Translation};

engine::events! {
    enum Ev {
        Mmu(Event),
        Answer(u32),
        Resolve(u32),
        Refuse(u32),
    }
}

/// Surroundings of the unit: reads of walks are answered after `memory`, faults after `fault`, if at all.
struct Around {
    queue: EventQueue<Ev>,
    sent: Vec<(Time, Out)>,
    reads: Vec<Access>,
    faults: Vec<Translation>,
    reading: usize,
    most_reading: usize,
    memory: Time,
    fault: Option<Time>,
    /// True if each fault is refused first.
    refuses: bool,
    /// Decides, by address and number, whether a read that does not wait brings nothing.
    in_flash: fn(u64, usize) -> bool,
}

engine::context! {
    Around: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Ev::Mmu(event),
    out: |me, out| {
        me.sent.push((me.queue.now(), out));
        match out {
            Out::Walk(access) => {
                me.reading += 1;
                me.most_reading = me.most_reading.max(me.reading);
                me.reads.push(access);
                me.queue.after(me.memory, Ev::Answer(me.reads.len() as u32 - 1));
            }
            Out::Fault(translation) => {
                // Where the unit knows the frame itself, it does not look at this one.
                me.faults.push(Translation { frame: translation.page + 7, ..translation });
                if me.refuses {
                    me.queue.after(me.memory, Ev::Refuse(me.faults.len() as u32 - 1));
                }
                if let Some(delay) = me.fault {
                    me.queue.after(delay, Ev::Resolve(me.faults.len() as u32 - 1));
                }
            }
            Out::Translated(_) => {}
        }
    },
}

impl Around {
    fn new() -> Around {
        Around {
            queue: EventQueue::new(),
            sent: Vec::new(),
            reads: Vec::new(),
            faults: Vec::new(),
            reading: 0,
            most_reading: 0,
            memory: ns(100),
            fault: None,
            refuses: false,
            in_flash: |_, _| false,
        }
    }

    fn run(&mut self, mmu: &mut Mmu) {
        while self.step(mmu) {}
    }

    /// Runs one event. Returns false if there was none.
    fn step(&mut self, mmu: &mut Mmu) -> bool {
        match self.queue.pop() {
            Some(Ev::Mmu(event)) => mmu.handle(event, self),
            Some(Ev::Answer(read)) => {
                self.reading -= 1;
                let mut access = self.reads[read as usize];
                if access.absent == Absent::Signal && (self.in_flash)(access.address, read as usize) {
                    access.absent = Absent::Signalled;
                }
                mmu.walked(access, self);
            }
            Some(Ev::Refuse(fault)) => {
                mmu.refuse(self.faults[fault as usize], self);
            }
            Some(Ev::Resolve(fault)) => mmu.resolve(self.faults[fault as usize], self),
            None => return false,
        }
        true
    }

    /// Requests a single page; returns the duration and the number of reads.
    fn one(&mut self, mmu: &mut Mmu, page: u64) -> (Time, usize) {
        let (start, reads) = (self.queue.now(), self.reads.len());
        mmu.translate(asks(page, start), self);
        self.run(mmu);
        let answer = self.answers().pop().expect("an answer");
        assert_eq!(answer.1.page, page);
        (answer.0.since(start), self.reads.len() - reads)
    }

    fn answers(&self) -> Vec<(Time, Translation)> {
        let answer = |(at, out): &(Time, Out)| match out {
            Out::Translated(translation) => Some((*at, *translation)),
            _ => None,
        };
        self.sent.iter().filter_map(answer).collect()
    }
}

fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

fn asks(page: u64, now: Time) -> Translation {
    Translation { port: 3, app: 0, page, frame: 0, absent: Absent::Wait, since: now }
}

fn signals(page: u64, now: Time) -> Translation {
    Translation { absent: Absent::Signal, ..asks(page, now) }
}

/// A unit of 1 GHz: a look-up of the shared TLB takes 10 ns, one of the walk cache 3 ns.
fn spec(table: PageTable) -> MmuSpec {
    MmuSpec {
        clock: Frequency::new(1_000_000_000),
        tlb: SharedTlbSpec { entries: 512, ways: 16, latency: 10 },
        walkers: 32,
        table,
    }
}

fn radix(levels: u8, page: u64) -> PageTable {
    let walk_cache = radix::WalkCache { entries: 64, ways: 4, latency: 3 };
    PageTable::radix(radix::Params { levels, page: Bytes::new(page), walk_cache })
}

fn unit(table: PageTable, bytes: u64, residency: Residency) -> Mmu {
    let mut mmu = Mmu::new(&spec(table), 16, LINE).expect("can be built");
    mmu.add_app(0, bytes, residency);
    mmu
}

#[test]
fn a_hit_costs_its_look_up_and_one_look_up_begins_a_cycle() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, Always), Around::new());
    around.one(&mut mmu, 7);
    assert_eq!(around.one(&mut mmu, 7), (ns(10), 0));
    let start = around.queue.now();
    for _ in 0..3 {
        mmu.translate(asks(7, start), &mut around);
    }
    around.run(&mut mmu);
    let times: Vec<Time> = around.answers()[2..].iter().map(|(at, _)| at.since(start)).collect();
    assert_eq!(times, [ns(10), ns(11), ns(12)]);
    assert_eq!((mmu.stats.translations, mmu.stats.tlb_hits, mmu.stats.walks), (5, 4, 1));
}

/// The tables of 1 GiB in pages of 4 KiB: 512 leaf tables behind the data, then one table for each further level.
#[test]
fn a_walk_reads_the_entries_that_the_walk_cache_lacks() {
    const GIB: u64 = 1 << 30;
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 513 * GIB, Always), Around::new());
    let leaves = 513 * GIB;
    let second = leaves + 513 * (2 << 20);
    let third = second + 513 * 4096;
    let root = third + 2 * 4096;
    assert_eq!((mmu.top(), mmu.table_bytes()), (root + 4096, root + 4096 - leaves));
    // Look-ups of TLB and, for each of three upper levels, of the walk cache; then the reads.
    let cost = |reads: usize| (ns(10 + 3 * 3 + 100 * reads as u64), reads);
    assert_eq!(around.one(&mut mmu, 0), cost(4), "nothing is cached");
    assert_eq!(around.one(&mut mmu, 511), cost(1), "the same leaf table");
    assert_eq!(around.one(&mut mmu, 513), cost(2), "another leaf table under the same second level");
    assert_eq!(around.one(&mut mmu, 3 << 18), cost(3), "another GiB");
    let last = 512 << 18;
    assert_eq!(around.one(&mut mmu, last + 1), cost(4), "another 512 GiB");
    let read: Vec<u64> = around.reads.iter().map(|access| access.address).collect();
    // Lines of the entries, walk by walk, root first.
    let by_hand: Vec<u64> = [
        &[(root, 0), (third, 0), (second, 0), (leaves, 0)][..],
        &[(leaves, 511)],
        &[(second, 1), (leaves, 513)],
        &[(third, 3), (second, 3 << 9), (leaves, 3 << 18)],
        &[(root, 1), (third, 512), (second, 512 << 9), (leaves, last + 1)],
    ]
    .concat()
    .into_iter()
    .map(|(table, entry)| (table + entry * 8) / 128 * 128)
    .collect();
    assert_eq!(read, by_hand);
    let access = around.reads[0];
    assert_eq!((access.port, access.pc, access.bytes, access.app), (16, 0, 8, 0));
    assert_eq!((mmu.stats.walk_reads, mmu.stats.walk_cached), (14, 5 * 4 - 14));
}

#[test]
fn a_look_up_in_the_block_table_reads_no_memory() {
    let params = block::Params { reach: Bytes::from_kib(192 << 10), latency: 4, field_bits: 20 };
    let (mut mmu, mut around) = (unit(PageTable::block(params), 1 << 40, Always), Around::new());
    assert_eq!(mmu.reach(), 201_326_592);
    assert_eq!(around.one(&mut mmu, 5), (ns(14), 0));
    assert_eq!(around.answers()[0].1.frame, 5);
    let entries = (1u64 << 40).div_ceil(192 << 20);
    assert_eq!((mmu.table_bytes(), mmu.top()), (entries * 10, entries * (192 << 20)));
}

#[test]
fn applications_lie_one_behind_the_other() {
    let mut mmu = unit(radix(4, PAGE), 3 * PAGE + 1, Always);
    mmu.add_app(2, 5 * PAGE, Always);
    mmu.add_app(1, PAGE, Always);
    let mut around = Around::new();
    for (app, page) in [(0, 3), (2, 0), (2, 4), (1, 0)] {
        mmu.translate(Translation { app, ..asks(page, Time::ZERO) }, &mut around);
    }
    around.run(&mut mmu);
    let mut frames: Vec<u64> = around.answers().iter().map(|(_, answer)| answer.frame).collect();
    frames.sort_unstable();
    assert_eq!(frames, [3, 4, 8, 9]);
    assert_eq!(mmu.table_bytes(), 3 * 4 * 4096);
    assert_eq!(mmu.top(), 12 * 4096 + (10 * PAGE).next_multiple_of(4096));
}

#[test]
fn translations_of_one_page_share_a_walk() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, Always), Around::new());
    for port in 0..5 {
        mmu.translate(Translation { port, ..asks(9, Time::ZERO) }, &mut around);
    }
    assert_eq!(mmu.outstanding(), 5);
    around.run(&mut mmu);
    let answers = around.answers();
    assert_eq!(
        answers.iter().map(|(at, a)| (*at, a.port)).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4].map(|p| (ns(419), p))
    );
    assert_eq!((around.reads.len(), mmu.stats.walks, mmu.stats.merged, mmu.outstanding()), (4, 1, 4, 0));
    // The look-ups end at 10 to 14 ns; the rest of 419 ns is the walk.
    let looked: u64 = (10..15).sum();
    assert_eq!(mmu.tally.reads()[Stage::Tlb as usize], u128::from(ns(looked).ps()));
    assert_eq!(mmu.tally.reads()[Stage::Walk as usize], u128::from(ns(5 * 419 - looked).ps()));
}

#[test]
fn more_walks_than_threads_wait_in_order() {
    let (mut mmu, mut around) = (unit(radix(1, 2 << 20), 1 << 30, Always), Around::new());
    for page in 0..80 {
        mmu.translate(asks(page, Time::ZERO), &mut around);
    }
    around.run(&mut mmu);
    assert_eq!((around.most_reading, mmu.stats.walks, mmu.stats.walks_queued), (32, 80, 48));
    let answers = around.answers();
    assert!(answers.iter().map(|(_, answer)| answer.page).eq(0..80));
    // A look-up begins every nanosecond; walk n takes the thread of walk n - 32.
    for (page, (at, _)) in (0..).zip(&answers) {
        assert_eq!(*at, ns(10 + page % 32 + 100 * (page / 32 + 1)), "page {page}");
    }
}

#[test]
fn a_fault_waits_until_it_is_resolved() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, ByPage), Around::new());
    for _ in 0..2 {
        mmu.translate(asks(9, Time::ZERO), &mut around);
    }
    around.run(&mut mmu);
    assert_eq!((around.faults.len(), around.answers().len(), mmu.outstanding()), (1, 0, 2));
    assert_eq!((around.faults[0].page, around.faults[0].since), (9, ns(419)), "the walk comes first");
    // One that comes later joins the fault; other pages are not held up.
    mmu.translate(asks(9, around.now()), &mut around);
    mmu.resolve(asks(4000, around.now()), &mut around);
    mmu.translate(asks(4000, around.now()), &mut around);
    around.run(&mut mmu);
    assert_eq!(around.answers().iter().map(|(_, answer)| answer.page).collect::<Vec<_>>(), [4000]);
    mmu.resolve(around.faults[0], &mut around);
    assert_eq!((around.answers().len(), mmu.outstanding()), (4, 0));
    assert_eq!((mmu.stats.faults, mmu.stats.merged, mmu.stats.fault_merged), (1, 1, 1));
    assert_eq!(around.one(&mut mmu, 9), (ns(10), 0), "now it is in the TLB");
    mmu.evict(0, 9);
    mmu.translate(asks(9, around.now()), &mut around);
    around.run(&mut mmu);
    assert_eq!((around.faults.len(), around.answers().len()), (2, 5), "evicted, it faults again");
}

#[test]
fn a_page_that_comes_in_during_its_walk_does_not_fault() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, ByPage), Around::new());
    mmu.translate(asks(9, Time::ZERO), &mut around);
    while around.reads.len() < 2 {
        assert!(around.step(&mut mmu));
    }
    mmu.resolve(asks(9, Time::ZERO), &mut around);
    assert_eq!(around.answers().len(), 0, "the walk is not over");
    around.run(&mut mmu);
    assert_eq!((around.faults.len(), around.answers().len(), mmu.outstanding()), (0, 1, 0));
    assert_eq!(around.answers()[0].0, ns(419));
}

#[test]
fn a_walk_that_meets_an_absent_table_ends_for_those_who_do_not_wait() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, Always), Around::new());
    // The leaf table, behind the data, is in flash.
    around.in_flash = |address, _| address < (1 << 30) + (2 << 20);
    mmu.translate(signals(9, Time::ZERO), &mut around);
    while around.reads.len() < 4 {
        assert!(around.step(&mut mmu));
    }
    assert_eq!(around.now(), ns(319));
    mmu.translate(asks(9, ns(319)), &mut around);
    around.run(&mut mmu);
    let answers: Vec<_> = around.answers().iter().map(|(at, a)| (*at, a.absent, a.frame)).collect();
    assert_eq!(answers, [(ns(419), Absent::Signalled, 0), (ns(519), Absent::Wait, 9)]);
    let reads: Vec<Absent> = around.reads.iter().map(|access| access.absent).collect();
    assert_eq!(reads, [Absent::Signal, Absent::Signal, Absent::Signal, Absent::Signal, Absent::Wait]);
    assert_eq!(around.reads[3].address, around.reads[4].address);
    // No translation waits for a different page of that table: its walk is over, and its thread free.
    mmu.translate(signals(20, around.now()), &mut around);
    around.run(&mut mmu);
    assert_eq!((around.answers()[2].1.absent, mmu.outstanding()), (Absent::Signalled, 0));
    around.in_flash = |_, _| false;
    assert_eq!(around.one(&mut mmu, 20), (ns(10 + 3 * 3 + 100), 1), "not in the TLB");
    assert_eq!((mmu.stats.signalled, mmu.stats.walks, mmu.stats.merged), (2, 3, 1));
}

#[test]
fn a_unit_that_does_not_know_asks_at_the_end_of_a_walk() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 40, Asked), Around::new());
    around.fault = Some(ns(1000));
    assert_eq!(around.one(&mut mmu, 9), (ns(419 + 1000), 4));
    assert_eq!(around.answers()[0].1.frame, 16, "the frame that it was told");
    assert_eq!(around.one(&mut mmu, 9), (ns(10), 0), "in the TLB");
    assert_eq!(around.answers()[1].1.frame, 16);
    mmu.evict(0, 9);
    assert_eq!(around.one(&mut mmu, 9), (ns(119 + 1000), 1), "it asks again");
    // An answer without waiters is not remembered.
    mmu.resolve(Translation { frame: 5, ..asks(10, around.now()) }, &mut around);
    assert_eq!((around.one(&mut mmu, 10), mmu.stats.faults), ((ns(1119), 1), 3));
}

#[test]
fn a_refused_page_holds_only_those_who_wait() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 40, Asked), Around::new());
    mmu.translate(signals(9, Time::ZERO), &mut around);
    mmu.translate(asks(9, Time::ZERO), &mut around);
    around.run(&mut mmu);
    assert_eq!(around.faults[0].absent, Absent::Wait, "it speaks for both");
    assert!(mmu.refuse(around.faults[0], &mut around), "one is left");
    assert_eq!(around.answers().iter().map(|(_, a)| a.absent).collect::<Vec<_>>(), [Absent::Signalled]);
    let now = around.now();
    mmu.translate(signals(9, now), &mut around);
    around.run(&mut mmu);
    assert_eq!(
        around.answers()[1..].iter().map(|(at, a)| (*at, a.absent)).collect::<Vec<_>>(),
        [(now + ns(10), Absent::Signalled)]
    );
    mmu.resolve(around.faults[0], &mut around);
    let last = around.answers()[2].1;
    assert_eq!((last.absent, last.frame, mmu.outstanding()), (Absent::Wait, 16, 0));
    // Without waiters, the page is forgotten: the next one walks and asks.
    mmu.translate(signals(30, around.now()), &mut around);
    around.run(&mut mmu);
    assert_eq!(around.faults[1].absent, Absent::Signal);
    assert!(!mmu.refuse(around.faults[1], &mut around));
    assert!(!mmu.refuse(around.faults[1], &mut around), "nothing is there to be refused");
    mmu.translate(signals(30, around.now()), &mut around);
    around.run(&mut mmu);
    assert_eq!((around.faults.len(), mmu.stats.walks, mmu.stats.signalled), (3, 3, 3));
}

#[test]
#[should_panic(expected = "more than 2 translations")]
fn more_translations_than_the_sources_can_have_are_a_fault_of_the_machine() {
    let (mut mmu, mut around) = (unit(radix(4, PAGE), 1 << 30, Always), Around::new());
    mmu.bound(2);
    for page in 0..3 {
        mmu.translate(asks(page, Time::ZERO), &mut around);
    }
}

/// ZnG: 80 KB for a terabyte (sections III-B and VI). Fields of 20 bits number its 2^20 blocks, so an entry represents
/// 128 of them. Neither its Table I (384 pages a block, 1.5 TiB) nor 1 TiB in 1 MiB blocks changes that.
#[test]
fn the_block_table_of_zng_has_80_kib() {
    for (pages, reach) in [(384, 192 << 20), (256, 128 << 20)] {
        let size = block::Size::of(1024, 1024, pages, reach).expect("whole blocks");
        assert_eq!((size.entries, size.field_bits, size.bytes), (8192, 20, 80 << 10));
        assert_eq!(size.to_string(), "8192 entries x 4 fields x 20 bits = 81920 B");
    }
    // One entry a block would be 10 MiB.
    assert_eq!(block::Size::of(1024, 1024, 384, 384 * PAGE).expect("whole blocks").bytes, 10 << 20);
    // 1 TiB of Table I's blocks is 699,050.7 of them; fields still need 20 bits.
    let tebibyte = block::Size::of(1, (1 << 40) / (384 * PAGE), 384, 192 << 20).expect("whole blocks");
    assert_eq!((tebibyte.entries, tebibyte.field_bits, tebibyte.bytes), (5462, 20, 54_620));
    assert_eq!(block::Size::of(1024, 1024, 384, 100 << 20), None, "not a number of whole blocks");
}

#[test]
fn what_cannot_be_built_names_its_key() {
    let bad = |change: &dyn Fn(&mut MmuSpec)| {
        let mut spec = spec(radix(4, PAGE));
        change(&mut spec);
        spec.check().expect_err("cannot be built").key
    };
    assert_eq!(bad(&|s| s.walkers = 0), "walkers");
    assert_eq!(bad(&|s| s.clock = Frequency::new(0)), "clock");
    assert_eq!(bad(&|s| s.tlb.ways = 7), "tlb.ways");
    assert_eq!(bad(&|s| s.tlb.entries = 0), "tlb.entries");
    assert_eq!(bad(&|s| s.table = radix(6, PAGE)), "table.radix.levels");
    assert_eq!(bad(&|s| s.table = radix(4, 5000)), "table.radix.page");
    let block = |reach| PageTable::block(block::Params { reach: Bytes::new(reach), ..Default::default() });
    assert_eq!(bad(&|s| s.table = block(5000)), "table.block.reach");
}

#[test]
fn every_table_keeps_its_contract() {
    for form in PageTable::all_defaults() {
        form.check().expect("defaults can be built");
        let mut table = form.build(&());
        let reach = table.reach();
        assert!(reach >= PAGE && reach <= table.span(), "{}", form.name());
        let (pages, base) = ([5000, 0, 70_000], 1 << 44);
        let end = table.lay_out(&pages, base);
        assert!(table.bytes() > 0, "{}", form.name());
        for (app, page) in [(0, 0), (0, 4999), (2, 69_999), (2, 0), (2, 69_999)] {
            let (mut level, mut reads) = (0, Vec::new());
            while let Some(address) = table.step(app, page, &mut level).read {
                reads.push(address);
            }
            assert!(reads.len() <= 16, "{}", form.name());
            assert!(reads.iter().all(|a| (base..end).contains(a) && a % ENTRY == 0), "{}", form.name());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every translation comes back once, with its frame, and its stages sum to its latency.
    #[test]
    fn every_translation_comes_back_once(
        asked in proptest::collection::vec((0u64..200, 0u64..3, any::<bool>(), any::<bool>()), 1..200),
        memory in 1u64..400,
        fault in 1u64..3000,
        levels in 2u8..5,
        walkers in 1u32..6,
        resident in any::<bool>(),
    ) {
        let mut mmu = Mmu::new(&MmuSpec { walkers, ..spec(radix(levels, PAGE)) }, 16, LINE).expect("can be built");
        let residency = if resident { Always } else { ByPage };
        mmu.add_app(0, 100 * PAGE, residency);
        mmu.add_app(1, 200 * PAGE, residency);
        let mut around = Around::new();
        (around.memory, around.fault) = (ns(memory), Some(ns(fault)));
        let mut total = 0;
        for (n, (page, app, drain, evict)) in (0u16..).zip(&asked) {
            let (app, page) = (u8::from(*app > 0), if *app > 0 { *page } else { *page % 100 });
            // Only what does not wait for a fault may be evicted: nothing else is resident.
            if *drain {
                around.run(&mut mmu);
                if *evict {
                    mmu.evict(app, page);
                }
            }
            mmu.translate(Translation { port: n, app, page, frame: 0, absent: Absent::Wait, since: around.now() }, &mut around);
            total -= i128::from(around.now().ps());
        }
        around.run(&mut mmu);
        let mut answers = around.answers();
        total += answers.iter().map(|(at, _)| i128::from(at.ps())).sum::<i128>();
        prop_assert_eq!(total as u128, mmu.tally.reads().iter().sum::<u128>());
        answers.sort_by_key(|(_, answer)| answer.port);
        prop_assert!(answers.iter().map(|(_, answer)| usize::from(answer.port)).eq(0..asked.len()));
        for (_, answer) in &answers {
            prop_assert_eq!(answer.frame, answer.page + 100 * u64::from(answer.app));
        }
        prop_assert_eq!(mmu.outstanding(), 0);
        prop_assert!(around.most_reading <= walkers as usize);
        prop_assert!(around.reads.iter().all(|read| (300 * PAGE..mmu.top()).contains(&read.address)));
        let stats = &mmu.stats;
        prop_assert_eq!(stats.translations, stats.tlb_hits + stats.merged + stats.fault_merged + stats.walks);
        prop_assert_eq!(stats.walk_reads + stats.walk_cached, stats.walks * u64::from(levels));
        prop_assert_eq!(stats.walk_reads as usize, around.reads.len());
        prop_assert_eq!(stats.faults as usize, around.faults.len());
    }
    /// As above for translations that do not wait, in a unit that asks: each comes back once, with a frame or a signal,
    /// and with a frame if it waits.
    #[test]
    fn every_translation_comes_back_once_without_a_frame_at_most_if_it_may(
        asked in proptest::collection::vec((0u64..40, any::<bool>(), any::<bool>()), 1..150),
        memory in 1u64..200,
        fault in 1u64..2000,
        walkers in 1u32..4,
        refuses in any::<bool>(),
        frequent in any::<bool>(),
    ) {
        let mut mmu = Mmu::new(&MmuSpec { walkers, ..spec(radix(3, PAGE)) }, 16, 64).expect("can be built");
        mmu.add_app(0, 40 * PAGE, Asked);
        let mut around = Around::new();
        (around.memory, around.fault, around.refuses) = (ns(memory), Some(ns(fault)), refuses);
        around.in_flash = if frequent { |_, n| n % 2 == 0 } else { |_, n| n % 7 == 0 };
        let mut total = 0;
        for (n, (page, drain, waits)) in (0u16..).zip(&asked) {
            if *drain {
                around.run(&mut mmu);
                mmu.evict(0, *page);
            }
            let absent = if *waits { Absent::Wait } else { Absent::Signal };
            mmu.translate(Translation { port: n, absent, ..asks(*page, around.now()) }, &mut around);
            total -= i128::from(around.now().ps());
            around.step(&mut mmu);
        }
        around.run(&mut mmu);
        let mut answers = around.answers();
        total += answers.iter().map(|(at, _)| i128::from(at.ps())).sum::<i128>();
        prop_assert_eq!(total as u128, mmu.tally.reads().iter().sum::<u128>());
        answers.sort_by_key(|(_, answer)| answer.port);
        prop_assert!(answers.iter().map(|(_, answer)| usize::from(answer.port)).eq(0..asked.len()));
        let signalled = answers.iter().filter(|(_, answer)| answer.absent == Absent::Signalled).count();
        prop_assert_eq!(mmu.stats.signalled as usize, signalled);
        for ((_, answer), (page, _, waits)) in answers.iter().zip(&asked) {
            let frame = if answer.absent == Absent::Signalled { 0 } else { page + 7 };
            prop_assert_eq!((answer.page, answer.frame), (*page, frame));
            prop_assert!(!waits || answer.absent == Absent::Wait);
        }
        prop_assert_eq!(mmu.outstanding(), 0);
    }
}
