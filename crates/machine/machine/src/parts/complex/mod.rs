//! A processor with the parts at the endpoints of its network: translation, shared cache, directory.

pub(crate) mod lines;
mod processor;

pub use processor::{InstructionSeries, InstructionWindow, Ooo, Processor, Simt};

use crate::wires::Here;
use crate::wires::event::Packet;
use engine::Time;
use mem::directory::Directory;
use mem::l2::L2;
use mem::mmu::Mmu;
use net::fabric::Fabric;
use net::noc::{Class, Noc};
use proto::Probed;
use proto::memory::{Access, AccessKind, Tally};
use rustc_hash::FxHashSet;
use ssd::Check;

/// Complex: the parts around a processor.
pub struct Complex {
    /// Name of the processor.
    pub(crate) name: String,
    /// Number of the complex.
    pub(crate) number: u16,
    /// Processor that executes programs.
    pub processor: Processor,
    /// Translation: one unit for all, or one for each core.
    pub mmus: Vec<Mmu>,
    /// Number of the first unit among those of the machine.
    pub(crate) first_mmu: u16,
    /// Network of the complex.
    pub network: Network,
    /// Directory that keeps copies of a line coherent, a slice at each bank; `None` if first-level caches hold no
    /// changed lines.
    pub directory: Option<Directory>,
    /// Shared cache.
    pub l2: L2,
    pub(crate) ends: Ends,
    /// Line size, bytes.
    pub(crate) line: u64,
    /// Time that requests have spent on the network.
    pub tally: Tally,
    /// Memory behind the shared cache.
    pub(crate) memory: u16,
    /// Pager that brings missing pages into memory, if needed.
    pub(crate) pager: Option<u16>,
    /// Accesses of processors and page walks, over the whole run.
    pub(crate) sent: u64,
    /// Answers to these accesses, over the whole run.
    pub(crate) answered: u64,
    /// Lines that the shared cache has sent to memory, over the whole run.
    pub(crate) lines_sent: u64,
    /// Lines that cores have changed and banks have not received.
    pub(crate) copies: Copies,
    /// Number of accesses to frames of other applications, if the shared cache has a shadow, and a description of the
    /// first.
    foreign: (u64, Option<String>),
}

impl Complex {
    /// Creates a complex without a place in a machine.
    pub(crate) fn new(
        name: String,
        processor: Processor,
        mmus: Vec<Mmu>,
        network: Network,
        directory: Option<Directory>,
        (l2, line): (L2, u64),
        ends: Ends,
    ) -> Complex {
        Complex {
            name,
            number: 0,
            processor,
            mmus,
            first_mmu: 0,
            network,
            directory,
            l2,
            ends,
            line,
            tally: Tally::default(),
            memory: 0,
            pager: None,
            sent: 0,
            answered: 0,
            lines_sent: 0,
            copies: Copies::default(),
            foreign: (0, None),
        }
    }

    /// Unit that translates for a requester.
    #[inline]
    pub(crate) fn mmu_of(&self, port: u16) -> u16 {
        if self.mmus.len() == 1 { 0 } else { port }
    }

    /// Checks that jobs and accesses are accounted for.
    pub(crate) fn check_jobs(&self, is_idle: bool) -> Vec<Check> {
        let Processor::Ooo(ooo) = &self.processor else { return Vec::new() };
        let (begun, ended) = (ooo.cores.jobs_begun(), ooo.cores.jobs_ended());
        let running = ooo.cores.jobs_running();
        vec![
            Check {
                name: "jobs begun = ended + running",
                ok: begun == ended + running,
                detail: format!("{begun} begun, {ended} ended, {running} running"),
            },
            Check {
                name: "every access that was sent has been answered",
                ok: !is_idle || self.sent == self.answered,
                detail: format!("{} sent, {} answered", self.sent, self.answered),
            },
        ]
    }

    /// Counts an access to a frame of a different application.
    pub(crate) fn look_at_frame(&mut self, access: &Access) {
        let owner = self.mmus.first().and_then(|mmu| mmu.owner(access.address));
        if let Some(owner) = owner.filter(|owner| *owner != access.app && !access.is_walk()) {
            let Access { app, address, .. } = *access;
            self.foreign.0 += 1;
            self.foreign.1.get_or_insert_with(|| {
                format!("application {app} accessed address {address:#x} of application {owner}")
            });
        }
    }

    /// Checks that translations have led every access to a frame of its own application; `None` without a shadow in the
    /// shared cache.
    pub(crate) fn check_frames(&self) -> Option<Check> {
        let (count, first) = &self.foreign;
        let detail = format!("{count} were not. {}", first.as_deref().unwrap_or_default());
        self.l2.is_shadowed().then_some(Check {
            name: "accesses are to frames of their application",
            ok: *count == 0,
            detail,
        })
    }

    /// Checks that changed lines of the shared cache are in memory, or still in the cache.
    pub(crate) fn check_shared_cache(&self) -> Vec<Check> {
        lines::of_shared_cache(&self.l2, self.lines_sent)
    }

    /// Checks that changed lines of cores have come back, and that the directory knows every copy. The first is known
    /// if nothing is under way, the second if no message is: where the run stands still.
    pub(crate) fn check_copies(&self, is_idle: bool, still: bool) -> Vec<Check> {
        let mut checks = Vec::new();
        if let (Processor::Ooo(ooo), Some(directory)) = (&self.processor, &self.directory) {
            checks.extend(self.l2.is_shadowed().then(|| self.copies.check()));
            if is_idle {
                checks.extend(lines::of_cores(&ooo.cores, directory, &self.l2));
            }
            if is_idle || still {
                checks.extend(lines::of_copies(&ooo.cores, directory));
            }
        }
        checks
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        self.processor.reset_stats(now);
        self.mmus.iter_mut().for_each(|mmu| mmu.reset_stats(now));
        self.network.reset_stats();
        if let Some(directory) = &mut self.directory {
            directory.reset_stats(now);
        }
        self.l2.reset_stats(now);
        self.tally = Tally::default();
    }
}

// Positions of a complex's parts on its network. Requesters are at the endpoints of their own numbers.

/// Endpoints of a network on a chip, or routers of a mesh. Controllers of memory are behind the banks, or anywhere on a
/// mesh.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    /// Endpoint of the first bank of the shared cache; the others follow.
    first_bank: u32,
}

impl Ends {
    /// Endpoints in sequence: multiprocessors, the memory management unit, banks.
    pub(crate) fn endpoints(multiprocessors: u16) -> Ends {
        Ends { first_bank: u32::from(multiprocessors) + 1 }
    }

    /// Routers of a mesh: a core and a bank at each.
    pub(crate) fn mesh() -> Ends {
        Ends { first_bank: 0 }
    }

    /// Endpoint of a bank.
    #[inline]
    pub(crate) fn bank(&self, bank: u16) -> u32 {
        self.first_bank + u32::from(bank)
    }

    /// Bank at an endpoint.
    #[inline]
    pub(crate) fn bank_at(&self, endpoint: u32) -> u16 {
        (endpoint - self.first_bank) as u16
    }
}

// Network of a complex.

/// Network that carries packets between endpoints.
pub enum Network {
    /// Network on a chip: endpoints, and the links of a topology. Requests and answers have separate links.
    Noc(Noc<Packet>),
    /// Mesh: routers in rows and columns. Requests and answers share links.
    Mesh(Fabric<Packet>),
}

impl Network {
    /// Name of the network in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Network::Noc(_) => "the network",
            Network::Mesh(_) => "the mesh",
        }
    }

    /// Sends a packet of `bytes` bytes plus its header from one endpoint to another.
    #[inline]
    pub(crate) fn send(
        &mut self,
        (from, to): (u32, u32),
        class: Class,
        bytes: u64,
        packet: Packet,
        here: &mut Here<'_>,
    ) {
        match self {
            Network::Noc(noc) => {
                noc.send((from as u16, to as u16), class, bytes, packet, here);
            }
            Network::Mesh(mesh) => mesh.send((from, to), bytes, packet, here),
        }
    }

    /// Returns the network on a chip.
    ///
    /// # Panics
    /// If the network is a mesh.
    #[inline]
    pub(crate) fn noc(&mut self) -> &mut Noc<Packet> {
        let Network::Noc(noc) = self else { unreachable!("an event of a network on a chip") };
        noc
    }

    /// Returns the mesh.
    ///
    /// # Panics
    /// If the network is not a mesh.
    #[inline]
    pub(crate) fn mesh(&mut self) -> &mut Fabric<Packet> {
        let Network::Mesh(mesh) = self else { unreachable!("an event of a mesh") };
        mesh
    }

    /// Number of packets under way.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Network::Noc(noc) => noc.outstanding(),
            Network::Mesh(mesh) => mesh.outstanding(),
        }
    }

    /// Bytes moved in the measured window, headers included.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Network::Noc(noc) => noc.stats.bytes,
            Network::Mesh(mesh) => mesh.stats.bytes,
        }
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self) {
        match self {
            Network::Noc(noc) => noc.reset_stats(),
            Network::Mesh(mesh) => mesh.reset_stats(),
        }
    }
}

// Newest copies of lines, as the messages of cores and the directory report them.

/// Lines whose newest copy is not in a bank: an owner has answered a probe with changed data, and the bank has not yet
/// received them or a later change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    is_on: bool,
    stale: FxHashSet<u64>,
    /// Number of bank reads with an old copy, and the line of the first.
    wrong: u64,
    first: Option<u64>,
}

impl Copies {
    /// Follows messages from now on; no core may have a line yet.
    pub(crate) fn follow(&mut self) {
        self.is_on = true;
    }

    /// Records a core's answer to a probe.
    #[inline]
    pub(crate) fn probed(&mut self, answer: &Probed) {
        if self.is_on && answer.dirty {
            self.stale.insert(answer.probe.address);
        }
    }

    /// Records a command of the directory to a bank.
    #[inline]
    pub(crate) fn looked(&mut self, access: &Access) {
        if !self.is_on {
            return;
        }
        let line = access.address;
        if access.kind == AccessKind::Write {
            self.stale.remove(&line);
        } else if self.stale.contains(&line) {
            self.wrong += 1;
            self.first.get_or_insert(line);
        }
    }

    /// Checks that every read of a line has brought the newest copy.
    pub(crate) fn check(&self) -> Check {
        let first = self.first.map(|line| format!(", the first of line {line:#x}")).unwrap_or_default();
        Check {
            name: "banks are not read for what a core has changed since",
            ok: self.wrong == 0,
            detail: format!("{} reads brought an old copy{first}", self.wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ends, *};
    use proto::Probe;
    use proto::memory::Absent;

    #[test]
    fn there_are_multiprocessors_translation_and_banks_in_turn() {
        let ends = Ends::endpoints(16);
        assert_eq!((ends.bank(0), ends.bank(5), ends.bank_at(22)), (17, 22, 5));
    }

    fn look(kind: AccessKind, address: u64) -> Access {
        Access {
            tag: 0,
            kind,
            address,
            bytes: 64,
            app: 0,
            port: 0,
            warp: 0,
            pc: 0,
            absent: Absent::Wait,
            since: engine::Time::ZERO,
        }
    }

    fn answer(address: u64, invalidate: bool) -> Probed {
        let probe = Probe { tag: 0, core: 0, tile: 0, address, invalidate };
        Probed { probe, found: true, dirty: true }
    }

    #[test]
    fn a_bank_is_old_until_it_is_given_the_change() {
        let mut copies = Copies::default();
        copies.follow();
        copies.probed(&answer(64, false));
        copies.looked(&look(AccessKind::Read, 0));
        copies.looked(&look(AccessKind::Write, 64));
        copies.looked(&look(AccessKind::Read, 64));
        assert!(copies.check().ok);
        // The next owner has the change, and the bank does not.
        copies.probed(&answer(64, true));
        copies.looked(&look(AccessKind::Read, 64));
        assert!(!copies.check().ok);
    }
}
