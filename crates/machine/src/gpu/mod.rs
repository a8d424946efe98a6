//! The GPU side of a machine: multiprocessors, translation, network, shared cache, and the memory behind it.

mod build;
mod series;
mod wires;

pub(crate) use build::{build, check, tables};
pub use series::{InstructionSeries, InstructionWindow};
pub(crate) use wires::Packet;

use crate::lines;
use compute::simt::{Gpu, Need, Unfit};
use config::Diagnostic;
use flash::direct::Direct;
use flash::engine::Engine;
use flash::initiator::Initiator;
use host::paging::Paging;
use kernel::Time;
use mem::dram::Dram;
use mem::l2::L2;
use mem::mmu::Mmu;
use net::crossbar::Crossbar;
use proto::memory::Tally;
use proto::simt::Programs;
use workload::program::Apps;

/// Bit of a command's tag that says that it comes from the GPU side and not from the injector.
pub(crate) const CLAIMED: u32 = 1 << 31;

/// What stands behind the shared cache.
pub enum Memory {
    /// DRAM or persistent memory, its controllers beside the cache banks.
    Dram(Box<Dram>),
    /// Flash whose controllers are on the network.
    Direct(Box<Direct>),
    /// An SSD engine on the network, and the flash device behind it.
    Engine(Box<Engine>),
    /// A flash device that the GPU reaches by itself, its initiator on the network.
    Initiator(Box<Initiator>),
}

/// Where each part is on the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    multiprocessors: u16,
    banks: u16,
}

impl Ports {
    fn mmu(self) -> u16 {
        self.multiprocessors
    }
    fn bank(self, bank: u16) -> u16 {
        self.multiprocessors + 1 + bank
    }
    fn controller(self, controller: u16) -> u16 {
        self.multiprocessors + 1 + self.banks + controller
    }
}

/// The parts of the GPU side.
pub struct GpuSide {
    /// What runs.
    pub programs: Apps,
    /// The multiprocessors.
    pub gpu: Gpu,
    /// Translation.
    pub mmu: Mmu,
    /// The network.
    pub network: Crossbar<Packet>,
    /// The shared cache.
    pub l2: L2,
    /// Memory.
    pub memory: Memory,
    /// Paging by the host, if memory does not hold everything from the start.
    pub paging: Option<Paging>,
    ports: Ports,
    /// Time that requests have spent on the network.
    pub tally: Tally,
    /// A cycle of the multiprocessors.
    pub cycle: Time,
    /// When each application has ended.
    pub ended: Vec<Option<Time>>,
    /// Commands at the flash device.
    claimed: i64,
    /// Lines that the shared cache has sent to memory, over the whole run.
    lines_sent: u64,
    /// A first kernel that fits on no multiprocessor.
    unfit: Option<Unfit>,
    /// Instructions over time, if they are asked for.
    series: Option<InstructionSeries>,
}

impl GpuSide {
    /// A kernel that fits on no multiprocessor.
    pub fn failure(&self) -> Option<Diagnostic> {
        let unfit = self.unfit.or(self.gpu.unfit)?;
        let name = self.programs.kernel_name(unfit.app, unfit.kernel);
        let (what, key) = match unfit.what {
            Need::BlockThreads => ("threads in a block", "gpu.resident.block_threads"),
            Need::Warps => ("warps", "gpu.resident.warps"),
            Need::Threads => ("threads", "gpu.resident.threads"),
            Need::Registers => ("registers", "gpu.resident.registers"),
            Need::Shared => ("bytes of shared memory", "gpu.resident.shared"),
        };
        let Unfit { needs, limit, .. } = unfit;
        let said = format!("kernel `{name}` needs {needs} {what} for a block; a multiprocessor has {limit}");
        Some(Diagnostic::new(said).help(format!("the limit is `{key}` of the system")))
    }

    /// Whether every application has ended and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.gpu.is_done() && self.outstanding() == 0
    }

    /// Requests, commands and packets under way.
    pub fn outstanding(&self) -> usize {
        let memory = match &self.memory {
            Memory::Dram(dram) => dram.outstanding(),
            Memory::Direct(direct) => direct.outstanding(),
            Memory::Engine(engine) => engine.outstanding(),
            Memory::Initiator(initiator) => initiator.outstanding(),
        };
        let paging = self.paging.as_ref().map_or(0, Paging::outstanding);
        self.gpu.outstanding()
            + self.mmu.outstanding()
            + self.network.outstanding()
            + self.l2.outstanding()
            + memory
            + paging
    }

    /// Commands of the GPU side at the flash device.
    pub fn claimed(&self) -> i64 {
        self.claimed
    }

    /// Time that requests have waited for each stage, all parts together. Paging keeps its own account of what the memory
    /// management unit counts as the fault of every waiting translation.
    pub fn total_tally(&self) -> Tally {
        let mut total = self.tally.clone();
        total.add(&self.gpu.tally);
        total.add(&self.mmu.tally);
        total.add(&self.l2.tally);
        total.add(match &self.memory {
            Memory::Dram(dram) => &dram.tally,
            Memory::Direct(direct) => &direct.tally,
            Memory::Engine(engine) => &engine.tally,
            Memory::Initiator(initiator) => &initiator.tally,
        });
        total
    }

    /// Accounts that must agree, each side counted in a different part.
    pub fn checks(&self) -> Vec<flash::Check> {
        let mut checks = match &self.memory {
            Memory::Dram(_) => Vec::new(),
            Memory::Direct(direct) => direct.checks(),
            Memory::Engine(engine) => engine.checks(),
            Memory::Initiator(initiator) => initiator.checks(),
        };
        checks.extend(lines::of_shared_cache(&self.l2, self.lines_sent));
        if let Memory::Direct(direct) = &self.memory {
            checks.push(lines::of_parked_pages(&self.l2, direct.lines_given_up()));
        }
        if let Some(paging) = &self.paging {
            let found = paging.check();
            let (ok, detail) = (found.is_ok(), found.err().unwrap_or_default());
            let name = "faults and granules of the host's paging agree";
            checks.push(flash::Check { name, ok, detail });
        }
        checks
    }

    /// Instructions of each application over time, if they are asked for.
    pub fn series(&self) -> Option<Vec<InstructionWindow>> {
        let series = self.series.as_ref()?;
        Some(series.windows(self.issued()))
    }

    /// Instructions of warps that each application has issued.
    fn issued(&self) -> Vec<u64> {
        (0..self.programs.apps()).map(|app| self.gpu.stats.app(app).warp_instructions).collect()
    }

    /// What has been issued before a mark of the series is recorded by whatever happens next: the series schedules nothing.
    #[inline]
    fn record(&mut self, now: Time) {
        if self.series.as_ref().is_some_and(|series| series.is_due(now)) {
            self.record_due(now);
        }
    }

    #[cold]
    fn record_due(&mut self, now: Time) {
        let issued = self.issued();
        if let Some(series) = &mut self.series {
            series.record(now, &issued);
        }
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.gpu.reset_stats(now);
        self.mmu.reset_stats(now);
        self.network.reset_stats();
        self.l2.reset_stats(now);
        self.tally = Tally::default();
        if let Some(series) = &mut self.series {
            series.reset(now);
        }
        match &mut self.memory {
            Memory::Dram(dram) => dram.reset_stats(now),
            Memory::Direct(direct) => direct.reset_stats(now),
            Memory::Engine(engine) => engine.reset_stats(now),
            Memory::Initiator(initiator) => initiator.reset_stats(now),
        }
        if let Some(paging) = &mut self.paging {
            paging.reset_stats(now);
        }
    }
}
