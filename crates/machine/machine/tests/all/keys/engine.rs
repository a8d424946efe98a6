//! An SSD engine.

use super::Predicted::{Differ, Falls, Rises};
use super::{BACK, BFS, Case};

const BUFFER: &str = "/breakdown_ns/load/buffer";
const CONTROLLER: &str = "/breakdown_ns/load/controller";
const FTL: &str = "/breakdown_ns/load/ftl";
const SIM: &str = "/simulated_ns";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "memory.engine.dispatch_time",
        context: &[],
        jobs: BACK,
        values: &["0ns", "5ns", "100ns"],
        predicted: Rises(CONTROLLER),
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
        predicted: Falls(BUFFER),
    },
    Case {
        key: "memory.engine.dram.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "13.75ns", "1us"],
        predicted: Rises(BUFFER),
    },
    Case {
        key: "memory.engine.dram.activate",
        context: &[],
        jobs: BACK,
        values: &["0ns", "27.5ns", "1us"],
        predicted: Rises(BUFFER),
    },
    Case {
        key: "memory.engine.dram.banks",
        context: &["memory.engine.dram.activate=1us"],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(BUFFER),
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
