//! GPUs and servers whose caches hold next to nothing.

use super::{Run, failed, shadowed};
use engine::Mutant::{
    CleanPage, DroppedByEngine, DroppedFrame, DroppedGranule, DroppedLine, DroppedPage, DroppedRegister,
    EarlyIssue, ForeignTranslation, HiddenChange, KeptLine, LostAnswer, LostFault, LostLane, LostParked,
    LostSpill, LostStore, LostWriteBackOfCore, PartialLine, SilentDrop, SkippedProbe, SkippedRefresh,
    StaleBank, StaleFrame, StaleLine, StaleTable, TwiceDelivered, Unclaimed, UnmovedPage, UnpaidActivation,
    UnpaidCore, UnpaidIssue, UnpaidPageOfMemory, UnpaidRefresh, UnpaidWorker, UnparkedLine, WriteAsRead,
};
use machine::run::{Plan, run_alone};
use std::fmt::Write;

const CACHES: [&str; 4] = ["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"];

pub(super) const GPUS: &[Run] = &[
    Run {
        name: "GPU with DRAM",
        make: || shadowed("ideal", "bfs1:scale=9", &CACHES),
        kills: &[
            DroppedLine,
            LostStore,
            PartialLine,
            TwiceDelivered,
            SkippedRefresh,
            UnpaidRefresh,
            UnpaidActivation,
            WriteAsRead,
            UnpaidIssue,
        ],
    },
    Run { name: "GPU that two programs share", make: pair, kills: &[ForeignTranslation] },
    Run {
        name: "GPU with flash on its network",
        make: || shadowed("zng", "bfs1:scale=9", &flash_memory()),
        kills: &[StaleLine, UnpaidPageOfMemory],
    },
    Run {
        name: "GPU that fills the registers of flash",
        make: || {
            let set = [&flash_memory()[..], &["memory.direct.registers.count=2"]].concat();
            shadowed("zng", "back:n=4096", &set)
        },
        kills: &[DroppedRegister],
    },
    Run {
        name: "GPU that parks what registers cannot hold",
        make: parked,
        kills: &[LostParked, UnparkedLine],
    },
    Run {
        name: "GPU with an SSD engine",
        make: || shadowed("hybridgpu", "back:n=4096", &engine()),
        kills: &[DroppedByEngine, Unclaimed],
    },
    Run {
        name: "GPU that pages",
        make: || {
            let set = ["paging.granule=4KiB", "paging.memory=32KiB", "paging.write_back=true"];
            shadowed("hetero", "back:n=1024", &set)
        },
        kills: &[LostFault, DroppedGranule],
    },
    Run { name: "GPU whose hot pages rise", make: rising, kills: &[UnmovedPage, StaleTable, StaleFrame] },
    Run { name: "a chain of additions", make: chain, kills: &[EarlyIssue] },
    Run { name: "loads that are counted", make: loads, kills: &[LostLane] },
];

const SERVER: [&str; 7] = [
    "cpu.cores=4",
    "fabric.mesh.rows=2",
    "fabric.mesh.columns=2",
    "l2.banks=4",
    "l2.sets=16",
    "cpu.load.jobs=200",
    "cpu.warmup.fixed.jobs=0",
];

pub(super) const SERVERS: &[Run] = &[
    Run {
        name: "server with DRAM",
        make: || server("dram-only", TATP, &["cpu.l1d.sets=16", "cpu.l1i.sets=16"]),
        kills: &[
            LostSpill,
            SkippedProbe,
            LostWriteBackOfCore,
            HiddenChange,
            KeptLine,
            SilentDrop,
            LostAnswer,
            StaleBank,
            UnpaidCore,
        ],
    },
    Run {
        name: "server with a DRAM cache",
        make: || {
            server(
                "astriflash",
                "swap:size=64MiB,work=0",
                &["memory.dram_cache.sets=64", "memory.dram_cache.backing=fixed"],
            )
        },
        kills: &[DroppedPage],
    },
    Run {
        name: "server with an empty DRAM cache",
        make: || {
            let set = [
                "memory.dram_cache.sets=64",
                "memory.dram_cache.backing=fixed",
                "cpu.fill_jobs=1",
                "l2.sets=4",
            ];
            server("astriflash", "swap:size=64MiB,work=0", &set)
        },
        kills: &[CleanPage],
    },
    Run {
        name: "server that pages",
        make: || {
            server("os-swap", TATP, &["swap.memory=1MiB", "swap.free=64KiB", "flash.geometry.blocks=256"])
        },
        kills: &[DroppedFrame],
    },
];

const TATP: &str = "tatp:size=64MiB,work=2000";

fn server(system: &str, workload: &str, set: &[&str]) -> Vec<String> {
    shadowed(system, workload, &[&SERVER, set].concat())
}

pub(super) const KERNELS: &[Run] = &[Run {
    name: "accelerator that tells its energy",
    make: || shadowed("flashabacus", "atax:m=512,n=512,instances=3", &["accelerator.sample=16384"]),
    kills: &[UnpaidWorker],
}];

/// 8 MiB of flash in four packages of four planes, whose registers hold what is written.
fn flash_memory() -> Vec<&'static str> {
    let own = [
        "memory.direct.geometry.channels=4",
        "memory.direct.geometry.dies=1",
        "memory.direct.geometry.planes=4",
        "memory.direct.geometry.blocks=16",
        "memory.direct.geometry.pages=16",
        "memory.direct.mapping.group=16",
        "memory.direct.mapping.data_blocks=8",
        "memory.direct.mapping.log_share=4",
        "memory.direct.controller.count=4",
        "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
        "mmu.table.block.reach=1MiB",
        "l2.parked=0B",
    ];
    [&CACHES[..], &own].concat()
}

/// Each program has pages of the same numbers.
fn pair() -> Vec<String> {
    let plan = Plan::new("ideal", "back:n=1024").set("sim.shadow=true");
    let mut plan = CACHES.iter().fold(plan, |plan, assignment| plan.set(assignment));
    plan.workloads.push("bfs1:scale=9".to_owned());
    failed(&plan)
}

/// Registers that thrash hand their pages to the shared cache, which has room for one in each bank.
fn parked() -> Vec<String> {
    let mut set = flash_memory();
    set.retain(|key| !key.starts_with("l2."));
    set.extend(["memory.direct.registers.count=2", "memory.direct.redirect.window=8"]);
    set.extend(["memory.direct.redirect.threshold=1%", "l2.parked=32KiB"]);
    let plan = Plan::new("zng", "back:n=4096").set("sim.shadow=true");
    let plan = set.iter().fold(plan, |plan, assignment| plan.set(assignment));
    let document = match run_alone(&plan) {
        Ok(document) => document,
        Err(refused) => return vec![format!("refused: {refused}")],
    };
    let mut checks: Vec<String> =
        document.checks.iter().filter(|check| !check.ok).map(|check| check.name.clone()).collect();
    // Each of six banks has room for one.
    if document.gpu[0].l2.parked_pages <= 6 {
        checks.push("no page was parked and given up".to_owned());
    }
    checks
}

/// Buffers that hold next to nothing in front of a device of 32 MiB.
fn engine() -> Vec<&'static str> {
    let own = [
        "flash.geometry.channels=2",
        "flash.geometry.dies=2",
        "flash.geometry.planes=2",
        "flash.geometry.blocks=64",
        "flash.geometry.pages=16",
        "flash.ftl.gc.start=5",
        "flash.ftl.gc.stop=6",
        "memory.engine.read_buffer.capacity=64KiB",
        "memory.engine.write_buffer.capacity=64KiB",
    ];
    [&CACHES[..], &own].concat()
}

/// DRAM of eight pages beside flash: pages rise as soon as they are used, and others sink.
fn rising() -> Vec<String> {
    let mut set: Vec<String> =
        flash_memory().iter().map(|key| key.replace("memory.direct", "nand.direct")).collect();
    set.extend(
        [
            "nand.direct.geometry.blocks=128",
            "nand.direct.mapping.data_blocks=64",
            "placement.sizes=[\"32KiB\", \"64MiB\"]",
            "placement.policy={ hot = { threshold = \"10us\", scan = \"2us\", rate = \"100GB/s\" } }",
        ]
        .map(str::to_owned),
    );
    let plan = Plan::new("zng-gddr", "back:n=1024").set("sim.shadow=true");
    let plan = set.iter().fold(plan, |plan, assignment| plan.set(assignment));
    let mut checks = failed(&plan);
    let moved = run_alone(&plan)
        .map(|document| document.gpu[0].memory.behind.placement.as_ref().map(|found| found.promotions));
    if !matches!(moved, Ok(Some(1..))) {
        checks.push(format!("{moved:?} pages have risen"));
    }
    checks
}

/// A kernel of one warp, its instructions as lines of a recorded trace, run on `ideal`.
fn recorded(instructions: &[String], memory: &str) -> (Vec<String>, Option<machine::result::Document>) {
    let mut kernel = format!(
        "-kernel name = alone\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-shmem = 0\n-nregs = 8\n\
         -accelsim tracer version = 5\n#\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = {}\n",
        instructions.len()
    );
    instructions.iter().for_each(|line| {
        let _ = writeln!(kernel, "{line}");
    });
    kernel.push_str("#END_TB\n");
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("kernelslist.g");
    std::fs::write(folder.path().join("kernel-0.traceg"), kernel).expect("a file can be written");
    std::fs::write(&list, format!("{memory}kernel-0.traceg\n")).expect("a file can be written");
    match run_alone(&Plan::new("ideal", &list.display().to_string()).set("gpu.alu.latency=18")) {
        Ok(document) => {
            let failed = document.checks.iter().filter(|check| !check.ok).map(|check| check.name.clone());
            (failed.collect(), Some(document))
        }
        Err(refused) => (vec![format!("refused: {refused}")], None),
    }
}

/// Additions, each of what the one before it has written: 18 cycles after it at the earliest.
fn chain() -> Vec<String> {
    const ADDITIONS: usize = 200;
    let add = |n: usize| format!("{:06x} ffffffff 1 R2 FADD 2 R2 R3 0", n * 16);
    let lines: Vec<String> = (0..ADDITIONS).map(add).collect();
    let (mut checks, document) = recorded(&lines, "");
    let cycles = document.map_or(f64::MAX, |document| document.gpu[0].cycles);
    let least = 18.0 * (ADDITIONS - 1) as f64;
    if cycles < least {
        checks.push(format!("a chain of additions takes {cycles} cycles instead of {least}"));
    }
    checks
}

/// Loads of a recorded trace: one warp whose lanes load 16 B each, side by side: four lines of 128 B an instruction.
fn loads() -> Vec<String> {
    const LOADS: u64 = 200;
    let load =
        |n: u64| format!("{:06x} ffffffff 0 LDG.E.128 0 16 1 {:#x} 16 0", n * 16, (1u64 << 32) + n * 512);
    let lines: Vec<String> = (0..LOADS).map(load).collect();
    let (mut checks, document) =
        recorded(&lines, &format!("MemcpyHtoD,{:#018x},{}\n", 1u64 << 32, LOADS * 512));
    let found = document.map(|document| document.gpu[0].work.lines);
    if found != Some(4 * LOADS) {
        checks.push(format!("{found:?} lines of {LOADS} loads of four"));
    }
    checks
}
