//! What can be built, and what is refused.

use crate::page_groups::spec::{DumpExtent, GroupsSpec};
use crate::page_groups::testing::{prototype, small};
use crate::page_groups::translation::GroupTranslation;
use crate::page_groups::victim::GroupVictim;
use crate::page_groups::{Flashvisor, GroupError, Logical};
use config::units::{Bytes, Duration};

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

/// 64 blocks of 14: one is kept free and two are written to, so 61 x 14 = 854 groups, eight of which are the map's.
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
    assert_eq!(full.to_string(), "847 page groups of data, but 846 fit beside metadata, map and free blocks");
    let beyond = GroupError::OutOfRange { group: 1_024, groups: 1_024 };
    assert_eq!(visor.lookup(Logical(1_024)), Err(beyond));
    assert_eq!(visor.write(Logical(1_024)), Err(beyond));
    assert_eq!(beyond.to_string(), "page group 1024 is addressed, but the flash has 1024");
}

#[test]
fn a_flash_without_room_is_refused() {
    let mut spec = small(GroupTranslation::striped);
    spec.reclaim.reserve = 14;
    let error = spec.check().expect_err("no block is left");
    assert_eq!(error.key, "geometry.blocks");
    assert!(error.what.starts_with("16 blocks of 56 groups leave no room"), "{}", error.what);
}
