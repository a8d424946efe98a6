//! From a spec to a GPU.

use crate::complex::{Complex, Ends, InstructionSeries, Network, Processor, Simt};
use crate::memory::Memory;
use crate::pager::Pager;
use crate::parts::Built;
use crate::spec::{Loaded, MemorySpec, Spec};
use compute::simt::{Gpu, GpuSpec};
use config::Diagnostic;
use flash::direct::Direct;
use flash::engine::Engine;
use flash::initiator::Initiator;
use host::paging::Paging;
use kernel::Time;
use mem::dram::Dram;
use mem::l2::{L2, L2Spec};
use mem::mmu::{Mmu, MmuSpec, Residency};
use net::CrossbarSpec;
use net::crossbar::Crossbar;
use proto::memory::LINE;
use proto::simt::Programs;
use std::ops::Range;
use workload::program::Apps;

/// Checks every table of a GPU that a spec has.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    let explain = |table: &'static str| move |error| loaded.explain(table, error);
    if let Some(gpu) = &spec.gpu {
        gpu.check().map_err(explain("gpu"))?;
    }
    if let Some(mmu) = &spec.mmu {
        mmu.check().map_err(explain("mmu"))?;
    }
    if let Some(network) = &spec.network {
        network.check().map_err(explain("network"))?;
    }
    if let Some(l2) = &spec.l2 {
        l2.check().map_err(explain("l2"))?;
        if spec.gpu.is_some() && l2.line.get() != LINE {
            let what = format!("a warp's accesses are merged into lines of {LINE} B, not of {}", l2.line);
            return Err(loaded.diagnose("l2.line", &what));
        }
    }
    let line = spec.l2.as_ref().map_or(LINE, |l2| l2.line.get());
    match &spec.memory {
        None => {}
        Some(MemorySpec::Dram(dram)) => dram.check(line).map_err(explain("memory.dram"))?,
        Some(MemorySpec::Direct(direct)) => direct.check().map_err(explain("memory.direct"))?,
        Some(MemorySpec::Engine(engine)) => engine.check().map_err(explain("memory.engine"))?,
        Some(MemorySpec::Initiator(initiator)) => initiator.check().map_err(explain("memory.initiator"))?,
        Some(MemorySpec::DramCache(cache)) => cache.check().map_err(explain("memory.dram_cache"))?,
    }
    if spec.sim.series.is_some() && spec.gpu.is_none() {
        return Err(loaded.diagnose("sim.series", "a system without a GPU issues no instructions"));
    }
    match &spec.paging {
        None => Ok(()),
        Some(paging) => paging.check().map_err(explain("paging")),
    }
}

/// The tables that programs need.
///
/// # Errors
/// A system without one of them.
pub(crate) fn tables(loaded: &Loaded) -> Result<Tables<'_>, Diagnostic> {
    let Spec { gpu, mmu, network, l2, memory, .. } = &loaded.spec;
    if let (Some(gpu), Some(mmu), Some(network), Some(l2), Some(memory)) = (gpu, mmu, network, l2, memory) {
        return Ok((gpu, mmu, network, l2, memory));
    }
    let what = if gpu.is_some() { "memory behind its GPU's shared cache" } else { "GPU" };
    Err(Diagnostic::new(format!("the system `{}` has no {what}", loaded.name))
        .help("programs need the tables `gpu`, `mmu`, `network`, `l2` and `memory`"))
}

type Tables<'a> = (&'a GpuSpec, &'a MmuSpec, &'a CrossbarSpec, &'a L2Spec, &'a MemorySpec);

/// Builds the GPU for the applications.
///
/// # Errors
/// A spec that cannot be built, or applications that do not fit.
pub(crate) fn build(loaded: &Loaded, programs: Apps, seed: u64) -> Result<Built, Diagnostic> {
    let spec = &loaded.spec;
    let (gpu, mmu, network, l2, memory) = tables(loaded)?;
    let mut memory = self::memory(loaded, memory, programs.apps(), seed)?;
    let mut paging = match &spec.paging {
        Some(paging) => Some(Paging::new(paging).map_err(|e| loaded.explain("paging", e))?),
        None => None,
    };
    // Controllers of DRAM stand beside the banks, others on the network.
    let controllers = (!matches!(memory, Memory::Dram(_))).then(|| memory.controllers());
    let mut l2 = L2::new(l2, seed).map_err(|e| loaded.explain("l2", e))?;
    if spec.sim.shadow {
        l2.attach_shadow();
    }
    let mut mmu = Mmu::new(mmu, gpu.sms, LINE).map_err(|e| loaded.explain("mmu", e))?;
    let cycle = Time::period(gpu.clock.hz());
    let gpu = Gpu::new(gpu, programs.apps(), mmu.reach()).map_err(|e| loaded.explain("gpu", e))?;
    let ends = Ends::crossbar(gpu.ports(), l2.banks(), controllers);
    if let Memory::Direct(direct) = &memory
        && direct.reach() != mmu.reach()
    {
        let what = format!(
            "an entry of the mapping table covers {} B, a translation entry {} B: with `direct` the two are one table",
            direct.reach(),
            mmu.reach()
        );
        return Err(loaded.diagnose("mmu", &what));
    }
    check_pages(loaded, &programs, &mmu)?;
    let residency = if paging.is_some() { Residency::ByPage } else { Residency::Always };
    for app in 0..programs.apps() {
        let bytes = programs.footprint(app);
        mmu.add_app(app, bytes, residency);
        if let Some(paging) = &mut paging {
            paging.add_app(app, bytes);
        }
    }
    check_capacity(loaded, &memory, &mmu, paging.as_ref())?;
    if let Memory::Direct(direct) = &mut memory {
        if spec.sim.shadow {
            direct.attach_shadow();
        }
        occupy(direct, &programs);
        fill_logs(loaded, direct, &programs)?;
    }
    if let Some(paging) = &mut paging {
        paging.set_reach(mmu.reach());
    }
    let network = Crossbar::new(network, ends.count(l2.banks())).map_err(|e| loaded.explain("network", e))?;
    let series = spec.sim.series.map(|width| InstructionSeries::new(width.time()));
    let processor = Processor::Simt(Box::new(Simt::new(programs, gpu, cycle, series)));
    let complex = Complex::new(processor, vec![mmu], Network::Crossbar(network), None, (l2, LINE), ends);
    Ok(Built { complex, memory, pager: paging.map(|paging| Pager::Paging(Box::new(paging))) })
}

/// Whether the page table reaches every application's data, and granules are whole pages.
fn check_pages(loaded: &Loaded, programs: &Apps, mmu: &Mmu) -> Result<(), Diagnostic> {
    for app in 0..programs.apps() {
        let (bytes, span) = (programs.footprint(app), mmu.span());
        if bytes > span {
            let name = programs.program(app).name();
            let what = format!("`{name}` has {bytes} B of addresses; the page table reaches {span} B");
            return Err(loaded.diagnose("mmu.table", &what));
        }
    }
    match &loaded.spec.paging {
        Some(paging) if !paging.granule.get().is_multiple_of(mmu.reach()) => {
            let (granule, reach) = (paging.granule, mmu.reach());
            let what = format!("a granule of {granule} is no whole number of pages of {reach} B");
            Err(loaded.diagnose("paging.granule", &what))
        }
        _ => Ok(()),
    }
}

/// Whether flash has room for what the applications and their page tables take.
fn check_capacity(
    loaded: &Loaded,
    memory: &Memory,
    mmu: &Mmu,
    paging: Option<&Paging>,
) -> Result<(), Diagnostic> {
    let device = || loaded.device(0).map(|device| device.capacity());
    let (table, needed, capacity) = match (memory, paging) {
        (Memory::Direct(direct), _) => ("memory.direct.mapping", mmu.top(), direct.capacity()),
        (Memory::Engine(_) | Memory::Initiator(_), _) => ("flash", mmu.top(), device()?),
        (Memory::Dram(_), Some(paging)) => ("flash", paging.ssd_bytes(), device()?),
        (Memory::Dram(_), None) | (Memory::DramCache(_), _) => return Ok(()),
    };
    if needed <= capacity {
        return Ok(());
    }
    let what = format!("the programs take {needed} B of flash that holds {capacity} B");
    Err(loaded.diagnose(table, &what).help("fewer or smaller programs, or more flash"))
}

/// Where each application's data are: it begins with an entry of the block table of its own.
fn places(reach: u64, programs: &Apps) -> Vec<(u8, Range<u64>)> {
    let mut from = 0;
    let place = |app| {
        let bytes = programs.footprint(app);
        let place = from..from + bytes;
        from += bytes.next_multiple_of(reach);
        (app, place)
    };
    (0..programs.apps()).map(place).collect()
}

fn occupy(direct: &mut Direct, programs: &Apps) {
    for (_, bytes) in places(direct.reach(), programs) {
        direct.occupy(bytes);
    }
}

/// Brings log blocks into the state that the spec has them in at the start.
///
/// # Errors
/// A share for an application that is not there.
fn fill_logs(loaded: &Loaded, direct: &mut Direct, programs: &Apps) -> Result<(), Diagnostic> {
    let Some(MemorySpec::Direct(spec)) = &loaded.spec.memory else { return Ok(()) };
    let (shares, apps) = (spec.mapping.log_filled.len(), usize::from(programs.apps()));
    if shares > apps.max(1) {
        let what = format!("{shares} shares for {apps} programs");
        return Err(loaded.diagnose("memory.direct.mapping.log_filled", &what));
    }
    for (app, bytes) in places(direct.reach(), programs) {
        let left = spec.log_room(app);
        if left < spec.geometry.pages {
            direct.fill_logs(bytes, left);
        }
    }
    Ok(())
}

fn memory(loaded: &Loaded, spec: &MemorySpec, apps: u8, seed: u64) -> Result<Memory, Diagnostic> {
    let explain = |kind: &'static str| move |error| loaded.explain(&format!("memory.{kind}"), error);
    Ok(match spec {
        MemorySpec::Dram(dram) => Memory::Dram(Box::new(Dram::new(dram, LINE).map_err(explain("dram"))?)),
        MemorySpec::Direct(direct) => {
            Memory::Direct(Box::new(Direct::new(direct, seed, LINE).map_err(explain("direct"))?))
        }
        MemorySpec::Engine(engine) => {
            let mut engine = Engine::new(engine, LINE).map_err(explain("engine"))?;
            engine.set_capacity(loaded.device(seed)?.capacity());
            Memory::Engine(Box::new(engine))
        }
        MemorySpec::Initiator(initiator) => {
            let initiator = Initiator::new(initiator, apps, LINE).map_err(explain("initiator"))?;
            Memory::Initiator(Box::new(initiator))
        }
        MemorySpec::DramCache(_) => unreachable!("refused when the spec is read"),
    })
}
