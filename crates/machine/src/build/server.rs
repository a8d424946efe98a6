//! From a spec to a server.

use super::memory::{self, Extent};
use super::place;
use super::warm::{self, Filling, Tables as Walked};
use crate::complex::{Complex, Ends, Network, Ooo, Processor};
use crate::memory::Memory;
use crate::pager::Pager;
use crate::parts::Built;
use crate::spec::{Cpus, Loaded, MemorySpec, Spec};
use compute::ooo::Cores;
use compute::ooo::sched::ThreadScheduling;
use config::Diagnostic;
use host::swap::Swap;
use mem::directory::{Directory, DirectorySpec};
use mem::dram_cache::Partition;
use mem::l2::{L2, L2Spec};
use mem::mmu::{Mmu, MmuSpec, Residency};
use net::fabric::{Fabric, FabricSpec};
use proto::cpu::Service;
use proto::memory::{CPU_LINE, PAGE};
use std::sync::atomic::AtomicBool;

/// The application that a service is.
const APP: u8 = 0;
/// What helps where a service has no room.
const TOO_LARGE: &str = "a smaller service (size=..., of a recorded program memory=shared), or more flash";

/// Checks every table that only a server has, and what the tables of a server say together.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    let Spec { cpu, fabric, directory, .. } = &loaded.spec;
    let Some(cpu) = cpu else { return Ok(()) };
    cpu.first.check().map_err(|e| loaded.explain("cpu.0", e))?;
    cpu.warmup.check(cpu.first.load.jobs).map_err(|e| loaded.explain("cpu", e))?;
    if let Some(fabric) = fabric {
        fabric.check().map_err(|e| loaded.explain("fabric", e))?;
    }
    if let Some(directory) = directory {
        directory.check(cpu.first.cores).map_err(|e| loaded.explain("directory", e))?;
    }
    check_swap(loaded)?;
    check_tiles(loaded)
}

/// Whether the operating system can page: it does so page by page, and wakes threads.
fn check_swap(loaded: &Loaded) -> Result<(), Diagnostic> {
    let Spec { cpu: Some(cpu), mmu: Some(mmu), swap: Some(swap), .. } = &loaded.spec else {
        return Ok(());
    };
    swap.check().map_err(|e| loaded.explain("swap", e))?;
    let reach = Mmu::new(mmu, 0, CPU_LINE).map_err(|e| loaded.explain("mmu", e))?.reach();
    if reach != PAGE {
        let what = format!("a translation covers {reach} B; the operating system pages by {PAGE} B");
        return Err(loaded.diagnose("mmu.table", &what));
    }
    if cpu.first.threads.scheduler != ThreadScheduling::notified {
        let what = "an operating system wakes a thread when its page has come: no other scheduler is modelled with `swap`";
        return Err(loaded.diagnose("cpu.0.threads.scheduler", what).help("give `notified`"));
    }
    Ok(())
}

/// Whether there is a core and a cache bank for each router of the mesh.
fn check_tiles(loaded: &Loaded) -> Result<(), Diagnostic> {
    let Spec { cpu: Some(cpu), fabric: Some(fabric), l2: Some(l2), .. } = &loaded.spec else {
        return Ok(());
    };
    let cores = u32::from(cpu.first.cores);
    let (rows, columns) = (fabric.mesh.rows, fabric.mesh.columns);
    let (key, what) = if rows * columns != cores {
        let routers = rows * columns;
        let what = format!(
            "{cores} cores (`cpu.0.cores`) on a mesh of {rows} rows (`fabric.mesh.rows`) of {columns} routers (`fabric.mesh.columns`), which are {routers}: each core has a router"
        );
        ("cpu.0.cores", what)
    } else if u32::from(l2.banks) != cores {
        let what = format!(
            "{} banks (`l2.banks`) for {cores} cores (`cpu.0.cores`): each core has a bank",
            l2.banks
        );
        ("l2.banks", what)
    } else if l2.line.get() != CPU_LINE {
        let what = format!("the first-level caches of cores have lines of {CPU_LINE} B, not of {}", l2.line);
        return Err(loaded.diagnose("l2.line", &what).help(format!("give `{CPU_LINE}B`")));
    } else if l2.interleave.get() != CPU_LINE {
        let what = format!("banks change every {}: those of a server change with every line", l2.interleave);
        return Err(loaded.diagnose("l2.interleave", &what).help(format!("give `{CPU_LINE}B`")));
    } else {
        return Ok(());
    };
    let (rows, columns) = squarest(cores);
    Err(loaded.diagnose(key, &what).help(format!(
        "for {cores} cores: fabric.mesh.rows = {rows}, fabric.mesh.columns = {columns}, l2.banks = {cores}"
    )))
}

/// The rows and columns of the mesh of so many routers that is nearest to a square.
fn squarest(routers: u32) -> (u32, u32) {
    let rows = (1..=routers.isqrt()).rev().find(|rows| routers.is_multiple_of(*rows)).unwrap_or(1);
    (rows, routers / rows)
}

/// The tables that a service needs.
#[derive(Clone, Copy)]
pub(crate) struct Tables<'a> {
    cpu: &'a Cpus,
    mmu: &'a MmuSpec,
    fabric: &'a FabricSpec,
    directory: &'a DirectorySpec,
    l2: &'a L2Spec,
    memory: &'a MemorySpec,
}

/// The tables that a service needs.
///
/// # Errors
/// A system without one of them.
pub(crate) fn tables(loaded: &Loaded) -> Result<Tables<'_>, Diagnostic> {
    let Spec { cpu, mmu, fabric, directory, l2, memory, .. } = &loaded.spec;
    if let (Some(cpu), Some(mmu), Some(fabric), Some(directory), Some(l2), Some(memory)) =
        (cpu, mmu, fabric, directory, l2, memory)
    {
        return Ok(Tables { cpu, mmu, fabric, directory, l2, memory });
    }
    let what = if cpu.is_some() { "memory behind its cores' shared cache" } else { "cores of a server" };
    Err(Diagnostic::new(format!("the system `{}` has no {what}", loaded.name))
        .help("programs of a server need the tables `cpu`, `mmu`, `fabric`, `directory`, `l2` and `memory`"))
}

/// Builds the server for a service, its DRAM cache or its paged memory warm.
///
/// # Errors
/// A spec that cannot be built, or a service that does not fit.
pub(crate) fn build(
    loaded: &Loaded,
    mut service: Box<dyn Service>,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Built, Diagnostic> {
    let tables = tables(loaded)?;
    let cpu = &tables.cpu.first;
    service.serve_on(cpu.cores, cpu.threads.count);
    // A translation covers what the page table says, whatever the application.
    let reach = Mmu::new(tables.mmu, 0, CPU_LINE).map_err(|e| loaded.explain("mmu", e))?.reach();
    let cores = Cores::new(cpu, reach, seed).map_err(|e| loaded.explain("cpu.0", e))?;
    let bytes = cores.footprint(&*service);
    let mmus =
        (0..cpu.cores).map(|core| mmu(loaded, tables.mmu, core, bytes)).collect::<Result<Vec<_>, _>>()?;
    let top = mmus.first().map_or(bytes, Mmu::top);
    let extent = Extent {
        line: CPU_LINE,
        apps: vec![(APP, 0..bytes)],
        data: bytes.next_multiple_of(reach),
        top,
        reach,
        takes: ("the service takes", TOO_LARGE),
    };
    let mut memory = memory::build(loaded, tables.memory, &extent, seed)?;
    let mesh = &tables.fabric.mesh;
    let network = Fabric::new(tables.fabric).map_err(|e| loaded.explain("fabric", e))?;
    let directory =
        Directory::new(tables.directory, cpu.cores, cpu.cores).map_err(|e| loaded.explain("directory", e))?;
    let mut l2 = L2::new(tables.l2, seed).map_err(|e| loaded.explain("l2", e))?;
    if loaded.spec.sim.shadow {
        l2.attach_shadow();
    }
    let mut pager = swap(loaded, cpu.cores, &extent)?.map(Pager::Swap);
    let filling = Filling {
        tables: None,
        text: service.footprint().next_multiple_of(reach)..bytes,
        slots: u32::from(cpu.cores) * cpu.threads.count,
        most: tables.cpu.fill_jobs,
    };
    let walked = || Walked::new(tables.mmu, bytes);
    let fill_jobs = match (&mut memory, tables.memory, &mut pager) {
        (Memory::DramCache(cache), MemorySpec::DramCache(spec), _) => {
            let tables = (spec.partition == Partition::none).then(walked);
            warm::warm(&mut *service, &mut **cache, Filling { tables, ..filling }, stop)
        }
        (_, _, Some(Pager::Swap(swap))) => warm::warm(&mut *service, &mut **swap, filling, stop),
        _ => 0,
    };
    let ends = Ends::mesh(place::controllers(mesh.rows, mesh.columns, memory.controllers()));
    let processor = Processor::Ooo(Box::new(Ooo { service, cores, reach, fill_jobs }));
    let (network, directory) = (Network::Mesh(network), Some(directory));
    let complex = Complex::new(processor, mmus, network, directory, (l2, CPU_LINE), ends);
    Ok(Built { complex, memory, pager })
}

/// The operating system's paging, if the system has it. Its frames are the first of DRAM. No more of them are ever taken than the
/// service has pages, so that they end before the page tables, which are always there.
fn swap(loaded: &Loaded, cores: u16, extent: &Extent) -> Result<Option<Box<Swap>>, Diagnostic> {
    let Some(spec) = &loaded.spec.swap else { return Ok(None) };
    memory::check_device(loaded, extent.data, extent)?;
    Ok(Some(Box::new(Swap::new(spec, cores).map_err(|e| loaded.explain("swap", e))?)))
}

fn mmu(loaded: &Loaded, spec: &MmuSpec, core: u16, bytes: u64) -> Result<Mmu, Diagnostic> {
    let mut mmu = Mmu::new(spec, core, CPU_LINE).map_err(|e| loaded.explain("mmu", e))?;
    let span = mmu.span();
    if bytes > span {
        let what = format!("the service has {bytes} B of addresses; the page table reaches {span} B");
        return Err(loaded.diagnose("mmu.table", &what));
    }
    let residency = if loaded.spec.swap.is_some() { Residency::Asked } else { Residency::Always };
    mmu.add_app(APP, bytes, residency);
    Ok(mmu)
}

#[cfg(test)]
mod tests {
    use super::squarest;

    #[test]
    fn the_nearest_square_has_as_many_routers() {
        let shapes = [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (16, (4, 4)), (17, (1, 17)), (64, (8, 8))];
        for (routers, shape) in shapes {
            assert_eq!(squarest(routers), shape);
        }
    }
}
