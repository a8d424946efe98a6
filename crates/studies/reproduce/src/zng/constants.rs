//! Rows without a run: those that follow from constants of the systems, and Table II, what each program is, counted
//! as `nandscape explain` counts it.

use super::super::expected::Figure;
use super::super::study::Entry;
use config::Diagnostic;
use mem::dram::Dram;
use mem::mmu::table::block::Size;
use programs::program::{self, census};
use proto::memory::{LINE, PAGE};
use spec::MemorySpec;
use ssd::spec::{HostLinkSpec, PcieSpec};

/// Bytes a second of a system's DRAM or persistent memory.
fn dram(system: &str) -> Result<f64, Diagnostic> {
    match machine::load(system, &[])?.spec.memory.first().map(|part| &part.spec) {
        Some(MemorySpec::Dram(dram)) => {
            let dram = Dram::new(dram, LINE).map_err(|error| Diagnostic::new(error.what))?;
            Ok(dram.peak_bandwidth() as f64)
        }
        _ => Err(Diagnostic::new(format!("{system} has no DRAM behind its cache"))),
    }
}

/// Bytes a second of HybridGPU's buffer, and what its translation lets through in pages.
fn engine() -> Result<(f64, f64), Diagnostic> {
    match machine::load("hybridgpu", &[])?.spec.memory.first().map(|part| &part.spec) {
        Some(MemorySpec::Engine(engine)) => {
            let ftl = f64::from(engine.ftl_in_service) * PAGE as f64 / engine.ftl_time.time().as_s_f64();
            Ok((engine.dram.bandwidth.bytes_per_s() as f64, ftl))
        }
        _ => Err(Diagnostic::new("hybridgpu has no engine")),
    }
}

/// Bytes a second of the drive's link in Hetero.
fn drive() -> Result<f64, Diagnostic> {
    let loaded = machine::load("hetero", &[])?;
    let device = loaded.drive()?.flash;
    match &device.host.link {
        HostLinkSpec::Pcie(PcieSpec { generation, lanes, .. }) => {
            let lane = net::pcie::lane_bytes_per_s(*generation)
                .ok_or_else(|| Diagnostic::new("a generation of PCIe that is not known"))?;
            Ok((lane * u64::from(*lanes)) as f64)
        }
        HostLinkSpec::Plain(plain) => Ok(plain.bandwidth.bytes_per_s() as f64),
        HostLinkSpec::Sata(_) => Err(Diagnostic::new("hetero has a SATA drive")),
    }
}

/// The size of ZnG's mapping table for 1 TiB, in KiB.
fn table() -> Result<f64, Diagnostic> {
    match machine::load("zng", &[])?.spec.memory.first().map(|part| &part.spec) {
        Some(MemorySpec::Direct(direct)) => {
            let g = &direct.geometry;
            let planes = u64::from(g.channels * g.packages * g.dies * g.planes);
            let size = Size::of(planes, g.blocks.into(), g.pages.into(), direct.reach());
            let size = size.ok_or_else(|| Diagnostic::new("the reach is not a whole number of blocks"))?;
            Ok(size.bytes as f64 / 1024.0)
        }
        _ => Err(Diagnostic::new("zng has no flash on its network")),
    }
}

/// A figure's entry; none if it follows from no constants.
pub(super) fn entry(figure: &Figure) -> Option<Entry> {
    let compute: fn() -> Result<(f64, &'static str), Diagnostic> = match figure.id.strip_prefix("zng.")? {
        "bw.hybridgpu_controller_cap" => || {
            let (buffer, ftl) = engine()?;
            Ok((
                buffer.min(ftl) / 1e9,
                "the lesser of the buffer's bus and eight translations of a page in 5 us",
            ))
        },
        "bw.optane_accumulated" => || Ok((dram("optane")? / 1e9, "six modules")),
        "bw.gddr5_vs_gpu_ssd" => || Ok((dram("ideal")? / drive()?, "GDDR5 over the drive's link")),
        "bw.gddr5_vs_hybridgpu" => || Ok((dram("ideal")? / engine()?.0, "GDDR5 over the engine's buffer")),
        "motivation.flash_bw_wasted" => {
            || Ok((100.0 * (1.0 - LINE as f64 / PAGE as f64), "a line of 128 B from a page of 4 KiB"))
        }
        "motivation.hybrid_buffer_bandwidth" => {
            || Ok((100.0 * (1.0 - engine()?.0 / dram("ideal")?), "the engine's buffer against GDDR5"))
        }
        "ftl.dbmt_size_1tb" => {
            || Ok((table()?, "an entry for 128 blocks, four fields of 20 bits, Table I's array"))
        }
        _ => return None,
    };
    let figure = figure.clone();
    let id = figure.id.clone();
    let row = move |_: &_| compute().and_then(|(value, note)| figure.row(value, note));
    Some(Entry::new(id, Vec::new(), row))
}

/// A figure's entry; none if it is not of Table II.
pub(super) fn program_entry(figure: &Figure) -> Option<Entry> {
    let (program, column) = figure.id.strip_prefix("zng.table2.")?.split_once('.')?;
    let (program, kernels) = (program.to_owned(), column == "kernels");
    let (id, figure) = (figure.id.clone(), figure.clone());
    let compute = move |_: &_| {
        let mut programs = program::open(&[&program])?;
        let [one] = &mut programs[..] else {
            return Err(Diagnostic::new(format!("`{program}` is not a single program")));
        };
        let census = census(one.as_mut());
        let value = if kernels { census.kernels.len() as f64 } else { census.read_ratio() };
        figure.row(value, format!("counted without a machine, as `explain {program}` does"))
    };
    Some(Entry::new(id, Vec::new(), compute))
}
