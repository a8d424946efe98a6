//! Cache shared by all multiprocessors: its banks, miss registers, prefetching, parked pages.
//!
//! A bank serves one access at a time. A look-up or a read occupies it for the read latency, a write for the write
//! latency, an atomic that stays here for both; lines that are filled, handed back or written to memory also occupy it,
//! from their arrival. An access that cannot be placed blocks all behind it until memory has completed a command of the
//! bank. Possible causes are: no miss register, too many waiters for its fetch, no write slot, or no evictable line.
//! Waiters of a fetch are answered when it ends, before the fill.
//!
//! A fetch treats an absent page as the access that began it requests, and brings its line alone if that access is not
//! to wait. If it comes back without data, the waiters that asked for that are answered so, and the line is fetched
//! again for the others. A requester that asked for that and joined a waiting fetch waits with it.
//!
//! Requirements on memory: commands of one bank for the same line take effect in the order in which they are sent, and
//! every command comes back once, with its tag, port, page and kind.
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
    /// Internal events of the cache.
    pub enum Event {
        /// The first waiting access of a bank has been served, or cannot be placed.
        Served(u16),
    }
}

/// Messages sent by the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// An access returns to its port.
    Answer(Access),
    /// Lines to fetch from memory, or to store there.
    Command(MemCommand),
}

/// Data moves inside the cache: its shadow follows them with versions of the data, and so does a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    /// A read or an atomic takes its value from the line in the cache.
    FromLine(Target, Access),
    /// A read or an atomic takes its value from fetched data.
    FromFetch(u32, Target, Access),
    /// A write or an atomic changes the line in the cache.
    Store(Target, Access),
    /// Fetched data go into the line, beside its written part.
    Fill(u32, Target),
    /// The line goes into a write command.
    Unload(u32, Target),
    /// A write or an atomic goes into a write command; fetched data change too.
    Through(u32, Option<u32>, Target, Access),
    /// The line leaves the cache.
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

/// Counts since the beginning, for the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Clean lines that became dirty.
    pub dirtied: u64,
    /// Writes and atomics that went through.
    pub through: u64,
    /// Writes placed.
    pub writes: u64,
    /// Lines handed back by flash registers that are, or were, pinned here.
    pub parked: u64,
    /// Answers of memory that nothing here waited for. Each is ignored.
    pub unasked: u64,
}

/// Results of a shadow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadowed {
    /// Reads and atomics compared.
    pub compared: u64,
    /// Reads and atomics among these with wrong data.
    pub wrong: u64,
    /// Description of the first of these.
    pub first: Option<String>,
    /// Lines that were stored to.
    pub stored: usize,
    /// Lines among these whose latest version is neither here nor in memory.
    pub lost: usize,
}

/// Shared cache with all its banks.
pub struct L2 {
    layout: Layout,
    banks: Vec<Bank>,
    prefetch: Box<dyn Prefetch>,
    writes: WritePolicy,
    read_latency: Time,
    write_latency: Time,
    /// Statistics of the window.
    pub stats: L2Stats,
    /// Cache's share of the requests' time.
    pub tally: Tally,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    #[cfg(test)]
    moves: Vec<Move>,
}

impl L2 {
    /// Creates a cache. Keys of errors are relative to its table.
    ///
    /// # Errors
    /// Returns the first invalid value of the spec.
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

    /// Attaches a shadow, which follows the versions of lines. It costs memory and time, and does not change results.
    ///
    /// # Panics
    /// Panics if the cache has served any access.
    pub fn attach_shadow(&mut self) {
        assert!(self.outstanding() == 0 && self.dirty() == 0, "a shadow joins an empty cache");
        self.shadow = Some(Box::new(Shadow::new(self.layout.line())));
    }

    /// Returns true if the cache has a shadow.
    #[inline]
    pub fn is_shadowed(&self) -> bool {
        self.shadow.is_some()
    }

    /// Results of the shadow, if any. O(lines that were stored to).
    pub fn shadowed(&self) -> Option<Shadowed> {
        let shadow = self.shadow.as_deref()?;
        let (lost, stored) = shadow.audit();
        let (compared, wrong, first) = (shadow.compared, shadow.wrong, shadow.first.clone());
        Some(Shadowed { compared, wrong, first, stored, lost })
    }

    /// Counts since the beginning.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Number of dirty lines. O(lines).
    pub fn dirty(&self) -> u64 {
        let dirty = |bank: &Bank| {
            let held = |place: &u32| bank.tags.line(*place).is_some() && bank.tags.meta(*place).dirty;
            (0..bank.tags.places()).filter(held).count() as u64
        };
        self.banks.iter().map(dirty).sum()
    }

    /// Number of banks.
    pub fn banks(&self) -> u16 {
        self.banks.len() as u16
    }

    /// Bank that serves a physical address.
    #[inline]
    pub fn bank_of(&self, address: u64) -> u16 {
        self.layout.bank(address)
    }

    #[inline]
    fn bank(&mut self, number: u16) -> &mut Bank {
        &mut self.banks[usize::from(number)]
    }

    /// Returns true if writes stay here, apart from those to parked pages.
    #[inline]
    fn keeps_writes(&self) -> bool {
        self.writes == WritePolicy::write_back
    }

    /// Accepts an access at the bank that serves its address.
    pub fn access(&mut self, bank: u16, access: Access, cx: &mut impl Cx<Event, Out>) {
        let key = self.layout.key(access.address);
        let waiting = self.bank(bank);
        // Serving it takes an event: by then the set of its line has been prefetched.
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

    /// Handles a completed command of memory.
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

    /// Returns true if a command like this one is under way.
    fn awaits(&self, command: &MemCommand) -> bool {
        let bank = &self.banks[usize::from(command.port)];
        let page =
            if command.write { bank.slots.page(command.tag) } else { bank.registers.page(command.tag) };
        page == Some(command.page)
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Served(bank) => self.attend(bank, cx),
        }
    }

    /// Number of accesses and commands inside.
    pub fn outstanding(&self) -> usize {
        self.banks.iter().map(Bank::outstanding).sum()
    }

    /// Busy time of the banks in the measured window, summed over banks.
    pub fn busy(&self, now: Time) -> Time {
        self.banks.iter().fold(Time::ZERO, |sum, bank| sum + bank.port.busy(now).since(bank.busy_before))
    }

    /// Starts the measured window.
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

// Fetches that come back without data, because their page is in flash.

impl L2 {
    /// Handles a fetch without data. Requesters that asked for this answer get it, and their reserved resources are
    /// freed; for waiting requesters the line is fetched again, and now memory waits too.
    fn signalled(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let (number, register) = (command.port, command.tag);
        let mut before = self.bank(number).registers.reopen(register);
        debug_assert_eq!(before.page, command.page, "an answer to another fetch");
        let first = self.layout.line() * u64::from(before.line) + before.page;
        let target = Target::new(&self.layout, number, first);
        let (mut stage, mut fetch) = (Stage::L2, None);
        while let Some(mut waiter) = self.bank(number).registers.take(&mut before) {
            // As for data: the milestones of the first access are those of the fetch.
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

    /// Gives up lines of a page that do not arrive: written parts stay, a place without any data does not.
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

// Statistics of the shared cache.

/// Statistics of one measured window, over all banks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct L2Stats {
    /// Reads served.
    pub reads: u64,
    /// Writes served.
    pub writes: u64,
    /// Atomic operations served.
    pub atomics: u64,
    /// Reads and atomics that hit.
    pub hits: u64,
    /// Reads and atomics that began a fetch.
    pub misses: u64,
    /// Reads and atomics that joined a fetch under way. Hits, misses and merges add up to all reads and atomics.
    pub merges: u64,
    /// Reads and atomics answered without data.
    pub signalled: u64,
    /// Writes that hit.
    pub write_hits: u64,
    /// Copies dropped because their line was written through.
    pub invalidations: u64,
    /// Writes and atomics absorbed by a parked page.
    pub absorbed: u64,
    /// Fetches sent to memory.
    pub fetches: u64,
    /// Lines fetched.
    pub fetched_lines: u64,
    /// Fetched lines that no access had requested.
    pub prefetched_lines: u64,
    /// Prefetched lines read, or waited for, at least once while they were here or in flight.
    pub used_prefetched_lines: u64,
    /// Fetched lines passed on to waiters and not kept, because no line of the set could be evicted.
    pub unkept_lines: u64,
    /// Lines evicted for others.
    pub evictions: u64,
    /// Evicted lines that were prefetched and never read.
    pub unused_evictions: u64,
    /// Writes sent to memory without a waiting access.
    pub write_backs: u64,
    /// Writes sent to memory with a waiting access.
    pub write_throughs: u64,
    /// Lines sent to memory.
    pub written_lines: u64,
    /// Dirty pages taken from flash registers.
    pub parked_pages: u64,
    /// Dirty pages of flash registers refused.
    pub refused_pages: u64,
    /// Parked pages written to memory.
    pub unparked_pages: u64,
    /// Lines evicted because their application was purged.
    pub purged_lines: u64,
    /// Stalls: times that a bank could not place an access, because of no miss register, too many waiters for the
    /// fetch, no write slot, or no evictable line.
    pub stalls: u64,
    /// Time of these stalls, summed over banks.
    pub stalled: Time,
    /// Statistics of the prefetcher.
    pub prefetch: PrefetchStats,
}
