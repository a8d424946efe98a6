//! The cache that all multiprocessors share: its banks, miss registers, prefetching, parked pages.
//!
//! A bank serves the accesses that come to it one after another. A look-up or a read occupies it for the read latency, a
//! write for the write latency, an atomic that stays here for both; lines that are filled, handed back or written to
//! memory occupy it likewise, from when they come. An access that cannot be placed (no miss register, no room among those
//! that wait for its fetch, no write slot, no line that can make room) holds up all behind it until memory has done
//! something for the bank. Those who wait for a fetch are answered when it comes, before it is filled.
//!
//! A fetch says what the access that began it says of an absent page, and brings its line alone if that is not to wait. If it comes
//! back without data, those who asked for that are answered so, and the others' line is fetched again. Who asked for
//! that and met a fetch that waits, waits with it.
//!
//! What it asks of memory: commands of one bank that touch the same line take effect in the order in which they are sent,
//! and every command comes back once, with its tag, port, page and kind.
//!
//! Source: ZnG, Table I and sections III-C, IV-B, IV-C, V-D.

mod bank;
mod layout;
mod lines;
pub mod prefetch;
mod registers;
mod serve;
mod shadow;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::{L2Spec, WritePolicy};

use bank::{Bank, State};
use config::SpecError;
use engine::{Cx, Time};
use layout::{Layout, Target};
use prefetch::{Prefetch, PrefetchContext, PrefetchStats};
use proto::memory::{Absent, Access, MemCommand, Stage, Tally};
use shadow::Shadow;

engine::events! {
    /// What happens inside the cache.
    pub enum Event {
        /// The first access that waits at a bank has been served, or cannot be placed.
        Served(u16),
    }
}

/// What the cache sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// An access comes back to its port.
    Answer(Access),
    /// Lines to fetch from memory, or to store there.
    Command(MemCommand),
}

/// Where data goes inside the cache: its shadow follows it with versions of the data, and so does a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    /// A read or an atomic takes its value from the line that is here.
    FromLine(Target, Access),
    /// A read or an atomic takes its value from what a fetch has brought.
    FromFetch(u32, Target, Access),
    /// A write or an atomic changes the line that is here.
    Store(Target, Access),
    /// What a fetch has brought goes into the line, beside what has been written there.
    Fill(u32, Target),
    /// The line goes into a write command.
    Unload(u32, Target),
    /// A write or an atomic goes into a write command; what a fetch has brought changes too.
    Through(u32, Option<u32>, Target, Access),
    /// The line is no longer here.
    Drop(Target),
    /// Flash registers hand the line over.
    Park(Target),
}

/// Tells the shadow of a [`Move`], and records it in tests.
macro_rules! note {
    ($cache:expr, $($move:tt)+) => {
        if let Some(shadow) = &mut $cache.shadow {
            shadow.follow($crate::l2::Move::$($move)+);
        }
        #[cfg(test)]
        $cache.moves.push($crate::l2::Move::$($move)+);
    };
}
use note;

/// What happened since the beginning, for the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Clean lines that became dirty.
    pub dirtied: u64,
    /// Writes and atomics that went through.
    pub through: u64,
    /// Writes placed.
    pub writes: u64,
    /// Lines that flash registers have handed back and that are, or were, pinned here.
    pub parked: u64,
    /// Answers of memory that nothing here waited for. Each is left alone.
    pub unasked: u64,
}

/// What a shadow has found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadowed {
    /// Reads and atomics that were compared.
    pub compared: u64,
    /// Of them, those that brought what they must not.
    pub wrong: u64,
    /// The first of them, in words.
    pub first: Option<String>,
    /// Lines that were stored to.
    pub stored: usize,
    /// Of them, those of which the latest version is neither here nor in memory.
    pub lost: usize,
}

/// All banks of the shared cache.
pub struct L2 {
    layout: Layout,
    banks: Vec<Bank>,
    prefetch: Box<dyn Prefetch>,
    writes: WritePolicy,
    read_latency: Time,
    write_latency: Time,
    /// What it has counted.
    pub stats: L2Stats,
    /// Its share of where requests' time went.
    pub tally: Tally,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    #[cfg(test)]
    moves: Vec<Move>,
}

impl L2 {
    /// A cache as the spec says. Keys of an error are relative to its table.
    ///
    /// # Errors
    /// The first value of the spec that does not fit.
    pub fn new(spec: &L2Spec, seed: u64) -> Result<L2, SpecError> {
        spec.check()?;
        Ok(L2 {
            layout: Layout::new(spec.banks, spec.interleave.get(), spec.line.get()),
            banks: (0..spec.banks).map(|number| Bank::new(spec, seed, number)).collect(),
            prefetch: spec.prefetch.build(&PrefetchContext { line: spec.line.get() }),
            writes: spec.writes,
            read_latency: spec.cycles(spec.read_latency),
            write_latency: spec.cycles(spec.write_latency),
            stats: L2Stats::default(),
            tally: Tally::default(),
            ledger: Ledger::default(),
            shadow: None,
            #[cfg(test)]
            moves: Vec::new(),
        })
    }

    /// Gives the cache a shadow, which follows the versions of lines. It costs memory and time, and changes no result.
    ///
    /// # Panics
    /// If the cache has served anything.
    pub fn attach_shadow(&mut self) {
        assert!(self.outstanding() == 0 && self.dirty() == 0, "a shadow joins an empty cache");
        self.shadow = Some(Box::new(Shadow::new(self.layout.line())));
    }

    /// Whether it has a shadow.
    #[inline]
    pub fn is_shadowed(&self) -> bool {
        self.shadow.is_some()
    }

    /// What the shadow has found, if there is one. O(lines that were stored to).
    pub fn shadowed(&self) -> Option<Shadowed> {
        let shadow = self.shadow.as_deref()?;
        let (lost, stored) = shadow.audit();
        let (compared, wrong, first) = (shadow.compared, shadow.wrong, shadow.first.clone());
        Some(Shadowed { compared, wrong, first, stored, lost })
    }

    /// What has happened since the beginning.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Dirty lines that are here. O(lines).
    pub fn dirty(&self) -> u64 {
        let dirty = |bank: &Bank| {
            let held = |place: &u32| bank.tags.line(*place).is_some() && bank.tags.meta(*place).dirty;
            (0..bank.tags.places()).filter(held).count() as u64
        };
        self.banks.iter().map(dirty).sum()
    }

    /// How many banks there are.
    pub fn banks(&self) -> u16 {
        self.banks.len() as u16
    }

    /// The bank that serves a physical address.
    #[inline]
    pub fn bank_of(&self, address: u64) -> u16 {
        self.layout.bank(address)
    }

    #[inline]
    fn bank(&mut self, number: u16) -> &mut Bank {
        &mut self.banks[usize::from(number)]
    }

    /// Whether writes stay here, parked pages apart.
    #[inline]
    fn keeps_writes(&self) -> bool {
        self.writes == WritePolicy::write_back
    }

    /// An access has come to the bank that serves its address.
    pub fn access(&mut self, bank: u16, access: Access, cx: &mut impl Cx<Event, Out>) {
        let key = self.layout.key(access.address);
        let waiting = self.bank(bank);
        // Its service takes an event: by then the set of its line is at hand.
        waiting.tags.prefetch(key);
        waiting.queue.push_back(access);
        if let Some(shadow) = &mut self.shadow {
            shadow.arrives(&access);
        }
        let waiting = self.bank(bank);
        if waiting.state == State::Idle {
            self.start(bank, cx);
        }
    }

    /// Memory has done a command.
    pub fn done(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        if !self.awaits(&command) {
            self.ledger.unasked += 1;
            return;
        }
        if command.write {
            self.written(&command, cx);
        } else if command.absent == Absent::Signalled {
            self.signalled(&command, cx);
        } else {
            self.fetched(&command, cx);
        }
        if let State::Stalled(_) = self.bank(command.port).state {
            self.attend(command.port, cx);
        }
        self.purge_on(command.port, cx);
    }

    /// Whether a command like this one is under way.
    fn awaits(&self, command: &MemCommand) -> bool {
        let bank = &self.banks[usize::from(command.port)];
        let page =
            if command.write { bank.slots.page(command.tag) } else { bank.registers.page(command.tag) };
        page == Some(command.page)
    }

    /// One of its events has come.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Served(bank) => self.attend(bank, cx),
        }
    }

    /// Accesses and commands inside.
    pub fn outstanding(&self) -> usize {
        self.banks.iter().map(Bank::outstanding).sum()
    }

    /// Time for which the banks have been occupied in the measured window, summed over banks.
    pub fn busy(&self, now: Time) -> Time {
        self.banks.iter().fold(Time::ZERO, |sum, bank| sum + bank.port.busy(now).since(bank.busy_before))
    }

    /// Begins a measured window.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = L2Stats::default();
        self.tally = Tally::default();
        for bank in &mut self.banks {
            bank.busy_before = bank.port.busy(now);
            if let State::Stalled(since) = &mut bank.state {
                *since = now;
            }
        }
    }
}

// A fetch that comes back without data, because its page is in flash.

impl L2 {
    /// A fetch has brought nothing. Those who asked to be told are, and what was held for them is free; for those who
    /// wait the line is fetched again, and now memory waits as well.
    fn signalled(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let (number, register) = (command.port, command.tag);
        let mut before = self.bank(number).registers.reopen(register);
        debug_assert_eq!(before.page, command.page, "an answer to another fetch");
        let first = self.layout.line() * u64::from(before.line) + before.page;
        let target = Target::new(&self.layout, number, first);
        let (mut stage, mut fetch) = (Stage::L2, None);
        while let Some(mut waiter) = self.bank(number).registers.take(&mut before) {
            // As when data come: the first one's milestones are those of the fetch.
            if stage == Stage::L2 {
                waiter.access.since = command.since;
            }
            if waiter.access.absent == Absent::Wait {
                if fetch.is_none() {
                    self.tally.access(stage, &mut waiter.access, cx.now());
                    fetch = Some(waiter.access);
                }
                let bank = self.bank(number);
                bank.registers.wait(register, waiter.access, 0, waiter.slot);
            } else {
                if waiter.slot {
                    self.bank(number).slots.unkeep();
                }
                waiter.access.absent = Absent::Signalled;
                self.stats.signalled += 1;
                self.answer(waiter.access, stage, cx);
            }
            stage = Stage::L2Merge;
        }
        match fetch {
            Some(access) => self.send_fetch(register, target, target.bit(), &access, cx),
            None => {
                self.bank(number).registers.end(register);
                self.give_up(target, before.open);
            }
        }
    }

    /// Nothing comes for lines of a page: what has been written to them stays, a place without anything in it does not.
    fn give_up(&mut self, first: Target, lines: u64) {
        for target in first.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let Some(place) = tags.find(target.key) else {
                continue;
            };
            let line = tags.meta_mut(place);
            line.filling = false;
            if !line.valid && !line.dirty {
                tags.remove(place);
                note!(self, Drop(target));
            }
        }
    }
}

// What the shared cache has counted.

/// Counters of one measured window, over all banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct L2Stats {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Atomic operations served.
    pub atomics: u64,
    /// Reads and atomics that found their line.
    pub hits: u64,
    /// Reads and atomics that began a fetch.
    pub misses: u64,
    /// Reads and atomics that waited for a fetch under way. Reads and atomics are hits, misses and merges.
    pub merges: u64,
    /// Reads and atomics that were answered without data.
    pub signalled: u64,
    /// Writes that found their line.
    pub write_hits: u64,
    /// Copies dropped because their line was written through.
    pub invalidations: u64,
    /// Writes and atomics that a parked page took.
    pub absorbed: u64,
    /// Fetches sent to memory.
    pub fetches: u64,
    /// Lines fetched.
    pub fetched_lines: u64,
    /// Of them, lines that no access had asked for.
    pub prefetched_lines: u64,
    /// Prefetched lines that were read, or waited for, at least once while they were here or on their way.
    pub used_prefetched_lines: u64,
    /// Fetched lines that were passed on to those who waited and not kept, because no line of the set could make room.
    pub unkept_lines: u64,
    /// Lines that made room for others.
    pub evictions: u64,
    /// Of them, prefetched lines that nobody had read.
    pub unused_evictions: u64,
    /// Writes sent to memory that nobody waited for.
    pub write_backs: u64,
    /// Writes sent to memory that an access waited for.
    pub write_throughs: u64,
    /// Lines sent to memory.
    pub written_lines: u64,
    /// Dirty pages taken from flash registers.
    pub parked_pages: u64,
    /// Dirty pages of flash registers that were refused.
    pub refused_pages: u64,
    /// Parked pages written to memory.
    pub unparked_pages: u64,
    /// Lines that left because their application was purged.
    pub purged_lines: u64,
    /// Times that a bank waited with an access that it could not place: no miss register, no room among those that wait
    /// for the fetch, no write slot, or no line that could make room.
    pub stalls: u64,
    /// Time that banks waited so, summed over banks.
    pub stalled: Time,
    /// The prefetcher's counters.
    pub prefetch: PrefetchStats,
}
