//! Tests of `fs/fs-writeback.c`.

use super::{busy, writeback};
use crate::Inode;
use crate::writeback::batch::chunk_size;
use crate::writeback::{
    Dirtier, DirtyFlags, Reason, Step, SyncInode, SyncMode, Wake, WriteInode, Writeback, WritebackSpec, Wrote,
};
use config::units::Duration;
use engine::Time;

/// Pages of 1 GiB: the background is 26176 pages, the limit 52416.
const AVAIL: u64 = 262_144;
const A: Inode = Inode(0);
const B: Inode = Inode(1);
const C: Inode = Inode(2);

fn ticks(ticks: u64) -> Time {
    Time::from_ms(4 * ticks)
}

fn dirty(writeback: &mut Writeback, inode: Inode, pages: u64, now: Time) -> Wake {
    writeback.dirtied(inode, 0, pages, &mut Dirtier::default(), 0, now)
}

/// Writes the pages of a step in no time. Returns the inode and its pages.
fn write(writeback: &mut Writeback, step: WriteInode, now: Time) -> (Inode, u64) {
    let pages = step.pages.min(writeback.dirty_of(step.inode));
    writeback.started(step.inode, pages);
    writeback.ended(step.inode, pages, now);
    writeback.wrote(0, Wrote { pages, skipped: 0, next: step.from + pages }, now);
    (step.inode, pages)
}

/// Writes of a run, its finished works, and the flusher's next run.
type Ran = (Vec<(Inode, u64)>, Vec<(Reason, u64)>, Option<Time>);

/// Runs a woken flusher until it sleeps.
fn run(writeback: &mut Writeback, now: Time) -> Ran {
    assert!(writeback.start(0, now));
    let (mut written, mut finished) = (Vec::new(), Vec::new());
    loop {
        match writeback.next(0, AVAIL, now) {
            Step::Write(step) => written.push(write(writeback, step, now)),
            Step::Finished { reason, pages, .. } => finished.push((reason, pages)),
            Step::Idle { again_at } => {
                writeback.check().expect("accounts hold");
                return (written, finished, again_at);
            }
        }
    }
}

fn the_write(step: Step) -> WriteInode {
    match step {
        Step::Write(write) => write,
        other => panic!("a step that writes, not {other:?}"),
    }
}

#[test]
fn slices_are_half_a_second_within_an_eighth_of_the_limit_in_pieces_of_4_mib() {
    // (12800 + 1024) / 1024 = 13.5: 13 pieces.
    assert_eq!(chunk_size(25_600, 838_656, u64::MAX), 13 * 1_024);
    // 52416 / 8 = 6552: (6552 + 1024) / 1024 = 7.4.
    assert_eq!(chunk_size(25_600, 52_416, u64::MAX), 7 * 1_024);
    assert_eq!(chunk_size(25_600, 52_416, 100), 1_024, "one piece at least");
    assert_eq!(chunk_size(25_600, 52_416, 1_024), 2_048);
}

#[test]
fn the_first_dirty_inode_sets_the_timer() {
    let mut writeback = busy(AVAIL);
    // 1250 ticks, rounded up to the next 64 of the kernel's count, which begins at 8 above one: 1272.
    assert_eq!(dirty(&mut writeback, A, 1, Time::ZERO), Wake::At(ticks(1_272)));
    assert_eq!(dirty(&mut writeback, A, 1, Time::ZERO), Wake::Nothing);
    assert_eq!(dirty(&mut writeback, B, 1, Time::from_s(1)), Wake::Nothing);
    assert!(!writeback.start(0, ticks(1_271)));
    assert_eq!(run(&mut writeback, ticks(1_272)), (vec![], vec![], Some(ticks(2_552))), "nothing is old");
}

#[test]
fn data_is_written_at_the_first_look_after_30_s() {
    let mut writeback = busy(AVAIL);
    let Wake::At(mut at) = dirty(&mut writeback, A, 10, Time::ZERO) else { panic!("a timer") };
    let mut written = Vec::new();
    let mut late = false;
    loop {
        if at > ticks(2_500) && !late {
            late = true;
            let _ = dirty(&mut writeback, B, 20, ticks(2_500));
        }
        let (pages, finished, again_at) = run(&mut writeback, at);
        written.extend(pages.into_iter().map(|(inode, pages)| (at, inode, pages)));
        assert!(finished.iter().all(|(reason, _)| *reason == Reason::Periodic));
        let Some(next) = again_at else { break };
        at = next;
    }
    // Runs are at 1272, 2552, 3832, 5112, 6392, 7672, 8952, 10232. Data of tick 0 is old at 7500, of 2500 at 10000.
    assert_eq!(written, [(ticks(7_672), A, 10), (ticks(10_232), B, 20)]);
    assert_eq!(writeback.flushers[0].runs, 8);
    assert_eq!(writeback.flushers[0].pages, [0, 0, 0, 30]);
}

#[test]
fn the_eldest_goes_first_however_often_it_is_dirtied() {
    let mut writeback = writeback(1, AVAIL);
    for (inode, at) in [(B, 1), (A, 2), (C, 3), (B, 4)] {
        let _ = dirty(&mut writeback, inode, 10, ticks(at));
    }
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Now);
    let (written, finished, again_at) = run(&mut writeback, ticks(5));
    assert_eq!(written, [(B, 20), (A, 10), (C, 10)]);
    assert_eq!((finished, again_at), (vec![(Reason::Vmscan, 40)], None));
}

#[test]
fn large_inodes_take_turns() {
    let mut writeback = writeback(1, AVAIL);
    for inode in [A, B] {
        let _ = dirty(&mut writeback, inode, 10_000, Time::ZERO);
    }
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Now);
    assert!(writeback.start(0, Time::ZERO));
    // 20002 pages and inodes are to be written. A slice is 7168 pages; the third is the rest, 5666 and 1024 in whole
    // pieces, the fourth 2834 and 1024.
    let mut slices = Vec::new();
    let finished = loop {
        match writeback.next(0, AVAIL, Time::ZERO) {
            Step::Write(step) => {
                slices.push((step.inode, step.pages, step.from));
                write(&mut writeback, step, Time::ZERO);
            }
            other => break other,
        }
    };
    assert_eq!(slices, [(A, 7_168, 0), (B, 7_168, 0), (A, 6_144, 7_168), (B, 3_072, 7_168)]);
    assert_eq!(finished, Step::Finished { reason: Reason::Vmscan, pages: 20_000, work: None });
}

#[test]
fn the_background_stops_at_its_threshold() {
    let mut writeback = writeback(1, AVAIL);
    let mut task = Dirtier::default();
    let _ = writeback.dirtied(A, 0, 40_000, &mut task, 0, Time::ZERO);
    assert_eq!(writeback.balance(0, &mut task, 0, AVAIL, Time::ZERO).wake, Wake::Now);
    let (written, finished, again_at) = run(&mut writeback, ticks(1));
    // 40000 - 7168 = 32832; 32832 - 7168 = 25664, below 26176.
    assert_eq!(written, [(A, 7_168), (A, 7_168)]);
    assert_eq!(finished, [(Reason::Background, 14_336)]);
    // Its inode is among those that have had their slice. 1 + 1250 ticks, and the rest to 64.
    assert_eq!((writeback.queued_pages(0), again_at), (25_664, Some(ticks(1_272))));
    assert_eq!(writeback.flushers[0].pages, [14_336, 0, 0, 0]);
}

#[test]
fn a_device_that_has_written_nothing_has_no_threshold_of_its_own() {
    let mut writeback = writeback(2, AVAIL);
    // All writes so far were on the other drive: any dirty page of this one is too many, once the flusher runs.
    let _ = writeback.dirtied(B, 1, 100, &mut Dirtier::default(), 0, Time::ZERO);
    writeback.started(B, 100);
    writeback.ended(B, 100, Time::ZERO);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    let (written, finished, _) = run(&mut writeback, ticks(1_272));
    assert_eq!((written, finished), (vec![(A, 10)], vec![(Reason::Background, 10)]));
}

#[test]
fn thresholds_are_looked_at_every_tenth_of_a_second() {
    let mut writeback = writeback(1, AVAIL);
    for inode in [A, B, C] {
        let _ = dirty(&mut writeback, inode, 9_000, Time::ZERO);
    }
    let mut task = Dirtier { nr_dirtied: 32, ..Dirtier::default() };
    assert_eq!(writeback.balance(0, &mut task, 0, AVAIL, Time::ZERO).wake, Wake::Now);
    assert!(writeback.start(0, Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    // 25 ticks are a tenth of a second, and not more: the iteration goes on.
    assert_eq!(write(&mut writeback, step, ticks(25)), (A, 7_168));
    let step = the_write(writeback.next(0, AVAIL, ticks(25)));
    assert_eq!(write(&mut writeback, step, ticks(26)), (B, 7_168));
    // 27000 - 14336 pages are below the background.
    let finished = Step::Finished { reason: Reason::Background, pages: 14_336, work: None };
    assert_eq!(writeback.next(0, AVAIL, ticks(26)), finished);
}

#[test]
fn sync_writes_what_is_dirty_now_and_goes_before_the_background() {
    let mut writeback = writeback(1, AVAIL);
    let mut task = Dirtier::default();
    let _ = writeback.dirtied(A, 0, 40_000, &mut task, 0, Time::ZERO);
    let _ = writeback.balance(0, &mut task, 0, AVAIL, Time::ZERO).wake;
    assert!(writeback.start(0, Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    let (first, wake) = writeback.sync(0);
    assert_eq!(wake, Wake::Nothing, "it runs");
    let (second, _) = writeback.sync(0);
    write(&mut writeback, step, Time::ZERO);
    let background = Step::Finished { reason: Reason::Background, pages: 7_168, work: None };
    assert_eq!(writeback.next(0, AVAIL, Time::ZERO), background);
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    assert_eq!((step.mode, step.reason, step.from), (SyncMode::All, Reason::Sync, 0));
    assert!(step.pages > 1 << 60, "all of them in one step");
    // In the meantime others are dirty, and A again.
    let _ = dirty(&mut writeback, B, 5, ticks(1));
    write(&mut writeback, step, ticks(1));
    let _ = dirty(&mut writeback, A, 5, ticks(1));
    let done = |pages, id| Step::Finished { reason: Reason::Sync, pages, work: Some(id) };
    assert_eq!(writeback.next(0, AVAIL, ticks(1)), done(32_832, first));
    // The second work begins now, and what is dirty now is its own.
    let step = the_write(writeback.next(0, AVAIL, ticks(1)));
    assert_eq!(write(&mut writeback, step, ticks(1)), (B, 5));
    let step = the_write(writeback.next(0, AVAIL, ticks(1)));
    assert_eq!(write(&mut writeback, step, ticks(1)), (A, 5));
    assert_eq!(writeback.next(0, AVAIL, ticks(1)), done(10, second));
    assert_eq!(writeback.next(0, AVAIL, ticks(1)), Step::Idle { again_at: None });
}

#[test]
fn sync_waits_for_inodes_that_are_being_written() {
    let mut writeback = writeback(2, AVAIL);
    for (inode, drive) in [(B, 0), (A, 0), (C, 1)] {
        let _ = writeback.dirtied(inode, drive, 3, &mut Dirtier::default(), 0, Time::ZERO);
        writeback.started(inode, 2);
    }
    assert_eq!(writeback.being_written(0).collect::<Vec<_>>(), [A, B]);
    writeback.ended(A, 2, Time::ZERO);
    writeback.ended(B, 1, Time::ZERO);
    assert_eq!(writeback.being_written(0).collect::<Vec<_>>(), [B]);
    assert_eq!((writeback.dirty(), writeback.writeback()), (3, 3));
}

#[test]
fn one_flush_of_everything_at_a_time() {
    let mut writeback = writeback(1, AVAIL);
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Nothing, "nothing is dirty");
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Now);
    assert!(writeback.start(0, Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    let _ = dirty(&mut writeback, B, 10, ticks(1));
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Nothing);
    write(&mut writeback, step, ticks(1));
    let finished = Step::Finished { reason: Reason::Vmscan, pages: 10, work: None };
    assert_eq!(writeback.next(0, AVAIL, ticks(1)), finished, "B came later");
    assert!(matches!(writeback.next(0, AVAIL, ticks(1)), Step::Idle { .. }));
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Now);
}

#[test]
fn who_is_woken_while_it_runs_runs_again() {
    let mut writeback = writeback(1, AVAIL);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    write(&mut writeback, step, Time::ZERO);
    assert!(matches!(writeback.next(0, AVAIL, Time::ZERO), Step::Finished { .. }));
    let _ = dirty(&mut writeback, B, 10, Time::ZERO);
    assert_eq!(writeback.start_all(0, Reason::Vmscan), Wake::Nothing, "it runs");
    assert_eq!(the_write(writeback.next(0, AVAIL, Time::ZERO)).inode, B);
    assert_eq!(writeback.flushers[0].runs, 2);
}

#[test]
fn what_cannot_be_written_waits_for_the_next_time() {
    let mut writeback = writeback(1, AVAIL);
    let _ = dirty(&mut writeback, A, 10, ticks(0));
    let _ = dirty(&mut writeback, B, 10, ticks(1));
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, ticks(2)));
    let step = the_write(writeback.next(0, AVAIL, ticks(2)));
    assert_eq!(step.inode, A);
    writeback.wrote(0, Wrote { pages: 4, skipped: 4, next: 0 }, ticks(2));
    let step = the_write(writeback.next(0, AVAIL, ticks(2)));
    assert_eq!(write(&mut writeback, step, ticks(2)), (B, 10));
    // A is dirty since tick 0, and alone on the list: another round of the same work takes it.
    let step = the_write(writeback.next(0, AVAIL, ticks(3)));
    assert_eq!(step.inode, A);
    writeback.wrote(0, Wrote::default(), ticks(3));
    // Nothing was written: the work is over, and the device's own threshold is not reached.
    let finished = Step::Finished { reason: Reason::Vmscan, pages: 14, work: None };
    assert_eq!(writeback.next(0, AVAIL, ticks(3)), finished);
    assert_eq!(writeback.next(0, AVAIL, ticks(3)), Step::Idle { again_at: Some(ticks(1_272)) });
    assert_eq!(writeback.flushers[0].pages, [0, 10, 0, 0], "what was skipped does not count");
}

#[test]
fn old_data_is_looked_for_every_five_seconds_however_often_the_flusher_runs() {
    let mut writeback = busy(AVAIL);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    for at in [1_272, 2_552, 3_832, 5_112, 6_392] {
        assert_eq!(run(&mut writeback, ticks(at)).0, []);
    }
    // At 7550 the data is older than 30 s, but the last run was at 6392. The timer is set anew: 8800, rounded up.
    assert_eq!(writeback.wbs[0].flusher.wake(), Wake::Now);
    assert_eq!(run(&mut writeback, ticks(7_550)), (vec![], vec![], Some(ticks(8_824))));
    assert_eq!(run(&mut writeback, ticks(8_824)).0, [(A, 10)]);
}

#[test]
fn sync_ends_although_somebody_goes_on_writing() {
    let mut writeback = writeback(1, AVAIL);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    let (id, _) = writeback.sync(0);
    assert!(writeback.start(0, Time::ZERO));
    the_write(writeback.next(0, AVAIL, Time::ZERO));
    writeback.started(A, 10);
    let _ = dirty(&mut writeback, A, 5, ticks(1));
    writeback.wrote(0, Wrote { pages: 10, skipped: 0, next: 0 }, ticks(1));
    let finished = Step::Finished { reason: Reason::Sync, pages: 10, work: Some(id) };
    assert_eq!(writeback.next(0, AVAIL, ticks(1)), finished);
}

#[test]
fn an_inode_with_skipped_pages_has_no_second_slice() {
    let mut writeback = writeback(1, AVAIL);
    let _ = dirty(&mut writeback, A, 10_000, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    writeback.started(A, step.pages - 1);
    writeback.wrote(0, Wrote { pages: step.pages, skipped: 1, next: 0 }, Time::ZERO);
    assert_eq!((writeback.queued_pages(0), writeback.dirty_on(0)), (0, 10_001 - step.pages));
}

#[test]
fn what_cannot_be_written_is_as_young_as_the_youngest() {
    let mut writeback = busy(AVAIL);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    let _ = dirty(&mut writeback, B, 10, ticks(1_000));
    // At 7672, only A is older than 30 s, and is skipped: it is behind B now, and its age starts over.
    let mut skip = |at| {
        assert!(writeback.start(0, ticks(at)));
        let mut seen = Vec::new();
        loop {
            match writeback.next(0, AVAIL, ticks(at)) {
                Step::Write(step) => {
                    seen.push(step.inode);
                    writeback.wrote(0, Wrote { pages: 1, skipped: 1, next: 0 }, ticks(at));
                }
                Step::Finished { .. } => {}
                Step::Idle { again_at } => return (seen, again_at),
            }
        }
    };
    for at in [1_272, 2_552, 3_832, 5_112, 6_392] {
        assert_eq!(skip(at).0, []);
    }
    assert_eq!(skip(7_672), (vec![A], Some(ticks(8_952))));
    assert_eq!(skip(8_952).0, [B], "older than 30 s since 8500; A is at 15172");
}

#[test]
fn what_fsync_has_written_costs_no_step() {
    let mut writeback = writeback(1, AVAIL);
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    let _ = dirty(&mut writeback, B, 10, Time::ZERO);
    writeback.begin_writepages(0, Time::ZERO);
    writeback.started(A, 10);
    writeback.end_writepages(0, Time::ZERO);
    writeback.ended(A, 10, Time::ZERO);
    assert!(writeback.flags_of(A).has(DirtyFlags::PAGES), "it stays on its list");
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert_eq!(run(&mut writeback, Time::ZERO), (vec![(B, 10)], vec![(Reason::Vmscan, 10)], None));
    assert_eq!(writeback.flags_of(A), DirtyFlags::CLEAN);
}

#[test]
fn an_inode_that_is_dirty_itself_is_written_too() {
    let mut writeback = writeback(1, AVAIL);
    let _ = writeback.mark_dirty(A, 0, DirtyFlags::SYNC, Time::ZERO);
    let _ = dirty(&mut writeback, B, 10, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    assert_eq!(the_write(writeback.next(0, AVAIL, Time::ZERO)).inode, A);
    assert!(writeback.wrote(0, Wrote::default(), Time::ZERO));
    let step = the_write(writeback.next(0, AVAIL, Time::ZERO));
    assert_eq!(step.inode, B);
    // Delayed allocation makes the inode dirty while its pages are written.
    let _ = writeback.mark_dirty(B, 0, DirtyFlags::INODE, Time::ZERO);
    writeback.started(B, 10);
    assert!(writeback.wrote(0, Wrote { pages: 10, skipped: 0, next: 0 }, Time::ZERO));
    assert_eq!(writeback.flags_of(B), DirtyFlags::CLEAN);
    // Two inodes and ten pages are written, and nothing is left.
    assert!(matches!(writeback.next(0, AVAIL, Time::ZERO), Step::Finished { pages: 10, .. }));
}

#[test]
fn fsync_writes_the_inode_if_it_is_needed() {
    let mut writeback = writeback(1, AVAIL);
    assert_eq!(writeback.sync_inode(A, false, Time::ZERO), SyncInode::Clean, "never seen");
    let _ = dirty(&mut writeback, A, 10, Time::ZERO);
    assert_eq!(writeback.sync_inode(A, false, Time::ZERO), SyncInode::Clean, "pages alone");
    let _ = writeback.mark_dirty(A, 0, DirtyFlags::SYNC, Time::ZERO);
    assert_eq!(writeback.sync_inode(A, true, Time::ZERO), SyncInode::Clean, "fdatasync does not need it");
    assert_eq!(writeback.sync_inode(A, false, Time::ZERO), SyncInode::Write);
    assert_eq!(writeback.flags_of(A), DirtyFlags::PAGES);
    let _ = writeback.mark_dirty(A, 0, DirtyFlags::DATASYNC, Time::ZERO);
    writeback.started(A, 10);
    assert_eq!(writeback.sync_inode(A, true, Time::ZERO), SyncInode::Write);
    assert_eq!(writeback.flags_of(A), DirtyFlags::CLEAN);
    writeback.check().expect("accounts hold");
    let _ = writeback.mark_dirty(A, 0, DirtyFlags::SYNC, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    the_write(writeback.next(0, AVAIL, Time::ZERO));
    assert_eq!(writeback.sync_inode(A, false, Time::ZERO), SyncInode::Busy, "the flusher has it");
}

#[test]
fn a_file_goes_when_the_flusher_is_not_at_it() {
    let mut writeback = writeback(1, AVAIL);
    for inode in [A, B] {
        let _ = dirty(&mut writeback, inode, 10, Time::ZERO);
    }
    writeback.cleaned(B, 10);
    assert!(!writeback.is_at(B));
    writeback.evict(B);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    assert_eq!(the_write(writeback.next(0, AVAIL, Time::ZERO)).inode, A);
    writeback.started(A, 4);
    writeback.cleaned(A, 6);
    assert!(writeback.is_at(A));
    writeback.wrote(0, Wrote { pages: 4, skipped: 0, next: 4 }, Time::ZERO);
    assert!(!writeback.is_at(A));
    writeback.ended(A, 4, Time::ZERO);
    writeback.evict(A);
    writeback.check().expect("accounts hold");
    assert!(matches!(writeback.next(0, AVAIL, Time::ZERO), Step::Finished { .. }));
    assert_eq!(writeback.next(0, AVAIL, Time::ZERO), Step::Idle { again_at: None });
    // Its number may come again.
    assert!(matches!(dirty(&mut writeback, A, 1, Time::ZERO), Wake::At(_)));
}

#[test]
fn without_an_interval_a_flusher_never_runs_by_itself() {
    let spec = WritebackSpec { dirty_writeback: Duration::default(), ..WritebackSpec::default() };
    let mut writeback = Writeback::new(&spec, 250, 1, 4, AVAIL).expect("good");
    assert_eq!(dirty(&mut writeback, A, 10, Time::ZERO), Wake::Now, "a timer of no ticks");
    // The device has no share of the threshold yet, and so exceeds it.
    let (written, finished, again_at) = run(&mut writeback, Time::from_s(100));
    assert_eq!((written, finished, again_at), (vec![(A, 10)], vec![(Reason::Background, 10)], None));
    let _ = writeback.mark_dirty(A, 0, DirtyFlags::SYNC, Time::from_s(100));
    assert_eq!(run(&mut writeback, Time::from_s(200)), (vec![], vec![], None), "old, and not looked at");
}
