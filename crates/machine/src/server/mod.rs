//! The server side of a machine: cores, translation, mesh, directory, shared cache, and the memory behind it.

mod build;
mod place;
mod warm;
mod wires;

pub(crate) use build::{build, check, tables};
pub(crate) use wires::Packet;

use crate::lines;
use compute::ooo::Cores;
use host::swap::Swap;
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
    /// The operating system's paging into DRAM, if there is less of it than data.
    pub swap: Option<Box<Swap>>,
    /// Bytes that a translation covers.
    reach: u64,
    /// The router at which each memory controller stands.
    controllers: Vec<u32>,
    /// Time that requests have spent on the mesh.
    pub tally: Tally,
    /// Jobs executed without time before the run.
    pub fill_jobs: u64,
    /// Commands at the flash device.
    claimed: i64,
    /// Accesses that cores and page walks have sent, over the whole run.
    sent: u64,
    /// Their answers, over the whole run.
    answered: u64,
    /// Lines that the shared cache has sent to memory, over the whole run.
    lines_sent: u64,
}

impl ServerSide {
    /// Whether every job has ended and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.cores.is_done() && self.outstanding() == 0
    }

    /// Requests, commands and packets under way.
    pub fn outstanding(&self) -> usize {
        self.inside().iter().map(|(_, inside)| inside).sum()
    }

    /// Requests, commands and packets in each part.
    pub fn inside(&self) -> [(&'static str, usize); 7] {
        let memory = match &self.memory {
            Memory::Dram(dram) => dram.outstanding(),
            Memory::DramCache(cache) => cache.outstanding(),
        };
        [
            ("the cores", self.cores.outstanding()),
            ("the memory management units", self.mmus.iter().map(Mmu::outstanding).sum()),
            ("the mesh", self.fabric.outstanding()),
            ("the directory", self.directory.outstanding()),
            ("the shared cache", self.l2.outstanding()),
            ("memory", memory),
            ("the operating system", self.swap.as_ref().map_or(0, |swap| swap.outstanding())),
        ]
    }

    /// Jobs that have ended.
    pub fn jobs(&self) -> u64 {
        self.cores.jobs_ended()
    }

    /// Share of the jobs that have ended.
    pub(crate) fn progress(&self) -> f64 {
        self.cores.progress()
    }

    /// When the last job ended; now, if it has not.
    pub fn ended(&self, now: Time) -> Time {
        self.cores.over_at().unwrap_or(now)
    }

    /// Accounts that must agree, each side counted in a different part; `still` if nothing is pending, so that no message is on its
    /// way.
    pub fn checks(&self, still: bool) -> Vec<flash::Check> {
        let (begun, ended) = (self.cores.jobs_begun(), self.cores.jobs_ended());
        let running = self.cores.jobs_running();
        let check = |name, ok: bool, detail: String| flash::Check { name, ok, detail };
        let mut checks = vec![
            check(
                "jobs begun = ended + running",
                begun == ended + running,
                format!("{begun} begun, {ended} ended, {running} running"),
            ),
            check(
                "every access that was sent has been answered",
                self.outstanding() > 0 || self.sent == self.answered,
                format!("{} sent, {} answered", self.sent, self.answered),
            ),
        ];
        checks.extend(lines::of_shared_cache(&self.l2, self.lines_sent));
        checks.extend(self.check_lines());
        if still || self.outstanding() == 0 {
            checks.push(self.check_copies());
            let unasked = self.directory.unasked_owners();
            checks.push(check(
                "owners that are waited for have been asked",
                unasked == 0,
                format!("{unasked} transactions wait for a copy that no probe asks for"),
            ));
        }
        if let Some(swap) = &self.swap {
            let found = swap.check();
            let detail = format!("{} faults, {} merged", swap.stats.faults, swap.stats.merged);
            let (ok, detail) = (found.is_ok(), found.err().unwrap_or(detail));
            checks.push(check("faults, pages and frames of the operating system agree", ok, detail));
        }
        checks
    }

    /// Lines of cores: what they have changed, and what the directory knows. While messages are under way they may differ.
    fn check_lines(&self) -> Vec<flash::Check> {
        let check = |name, ok: bool, detail: String| flash::Check { name, ok, detail };
        let mut checks = Vec::new();
        if let Memory::DramCache(cache) = &self.memory {
            let (changed, found) = cache.changed_pages();
            checks.push(check(
                "changed pages of the DRAM cache reach flash or are there",
                changed == found,
                format!("{changed} changed, {found} given to flash or there"),
            ));
        }
        if self.outstanding() > 0 {
            return checks;
        }
        let (changed, held) = self.cores.changed_lines();
        let (came, writes) = (self.directory.ledger(), self.l2.ledger().writes);
        checks.push(check(
            "lines that cores have changed come back or are there",
            changed == came.came + held,
            format!("{changed} changed, {} came back, {held} there", came.came),
        ));
        checks.push(check(
            "changed lines go to the next owner or to their bank",
            came.came == came.passed_on + writes,
            format!("{} came back, {} to an owner, {writes} to banks", came.came, came.passed_on),
        ));
        checks
    }

    /// What the directory knows of lines that are in no transaction. A run that is stuck is told why: a core waits for one that has no copy
    /// any more, or has one that nobody knows of.
    fn check_copies(&self) -> flash::Check {
        let mut copies = 0;
        let quiet = self.cores.copies().filter(|(_, address, _)| !self.directory.is_busy(*address));
        let unknown = quiet.filter(|(core, address, alone)| {
            copies += 1;
            !self.directory.knows(*core, *address, *alone)
        });
        let (unknown, known) = (unknown.count(), self.directory.known_copies());
        flash::Check {
            name: "the directory knows every copy, and no other",
            ok: unknown == 0 && copies == known,
            detail: format!("{copies} copies, {unknown} of them unknown, {known} known"),
        }
    }

    /// Commands of the server side at the flash device.
    pub fn claimed(&self) -> i64 {
        self.claimed
    }

    /// Time that requests have waited for each stage, all parts together. What waits for the operating system waits in a memory
    /// management unit or in a halted job, and counts there.
    pub fn total_tally(&self) -> Tally {
        let mut total = self.tally.clone();
        total.add(self.cores.tally());
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
        self.fabric.reset_stats();
        self.directory.reset_stats(now);
        self.l2.reset_stats(now);
        self.tally = Tally::default();
        match &mut self.memory {
            Memory::Dram(dram) => dram.reset_stats(now),
            Memory::DramCache(cache) => cache.reset_stats(now),
        }
        if let Some(swap) = &mut self.swap {
            swap.reset_stats(now);
        }
    }
}
