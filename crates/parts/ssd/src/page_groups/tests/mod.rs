mod random;
mod time;

use crate::{
    page_groups::{
        GroupsFlash, GroupsFlashSpec,
        spec::GroupBadBlocksSpec,
        testing::{Rig, groups, prototype, small},
    },
    spec::{Built, ErrorsSpec, Programming, RetrySpec, SpreadSpec},
};
use config::units::{Bandwidth, Duration, Share};
use engine::{Rng, Time};
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::{op::Class, sched::Scheduling};
use proto::groups::{Ask, Tell, Work};

// Waiting for locks of sections.

fn rig() -> Rig {
    Rig::new(&small(GroupTranslation::literal), 200)
}

#[test]
fn a_writer_waits_for_readers_and_they_do_not_wait_for_one_another() {
    let mut rig = rig();
    rig.lock(1, groups(0, 20), false);
    rig.lock(2, groups(10, 30), false);
    rig.lock(3, groups(15, 15), true);
    rig.lock(4, groups(40, 50), true);
    let now = Some(Time::ZERO);
    let locked = |rig: &Rig| [1, 2, 3, 4].map(|tag| rig.when(Tell::Locked { tag }));
    assert_eq!(locked(&rig), [now, now, None, now]);
    let read = rig.time(Ask::Read { tag: 9, groups: groups(0, 20) });
    rig.ask(Ask::Unlock { tag: 1 });
    assert_eq!(locked(&rig), [now, now, None, now]);
    rig.ask(Ask::Unlock { tag: 2 });
    assert_eq!(locked(&rig), [now, now, Some(read), now]);
    let stats = &rig.flash.stats;
    assert_eq!((stats.locks, stats.lock_wait.count(), stats.lock_wait.max()), (4, 1, Some(read.ps())));
    rig.check();
}

#[test]
fn a_lock_that_is_not_wanted_any_more_holds_up_nobody() {
    let mut rig = rig();
    rig.lock(1, groups(0, 20), false);
    rig.lock(2, groups(10, 30), true);
    rig.lock(3, groups(15, 15), false);
    assert_eq!(rig.when(Tell::Locked { tag: 3 }), None);
    rig.ask(Ask::Unlock { tag: 2 });
    assert_eq!(rig.when(Tell::Locked { tag: 3 }), Some(Time::ZERO));
    assert_eq!(rig.when(Tell::Locked { tag: 2 }), None);
    // A tag is free again.
    rig.lock(2, groups(60, 70), true);
    assert_eq!(rig.when(Tell::Locked { tag: 2 }), Some(Time::ZERO));
    rig.check();
}

/// A kernel that writes for hours does not put a dump off; one that comes while entries are copied waits for that.
#[test]
fn a_dump_waits_for_no_writer_and_a_writer_for_a_dump() {
    for comes_first in [true, false] {
        let mut rig = rig();
        rig.works_at_once = false;
        rig.time(Ask::Write { tag: 0, groups: groups(150, 150) });
        if comes_first {
            rig.lock(1, groups(0, 0), true);
        }
        while rig.works.is_empty() && rig.step() {}
        if !comes_first {
            rig.lock(1, groups(0, 0), true);
        }
        assert_eq!(rig.when(Tell::Locked { tag: 1 }).is_some(), comes_first);
        rig.works_at_once = true;
        rig.work(0);
        assert!(rig.when(Tell::Locked { tag: 1 }).is_some());
        rig.run();
        assert!(rig.flash.is_idle());
        assert_eq!(rig.flash.counters().dumps, 1);
    }
}

// One channel represents all: the same requests are answered at the same times as if every channel were simulated.

/// Random reads and writes; the next is asked when one has been answered.
fn run(spec: &GroupsFlashSpec) -> Rig {
    let mut rig = Rig::new(spec, 5_000);
    let mut rng = Rng::stream(16, "lockstep");
    for tag in 0..300 {
        let first = rng.below(6_000) as u32;
        let groups = groups(first, first + rng.below(12) as u32);
        rig.ask(if rng.below(4) == 0 { Ask::Write { tag, groups } } else { Ask::Read { tag, groups } });
        if tag > 8 {
            let answered = rig.cx.sent.len();
            while rig.cx.sent.len() == answered && rig.step() {}
        }
    }
    rig.run();
    rig
}

#[test]
fn one_channel_stands_for_all() {
    // Dies that may differ are all simulated; these cannot.
    let none = SpreadSpec { read: Share::ZERO, program: Share::ZERO, erase: Share::ZERO };
    for translation in GroupTranslation::all_defaults() {
        let mut spec = time::metered(translation);
        spec.scheduler = Scheduling::oldest;
        let [one, all] = [None, Some(none.clone())].map(|spread| {
            spec.cell.spread = spread;
            run(&spec)
        });
        let answers = |rig: &Rig| -> Vec<(Time, Tell)> { rig.cx.sent.clone() };
        assert_eq!(answers(&one), answers(&all));
        assert_eq!(one.flash.media(), all.flash.media());
        let now = one.now().max(all.now());
        assert_eq!(one.flash.busy(now), all.flash.busy(now));
        // Windows of power differ by what is rounded where an energy is spread over several.
        let spent = |rig: &Rig| rig.flash.energy(now).expect("it has a meter").activities;
        assert_eq!(spent(&one), spent(&all));
        assert!(one.flash.media().multi_plane > 4_000, "{:?}", one.flash.media());
    }
}

/// Errors make dies differ: all channels are simulated, and pages are read again as often as their rates say.
#[test]
fn pages_of_groups_are_read_again() {
    let errors = |fresh: f64| {
        let latency = Duration::new(Time::ZERO);
        Some(ErrorsSpec {
            fresh,
            wear: 0.0,
            retention: 0.0,
            reads: 0.0,
            age: None,
            types: None,
            spread: Share::ZERO,
            retry: RetrySpec { correctable: 0.005, gain: 0.5, limit: 9, latency },
        })
    };
    let translation = GroupTranslation::all_defaults().swap_remove(0);
    let mut spec = time::metered(translation);
    spec.scheduler = Scheduling::oldest;
    let [without, corrected, twice] = [None, errors(0.005), errors(0.02)].map(|errors| {
        spec.cell.errors = errors;
        run(&spec)
    });
    assert_eq!(without.cx.sent, corrected.cx.sent);
    assert_eq!(without.flash.media(), corrected.flash.media());
    let media = twice.flash.media();
    assert_eq!((media.retried_reads, media.retry_steps), (media.senses, 2 * media.senses));
    assert!(media.senses > 1_000 && twice.now() > without.now());
}

fn build(spec: &GroupsFlashSpec) -> Result<GroupsFlash, config::SpecError> {
    GroupsFlash::new(spec, &Built { seed: 1, name: "groups".into(), fold: true })
}

/// 4 channels x 2 planes x 8 KiB, eight dies a channel of 171 blocks a plane of 384 pages: 525,312 groups.
#[test]
fn the_prototype_holds_32_gb() {
    let flash = build(&prototype(GroupTranslation::literal)).expect("a sound spec");
    assert_eq!(flash.layout().group_bytes(), 65_536);
    assert_eq!(flash.layout().groups(), 525_312);
    // All but four blocks, the metadata and the 33 groups of the map.
    assert_eq!(flash.capacity(), (8 * 171 - 4) * 382 - 33);
}

/// Of 64 planes with 171 blocks each 2 % are bad: 219 of 10,944, give or take three times 14.6. The worst plane has more than the mean of 3.4, and all have as many good blocks as it has. The same seed finds the same.
#[test]
fn all_planes_have_as_many_blocks_as_the_worst() {
    let with = |percent: u8| {
        let mut spec = prototype(GroupTranslation::literal);
        spec.bad_blocks = Some(GroupBadBlocksSpec { factory: Share::percent(percent) });
        build(&spec)
    };
    let flash = with(2).expect("good blocks are left");
    assert!((175..=263).contains(&flash.bad_blocks()), "{}", flash.bad_blocks());
    let groups = flash.layout().groups();
    let lost = 171 - groups / (8 * 384);
    assert!((4..=16).contains(&lost) && groups == 8 * (171 - lost) * 384, "{groups}");
    assert_eq!(flash.capacity(), (8 * (171 - lost) - 4) * 382 - groups.div_ceil(16_384));
    let again = with(2).expect("good blocks are left");
    assert_eq!((again.bad_blocks(), again.capacity()), (flash.bad_blocks(), flash.capacity()));
    let none = with(0).expect("all are good");
    assert_eq!((none.bad_blocks(), none.capacity()), (0, (8 * 171 - 4) * 382 - 33));
    assert_eq!(with(100).err().map(|fault| fault.key), Some("bad_blocks.factory".to_owned()));
}

#[test]
fn what_cannot_be_built_names_its_key() {
    let key = |change: &dyn Fn(&mut GroupsFlashSpec)| {
        let mut spec = small(GroupTranslation::literal);
        change(&mut spec);
        build(&spec).err().map(|fault| fault.key)
    };
    let found = |key: &str| Some(key.to_string());
    assert_eq!(key(&|_| {}), None);
    assert_eq!(key(&|spec| spec.groups.geometry.planes = 0), found("groups.geometry.planes"));
    assert_eq!(key(&|spec| spec.cell.read = vec![Duration::new(Time::from_us(1)); 2]), found("cell.read"));
    assert_eq!(key(&|spec| spec.channel.width = 9), found("channel.width"));
    assert_eq!(key(&|spec| spec.link.rate = Bandwidth::new(0)), found("link.rate"));
    let one_shot = |spec: &mut GroupsFlashSpec| {
        spec.cell.programming = Programming::one_shot;
        spec.cell.program.truncate(1);
        spec.groups.geometry.pages = 15;
    };
    assert_eq!(key(&one_shot), found("cell.programming"));
}

#[test]
fn a_spec_is_what_was_written() {
    for spec in [small(GroupTranslation::striped), prototype(GroupTranslation::literal)] {
        let text = toml::to_string(&spec).expect("it can be written");
        assert_eq!(toml::from_str::<GroupsFlashSpec>(&text).expect("it can be read"), spec);
    }
}

/// The flash has 1,024 groups: what is behind them fails, what is before them is served.
#[test]
fn groups_behind_the_end_fail() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 100);
    rig.ask(Ask::Read { tag: 1, groups: groups(1_020, 1_030) });
    rig.ask(Ask::Write { tag: 2, groups: groups(1_023, 1_024) });
    rig.run();
    assert!(rig.when(Tell::Done { tag: 1, failed: 7 }).is_some());
    assert!(rig.when(Tell::Done { tag: 2, failed: 1 }).is_some());
    assert_eq!(rig.flash.stats.groups_failed, 8);
}

/// More data than fits beside metadata, map and free blocks is refused, and what fits is not harmed.
#[test]
fn more_data_than_fits_fails() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    let capacity = rig.flash.capacity();
    rig.ask(Ask::Write { tag: 1, groups: groups(0, capacity + 4) });
    rig.run();
    assert!(rig.when(Tell::Done { tag: 1, failed: 5 }).is_some());
    rig.time(Ask::Write { tag: 2, groups: groups(0, capacity - 1) });
    rig.time(Ask::Read { tag: 3, groups: groups(0, capacity - 1) });
    rig.run();
}

// Storengine: core time, reclaim that writers wait for, dumps.

/// Data fills the flash: what is written again waits for reclaim, and reclaim for its core.
#[test]
fn a_write_waits_until_reclaim_has_made_room() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    let last = rig.flash.capacity() - 1;
    rig.time(Ask::Write { tag: 0, groups: groups(0, last) });
    rig.run();
    rig.works_at_once = false;
    rig.ask(Ask::Write { tag: 1, groups: groups(0, 40) });
    rig.ask(Ask::Write { tag: 2, groups: groups(50, 50) });
    while rig.step() {}
    // Nothing happens without the core.
    let done = |rig: &Rig, tag| rig.when(Tell::Done { tag, failed: 0 });
    assert_eq!((done(&rig, 1), done(&rig, 2)), (None, None));
    assert!(!rig.flash.is_idle() && !rig.works.is_empty());
    rig.check();
    rig.works_at_once = true;
    while !rig.works.is_empty() {
        rig.work(0);
    }
    rig.run();
    assert!(rig.flash.is_idle());
    assert!(done(&rig, 1).is_some() && done(&rig, 2).is_some());
    let stats = &rig.flash.stats;
    assert_eq!(stats.space_wait.count(), 2);
    let counters = rig.flash.counters();
    assert!(counters.erases > 0 && counters.moves > 0, "{counters:?}");
    // A read, a program of each move; two groups of metadata read and written.
    assert!(stats.steps >= 2 * counters.moves + 5 * counters.erases);
    rig.time(Ask::Read { tag: 3, groups: groups(0, last) });
    rig.check();
}

/// A literal block of the prototype: 382 groups of data, whose entries two groups of metadata hold, 191 each.
#[test]
fn a_full_block_gets_its_metadata() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 0);
    rig.works_at_once = false;
    rig.time(Ask::Write { tag: 0, groups: groups(0, 381) });
    let work: Vec<Work> = rig.works.iter().map(|(_, work)| *work).collect();
    assert_eq!(work, [Work { entries: 191, operations: 1 }; 2]);
    assert_eq!(rig.flash.counters().metadata, 0);
    rig.works_at_once = true;
    (0..2).for_each(|_| rig.work(0));
    rig.run();
    assert_eq!(rig.flash.counters().metadata, 2);
}

/// Entries have changed in the first and the fourth group of the map, of 128 entries each: each is copied and
/// programmed at the next multiple of 100 ms; then nothing is left to dump.
#[test]
fn a_dump_writes_what_has_changed() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    rig.works_at_once = false;
    rig.time(Ask::Write { tag: 0, groups: groups(5, 5) });
    rig.time(Ask::Write { tag: 0, groups: groups(400, 400) });
    let mut works = Vec::new();
    loop {
        while let Some((_, work)) = rig.works.first().copied() {
            works.push((rig.now(), work));
            rig.work(0);
        }
        if !rig.step() {
            break;
        }
    }
    let (copy, program) = (Work { entries: 128, operations: 0 }, Work { entries: 1, operations: 1 });
    let what: Vec<Work> = works.iter().map(|(_, work)| *work).collect();
    assert_eq!(what, [copy, program, copy, program]);
    assert_eq!(works[0].0, Time::from_ms(100));
    let counters = rig.flash.counters();
    assert_eq!((counters.dumps, counters.dumped), (1, 2));
    assert_eq!(rig.flash.media().done[Class::MapProgram as usize], 2);
    rig.check();
    // What has not changed is not dumped: the next one has the entries of one group.
    rig.works_at_once = true;
    rig.time(Ask::Write { tag: 0, groups: groups(6, 6) });
    rig.run();
    assert_eq!((rig.flash.counters().dumps, rig.flash.counters().dumped), (2, 3));
}

/// While a block is moved, a kernel's reads go first: one of them waits for an operation under way at most, not for the moves.
#[test]
fn reads_of_kernels_go_before_those_of_storengine() {
    let mut rig = Rig::new(&small(GroupTranslation::literal), 0);
    let last = rig.flash.capacity() - 1;
    rig.time(Ask::Write { tag: 0, groups: groups(0, last) });
    rig.run();
    rig.ask(Ask::Write { tag: 1, groups: groups(0, 40) });
    let (mut worst, mut tag) = (Time::ZERO, 10);
    while !rig.flash.is_idle() {
        assert!(rig.step(), "a request waits for ever");
        if tag < 300 {
            tag += 1;
            worst = worst.max(rig.time(Ask::Read { tag, groups: groups(600, 600) }));
        }
    }
    rig.run();
    assert!(rig.flash.counters().erases > 0);
    // A program of 5,001 us may be under way, and the read-first rule may let one more go that has waited for 5 ms.
    assert!(worst <= Time::from_us(2 * 5_001 + 500), "{worst:?}");
}

#[test]
fn a_window_forgets_what_was_before() {
    let mut rig = Rig::new(&small(GroupTranslation::striped), 300);
    rig.time(Ask::Write { tag: 0, groups: groups(0, 100) });
    rig.run();
    let now = rig.now();
    rig.flash.reset_stats(now);
    let stats = &rig.flash.stats;
    assert_eq!((stats.since, stats.groups_written, stats.write.count(), stats.steps), (now, 0, 0, 0));
    assert_eq!(rig.flash.counters(), Default::default());
    assert_eq!(rig.flash.media(), Default::default());
    assert_eq!(rig.flash.busy(now), Default::default());
    rig.time(Ask::Read { tag: 1, groups: groups(0, 9) });
    assert_eq!((rig.flash.stats.groups_read, rig.flash.media().reads_queued), (10, 10));
    rig.check();
}
