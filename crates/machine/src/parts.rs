//! The parts of a machine but for its injector: a list for each kind, and who stands where.

use crate::complex::{Complex, Processor};
use crate::memory::Memory;
use crate::pager::Pager;
use flash::{Check, Device};
use kernel::Time;
use mem::mmu::Mmu;
use proto::memory::Tally;

/// A drive.
pub(crate) struct Drive {
    pub(crate) device: Device,
    /// Commands that do not come from the injector and have not been answered.
    pub(crate) claimed: i64,
}

/// A memory.
pub(crate) struct Behind {
    pub(crate) memory: Memory,
    /// The complex whose shared cache it stands behind.
    pub(crate) home: u16,
    /// The drive that it sends block commands to, if it does.
    pub(crate) drive: u16,
}

/// What brings missing pages.
pub(crate) struct Paged {
    pub(crate) pager: Pager,
    /// The complex whose pages they are.
    pub(crate) home: u16,
    /// The drive that they come from.
    pub(crate) drive: u16,
}

/// A complex with what stands behind it, before it has its place in a machine.
pub(crate) struct Built {
    pub(crate) complex: Complex,
    pub(crate) memory: Memory,
    pub(crate) pager: Option<Pager>,
}

/// The parts.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) drives: Vec<Drive>,
    pub(crate) complexes: Vec<Complex>,
    pub(crate) memories: Vec<Behind>,
    pub(crate) pagers: Vec<Paged>,
    /// Of each memory management unit, its complex and its number there.
    pub(crate) mmu_homes: Vec<(u16, u16)>,
    /// Whether a complex records instructions over time.
    recording: bool,
}

impl Parts {
    /// Gives a complex, and what stands behind it, their places.
    pub(crate) fn add(&mut self, built: Built) {
        let Built { mut complex, memory, pager } = built;
        let (home, drive) = (self.complexes.len() as u16, 0);
        complex.number = home;
        complex.first_mmu = self.mmu_homes.len() as u16;
        self.mmu_homes.extend((0..complex.mmus.len() as u16).map(|index| (home, index)));
        complex.memory = self.memories.len() as u16;
        self.memories.push(Behind { memory, home, drive });
        if let Some(pager) = pager {
            complex.pager = Some(self.pagers.len() as u16);
            self.pagers.push(Paged { pager, home, drive });
        }
        self.recording |= matches!(&complex.processor, Processor::Simt(simt) if simt.records());
        self.complexes.push(complex);
    }

    #[inline]
    pub(crate) fn memory(&mut self, number: u16) -> &mut Memory {
        &mut self.memories[usize::from(number)].memory
    }

    #[inline]
    pub(crate) fn pager(&mut self, number: u16) -> &mut Pager {
        &mut self.pagers[usize::from(number)].pager
    }

    #[inline]
    pub(crate) fn mmu(&mut self, number: u16) -> &mut Mmu {
        let (home, index) = self.mmu_homes[usize::from(number)];
        &mut self.complexes[usize::from(home)].mmus[usize::from(index)]
    }

    /// The memory behind a complex.
    pub(crate) fn memory_of(&self, complex: &Complex) -> &Memory {
        &self.memories[usize::from(complex.memory)].memory
    }

    /// What brings the missing pages of a complex.
    pub(crate) fn pager_of(&self, complex: &Complex) -> Option<&Pager> {
        complex.pager.map(|number| &self.pagers[usize::from(number)].pager)
    }

    /// Requests, commands and packets in each part of a complex and in what stands behind it.
    pub(crate) fn inside(&self, complex: &Complex) -> [(&'static str, usize); 7] {
        let pager = self.pager_of(complex);
        [
            (complex.processor.name(), complex.processor.outstanding()),
            ("the memory management units", complex.mmus.iter().map(Mmu::outstanding).sum()),
            (complex.network.name(), complex.network.outstanding()),
            ("the directory", complex.directory.as_ref().map_or(0, |directory| directory.outstanding())),
            ("the shared cache", complex.l2.outstanding()),
            ("memory", self.memory_of(complex).outstanding()),
            (pager.map_or("the operating system", Pager::name), pager.map_or(0, Pager::outstanding)),
        ]
    }

    /// Requests, commands and packets under way in a complex and in what stands behind it.
    pub(crate) fn outstanding(&self, complex: &Complex) -> usize {
        self.inside(complex).iter().map(|(_, inside)| inside).sum()
    }

    /// Whether all programs have ended and nothing of them is under way.
    pub(crate) fn is_done(&self) -> bool {
        self.complexes.iter().all(|complex| complex.processor.is_done() && self.outstanding(complex) == 0)
    }

    /// Time that requests of a complex have waited for each stage, all parts together. What waits for a missing page waits in a
    /// memory management unit or in a halted job, and counts there: pagers keep accounts of their own.
    pub(crate) fn tally(&self, complex: &Complex) -> Tally {
        let mut total = complex.tally.clone();
        total.add(complex.processor.tally());
        complex.mmus.iter().for_each(|mmu| total.add(&mmu.tally));
        if let Some(directory) = &complex.directory {
            total.add(&directory.tally);
        }
        total.add(&complex.l2.tally);
        total.add(self.memory_of(complex).tally());
        total
    }

    /// Accounts of a complex that must agree, each side counted in a different part; `still` if nothing is pending, so that no
    /// message is on its way.
    pub(crate) fn checks(&self, complex: &Complex, still: bool) -> Vec<Check> {
        let is_idle = self.outstanding(complex) == 0;
        let memory = self.memory_of(complex);
        let mut checks = complex.check_jobs(is_idle);
        checks.extend(memory.checks());
        checks.extend(complex.check_shared_cache());
        checks.extend(memory.check_pages(&complex.l2));
        checks.extend(complex.check_copies(is_idle, still));
        checks.extend(self.pager_of(complex).map(Pager::check));
        checks
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        for complex in &mut self.complexes {
            complex.reset_stats(now);
        }
        for at in &mut self.memories {
            at.memory.reset_stats(now);
        }
        for at in &mut self.pagers {
            at.pager.reset_stats(now);
        }
    }

    /// What has been issued before a mark of a series is recorded by whatever happens next: a series schedules nothing.
    #[inline]
    pub(crate) fn record(&mut self, now: Time) {
        if self.recording {
            self.complexes.iter_mut().for_each(|complex| complex.processor.record(now));
        }
    }
}
