//! A processor with what stands at the endpoints of its network: translation, the shared cache, a directory.

mod copies;
mod ends;
pub(crate) mod lines;
mod network;
mod processor;
mod series;

pub(crate) use copies::Copies;
pub(crate) use ends::Ends;
pub use network::Network;
pub use processor::{Ooo, Processor, Simt};
pub use series::{InstructionSeries, InstructionWindow};

use engine::Time;
use mem::directory::Directory;
use mem::l2::L2;
use mem::mmu::Mmu;
use proto::memory::{Access, Tally};
use ssd::Check;

/// The parts around a processor.
pub struct Complex {
    /// What the user calls its processor.
    pub(crate) name: String,
    /// Its number.
    pub(crate) number: u16,
    /// What executes programs.
    pub processor: Processor,
    /// Translation: one unit that all share, or one of each core.
    pub mmus: Vec<Mmu>,
    /// The number of the first of them among those of the machine.
    pub(crate) first_mmu: u16,
    /// The network.
    pub network: Network,
    /// What keeps copies of a line coherent, a slice at each bank; not where first-level caches keep no changes.
    pub directory: Option<Directory>,
    /// The shared cache.
    pub l2: L2,
    pub(crate) ends: Ends,
    /// Bytes of a line.
    pub(crate) line: u64,
    /// Time that requests have spent on the network.
    pub tally: Tally,
    /// The memory behind it.
    pub(crate) memory: u16,
    /// What brings missing pages into that, if somebody must.
    pub(crate) pager: Option<u16>,
    /// Accesses of processors and page walks, over the whole run.
    pub(crate) sent: u64,
    /// Their answers, over the whole run.
    pub(crate) answered: u64,
    /// Lines that the shared cache has sent to memory, over the whole run.
    pub(crate) lines_sent: u64,
    /// Lines that cores have changed and banks have not taken.
    pub(crate) copies: Copies,
    /// Accesses to frames of other applications, as far as the shared cache has a shadow, and the first in words.
    foreign: (u64, Option<String>),
}

impl Complex {
    /// A complex without a place in a machine.
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

    /// The unit that translates for a requester.
    #[inline]
    pub(crate) fn mmu_of(&self, port: u16) -> u16 {
        if self.mmus.len() == 1 { 0 } else { port }
    }

    /// Whether jobs and accesses are accounted for.
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

    /// Counts an access to a frame of another application.
    pub(crate) fn look_at_frame(&mut self, access: &Access) {
        let owner = self.mmus.first().and_then(|mmu| mmu.owner(access.address));
        if let Some(owner) = owner.filter(|owner| *owner != access.app && !access.is_walk()) {
            let Access { app, address, .. } = *access;
            self.foreign.0 += 1;
            self.foreign.1.get_or_insert_with(|| {
                format!("application {app} came to address {address:#x} of application {owner}")
            });
        }
    }

    /// Whether translations have led every access to a frame of its own application; known where the shared cache has a shadow.
    pub(crate) fn check_frames(&self) -> Option<Check> {
        let (count, first) = &self.foreign;
        let detail = format!("{count} were not. {}", first.as_deref().unwrap_or_default());
        self.l2.is_shadowed().then_some(Check {
            name: "accesses are to frames of their application",
            ok: *count == 0,
            detail,
        })
    }

    /// Whether changed lines of the shared cache are in memory, or still there.
    pub(crate) fn check_shared_cache(&self) -> Vec<Check> {
        lines::of_shared_cache(&self.l2, self.lines_sent)
    }

    /// Whether changed lines of cores have come back, and the directory knows every copy. The former is known if nothing is under
    /// way, the latter if no message is: where the run stands still.
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
