//! What a group costs, by hand.

use crate::page_groups::GroupsFlashSpec;
use crate::page_groups::testing::{Rig, groups, prototype};
use config::StatePower;
use config::units::{Energy, Power};
use engine::Time;
use ftl::page_groups::translation::GroupTranslation;
use nand::energy::FlashEnergySpec;
use net::energy::LinkEnergySpec;
use proto::groups::Ask;

/// Attojoules of a nanojoule, and of a microjoule.
const NANO: u64 = 1_000_000_000;
const MICRO: u64 = 1_000 * NANO;

/// MT29F64G08's energies from its measured currents; 40 pJ a byte on a channel, 60 on the link; powers that are easy to count.
pub(super) fn spec(translation: GroupTranslation) -> GroupsFlashSpec {
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
        let mut rig = Rig::new(&spec(GroupTranslation::literal), 100);
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
    let mut rig = Rig::new(&spec(GroupTranslation::literal), 0);
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
    let mut wrong = spec(GroupTranslation::literal);
    if let Some(energy) = &mut wrong.energy {
        energy.program.pop();
    }
    let context = crate::spec::Built { seed: 1, name: "groups".into(), fold: true };
    let fault =
        crate::page_groups::GroupsFlash::new(&wrong, &context).err().expect("two values for three types");
    assert_eq!(fault.key, "energy.program");
}
