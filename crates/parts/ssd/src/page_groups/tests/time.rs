//! Time and energy: by hand for one group, by the arithmetic of the mechanism for many.

use crate::page_groups::{
    GroupsFlashSpec,
    testing::{Rig, groups, prototype},
};
use config::{
    StatePower,
    units::{Energy, Power},
};
use engine::Time;
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::FlashEnergySpec;
use net::energy::LinkEnergySpec;
use proto::groups::Ask;

/// Planes whose commands and data a channel carries for a group.
const PLANES: u64 = 2;
/// Command and address of a read or a program on NV-DDR2: 20 ns + 7 x 25 ns + 100 ns.
const COMMAND_NS: u64 = 295;
/// A page of 8 KiB at 800 MB/s.
const PAGE_NS: u64 = 10_240;

/// Read commands of both planes, and both pages with 20 ns + 30 ns in front of each.
fn read_channel() -> Time {
    Time::from_ns(PLANES * (COMMAND_NS + 50 + PAGE_NS))
}

/// Program commands of both planes, each with 150 ns and a page behind it.
fn program_channel() -> Time {
    Time::from_ns(PLANES * (COMMAND_NS + 150 + PAGE_NS))
}

/// Eight pages over the link: 8,192 B at 1.83 GB/s are 4,476,502.7 ps.
fn link() -> Time {
    Time::from_ps(8 * 4_476_503)
}

/// 64 KiB as one.
fn link_at_once() -> Time {
    Time::from_ps(35_812_022)
}

/// Yaakobi's order: six LSB, two CSB, then pairs.
fn page_type(page: u64) -> usize {
    match page {
        0..=5 => 0,
        6..=7 => 1,
        _ => ((page - 8) / 2 % 3) as usize,
    }
}

/// Mean over all data pages of a block: those behind two of metadata.
fn sum(times: [u64; 3]) -> Time {
    (2..384).map(|page| Time::from_us(times[page_type(page)])).fold(Time::ZERO, |sum, time| sum + time)
}

fn within(measured: Time, expected: Time, percent: f64) {
    let off = (measured.as_s_f64() / expected.as_s_f64() - 1.0) * 100.0;
    assert!(off.abs() <= percent, "{measured:?} where {expected:?} is expected: {off:.2} % off");
}

/// Commands to both planes of four dies at the same time, the array, the data on four channels at the same time, then eight pages
/// one after the other over the link. Data group n is page n + 2 of the first block.
#[test]
fn one_group_takes_what_its_stages_take() {
    for (group, sense) in [(0, 58), (4, 78), (10, 107)] {
        let mut rig = Rig::new(&prototype(GroupTranslation::literal), 100);
        let took = rig.time(Ask::Read { tag: 3, groups: groups(group, group) });
        assert_eq!(took, Time::from_us(sense) + read_channel() + link(), "group {group}");
        rig.run();
        assert!(rig.flash.is_idle());
        assert_eq!((rig.flash.stats.groups_read, rig.flash.media().multi_plane), (1, 4));
    }
}

/// The link, both planes' commands and data, the program of page 2, an LSB page.
#[test]
fn one_written_group_takes_what_its_stages_take() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 0);
    let took = rig.time(Ask::Write { tag: 3, groups: groups(9, 9) });
    assert_eq!(took, link_at_once() + program_channel() + Time::from_us(558));
    rig.run();
}

/// Numbers fill one die of each channel after the other: four dies work. Their data registers are taken until the pages have left, so
/// that arrays and channels take turns: 64 KiB / (81 us + 21 us) = 640 MB/s, where the arrays alone would give 809.
#[test]
fn literal_reads_keep_four_dies_busy() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 382);
    let took = rig.time(Ask::Read { tag: 0, groups: groups(0, 381) });
    let expected = sum([58, 78, 107]) + Time::from_ps(382 * read_channel().ps()) + link();
    within(took, expected, 0.1);
    let rate = 382.0 * 65_536.0 / took.as_s_f64() / 1e6;
    assert!((635.0..650.0).contains(&rate), "{rate} MB/s");
    // The arrays' part of it.
    let arrays = 382.0 * 65_536.0 / sum([58, 78, 107]).as_s_f64() / 1e6;
    assert!((800.0..820.0).contains(&arrays), "{arrays} MB/s");
}

/// 32 dies: 5 GB/s of arrays and channels, of which the link carries 1.83.
#[test]
fn striped_reads_fill_the_link() {
    let mut rig = Rig::new(&prototype(GroupTranslation::striped), 3_056);
    let took = rig.time(Ask::Read { tag: 0, groups: groups(0, 3_055) });
    within(took, Time::from_ps(3_056 * link().ps()), 1.0);
    let busy = rig.flash.busy(rig.now());
    assert_eq!(busy.link_in, Time::from_ps(3_056 * link().ps()));
    assert_eq!(busy.link_out, Time::ZERO);
}

/// Four dies program 64 KiB in 2.6 ms: 25 MB/s.
#[test]
fn literal_writes_keep_four_dies_busy() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 0);
    let took = rig.time(Ask::Write { tag: 0, groups: groups(0, 381) });
    let expected = sum([558, 2_201, 5_001]) + Time::from_ps(382 * program_channel().ps()) + link_at_once();
    within(took, expected, 0.1);
    let rate = 382.0 * 65_536.0 / took.as_s_f64() / 1e6;
    assert!((24.5..25.8).contains(&rate), "{rate} MB/s");
}

/// Eight times as many: 202 MB/s less what the channels take.
#[test]
fn striped_writes_keep_all_dies_busy() {
    let mut rig = Rig::new(&prototype(GroupTranslation::striped), 0);
    let took = rig.time(Ask::Write { tag: 0, groups: groups(0, 3_055) });
    let expected = sum([558, 2_201, 5_001]) + Time::from_ps(382 * program_channel().ps());
    within(took, expected, 1.0);
    let rate = 3_056.0 * 65_536.0 / took.as_s_f64() / 1e6;
    assert!((195.0..206.0).contains(&rate), "{rate} MB/s");
}

/// Zeroes, without media.
#[test]
fn what_was_never_written_is_not_read() {
    let mut rig = Rig::new(&prototype(GroupTranslation::literal), 10);
    assert_eq!(rig.time(Ask::Read { tag: 1, groups: groups(10, 400) }), Time::ZERO);
    assert_eq!((rig.flash.stats.groups_unwritten, rig.flash.media().reads_queued), (391, 0));
    // Some of it is there, on page 11.
    let took = rig.time(Ask::Read { tag: 2, groups: groups(9, 10) });
    assert_eq!(took, Time::from_us(78) + read_channel() + link());
    assert_eq!((rig.flash.stats.groups_unwritten, rig.flash.stats.groups_read), (392, 1));
    rig.check();
}

#[test]
fn folded_stages_change_no_result() {
    let sent = |fold| {
        let context = crate::spec::Built { seed: 1, name: "groups".into(), fold };
        let spec = prototype(GroupTranslation::striped);
        let mut rig = Rig::new(&spec, 0);
        rig.flash = crate::page_groups::GroupsFlash::new(&spec, &context).expect("a sound spec");
        rig.flash.assume_written(500).expect("it fits");
        rig.ask(Ask::Read { tag: 0, groups: groups(0, 300) });
        rig.ask(Ask::Write { tag: 1, groups: groups(100, 200) });
        rig.ask(Ask::Read { tag: 2, groups: groups(50, 250) });
        rig.run();
        rig.cx.sent
    };
    assert_eq!(sent(true), sent(false));
}

// What a group costs, by hand.

/// Attojoules of a nanojoule, and of a microjoule.
const NANO: u64 = 1_000_000_000;
const MICRO: u64 = 1_000 * NANO;

/// MT29F64G08's energies from its measured currents; 40 pJ a byte on a channel, 60 on the link; powers that are easy to count.
pub(super) fn metered(translation: GroupTranslation) -> GroupsFlashSpec {
    let energies = |nano: [u64; 3]| nano.map(|n| Energy::new(n * NANO)).to_vec();
    let power = |idle, busy| StatePower { idle: Power::new(idle), busy: Power::new(busy) };
    let energy = FlashEnergySpec {
        read: energies([1_150, 1_520, 2_050]),
        program: energies([19_900, 111_000, 282_000]),
        erase: Energy::new(91 * MICRO),
        transfer: Energy::new(40_000_000),
        die: power(10_000, 30_000),
        controller: power(4_000_000, 9_000_000),
        link: LinkEnergySpec { transfer: Energy::new(60_000_000), on: Power::new(500_000) },
    };
    GroupsFlashSpec { energy: Some(energy), ..prototype(translation) }
}

/// Eight pages of the type of the group's page; 64 KiB on channels and link; of 32 dies, four at work from their commands to the end of
/// their data, all channels at the same time.
#[test]
fn a_group_costs_what_its_stages_cost() {
    for (group, page_nj, sense) in [(0, 1_150, 58), (4, 1_520, 78), (10, 2_050, 107)] {
        let mut rig = Rig::new(&metered(GroupTranslation::literal), 100);
        let took = rig.time(Ask::Read { tag: 3, groups: groups(group, group) });
        let energy = rig.flash.energy(rig.now()).expect("it has a meter");
        assert!(energy.conserves());
        assert_eq!(energy.of("read"), u128::from(8 * page_nj * NANO));
        assert_eq!(energy.of("channel transfer"), 65_536 * 40_000_000);
        assert_eq!(energy.of("link transfer"), 65_536 * 60_000_000);
        // Both planes: two commands of 295 ns, the array, two pages of 10,240 ns with 50 ns in front of each.
        let at_work = Time::from_us(sense) + Time::from_ns(2 * (295 + 50 + 10_240));
        assert_eq!(energy.of("die busy"), 4 * 30_000 * u128::from(at_work.ps()));
        assert_eq!(energy.of("die idle"), 10_000 * u128::from(32 * took.ps() - 4 * at_work.ps()));
        assert_eq!(energy.of("controller busy"), 9_000_000 * u128::from(took.ps()));
        assert_eq!(energy.of("link on"), 500_000 * u128::from(took.ps()));
        rig.run();
    }
}

/// The first 400 groups of an empty flash: the programs of their pages, in Yaakobi's order, behind two pages of metadata.
#[test]
fn written_groups_cost_programs_by_type_of_page() {
    let mut rig = Rig::new(&metered(GroupTranslation::literal), 0);
    rig.time(Ask::Write { tag: 3, groups: groups(0, 399) });
    let of_page = |page: u64| match page {
        0..=5 => 19_900,
        6..=7 => 111_000,
        _ => [19_900, 111_000, 282_000][((page - 8) / 2 % 3) as usize],
    };
    let nano: u64 = (0..400).map(|group| of_page(group % 382 + 2)).sum();
    let energy = rig.flash.energy(rig.now()).expect("it has a meter");
    let metadata = rig.flash.counters().metadata;
    assert_eq!(metadata, 0);
    assert_eq!(energy.of("program"), u128::from(8 * nano * NANO));
    assert_eq!(rig.flash.energy(rig.now()).map(|energy| energy.conserves()), Some(true));
    // A window begins anew.
    rig.flash.reset_stats(rig.now());
    assert_eq!(rig.flash.energy(rig.now()).map(|energy| energy.total()), Some(0));
}

#[test]
fn energies_are_as_many_as_types_of_pages() {
    let mut wrong = metered(GroupTranslation::literal);
    if let Some(energy) = &mut wrong.energy {
        energy.program.pop();
    }
    let context = crate::spec::Built { seed: 1, name: "groups".into(), fold: true };
    let fault =
        crate::page_groups::GroupsFlash::new(&wrong, &context).err().expect("two values for three types");
    assert_eq!(fault.key, "energy.program");
}
