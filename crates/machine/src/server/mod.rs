//! The server side of a machine: cores, translation, mesh, directory, shared cache, and the memory behind it.

mod build;
mod place;
mod warm;
mod wires;

pub(crate) use build::{build, check, tables};
pub(crate) use wires::Packet;

use compute::ooo::Cores;
use kernel::Time;
use mem::directory::Directory;
use mem::dram::Dram;
use mem::dram_cache::DramCache;
use mem::l2::L2;
use mem::mmu::Mmu;
use net::fabric::Fabric;
use proto::cpu::Service;
use proto::memory::Tally;

/// What stands behind the shared cache.
pub enum Memory {
    /// DRAM that holds everything.
    Dram(Box<Dram>),
    /// DRAM as a cache over flash.
    DramCache(Box<DramCache>),
}

/// The parts of the server side. Core `n`, its memory management unit, bank `n` of the shared cache and its directory stand
/// at router `n` of the mesh.
pub struct ServerSide {
    /// What runs.
    pub service: Box<dyn Service>,
    /// The cores.
    pub cores: Cores,
    /// Translation behind each core's own TLBs.
    pub mmus: Vec<Mmu>,
    /// The mesh.
    pub fabric: Fabric<Packet>,
    /// The directory of every tile.
    pub directory: Directory,
    /// The shared cache.
    pub l2: L2,
    /// Memory.
    pub memory: Memory,
    /// The router at which each memory controller stands.
    controllers: Vec<u32>,
    /// Time that requests have spent on the mesh.
    pub tally: Tally,
    /// A cycle of the cores.
    pub cycle: Time,
    /// Jobs executed without time before the run.
    pub fill_jobs: u64,
    /// Commands at the flash device.
    claimed: usize,
    /// Accesses that cores and page walks have sent, over the whole run.
    sent: u64,
    /// Their answers, over the whole run.
    answered: u64,
}

impl ServerSide {
    /// Whether every job has ended and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.cores.is_done() && self.outstanding() == 0
    }

    /// Requests, commands and packets under way.
    pub fn outstanding(&self) -> usize {
        let memory = match &self.memory {
            Memory::Dram(dram) => dram.outstanding(),
            Memory::DramCache(cache) => cache.outstanding(),
        };
        self.cores.outstanding()
            + self.mmus.iter().map(Mmu::outstanding).sum::<usize>()
            + self.fabric.outstanding()
            + self.directory.outstanding()
            + self.l2.outstanding()
            + memory
    }

    /// Commands of the server side at the flash device.
    pub fn claimed(&self) -> usize {
        self.claimed
    }

    /// Time that requests have waited for each stage, all parts together.
    pub fn total_tally(&self) -> Tally {
        let mut total = self.tally.clone();
        total.add(&self.cores.tally);
        self.mmus.iter().for_each(|mmu| total.add(&mmu.tally));
        total.add(&self.directory.tally);
        total.add(&self.l2.tally);
        match &self.memory {
            Memory::Dram(dram) => total.add(&dram.tally),
            Memory::DramCache(cache) => total.add(&cache.tally),
        }
        total
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.cores.reset_stats(now);
        self.mmus.iter_mut().for_each(|mmu| mmu.reset_stats(now));
        self.fabric.reset_stats(now);
        self.directory.reset_stats(now);
        self.l2.reset_stats(now);
        self.tally = Tally::default();
        match &mut self.memory {
            Memory::Dram(dram) => dram.reset_stats(now),
            Memory::DramCache(cache) => cache.reset_stats(now),
        }
    }
}
