//! DRAM.

use super::Predicted::{Differ, Falls, Rises};
use super::{BACK, Case, DRAM_SCHEDULER, GAUS};

const MEMORY: &str = "/breakdown_ns/load/memory";
const ROW_HITS: &str = "/gpu/0/memory/row_hit_share";
const SIM: &str = "/simulated_ns";

/// Caches that hold next to nothing.
const SMALL: &[&str] = &["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"];
/// As [`SMALL`], with one controller for all.
const CONTROLLER: &[&str] =
    &["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4", "memory.dram.controllers=1"];
/// As [`CONTROLLER`], with few accesses at a time.
const SINGLY: &[&str] = &[
    "gpu.l1.sets=1",
    "gpu.l1.ways=1",
    "l2.sets=4",
    "l2.ways=4",
    "memory.dram.controllers=1",
    "gpu.sms=1",
    "gpu.load_store.queue=1",
    "gpu.l1.miss_registers=1",
    "gpu.load_store.stores=1",
];
/// As [`SINGLY`], with a row for every line.
const ROWS: &[&str] = &[
    "gpu.l1.sets=1",
    "gpu.l1.ways=1",
    "l2.sets=4",
    "l2.ways=4",
    "memory.dram.controllers=1",
    "gpu.sms=1",
    "gpu.load_store.queue=1",
    "gpu.l1.miss_registers=1",
    "gpu.load_store.stores=1",
    "memory.dram.banks.row=128B",
];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "memory.dram.controllers",
        context: SMALL,
        jobs: BACK,
        values: &["1", "2", "6"],
        predicted: Falls(MEMORY),
    },
    Case {
        key: "memory.dram.interleave",
        context: SMALL,
        jobs: BACK,
        values: &["128B", "256B", "64KiB"],
        predicted: Differ,
    },
    Case {
        key: "memory.dram.latency",
        context: SMALL,
        jobs: GAUS,
        values: &["0ns", "20ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.bus.width",
        context: CONTROLLER,
        jobs: BACK,
        values: &["16", "32", "64"],
        predicted: Falls(MEMORY),
    },
    Case {
        key: "memory.dram.bus.rate",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "memory.dram.controllers=1",
            "memory.dram.timing.ccd=0ns",
        ],
        jobs: BACK,
        values: &["1000MT/s", "4008MT/s", "8000MT/s"],
        predicted: Falls(MEMORY),
    },
    // Column accesses bound the bandwidth: larger ones carry more.
    Case {
        key: "memory.dram.bus.burst",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "memory.dram.controllers=1",
            "memory.dram.timing.ccd=4ns",
        ],
        jobs: BACK,
        values: &["4", "8", "16"],
        predicted: Falls(MEMORY),
    },
    Case {
        key: "memory.dram.banks.count",
        context: CONTROLLER,
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Falls(MEMORY),
    },
    Case {
        key: "memory.dram.banks.row",
        context: CONTROLLER,
        jobs: BACK,
        values: &["128B", "1KiB", "4KiB"],
        predicted: Rises(ROW_HITS),
    },
    Case {
        key: "memory.dram.banks.hash",
        context: CONTROLLER,
        jobs: BACK,
        values: &["true", "false"],
        predicted: Differ,
    },
    Case {
        key: "memory.dram.timing.rcd",
        context: SINGLY,
        jobs: GAUS,
        values: &["2ns", "12ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.cl",
        context: SINGLY,
        jobs: GAUS,
        values: &["2ns", "12ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.cwl",
        context: SINGLY,
        jobs: GAUS,
        values: &["1ns", "20ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.rp",
        context: SINGLY,
        jobs: GAUS,
        values: &["2ns", "12ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.ras",
        context: ROWS,
        jobs: GAUS,
        values: &["1ns", "60ns", "200ns"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.dram.timing.ccd",
        context: CONTROLLER,
        jobs: BACK,
        values: &["1.996ns", "8ns", "32ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.rrd",
        context: ROWS,
        jobs: GAUS,
        values: &["1ns", "20ns", "50ns"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.dram.timing.faw",
        context: ROWS,
        jobs: GAUS,
        values: &["6ns", "100ns", "200ns"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.dram.timing.wr",
        context: SINGLY,
        jobs: GAUS,
        values: &["1ns", "50ns", "200ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.wtr",
        context: SINGLY,
        jobs: GAUS,
        values: &["1ns", "20ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.rtp",
        context: SINGLY,
        jobs: GAUS,
        values: &["1ns", "40ns", "100ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.timing.turnaround",
        context: SINGLY,
        jobs: GAUS,
        values: &["0ns", "20ns", "50ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.refresh.interval",
        context: CONTROLLER,
        jobs: BACK,
        values: &["200ns", "1us", "1ms"],
        predicted: Falls(MEMORY),
    },
    Case {
        key: "memory.dram.refresh.duration",
        context: &[
            "gpu.l1.sets=1",
            "gpu.l1.ways=1",
            "l2.sets=4",
            "l2.ways=4",
            "memory.dram.controllers=1",
            "memory.dram.refresh.interval=1us",
        ],
        jobs: BACK,
        values: &["10ns", "100ns", "800ns"],
        predicted: Rises(MEMORY),
    },
    Case {
        key: "memory.dram.scheduler",
        context: CONTROLLER,
        jobs: BACK,
        values: &["fr_fcfs", "fcfs"],
        predicted: Falls(ROW_HITS),
    },
    Case {
        key: "memory.dram.scheduler",
        context: CONTROLLER,
        jobs: BACK,
        values: DRAM_SCHEDULER,
        predicted: Differ,
    },
    Case {
        key: "memory.dram.scheduler.fr_fcfs.age_cap",
        context: CONTROLLER,
        jobs: BACK,
        values: &["0ns", "1us", "10us"],
        predicted: Rises(ROW_HITS),
    },
    Case {
        key: "memory.dram.scheduler.fr_fcfs.batch",
        context: CONTROLLER,
        jobs: BACK,
        values: &["1", "8", "32"],
        predicted: Differ,
    },
];
