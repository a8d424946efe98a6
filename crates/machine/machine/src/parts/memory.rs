//! Memory behind a shared cache: every kind answers commands for lines of a page.
//!
//! Every function here names every kind of memory: a new kind does not compile without its answers. The spec's side of
//! memories is in `spec/memory.rs`.

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

/// Memory behind a shared cache.
pub enum Memory {
    /// DRAM or persistent memory.
    Dram(Box<Dram>),
    /// DRAM as a cache over flash.
    DramCache(Box<DramCache>),
    /// Several memories, and the placement of pages among them.
    Placement(Box<Placement>),
    /// Flash whose controllers are on the network.
    Direct(Box<Direct>),
    /// An SSD engine, and the flash device behind it.
    Engine(Box<Engine>),
    /// An initiator of block commands, and the flash device that they go to.
    Initiator(Box<Initiator>),
}

/// Position of a memory's controllers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stands {
    /// Beside the part that asks, without a position of their own.
    BesideAsker,
    /// Beside the banks of a cache that is spread over the chip, or beside the memory in front; otherwise at the edge
    /// of a mesh.
    BesideBanks,
    /// At endpoints of the network.
    OnNetwork,
}

impl Memory {
    /// Position of the memory's controllers.
    pub(crate) fn stands(&self) -> Stands {
        match self {
            Memory::Placement(_) => Stands::BesideAsker,
            Memory::Dram(_) => Stands::BesideBanks,
            Memory::DramCache(_) | Memory::Direct(_) | Memory::Engine(_) | Memory::Initiator(_) => {
                Stands::OnNetwork
            }
        }
    }

    /// Returns whether commands only pass through this memory: their time in the memory behind it belongs to the part
    /// that waits for them. Other memories count it as their own.
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

    /// DRAM cache that a server's jobs fill before the run, if any.
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

    /// Number of pages brought from flash for waiting accesses; `None` for a memory that holds no pages of others.
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

    /// Initiator whose block commands are flows of their own, if any.
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

    /// Address, as parts in front know it, of a page of the memory with this number behind it; `None` where they do not
    /// know the memory behind.
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

    /// Delivers a command completed by the memory behind it with the number `which`.
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

    /// Delivers a block command completed by its drive.
    ///
    /// # Panics
    /// If it has no drive.
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

    /// Number of controllers.
    pub(crate) fn controllers(&self) -> u16 {
        match self {
            Memory::Dram(dram) => dram.controllers(),
            Memory::DramCache(cache) => cache.controllers(),
            Memory::Direct(direct) => direct.controllers(),
            Memory::Engine(_) | Memory::Initiator(_) | Memory::Placement(_) => 1,
        }
    }

    /// Controller of a command for lines of `line` bytes: that of the first line.
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

    /// Accepts a command.
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

    /// Number of commands inside.
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

    /// Time that requests have waited in the memory.
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

    /// Checks of accounts, each side counted in a different part of the memory.
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

    /// Checks that pages changed here are written, still present, or handed to the shared cache.
    pub(crate) fn check_pages(&self, l2: &L2) -> Option<Check> {
        match self {
            Memory::DramCache(cache) => Some(lines::of_dram_cache(cache)),
            Memory::Direct(direct) => Some(lines::of_parked_pages(l2, direct.lines_given_up())),
            Memory::Dram(_) | Memory::Placement(_) | Memory::Engine(_) | Memory::Initiator(_) => None,
        }
    }

    /// Energy of its own devices since the measured window began, as far as the spec has constants; `None` without such
    /// devices. An engine's energy is in the controller of its drive, that of an initiator or a placement in its chip.
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

/// Converts an account of DRAM to a check.
fn of_dram(account: &DramAccount) -> Check {
    let DramAccount { name, found, due } = *account;
    let (check, what) = match name {
        "refreshes" => ("DRAM is refreshed as often as its interval asks", "refreshes"),
        _ => ("DRAM spends what its operations cost", name),
    };
    Check { name: check, ok: found == due, detail: format!("{what}: {found}, and {due} by the counts") }
}

/// Converts the findings of a placement's shadow to a check.
fn in_place(found: &Shadowed) -> Check {
    let Shadowed { compared, wrong, first } = found;
    let first = first.as_deref().unwrap_or_default();
    Check {
        name: "pages are where their placement has them",
        ok: *wrong == 0,
        detail: format!("{wrong} of {compared} commands found different data: {first}"),
    }
}

/// Converts an account of a placement to a check.
fn agreed(account: &Account) -> Check {
    let Account { name, one: (one, a), other: (other, b) } = account;
    Check { name, ok: account.holds(), detail: format!("{one} {a}, {other} {b}") }
}
