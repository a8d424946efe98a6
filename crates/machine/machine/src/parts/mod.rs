//! The parts of a machine except its injector: a list for each kind, and their positions.

pub(crate) mod bill;
pub mod complex;
pub(crate) mod driven;
pub(crate) mod governed;
pub mod memory;
pub mod pager;

use crate::parts::complex::{Complex, Processor};
use crate::parts::driven::Driven;
pub(crate) use crate::parts::driven::{Hosted, Target};
use crate::parts::governed::Governed;
use crate::parts::memory::Memory;
use crate::parts::pager::Pager;
use crate::wires::{Asker, Wires};
use engine::Time;
use mem::mmu::Mmu;
use mem::stripe::Stripe;
use proto::memory::Tally;
use ssd::{Check, Device};

/// Drive of the machine.
pub(crate) struct Drive {
    /// Name of the drive.
    pub(crate) name: String,
    pub(crate) device: Device,
    /// Unanswered commands that do not come from the injector.
    pub(crate) claimed: i64,
    /// Position within its stripe, if any.
    pub(crate) member: u16,
}

/// Stripe of drives.
pub(crate) struct Striped {
    /// Name of the stripe.
    pub(crate) name: String,
    pub(crate) stripe: Stripe,
    /// Members of the stripe.
    pub(crate) drives: Vec<u16>,
}

/// Memory of the machine.
pub(crate) struct Behind {
    /// Name of the memory.
    pub(crate) name: String,
    pub(crate) memory: Memory,
    /// Complex whose network it is on.
    pub(crate) home: u16,
    /// Part that asks it.
    pub(crate) asker: Asker,
    /// Endpoints of its controllers; `None` if it is beside the part that asks.
    pub(crate) controllers: Option<Box<[u32]>>,
    /// Target of its block commands, if any.
    pub(crate) drive: Target,
    /// Memories that it asks.
    pub(crate) behind: Vec<u16>,
}

/// Pager of missing pages.
pub(crate) struct Paged {
    /// Name of the pager.
    pub(crate) name: String,
    pub(crate) pager: Pager,
    /// Complex whose pages it brings.
    pub(crate) home: u16,
    /// Source of the pages.
    pub(crate) drive: Target,
}

/// Memory with those that it asks, before it is added to a machine.
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) memory: Memory,
    pub(crate) controllers: Option<Box<[u32]>>,
    pub(crate) drive: Target,
    pub(crate) behind: Vec<Stored>,
}

/// Complex with the parts behind it, before it is added to a machine.
pub(crate) struct Built {
    pub(crate) complex: Complex,
    pub(crate) memory: Stored,
    /// Pager of missing pages, with its name.
    pub(crate) pager: Option<(String, Pager)>,
    /// Source of missing pages.
    pub(crate) pages: Target,
}

/// All parts of the machine.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) drives: Vec<Drive>,
    pub(crate) stripes: Vec<Striped>,
    pub(crate) hosts: Vec<Hosted>,
    /// Coprocessors of hosts.
    pub(crate) driven: Vec<Driven>,
    /// Accelerators, each with the flash that it governs.
    pub(crate) governed: Vec<Governed>,
    /// Targets of the injector's requests, by target number.
    pub(crate) targets: Vec<Target>,
    pub(crate) complexes: Vec<Complex>,
    pub(crate) memories: Vec<Behind>,
    pub(crate) pagers: Vec<Paged>,
    /// Complex of each memory management unit, and the unit's number there.
    pub(crate) mmu_homes: Vec<(u16, u16)>,
    /// True if a complex records instructions over time.
    recording: bool,
}

impl Parts {
    /// Adds a complex and the parts behind it.
    pub(crate) fn add(&mut self, built: Built) {
        let Built { mut complex, memory, pager, pages } = built;
        let home = self.complexes.len() as u16;
        complex.number = home;
        complex.first_mmu = self.mmu_homes.len() as u16;
        self.mmu_homes.extend((0..complex.mmus.len() as u16).map(|index| (home, index)));
        complex.memory = self.store(memory, home, Asker::Complex(home));
        if let Some((name, pager)) = pager {
            complex.pager = Some(self.pagers.len() as u16);
            self.pagers.push(Paged { name, pager, home, drive: pages });
        }
        self.recording |= matches!(&complex.processor, Processor::Simt(simt) if simt.records());
        self.complexes.push(complex);
    }

    /// Adds a memory and those that it asks; returns its number.
    fn store(&mut self, stored: Stored, home: u16, asker: Asker) -> u16 {
        let Stored { name, memory, controllers, drive, behind } = stored;
        let number = self.memories.len() as u16;
        self.memories.push(Behind { name, memory, home, asker, controllers, drive, behind: Vec::new() });
        let behind =
            behind.into_iter().map(|stored| self.store(stored, home, Asker::Memory(number))).collect();
        self.memories[usize::from(number)].behind = behind;
        number
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

    /// Returns the memory behind a complex.
    pub(crate) fn memory_of(&self, complex: &Complex) -> &Memory {
        &self.memories[usize::from(complex.memory)].memory
    }

    /// Returns the memory behind a complex, with its position.
    pub(crate) fn place_of(&self, complex: &Complex) -> &Behind {
        &self.memories[usize::from(complex.memory)]
    }

    /// Returns the memories behind that of a complex.
    pub(crate) fn memories_behind(&self, complex: &Complex) -> impl Iterator<Item = &Behind> {
        let home = complex.number;
        self.memories.iter().filter(move |at| at.home == home && at.asker != Asker::Complex(home))
    }

    /// Returns all memories on the network of a complex, those behind others included.
    pub(crate) fn memories_of(&self, complex: &Complex) -> impl Iterator<Item = &Memory> {
        let home = complex.number;
        self.memories.iter().filter(move |at| at.home == home).map(|at| &at.memory)
    }

    /// Returns the pager of a complex.
    pub(crate) fn pager_of(&self, complex: &Complex) -> Option<&Pager> {
        complex.pager.map(|number| &self.pagers[usize::from(number)].pager)
    }

    /// Requests, commands and packets in each part of a complex and in the parts behind it.
    pub(crate) fn inside(&self, complex: &Complex) -> [(&'static str, usize); 7] {
        let pager = self.pager_of(complex);
        [
            (complex.processor.name(), complex.processor.outstanding()),
            ("the memory management units", complex.mmus.iter().map(Mmu::outstanding).sum()),
            (complex.network.name(), complex.network.outstanding()),
            ("the directory", complex.directory.as_ref().map_or(0, |directory| directory.outstanding())),
            ("the shared cache", complex.l2.outstanding()),
            ("memory", self.memories_of(complex).map(Memory::outstanding).sum()),
            (pager.map_or("the operating system", Pager::name), pager.map_or(0, Pager::outstanding)),
        ]
    }

    /// Requests, commands and packets under way in a complex and in the parts behind it.
    pub(crate) fn outstanding(&self, complex: &Complex) -> usize {
        self.inside(complex).iter().map(|(_, inside)| inside).sum()
    }

    /// Returns whether all programs have ended and nothing of theirs is under way.
    pub(crate) fn is_done(&self) -> bool {
        self.complexes.iter().all(|complex| complex.processor.is_done() && self.outstanding(complex) == 0)
            && self.hosts.iter().all(|at| at.host.is_done())
            && self.driven.iter().all(|at| at.coprocessor.open() == 0)
            && self.governed.iter().all(|at| at.accelerator.is_idle())
    }

    /// Time that requests of a complex have waited in each stage, summed over all parts. Accesses to a missing page
    /// wait in a memory management unit or in a halted job, and count there: pagers keep separate accounts.
    pub(crate) fn tally(&self, complex: &Complex) -> Tally {
        let mut total = complex.tally.clone();
        total.add(complex.processor.tally());
        complex.mmus.iter().for_each(|mmu| total.add(&mmu.tally));
        if let Some(directory) = &complex.directory {
            total.add(&directory.tally);
        }
        total.add(&complex.l2.tally);
        self.tally_memory(complex.memory, &mut total);
        total
    }

    /// Adds the time in a memory: its own time includes waits for the memory behind it, but a placement passes commands
    /// on.
    fn tally_memory(&self, number: u16, total: &mut Tally) {
        let at = &self.memories[usize::from(number)];
        total.add(at.memory.tally());
        if at.memory.passes_on() {
            at.behind.iter().for_each(|behind| self.tally_memory(*behind, total));
        }
    }

    /// Checks of a complex's accounts, each side counted in a different part; `still` if no event is pending, so that
    /// no message is under way.
    pub(crate) fn checks(&self, complex: &Complex, still: bool, now: Time) -> Vec<Check> {
        let is_idle = self.outstanding(complex) == 0;
        let mut checks = complex.check_jobs(is_idle);
        checks.extend(self.memories_of(complex).flat_map(|memory| memory.checks(now)));
        checks.extend(complex.check_shared_cache());
        checks.extend(complex.check_frames());
        checks.extend(self.memories_of(complex).filter_map(|memory| memory.check_pages(&complex.l2)));
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
        for at in &mut self.stripes {
            at.stripe.reset_stats(now);
        }
        for at in &mut self.driven {
            at.coprocessor.reset_stats(now);
        }
        for at in &mut self.hosts {
            at.host.reset_stats(now);
            at.host.programs_mut().for_each(|program| program.reset_stats(now));
        }
        for at in &mut self.governed {
            at.reset_energy(now);
        }
    }

    /// Prepares for inspection, or measurement, at times other than events: everything then has its own events.
    pub(crate) fn one_by_one(&mut self) {
        self.governed.iter_mut().for_each(|at| at.flash.one_by_one());
    }

    /// Inspects the run now: results computed ahead are not counted.
    pub(crate) fn unfold(&mut self, wires: &mut Wires) {
        for (at, number) in self.governed.iter_mut().zip(0..) {
            at.flash.unfold(&mut wires.at(number));
        }
    }

    /// Records what was issued before a mark of a series, at the next event: a series schedules nothing.
    #[inline]
    pub(crate) fn record(&mut self, now: Time) {
        if self.recording {
            self.complexes.iter_mut().for_each(|complex| complex.processor.record(now));
        }
    }
}
