//! Routing of translations, and of missing pages.

use crate::parts::Parts;
use crate::parts::complex::{Complex, Processor};
use crate::parts::pager::Pager;
use crate::wires::{Sender, Wires};
use engine::Time;
use proto::memory::Translation;

/// Application number of a server's program.
const SERVICE: u8 = 0;

impl Complex {
    /// Handles a processor's request for a translation.
    #[inline]
    pub(super) fn translate(&mut self, translation: Translation, wires: &mut Wires) {
        let index = self.mmu_of(translation.port);
        self.mmus[usize::from(index)].translate(translation, &mut wires.at(self.first_mmu + index));
    }

    fn translated(&mut self, translation: Translation, wires: &mut Wires) {
        let here = &mut wires.at(self.number);
        match &mut self.processor {
            Processor::Simt(simt) => simt.gpu.translated(translation, &mut simt.programs, here),
            Processor::Ooo(ooo) => ooo.cores.translated(translation, &mut *ooo.service, here),
        }
    }

    fn resolve(&mut self, translation: Translation, wires: &mut Wires) {
        let index = self.mmu_of(translation.port);
        self.mmus[usize::from(index)].resolve(translation, &mut wires.at(self.first_mmu + index));
    }

    fn refuse(&mut self, translation: Translation, wires: &mut Wires) {
        let index = self.mmu_of(translation.port);
        let here = &mut wires.at(self.first_mmu + index);
        let left = self.mmus[usize::from(index)].refuse(translation, here);
        debug_assert!(!left, "a part that waits for a page must have said so");
    }

    /// Removes the translations of a page that has left memory.
    fn evict(&mut self, app: u8, page: u64) {
        self.mmus.iter_mut().for_each(|mmu| mmu.evict(app, page));
        match &mut self.processor {
            Processor::Simt(simt) => simt.gpu.invalidate(app, page),
            Processor::Ooo(ooo) => ooo.cores.invalidate(page),
        }
    }

    /// Handles the arrival of a page in the DRAM cache that accesses were answered without. Multiprocessors wait for
    /// their accesses.
    pub(super) fn page_came(&mut self, page: u64, response: Time, wires: &mut Wires) {
        if let Processor::Ooo(ooo) = &mut self.processor {
            let here = &mut wires.at(self.number);
            ooo.cores.flash_response(response, &mut *ooo.service, here);
            // Physical addresses equal virtual ones: the service is alone.
            ooo.cores.arrived(page / ooo.reach, &mut *ooo.service, here);
        }
    }
}

impl Parts {
    /// Handles an output of a memory management unit.
    #[inline]
    pub(super) fn mmu_said(&mut self, from: u16, out: mem::mmu::Out, wires: &mut Wires) {
        let (home, _) = self.mmu_homes[usize::from(from)];
        let complex = &mut self.complexes[usize::from(home)];
        match out {
            mem::mmu::Out::Walk(access) => complex.access(access, wires),
            mem::mmu::Out::Translated(translation) => complex.translated(translation, wires),
            mem::mmu::Out::Fault(translation) => {
                let Some(number) = complex.pager else { unreachable!("a missing page without a pager") };
                match self.pager(number) {
                    Pager::Paging(paging) => paging.fault(translation, &mut wires.at(number)),
                    Pager::Swap(swap) => swap.fault(translation, &mut wires.at(number)),
                }
            }
        }
    }

    /// Handles an output of the host's paging.
    pub(super) fn paging_said(&mut self, from: u16, out: mem::paging::Out, wires: &mut Wires) {
        let home = self.pagers[usize::from(from)].home;
        let complex = &mut self.complexes[usize::from(home)];
        match out {
            mem::paging::Out::Resolved(translation) => complex.resolve(translation, wires),
            mem::paging::Out::Evict { app, page } => complex.evict(app, page),
            mem::paging::Out::Submit(command) => self.submit(Sender::Pager(from), command, wires),
        }
    }

    /// Handles an output of an operating system's paging.
    pub(super) fn swap_said(&mut self, from: u16, out: mem::swap::Out, wires: &mut Wires) {
        let home = self.pagers[usize::from(from)].home;
        let complex = &mut self.complexes[usize::from(home)];
        match out {
            mem::swap::Out::Resolve(translation) => complex.resolve(translation, wires),
            mem::swap::Out::Refuse(translation) => complex.refuse(translation, wires),
            mem::swap::Out::Submit(command) => self.submit(Sender::Pager(from), command, wires),
            // Jobs of other cores that wait for the same page are notified in the same instant.
            mem::swap::Out::Arrived { page, .. } => {
                let ooo = complex.processor.ooo();
                ooo.cores.arrived(page, &mut *ooo.service, &mut wires.at(home));
            }
            mem::swap::Out::Evict { page } => complex.evict(SERVICE, page),
            mem::swap::Out::Interrupt { core, time } => {
                let here = &wires.at(home);
                complex.processor.ooo().cores.interrupt(core, time, here);
            }
        }
    }
}
