//! Fetches that come back without data.

use super::*;

/// Each answer as (tag, ns, whether it brought nothing), in order.
fn answers(rig: &Rig) -> Vec<(u32, u64, bool)> {
    let answer =
        |(at, access): &(Time, Access)| (access.tag, at.ps() / 1000, access.absent == Absent::Signalled);
    rig.world.answers.iter().map(answer).collect()
}

fn in_flash(spec: &L2Spec) -> Rig {
    let mut rig = Rig::new(spec, 100);
    rig.world.in_flash.insert(0);
    rig
}

#[test]
fn nothing_is_filled_and_all_who_asked_for_it_are_told() {
    let mut spec = spec(WritePolicy::write_back);
    spec.prefetch = fixed(4096);
    let mut rig = in_flash(&spec);
    let tags = [0, 1].map(|delay| rig.signal(delay, AccessKind::Read, 0, 128));
    // Another page is in memory: its data come, its line alone.
    let other = rig.signal(2, AccessKind::Own, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig), [(tags[0], 101, true), (tags[1], 101, true), (other, 103, false)]);
    assert_eq!(rig.commands(), [(false, 0, 1), (false, PAGE, 1)]);
    // The page has come meanwhile: a miss again. The fill of the other line takes the bank until 108 ns.
    rig.world.in_flash.clear();
    let (again, there) =
        (rig.signal(0, AccessKind::Read, 0, 128), rig.signal(0, AccessKind::Read, PAGE, 128));
    rig.run();
    assert!(answers(&rig)[3..] == [(there, 110, false), (again, 209, false)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.signalled, stats.misses, stats.merges, stats.hits), (2, 3, 1, 1));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn who_waits_has_the_line_fetched_again() {
    let mut rig = in_flash(&spec(WritePolicy::write_back));
    let told = rig.signal(0, AccessKind::Read, 0, 128);
    let waits = [10, 20].map(|delay| rig.read(delay, 0));
    let told_too = rig.signal(30, AccessKind::Read, 0, 128);
    // It meets the second fetch, and waits with it.
    let late = rig.signal(150, AccessKind::Read, 0, 128);
    rig.run();
    let expected = [
        (told, 101, true),
        (told_too, 101, true),
        (waits[0], 201, false),
        (waits[1], 201, false),
        (late, 201, false),
    ];
    assert_eq!(answers(&rig), expected);
    let absent: Vec<Absent> = rig.world.commands.iter().map(|(_, command)| command.absent).collect();
    assert_eq!(absent, [Absent::Signal, Absent::Wait]);
    // Memory's 200 ns are its own; the rest of every life is here.
    let here: u128 = rig.cache.tally.reads().iter().sum();
    let lives = 101 + (201 - 10) + (201 - 20) + (101 - 30) + (201 - 150);
    assert_eq!(here, u128::from(ns(lives - 100 - 100).ps()));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn what_was_held_for_an_atomic_is_given_up() {
    // One set of one way: the place that the atomic has must be free again.
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = in_flash(&spec);
    let atomic = rig.signal(0, AccessKind::Atomic, 0, 8);
    rig.run();
    assert_eq!(answers(&rig), [(atomic, 106, true)]);
    let write = rig.write(0, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig)[1..], [(write, 111, false)]);
    assert_eq!(rig.cache.stats.evictions, 0);

    // Where writes go through, it is a write slot.
    spec.writes = WritePolicy::read_only;
    spec.write_slots = 1;
    let mut rig = in_flash(&spec);
    let atomic = rig.signal(0, AccessKind::Atomic, 0, 8);
    rig.run();
    let write = rig.write(0, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig), [(atomic, 101, true), (write, 202, false)]);
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn what_was_written_to_part_of_the_line_stays() {
    let mut rig = in_flash(&spec(WritePolicy::write_back));
    rig.write(0, 0, 32);
    rig.signal(10, AccessKind::Read, 0, 128);
    rig.run();
    // The line is dirty and lacks the rest: another read fetches it, a purge writes it.
    rig.world.in_flash.clear();
    rig.read(0, 0);
    rig.run();
    rig.cache.purge(0, &mut rig.world);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (false, 0, 1), (true, 0, 1)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.signalled, stats.write_backs, stats.purged_lines), (1, 1, 1));
}
