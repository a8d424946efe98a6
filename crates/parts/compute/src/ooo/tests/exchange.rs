//! Lines that change hands while something is under way for them.
//!
//! Lines are named by their numbers; page 2 begins with line 128, page 3 with 192, page 4 with 256.

use super::super::*;
use super::hand::Hand;
use super::{op, spec};
use proto::cpu::{Op, OpKind};

const HERE: (bool, bool) = (true, false);
const CHANGED: (bool, bool) = (true, true);
const AWAY: (bool, bool) = (false, false);

fn load(line: u64, needs: u16) -> Op {
    op(OpKind::Load, 1, [needs, 0], line * LINE)
}

fn store(line: u64, needs: u16) -> Op {
    op(OpKind::Store, 1, [needs, 0], line * LINE)
}

/// A data cache of one line.
fn one_line() -> CpuSpec {
    let mut spec = spec();
    (spec.l1d.sets, spec.l1d.ways) = (1, 1);
    spec
}

/// Three threads, all of which may be halted, and jobs without end.
fn three_threads() -> CpuSpec {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending) = (3, 3);
    spec.threads.scheduler = super::ThreadScheduling::notified;
    spec.load.jobs = 100;
    spec
}

/// A load's address is ready in cycle 3, and its look-up takes two.
#[test]
fn a_line_on_its_way_is_not_here_for_a_probe_and_comes_all_the_same() {
    let mut hand = Hand::begun(&spec(), vec![vec![load(192, 0)]]);
    assert_eq!(hand.until(10).asked(), [(5, 192, AccessKind::Read, Absent::Signal)]);
    assert_eq!(hand.probe(20, 192, true), AWAY);
    hand.answer(50, 192, AccessKind::Own);
    assert_eq!(hand.cores.cores[0].l1d.look(192), Some(&mut l1::Held::Exclusive));
    assert_eq!(hand.probe(60, 192, true), HERE);
    assert_eq!(hand.gone(), (vec![], vec![]));
}

/// The load's line is there at 50; the store's result a cycle later, it retires in cycle 51, goes to the cache in the next, and
/// finds after a look-up that it may not change the line.
#[test]
fn a_shared_copy_is_upgraded_and_stays_until_somebody_takes_it() {
    let ops = || vec![vec![load(192, 0), store(192, 1)]];
    let mut hand = Hand::begun(&spec(), ops());
    hand.answer(50, 192, AccessKind::Read);
    assert_eq!(hand.until(60).asked()[1..], [(54, 192, AccessKind::Own, Absent::Signal)]);
    assert_eq!(hand.probe(61, 192, false), HERE);
    hand.answer(80, 192, AccessKind::Own);
    assert_eq!(hand.probe(90, 192, false), CHANGED);
    assert_eq!(hand.cores.over_at(), Some(Time::from_ns(80)));

    // The same, but another core gets the line first: the answer brings its changes, and the line is modified here.
    let mut hand = Hand::begun(&spec(), ops());
    hand.answer(50, 192, AccessKind::Read);
    assert_eq!((hand.probe(60, 192, true), hand.probe(61, 192, true)), (HERE, AWAY));
    hand.answer(80, 192, AccessKind::Own);
    assert_eq!(hand.cores.cores[0].l1d.look(192), Some(&mut l1::Held::Modified));
    assert_eq!((hand.asked().len(), hand.gone()), (2, (vec![], vec![])));
}

/// The directory must know of a copy whose upgrade is under way: it is not dropped when another line takes its place.
#[test]
fn a_copy_whose_upgrade_is_under_way_makes_room_without_a_word() {
    let mut hand = Hand::begun(&one_line(), vec![vec![load(192, 0), store(192, 1), load(193, 2)]]);
    hand.answer(50, 192, AccessKind::Read);
    let asked = [(52, 193, AccessKind::Read, Absent::Signal), (54, 192, AccessKind::Own, Absent::Signal)];
    assert_eq!(hand.until(60).asked()[1..], asked);
    hand.answer(100, 193, AccessKind::Own);
    assert_eq!((hand.gone(), hand.probe(101, 192, true)), ((vec![], vec![]), AWAY));
    // Its answer counts as the line. Now the other one goes, of which nothing is wanted any more.
    hand.answer(120, 192, AccessKind::Own);
    assert_eq!((hand.gone(), hand.probe(121, 192, false)), ((vec![193], vec![]), CHANGED));
}

#[test]
fn a_changed_line_that_makes_room_is_written_back_and_nobody_waits_for_that() {
    let mut hand = Hand::begun(&one_line(), vec![vec![store(192, 0), load(193, 0)]]);
    hand.answer(50, 192, AccessKind::Own).answer(60, 193, AccessKind::Own);
    assert_eq!((hand.gone(), hand.cores.stats().write_backs), ((vec![], vec![192]), 1));
    let before = hand.log.len();
    hand.written(90, 192).until(200);
    assert_eq!((hand.log.len(), hand.cores.is_done()), (before, true));
}

/// The load is executed before the older store has retired, so that the store finds the line on its way.
#[test]
fn a_store_joins_the_fetch_of_a_younger_load() {
    let ops = || vec![vec![store(192, 0), load(192, 0)]];
    // No other core has the line: one request serves both.
    let mut hand = Hand::begun(&spec(), ops());
    hand.answer(50, 192, AccessKind::Own);
    assert_eq!(hand.until(100).asked().iter().map(|asked| asked.2).collect::<Vec<_>>(), [AccessKind::Read]);
    assert_eq!((hand.probe(101, 192, false), hand.cores.is_done()), (CHANGED, true));

    // A different core has a copy: the load goes on, and the store is tried again at once, which takes a look-up.
    let mut hand = Hand::begun(&spec(), ops());
    hand.answer(50, 192, AccessKind::Read);
    assert_eq!(hand.until(60).asked()[1..], [(52, 192, AccessKind::Own, Absent::Signal)]);
    assert_eq!((hand.probe(61, 192, false), hand.cores.over_at()), (HERE, None));
    hand.answer(90, 192, AccessKind::Own);
    assert_eq!((hand.cores.over_at(), hand.probe(91, 192, false)), (Some(Time::from_ns(90)), CHANGED));
}

/// Job 0 is halted at 20: ten cycles of flush, 100 of the switch. Its second load's line is still on its way then, and job 1 wants
/// it. An atomic needs the only copy.
#[test]
fn an_atomic_that_gets_a_shared_copy_asks_again() {
    let atomic = vec![op(OpKind::Atomic, 1, [0, 0], 192 * LINE)];
    let jobs = || vec![vec![load(128, 0), load(192, 0)], atomic.clone()];
    let mut hand = Hand::begun(&three_threads(), jobs());
    hand.signal(20, 128).until(199);
    assert_eq!((hand.asked().len(), hand.cores.jobs_begun()), (2, 2));
    hand.answer(200, 192, AccessKind::Read);
    assert_eq!(hand.until(210).asked()[2..], [(202, 192, AccessKind::Own, Absent::Signal)]);
    hand.answer(250, 192, AccessKind::Own);
    assert_eq!((hand.probe(260, 192, false), hand.cores.jobs_ended()), (CHANGED, 1));

    // If no other core has it, the request of the halted job is enough.
    let mut hand = Hand::begun(&three_threads(), jobs());
    hand.signal(20, 128).answer(200, 192, AccessKind::Own).until(210);
    assert_eq!((hand.asked().len(), hand.probe(210, 192, false)), (2, CHANGED));
}

/// Lines requested by a halted job enter the cache.
#[test]
fn a_line_that_nobody_waits_for_any_more_is_taken_in() {
    let mut hand = Hand::begun(&three_threads(), vec![vec![load(128, 0), load(192, 0)]]);
    hand.signal(20, 128).answer(50, 192, AccessKind::Own);
    assert_eq!(hand.cores.cores[0].l1d.look(192), Some(&mut l1::Held::Exclusive));
}

/// One register: the second store is tried again when the first one's line has come.
#[test]
fn a_store_without_a_register_is_tried_again() {
    let mut spec = spec();
    spec.l1d.registers = 1;
    let mut hand = Hand::begun(&spec, vec![vec![store(192, 0), store(193, 0)]]);
    // The address in cycle 3, the result in 4; it retires there and goes to the cache in 5.
    assert_eq!(hand.until(40).asked(), [(7, 192, AccessKind::Own, Absent::Signal)]);
    hand.answer(50, 192, AccessKind::Own);
    assert_eq!(hand.until(60).asked()[1..], [(52, 193, AccessKind::Own, Absent::Signal)]);
    hand.answer(70, 193, AccessKind::Own);
    assert_eq!(hand.cores.over_at(), Some(Time::from_ns(70)));
}

/// Job 0 waits for page 2 and is halted at 20; job 1 runs from 130 on, asks for the same line, and is halted at 150 because of page
/// 4. Job 0 goes on at 260 and finds job 1's request, which may be refused: its own must not.
fn refused_for_somebody_else(first: Op) -> Hand {
    let mut hand = Hand::begun(&three_threads(), vec![vec![first], vec![load(256, 0), load(128, 0)]]);
    hand.signal(20, 128).arrived(140, 2).signal(150, 256).until(299);
    assert_eq!((hand.asked().len(), hand.cores.jobs_begun()), (3, 2));
    hand.signal(300, 128).until(310);
    hand
}

#[test]
fn an_access_that_must_complete_asks_again_where_another_was_refused() {
    let hand = refused_for_somebody_else(load(128, 0));
    assert_eq!(hand.asked()[3..], [(302, 128, AccessKind::Read, Absent::Wait)]);
    assert_eq!(hand.cores.stats().halts, 2);
    let hand = refused_for_somebody_else(store(128, 0));
    assert_eq!(hand.asked()[3..], [(302, 128, AccessKind::Own, Absent::Wait)]);
    assert_eq!((hand.cores.stats().halts, hand.cores.stats().store_halts), (2, 1));
}

/// A frame that had data has text now: the directory knows a core, not which of its caches.
#[test]
fn text_takes_its_line_out_of_the_data_cache() {
    let text = (1 << 30) / LINE;
    for (held, dropped, written) in
        [(l1::Held::Modified, vec![], vec![text]), (l1::Held::Shared, vec![text], vec![])]
    {
        let mut hand = Hand::new(&spec(), vec![vec![load(192, 0)]]);
        hand.cores.cores[0].l1d.fill(text, held);
        hand.begin();
        assert_eq!(hand.until(4).gone(), (dropped, written));
        // It is given up before the text is asked for, after the instruction cache's look-up.
        let [.., (2, before), (2, Out::Access(asked)), _] = hand.log[..] else { panic!("{:?}", hand.log) };
        assert!((asked.tag, asked.address) == (TEXT, text * LINE) && before != Out::Access(asked));
        assert!(hand.cores.cores[0].l1d.look(text).is_none());
        assert_eq!(hand.probe(5, text, false), HERE);
    }
}

#[test]
fn data_take_their_line_out_of_the_instruction_cache() {
    let mut hand = Hand::new(&spec(), vec![vec![load(192, 0)]]);
    hand.text_frame = Some(3);
    hand.begin();
    assert_eq!(hand.until(4).probe(4, 192, false), HERE);
    assert_eq!((hand.until(10).gone(), hand.probe(10, 192, false)), ((vec![192], vec![]), AWAY));
}

#[test]
fn probes_find_text_and_lines_of_text_make_room() {
    let text = (1 << 30) / LINE;
    let mut spec = spec();
    (spec.l1i.sets, spec.l1i.ways) = (1, 1);
    let second = Op { pc: LINE as u32, ..load(193, 0) };
    let mut hand = Hand::begun(&spec, vec![vec![load(192, 0), second]]);
    assert_eq!(hand.until(20).gone(), (vec![text], vec![]));
    assert_eq!(hand.probe(20, text, true), AWAY);
    assert_eq!((hand.probe(20, text + 1, true), hand.probe(20, text + 1, true)), (HERE, AWAY));
}

/// Job 0 needs its second line of text from cycle 3 on, and is halted at 20 before that has come. Job 1 begins at 130 with the third:
/// it asks for it after its look-up if there is a second register, else when the first is free.
#[test]
fn a_second_register_for_text_helps_a_thread_that_runs_while_another_ones_text_is_under_way() {
    let at = |line: u32, op: Op| Op { pc: line * LINE as u32, ..op };
    let compute = op(OpKind::Compute, 1, [0, 0], 0);
    for (registers, expected) in [(2, 132..=132), (1, 500..=502)] {
        let mut spec = three_threads();
        spec.l1i.registers = registers;
        let jobs = vec![vec![load(128, 0), at(1, compute)], vec![at(2, compute)]];
        let mut hand = Hand::begun(&spec, jobs);
        hand.until(3).text_by_hand = true;
        let text = (1 << 30) / LINE;
        hand.signal(20, 128).answer(500, text + 1, AccessKind::Read).until(510);
        let third = hand.log.iter().filter_map(|(at, out)| match out {
            Out::Access(access) if access.address == (text + 2) * LINE => Some(*at),
            _ => None,
        });
        let third: Vec<_> = third.collect();
        assert!(third.len() == 1 && expected.contains(&third[0]), "{registers}: {third:?}");
    }
}
