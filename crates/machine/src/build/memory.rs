//! From a spec to what stands behind a shared cache, whatever the processor in front of it.

use crate::memory::Memory;
use crate::spec::{Loaded, MemorySpec, Spec};
use config::Diagnostic;
use flash::direct::{Direct, DirectSpec};
use flash::engine::Engine;
use flash::initiator::Initiator;
use mem::dram::Dram;
use mem::dram_cache::{Backing, DramCache, DramCacheSpec, Partition};
use std::ops::Range;

/// What the addresses behind a shared cache hold.
pub(super) struct Extent {
    /// Bytes of a line of the cache.
    pub(super) line: u64,
    /// Where each application's data are, in turn.
    pub(super) apps: Vec<(u8, Range<u64>)>,
    /// End of the data; page tables begin here.
    pub(super) data: u64,
    /// End of the page tables.
    pub(super) top: u64,
    /// Bytes that one translation covers.
    pub(super) reach: u64,
    /// Who takes them, as a message says it, and what would help where there are too many.
    pub(super) takes: (&'static str, &'static str),
}

/// Checks the table of the memory, for lines of so many bytes, and that what it needs is there.
///
/// # Errors
/// The first value that cannot be built.
pub(super) fn check(loaded: &Loaded, line: u64) -> Result<(), Diagnostic> {
    let Spec { memory: Some(memory), flash, .. } = &loaded.spec else { return Ok(()) };
    let explain = |kind: &'static str| move |error| loaded.explain(&format!("memory.{kind}"), error);
    match memory {
        MemorySpec::Dram(dram) => dram.check(line).map_err(explain("dram")),
        MemorySpec::Direct(direct) => direct.check().map_err(explain("direct")),
        MemorySpec::Engine(engine) => engine.check().map_err(explain("engine")),
        MemorySpec::Initiator(initiator) => initiator.check().map_err(explain("initiator")),
        MemorySpec::DramCache(cache) => {
            cache.check().map_err(explain("dram_cache"))?;
            if cache.backing == Backing::device && flash.is_none() {
                let what = "a DRAM cache has no flash device behind it";
                let help = "give the table `flash`, or `backing = \"fixed\"`";
                return Err(loaded.diagnose("memory.dram_cache.backing", what).help(help));
            }
            if cache.backing == Backing::memory {
                let what = "no memory stands behind this cache";
                let help = "give `backing = \"device\"` and the table `flash`, or `backing = \"fixed\"`";
                return Err(loaded.diagnose("memory.dram_cache.backing", what).help(help));
            }
            Ok(())
        }
    }
}

/// Builds the memory.
///
/// # Errors
/// A spec that cannot be built, or data that do not fit.
pub(super) fn build(
    loaded: &Loaded,
    spec: &MemorySpec,
    extent: &Extent,
    seed: u64,
) -> Result<Memory, Diagnostic> {
    let explain = |kind: &'static str| move |error| loaded.explain(&format!("memory.{kind}"), error);
    Ok(match spec {
        MemorySpec::Dram(dram) => {
            Memory::Dram(Box::new(Dram::new(dram, extent.line).map_err(explain("dram"))?))
        }
        MemorySpec::DramCache(spec) => {
            let mut cache = DramCache::new(spec, extent.line).map_err(explain("dram_cache"))?;
            cache.set_flat(extent.data..extent.top);
            check_backing(loaded, spec, extent)?;
            Memory::DramCache(Box::new(cache))
        }
        MemorySpec::Direct(spec) => {
            check_reach(loaded, spec, extent)?;
            let mut direct = Direct::new(spec, seed, extent.line).map_err(explain("direct"))?;
            check_room(loaded, "memory.direct.mapping", extent.top, direct.capacity(), extent)?;
            if loaded.spec.sim.shadow {
                direct.attach_shadow();
            }
            for (_, bytes) in &extent.apps {
                direct.occupy(bytes.clone());
            }
            fill_logs(loaded, spec, &mut direct, extent)?;
            Memory::Direct(Box::new(direct))
        }
        MemorySpec::Engine(spec) => {
            let capacity = loaded.device(seed)?.capacity();
            check_room(loaded, "flash", extent.top, capacity, extent)?;
            let mut engine = Engine::new(spec, extent.line).map_err(explain("engine"))?;
            engine.set_capacity(capacity);
            Memory::Engine(Box::new(engine))
        }
        MemorySpec::Initiator(spec) => {
            check_device(loaded, extent.top, extent)?;
            let apps = extent.apps.len() as u8;
            Memory::Initiator(Box::new(
                Initiator::new(spec, apps, extent.line).map_err(explain("initiator"))?,
            ))
        }
    })
}

/// Whether the flash device has room for so many bytes.
///
/// # Errors
/// If it has not.
pub(super) fn check_device(loaded: &Loaded, needed: u64, extent: &Extent) -> Result<(), Diagnostic> {
    check_room(loaded, "flash", needed, loaded.device(0)?.capacity(), extent)
}

fn check_room(
    loaded: &Loaded,
    table: &str,
    needed: u64,
    capacity: u64,
    extent: &Extent,
) -> Result<(), Diagnostic> {
    if needed <= capacity {
        return Ok(());
    }
    let (takes, help) = extent.takes;
    let what = format!("{takes} {needed} B of flash that holds {capacity} B");
    Err(loaded.diagnose(table, &what).help(help))
}

/// Whether flash behind a DRAM cache has room for the data.
fn check_backing(loaded: &Loaded, spec: &DramCacheSpec, extent: &Extent) -> Result<(), Diagnostic> {
    if spec.backing != Backing::device {
        return Ok(());
    }
    let needed = match spec.partition {
        Partition::flat => extent.data,
        Partition::none => extent.top,
    };
    check_device(loaded, needed, extent)
}

/// Whether the table of flash on the network and that of the memory management unit are one.
fn check_reach(loaded: &Loaded, spec: &DirectSpec, extent: &Extent) -> Result<(), Diagnostic> {
    let (entry, reach) = (spec.reach(), extent.reach);
    if entry == reach {
        return Ok(());
    }
    let what = format!(
        "an entry of the mapping table covers {entry} B, a translation entry {reach} B: with `direct` the two are one table"
    );
    Err(loaded.diagnose("mmu", &what))
}

/// Brings log blocks into the state that the spec has them in at the start.
///
/// # Errors
/// A share for an application that is not there.
fn fill_logs(
    loaded: &Loaded,
    spec: &DirectSpec,
    direct: &mut Direct,
    extent: &Extent,
) -> Result<(), Diagnostic> {
    let (shares, apps) = (spec.mapping.log_filled.len(), extent.apps.len());
    if shares > apps.max(1) {
        let what = format!("{shares} shares for {apps} programs");
        return Err(loaded.diagnose("memory.direct.mapping.log_filled", &what));
    }
    for (app, bytes) in &extent.apps {
        let left = spec.log_room(*app);
        if left < spec.geometry.pages {
            direct.fill_logs(bytes.clone(), left);
        }
    }
    Ok(())
}
