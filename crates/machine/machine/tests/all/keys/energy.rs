//! What parts spend: a constant moves the energy of its part, and nothing else.

use super::Predicted::Spends;
use super::accelerator::THREE;
use super::{BACK, Case, GAUS, LONG_BACK, ONE_READ, OVERWRITE, TATP};
use serde_json::Value;

/// Energy of a drive.
const FLASH: &[&str] = &[
    "flash.energy={ read = [\"1uJ\"], program = [\"10uJ\"], erase = \"100uJ\", transfer = \"50pJ\", die = { idle = \"1mW\", busy = \"2mW\" }, controller = { idle = \"1W\", busy = \"2W\" }, link = { transfer = \"50pJ\", on = \"300mW\" } }",
];
/// Of pages of one bit a cell too; what the cache holds is folded.
const CACHED: &[&str] = &[
    super::write_caches::CACHE[0],
    super::write_caches::CACHE[1],
    super::write_caches::CACHE[2],
    "flash.ftl.slc_cache.foreground=2",
    FLASH[0],
    "flash.ftl.slc_cache.energy={ read = \"1uJ\", program = \"10uJ\" }",
];
/// Energy of a host.
const LINUX: &[&str] = &[
    "host.linux.cores.energy={ core = { idle = \"1W\", busy = \"9W\" }, package_on = \"25W\", memory_on = \"2W\" }",
];
/// Caches that hold next to nothing.
const SMALL: &[&str] = &["gpu.l1.sets=1", "gpu.l1.ways=1", "l2.sets=4", "l2.ways=4"];
/// Every write goes to the registers.
const READ_ONLY: &[&str] = &["l2.writes=read_only"];
/// Flash that is written anew as a whole: blocks are reclaimed.
const TINY: &[&str] = &[
    "accelerator.memory.size=4MiB",
    "group_flash.groups.geometry.packages=1",
    "group_flash.groups.geometry.blocks=12",
];
const PASSES: &[&str] = super::accelerator::PASSES;
/// One after another, with pauses.
const PAUSED: &[&str] = &["fio:rw=randread,bs=4k,iodepth=1,number_ios=200,rate=1m"];
/// Jobs come now and then.
const SELDOM: &[&str] = &["cpu.load.arrivals={ poisson = { interval = \"20us\" } }"];
/// Through the page cache.
const BUFFERED: &[&str] = &["fio:rw=randwrite,bs=4k,size=16m,number_ios=400,fsync=4,direct=0"];

const UJ: &[&str] = &["[\"1uJ\"]", "[\"2uJ\"]"];
const ENERGY: &[&str] = &["10pJ", "20pJ"];
const ERASE: &[&str] = &["1uJ", "2uJ"];
const POWER: &[&str] = &["10mW", "20mW"];
/// No more than at work.
const IDLE: &[&str] = &["1uW", "10uW"];
/// No less than without.
const BUSY: &[&str] = &["10W", "20W"];

/// Without anything else.
const fn of(
    key: &'static str,
    part: &'static str,
    jobs: &'static [&'static str],
    values: &'static [&'static str],
) -> Case {
    with(&[], key, part, jobs, values)
}

const fn with(
    context: &'static [&'static str],
    key: &'static str,
    part: &'static str,
    jobs: &'static [&'static str],
    values: &'static [&'static str],
) -> Case {
    Case { key, context, jobs, values, predicted: Spends(part) }
}

pub(crate) const DRIVE: &[Case] = &[
    with(FLASH, "flash.energy.read", "flash", ONE_READ, UJ),
    with(FLASH, "flash.energy.program", "flash", OVERWRITE, UJ),
    with(FLASH, "flash.energy.erase", "flash", OVERWRITE, ERASE),
    with(CACHED, "flash.ftl.slc_cache.energy.read", "flash", OVERWRITE, ERASE),
    with(CACHED, "flash.ftl.slc_cache.energy.program", "flash", OVERWRITE, ERASE),
    with(FLASH, "flash.energy.transfer", "flash", ONE_READ, ENERGY),
    with(FLASH, "flash.energy.die.idle", "flash", ONE_READ, IDLE),
    with(FLASH, "flash.energy.die.busy", "flash", ONE_READ, BUSY),
    with(FLASH, "flash.energy.controller.idle", "flash", PAUSED, IDLE),
    with(FLASH, "flash.energy.controller.busy", "flash", ONE_READ, BUSY),
    with(FLASH, "flash.energy.link.transfer", "flash", ONE_READ, ENERGY),
    with(FLASH, "flash.energy.link.on", "flash", ONE_READ, POWER),
];
pub(crate) const GPU: &[Case] = &[
    of("gpu.energy.multiprocessor.idle", "gpu", GAUS, IDLE),
    of("gpu.energy.multiprocessor.busy", "gpu", GAUS, BUSY),
    of("gpu.energy.chip_on", "gpu", GAUS, POWER),
    with(SMALL, "memory.dram.energy.activate", "memory", BACK, ENERGY),
    with(SMALL, "memory.dram.energy.read", "memory", BACK, ENERGY),
    with(SMALL, "memory.dram.energy.write", "memory", BACK, ENERGY),
    with(SMALL, "memory.dram.energy.refresh", "memory", BACK, ENERGY),
    with(SMALL, "memory.dram.energy.standby", "memory", BACK, POWER),
    with(SMALL, "memory.dram.energy.active", "memory", BACK, POWER),
];
pub(crate) const DIRECT: &[Case] = &[
    with(READ_ONLY, "memory.direct.energy.read", "memory", BACK, ENERGY),
    with(READ_ONLY, "memory.direct.energy.program", "memory", LONG_BACK, ENERGY),
    with(READ_ONLY, "memory.direct.energy.erase", "memory", LONG_BACK, ENERGY),
    with(READ_ONLY, "memory.direct.energy.transfer", "memory", BACK, ENERGY),
    with(READ_ONLY, "memory.direct.energy.plane.idle", "memory", BACK, IDLE),
    with(READ_ONLY, "memory.direct.energy.plane.busy", "memory", BACK, BUSY),
    with(READ_ONLY, "memory.direct.energy.controllers_on", "memory", BACK, POWER),
];
pub(crate) const PAGED: &[Case] = &[
    of("paging.link.energy.transfer", "paging.link", BACK, ENERGY),
    of("paging.link.energy.on", "paging.link", BACK, POWER),
];
pub(crate) const SERVER: &[Case] = &[
    with(SELDOM, "cpu.energy.core.idle", "cpu", TATP, IDLE),
    of("cpu.energy.core.busy", "cpu", TATP, BUSY),
    of("cpu.energy.chip_on", "cpu", TATP, POWER),
];
pub(crate) const CACHE: &[Case] = &[
    of("memory.dram_cache.dram.energy.activate", "memory", TATP, ENERGY),
    of("memory.dram_cache.dram.energy.read", "memory", TATP, ENERGY),
    of("memory.dram_cache.dram.energy.write", "memory", TATP, ENERGY),
    of("memory.dram_cache.dram.energy.refresh", "memory", TATP, ENERGY),
    of("memory.dram_cache.dram.energy.standby", "memory", TATP, POWER),
    of("memory.dram_cache.dram.energy.active", "memory", TATP, POWER),
];
pub(crate) const HOST: &[Case] = &[
    with(LINUX, "host.linux.cores.energy.core.idle", "host", BUFFERED, IDLE),
    with(LINUX, "host.linux.cores.energy.core.busy", "host", BUFFERED, BUSY),
    with(LINUX, "host.linux.cores.energy.package_on", "host", BUFFERED, POWER),
    with(LINUX, "host.linux.cores.energy.memory_on", "host", BUFFERED, POWER),
];
pub(crate) const COPROCESSOR: &[Case] = &[
    of("coprocessor.energy.worker.idle", "coprocessor", THREE, POWER),
    of("coprocessor.energy.worker.waits", "coprocessor", THREE, POWER),
    of("coprocessor.energy.worker.computes", "coprocessor", THREE, POWER),
    of("coprocessor.energy.memory_transfer", "coprocessor", THREE, ENERGY),
    of("coprocessor.energy.memory_on", "coprocessor", THREE, POWER),
    of("coprocessor.energy.link_transfer", "coprocessor", THREE, ENERGY),
    of("coprocessor.energy.link_on", "coprocessor", THREE, POWER),
    of("coprocessor.energy.chip_on", "coprocessor", THREE, POWER),
];
pub(crate) const ACCELERATOR: &[Case] = &[
    of("accelerator.energy.worker.idle", "accelerator", THREE, POWER),
    of("accelerator.energy.worker.waits", "accelerator", THREE, POWER),
    of("accelerator.energy.worker.computes", "accelerator", THREE, POWER),
    of("accelerator.energy.firmware.idle", "accelerator", THREE, IDLE),
    of("accelerator.energy.firmware.busy", "accelerator", THREE, BUSY),
    of("accelerator.energy.memory_transfer", "accelerator", THREE, ENERGY),
    of("accelerator.energy.memory_on", "accelerator", THREE, POWER),
    of("accelerator.energy.chip_on", "accelerator", THREE, POWER),
    of("accelerator.offload.energy.transfer", "accelerator.offload", THREE, ENERGY),
    of("accelerator.offload.energy.on", "accelerator.offload", THREE, POWER),
    of("group_flash.energy.read", "group_flash", THREE, UJ),
    of("group_flash.energy.program", "group_flash", THREE, UJ),
    with(TINY, "group_flash.energy.erase", "group_flash", PASSES, ERASE),
    of("group_flash.energy.transfer", "group_flash", THREE, ENERGY),
    of("group_flash.energy.die.idle", "group_flash", THREE, IDLE),
    of("group_flash.energy.die.busy", "group_flash", THREE, BUSY),
    of("group_flash.energy.controller.idle", "group_flash", THREE, IDLE),
    of("group_flash.energy.controller.busy", "group_flash", THREE, BUSY),
    of("group_flash.energy.link.transfer", "group_flash", THREE, ENERGY),
    of("group_flash.energy.link.on", "group_flash", THREE, POWER),
];

/// Energy of a part.
fn spent(document: &Value, part: &str) -> Option<f64> {
    let parts = document.pointer("/energy/parts")?.as_array()?;
    parts.iter().find(|of| of["name"] == part)?["energy_j"].as_f64()
}

/// Holds two results against each other: a part spends more in the second, and but for energy they are the same.
pub(super) fn rises(before: &Value, after: &Value, part: &str) -> Result<(), String> {
    let energy = |document| spent(document, part).ok_or_else(|| format!("`{part}` reports no energy"));
    let (less, more) = (energy(before)?, energy(after)?);
    if more <= less {
        return Err(format!("`{part}` spends {less} J, then {more} J"));
    }
    let without = |document: &Value| {
        let mut other = document.clone();
        other.as_object_mut().map(|all| all.remove("energy"));
        other
    };
    if without(before) == without(after) { Ok(()) } else { Err("something else has changed".to_owned()) }
}
