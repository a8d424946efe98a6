//! Builds the memory behind a shared cache, whatever the processor.

use super::seed_of;
use crate::parts::memory::Memory;
use crate::parts::{Stored, Target};
use config::{Diagnostic, SpecError};
use mem::dram::Dram;
use mem::dram_cache::{DramCache, Partition};
use mem::placement::{Placement, PlacementSpec};
use spec::{Id, Kind, Loaded, MemorySpec, Part};
use ssd::direct::{Direct, DirectSpec};
use ssd::port::engine::Engine;
use ssd::port::initiator::Initiator;
use std::ops::Range;

/// Address extent behind a shared cache.
pub(super) struct Extent {
    /// Line size of the cache, bytes.
    pub(super) line: u64,
    /// Address range of each application's data, in turn.
    pub(super) apps: Vec<(u8, Range<u64>)>,
    /// End of the data and start of page tables.
    pub(super) data: u64,
    /// End of page tables.
    pub(super) top: u64,
    /// Bytes covered by one translation.
    pub(super) reach: u64,
    /// True if addresses are translated.
    pub(super) is_translated: bool,
    /// Subject of the message for data that do not fit, and its help.
    pub(super) takes: (&'static str, &'static str),
}

/// Checks a memory and those behind it, for lines of `line` bytes.
///
/// # Errors
/// The first value that cannot be built.
pub(super) fn check(loaded: &Loaded, id: Id, line: u64) -> Result<(), Diagnostic> {
    if id.kind == Kind::Placement {
        return check_placement(loaded, &loaded.spec.placement[id.number], line);
    }
    let part = &loaded.spec.memory[id.number];
    part.spec.check(line).map_err(|error| explain(loaded, part, error))?;
    part.linked("memory").iter().try_for_each(|behind| check(loaded, *behind, line))
}

/// Checks a placement and its memories.
fn check_placement(loaded: &Loaded, part: &Part<PlacementSpec>, line: u64) -> Result<(), Diagnostic> {
    part.spec.check().map_err(|error| loaded.explain(part.table(), error))?;
    let (sizes, targets) = (part.spec.sizes.len(), part.linked("targets"));
    if sizes != targets.len() {
        let what = format!("{sizes} sizes for {} memories in `{}.targets`", targets.len(), part.table());
        return Err(loaded
            .diagnose(&format!("{}.sizes", part.table()), &what)
            .help("give one size for each memory"));
    }
    for target in targets {
        check(loaded, *target, line)?;
    }
    Ok(())
}

/// Reports a memory's own fault at its key.
fn explain(loaded: &Loaded, part: &Part<MemorySpec>, error: SpecError) -> Diagnostic {
    loaded.explain(&format!("{}.{}", part.table(), part.spec.form()), error)
}

/// Endpoints of memory controllers; `None` beside the part that asks.
pub(super) trait Places {
    /// Returns endpoints for a memory behind a shared cache, or behind a different memory.
    fn place(&mut self, memory: &Memory, is_behind: bool) -> Option<Box<[u32]>>;
}

/// Builds a memory and those behind it.
///
/// # Errors
/// A spec that cannot be built, or data that do not fit.
pub(super) fn build(
    loaded: &Loaded,
    id: Id,
    extent: &Extent,
    seed: u64,
    places: &mut dyn Places,
) -> Result<Stored, Diagnostic> {
    store(loaded, id, extent, seed, (places, false))
}

fn store(
    loaded: &Loaded,
    id: Id,
    extent: &Extent,
    seed: u64,
    (places, is_behind): (&mut dyn Places, bool),
) -> Result<Stored, Diagnostic> {
    if id.kind == Kind::Placement {
        return place(loaded, &loaded.spec.placement[id.number], extent, seed, places);
    }
    let part = &loaded.spec.memory[id.number];
    let memory = memory(loaded, id, extent, seed_of(seed, id))?;
    let controllers = places.place(&memory, is_behind);
    let drive = target(part.link("drive"));
    let behind =
        part.linked("memory").iter().map(|id| store(loaded, *id, extent, seed, (&mut *places, true)));
    let behind = behind.collect::<Result<_, _>>()?;
    Ok(Stored { name: part.name.clone(), memory, controllers, drive, behind })
}

/// Builds a placement and its memories, each sized for the frames that pages can have there.
fn place(
    loaded: &Loaded,
    part: &Part<PlacementSpec>,
    extent: &Extent,
    seed: u64,
    places: &mut dyn Places,
) -> Result<Stored, Diagnostic> {
    let explain = |error| loaded.explain(part.table(), error);
    let mut placement = Placement::new(&part.spec, extent.line).map_err(explain)?;
    placement.set_extent(extent.data, extent.top).map_err(explain)?;
    if loaded.spec.sim.shadow {
        placement.attach_shadow();
    }
    let mut behind = Vec::new();
    for (number, id) in part.linked("targets").iter().enumerate() {
        let frames = placement.frames(number as u8);
        let (line, reach, takes) = (extent.line, extent.reach, extent.takes);
        let top = frames.end;
        let own =
            Extent { line, apps: vec![(0, frames)], data: top, top, reach, is_translated: false, takes };
        behind.push(store(loaded, *id, &own, seed, (&mut *places, false))?);
    }
    let memory = Memory::Placement(Box::new(placement));
    let controllers = places.place(&memory, false);
    Ok(Stored { name: part.name.clone(), memory, controllers, drive: Target::Drive(0), behind })
}

/// Target of a link to a drive.
pub(super) fn target(link: Option<Id>) -> Target {
    match link {
        Some(Id { kind: Kind::Stripe, number }) => Target::Stripe(number as u16),
        Some(Id { number, .. }) => Target::Drive(number as u16),
        None => Target::Drive(0),
    }
}

fn memory(loaded: &Loaded, id: Id, extent: &Extent, seed: u64) -> Result<Memory, Diagnostic> {
    let part = &loaded.spec.memory[id.number];
    let explain = |error| explain(loaded, part, error);
    let drive = part.link("drive");
    Ok(match &part.spec {
        MemorySpec::Dram(dram) => Memory::Dram(Box::new(Dram::new(dram, extent.line).map_err(explain)?)),
        MemorySpec::DramCache(spec) => {
            let mut cache = DramCache::new(spec, extent.line).map_err(explain)?;
            cache.set_tables(extent.data..extent.top);
            if let Some(drive) = drive {
                let needed = match spec.partition {
                    Partition::flat => extent.data,
                    Partition::none | Partition::uncached => extent.top,
                };
                check_drive(loaded, drive, needed, extent)?;
            }
            Memory::DramCache(Box::new(cache))
        }
        MemorySpec::Direct(spec) => {
            check_reach(loaded, part, spec, extent)?;
            let mut direct = Direct::new(spec, seed, extent.line).map_err(explain)?;
            let key = format!("{}.direct.mapping", part.table());
            check_room(loaded, &key, extent.top, direct.capacity(), extent)?;
            if loaded.spec.sim.shadow {
                direct.attach_shadow();
            }
            for (_, bytes) in &extent.apps {
                direct.occupy(bytes.clone());
            }
            fill_logs(loaded, part, spec, &mut direct, extent)?;
            Memory::Direct(Box::new(direct))
        }
        MemorySpec::Engine(spec) => {
            let mut engine = Engine::new(spec, extent.line).map_err(explain)?;
            if let Some(drive) = drive {
                engine.set_capacity(check_drive(loaded, drive, extent.top, extent)?);
            }
            Memory::Engine(Box::new(engine))
        }
        MemorySpec::Initiator(spec) => {
            if let Some(drive) = drive {
                check_drive(loaded, drive, extent.top, extent)?;
            }
            let apps = extent.apps.len() as u8;
            Memory::Initiator(Box::new(Initiator::new(spec, apps, extent.line).map_err(explain)?))
        }
    })
}

/// Checks that a drive has room for the data; returns its capacity, bytes.
///
/// # Errors
/// The data do not fit.
pub(super) fn check_drive(
    loaded: &Loaded,
    drive: Id,
    needed: u64,
    extent: &Extent,
) -> Result<u64, Diagnostic> {
    let capacity = loaded.capacity_of(drive)?;
    check_room(loaded, loaded.spec.name_of(drive), needed, capacity, extent)?;
    Ok(capacity)
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
    let what = format!("{takes} {needed} B; the flash holds {capacity} B");
    Err(loaded.diagnose(table, &what).help(help))
}

/// Checks that flash on the network and the memory management unit have entries of one size.
fn check_reach(
    loaded: &Loaded,
    part: &Part<MemorySpec>,
    spec: &DirectSpec,
    extent: &Extent,
) -> Result<(), Diagnostic> {
    let (entry, reach) = (spec.reach(), extent.reach);
    if entry == reach || !extent.is_translated {
        return Ok(());
    }
    let what = format!(
        "a mapping entry covers {entry} B, but a translation entry covers {reach} B: with `direct`, both must be equal"
    );
    Err(loaded.diagnose(part.table(), &what))
}

/// Fills log blocks as the spec sets for the start.
///
/// # Errors
/// A share for an application that does not exist.
fn fill_logs(
    loaded: &Loaded,
    part: &Part<MemorySpec>,
    spec: &DirectSpec,
    direct: &mut Direct,
    extent: &Extent,
) -> Result<(), Diagnostic> {
    let (shares, apps) = (spec.mapping.log_filled.len(), extent.apps.len());
    if shares > apps.max(1) {
        let what = format!("{shares} shares for {apps} programs");
        return Err(loaded.diagnose(&format!("{}.direct.mapping.log_filled", part.table()), &what));
    }
    for (app, bytes) in &extent.apps {
        let left = spec.log_room(*app);
        if left < spec.geometry.pages {
            direct.fill_logs(bytes.clone(), left);
        }
    }
    Ok(())
}
