//! Flash whose controllers are on the network.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, Case, GAUS, LONG_BACK, THREE};

const ARRAY: &str = "/breakdown_ns/load/array";
const CONTROLLER: &str = "/breakdown_ns/load/controller";
const HELPER: &str = "/gpu/0/helper_instructions";
const IPC: &str = "/gpu/0/ipc";
const NETWORK: &str = "/breakdown_ns/load/flash_network";
const PARKED: &str = "/gpu/0/l2/parked_pages";
const SIM: &str = "/simulated_ns";

/// Every write goes to the registers.
const READ_ONLY: &[&str] = &["l2.writes=read_only"];
/// As [`READ_ONLY`], with half as many planes.
const PAIRS: &[&str] = &[
    "l2.writes=read_only",
    "memory.direct.geometry.planes=2",
    "memory.direct.mapping.group=8",
    "mmu.table.block.reach=512KiB",
];
/// A bus for each channel.
const BUS: &[&str] = &["memory.direct.network=bus", "memory.direct.geometry.ports=1"];
/// One controller behind a narrow mesh.
const FAR: &[&str] =
    &["memory.direct.controller.count=1", "memory.direct.network.mesh.width=1B", "gpu.sms=1"];
/// Blocks of few pages, so that a log block serves several that are written.
const SHORT_BLOCKS: &[&str] = &[
    "l2.writes=read_only",
    "memory.direct.geometry.pages=4",
    "mmu.table.block.reach=256KiB",
    "memory.direct.geometry.blocks=128",
    "memory.direct.mapping.data_blocks=32",
];
/// Registers that thrash.
const THRASHING: &[&str] =
    &["l2.sets=64", "l2.parked=144KiB", "memory.direct.registers.count=2", "memory.direct.redirect.window=8"];
/// A memory of GDDR5.
const DRAM: &str = "{ dram = { controllers = 1, interleave = \"256B\", latency = \"0ns\", bus = { width = 64, rate = \"4008MT/s\", burst = 8 }, banks = { count = 16, row = \"4KiB\", hash = true }, scheduler = \"fr_fcfs\", timing = { rcd = \"12ns\", cl = \"12ns\", cwl = \"4ns\", rp = \"12ns\", ras = \"28ns\", ccd = \"2ns\", rrd = \"6ns\", faw = \"23ns\", wr = \"12ns\", wtr = \"5ns\", rtp = \"2ns\", turnaround = \"2ns\" } } }";

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "memory",
        context: &[],
        jobs: GAUS,
        values: &["{ direct = {} }", DRAM],
        predicted: Rises(IPC),
    },
    Case {
        key: "memory.direct.geometry.channels",
        context: &[
            "memory.direct.network=bus",
            "memory.direct.geometry.ports=1",
            "memory.direct.mapping.group=8",
            "memory.direct.controller.count=1",
            "mmu.table.block.reach=512KiB",
        ],
        jobs: BACK,
        values: &["2", "4"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.direct.geometry.packages",
        context: &[],
        jobs: BACK,
        values: &["1", "2"],
        predicted: RefusedAfterFirst("a mesh needs one router per package"),
    },
    Case {
        key: "memory.direct.geometry.ports",
        context: &["memory.direct.network.mesh.rate=100MT/s"],
        jobs: &["back:n=512"],
        values: &["1", "2", "4"],
        predicted: Falls(SIM),
    },
    // The entries of three programs lie in planes of their own, if there are enough.
    Case {
        key: "memory.direct.geometry.dies",
        context: &[],
        jobs: THREE,
        values: &["1", "2"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.direct.geometry.planes",
        context: &[],
        jobs: THREE,
        values: &["4", "8"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.direct.geometry.blocks",
        context: &[],
        jobs: BACK,
        values: &["14", "13"],
        predicted: RefusedAfterFirst("8 data blocks need"),
    },
    Case {
        key: "memory.direct.geometry.pages",
        context: &[],
        jobs: BACK,
        values: &["16", "32"],
        predicted: RefusedAfterFirst("both must be equal"),
    },
    Case {
        key: "memory.direct.mapping.group",
        context: &[],
        jobs: BACK,
        values: &["16", "8"],
        predicted: RefusedAfterFirst("both must be equal"),
    },
    Case {
        key: "memory.direct.mapping.data_blocks",
        context: &[],
        jobs: &["back:n=256", "back:n=256", "back:n=256", "back:n=256", "back:n=256"],
        values: &["8", "4"],
        predicted: RefusedAfterFirst("the flash holds"),
    },
    Case {
        key: "memory.direct.mapping.log_share",
        context: SHORT_BLOCKS,
        jobs: LONG_BACK,
        values: &["1", "2", "4"],
        predicted: Rises("/gpu/0/memory/direct/gc_programs"),
    },
    Case {
        key: "memory.direct.mapping.search",
        context: &[],
        jobs: GAUS,
        values: &["0ns", "10ns", "1us"],
        predicted: Rises(ARRAY),
    },
    // Blocks of eight pages: with 7, 4 and no page left in them at the start.
    Case {
        key: "memory.direct.mapping.log_filled",
        context: &[
            "l2.writes=read_only",
            "memory.direct.geometry.pages=8",
            "mmu.table.block.reach=512KiB",
            "memory.direct.mapping.log_share=2",
        ],
        jobs: LONG_BACK,
        values: &["[\"12.5%\"]", "[\"50%\"]", "[\"100%\"]"],
        predicted: Falls("/gpu/0/memory/direct/gc_begun_ns"),
    },
    Case {
        key: "memory.direct.array.read",
        context: &[],
        jobs: GAUS,
        values: &["1us", "3us", "10us"],
        predicted: Rises(ARRAY),
    },
    Case {
        key: "memory.direct.array.program",
        context: READ_ONLY,
        jobs: BACK,
        values: &["10us", "100us", "1ms"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.direct.array.erase",
        context: READ_ONLY,
        jobs: LONG_BACK,
        values: &["100us", "1ms", "10ms"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.direct.array.scheduler",
        context: READ_ONLY,
        jobs: BACK,
        values: &["oldest", "{ read_first = { max_wait = \"120us\" } }", "priority"],
        predicted: Falls("/gpu/0/read_latency_ns/mean"),
    },
    Case {
        key: "memory.direct.array.scheduler.read_first.max_wait",
        context: READ_ONLY,
        jobs: BACK,
        values: &["1us", "120us", "10ms"],
        predicted: Falls("/gpu/0/read_latency_ns/mean"),
    },
    Case {
        key: "memory.direct.array.merge_reads",
        context: &[],
        jobs: BACK,
        values: &["false", "true"],
        predicted: Falls("/gpu/0/memory/direct/array_reads"),
    },
    Case {
        key: "memory.direct.registers.count",
        context: PAIRS,
        jobs: LONG_BACK,
        values: &["2", "4", "8"],
        predicted: Rises("/gpu/0/memory/direct/register_hit_share"),
    },
    Case {
        key: "memory.direct.registers.reserve",
        context: &[
            "l2.writes=read_only",
            "memory.direct.registers.count=4",
            "memory.direct.registers.network=nif",
        ],
        jobs: LONG_BACK,
        values: &["0%", "50%", "90%"],
        predicted: Rises("/gpu/0/memory/direct/eviction_programs"),
    },
    Case {
        key: "memory.direct.registers.network",
        context: READ_ONLY,
        jobs: LONG_BACK,
        values: &["private", "swnet", "fcnet", "nif"],
        predicted: Differ,
    },
    Case {
        key: "memory.direct.registers.network.nif.width",
        context: &[
            "l2.writes=read_only",
            "memory.direct.registers.count=4",
            "memory.direct.registers.network={ nif = { rate = \"10MT/s\" } }",
        ],
        jobs: LONG_BACK,
        values: &["1B", "8B", "64B"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.direct.registers.network.nif.rate",
        context: &["l2.writes=read_only", "memory.direct.registers.count=4"],
        jobs: LONG_BACK,
        values: &["10MT/s", "100MT/s", "800MT/s"],
        predicted: Falls(SIM),
    },
    Case {
        key: "memory.direct.helper.page",
        context: READ_ONLY,
        jobs: LONG_BACK,
        values: &["0", "28", "10000"],
        predicted: Rises(HELPER),
    },
    Case {
        key: "memory.direct.helper.block",
        context: READ_ONLY,
        jobs: LONG_BACK,
        values: &["0", "56", "10000"],
        predicted: Rises(HELPER),
    },
    Case {
        key: "memory.direct.controller.count",
        context: &[],
        jobs: BACK,
        values: &["1", "2", "4"],
        predicted: Differ,
    },
    Case {
        key: "memory.direct.controller.dispatch",
        context: &[],
        jobs: BACK,
        values: &["0ns", "10ns", "1us"],
        predicted: Rises(CONTROLLER),
    },
    Case {
        key: "memory.direct.controller.latency",
        context: &[],
        jobs: BACK,
        values: &["0ns", "10ns", "1us"],
        predicted: Rises(CONTROLLER),
    },
    Case {
        key: "memory.direct.network",
        context: &["memory.direct.geometry.ports=1"],
        jobs: BACK,
        values: &["{ mesh = { rows = 2, columns = 2 } }", "bus"],
        predicted: Rises(NETWORK),
    },
    Case {
        key: "memory.direct.network.mesh.rows",
        context: &[],
        jobs: BACK,
        values: &["2", "3"],
        predicted: RefusedAfterFirst("a mesh needs one router per package"),
    },
    Case {
        key: "memory.direct.network.mesh.columns",
        context: &[],
        jobs: BACK,
        values: &["2", "3"],
        predicted: RefusedAfterFirst("a mesh needs one router per package"),
    },
    Case {
        key: "memory.direct.network.mesh.width",
        context: &[],
        jobs: BACK,
        values: &["1B", "4B", "8B"],
        predicted: Falls(NETWORK),
    },
    Case {
        key: "memory.direct.network.mesh.rate",
        context: &[],
        jobs: BACK,
        values: &["100MT/s", "800MT/s", "1600MT/s"],
        predicted: Falls(NETWORK),
    },
    Case {
        key: "memory.direct.network.mesh.router",
        context: &["memory.direct.controller.count=1"],
        jobs: BACK,
        values: &["0ns", "2.5ns", "100ns"],
        predicted: Rises(NETWORK),
    },
    Case {
        key: "memory.direct.network.mesh.switching",
        context: FAR,
        jobs: GAUS,
        values: &["cut_through", "store_and_forward"],
        predicted: Rises(SIM),
    },
    Case {
        key: "memory.direct.network.bus.width",
        context: BUS,
        jobs: BACK,
        values: &["1B", "2B", "8B"],
        predicted: Falls(NETWORK),
    },
    Case {
        key: "memory.direct.network.bus.rate",
        context: BUS,
        jobs: BACK,
        values: &["400MT/s", "800MT/s", "1600MT/s"],
        predicted: Falls(NETWORK),
    },
    Case {
        key: "memory.direct.command",
        context: &[],
        jobs: GAUS,
        values: &["8B", "64B", "1KiB"],
        predicted: Rises(NETWORK),
    },
    Case {
        key: "mmu.table.block.reach",
        context: &[],
        jobs: GAUS,
        values: &["1MiB", "2MiB"],
        predicted: RefusedAfterFirst("both must be equal"),
    },
    Case {
        key: "memory.direct.transfer",
        context: &[],
        jobs: BACK,
        values: &["page", "lines"],
        predicted: Falls("/gpu/0/memory/direct/network_bytes_per_s"),
    },
];

pub(crate) const REDIRECTED: &[Case] = &[
    Case {
        key: "memory.direct.redirect.window",
        context: &[
            "l2.sets=64",
            "l2.parked=144KiB",
            "memory.direct.registers.count=2",
            "memory.direct.redirect.window=8",
            "memory.direct.redirect.threshold=5%",
        ],
        jobs: LONG_BACK,
        values: &["16", "1024"],
        predicted: Falls(PARKED),
    },
    Case {
        key: "memory.direct.redirect.threshold",
        context: THRASHING,
        jobs: LONG_BACK,
        values: &["0%", "10%", "90%"],
        predicted: Falls(PARKED),
    },
    Case {
        key: "l2.parked",
        context: &[
            "l2.sets=64",
            "l2.parked=144KiB",
            "memory.direct.registers.count=2",
            "memory.direct.redirect.window=8",
            "memory.direct.redirect.threshold=0%",
        ],
        jobs: &["back:n=2048"],
        values: &["0B", "48KiB"],
        predicted: Rises(PARKED),
    },
];
