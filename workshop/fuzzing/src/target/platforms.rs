//! Shipped systems made small, as the basis of random machines.

/// Small system with a workload.
pub(super) struct Platform {
    pub(super) system: &'static str,
    pub(super) set: &'static [&'static str],
    pub(super) workloads: &'static [&'static str],
}

/// One channel of one way, filled once, under a shadow; the rest satisfies the system's GC thresholds.
macro_rules! drive {
    ($($set:literal),*) => {
        &[
            "flash.geometry.channels=1",
            "flash.geometry.ways=1",
            "flash.precondition=sequential",
            "sim.shadow=true",
            $($set),*
        ]
    };
}
const DIRECT: &[&str] = &[
    "memory.direct.geometry.channels=4",
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.planes=4",
    "memory.direct.geometry.blocks=16",
    "memory.direct.geometry.pages=16",
    "memory.direct.mapping.group=16",
    "memory.direct.mapping.data_blocks=8",
    "memory.direct.controller.count=4",
    "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
    "mmu.table.block.reach=1MiB",
    "sim.shadow=true",
];
/// Four cores, and some hundred jobs.
macro_rules! server {
    ($($set:literal),*) => {
        &[
            "cpu.cores=4",
            "fabric.mesh.rows=2",
            "fabric.mesh.columns=2",
            "l2.banks=4",
            "l2.sets=64",
            "cpu.load.jobs=300",
            "cpu.warmup.fixed.jobs=30",
            $($set),*
        ]
    };
}
/// 4 MiB of memory over 24 MiB of flash on one die of each channel.
macro_rules! accelerator {
    ($($set:literal),*) => {
        &[
            "group_flash.groups.geometry.packages=1",
            "group_flash.groups.geometry.dies=1",
            "group_flash.groups.geometry.blocks=12",
            "group_flash.groups.geometry.pages=32",
            "accelerator.memory.size=4MiB",
            "accelerator.sample=16384",
            $($set),*
        ]
    };
}
/// 16 MiB of memory behind a host, and a drive of that size.
macro_rules! coprocessor {
    ($($set:literal),*) => {
        &[
            "host.linux.memory=64MiB",
            "coprocessor.memory.size=16MiB",
            "coprocessor.sample=16384",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=24",
            "sim.shadow=true",
            $($set),*
        ]
    };
}
const REQUESTS: &[&str] = &[
    "fio:rw=randrw,bsrange=512-24k,iodepth=8,number_ios=300,fsync=9,size=40%,norandommap=1,io_size=1g",
    "fio:rw=randtrim,bs=16k,iodepth=2,number_ios=60,size=40%,norandommap=1,io_size=1g",
];
/// Workload through the page cache, with files that are read in order, written, and synced.
const FILES: &[&str] = &[
    "fio:rw=randrw,bs=4k,size=16m,number_ios=300,fsync=16,direct=0,numjobs=2,norandommap=1",
    "fio:rw=write,bs=64k,size=16m,direct=0",
    "fio:rw=read,bs=16k,size=8m,offset=16m,direct=0",
];
/// Arrays that fill most of the flash of a small accelerator, and are modified.
const KERNELS: &[&str] =
    &["fdtd:nx=512,ny=1024,instances=2", "gemm:ni=96,nj=96,nk=96,t=32", "nw:n=64,ti=8,tj=8"];
const GRAPH: &[&str] = &["bfs1:scale=7", "gaus:n=24"];
const JOBS: &[&str] = &["tatp:size=32MiB,work=200"];

pub(super) const PLATFORMS: &[Platform] = &[
    Platform { system: "d16", set: drive!("flash.geometry.pages=16"), workloads: REQUESTS },
    Platform {
        system: "pm9a3",
        set: drive!("flash.geometry.blocks=128", "flash.geometry.pages=24"),
        workloads: REQUESTS,
    },
    Platform {
        system: "mqsim-default",
        set: drive!("flash.geometry.pages=16", "flash.geometry.dies=1"),
        workloads: REQUESTS,
    },
    Platform {
        system: "z-ssd",
        set: drive!("flash.geometry.blocks=64", "flash.geometry.pages=24"),
        workloads: REQUESTS,
    },
    Platform { system: "ideal", set: &["l2.sets=16"], workloads: GRAPH },
    Platform { system: "zng", set: DIRECT, workloads: GRAPH },
    Platform { system: "zng-wropt", set: DIRECT, workloads: GRAPH },
    Platform {
        system: "hybridgpu",
        set: &[
            "flash.geometry.channels=2",
            "flash.geometry.dies=2",
            "flash.geometry.planes=2",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=16",
            "flash.ftl.gc.start=5",
            "flash.ftl.gc.stop=6",
            "memory.engine.read_buffer.capacity=64KiB",
            "memory.engine.write_buffer.capacity=64KiB",
            "l2.sets=16",
            "sim.shadow=true",
        ],
        workloads: GRAPH,
    },
    Platform {
        system: "hetero",
        set: &[
            "paging.granule=4KiB",
            "paging.memory=1MiB",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=24",
            "sim.shadow=true",
        ],
        workloads: GRAPH,
    },
    Platform { system: "dram-only", set: server!(), workloads: JOBS },
    // Cells of three bits behind SATA, with errors, unlike blocks and parity.
    Platform {
        system: "860-pro",
        set: drive!(
            "flash.geometry.ways=2",
            "flash.geometry.blocks=128",
            "flash.geometry.pages=24",
            "flash.ftl.over_provisioning=60%",
            "flash.ftl.parity=1",
            "flash.cell.spread={ program = \"10%\", erase = \"10%\", read = \"5%\" }",
            "flash.cell.errors={ fresh = 0.004, wear = 0.0001, retention = 0.0, reads = 0.00001, spread = \"30%\", \
             retry = { correctable = 0.005, gain = 0.5, limit = 20, latency = \"0us\" } }"
        ),
        workloads: REQUESTS,
    },
    // A cache of one bit a cell that is folded when idle.
    Platform {
        system: "evo-2tb",
        set: drive!(
            "flash.geometry.blocks=128",
            "flash.geometry.pages=24",
            "flash.ftl.over_provisioning=40%",
            "flash.ftl.slc_cache.idle=2ms"
        ),
        workloads: REQUESTS,
    },
    Platform {
        system: "pm9a3x4",
        set: drive!("flash.count=2", "flash.geometry.blocks=128", "flash.geometry.pages=24"),
        workloads: REQUESTS,
    },
    Platform {
        system: "mqms",
        set: &[
            "flash.geometry.channels=2",
            "flash.geometry.ways=1",
            "flash.geometry.planes=2",
            "flash.geometry.blocks=32",
            "flash.geometry.pages=16",
            "flash.ftl.gc.start=3",
            "flash.ftl.gc.stop=4",
            "flash.ftl.gc.hard=1",
            "flash.ftl.over_provisioning=25%",
            "l2.sets=16",
            "sim.shadow=true",
        ],
        workloads: GRAPH,
    },
    Platform { system: "zng-cached", set: &["l2.sets=16", "sim.shadow=true"], workloads: GRAPH },
    Platform { system: "astriflash", set: server!("memory.dram_cache.sets=64"), workloads: JOBS },
    Platform { system: "os-swap", set: server!("swap.memory=1MiB", "swap.free=64KiB"), workloads: JOBS },
    Platform {
        system: "fastdrain",
        set: drive!(
            "flash.geometry.blocks=96",
            "flash.geometry.pages=48",
            "flash.ftl.over_provisioning=30%",
            "flash.buffer.capacity=4MiB",
            "flash.buffer.in_flight=1MiB",
            "host.linux.memory=64MiB"
        ),
        workloads: FILES,
    },
    Platform { system: "flashabacus", set: accelerator!("sim.shadow=true"), workloads: KERNELS },
    // Reads of page groups are worked out many at once where no shadow looks on.
    Platform { system: "flashabacus-inter-st", set: accelerator!(), workloads: KERNELS },
    Platform { system: "flashabacus-simd", set: coprocessor!(), workloads: KERNELS },
    Platform { system: "flashabacus-simd", set: coprocessor!("coprocessor.buffers=2"), workloads: KERNELS },
];
