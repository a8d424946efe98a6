//! Flushes and force unit access, by block/blk-flush.c.

use super::*;

/// A command as a letter: flush, write, write with force unit access.
fn letter(issued: &Issued) -> char {
    match (issued.op, issued.fua) {
        (IoOp::Flush, false) => 'f',
        (IoOp::Write, false) => 'w',
        (IoOp::Write, true) => 'u',
        _ => '?',
    }
}

fn asking(preflush: bool, fua: bool, bytes: u64, owner: u32) -> Bio {
    let flags = BioFlags { preflush, fua, ..BioFlags::default() };
    Bio { flags, ..write(u64::from(owner) * 1024 * KIB, bytes, owner) }
}

/// What the drive is told for one bio, one command after another.
fn told(bench: &mut Bench, bio: Bio) -> String {
    let mut told = String::new();
    assert_eq!(bench.submit(bio), Submitted::Queued);
    while !bench.issued.is_empty() {
        assert_eq!((bench.issued.len(), bench.done.len()), (1, 0));
        told.push(letter(&bench.issued[0]));
        let issued = bench.issued.remove(0);
        bench.complete(issued);
    }
    assert_eq!((bench.done.as_slice(), bench.queue.is_idle()), ([bio.owner].as_slice(), true));
    bench.done.clear();
    told
}

/// `blk_flush_policy` of the four kinds of drives: volatile cache or not, force unit access or not.
#[test]
fn sequences_of_the_four_kinds_of_drives() {
    let asked = [(true, true, 4), (true, false, 4), (false, true, 4), (true, false, 0)];
    let kinds = [
        (true, true, ["fu", "fw", "u", "f"]),
        (true, false, ["fwf", "fw", "wf", "f"]),
        (false, true, ["w", "w", "w", ""]),
        (false, false, ["w", "w", "w", ""]),
    ];
    for scheduler in SchedulerPolicy::all_defaults() {
        for (write_cache, fua, expected) in kinds {
            let device = Device { write_cache, fua, ..DEVICE };
            let mut bench = Bench::new(&spec(scheduler.clone()), device, 1);
            for ((preflush, force, kib), expected) in asked.into_iter().zip(expected) {
                let bio = asking(preflush, force, kib * KIB, 3);
                assert_eq!(told(&mut bench, bio), expected, "{} {device:?} {bio:?}", scheduler.name());
            }
            let expected = if write_cache { "f" } else { "" };
            assert_eq!(told(&mut bench, bio(IoOp::Flush, 0, 0, 3)), expected);
        }
    }
}

/// Flushes that come while one is at the drive share the next one.
#[test]
fn flushes_share_one() {
    for scheduler in SchedulerPolicy::all_defaults() {
        let mut bench = Bench::new(&spec(scheduler), DEVICE, 1);
        for owner in 0..5 {
            assert_eq!(bench.submit(asking(true, false, 0, owner)), Submitted::Queued);
        }
        assert_eq!(bench.issued.len(), 1);
        bench.complete(bench.issued[0]);
        assert_eq!((bench.done.as_slice(), bench.issued.len()), ([0].as_slice(), 2));
        bench.complete(bench.issued[1]);
        assert_eq!((bench.done.len(), bench.issued.len()), (5, 2));
        let stats = bench.queue.stats();
        assert_eq!((stats.flushes_asked, stats.requests[crate::block::kind(IoOp::Flush)]), (5, 2));
        assert!(bench.queue.is_idle());
    }
}

/// C2 and C3 of `blk_kick_flush`: while data of a sequence is at the drive, a flush waits for it and serves its second flush as well; not
/// longer than five seconds.
#[test]
fn a_flush_waits_for_data_of_a_sequence() {
    for seconds in [4, 5] {
        let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { fua: false, ..DEVICE }, 1);
        let letters = |bench: &Bench| bench.issued.iter().map(letter).collect::<String>();
        assert_eq!(bench.submit(asking(false, true, 4 * KIB, 0)), Submitted::Queued);
        assert_eq!(bench.submit(asking(true, false, 0, 1)), Submitted::Queued);
        assert_eq!(letters(&bench), "w");
        bench.now += Time::from_s(seconds);
        assert_eq!(bench.submit(asking(true, false, 0, 2)), Submitted::Queued);
        if seconds == 4 {
            assert_eq!(letters(&bench), "w");
            bench.complete(bench.issued[0]);
            assert_eq!(letters(&bench), "wf");
            bench.complete(bench.issued[1]);
            assert_eq!(bench.done, [1, 2, 0]);
        } else {
            assert_eq!(letters(&bench), "wf");
            bench.complete(bench.issued[1]);
            assert_eq!(bench.done, [1, 2]);
            bench.complete(bench.issued[0]);
            assert_eq!(letters(&bench), "wff");
            bench.complete(bench.issued[2]);
            assert_eq!(bench.done, [1, 2, 0]);
        }
        assert!(bench.queue.is_idle());
    }
}

/// A flush that fails ends what it was for, and their data is not written.
#[test]
fn a_flush_that_fails_ends_the_sequence() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    assert_eq!(bench.submit(asking(true, true, 4 * KIB, 9)), Submitted::Queued);
    let flush = bench.issued[0];
    bench.queue.complete(flush.hctx, flush.tag, Status::WriteFault, bench.now, &mut bench.effects);
    assert_eq!(bench.effects.done[0].status, Status::WriteFault);
    bench.settle();
    assert_eq!((bench.issued.len(), bench.queue.is_idle()), (1, true));
}

/// One tag: the flush has that of the write it is for, without a scheduler and with one.
#[test]
fn a_flush_borrows_its_tag() {
    for scheduler in SchedulerPolicy::all_defaults() {
        let device = Device { queue_depth: 1, fua: false, ..DEVICE };
        let mut bench = Bench::new(&spec(scheduler), device, 1);
        assert_eq!(told(&mut bench, asking(true, true, 4 * KIB, 1)), "fwf");
    }
}
