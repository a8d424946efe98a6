//! The assumptions: ranges that `papers/flashabacus/README.md` calls swept, and readings that are reported beside its own.

use super::super::suite::SIMD;
use super::{Shown, Variant};

fn accelerator(system: &str, set: &str) -> Vec<String> {
    let part = if system == SIMD { "coprocessor" } else { "accelerator" };
    vec![format!("{part}.{set}")]
}

fn flashabacus(system: &str, set: &[&str]) -> Vec<String> {
    if system == SIMD { Vec::new() } else { set.iter().map(|set| (*set).to_owned()).collect() }
}

fn rival(system: &str, set: &[&str]) -> Vec<String> {
    if system == SIMD { set.iter().map(|set| (*set).to_owned()).collect() } else { Vec::new() }
}

/// A variant that is shown only with everything.
const fn swept(name: &'static str, shown: Shown, set: fn(&str) -> Vec<String>) -> Variant {
    Variant { name, set, parameters: "", shown, beside: false }
}

/// What moves a few microseconds of firmware is shown of one program.
const ATAX: Shown = Shown::Only(&["atax"]);
/// It writes as much as it reads.
const WRITES: Shown = Shown::Only(&["2dcon"]);

/// Table 1's powers, in place of TI's spreadsheet's (`systems/flashabacus/calibration.md`).
fn table_1(system: &str) -> Vec<String> {
    let worker = "worker = { idle = \"0W\", waits = \"209mW\", computes = \"800mW\" }";
    let rest = "memory_transfer = \"0pJ\", memory_on = \"700mW\", chip_on = \"0W\"";
    if system == SIMD {
        let link = "link_transfer = \"0pJ\", link_on = \"170mW\"";
        return vec![format!("coprocessor.energy={{ {worker}, {rest}, {link} }}")];
    }
    let firmware = "firmware = { idle = \"800mW\", busy = \"800mW\" }";
    vec![
        format!("accelerator.energy={{ {worker}, {firmware}, {rest} }}"),
        "accelerator.offload.energy={ transfer = \"0pJ\", on = \"170mW\" }".to_owned(),
    ]
}

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        beside: true,
        ..swept("work.table", Shown::Table2, |system| accelerator(system, "work=table"))
    },
    Variant {
        beside: true,
        ..swept("translation.striped", Shown::Programs, |system| {
            flashabacus(system, &["group_flash.groups.translation=striped"])
        })
    },
    // Cores.
    swept("miss.60", Shown::Table2, |system| accelerator(system, "core.l2.miss=60")),
    swept("miss.140", Shown::Table2, |system| accelerator(system, "core.l2.miss=140")),
    swept("prefetch", Shown::Programs, |system| {
        accelerator(system, "core.prefetch={ streams = 8, miss = 43 }")
    }),
    swept("l1_miss.6", ATAX, |system| accelerator(system, "core.l1.miss=6")),
    swept("l1_miss.12", ATAX, |system| accelerator(system, "core.l1.miss=12")),
    swept("simd.six_cores", Shown::Table2, |system| rival(system, &["coprocessor.cores=6"])),
    // Firmware.
    swept("message.20", Shown::Table2, |system| flashabacus(system, &["accelerator.costs.message=20"])),
    swept("message.1000", Shown::Table2, |system| flashabacus(system, &["accelerator.costs.message=1000"])),
    swept("schedule.100", ATAX, |system| flashabacus(system, &["accelerator.costs.schedule=100"])),
    swept("schedule.10000", Shown::Table2, |system| {
        flashabacus(system, &["accelerator.costs.schedule=10000"])
    }),
    swept("entry.10", ATAX, |system| flashabacus(system, &["accelerator.costs.entry=10"])),
    swept("entry.1000", Shown::Table2, |system| flashabacus(system, &["accelerator.costs.entry=1000"])),
    swept("boot.1", ATAX, |system| flashabacus(system, &["accelerator.costs.boot=1us"])),
    swept("boot.50", ATAX, |system| flashabacus(system, &["accelerator.costs.boot=50us"])),
    swept("dump.100ms", WRITES, |system| flashabacus(system, &["group_flash.groups.dump.period=100ms"])),
    swept("dump.10s", WRITES, |system| flashabacus(system, &["group_flash.groups.dump.period=10s"])),
    // Sections: of 1 GB, a sixth and a twenty-fourth; and 16 MiB, a twelfth of as much less memory.
    swept("ahead.0", ATAX, |system| flashabacus(system, &["accelerator.ahead=0"])),
    swept("ahead.3", ATAX, |system| flashabacus(system, &["accelerator.ahead=3"])),
    swept("section.16", Shown::Table2, |system| flashabacus(system, &["accelerator.memory.size=192MiB"])),
    // Flash. As many bytes on half as many dies.
    swept("dies.16", Shown::Table2, |system| {
        flashabacus(system, &["group_flash.groups.geometry.dies=1", "group_flash.groups.geometry.blocks=342"])
    }),
    swept("channels.400", Shown::Table2, |system| flashabacus(system, &["group_flash.channel.rate=400MT/s"])),
    swept("latency.means", Shown::Table2, |system| {
        flashabacus(system, &["group_flash.cell.read=[\"81us\"]", "group_flash.cell.program=[\"2586667ns\"]"])
    }),
    // The rival.
    swept("simd.drive_1200", Shown::Table2, |system| {
        rival(
            system,
            &["flash.geometry.channels=15", "flash.geometry.ways=4", "flash.host.controller.unit=1692ns"],
        )
    }),
    swept("simd.marshal_none", Shown::Table2, |system| rival(system, &["coprocessor.offload.passes=0"])),
    swept("simd.marshal_500", Shown::Table2, |system| {
        rival(system, &["coprocessor.offload.marshal=500MB/s"])
    }),
    swept("simd.marshal_4000", Shown::Table2, |system| rival(system, &["coprocessor.offload.marshal=4GB/s"])),
    swept("simd.two_buffers", Shown::Programs, |system| rival(system, &["coprocessor.buffers=2"])),
    swept("simd.no_fsync", Shown::Table2, |system| rival(system, &["coprocessor.offload.sync=false"])),
    // Both.
    Variant { parameters: ",inputs=own", ..swept("inputs.own", Shown::Table2, |_| Vec::new()) },
    // What a figure of energy hangs on.
    swept("energy.table_1", Shown::Energy, table_1),
    swept("energy.core_6", Shown::Energy, |system| rival(system, &["host.linux.cores.energy.core.busy=6W"])),
    swept("energy.core_9", Shown::Energy, |system| rival(system, &["host.linux.cores.energy.core.busy=9W"])),
];
