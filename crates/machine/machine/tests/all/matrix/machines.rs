//! The pairs: what is in front, and what is behind.

/// Processor in front.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum In {
    /// The multiprocessors of a GPU on a crossbar.
    Gpu,
    /// The cores of a server on a mesh.
    Server,
}

/// Memory behind.
pub(crate) struct Behind {
    pub(crate) name: &'static str,
    /// The shipped system that the tables are from.
    from: &'static str,
    tables: &'static [&'static str],
    /// Further tables, and what those above have otherwise.
    text: &'static str,
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
                "cpu.cores=4",
                "fabric.mesh.rows=2",
                "fabric.mesh.columns=2",
                "l2.banks=4",
                "l2.sets=4",
                "cpu.l1d.sets=16",
                "cpu.l1i.sets=16",
                "cpu.load.jobs=1000",
                "cpu.warmup.fixed.jobs=0",
                "cpu.fill_jobs=20000",
            ],
        }
    }

    /// Path of its result in the document.
    pub(crate) fn root(self) -> &'static str {
        match self {
            In::Gpu => "/gpu/0",
            In::Server => "/cpu/0",
        }
    }

    /// Figures of its own that must be above zero.
    pub(crate) fn moved(self) -> &'static [&'static str] {
        match self {
            In::Gpu => &[
                "/gpu/0/warp_instructions",
                "/gpu/0/network_bytes_per_s",
                "/gpu/0/l2/reads",
                "/gpu/0/mmu/walks",
            ],
            In::Server => {
                &["/cpu/0/jobs", "/cpu/0/network_bytes_per_s", "/cpu/0/l2/reads", "/cpu/0/mmu/walks"]
            }
        }
    }

    /// Work that it has done, whatever is behind it: instructions do not depend on time, and the number of jobs is
    /// fixed.
    pub(crate) fn work(self) -> &'static str {
        match self {
            In::Gpu => "/gpu/0/warp_instructions",
            In::Server => "/cpu/0/jobs",
        }
    }
}

const DRAM: Behind = Behind {
    name: "DRAM",
    from: "ideal",
    tables: &["memory"],
    text: "",
    set: &[],
    moved: &["bandwidth_bytes_per_s", "row_hit_share"],
};
const PERSISTENT: Behind =
    Behind { name: "persistent memory", from: "optane", moved: &["bandwidth_bytes_per_s"], ..DRAM };
const DRAM_CACHE: Behind = Behind {
    name: "DRAM cache over a fixed time",
    from: "astriflash",
    text: "",
    tables: &["memory"],
    set: &["memory.dram_cache.sets=2", "memory.dram_cache.backing=fixed"],
    moved: &["dram_cache/hits", "dram_cache/fetches", "dram_cache/write_backs"],
};
const DRAM_CACHE_OVER_DRIVE: Behind = Behind {
    name: "DRAM cache over a drive",
    tables: &["memory", "flash", "host"],
    set: &["memory.dram_cache.sets=2", "flash.geometry.blocks=256"],
    moved: &["dram_cache/hits", "dram_cache/fetches", "dram_cache/write_backs", "/flash/0/reads/host"],
    ..DRAM_CACHE
};
const DIRECT: Behind = Behind {
    name: "flash on the network",
    from: "zng-base",
    tables: &["memory"],
    text: "",
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
    tables: &["memory", "flash", "host"],
    text: "",
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
    tables: &["memory", "flash", "host"],
    text: "",
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
const REGISTER_DRIVE: Behind = Behind {
    name: "block initiator, a drive whose registers gather writes",
    from: "zng-block",
    set: &[
        "flash.geometry.channels=2",
        "flash.geometry.dies=1",
        "flash.geometry.planes=4",
        "flash.geometry.blocks=128",
        "flash.geometry.pages=32",
        "flash.ftl.gc.start=5",
        "flash.ftl.gc.stop=6",
        "flash.registers.count=3",
        "memory.initiator.gather.capacity=32KiB",
    ],
    moved: &[
        "/flash/0/registers/stores",
        "/flash/0/registers/merged",
        "/flash/0/registers/reads",
        "/flash/0/registers/moves",
        "/flash/0/host_programs",
        "/flash/0/reads/host",
    ],
    ..INITIATOR
};
const INITIATOR_OUTSIDE: Behind =
    Behind { name: "block initiator outside", from: "mqsim-macsim", ..INITIATOR };
const PAGED: Behind = Behind {
    name: "DRAM that the host pages into",
    from: "hetero",
    tables: &["memory", "flash", "host", "paging"],
    text: "",
    set: &["paging.granule=4KiB"],
    moved: &["/gpu/0/paging/granules", "/flash/0/reads/host"],
};
const SWAPPED: Behind = Behind {
    name: "DRAM that the operating system pages into",
    from: "os-swap",
    tables: &["memory", "flash", "host", "swap"],
    text: "",
    set: &[
        "swap.memory=1MiB",
        "swap.free=64KiB",
        "flash.geometry.blocks=256",
        "cpu.threads.scheduler=notified",
    ],
    moved: &["swap/faults", "swap/evictions", "/flash/0/reads/host"],
};

/// A DRAM cache of 2 sets, and what is behind it.
macro_rules! cached {
    ($name:literal, $text:literal, $set:expr, $moved:expr) => {
        Behind {
            name: concat!("DRAM cache over ", $name),
            tables: &[],
            text: concat!(
                "[l2]\nmemory = 'memory'\n[memory]\ninherits = 'astriflash'\nmemory = 'deep'\n",
                "[memory.dram_cache]\nsets = 2\nbacking = 'memory'\n[deep]\nkind = 'memory'\n",
                $text
            ),
            set: $set,
            moved: $moved,
            ..DRAM
        }
    };
}

/// DRAM of 64 KiB and another memory, side by side.
macro_rules! placed {
    ($name:literal, $policy:literal, $text:literal, $set:expr, $moved:expr) => {
        Behind {
            name: concat!($policy, ": DRAM and ", $name),
            tables: &[],
            text: concat!(
                "[l2]\nmemory = 'map'\n[map]\nkind = 'placement'\ntargets = ['near', 'far']\n",
                "sizes = ['64KiB', '256MiB']\nlatency = '2ns'\npolicy = '",
                $policy,
                "'\n[near]\nkind = 'memory'\ninherits = 'ideal.memory'\n[far]\nkind = 'memory'\n",
                $text
            ),
            set: $set,
            moved: $moved,
            ..DRAM
        }
    };
}

const CACHE_OVER_DRAM: Behind = cached!(
    "DRAM",
    "inherits = 'ideal.memory'\n",
    &[],
    &["dram_cache/hits", "dram_cache/fetches", "dram_cache/write_backs", "asks/0/dram_bytes_per_s"]
);
const CACHE_OVER_PERSISTENT: Behind = cached!(
    "persistent memory",
    "inherits = 'optane.memory'\n",
    &[],
    &["dram_cache/hits", "dram_cache/write_backs", "asks/0/dram_bytes_per_s"]
);
const CACHE_OVER_FLASH: Behind = cached!(
    "flash on the network",
    "inherits = 'zng-base.memory'\n",
    &[
        "deep.direct.geometry.channels=4",
        "deep.direct.geometry.dies=1",
        "deep.direct.geometry.planes=4",
        "deep.direct.geometry.blocks=128",
        "deep.direct.geometry.pages=16",
        "deep.direct.mapping.group=16",
        "deep.direct.mapping.data_blocks=64",
        "deep.direct.mapping.log_share=4",
        "deep.direct.controller.count=4",
        "deep.direct.network={ mesh = { rows = 2, columns = 2 } }",
        "mmu.table={ block = { reach = \"1MiB\", latency = 4, field_bits = 20 } }",
    ],
    &[
        "dram_cache/fetches",
        "dram_cache/write_backs",
        "asks/0/direct/array_reads",
        "asks/0/direct/eviction_programs"
    ]
);
const CACHE_OVER_ENGINE: Behind = cached!(
    "an SSD engine",
    "inherits = 'hybridgpu.memory'\n[flash]\ninherits = 'hybridgpu'\n[host]\ninherits = 'hybridgpu'\n",
    &[
        "flash.geometry.blocks=256",
        "deep.engine.read_buffer.capacity=64KiB",
        "deep.engine.write_buffer.capacity=64KiB"
    ],
    &["dram_cache/fetches", "dram_cache/write_backs", "asks/0/engine/ftl_requests", "/flash/0/reads/host"]
);
const CACHE_OVER_INITIATOR: Behind = cached!(
    "an initiator of block commands",
    "inherits = 'mqsim-macsim.memory'\n[flash]\ninherits = 'd16'\n[host]\ninherits = 'd16'\n",
    &["deep.initiator.queues=1", "flash.precondition=sequential"],
    &["dram_cache/fetches", "dram_cache/write_backs", "/flash/0/reads/host"]
);
const CACHE_OVER_CACHE: Behind = cached!(
    "a DRAM cache over a drive",
    "inherits = 'astriflash.memory'\n[flash]\ninherits = 'astriflash'\n[host]\ninherits = 'astriflash'\n",
    &["deep.dram_cache.sets=8", "flash.geometry.blocks=256"],
    &[
        "dram_cache/fetches",
        "asks/0/dram_cache/fetches",
        "asks/0/dram_cache/write_backs",
        "/flash/0/reads/host"
    ]
);
const CACHE_OVER_STRIPE: Behind = Behind {
    name: "DRAM cache over a stripe of drives",
    tables: &["memory", "flash", "host"],
    text: "[flash]\ncount = 3\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '64KiB'\nsubmit = '0us'\n",
    set: &["memory.dram_cache.sets=2", "flash.geometry.blocks=256"],
    moved: &[
        "dram_cache/fetches",
        "dram_cache/write_backs",
        "/flash/0/reads/host",
        "/flash/2/reads/host",
        "/stripe/0/parts",
    ],
    ..DRAM_CACHE
};
const ENGINE_OVER_STRIPE: Behind = Behind {
    name: "SSD engine over a stripe of drives",
    text: "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '4KiB'\nsubmit = '0us'\n",
    moved: &["engine/ftl_requests", "/flash/0/reads/host", "/flash/1/reads/host", "/stripe/0/parts"],
    ..ENGINE
};
const INITIATOR_OVER_STRIPE: Behind = Behind {
    name: "block initiator over a stripe of drives",
    text: "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '4KiB'\nsubmit = '100ns'\n",
    moved: &["/flash/0/reads/host", "/flash/1/reads/host", "/stripe/0/parts"],
    ..INITIATOR_OUTSIDE
};
const PAGED_FROM_STRIPE: Behind = Behind {
    name: "DRAM that the host pages into, from a stripe of drives",
    text: "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '4KiB'\nsubmit = '0us'\n",
    moved: &["/gpu/0/paging/granules", "/flash/0/reads/host", "/flash/1/reads/host"],
    ..PAGED
};
const SWAPPED_FROM_STRIPE: Behind = Behind {
    name: "DRAM that the operating system pages into, from a stripe of drives",
    text: "[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '4KiB'\nsubmit = '0us'\n",
    moved: &["swap/faults", "swap/evictions", "/flash/0/reads/host", "/flash/1/reads/host"],
    ..SWAPPED
};
const RANGES: Behind = placed!(
    "persistent memory",
    "ranges",
    "inherits = 'optane.memory'\n",
    &[],
    &[
        "placement/targets/0/reads",
        "placement/targets/1/reads",
        "asks/0/dram_bytes_per_s",
        "asks/1/dram_bytes_per_s"
    ]
);
const INTERLEAVED: Behind = placed!(
    "persistent memory",
    "interleave",
    "inherits = 'optane.memory'\n",
    &[],
    &["placement/targets/0/reads", "placement/targets/1/writes", "asks/1/dram_bytes_per_s"]
);
const FIRST_TOUCH: Behind = placed!(
    "flash on the network",
    "first_touch",
    "inherits = 'zng-base.memory'\n",
    &[
        "far.direct.geometry.channels=4",
        "far.direct.geometry.dies=1",
        "far.direct.geometry.planes=4",
        "far.direct.geometry.blocks=128",
        "far.direct.geometry.pages=16",
        "far.direct.mapping.group=16",
        "far.direct.mapping.data_blocks=64",
        "far.direct.mapping.log_share=4",
        "far.direct.controller.count=4",
        "far.direct.network={ mesh = { rows = 2, columns = 2 } }",
    ],
    &[
        "placement/first_touches",
        "placement/targets/0/reads",
        "placement/targets/1/reads",
        "asks/1/direct/array_reads"
    ]
);
const HOT: Behind = placed!(
    "persistent memory",
    "hot",
    "inherits = 'optane.memory'\n",
    &["map.policy.hot.rate=100GB/s", "map.policy.hot.scan=10us", "map.policy.hot.threshold=10us"],
    &[
        "placement/promotions",
        "placement/demotions",
        "placement/moved_bytes_per_s",
        "placement/targets/1/pages_out"
    ]
);
const CACHE_BESIDE_DRAM: Behind = placed!(
    "a DRAM cache over a drive",
    "first_touch",
    "inherits = 'astriflash.memory'\n[flash]\ninherits = 'astriflash'\n[host]\ninherits = 'astriflash'\n",
    &["far.dram_cache.sets=2", "flash.geometry.blocks=256"],
    &[
        "placement/targets/0/reads",
        "asks/1/dram_cache/fetches",
        "asks/1/dram_cache/write_backs",
        "/flash/0/reads/host"
    ]
);
const HOT_OVER_ENGINE: Behind = placed!(
    "an SSD engine",
    "hot",
    "inherits = 'hybridgpu.memory'\n[flash]\ninherits = 'hybridgpu'\n[host]\ninherits = 'hybridgpu'\n",
    &[
        "flash.geometry.blocks=256",
        "far.engine.read_buffer.capacity=64KiB",
        "far.engine.write_buffer.capacity=64KiB",
        "map.policy.hot.rate=100GB/s",
        "map.policy.hot.scan=100us",
        "map.policy.hot.threshold=100us",
    ],
    &["placement/promotions", "asks/1/engine/ftl_requests", "/flash/0/reads/host"]
);

/// As much DRAM as the page tables of the data take, and some for pages.
const HOT_FOR_SERVER: Behind = Behind {
    set: &[
        "map.sizes=[\"512KiB\", \"256MiB\"]",
        "map.policy.hot.rate=100GB/s",
        "map.policy.hot.scan=10us",
        "map.policy.hot.threshold=10us",
    ],
    ..HOT
};
const HOT_OVER_ENGINE_FOR_SERVER: Behind = Behind {
    set: &[
        "map.sizes=[\"512KiB\", \"256MiB\"]",
        "flash.geometry.blocks=256",
        "far.engine.read_buffer.capacity=64KiB",
        "far.engine.write_buffer.capacity=64KiB",
        "map.policy.hot.rate=100GB/s",
        "map.policy.hot.scan=100us",
        "map.policy.hot.threshold=100us",
    ],
    ..HOT_OVER_ENGINE
};

/// Every pair that the protocols allow, some of them several deep. What is refused is in [`REFUSED`].
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
    (In::Gpu, REGISTER_DRIVE),
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
    (In::Server, REGISTER_DRIVE),
    (In::Server, SWAPPED),
    (In::Gpu, CACHE_OVER_DRAM),
    (In::Gpu, CACHE_OVER_PERSISTENT),
    (In::Gpu, CACHE_OVER_FLASH),
    (In::Gpu, CACHE_OVER_ENGINE),
    (In::Gpu, CACHE_OVER_INITIATOR),
    (In::Gpu, CACHE_OVER_CACHE),
    (In::Gpu, CACHE_OVER_STRIPE),
    (In::Gpu, ENGINE_OVER_STRIPE),
    (In::Gpu, INITIATOR_OVER_STRIPE),
    (In::Gpu, PAGED_FROM_STRIPE),
    (In::Gpu, RANGES),
    (In::Gpu, INTERLEAVED),
    (In::Gpu, FIRST_TOUCH),
    (In::Gpu, HOT),
    (In::Gpu, HOT_OVER_ENGINE),
    (In::Gpu, CACHE_BESIDE_DRAM),
    (In::Server, CACHE_OVER_DRAM),
    (In::Server, CACHE_OVER_PERSISTENT),
    (In::Server, CACHE_OVER_FLASH),
    (In::Server, CACHE_OVER_ENGINE),
    (In::Server, CACHE_OVER_INITIATOR),
    (In::Server, CACHE_OVER_CACHE),
    (In::Server, CACHE_OVER_STRIPE),
    (In::Server, ENGINE_OVER_STRIPE),
    (In::Server, INITIATOR_OVER_STRIPE),
    (In::Server, SWAPPED_FROM_STRIPE),
    (In::Server, RANGES),
    (In::Server, INTERLEAVED),
    (In::Server, FIRST_TOUCH),
    (In::Server, HOT_FOR_SERVER),
    (In::Server, HOT_OVER_ENGINE_FOR_SERVER),
    (In::Server, CACHE_BESIDE_DRAM),
];

/// Pairs that are refused, with the words of the diagnostic, and the reason in hardware.
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    (
        "inherits = 'hetero'\n[memory]\ninherits = 'astriflash'\n",
        "the host cannot page into memory that is not DRAM",
        "a driver maps pages of the GPU's own memory; in a DRAM cache pages come and go by themselves",
    ),
    (
        "inherits = 'os-swap'\n[memory]\ninherits = 'astriflash'\n",
        "the operating system cannot page into memory that is not DRAM",
        "frames that an operating system hands out are frames of DRAM; what is cached has none",
    ),
    (
        "inherits = 'ideal'\n[gpu]\nswap = 'swap'\n[swap]\ninherits = 'os-swap'\n",
        "unknown key `swap`",
        "an operating system's paging halts threads of cores; multiprocessors have no thread that it could schedule",
    ),
    (
        "inherits = 'dram-only'\n[cpu]\npaging = 'paging'\n[paging]\ninherits = 'hetero'\n",
        "unknown key `paging`",
        "a GPU's driver answers faults of a memory management unit that all multiprocessors share; each core has its own",
    ),
    (
        "inherits = 'ideal'\n[gpu]\nnetwork = 'fabric'\n[fabric]\ninherits = 'server16'\n",
        "is a part of the kind `fabric`",
        "a mesh has a core and a bank at each router; multiprocessors and banks are of different number",
    ),
    (
        "inherits = 'mqms'\n[flash]\ncount = 2\n[array]\nkind = 'stripe'\ndrives = 'flash'\nchunk = '4KiB'\nsubmit = '0us'\n",
        "is a stripe, which has no processor inside",
        "the entrance for a processor inside a drive is inside one drive",
    ),
];

/// The machine as a file: the processor's shipped base, and the tables of what is behind.
pub(crate) fn spec(processor: In, behind: &Behind) -> String {
    let donor = machine::load(behind.from, &[]).expect("a shipped system").resolved().table();
    let mut table = toml::Table::new();
    table.insert("inherits".into(), processor.base().into());
    table.insert("description".into(), format!("{} behind {processor:?}", behind.name).into());
    for name in behind.tables {
        table.insert((*name).to_owned(), donor[*name].clone());
    }
    for (name, more) in behind.text.parse::<toml::Table>().expect("TOML") {
        match (table.get_mut(&name).and_then(toml::Value::as_table_mut), more) {
            (Some(there), toml::Value::Table(more)) => there.extend(more),
            (_, more) => drop(table.insert(name, more)),
        }
    }
    toml::to_string(&table).expect("TOML")
}
