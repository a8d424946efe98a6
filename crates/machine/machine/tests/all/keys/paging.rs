//! Paging by the host, and by the operating system of a server.

use super::Predicted::{Differ, Falls, Rises};
use super::{BACK, BFS, Case, GAUS, ONE_READ, Predicted, SWAP, TATP};

const FAULT: &str = "/breakdown_ns/load/fault";
const SIM: &str = "/simulated_ns";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "paging.granule",
        context: &[],
        jobs: BACK,
        values: &["4KiB", "16KiB", "64KiB"],
        predicted: Falls("/gpu/0/paging/granules"),
    },
    Case {
        key: "paging.memory",
        context: &[],
        jobs: BACK,
        values: &["32KiB", "64KiB", "1MiB"],
        predicted: Falls("/gpu/0/paging/evictions"),
    },
    Case {
        key: "paging.write_back",
        context: &["paging.memory=32KiB"],
        jobs: BACK,
        values: &["false", "true"],
        predicted: Rises(SIM),
    },
    Case {
        key: "paging.submit",
        context: &[],
        jobs: BACK,
        values: &["0us", "3us", "10us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.complete",
        context: &[],
        jobs: BACK,
        values: &["0us", "2us", "10us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.copies",
        context: &[],
        jobs: BACK,
        values: &["0", "2", "8"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.copy_bandwidth",
        context: &[],
        jobs: BACK,
        values: &["1GB/s", "8GB/s", "64GB/s"],
        predicted: Falls(FAULT),
    },
    Case {
        key: "paging.driver.interrupt",
        context: &[],
        jobs: GAUS,
        values: &["0us", "5us", "50us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.driver.handlers",
        context: &[],
        jobs: BACK,
        values: &["1", "2", "8"],
        predicted: Falls(FAULT),
    },
    Case {
        key: "paging.driver.batch",
        context: &[],
        jobs: BACK,
        values: &["1", "4", "256"],
        predicted: Falls("/gpu/0/paging/batches"),
    },
    Case {
        key: "paging.driver.batch_time",
        context: &[],
        jobs: BACK,
        values: &["0us", "10us", "50us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.driver.fault_time",
        context: &[],
        jobs: BACK,
        values: &["0us", "1us", "10us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.driver.resume",
        context: &[],
        jobs: BACK,
        values: &["0us", "5us", "50us"],
        predicted: Rises(FAULT),
    },
    Case {
        key: "paging.link.generation",
        context: &["paging.link.lanes=1"],
        jobs: BACK,
        values: &["1", "2", "5"],
        predicted: Falls(FAULT),
    },
    Case {
        key: "paging.link.lanes",
        context: &[],
        jobs: BACK,
        values: &["1", "4", "16"],
        predicted: Falls(FAULT),
    },
    Case {
        key: "paging.link.max_payload",
        context: &["paging.link.lanes=1"],
        jobs: BACK,
        values: &["128B", "256B", "512B"],
        predicted: Falls(FAULT),
    },
    Case {
        key: "paging.link.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "250ns", "10us"],
        predicted: Rises(FAULT),
    },
];

// Links between parts: a name of nothing is refused, with the names that would do.

const fn link(key: &'static str, values: &'static [&'static str], jobs: &'static [&'static str]) -> Case {
    let predicted = Predicted::RefusedAfterFirst("the part `nowhere` does not exist");
    Case { key, context: &[], jobs, values, predicted }
}

/// Of a drive.
pub(crate) const DRIVE: &[Case] = &[link("host.drives", &["flash", "nowhere"], ONE_READ)];

/// Of a GPU with DRAM.
pub(crate) const GPU: &[Case] = &[
    link("gpu.mmu", &["mmu", "nowhere"], GAUS),
    link("gpu.network", &["network", "nowhere"], GAUS),
    link("gpu.l2", &["l2", "nowhere"], GAUS),
    link("l2.memory", &["memory", "nowhere"], GAUS),
];

/// Of a GPU inside a drive.
pub(crate) const INSIDE: &[Case] = &[link("memory.drive", &["flash", "nowhere"], BFS)];

/// Of a GPU that the host pages for.
pub(crate) const PAGED: &[Case] =
    &[link("gpu.paging", &["paging", "nowhere"], GAUS), link("paging.drive", &["flash", "nowhere"], GAUS)];

/// Of a DRAM cache over another memory.
pub(crate) const CACHED: &[Case] = &[link("memory.memory", &["nand", "nowhere"], GAUS)];

/// Of a server that pages.
pub(crate) const SWAPPED: &[Case] = &[
    link("cpu.mmu", &["mmu", "nowhere"], SWAP),
    link("cpu.fabric", &["fabric", "nowhere"], SWAP),
    link("cpu.directory", &["directory", "nowhere"], SWAP),
    link("cpu.l2", &["l2", "nowhere"], SWAP),
    link("cpu.swap", &["swap", "nowhere"], SWAP),
    link("swap.drive", &["flash", "nowhere"], SWAP),
];

const FAULTS: &str = "/cpu/0/memory/swap/faults";

const SERVER_FAULT: &str = "/cpu/0/memory/swap/fault_ns";

const KERNEL: &str = "/cpu/0/time_share/kernel";

const SPINNING: &str = "/cpu/0/memory/swap/spinning_ns";

const SHOOTING: &str = "/cpu/0/memory/swap/shooting_ns";

pub(crate) const OF_SERVER: &[Case] = &[
    Case {
        key: "swap.memory",
        context: &[],
        jobs: TATP,
        values: &["512KiB", "2MiB", "8MiB"],
        predicted: Falls(FAULTS),
    },
    Case {
        key: "swap.free",
        context: &[],
        jobs: TATP,
        values: &["64KiB", "256KiB", "768KiB"],
        predicted: Rises(FAULTS),
    },
    Case {
        key: "swap.fault",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(SERVER_FAULT),
    },
    Case {
        key: "swap.submit",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(SERVER_FAULT),
    },
    Case {
        key: "swap.complete",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(SERVER_FAULT),
    },
    Case {
        key: "swap.select",
        context: &[],
        jobs: TATP,
        values: &["0us", "10us", "100us"],
        predicted: Rises(KERNEL),
    },
    Case {
        key: "swap.lock",
        context: &[],
        jobs: TATP,
        values: &["0us", "1us", "20us"],
        predicted: Rises(SPINNING),
    },
    Case {
        key: "swap.shootdown.base",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.shootdown.per_core",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.shootdown.respond",
        context: &[],
        jobs: TATP,
        values: &["0us", "3us", "30us"],
        predicted: Rises(SHOOTING),
    },
    Case {
        key: "swap.backing",
        context: &["flash.geometry.blocks=256"],
        jobs: TATP,
        values: &["device", "fixed"],
        predicted: Differ,
    },
    Case {
        key: "swap.backing.fixed.read",
        context: &[],
        jobs: TATP,
        values: &["10us", "50us", "100us"],
        predicted: Rises(SERVER_FAULT),
    },
    Case {
        key: "swap.backing.fixed.write",
        context: &[],
        jobs: SWAP,
        values: &["10us", "1ms", "100ms"],
        predicted: Differ,
    },
];
