//! Arithmetic against the paper's numbers, worked examples of the log, and arbitrary runs against a naive model.

mod reclaim;
mod rig;

use crate::page_groups::{
    Flashvisor, GroupCounters, GroupError, Layout, Logical, Physical, Step,
    spec::{DumpExtent, GroupsSpec},
    testing::{prototype, small},
    translation::GroupTranslation,
    victim::GroupVictim,
};
use config::units::{Bytes, Duration};
use engine::Rng;
use nand::geometry::Geometry;
use rig::Rig;
use std::collections::BTreeSet;

// Numbers, metadata, blocks: worked examples.

fn number(visor: &mut Flashvisor, logical: u32) -> u32 {
    let write = visor.write(Logical(logical)).expect("it fits").expect("a number is there");
    visor.written(write);
    write.group.0
}

/// Section 4.3: "allocates a new page group number by simply increasing the page group number used in a previous write"; the
/// first two pages of a block of 256 are metadata.
#[test]
fn numbers_grow_and_skip_metadata() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    let numbers: Vec<u32> = (0..600).map(|n| number(&mut visor, n * 7)).collect();
    let expected: Vec<u32> = (0..1_024).filter(|n| n % 256 >= 2).take(600).collect();
    assert_eq!(numbers, expected);
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::striped)).expect("it can be built");
    assert_eq!([0, 1, 2].map(|n| number(&mut visor, n)), [16, 17, 18]);
    assert_eq!(visor.lookup(Logical(1)), Ok(Some(Physical(17))));
    assert_eq!(visor.lookup(Logical(3)), Ok(None));
    assert_eq!((visor.counters.lookups, visor.counters.updates, visor.counters.writes), (2, 3, 3));
}

/// 254 groups per block: group 254 is the first data group of the second block.
#[test]
fn what_is_there_from_the_start_is_in_order() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    visor.assume_written(300).expect("it fits");
    let at = |visor: &mut Flashvisor, n| visor.lookup(Logical(n)).expect("in range");
    assert_eq!(at(&mut visor, 0), Some(Physical(2)));
    assert_eq!(at(&mut visor, 253), Some(Physical(255)));
    assert_eq!(at(&mut visor, 254), Some(Physical(258)));
    assert_eq!(at(&mut visor, 299), Some(Physical(303)));
    assert_eq!(at(&mut visor, 300), None);
    // Writes continue after it.
    assert_eq!(number(&mut visor, 5), 304);
    assert_eq!(at(&mut visor, 5), Some(Physical(304)));
}

/// A map entry is changed when the program is done; among two writes of a group the later one counts, whichever is done
/// first.
#[test]
fn the_later_write_counts() {
    let mut visor = Flashvisor::new(&small(GroupTranslation::literal)).expect("it can be built");
    let write = |visor: &mut Flashvisor| visor.write(Logical(9)).expect("it fits").expect("a number");
    let (first, second, third) = (write(&mut visor), write(&mut visor), write(&mut visor));
    assert_eq!(visor.lookup(Logical(9)), Ok(None));
    visor.written(second);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(second.group)));
    visor.written(first);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(second.group)));
    visor.written(third);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(third.group)));
    assert_eq!((visor.counters.overtaken, visor.data()), (1, 1));
}

/// The two metadata groups of a block are programmed once all its data is, and not before.
#[test]
fn a_full_block_gets_its_metadata() {
    let mut rig = Rig::new(small(GroupTranslation::literal), 0);
    (0..14).for_each(|n| assert!(rig.begin_write(Logical(n))));
    (0..13).for_each(|_| rig.end_write(0));
    rig.pull();
    assert!(rig.steps.is_empty(), "a program is in flight");
    rig.end_write(0);
    rig.pull();
    let steps: Vec<Step> = rig.steps.iter().map(|(_, step)| *step).collect();
    // 14 entries in two groups.
    assert_eq!(steps, [0, 1].map(|n| Step::WriteMeta { group: Physical(n), entries: 7 }));
    rig.drain();
    assert_eq!(rig.visor.counters.metadata, 2);
}

// Valid and invalid specs.

#[test]
fn the_families_keep_their_contract() {
    config::policy::check_family::<GroupVictim>().expect("the list is whole");
    config::policy::check_family::<DumpExtent>().expect("the list is whole");
}

#[test]
fn reads_as_it_is_written() {
    let spec = prototype(2, GroupTranslation::striped);
    let text = toml::to_string(&spec).expect("it can be written");
    assert_eq!(toml::from_str::<GroupsSpec>(&text).expect("it can be read"), spec);
    assert!(toml::from_str::<GroupsSpec>(&format!("pages = 3\n{text}")).is_err());
}

#[test]
fn what_cannot_be_built_is_refused_by_key() {
    type Change = fn(&mut GroupsSpec);
    let cases: [(&str, Change); 12] = [
        ("geometry.channels", |spec| spec.geometry.channels = 0),
        ("geometry.packages", |spec| spec.geometry.packages = 65),
        ("geometry.dies", |spec| spec.geometry.dies = 17),
        ("geometry.planes", |spec| spec.geometry.planes = 0),
        ("geometry.pages", |spec| spec.geometry.pages = 1),
        ("geometry.page", |spec| spec.geometry.page = Bytes::new(511)),
        ("geometry.blocks", |spec| spec.geometry.blocks = 1 << 20),
        ("metadata_pages", |spec| spec.metadata_pages = 16),
        ("reclaim.reserve", |spec| spec.reclaim.reserve = 0),
        ("reclaim.below", |spec| spec.reclaim.below = 65),
        ("reclaim.moves", |spec| spec.reclaim.moves = 257),
        ("dump.period", |spec| spec.dump.period = Duration::default()),
    ];
    for (key, change) in cases {
        let mut spec = small(GroupTranslation::literal);
        assert!(spec.check().is_ok());
        change(&mut spec);
        if key == "geometry.blocks" {
            (spec.geometry.packages, spec.geometry.pages) = (64, 4_096);
        }
        assert_eq!(spec.check().expect_err(key).key, key);
    }
}

/// 64 blocks of 14: one is kept free and two are open, so 61 x 14 = 854 groups, eight of which hold the map.
#[test]
fn more_data_than_fits_is_refused() {
    let mut visor = Flashvisor::new(&small(GroupTranslation::literal)).expect("it can be built");
    assert_eq!(visor.capacity(), 846);
    let full = GroupError::Full { data: 847, capacity: 846 };
    assert_eq!(visor.assume_written(847), Err(full));
    visor.assume_written(845).expect("it fits");
    let last = visor.write(Logical(900)).expect("it fits").expect("a number is there");
    // Whether or not the program has ended.
    assert_eq!(visor.write(Logical(901)), Err(full));
    visor.written(last);
    assert_eq!(visor.write(Logical(901)), Err(full));
    assert!(visor.write(Logical(900)).expect("it is there already").is_some());
    assert_eq!(full.to_string(), "847 groups of data; at most 846 fit beside metadata, map and free blocks");
    let beyond = GroupError::OutOfRange { group: 1_024, groups: 1_024 };
    assert_eq!(visor.lookup(Logical(1_024)), Err(beyond));
    assert_eq!(visor.write(Logical(1_024)), Err(beyond));
    assert_eq!(beyond.to_string(), "page group 1024 is out of range; the flash has 1024 page groups");
}

#[test]
fn a_flash_without_room_is_refused() {
    let mut spec = small(GroupTranslation::striped);
    spec.reclaim.reserve = 14;
    let error = spec.check().expect_err("no block is left");
    assert_eq!(error.key, "geometry.blocks");
    assert!(error.what.starts_with("16 blocks of 56 groups leave no room"), "{}", error.what);
}

// After any sequence of writes, locks, reclaims, dumps and cuts every group reads its newest version.

/// Translations, victims and dumps in turn.
fn rig(seed: u64, base: u32) -> Rig {
    let translations = GroupTranslation::all_defaults();
    let victims = GroupVictim::all_defaults();
    let mut spec = small(translations[seed as usize % 2].clone());
    spec.reclaim.victim = victims[seed as usize / 2 % 2].clone();
    spec.dump.extent = [DumpExtent::changed, DumpExtent::whole][seed as usize / 4 % 2];
    Rig::new(spec, base)
}

/// Creates full flash, so that reclaim must work for every write; some data is present from the start.
fn filled(seed: u64) -> Rig {
    let capacity = rig(seed, 0).visor.capacity();
    let base = capacity * (seed as u32 % 3) / 2;
    let mut rig = rig(seed, base);
    (base..capacity).for_each(|n| rig.write(Logical(n)));
    rig
}

fn sum(all: &mut GroupCounters, counters: &GroupCounters) {
    all.moves += counters.moves;
    all.overwritten += counters.overwritten;
    all.overtaken += counters.overtaken;
    all.dumps += counters.dumps;
    all.erases += counters.erases;
}

#[test]
fn every_group_reads_its_newest_version() {
    let mut all = GroupCounters::default();
    for seed in 0..16 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        rig.run(12_000, false, &mut rng);
        rig.drain();
        sum(&mut all, &rig.visor.counters);
    }
    // The relevant cases have happened.
    assert!(all.moves > 5_000 && all.erases > 500 && all.dumps > 20, "{all:?}");
    assert!(all.overwritten > 20 && all.overtaken > 20, "{all:?}");
}

/// "The persistence of mapping information is guaranteed" (section 4.3): after cuts at any point, also of recovered
/// flash, all completed work is present, and operation continues.
#[test]
fn every_group_reads_its_newest_version_after_cuts() {
    let mut all = GroupCounters::default();
    for seed in 0..16 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        for _ in 0..12 {
            rig.run(800 + rng.below(800) as u32, seed % 2 == 0, &mut rng);
            sum(&mut all, &rig.visor.counters);
            rig.cut();
        }
        rig.drain();
        let capacity = rig.visor.capacity();
        (0..capacity).for_each(|n| rig.write(Logical(n)));
        rig.drain();
    }
    assert!(all.moves > 3_000 && all.erases > 300, "{all:?}");
}

/// Cut after every single step of reclaims, each time anew: a block to continue with is always left.
#[test]
fn reclaims_that_are_always_cut_leave_room() {
    for seed in 0..4 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        for steps in 0..300 {
            for _ in 0..steps % 23 {
                rig.step();
            }
            rig.cut();
            assert!(rig.visor.free_blocks() > 0, "after {steps} cuts");
        }
        let capacity = u64::from(rig.visor.capacity());
        (0..2_000).for_each(|_| rig.write(Logical(rng.below(capacity) as u32)));
        rig.drain();
    }
}

/// Without a reclaim or a dump in progress the map is the same entry by entry. Replayed entries have been programmed
/// since the dump began; the rest is in the dump.
#[test]
fn recovery_finds_the_map_that_was_lost() {
    for seed in 0..8 {
        let mut rng = Rng::stream(seed, "groups");
        let mut rig = filled(seed);
        rig.run(4_000, false, &mut rng);
        rig.drain();
        let before = rig.visor.counters;
        assert!(rig.storengine.begin_dump());
        rig.drain();
        (0..10).for_each(|_| rig.write(Logical(rng.below(300) as u32)));
        rig.drain();
        let after = rig.visor.counters;
        let found = rig.cut();
        let programmed = after.writes + after.moves - before.writes - before.moves;
        assert!((1..=programmed).contains(&found.replayed), "{programmed} of {found:?}");
        assert!(found.from_dumps + found.replayed >= rig.visor.capacity().into(), "{found:?}");
        let filled = rig.visor.capacity().div_ceil(rig.visor.layout().group_entries());
        assert!(found.dumps >= filled.into(), "{found:?}");
    }
}

// The paper's arithmetic.

/// Section 4.3: 64 KB page groups are 4 channels x 2 planes x 8 KB; 32 GB are 524,288 of them, and at 4 B each 2 MB of
/// map, which fits in a scratchpad of 4 MB. On flash the map fills 32 groups of 16,384 entries.
#[test]
fn the_map_of_32_gb_takes_2_mb() {
    for translation in GroupTranslation::all_defaults() {
        for dies in [1, 2] {
            let layout = Layout::new(&prototype(dies, translation.clone()));
            assert_eq!(layout.group_bytes(), 64 << 10);
            assert_eq!(u64::from(layout.groups()) * layout.group_bytes(), 32 << 30);
            assert_eq!((layout.groups(), layout.map_bytes()), (524_288, 2 << 20));
            assert_eq!((layout.group_entries(), layout.map_groups()), (16_384, 32));
        }
    }
}

/// Sixteen dies, as in Table 1, or 16 packages of two dies, as in the text: map and groups are the same, but if
/// consecutive groups are striped, half as many work in parallel. With the literal translation, one does. With 81 us
/// per read and 2.6 ms per program that is 809 and 25 MB/s, or 6.5 GB/s and 202 MB/s with 32 dies.
#[test]
fn dies_at_work_on_groups_in_a_row() {
    let at_work = |dies, translation| {
        let layout = Layout::new(&prototype(dies, translation));
        let places = (0..8).map(|n| layout.place(layout.group(0, n)));
        places.map(|place| (place.package, place.die)).collect::<BTreeSet<_>>().len() as u64
    };
    for dies in [1, 2] {
        assert_eq!(at_work(dies, GroupTranslation::literal), 1);
        assert_eq!(at_work(dies, GroupTranslation::striped), 4 * u64::from(dies));
    }
    let rate = |dies: u64, us: u64| dies * (64 << 10) / us;
    assert_eq!((rate(1, 81), rate(1, 2_600)), (809, 25));
    assert_eq!((rate(4, 2_600), rate(8, 2_600)), (100, 201));
}

/// 256 pages per block: with the literal translation, a block is 16 MB of 254 data groups; striped over all dies, 128
/// MB with 32 dies, 64 MB with 16. Two pages of 256 are metadata either way.
#[test]
fn blocks_are_what_consecutive_groups_fill() {
    let of = |dies, translation| {
        let layout = Layout::new(&prototype(dies, translation));
        (layout.blocks(), layout.block_groups(), layout.metadata_groups(), layout.data_groups())
    };
    assert_eq!(of(2, GroupTranslation::literal), (2_048, 256, 2, 254));
    assert_eq!(of(1, GroupTranslation::literal), (2_048, 256, 2, 254));
    assert_eq!(of(2, GroupTranslation::striped), (256, 2_048, 16, 2_032));
    assert_eq!(of(1, GroupTranslation::striped), (512, 1_024, 8, 1_016));
}

/// Every page of the flash belongs to one group, whose pages are on all channels and planes. Erasing a block erases
/// exactly the blocks of its groups; metadata is in the first pages. Dies are numbered as the media number them.
#[test]
fn groups_and_blocks_cover_the_flash() {
    for translation in GroupTranslation::all_defaults() {
        let mut spec = small(translation);
        (spec.geometry.channels, spec.geometry.planes) = (3, 2);
        let layout = Layout::new(&spec);
        let media = Geometry::new(layout.shape());
        let mut pages = BTreeSet::new();
        for block in 0..layout.blocks() {
            let mut touched = BTreeSet::new();
            for index in 0..layout.block_groups() {
                let group = layout.group(block, index);
                assert_eq!(layout.block_of(group), (block, index));
                let all: Vec<_> = layout.pages(group).collect();
                let channels: BTreeSet<_> =
                    all.iter().map(|page| (media.channel_of_die(page.die), page.plane)).collect();
                assert_eq!((all.len(), channels.len()), (6, 6));
                for page in all {
                    assert!(page.die < media.die_count && page.block < media.shape.blocks);
                    assert_eq!(page.page < spec.metadata_pages, index < layout.metadata_groups());
                    touched.insert((page.die, page.plane, page.block));
                    assert!(pages.insert((page.die, page.plane, page.block, page.page)));
                }
            }
            let erased: Vec<_> = layout.erase(block).map(|at| (at.die, at.plane, at.block)).collect();
            assert_eq!(erased.len(), touched.len());
            assert_eq!(erased.into_iter().collect::<BTreeSet<_>>(), touched);
        }
        assert_eq!(pages.len() as u64, media.block_count * u64::from(media.shape.pages));
    }
}

#[test]
fn data_groups_are_numbered_without_metadata() {
    for translation in GroupTranslation::all_defaults() {
        let layout = Layout::new(&small(translation));
        let mut number = 0;
        for group in (0..layout.groups()).map(Physical) {
            let is_data = layout.block_of(group).1 >= layout.metadata_groups();
            assert_eq!(layout.data_number(group), is_data.then_some(number));
            if is_data {
                assert_eq!(layout.nth_data(number), group);
                number += 1;
            }
        }
        assert_eq!(number, layout.blocks() * layout.data_groups());
    }
}

/// 26 GB of inputs that are present from the start take no simulator memory.
#[test]
fn what_is_there_from_the_start_costs_nothing() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    let empty = visor.map.bytes() + visor.holds.bytes();
    visor.assume_written(26 << 14).expect("it fits");
    assert_eq!(visor.map.bytes() + visor.holds.bytes(), empty);
    assert!(empty < 1_000, "{empty} B");
}
