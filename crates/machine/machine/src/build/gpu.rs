//! Builds a GPU from a spec.

use super::memory::{self, Extent, Places};
use super::seed_of;
use crate::parts::complex::{Complex, Ends, InstructionSeries, Network, Processor, Simt};
use crate::parts::memory::{Memory, Stands};
use crate::parts::pager::Pager;
use crate::parts::{Built, Target};
use compute::simt::{Gpu, GpuSpec};
use config::Diagnostic;
use engine::Time;
use mem::l2::{L2, L2Spec};
use mem::mmu::{Mmu, MmuSpec, Residency};
use mem::paging::{Paging, PagingSpec};
use net::noc::{Noc, NocSpec};
use programs::program::{Apps, Program};
use proto::memory::LINE;
use proto::simt::Programs;
use spec::{Id, Kind, Loaded, Part};

/// Checks every table of a GPU, and those that it shares with servers.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    for part in &spec.gpu {
        part.spec.check().map_err(|e| loaded.explain(part.table(), e))?;
    }
    for part in &spec.mmu {
        part.spec.check().map_err(|e| loaded.explain(part.table(), e))?;
    }
    for part in &spec.network {
        part.spec.check().map_err(|e| loaded.explain(part.table(), e))?;
    }
    for part in &spec.l2 {
        part.spec.check().map_err(|e| loaded.explain(part.table(), e))?;
    }
    for part in spec.gpu.iter().filter_map(|gpu| Some(&spec.l2[gpu.link("l2")?.number])) {
        let line = part.spec.line;
        if line.get() != LINE {
            let what = format!("a warp's accesses merge into lines of {LINE} B; the line is {line} B");
            return Err(loaded.diagnose(&format!("{}.line", part.table()), &what));
        }
    }
    for part in &spec.l2 {
        if let Some(behind) = part.link("memory") {
            memory::check(loaded, behind, part.spec.line.get())?;
        }
    }
    if spec.sim.series.is_some() && spec.gpu.is_empty() {
        return Err(loaded.diagnose("sim.series", "a system without a GPU issues no instructions"));
    }
    for part in &spec.paging {
        part.spec.check().map_err(|e| loaded.explain(part.table(), e))?;
    }
    Ok(())
}

/// Tables that programs need around a GPU.
///
/// # Errors
/// A system that lacks one of the tables.
pub(crate) fn tables(loaded: &Loaded, number: usize) -> Result<Tables<'_>, Diagnostic> {
    let spec = &loaded.spec;
    let found = || {
        let gpu = spec.gpu.get(number)?;
        let l2 = &spec.l2[gpu.link("l2")?.number];
        Some(Tables {
            gpu,
            mmu: &spec.mmu[gpu.link("mmu")?.number],
            network: &spec.network[gpu.link("network")?.number],
            l2,
            memory: l2.link("memory")?,
            paging: gpu.link("paging").map(|id| &spec.paging[id.number]),
        })
    };
    found().ok_or_else(|| {
        let what = if spec.gpu.is_empty() { "GPU" } else { "memory behind the GPU's shared cache" };
        Diagnostic::new(format!("the system `{}` has no {what}", loaded.name))
            .help("programs need the tables `gpu`, `mmu`, `network`, `l2` and `memory`")
    })
}

/// Parts around a GPU.
pub(crate) struct Tables<'a> {
    gpu: &'a Part<GpuSpec>,
    mmu: &'a Part<MmuSpec>,
    network: &'a Part<NocSpec>,
    l2: &'a Part<L2Spec>,
    memory: Id,
    paging: Option<&'a Part<PagingSpec>>,
}

/// Network endpoints behind the banks, in turn; DRAM is beside the part that asks it.
struct OnNoc {
    next: u32,
}

impl Places for OnNoc {
    fn place(&mut self, memory: &Memory, _: bool) -> Option<Box<[u32]>> {
        if memory.stands() != Stands::OnNetwork {
            return None;
        }
        let first = self.next;
        self.next += u32::from(memory.controllers());
        Some((first..self.next).collect())
    }
}

/// Programs of the GPU with this number. Several can restart if the GPU repeats those that end early; a single one is
/// never repeated.
fn applications(loaded: &Loaded, number: usize, programs: Vec<Box<dyn Program>>) -> Apps {
    let repeats = loaded.spec.gpu[number].spec.repeat && programs.len() > 1;
    if repeats { Apps::new(programs).repeatable() } else { Apps::new(programs) }
}

/// Builds the GPU with this number for the applications.
///
/// # Errors
/// A spec that cannot be built, or applications that do not fit.
pub(crate) fn build(
    loaded: &Loaded,
    number: usize,
    programs: Vec<Box<dyn Program>>,
    seed: u64,
) -> Result<Built, Diagnostic> {
    let programs = applications(loaded, number, programs);
    let tables = tables(loaded, number)?;
    let seed = seed_of(seed, Id { kind: Kind::Gpu, number });
    let mut paging = match tables.paging {
        Some(part) => Some(Paging::new(&part.spec).map_err(|e| loaded.explain(part.table(), e))?),
        None => None,
    };
    let mut l2 = L2::new(&tables.l2.spec, seed).map_err(|e| loaded.explain(tables.l2.table(), e))?;
    if loaded.spec.sim.shadow {
        l2.attach_shadow();
    }
    let gpu = tables.gpu;
    let mut mmu =
        Mmu::new(&tables.mmu.spec, gpu.spec.sms, LINE).map_err(|e| loaded.explain(tables.mmu.table(), e))?;
    let cycle = Time::period(gpu.spec.clock.hz());
    let name = gpu.name.clone();
    let gpu =
        Gpu::new(&gpu.spec, programs.apps(), mmu.reach()).map_err(|e| loaded.explain(gpu.table(), e))?;
    check_pages(loaded, &tables, &programs, &mmu)?;
    let residency = if paging.is_some() { Residency::ByPage } else { Residency::Always };
    for app in 0..programs.apps() {
        let bytes = programs.footprint(app);
        mmu.add_app(app, bytes, residency);
        if let Some(paging) = &mut paging {
            paging.add_app(app, bytes);
        }
    }
    let extent = extent(&programs, &mmu);
    let ends = Ends::endpoints(gpu.ports());
    let mut places = OnNoc { next: ends.bank(l2.banks()) };
    let memory = memory::build(loaded, tables.memory, &extent, seed, &mut places)?;
    let mut pages = Target::Drive(0);
    if let (Some(paging), Some(part)) = (&mut paging, tables.paging) {
        if let Some(drive) = part.link("drive") {
            memory::check_drive(loaded, drive, paging.ssd_bytes(), &extent)?;
            pages = memory::target(Some(drive));
        }
        paging.set_reach(mmu.reach());
    }
    let network = Noc::new(&tables.network.spec, places.next as u16)
        .map_err(|e| loaded.explain(tables.network.table(), e))?;
    let series = loaded.spec.sim.series.map(|width| InstructionSeries::new(width.time()));
    let processor = Processor::Simt(Box::new(Simt::new(programs, gpu, cycle, series)));
    let complex = Complex::new(name, processor, vec![mmu], Network::Noc(network), None, (l2, LINE), ends);
    let name = tables.paging.map(|part| part.name.clone());
    let pager = name.zip(paging.map(|paging| Pager::Paging(Box::new(paging))));
    Ok(Built { complex, memory, pager, pages })
}

/// Checks that the page table reaches every application's data, and that granules are whole pages.
fn check_pages(loaded: &Loaded, tables: &Tables<'_>, programs: &Apps, mmu: &Mmu) -> Result<(), Diagnostic> {
    for app in 0..programs.apps() {
        let (bytes, span) = (programs.footprint(app), mmu.span());
        if bytes > span {
            let name = programs.program(app).name();
            let what = format!("`{name}` needs {bytes} B of addresses; the page table reaches {span} B");
            return Err(loaded.diagnose(&format!("{}.table", tables.mmu.table()), &what));
        }
    }
    match tables.paging {
        Some(paging) if !paging.spec.granule.get().is_multiple_of(mmu.reach()) => {
            let (granule, reach) = (paging.spec.granule, mmu.reach());
            let what = format!("granule {granule} is not a multiple of the page size {reach} B");
            Err(loaded.diagnose(&format!("{}.granule", paging.table()), &what))
        }
        _ => Ok(()),
    }
}

/// Address extent of the applications: each begins with a new translation entry.
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
        is_translated: true,
        takes: ("the programs need", "fewer or smaller programs, or more flash"),
    }
}
