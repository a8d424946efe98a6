//! Builds a server from a spec.

use super::memory::{self, Extent, Places};
use super::seed_of;
use super::warm::{self, Filling, Source, Tables as Walked};
use crate::parts::complex::{Complex, Ends, Network, Ooo, Processor};
use crate::parts::memory::{Memory, Stands};
use crate::parts::pager::Pager;
use crate::parts::{Built, Target};
use compute::ooo::sched::ThreadScheduling;
use compute::ooo::{Cores, MissAction, TableSharing};
use config::Diagnostic;
use mem::directory::{Directory, DirectorySpec};
use mem::dram_cache::Partition;
use mem::l2::{L2, L2Spec};
use mem::mmu::{Mmu, MmuSpec, Residency};
use mem::swap::{Swap, SwapSpec};
use net::fabric::{Fabric, FabricSpec};
use proto::cpu::Service;
use proto::memory::{CPU_LINE, PAGE};
use spec::{Id, Kind, Loaded, Part, ServerSpec};

/// Application number of a service.
const APP: u8 = 0;
/// Help for a service that does not fit.
const TOO_LARGE: &str = "a smaller service (size=..., of a recorded program memory=shared), or more flash";

/// Checks every table that only a server has, and that the tables of a server agree.
///
/// # Errors
/// The first value that cannot be built.
pub(crate) fn check(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    for number in 0..spec.cpu.len() {
        let Some(Tables { cpu, mmu, fabric, directory, l2, swap, .. }) = around(loaded, number) else {
            continue;
        };
        let ServerSpec { cores, start } = &cpu.spec;
        cores.check().map_err(|e| loaded.explain(cpu.table(), e))?;
        start.warmup.check(cores.load.jobs).map_err(|e| loaded.explain(cpu.table(), e))?;
        fabric.spec.check().map_err(|e| loaded.explain(fabric.table(), e))?;
        directory.spec.check(cores.cores).map_err(|e| loaded.explain(directory.table(), e))?;
        if let Some(swap) = swap {
            check_swap(loaded, cpu, mmu, swap)?;
        }
        check_tiles(loaded, cpu, fabric, l2)?;
    }
    Ok(())
}

/// Checks that the operating system can page: its page size and its thread scheduler.
fn check_swap(
    loaded: &Loaded,
    cpu: &Part<ServerSpec>,
    mmu: &Part<MmuSpec>,
    swap: &Part<SwapSpec>,
) -> Result<(), Diagnostic> {
    swap.spec.check().map_err(|e| loaded.explain(swap.table(), e))?;
    let reach = Mmu::new(&mmu.spec, 0, CPU_LINE).map_err(|e| loaded.explain(mmu.table(), e))?.reach();
    if reach != PAGE {
        let what = format!(
            "a translation covers {reach} B; with `swap` it must cover the operating system's page of {PAGE} B"
        );
        return Err(loaded.diagnose(&format!("{}.table", mmu.table()), &what));
    }
    if cpu.spec.cores.threads.scheduler != ThreadScheduling::notified {
        let what = "with `swap`, the scheduler must be `notified`: the operating system wakes a thread when its page arrives";
        let key = format!("{}.threads.scheduler", cpu.table());
        return Err(loaded.diagnose(&key, what).help("set it to `notified`"));
    }
    if cpu.spec.cores.threads.miss == MissAction::serial {
        let what = "with `swap`, a core cannot fetch one page at a time: page faults come from translations, which do not wait for each other";
        let key = format!("{}.threads.miss", cpu.table());
        return Err(loaded.diagnose(&key, what).help("set it to `switch` or `wait`"));
    }
    Ok(())
}

/// Checks that each router of the mesh has a core and a cache bank.
fn check_tiles(
    loaded: &Loaded,
    cpu: &Part<ServerSpec>,
    fabric: &Part<FabricSpec>,
    l2: &Part<L2Spec>,
) -> Result<(), Diagnostic> {
    let cores = u32::from(cpu.spec.cores.cores);
    let (rows, columns) = (fabric.spec.mesh.rows, fabric.spec.mesh.columns);
    let (of_cores, of_rows, of_columns, of_banks) = (
        format!("{}.cores", cpu.table()),
        format!("{}.mesh.rows", fabric.table()),
        format!("{}.mesh.columns", fabric.table()),
        format!("{}.banks", l2.table()),
    );
    let (banks, line, interleave) = (l2.spec.banks, l2.spec.line, l2.spec.interleave);
    let a_line = |key: &str, what: String| {
        Err(loaded.diagnose(&format!("{}.{key}", l2.table()), &what).help(format!("give `{CPU_LINE}B`")))
    };
    let (key, what) = if rows * columns != cores {
        let routers = rows * columns;
        let what = format!(
            "{cores} cores (`{of_cores}`) on a mesh of {rows} rows (`{of_rows}`) x {columns} columns (`{of_columns}`) = {routers} routers: each core needs one router"
        );
        (&of_cores, what)
    } else if u32::from(banks) != cores {
        let what = format!(
            "{banks} banks (`{of_banks}`) for {cores} cores (`{of_cores}`): each core needs one bank"
        );
        (&of_banks, what)
    } else if line.get() != CPU_LINE {
        let what = format!("first-level caches have lines of {CPU_LINE} B; the line is {line} B");
        return a_line("line", what);
    } else if interleave.get() != CPU_LINE {
        let what =
            format!("banks interleave every {interleave}: a server's banks must interleave every line");
        return a_line("interleave", what);
    } else {
        return Ok(());
    };
    let (rows, columns) = squarest(cores);
    Err(loaded.diagnose(key, &what).help(format!(
        "for {cores} cores: {of_rows} = {rows}, {of_columns} = {columns}, {of_banks} = {cores}"
    )))
}

/// Rows and columns of the mesh of `routers` routers that is nearest to a square.
fn squarest(routers: u32) -> (u32, u32) {
    let rows = (1..=routers.isqrt()).rev().find(|rows| routers.is_multiple_of(*rows)).unwrap_or(1);
    (rows, routers / rows)
}

/// Parts around the cores of a server.
pub(crate) struct Tables<'a> {
    cpu: &'a Part<ServerSpec>,
    mmu: &'a Part<MmuSpec>,
    fabric: &'a Part<FabricSpec>,
    directory: &'a Part<DirectorySpec>,
    l2: &'a Part<L2Spec>,
    memory: Option<Id>,
    swap: Option<&'a Part<SwapSpec>>,
}

/// Parts around the cores with this number; `None` if one is missing.
fn around(loaded: &Loaded, number: usize) -> Option<Tables<'_>> {
    let spec = &loaded.spec;
    let cpu = spec.cpu.get(number)?;
    let l2 = &spec.l2[cpu.link("l2")?.number];
    Some(Tables {
        cpu,
        mmu: &spec.mmu[cpu.link("mmu")?.number],
        fabric: &spec.fabric[cpu.link("fabric")?.number],
        directory: &spec.directory[cpu.link("directory")?.number],
        l2,
        memory: l2.link("memory"),
        swap: cpu.link("swap").map(|id| &spec.swap[id.number]),
    })
}

/// Tables that a service needs around the cores with this number, and their memory.
///
/// # Errors
/// A system that lacks one of the tables.
pub(crate) fn tables(loaded: &Loaded, number: usize) -> Result<(Tables<'_>, Id), Diagnostic> {
    let found = around(loaded, number).and_then(|tables| tables.memory.map(|memory| (tables, memory)));
    found.ok_or_else(|| {
        let none = loaded.spec.cpu.is_empty();
        let what = if none { "cores of a server" } else { "memory behind the cores' shared cache" };
        Diagnostic::new(format!("the system `{}` has no {what}", loaded.name)).help(
            "programs of a server need the tables `cpu`, `mmu`, `fabric`, `directory`, `l2` and `memory`",
        )
    })
}

/// Controllers at the edge of a mesh; DRAM behind a different memory is beside it.
struct OnMesh {
    rows: u32,
    columns: u32,
}

impl Places for OnMesh {
    fn place(&mut self, memory: &Memory, is_behind: bool) -> Option<Box<[u32]>> {
        let is_beside = match memory.stands() {
            Stands::BesideAsker => true,
            Stands::BesideBanks => is_behind,
            Stands::OnNetwork => false,
        };
        (!is_beside).then(|| controllers(self.rows, self.columns, memory.controllers()).into())
    }
}

/// Builds the server with this number for a service, its DRAM cache or its paged memory warm.
///
/// # Errors
/// A spec that cannot be built, or a service that does not fit.
pub(crate) fn build(
    loaded: &Loaded,
    number: usize,
    mut service: Box<dyn Service>,
    seed: u64,
    from: &mut dyn Source,
) -> Result<Built, Diagnostic> {
    let (tables, id) = tables(loaded, number)?;
    let seed = seed_of(seed, Id { kind: Kind::Cpu, number });
    let ServerSpec { cores: cpu, start } = &tables.cpu.spec;
    service.serve_on(cpu.cores, cpu.threads.count);
    let of_mmu = |error| loaded.explain(tables.mmu.table(), error);
    // The page table sets the reach of a translation, whatever the application.
    let reach = Mmu::new(&tables.mmu.spec, 0, CPU_LINE).map_err(of_mmu)?.reach();
    let mut cores = Cores::new(cpu, reach, seed).map_err(|e| loaded.explain(tables.cpu.table(), e))?;
    let jobs = service.jobs();
    if let Some(jobs) = jobs {
        cores.serve_only(jobs);
    }
    let bytes = cores.footprint(&*service);
    let mmus = (0..cpu.cores).map(|core| mmu(loaded, &tables, core, bytes)).collect::<Result<Vec<_>, _>>()?;
    let top = mmus.iter().map(Mmu::top).max().unwrap_or(bytes);
    let extent = Extent {
        line: CPU_LINE,
        apps: vec![(APP, 0..bytes)],
        data: bytes.next_multiple_of(reach),
        top,
        reach,
        is_translated: true,
        takes: ("the service needs", TOO_LARGE),
    };
    let mesh = &tables.fabric.spec.mesh;
    let mut places = OnMesh { rows: mesh.rows, columns: mesh.columns };
    let mut stored = memory::build(loaded, id, &extent, seed, &mut places)?;
    let network = Fabric::new(&tables.fabric.spec).map_err(|e| loaded.explain(tables.fabric.table(), e))?;
    let directory = Directory::new(&tables.directory.spec, cpu.cores, cpu.cores)
        .map_err(|e| loaded.explain(tables.directory.table(), e))?;
    let mut l2 = L2::new(&tables.l2.spec, seed).map_err(|e| loaded.explain(tables.l2.table(), e))?;
    if loaded.spec.sim.shadow {
        l2.attach_shadow();
    }
    let (mut pager, pages) = swap(loaded, &tables, &extent)?;
    let filling = Filling {
        tables: None,
        text: service.footprint().next_multiple_of(reach)..bytes,
        slots: u32::from(cpu.cores) * cpu.threads.count,
        most: if jobs.is_none() { start.fill_jobs } else { 0 },
        pages: top.max(bytes).div_ceil(PAGE),
    };
    let sets = match cpu.tables {
        TableSharing::shared => 1,
        TableSharing::own => cpu.cores,
    };
    let walked = || Walked::new(&tables.mmu.spec, bytes, sets);
    let fill_jobs = match (stored.memory.filled(), &mut pager) {
        (Some(cache), _) => {
            let tables = (cache.partition() == Partition::none).then(walked);
            warm::fill(&mut *service, cache, Filling { tables, ..filling }, from)?
        }
        (None, Some(Pager::Swap(swap))) => warm::fill(&mut *service, &mut **swap, filling, from)?,
        (None, Some(Pager::Paging(_)) | None) => 0,
    };
    let processor = Processor::Ooo(Box::new(Ooo { service, cores, reach, fill_jobs }));
    let (network, directory) = (Network::Mesh(network), Some(directory));
    let name = tables.cpu.name.clone();
    let mut complex = Complex::new(name, processor, mmus, network, directory, (l2, CPU_LINE), Ends::mesh());
    if loaded.spec.sim.shadow {
        complex.copies.follow();
    }
    let pager = tables.swap.map(|part| part.name.clone()).zip(pager);
    Ok(Built { complex, memory: stored, pager, pages })
}

/// The operating system's paging, if the system has it, and the drive that it pages from. Its frames are the first of
/// DRAM: at most as many as the service has pages, so they end before the page tables, which stay in DRAM.
fn swap(
    loaded: &Loaded,
    tables: &Tables<'_>,
    extent: &Extent,
) -> Result<(Option<Pager>, Target), Diagnostic> {
    let Some(part) = tables.swap else { return Ok((None, Target::Drive(0))) };
    let mut pages = Target::Drive(0);
    if let Some(drive) = part.link("drive") {
        memory::check_drive(loaded, drive, extent.data, extent)?;
        pages = memory::target(Some(drive));
    }
    let cores = tables.cpu.spec.cores.cores;
    let swap = Swap::new(&part.spec, cores).map_err(|e| loaded.explain(part.table(), e))?;
    Ok((Some(Pager::Swap(Box::new(swap))), pages))
}

fn mmu(loaded: &Loaded, tables: &Tables<'_>, core: u16, bytes: u64) -> Result<Mmu, Diagnostic> {
    let part = tables.mmu;
    let mut mmu = Mmu::new(&part.spec, core, CPU_LINE).map_err(|e| loaded.explain(part.table(), e))?;
    let span = mmu.span();
    if bytes > span {
        let what = format!("the service needs {bytes} B of addresses; the page table reaches {span} B");
        return Err(loaded.diagnose(&format!("{}.table", part.table()), &what));
    }
    let residency = if tables.swap.is_some() { Residency::Asked } else { Residency::Always };
    mmu.add_app(APP, bytes, residency);
    if tables.cpu.spec.cores.tables == TableSharing::own {
        let data = bytes.next_multiple_of(mmu.reach());
        let each = (mmu.top() - data).next_multiple_of(PAGE);
        mmu.set_tables(data + u64::from(core) * each);
    }
    Ok(mmu)
}

// Positions of memory controllers on a mesh.

/// Routers of `count` controllers on a mesh of `rows` by `columns` routers: evenly around the edge, clockwise from the
/// corner of router 0. With `P` routers on the edge, controller `m` is at number `m P / count` of the edge: on a square
/// mesh, four controllers are at the corners.
pub(super) fn controllers(rows: u32, columns: u32, count: u16) -> Vec<u32> {
    let edge = edge(rows, columns);
    let at = |m: u16| edge[usize::from(m) * edge.len() / usize::from(count)];
    (0..count).map(at).collect()
}

/// Routers of the edge, clockwise.
fn edge(rows: u32, columns: u32) -> Vec<u32> {
    let router = |row: u32, column: u32| row * columns + column;
    if rows == 1 || columns == 1 {
        return (0..rows * columns).collect();
    }
    let (last_row, last_column) = (rows - 1, columns - 1);
    let top = (0..last_column).map(|column| router(0, column));
    let right = (0..last_row).map(|row| router(row, last_column));
    let bottom = (1..columns).rev().map(|column| router(last_row, column));
    let left = (1..rows).rev().map(|row| router(row, 0));
    top.chain(right).chain(bottom).chain(left).collect()
}

#[cfg(test)]
mod tests {
    use super::{squarest, *};

    #[test]
    fn the_nearest_square_has_as_many_routers() {
        let shapes = [(1, (1, 1)), (2, (1, 2)), (12, (3, 4)), (16, (4, 4)), (17, (1, 17)), (64, (8, 8))];
        for (routers, shape) in shapes {
            assert_eq!(squarest(routers), shape);
        }
    }

    #[test]
    fn four_controllers_of_a_square_are_at_its_corners() {
        assert_eq!(controllers(4, 4, 4), [0, 3, 15, 12]);
        assert_eq!(controllers(2, 2, 4), [0, 1, 3, 2]);
        assert_eq!(controllers(8, 8, 4), [0, 7, 63, 56]);
    }

    #[test]
    fn others_are_spread_over_the_edge() {
        // The edge of 3 x 4, clockwise: 0 1 2 3 7 11 10 9 8 4.
        assert_eq!(controllers(3, 4, 10), [0, 1, 2, 3, 7, 11, 10, 9, 8, 4]);
        assert_eq!(controllers(3, 4, 2), [0, 11]);
        assert_eq!(controllers(3, 4, 1), [0]);
        assert_eq!(controllers(1, 6, 3), [0, 2, 4]);
        assert_eq!(controllers(1, 1, 4), [0, 0, 0, 0]);
        // More controllers than edge routers share some routers.
        assert_eq!(controllers(2, 1, 4), [0, 0, 1, 1]);
    }
}
