//! From a spec to a GPU.

use super::memory::{self, Extent};
use crate::complex::{Complex, Ends, InstructionSeries, Network, Processor, Simt};
use crate::memory::Memory;
use crate::pager::Pager;
use crate::parts::Built;
use crate::spec::{Loaded, MemorySpec, Spec};
use compute::simt::{Gpu, GpuSpec};
use config::Diagnostic;
use host::paging::Paging;
use kernel::Time;
use mem::l2::{L2, L2Spec};
use mem::mmu::{Mmu, MmuSpec, Residency};
use net::CrossbarSpec;
use net::crossbar::Crossbar;
use proto::memory::LINE;
use proto::simt::Programs;
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
    memory::check(loaded, spec.l2.as_ref().map_or(LINE, |l2| l2.line.get()))?;
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
    let mut paging = match &spec.paging {
        Some(paging) => Some(Paging::new(paging).map_err(|e| loaded.explain("paging", e))?),
        None => None,
    };
    let mut l2 = L2::new(l2, seed).map_err(|e| loaded.explain("l2", e))?;
    if spec.sim.shadow {
        l2.attach_shadow();
    }
    let mut mmu = Mmu::new(mmu, gpu.sms, LINE).map_err(|e| loaded.explain("mmu", e))?;
    let cycle = Time::period(gpu.clock.hz());
    let gpu = Gpu::new(gpu, programs.apps(), mmu.reach()).map_err(|e| loaded.explain("gpu", e))?;
    check_pages(loaded, &programs, &mmu)?;
    let residency = if paging.is_some() { Residency::ByPage } else { Residency::Always };
    for app in 0..programs.apps() {
        let bytes = programs.footprint(app);
        mmu.add_app(app, bytes, residency);
        if let Some(paging) = &mut paging {
            paging.add_app(app, bytes);
        }
    }
    let extent = extent(&programs, &mmu);
    let memory = memory::build(loaded, memory, &extent, seed)?;
    if let Some(paging) = &paging {
        memory::check_device(loaded, paging.ssd_bytes(), &extent)?;
    }
    if let Some(paging) = &mut paging {
        paging.set_reach(mmu.reach());
    }
    // Controllers of DRAM stand beside the banks, others on the network.
    let controllers = (!matches!(memory, Memory::Dram(_))).then(|| memory.controllers());
    let ends = Ends::crossbar(gpu.ports(), l2.banks(), controllers);
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

/// What the applications take: each begins with a translation entry of its own.
fn extent(programs: &Apps, mmu: &Mmu) -> Extent {
    let mut from = 0;
    let place = |app| {
        let bytes = programs.footprint(app);
        let place = from..from + bytes;
        from += bytes.next_multiple_of(mmu.reach());
        (app, place)
    };
    let apps = (0..programs.apps()).map(place).collect();
    Extent {
        line: LINE,
        apps,
        data: from,
        top: mmu.top(),
        reach: mmu.reach(),
        takes: ("the programs take", "fewer or smaller programs, or more flash"),
    }
}
