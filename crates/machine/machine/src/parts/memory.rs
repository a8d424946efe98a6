//! What can stand behind a shared cache: whoever it is, it answers commands for lines of a page.
//!
//! Every kind of memory is named in every question here: a further one does not compile without its answers. What a spec says of memories
//! is asked in the same way in `spec/memory.rs`.

use crate::parts::complex::lines;
use crate::wires::Here;
use engine::Time;
use mem::dram::{Dram, DramAccount};
use mem::dram_cache::DramCache;
use mem::l2::L2;
use mem::placement::{Account, Placement, Shadowed};
use proto::Completion;
use proto::memory::{MemCommand, Tally};
use ssd::Check;
use ssd::direct::Direct;
use ssd::port::engine::Engine;
use ssd::port::initiator::Initiator;
use stats::EnergyReport;

/// A memory.
pub enum Memory {
    /// DRAM or persistent memory.
    Dram(Box<Dram>),
    /// DRAM as a cache over flash.
    DramCache(Box<DramCache>),
    /// Several memories, and which page lies in which.
    Placement(Box<Placement>),
    /// Flash whose controllers are on the network.
    Direct(Box<Direct>),
    /// An SSD engine, and the flash device behind it.
    Engine(Box<Engine>),
    /// An initiator of block commands, and the flash device that they go to.
    Initiator(Box<Initiator>),
}

/// Where the controllers of a memory stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stands {
    /// Beside whoever asks: it is no place of its own.
    BesideAsker,
    /// Beside the banks of a cache that are spread over the chip, or beside the memory in front; else at the edge of a mesh.
    BesideBanks,
    /// At endpoints of the network.
    OnNetwork,
}

impl Memory {
    /// Where its controllers stand.
    pub(crate) fn stands(&self) -> Stands {
        match self {
            Memory::Placement(_) => Stands::BesideAsker,
            Memory::Dram(_) => Stands::BesideBanks,
            Memory::DramCache(_) | Memory::Direct(_) | Memory::Engine(_) | Memory::Initiator(_) => {
                Stands::OnNetwork
            }
        }
    }

    /// Whether commands only go through it: their time in the memory behind it is that of who waits for them. Others count it as
    /// their own.
    #[inline]
    pub(crate) fn passes_on(&self) -> bool {
        match self {
            Memory::Placement(_) => true,
            Memory::Dram(_)
            | Memory::DramCache(_)
            | Memory::Direct(_)
            | Memory::Engine(_)
            | Memory::Initiator(_) => false,
        }
    }

    /// What the jobs of a server fill before the run, if there is something.
    pub(crate) fn filled(&mut self) -> Option<&mut DramCache> {
        match self {
            Memory::DramCache(cache) => Some(cache),
            Memory::Dram(_)
            | Memory::Placement(_)
            | Memory::Direct(_)
            | Memory::Engine(_)
            | Memory::Initiator(_) => None,
        }
    }

    /// Pages that it has brought from flash for those who wait for them; none where it holds no pages of others.
    pub(crate) fn pages_brought(&self) -> Option<u64> {
        match self {
            Memory::DramCache(cache) => Some(cache.stats.fetches + cache.stats.reclaims),
            Memory::Dram(_)
            | Memory::Placement(_)
            | Memory::Direct(_)
            | Memory::Engine(_)
            | Memory::Initiator(_) => None,
        }
    }

    /// Its block commands that are flows of their own, if they are.
    pub(crate) fn flows(&self) -> Option<&Initiator> {
        match self {
            Memory::Initiator(initiator) => Some(initiator),
            Memory::Dram(_)
            | Memory::DramCache(_)
            | Memory::Placement(_)
            | Memory::Direct(_)
            | Memory::Engine(_) => None,
        }
    }

    /// The address, as those in front know it, of a page of the memory of this number behind it; none where they know nothing of
    /// what is behind.
    pub(crate) fn address_of(&self, target: u8, page: u64) -> Option<u64> {
        match self {
            Memory::Placement(placement) => placement.address_of(target, page),
            Memory::Dram(_)
            | Memory::DramCache(_)
            | Memory::Direct(_)
            | Memory::Engine(_)
            | Memory::Initiator(_) => None,
        }
    }

    /// The memory behind it that `which` gives the number of has done a command.
    ///
    /// # Panics
    /// If it asks no memory.
    #[inline]
    pub(crate) fn answered(&mut self, which: impl FnOnce() -> u8, command: MemCommand, here: &mut Here<'_>) {
        match self {
            Memory::DramCache(cache) => cache.backed(command, here),
            Memory::Placement(placement) => placement.answered(which(), command, here),
            Memory::Dram(_) | Memory::Direct(_) | Memory::Engine(_) | Memory::Initiator(_) => {
                unreachable!("it asks no memory")
            }
        }
    }

    /// Its drive has done a block command.
    ///
    /// # Panics
    /// If it has none.
    pub(crate) fn completed(&mut self, completion: Completion, here: &mut Here<'_>) {
        match self {
            Memory::Engine(engine) => engine.completed(completion, here),
            Memory::Initiator(initiator) => initiator.completed(completion, here),
            Memory::DramCache(cache) => cache.completed(completion, here),
            Memory::Dram(_) | Memory::Direct(_) | Memory::Placement(_) => {
                unreachable!("it sends no block commands")
            }
        }
    }

    /// Its controllers.
    pub(crate) fn controllers(&self) -> u16 {
        match self {
            Memory::Dram(dram) => dram.controllers(),
            Memory::DramCache(cache) => cache.controllers(),
            Memory::Direct(direct) => direct.controllers(),
            Memory::Engine(_) | Memory::Initiator(_) | Memory::Placement(_) => 1,
        }
    }

    /// The controller of a command for lines of so many bytes: that of the first of them.
    #[inline]
    pub(crate) fn controller_of(&self, command: &MemCommand, line: u64) -> u16 {
        let first = || command.page + u64::from(command.lines.trailing_zeros()) * line;
        match self {
            Memory::Dram(dram) => dram.controller_of(first()),
            Memory::DramCache(cache) => cache.controller_of(first()),
            Memory::Direct(direct) => direct.controller_of(command.page),
            Memory::Engine(_) | Memory::Initiator(_) | Memory::Placement(_) => 0,
        }
    }

    /// Takes a command.
    #[inline]
    pub(crate) fn command(&mut self, command: MemCommand, here: &mut Here<'_>) {
        match self {
            Memory::Dram(dram) => dram.command(command, here),
            Memory::DramCache(cache) => cache.command(command, here),
            Memory::Placement(placement) => placement.command(command, here),
            Memory::Direct(direct) => direct.command(command, here),
            Memory::Engine(engine) => engine.command(command, here),
            Memory::Initiator(initiator) => initiator.command(command, here),
        }
    }

    /// Commands inside it.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Memory::Dram(dram) => dram.outstanding(),
            Memory::DramCache(cache) => cache.outstanding(),
            Memory::Placement(placement) => placement.outstanding(),
            Memory::Direct(direct) => direct.outstanding(),
            Memory::Engine(engine) => engine.outstanding(),
            Memory::Initiator(initiator) => initiator.outstanding(),
        }
    }

    /// Time that requests have waited here.
    pub(crate) fn tally(&self) -> &Tally {
        match self {
            Memory::Dram(dram) => &dram.tally,
            Memory::DramCache(cache) => &cache.tally,
            Memory::Placement(placement) => &placement.tally,
            Memory::Direct(direct) => &direct.tally,
            Memory::Engine(engine) => &engine.tally,
            Memory::Initiator(initiator) => &initiator.tally,
        }
    }

    /// Accounts that must agree, each side counted in a different part of it.
    pub(crate) fn checks(&self, now: Time) -> Vec<Check> {
        match self {
            Memory::Dram(dram) => dram.accounts(now).iter().map(of_dram).collect(),
            Memory::DramCache(cache) => cache.dram().accounts(now).iter().map(of_dram).collect(),
            Memory::Placement(placement) => {
                let accounts = placement.accounts().map(|account| agreed(&account));
                accounts.into_iter().chain(placement.shadowed().map(in_place)).collect()
            }
            Memory::Direct(direct) => direct.checks(),
            Memory::Engine(engine) => engine.checks(),
            Memory::Initiator(initiator) => initiator.checks(),
        }
    }

    /// Whether pages that were changed here are written, still there, or handed to the shared cache.
    pub(crate) fn check_pages(&self, l2: &L2) -> Option<Check> {
        match self {
            Memory::DramCache(cache) => Some(lines::of_dram_cache(cache)),
            Memory::Direct(direct) => Some(lines::of_parked_pages(l2, direct.lines_given_up())),
            Memory::Dram(_) | Memory::Placement(_) | Memory::Engine(_) | Memory::Initiator(_) => None,
        }
    }

    /// Energy of devices of its own since the measured window began, which its spec may not tell; nothing if it has none. What an engine takes is in
    /// the controller of its drive, what an initiator and a placement take in the chip that they are a part of.
    pub(crate) fn energy(&self, now: Time) -> Option<Option<EnergyReport>> {
        match self {
            Memory::Dram(dram) => Some(dram.energy(now)),
            Memory::DramCache(cache) => Some(cache.energy(now)),
            Memory::Direct(direct) => Some(direct.energy(now)),
            Memory::Placement(_) | Memory::Engine(_) | Memory::Initiator(_) => None,
        }
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        match self {
            Memory::Dram(dram) => dram.reset_stats(now),
            Memory::DramCache(cache) => cache.reset_stats(now),
            Memory::Placement(placement) => placement.reset_stats(now),
            Memory::Direct(direct) => direct.reset_stats(now),
            Memory::Engine(engine) => engine.reset_stats(now),
            Memory::Initiator(initiator) => initiator.reset_stats(now),
        }
    }
}

/// An account of DRAM, as a check.
fn of_dram(account: &DramAccount) -> Check {
    let DramAccount { name, found, due } = *account;
    let (check, what) = match name {
        "refreshes" => ("DRAM is refreshed as often as its interval asks", "refreshes"),
        _ => ("DRAM spends what its operations cost", name),
    };
    Check { name: check, ok: found == due, detail: format!("{what}: {found}, and {due} by the counts") }
}

/// What the shadow of a placement has found, as a check.
fn in_place(found: &Shadowed) -> Check {
    let Shadowed { compared, wrong, first } = found;
    let first = first.as_deref().unwrap_or_default();
    Check {
        name: "pages are where their placement has them",
        ok: *wrong == 0,
        detail: format!("{wrong} of {compared} commands found something else: {first}"),
    }
}

/// An account of a placement as a check.
fn agreed(account: &Account) -> Check {
    let Account { name, one: (one, a), other: (other, b) } = account;
    Check { name, ok: account.holds(), detail: format!("{one} {a}, {other} {b}") }
}
