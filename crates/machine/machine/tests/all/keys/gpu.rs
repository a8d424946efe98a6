//! The multiprocessors, translation and the network.

use super::Predicted::{Differ, Falls, RefusedAfterFirst, Rises};
use super::{BACK, BFS, Case, GAUS, GRAM, REPLACEMENT, TWO_GAUS};

const IPC: &str = "/gpu/0/ipc";
const L1_HITS: &str = "/gpu/0/l1_hit_share";
const SIM: &str = "/simulated_ns";
const TLB_HITS: &str = "/gpu/0/tlb_hit_share";
const WALK: &str = "/breakdown_ns/load/walk";
const WALKS: &str = "/gpu/0/mmu/walks";
const WALK_READS: &str = "/gpu/0/mmu/walk_reads";

/// One multiprocessor.
const ONE: &[&str] = &["gpu.sms=1"];
/// Four multiprocessors.
const FOUR: &[&str] = &["gpu.sms=4"];
/// A first-level TLB of one translation.
const TLB: &[&str] = &["gpu.tlb.entries=1", "gpu.tlb.ways=1"];
/// One multiprocessor whose TLB holds one translation.
const ONE_TLB: &[&str] = &["gpu.sms=1", "gpu.tlb.entries=1", "gpu.tlb.ways=1"];
/// TLBs of one translation: nearly every access walks.
const WALKING: &[&str] = &["gpu.tlb.entries=1", "gpu.tlb.ways=1", "mmu.tlb.entries=1", "mmu.tlb.ways=1"];

pub(crate) const CASES: &[Case] = &[
    Case {
        key: "sim.series",
        context: &[],
        jobs: GAUS,
        values: &["100ns", "1us", "10us"],
        predicted: Rises("/gpu/0/series/0/width_ns"),
    },
    Case {
        key: "sim.until",
        context: &[],
        jobs: GAUS,
        values: &["200ns", "600ns", "1200ns"],
        predicted: Rises(SIM),
    },
    Case { key: "gpu.sms", context: &[], jobs: BACK, values: &["1", "4", "16"], predicted: Rises(IPC) },
    Case {
        key: "gpu.clock",
        context: &[],
        jobs: GAUS,
        values: &["0.6GHz", "1.2GHz", "2.4GHz"],
        predicted: Falls(SIM),
    },
    Case {
        key: "gpu.repeat",
        context: &["gpu.kernels=partitioned"],
        jobs: &["gaus:n=64,pivots=1", "gaus:n=64,pivots=12"],
        values: &["false", "true"],
        predicted: Rises("/gpu/0/warp_instructions"),
    },
    Case { key: "gpu.issue", context: ONE, jobs: BACK, values: &["1", "2"], predicted: Rises(IPC) },
    Case {
        key: "gpu.scheduler",
        context: ONE,
        jobs: BACK,
        values: &["loose_round_robin", "greedy_then_oldest", "two_level"],
        predicted: Differ,
    },
    Case {
        key: "gpu.scheduler.two_level.active",
        context: ONE,
        jobs: BACK,
        values: &["1", "4", "32"],
        predicted: Rises(IPC),
    },
    // 64 blocks on four multiprocessors: chunks of sixteen.
    Case {
        key: "gpu.blocks",
        context: FOUR,
        jobs: BACK,
        values: &["round_robin", "large_chunk", "strided"],
        predicted: Differ,
    },
    Case {
        key: "gpu.blocks.strided.stride",
        context: FOUR,
        jobs: BACK,
        values: &["1", "4", "8"],
        predicted: Differ,
    },
    // A kernel of one block and one of 256 in turn, on sixteen multiprocessors.
    Case {
        key: "gpu.kernels",
        context: &[],
        jobs: TWO_GAUS,
        values: &["shared", "partitioned", "round_robin", "large_chunk", "automatic"],
        predicted: Differ,
    },
    Case {
        key: "gpu.kernels.large_chunk.kernels",
        context: &[],
        jobs: TWO_GAUS,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "gpu.kernels.automatic.stride",
        context: &[],
        jobs: TWO_GAUS,
        values: &["0", "4", "1000"],
        predicted: Differ,
    },
    Case {
        key: "gpu.kernels.automatic.kernels",
        context: &["gpu.kernels.automatic.stride=1000"],
        jobs: TWO_GAUS,
        values: &["1", "2", "8"],
        predicted: Differ,
    },
    Case {
        key: "gpu.resident.warps",
        context: ONE,
        jobs: BACK,
        values: &["8", "16", "80"],
        predicted: Rises(IPC),
    },
    Case {
        key: "gpu.resident.blocks",
        context: ONE,
        jobs: BACK,
        values: &["1", "2", "4"],
        predicted: Rises(IPC),
    },
    Case {
        key: "gpu.resident.threads",
        context: ONE,
        jobs: BACK,
        values: &["256", "512", "1024"],
        predicted: Rises(IPC),
    },
    Case {
        key: "gpu.resident.block_threads",
        context: &[],
        jobs: BACK,
        values: &["1024", "64"],
        predicted: RefusedAfterFirst("threads in a block"),
    },
    Case {
        key: "gpu.resident.registers",
        context: ONE,
        jobs: BACK,
        values: &["4096", "8192", "16384"],
        predicted: Rises(IPC),
    },
    Case {
        key: "gpu.resident.shared",
        context: ONE,
        jobs: BACK,
        values: &["2KiB", "4KiB", "16KiB"],
        predicted: Rises(IPC),
    },
    Case {
        key: "gpu.alu.latency",
        context: &[],
        jobs: GAUS,
        values: &["1", "25", "100"],
        predicted: Rises(SIM),
    },
    Case {
        key: "gpu.sfu.latency",
        context: ONE,
        jobs: GRAM,
        values: &["1", "152", "600"],
        predicted: Rises(SIM),
    },
    Case {
        key: "gpu.sfu.interval",
        context: ONE,
        jobs: GAUS,
        values: &["1", "32", "128"],
        predicted: Rises(SIM),
    },
    Case {
        key: "gpu.shared.latency",
        context: ONE,
        jobs: BACK,
        values: &["2", "20", "100"],
        predicted: Rises(SIM),
    },
    Case {
        key: "gpu.shared.banks",
        context: ONE,
        jobs: BACK,
        values: &["1", "8", "32"],
        predicted: Falls(SIM),
    },
    Case {
        key: "gpu.load_store.queue",
        context: ONE,
        jobs: GAUS,
        values: &["1", "4", "64"],
        predicted: Falls(SIM),
    },
    Case {
        key: "gpu.load_store.stores",
        context: ONE,
        jobs: GAUS,
        values: &["1", "8", "2048"],
        predicted: Falls(SIM),
    },
    Case {
        key: "gpu.l1.sets",
        context: &["gpu.sms=1", "gpu.l1.ways=1"],
        jobs: BFS,
        values: &["1", "8", "64"],
        predicted: Rises(L1_HITS),
    },
    Case {
        key: "gpu.l1.ways",
        context: &["gpu.sms=1", "gpu.l1.sets=4"],
        jobs: GAUS,
        values: &["1", "4", "16"],
        predicted: Rises(L1_HITS),
    },
    Case {
        key: "gpu.l1.replacement",
        context: &["gpu.sms=1", "gpu.l1.sets=4", "gpu.l1.ways=4"],
        jobs: BFS,
        values: REPLACEMENT,
        predicted: Differ,
    },
    Case {
        key: "gpu.l1.latency",
        context: ONE,
        jobs: GAUS,
        values: &["1", "30", "100"],
        predicted: Rises(SIM),
    },
    Case {
        key: "gpu.l1.miss_registers",
        context: ONE,
        jobs: BACK,
        values: &["1", "8", "2048"],
        predicted: Falls(SIM),
    },
    Case { key: "gpu.l1.merges", context: ONE, jobs: BFS, values: &["0", "1", "64"], predicted: Falls(SIM) },
    Case {
        key: "gpu.tlb.entries",
        context: &["gpu.sms=1", "gpu.tlb.ways=1"],
        jobs: BFS,
        values: &["1", "4", "16"],
        predicted: Rises(TLB_HITS),
    },
    Case {
        key: "gpu.tlb.ways",
        context: &["gpu.sms=1", "gpu.tlb.entries=4"],
        jobs: BFS,
        values: &["1", "2", "4"],
        predicted: Differ,
    },
    Case { key: "gpu.tlb.misses", context: ONE_TLB, jobs: GRAM, values: &["1", "4"], predicted: Falls(SIM) },
    Case {
        key: "mmu.clock",
        context: TLB,
        jobs: BFS,
        values: &["0.3GHz", "1.2GHz", "4.8GHz"],
        predicted: Falls(SIM),
    },
    Case {
        key: "mmu.walkers",
        context: WALKING,
        jobs: BACK,
        values: &["1", "4", "32"],
        predicted: Falls(WALK),
    },
    Case {
        key: "mmu.tlb.entries",
        context: &["gpu.tlb.entries=1", "gpu.tlb.ways=1", "mmu.tlb.ways=1"],
        jobs: BFS,
        values: &["1", "4", "64"],
        predicted: Rises("/gpu/0/mmu/tlb_hit_share"),
    },
    Case {
        key: "mmu.tlb.ways",
        context: &["gpu.tlb.entries=1", "gpu.tlb.ways=1", "mmu.tlb.entries=4"],
        jobs: BFS,
        values: &["1", "2", "4"],
        predicted: Differ,
    },
    Case {
        key: "mmu.tlb.latency",
        context: TLB,
        jobs: BFS,
        values: &["0", "10", "100"],
        predicted: Rises("/breakdown_ns/load/tlb"),
    },
    Case {
        key: "mmu.table",
        context: WALKING,
        jobs: BFS,
        values: &["radix", "block"],
        predicted: Falls(WALK_READS),
    },
    Case {
        key: "mmu.table.radix.levels",
        context: WALKING,
        jobs: BFS,
        values: &["2", "3", "5"],
        predicted: Rises(WALK),
    },
    Case {
        key: "mmu.table.radix.page",
        context: WALKING,
        jobs: BFS,
        values: &["4KiB", "64KiB", "2MiB"],
        predicted: Falls(WALKS),
    },
    Case {
        key: "mmu.table.radix.walk_cache.entries",
        context: &[
            "gpu.tlb.entries=1",
            "gpu.tlb.ways=1",
            "mmu.tlb.entries=1",
            "mmu.tlb.ways=1",
            "gpu.sms=1",
            "mmu.table.radix.walk_cache.ways=2",
        ],
        jobs: &["gram:n=512"],
        values: &["2", "4"],
        predicted: Falls(SIM),
    },
    Case {
        key: "mmu.table.radix.walk_cache.ways",
        context: &[
            "gpu.tlb.entries=1",
            "gpu.tlb.ways=1",
            "mmu.tlb.entries=1",
            "mmu.tlb.ways=1",
            "gpu.sms=1",
            "mmu.table.radix.walk_cache.entries=2",
        ],
        jobs: &["gram:n=512"],
        values: &["1", "2"],
        predicted: Differ,
    },
    Case {
        key: "mmu.table.radix.walk_cache.latency",
        context: WALKING,
        jobs: BFS,
        values: &["0", "10", "100"],
        predicted: Rises(WALK),
    },
    Case {
        key: "mmu.table.block.reach",
        context: WALKING,
        jobs: BFS,
        values: &["4KiB", "64KiB", "2MiB"],
        predicted: Falls(WALKS),
    },
    Case {
        key: "mmu.table.block.latency",
        context: &[
            "gpu.tlb.entries=1",
            "gpu.tlb.ways=1",
            "mmu.tlb.entries=1",
            "mmu.tlb.ways=1",
            "mmu.table={ block = { reach = \"4KiB\" } }",
        ],
        jobs: BFS,
        values: &["0", "4", "100"],
        predicted: Rises(WALK),
    },
    Case {
        key: "mmu.table.block.field_bits",
        context: &["mmu.table=block"],
        jobs: GAUS,
        values: &["10", "20", "40"],
        predicted: Rises("/gpu/0/mmu/table_bytes"),
    },
    // A latency for each of a ring's hops, one for a crossbar.
    Case {
        key: "network.topology",
        context: &["network.latency=1"],
        jobs: GAUS,
        values: &["crossbar", "ring"],
        predicted: Rises("/breakdown_ns/load/network"),
    },
    Case {
        key: "network.clock",
        context: &[],
        jobs: GAUS,
        values: &["0.3GHz", "1.2GHz", "4.8GHz"],
        predicted: Falls(SIM),
    },
    Case {
        key: "network.width",
        context: &[],
        jobs: BACK,
        values: &["8B", "32B", "136B"],
        predicted: Falls(SIM),
    },
    Case {
        key: "network.header",
        context: &[],
        jobs: GAUS,
        values: &["8B", "64B", "256B"],
        predicted: Rises(SIM),
    },
    Case {
        key: "network.latency",
        context: &[],
        jobs: GAUS,
        values: &["1", "8", "64"],
        predicted: Rises("/breakdown_ns/load/network"),
    },
];
