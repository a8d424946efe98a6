//! An accelerator.

use super::Case;
use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};

pub(super) const MAKESPAN: &str = "/accelerator/0/makespan_ns";
const OFFLOAD: &str = "/accelerator/0/offload_ns";

pub(super) const THREE: &[&str] = &["atax:m=512,n=512,instances=3"];
pub(super) const CONVOLUTION: &[&str] = &["2dcon:ni=256,nj=256"];
pub(super) const PRODUCT: &[&str] = &["gemm:ni=128,nj=128,nk=128,t=64"];
/// Every operation on a chain of values; units alone; more than memory holds, several times.
pub(super) const CHAIN: &[&str] = &["nest:file=tests/keys/chain.toml"];
pub(super) const ROOTS: &[&str] = &["nest:file=tests/keys/roots.toml"];
pub(super) const PASSES: &[&str] = &["nest:file=tests/keys/passes.toml"];

const WITHOUT_MULTIPLY: &[&str] = &["accelerator.core.units.multiply=64"];
const PLAIN: &[&str] = &["accelerator.offload.link={ plain = { bandwidth = \"1GB/s\", latency = \"0us\" } }"];

/// Of the accelerator.
pub(crate) const CASES: &[Case] = &[
    Case {
        key: "accelerator.workers",
        context: &[],
        jobs: CONVOLUTION,
        values: &["1", "2", "3"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.clock",
        context: &[],
        jobs: CONVOLUTION,
        values: &["500MHz", "1GHz", "2GHz"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.units.multiply",
        context: &[],
        jobs: ROOTS,
        values: &["1", "2", "4"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.units.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: &["1", "2", "4"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.units.memory",
        context: &["accelerator.core.units.multiply=64", "accelerator.core.units.general=64"],
        jobs: ROOTS,
        values: &["1", "2", "4"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.load",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.store",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.add",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.multiply",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.compare",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.divide",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.latency.square_root",
        context: &[],
        jobs: CHAIN,
        values: &["2", "10", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.divide.multiply",
        context: &[],
        jobs: ROOTS,
        values: &["10", "20", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.divide.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: &["10", "20", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.square_root.multiply",
        context: &[],
        jobs: ROOTS,
        values: &["10", "20", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.square_root.general",
        context: WITHOUT_MULTIPLY,
        jobs: ROOTS,
        values: &["10", "20", "40"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l1.size",
        context: &[],
        jobs: PRODUCT,
        values: &["16KiB", "128KiB"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l1.ways",
        context: &[],
        jobs: PRODUCT,
        values: &["1", "2"],
        predicted: Differ,
    },
    Case {
        key: "accelerator.core.l1.line",
        context: &[],
        jobs: CONVOLUTION,
        values: &["32B", "64B", "128B"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l1.miss",
        context: &[],
        jobs: CONVOLUTION,
        values: &["0", "8", "20"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l2.size",
        context: &["accelerator.core.write_back=0", "accelerator.core.l1.size=4KiB"],
        jobs: PRODUCT,
        values: &["16KiB", "512KiB"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l2.ways",
        context: &["accelerator.core.l2.size=64KiB"],
        jobs: PRODUCT,
        values: &["1", "4"],
        predicted: Differ,
    },
    Case {
        key: "accelerator.core.l2.line",
        context: &[],
        jobs: CONVOLUTION,
        values: &["64B", "128B", "256B"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.l2.miss",
        context: &[],
        jobs: CONVOLUTION,
        values: &["0", "85", "200"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.prefetch.streams",
        context: &["accelerator.core.prefetch.miss=10"],
        jobs: CONVOLUTION,
        values: &["1", "8"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.core.prefetch.miss",
        context: &["accelerator.core.prefetch.streams=8"],
        jobs: CONVOLUTION,
        values: &["0", "43", "85"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.memory.size",
        context: &[],
        jobs: PASSES,
        values: &["4MiB", "16MiB"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.memory.bandwidth",
        context: &[],
        jobs: CONVOLUTION,
        values: &["100MB/s", "1GB/s", "6.4GB/s"],
        predicted: Falls(MAKESPAN),
    },
    // The table has the work of a product of 4,000 x 4,000.
    Case {
        key: "accelerator.work",
        context: &[],
        jobs: PRODUCT,
        values: &["nest", "table"],
        predicted: Rises(MAKESPAN),
    },
    // The sum of a product's inner loop waits for 9 cycles in memory, for 3 in a register.
    Case {
        key: "accelerator.sums",
        context: &[],
        jobs: PRODUCT,
        values: &["memory", "registers"],
        predicted: Falls(MAKESPAN),
    },
    Case {
        key: "accelerator.scheduler",
        context: &[],
        jobs: THREE,
        values: &["intra_out_of_order", "intra_in_order", "inter_dynamic", "inter_static"],
        predicted: Differ,
    },
    Case {
        key: "accelerator.ahead",
        context: &[],
        jobs: PASSES,
        values: &["0", "1", "2"],
        predicted: Differ,
    },
    Case {
        key: "accelerator.costs.message",
        context: &[],
        jobs: THREE,
        values: &["0", "100", "1000"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.costs.schedule",
        context: &[],
        jobs: THREE,
        values: &["0", "100", "1000"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.costs.entry",
        context: &[],
        jobs: THREE,
        values: &["0", "100", "1000"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.core.write_back",
        context: &[],
        jobs: THREE,
        values: &["0", "100", "1000"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.costs.boot",
        context: &[],
        jobs: THREE,
        values: &["0us", "10us", "1ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.sample",
        context: &[],
        jobs: THREE,
        values: &["1024", "65536"],
        predicted: Differ,
    },
    Case {
        key: "accelerator.offload.table",
        context: &[],
        jobs: THREE,
        values: &["1KiB", "64KiB", "1MiB"],
        predicted: Rises(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.interrupt",
        context: &[],
        jobs: THREE,
        values: &["0us", "10us", "1ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.offload.link",
        context: &[],
        jobs: THREE,
        values: &["{ pcie = {} }", "{ plain = { bandwidth = \"100MB/s\", latency = \"0us\" } }"],
        predicted: Rises(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.pcie.generation",
        context: &[],
        jobs: THREE,
        values: &["1", "2", "4"],
        predicted: Falls(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.pcie.lanes",
        context: &[],
        jobs: THREE,
        values: &["1", "2", "8"],
        predicted: Falls(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.pcie.max_payload",
        context: &[],
        jobs: THREE,
        values: &["64B", "128B", "256B"],
        predicted: Falls(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.pcie.latency",
        context: &[],
        jobs: THREE,
        values: &["0ns", "250ns", "1ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.offload.link.pcie.flow_control",
        context: &[],
        jobs: THREE,
        values: &["0%", "8.07%", "50%"],
        predicted: Rises(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.plain.bandwidth",
        context: PLAIN,
        jobs: THREE,
        values: &["100MB/s", "1GB/s"],
        predicted: Falls(OFFLOAD),
    },
    Case {
        key: "accelerator.offload.link.plain.latency",
        context: PLAIN,
        jobs: THREE,
        values: &["0ns", "1us", "1ms"],
        predicted: Rises(MAKESPAN),
    },
    Case {
        key: "accelerator.storage",
        context: &[],
        jobs: THREE,
        values: &["group_flash", "nowhere"],
        predicted: RefusedAfterFirst("the part `nowhere` does not exist"),
    },
];
