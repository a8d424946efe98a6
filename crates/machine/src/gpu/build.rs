//! From a spec to the GPU side of a machine.

use super::{GpuSide, Memory, Ports};
use crate::spec::{Loaded, MemorySpec};
use compute::simt::Gpu;
use config::Diagnostic;
use flash::direct::Direct;
use flash::engine::Engine;
use host::paging::Paging;
use kernel::Time;
use mem::dram::Dram;
use mem::l2::L2;
use mem::mmu::Mmu;
use net::crossbar::Crossbar;
use proto::memory::Tally;
use proto::simt::Programs;
use workload::program::Apps;

/// Builds the GPU side for the applications.
///
/// # Errors
/// A spec that cannot be built, or applications that do not fit.
pub(crate) fn build(loaded: &Loaded, programs: Apps, seed: u64) -> Result<GpuSide, Diagnostic> {
    let spec = &loaded.spec;
    let name = &loaded.name;
    let (Some(gpu), Some(mmu), Some(network), Some(l2), Some(memory)) =
        (&spec.gpu, &spec.mmu, &spec.network, &spec.l2, &spec.memory)
    else {
        return Err(Diagnostic::new(format!("the system `{name}` has no GPU"))
            .help("programs need the tables `gpu`, `mmu`, `network`, `l2` and `memory`"));
    };
    let mut memory = self::memory(loaded, memory, seed)?;
    let mut paging = match &spec.paging {
        Some(paging) => Some(Paging::new(paging).map_err(|e| loaded.explain("paging", e))?),
        None => None,
    };
    let controllers = match &memory {
        Memory::Dram(_) => 0,
        Memory::Direct(direct) => direct.controllers(),
        Memory::Engine(_) => 1,
    };
    let l2 = L2::new(l2, seed).map_err(|e| loaded.explain("l2", e))?;
    let mut mmu = Mmu::new(mmu, gpu.sms).map_err(|e| loaded.explain("mmu", e))?;
    let cycle = Time::period(gpu.clock.hz());
    let gpu = Gpu::new(gpu, programs.apps(), mmu.reach()).map_err(|e| loaded.explain("gpu", e))?;
    let ports = Ports { multiprocessors: gpu.ports(), banks: l2.banks() };
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
    for app in 0..programs.apps() {
        let bytes = programs.footprint(app);
        mmu.add_app(app, bytes, paging.is_none());
        if let Some(paging) = &mut paging {
            paging.add_app(app, bytes);
        }
    }
    if let Memory::Direct(direct) = &mut memory {
        occupy(direct, &programs);
    }
    if let Some(paging) = &mut paging {
        paging.set_reach(mmu.reach());
    }
    let network =
        Crossbar::new(network, ports.controller(controllers)).map_err(|e| loaded.explain("network", e))?;
    let ended = vec![None; usize::from(programs.apps())];
    let side = GpuSide {
        programs,
        gpu,
        mmu,
        network,
        l2,
        memory,
        paging,
        ports,
        tally: Tally::default(),
        cycle,
        ended,
        claimed: 0,
        unfit: None,
    };
    Ok(side)
}

/// Each application begins with an entry of the block table of its own.
fn occupy(direct: &mut Direct, programs: &Apps) {
    let mut from = 0;
    for app in 0..programs.apps() {
        let bytes = programs.footprint(app);
        direct.occupy(from..from + bytes);
        from += bytes.next_multiple_of(direct.reach());
    }
}

fn memory(loaded: &Loaded, spec: &MemorySpec, seed: u64) -> Result<Memory, Diagnostic> {
    let explain = |kind: &'static str| move |error| loaded.explain(&format!("memory.{kind}"), error);
    Ok(match spec {
        MemorySpec::Dram(dram) => Memory::Dram(Box::new(Dram::new(dram).map_err(explain("dram"))?)),
        MemorySpec::Direct(direct) => {
            Memory::Direct(Box::new(Direct::new(direct, seed).map_err(explain("direct"))?))
        }
        MemorySpec::Engine(engine) => {
            let mut engine = Engine::new(engine).map_err(explain("engine"))?;
            engine.set_capacity(loaded.device(seed)?.capacity());
            Memory::Engine(Box::new(engine))
        }
    })
}
