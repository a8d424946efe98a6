use crate::page_groups::spec::GroupBadBlocksSpec;
use crate::page_groups::testing::{Rig, groups, prototype, small};
use crate::page_groups::{GroupsFlash, GroupsFlashSpec};
use crate::spec::{Built, Programming};
use config::units::{Bandwidth, Duration, Share};
use engine::Time;
use ftl::page_groups::translation::GroupTranslation;
use proto::groups::{Ask, Tell};

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
