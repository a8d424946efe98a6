//! Specs for tests.

use super::spec::{
    ArrayOrder, DirectArray, DirectController, DirectGeometry, DirectMapping, DirectRegisters, DirectSpec,
    FlashNetwork, RegisterNetwork, Transfer,
};
use config::units::{Bytes, Duration};
use kernel::Time;
use net::mesh::MeshSpec;

/// ZnG's Table I, the write registers private to their planes.
pub(crate) fn table_i() -> DirectSpec {
    let time = |ns| Duration::new(Time::from_ns(ns));
    DirectSpec {
        geometry: DirectGeometry {
            channels: 16,
            packages: 1,
            ports: 2,
            dies: 8,
            planes: 8,
            blocks: 1024,
            pages: 384,
        },
        mapping: DirectMapping { group: 128, data_blocks: 512, log_share: 4, search: time(10) },
        array: DirectArray {
            read: time(3_000),
            program: time(100_000),
            erase: time(1_000_000),
            order: ArrayOrder::fifo,
            merge_reads: true,
        },
        registers: DirectRegisters { count: 8, network: RegisterNetwork::private },
        controller: DirectController { count: 16, dispatch: time(1), latency: time(5) },
        network: FlashNetwork::mesh(MeshSpec::default()),
        command: Bytes::new(8),
        transfer: Transfer::page,
        redirect: None,
    }
}

/// Two packages with two planes each, of 16 blocks with 8 pages: 3 registers a plane.
pub(crate) fn small() -> DirectSpec {
    let mut spec = table_i();
    spec.geometry =
        DirectGeometry { channels: 2, packages: 1, ports: 2, dies: 1, planes: 2, blocks: 16, pages: 8 };
    spec.mapping.group = 2;
    spec.mapping.data_blocks = 8;
    spec.mapping.log_share = 2;
    spec.registers.count = 3;
    spec.controller.count = 2;
    spec.network = FlashNetwork::mesh(MeshSpec { rows: 1, columns: 2, ..MeshSpec::default() });
    spec
}
