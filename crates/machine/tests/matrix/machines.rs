//! The pairs: what is in front, and what is behind.

use machine::Loaded;

/// What is in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum In {
    /// The multiprocessors of a GPU on a crossbar.
    Gpu,
    /// The cores of a server on a mesh.
    Server,
}

/// What is behind.
pub(crate) struct Behind {
    pub(crate) name: &'static str,
    /// The shipped system that the tables are from.
    from: &'static str,
    tables: &'static [&'static str],
    pub(crate) set: &'static [&'static str],
    /// Figures of the memory's result that must be above zero; with a slash in front, of the document.
    pub(crate) moved: &'static [&'static str],
}

impl In {
    fn base(self) -> &'static str {
        match self {
            In::Gpu => "gtx580",
            In::Server => "server16",
        }
    }

    pub(crate) fn workload(self) -> &'static str {
        match self {
            In::Gpu => "back:n=4096",
            In::Server => "tatp:size=32MiB,work=1000",
        }
    }

    /// Caches that hold next to nothing.
    pub(crate) fn set(self) -> &'static [&'static str] {
        match self {
            In::Gpu => &["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"],
            In::Server => &[
                "cpu.0.cores=4",
                "fabric.mesh.rows=2",
                "fabric.mesh.columns=2",
                "l2.banks=4",
                "l2.sets=4",
                "cpu.0.l1d.sets=16",
                "cpu.0.l1i.sets=16",
                "cpu.0.load.jobs=1000",
                "cpu.warmup.fixed.jobs=0",
                "cpu.fill_jobs=20000",
            ],
        }
    }

    /// Where its result is.
    pub(crate) fn root(self) -> &'static str {
        match self {
            In::Gpu => "/gpu",
            In::Server => "/cpu",
        }
    }

    /// Figures of its own that must be above zero.
    pub(crate) fn moved(self) -> &'static [&'static str] {
        match self {
            In::Gpu => {
                &["/gpu/warp_instructions", "/gpu/network_bytes_per_s", "/gpu/l2/reads", "/gpu/mmu/walks"]
            }
            In::Server => &["/cpu/jobs", "/cpu/network_bytes_per_s", "/cpu/l2/reads", "/cpu/mmu/walks"],
        }
    }

    /// What it has done, whatever is behind it: instructions do not depend on time, jobs are as many as are asked for.
    pub(crate) fn work(self) -> &'static str {
        match self {
            In::Gpu => "/gpu/warp_instructions",
            In::Server => "/cpu/jobs",
        }
    }
}

const DRAM: Behind = Behind {
    name: "DRAM",
    from: "ideal",
    tables: &["memory"],
    set: &[],
    moved: &["bandwidth_bytes_per_s", "row_hit_share"],
};
const PERSISTENT: Behind =
    Behind { name: "persistent memory", from: "optane", moved: &["bandwidth_bytes_per_s"], ..DRAM };
const DRAM_CACHE: Behind = Behind {
    name: "DRAM cache over a fixed time",
    from: "astriflash",
    tables: &["memory"],
    set: &["memory.dram_cache.sets=2", "memory.dram_cache.backing=fixed"],
    moved: &["dram_cache/hits", "dram_cache/fetches", "dram_cache/write_backs"],
};
const DRAM_CACHE_OVER_DRIVE: Behind = Behind {
    name: "DRAM cache over a drive",
    tables: &["memory", "flash", "host", "precondition"],
    set: &["memory.dram_cache.sets=2", "flash.geometry.blocks=256"],
    moved: &["dram_cache/hits", "dram_cache/fetches", "dram_cache/write_backs", "/flash/0/reads/host"],
    ..DRAM_CACHE
};
const DIRECT: Behind = Behind {
    name: "flash on the network",
    from: "zng-base",
    tables: &["memory"],
    set: &[
        "memory.direct.geometry.channels=4",
        "memory.direct.geometry.dies=1",
        "memory.direct.geometry.planes=4",
        "memory.direct.geometry.blocks=128",
        "memory.direct.geometry.pages=16",
        "memory.direct.mapping.group=16",
        "memory.direct.mapping.data_blocks=64",
        "memory.direct.mapping.log_share=4",
        "memory.direct.controller.count=4",
        "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
        "mmu.table={ block = { reach = \"1MiB\", latency = 4, field_bits = 20 } }",
    ],
    moved: &["direct/array_reads", "direct/eviction_programs", "direct/network_bytes_per_s"],
};
const REGISTERS: Behind = Behind { name: "flash with registers that hand pages over", from: "zng", ..DIRECT };
const ENGINE: Behind = Behind {
    name: "SSD engine",
    from: "hybridgpu",
    tables: &["memory", "flash", "host", "precondition"],
    set: &[
        "flash.geometry.channels=2",
        "flash.geometry.dies=2",
        "flash.geometry.planes=2",
        "flash.geometry.blocks=256",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=5",
        "flash.ftl.gc.stop=6",
        "memory.engine.read_buffer.capacity=64KiB",
        "memory.engine.write_buffer.capacity=64KiB",
    ],
    moved: &["engine/ftl_requests", "engine/buffer_bytes_per_s", "/flash/0/reads/host"],
};
const INITIATOR: Behind = Behind {
    name: "block initiator inside the drive",
    from: "mqms",
    tables: &["memory", "flash", "host", "precondition"],
    set: &[
        "flash.geometry.channels=2",
        "flash.geometry.ways=1",
        "flash.geometry.planes=2",
        "flash.geometry.blocks=256",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=3",
        "flash.ftl.gc.stop=4",
        "flash.ftl.gc.hard=1",
        "flash.ftl.over_provisioning=25%",
        "memory.initiator.gather.capacity=32KiB",
    ],
    moved: &["/io/flows/0/read/requests", "/io/flows/0/write/requests", "/flash/0/reads/host"],
};
const INITIATOR_OUTSIDE: Behind =
    Behind { name: "block initiator outside", from: "mqsim-macsim", ..INITIATOR };
const PAGED: Behind = Behind {
    name: "DRAM that the host pages into",
    from: "hetero",
    tables: &["memory", "flash", "host", "precondition", "paging"],
    set: &["paging.granule=4KiB"],
    moved: &["/gpu/paging/granules", "/flash/0/reads/host"],
};
const SWAPPED: Behind = Behind {
    name: "DRAM that the operating system pages into",
    from: "os-swap",
    tables: &["memory", "flash", "host", "precondition", "swap"],
    set: &[
        "swap.memory=1MiB",
        "swap.free=64KiB",
        "flash.geometry.blocks=256",
        "cpu.0.threads.scheduler=notified",
    ],
    moved: &["swap/faults", "swap/evictions", "/flash/0/reads/host"],
};

/// Every pair that the protocols allow. What is refused, and why in hardware: `paging` behind a server and `swap` behind a GPU,
/// because the one is the driver of a GPU and the other schedules the threads of cores; both over memory that is no DRAM,
/// because pages are mapped, not cached, there.
pub(crate) const PAIRS: &[(In, Behind)] = &[
    (In::Gpu, DRAM),
    (In::Gpu, PERSISTENT),
    (In::Gpu, DRAM_CACHE),
    (In::Gpu, DRAM_CACHE_OVER_DRIVE),
    (In::Gpu, DIRECT),
    (In::Gpu, REGISTERS),
    (In::Gpu, ENGINE),
    (In::Gpu, INITIATOR),
    (In::Gpu, INITIATOR_OUTSIDE),
    (In::Gpu, PAGED),
    (In::Server, DRAM),
    (In::Server, PERSISTENT),
    (In::Server, DRAM_CACHE),
    (In::Server, DRAM_CACHE_OVER_DRIVE),
    (In::Server, DIRECT),
    (In::Server, REGISTERS),
    (In::Server, ENGINE),
    (In::Server, INITIATOR),
    (In::Server, INITIATOR_OUTSIDE),
    (In::Server, SWAPPED),
];

/// The machine as a file: the processor's shipped base, and the tables of what is behind.
pub(crate) fn spec(processor: In, behind: &Behind) -> String {
    let donor = Loaded::load(behind.from, &[]).expect("a shipped system").resolved().table();
    let mut table = toml::Table::new();
    table.insert("inherits".into(), processor.base().into());
    table.insert("description".into(), format!("{} behind {processor:?}", behind.name).into());
    for name in behind.tables {
        table.insert((*name).to_owned(), donor[*name].clone());
    }
    toml::to_string(&table).expect("TOML")
}
