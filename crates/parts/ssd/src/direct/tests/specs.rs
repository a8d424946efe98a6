//! What can and what cannot be built.

use crate::direct::Direct;
use crate::direct::spec::{DirectSpec, Transfer};
use crate::direct::testing::{small, table_i};
use config::units::Bytes;
use nand::dies::sched::Scheduling;
use nand::planes::spec::{BusSpec, FlashNetwork};
use nand::registers::spec::RegisterNetwork;
use net::mesh::MeshSpec;
use proto::memory::LINE;

#[test]
fn table_i_has_its_sizes() {
    let Ok(direct) = Direct::new(&table_i(), 1, LINE) else { panic!("Table I can be built") };
    assert_eq!((direct.controllers(), direct.reach()), (16, 192 << 20));
    // 1,024 planes x 512 data blocks x 384 pages x 4 KiB.
    assert_eq!(direct.capacity(), 768 << 30);
    let controllers: Vec<u16> = (0..32).map(|n| direct.controller_of(n * 4096)).collect();
    assert!(controllers.iter().enumerate().all(|(n, c)| usize::from(*c) == n % 16));
}

#[test]
fn every_policy_builds_and_reads_back() {
    let mut specs = Vec::new();
    for network in RegisterNetwork::all_defaults() {
        for scheduler in Scheduling::all_defaults().into_iter().filter(|s| *s != Scheduling::in_order) {
            for transfer in Transfer::all_defaults() {
                let mut spec = table_i();
                (spec.registers.network, spec.array.scheduler, spec.transfer) =
                    (network.clone(), scheduler.clone(), transfer);
                specs.push(spec);
            }
        }
    }
    let mut bus = table_i();
    bus.network = FlashNetwork::bus(BusSpec::default());
    bus.geometry.ports = 1;
    specs.push(bus);
    assert!(specs.iter().all(|spec| Direct::new(spec, 1, LINE).is_ok()));
}

#[test]
fn what_cannot_be_is_said_with_its_key() {
    let fault = |change: fn(&mut DirectSpec)| {
        let mut spec = small();
        change(&mut spec);
        let fault = Direct::new(&spec, 1, LINE).err().expect("unsound");
        fault.key
    };
    assert_eq!(fault(|s| s.geometry.dies = 0), "geometry.dies");
    assert_eq!(fault(|s| s.geometry.pages = 5_000), "geometry.pages");
    assert_eq!(fault(|s| s.mapping.group = 3), "mapping.group");
    assert_eq!(fault(|s| s.mapping.log_share = 3), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.data_blocks = 10), "mapping.data_blocks");
    assert_eq!(fault(|s| s.mapping.log_filled.clear()), "mapping.log_filled");
    assert_eq!(fault(|s| s.registers.count = 1), "registers.count");
    assert_eq!(fault(|s| s.controller.count = 3), "controller.count");
    assert_eq!(fault(|s| s.network = FlashNetwork::mesh(MeshSpec::default())), "network.mesh.rows");
    assert_eq!(fault(|s| s.network = FlashNetwork::bus(BusSpec::default())), "geometry.ports");
    let wide = |s: &mut DirectSpec| {
        s.network =
            FlashNetwork::mesh(MeshSpec { rows: 1, columns: 2, width: Bytes::new(0), ..MeshSpec::default() });
    };
    assert_eq!(fault(wide), "network.mesh.width");
    for line in [0, 32, 96, 1024, 4096] {
        let fault = Direct::new(&small(), 1, line).err().expect("unsound");
        assert_eq!((fault.key.as_str(), fault.what.contains("64, 128, 256 or 512 B")), ("line", true));
    }
}

/// One share for each application, the last for all further ones; pages are whole.
#[test]
fn log_blocks_are_filled_to_their_application_s_share() {
    let mut spec = small();
    assert_eq!([0, 1, 200].map(|app| spec.log_room(app)), [8, 8, 8]);
    spec.mapping.log_filled = ["25%", "100%", "70%"].map(|share| share.parse().expect("a share")).into();
    // 70 % of 8 pages are 5.6: six are programmed.
    assert_eq!([0, 1, 2, 200].map(|app| spec.log_room(app)), [6, 0, 2, 2]);
}

/// 16 blocks hold 8 data blocks, 4 log blocks and 2 for a merge, but not 10, 5 and 2: the diagnostic says how many fit.
#[test]
fn the_help_says_how_many_data_blocks_fit() {
    let mut spec = small();
    spec.mapping.data_blocks = 10;
    let fault = spec.check().expect_err("17 blocks of 16");
    assert_eq!(fault.help.as_deref(), Some("at most 8 data blocks fit"));
    spec.mapping.data_blocks = 8;
    assert_eq!(spec.check(), Ok(()));
}
