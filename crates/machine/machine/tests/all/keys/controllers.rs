//! Flash behind a controller: an SSD engine, and a GPU that reaches its flash device by itself, inside the drive.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, BFS, Case, LONG_BACK};

const SLAT: &str = "/io/read/slat_ns/mean";
const CONTROLLER: &str = "/breakdown_ns/load/controller";
const BUFFER: &str = "/breakdown_ns/load/buffer";

const PCIE: &[&str] = &[
    "flash.inner.link={ pcie = { generation = 3, lanes = 4, max_payload = \"256B\", latency = \"250ns\" } }",
];
/// Few commands at once get into the controller, from four queues.
const WEIGHTED: &[&str] = &[
    "memory.initiator.queues=4",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 2, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { weighted = { burst = 1, high = 8, medium = 4, low = 2, classes = [1, 2, 3, 3] } } }",
];
const QUEUES: &[&str] = &[
    "memory.initiator.queues=2",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 4, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { round_robin = { burst = 1 } } }",
];

/// Room for all commands.
const ROOMY: &[&str] = &[
    "memory.initiator.queues=2",
    "memory.initiator.depth=64",
    "flash.inner.nvme={ queues = 4, depth = 64, in_controller = 1024, doorbell = \"0us\", fetch = \"0us\", interrupt = \"0us\", arbitration = { round_robin = { burst = 1 } } }",
];

pub(crate) const INITIATOR: &[Case] = &[
    Case {
        key: "memory.initiator.entrance",
        context: &[],
        jobs: BACK,
        values: &["host", "inner"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "memory.initiator.dispatch_time",
        context: &[],
        jobs: BACK,
        values: &["0ns", "5ns", "100ns"],
        predicted: Rises(CONTROLLER),
    },
    Case {
        key: "memory.initiator.queues",
        context: &["memory.initiator.depth=1"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(SLAT),
    },
    Case {
        key: "memory.initiator.depth",
        context: &["memory.initiator.queues=1"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(SLAT),
    },
    Case {
        key: "memory.initiator.gather.capacity",
        context: &[],
        jobs: LONG_BACK,
        values: &["32KiB", "1MiB"],
        predicted: Falls("/gpu/0/memory/initiator/evictions"),
    },
    Case {
        key: "memory.initiator.gather.ways",
        context: &["memory.initiator.gather.capacity=32KiB"],
        jobs: LONG_BACK,
        values: &["1", "2", "4"],
        predicted: Differ,
    },
    Case {
        key: "memory.initiator.gather.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "10ns", "1us"],
        predicted: Rises(BUFFER),
    },
    Case {
        key: "flash.inner.link",
        context: PCIE,
        jobs: BACK,
        values: &["{ pcie = {} }", "{ plain = { bandwidth = \"100MB/s\", latency = \"0us\" } }"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.generation",
        context: PCIE,
        jobs: BACK,
        values: &["1", "3", "5"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.lanes",
        context: PCIE,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.max_payload",
        context: PCIE,
        jobs: BACK,
        values: &["128B", "256B", "512B"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.pcie.latency",
        context: PCIE,
        jobs: BACK,
        values: &["0ns", "250ns", "1us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.link.pcie.flow_control",
        context: PCIE,
        jobs: BACK,
        values: &["0%", "8.07%", "50%"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.plain.bandwidth",
        context: &[],
        jobs: BACK,
        values: &["100MB/s", "1GB/s", "16GB/s"],
        predicted: Falls("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.link.plain.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.command",
        context: &[],
        jobs: BACK,
        values: &["0us", "1us", "5us"],
        predicted: Rises("/breakdown_ns/read/controller"),
    },
    // Without queues of its own a command is in the controller after the link's latency.
    Case {
        key: "flash.inner.nvme.queues",
        context: QUEUES,
        jobs: BACK,
        values: &["4", "1"],
        predicted: RefusedAfterFirst("2 is more than the device has: 1"),
    },
    Case {
        key: "flash.inner.nvme.depth",
        context: QUEUES,
        jobs: BACK,
        values: &["64", "8"],
        predicted: RefusedAfterFirst("64 is more than the device has: 8"),
    },
    Case {
        key: "flash.inner.nvme.in_controller",
        context: QUEUES,
        jobs: BACK,
        values: &["1", "4", "64"],
        predicted: Falls("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.doorbell",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.fetch",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/submission"),
    },
    Case {
        key: "flash.inner.nvme.interrupt",
        context: ROOMY,
        jobs: BACK,
        values: &["0us", "5us"],
        predicted: Rises("/breakdown_ns/read/host_transfer"),
    },
    Case {
        key: "flash.inner.nvme.arbitration",
        context: WEIGHTED,
        jobs: BACK,
        values: &["{ weighted = {} }", "{ round_robin = { burst = 1 } }"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.round_robin.burst",
        context: QUEUES,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.burst",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.high",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.medium",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.low",
        context: WEIGHTED,
        jobs: BACK,
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "flash.inner.nvme.arbitration.weighted.classes",
        context: WEIGHTED,
        jobs: BACK,
        values: &["[1, 2, 3, 3]", "[3, 2, 1, 1]"],
        predicted: Differ,
    },
];

const ENGINE_BUFFER: &str = "/breakdown_ns/load/buffer";

const ENGINE_CONTROLLER: &str = "/breakdown_ns/load/controller";

const FTL: &str = "/breakdown_ns/load/ftl";

const SIM: &str = "/simulated_ns";

pub(crate) const ENGINE: &[Case] = &[
    Case {
        key: "memory.engine.dispatch_time",
        context: &[],
        jobs: BACK,
        values: &["0ns", "5ns", "100ns"],
        predicted: Rises(ENGINE_CONTROLLER),
    },
    Case {
        key: "memory.engine.ftl_time",
        context: &[],
        jobs: BACK,
        values: &["1us", "5us", "20us"],
        predicted: Rises(FTL),
    },
    Case {
        key: "memory.engine.ftl_in_service",
        context: &[],
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Falls(FTL),
    },
    Case {
        key: "memory.engine.evictions",
        context: &[],
        jobs: BACK,
        values: &["1", "2", "4"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.engine.read_buffer.capacity",
        context: &[],
        jobs: BFS,
        values: &["32KiB", "64KiB", "1MiB"],
        predicted: Rises("/gpu/0/memory/engine/read_hit_share"),
    },
    Case {
        key: "memory.engine.read_buffer.ways",
        context: &[],
        jobs: BFS,
        values: &["1", "4", "8"],
        predicted: Differ,
    },
    Case {
        key: "memory.engine.write_buffer.capacity",
        context: &[],
        jobs: BACK,
        values: &["32KiB", "64KiB", "1MiB"],
        predicted: Rises("/gpu/0/memory/engine/write_hit_share"),
    },
    Case {
        key: "memory.engine.write_buffer.ways",
        context: &[],
        jobs: BACK,
        values: &["1", "4", "8"],
        predicted: Differ,
    },
    Case {
        key: "memory.engine.dram.bandwidth",
        context: &[],
        jobs: BACK,
        values: &["1GB/s", "6.4GB/s", "50GB/s"],
        predicted: Falls(ENGINE_BUFFER),
    },
    Case {
        key: "memory.engine.dram.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "13.75ns", "1us"],
        predicted: Rises(ENGINE_BUFFER),
    },
    Case {
        key: "memory.engine.dram.activate",
        context: &[],
        jobs: BACK,
        values: &["0ns", "27.5ns", "1us"],
        predicted: Rises(ENGINE_BUFFER),
    },
    Case {
        key: "memory.engine.dram.banks",
        context: &["memory.engine.dram.activate=1us"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(ENGINE_BUFFER),
    },
    Case {
        key: "memory.engine.prefetch.entries",
        context: &[],
        jobs: BFS,
        values: &["1", "512"],
        predicted: Differ,
    },
    Case {
        key: "memory.engine.prefetch.after",
        context: &[],
        jobs: &["bfs1:scale=10"],
        values: &["1", "8"],
        predicted: Differ,
    },
    Case {
        key: "memory.engine.prefetch.pages",
        context: &["memory.engine.prefetch.after=2"],
        jobs: BACK,
        values: &["2", "4", "8"],
        predicted: Rises("/gpu/0/memory/engine/prefetched_pages"),
    },
];
