//! Registers that gather writes: their specification, and their sets with pages by recency. Independent of time.

use crate::numbers::{NONE, Packages, Pool};
use config::{
    SpecError,
    units::{Bytes, Share, TransferRate},
};
use engine::{Snapshot, Time, resource::Serial};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Register without a page.
    Free,
    /// Holds lines that flash lacks, and accepts more.
    Dirty,
    /// Page offered to the shared cache.
    Offered,
    /// Page to be programmed, or being programmed.
    Leaving,
}

/// Register that gathers writes to a page.
#[derive(Clone, Copy, Debug)]
pub struct Register {
    /// Page number in the address space.
    pub page: u64,
    /// Bit set of the page's lines that flash lacks.
    pub lines: u64,
    /// Application that wrote the page.
    pub app: u8,
    /// State of the register.
    pub state: State,
    /// Plane of the register.
    pub plane: u32,
    /// Set that the page chose from.
    pub set: u32,
    /// Register that the same page is leaving, if it was written again meanwhile.
    older: u32,
    /// Neighbours by recency; for a free register, the next free one of the plane.
    before: u32,
    after: u32,
}

/// Registers that a page may choose from: those of a plane or of a package.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    oldest: u32,
    newest: u32,
    /// Number of registers without a page.
    pub free: u32,
    /// Number of registers whose page is leaving and will make room.
    pub leaving: u32,
    /// Number of pages that wait for a register.
    pub waiting: u32,
    /// First waiting page.
    pub first: u32,
    /// Last waiting page.
    pub last: u32,
}

/// All registers except the data registers.
#[derive(Clone, Debug)]
pub struct Registers {
    registers: Vec<Register>,
    /// Registers that a page may choose from, by set.
    pub sets: Vec<Set>,
    /// Newest register of each page.
    pages: FxHashMap<u64, u32>,
    /// First free register of each plane.
    free: Vec<u32>,
    pool: Pool,
    private: bool,
    /// Pages that registers have taken in since the beginning.
    pub filled: u64,
}

impl Registers {
    /// Creates `each` registers per plane; private to it, or in one set with all others of the package.
    pub fn new(packages: &Packages, each: u32, private: bool) -> Registers {
        let sets = if private { packages.planes() } else { packages.count() };
        let planes = if private { 1 } else { packages.package_planes };
        let set =
            Set { oldest: NONE, newest: NONE, free: 0, leaving: 0, waiting: 0, first: NONE, last: NONE };
        let mut this = Registers {
            registers: Vec::new(),
            sets: vec![set; sets as usize],
            pages: FxHashMap::with_capacity_and_hasher(
                (packages.planes() * each) as usize,
                Default::default(),
            ),
            free: vec![NONE; packages.planes() as usize],
            pool: Pool::new(sets, planes, 0),
            private,
            filled: 0,
        };
        for plane in 0..packages.planes() {
            for _ in 0..each {
                let set = if private { plane } else { packages.package(plane).0 };
                this.registers.push(Register {
                    page: 0,
                    lines: 0,
                    app: 0,
                    state: State::Free,
                    plane,
                    set,
                    older: NONE,
                    before: NONE,
                    after: NONE,
                });
            }
        }
        for register in (0..this.registers.len() as u32).rev() {
            let plane = this.registers[register as usize].plane;
            this.put_free(register, packages.package(plane).1);
        }
        this
    }

    /// Returns a register.
    #[inline]
    pub fn get(&self, register: u32) -> &Register {
        &self.registers[register as usize]
    }

    /// Returns the set that serves a plane, and the plane's number in it.
    #[inline]
    pub fn set_of(&self, packages: &Packages, plane: u32) -> (u32, u32) {
        if self.private { (plane, 0) } else { packages.package(plane) }
    }

    /// Returns the register that accepts lines of a page, if any.
    #[inline]
    pub fn dirty(&self, page: u64) -> Option<u32> {
        let register = *self.pages.get(&page)?;
        (self.get(register).state == State::Dirty).then_some(register)
    }

    /// Iterates over the registers that hold lines of a page, newest first.
    #[inline]
    pub fn holding(&self, page: u64) -> impl Iterator<Item = u32> {
        let newest = self.pages.get(&page).copied();
        std::iter::successors(newest, |r| Some(self.get(*r).older).filter(|r| *r != NONE))
    }

    /// Returns the lines of a page that registers hold.
    #[inline]
    pub fn lines(&self, page: u64) -> u64 {
        self.holding(page).fold(0, |lines, r| lines | self.get(r).lines)
    }

    /// Returns the register of a page that has been offered.
    pub fn offered(&self, page: u64) -> Option<u32> {
        self.holding(page).find(|r| self.get(*r).state == State::Offered)
    }

    /// Adds lines to a register that accepts them.
    #[inline]
    pub fn merge(&mut self, register: u32, lines: u64, app: u8) {
        let record = &mut self.registers[register as usize];
        record.lines |= lines;
        record.app = app;
        self.touch(register);
    }

    /// Makes a page the most recently used.
    #[inline]
    pub fn touch(&mut self, register: u32) {
        if self.get(register).state == State::Dirty {
            self.unlink(register);
            self.link(register);
        }
    }

    /// Takes a free register for a page of a plane: of that plane if possible, otherwise of the next plane of the set.
    pub fn take_free(&mut self, packages: &Packages, plane: u32) -> Option<u32> {
        let (set, home) = self.set_of(packages, plane);
        let within = self.pool.take(set, home)?;
        self.sets[set as usize].free -= 1;
        let from = if self.private { plane } else { packages.plane(set, within) };
        let register = self.free[from as usize];
        self.free[from as usize] = self.get(register).after;
        Some(register)
    }

    /// Frees a register that nothing waits for; `within` is its plane's number in the package.
    pub fn put_free(&mut self, register: u32, within: u32) {
        let within = if self.private { 0 } else { within };
        let Register { plane, set, .. } = *self.get(register);
        self.sets[set as usize].free += 1;
        self.registers[register as usize].after = self.free[plane as usize];
        self.free[plane as usize] = register;
        self.pool.put(set, within);
    }

    /// Fills a register with lines of a page that no register accepts yet.
    pub fn fill(&mut self, register: u32, page: u64, lines: u64, app: u8) {
        self.filled += 1;
        let older = self.pages.insert(page, register).unwrap_or(NONE);
        let record = &mut self.registers[register as usize];
        *record = Register { page, lines, app, state: State::Dirty, older, ..*record };
        self.link(register);
    }

    /// Returns the least recently used dirty page of a set.
    #[inline]
    pub fn oldest(&self, set: u32) -> Option<u32> {
        let oldest = self.sets[set as usize].oldest;
        (oldest != NONE).then_some(oldest)
    }

    /// Makes a dirty page leave its register: it accepts no more lines.
    pub fn leave(&mut self, register: u32, state: State) {
        self.unlink(register);
        self.registers[register as usize].state = state;
        let set = self.get(register).set;
        self.sets[set as usize].leaving += 1;
    }

    /// Reclaims an offered page, which is programmed after all.
    pub fn keep(&mut self, register: u32) {
        self.registers[register as usize].state = State::Leaving;
    }

    /// Releases the register of a page that has left.
    pub fn release(&mut self, register: u32) {
        let Register { page, older, set, .. } = *self.get(register);
        let newest = self.pages[&page];
        if newest == register {
            if older == NONE {
                self.pages.remove(&page);
            } else {
                self.pages.insert(page, older);
            }
        } else {
            let newer = self.holding(page).find(|r| self.get(*r).older == register);
            let newer = newer.expect("a register that holds a page is found by it");
            self.registers[newer as usize].older = older;
        }
        let record = &mut self.registers[register as usize];
        (record.state, record.lines, record.older) = (State::Free, 0, NONE);
        self.sets[set as usize].leaving -= 1;
    }

    /// Returns the number of registers that are not free, and of the lines in them.
    pub fn used(&self) -> (u64, u64) {
        let used = self.registers.iter().filter(|r| r.state != State::Free);
        used.fold((0, 0), |(n, lines), r| (n + 1, lines + u64::from(r.lines.count_ones())))
    }

    /// Returns the number of pages offered that are neither taken nor refused yet.
    pub fn open(&self) -> u64 {
        self.registers.iter().filter(|r| r.state == State::Offered).count() as u64
    }

    fn link(&mut self, register: u32) {
        let set = self.get(register).set as usize;
        let newest = std::mem::replace(&mut self.sets[set].newest, register);
        let record = &mut self.registers[register as usize];
        (record.before, record.after) = (newest, NONE);
        match newest {
            NONE => self.sets[set].oldest = register,
            newest => self.registers[newest as usize].after = register,
        }
    }

    fn unlink(&mut self, register: u32) {
        let Register { before, after, set, .. } = *self.get(register);
        match before {
            NONE => self.sets[set as usize].oldest = after,
            before => self.registers[before as usize].after = after,
        }
        match after {
            NONE => self.sets[set as usize].newest = before,
            after => self.registers[after as usize].before = before,
        }
    }
}

// Buses from registers to the network inside a package.

/// Buses of the registers of each plane: one page at a time leaves the registers of a plane for a different one.
#[derive(Clone, Debug)]
pub struct Link {
    buses: Vec<Serial>,
    time: Time,
}

impl Link {
    /// Creates the buses of `planes` planes, for pages of `page` bytes.
    pub fn new(network: &RegisterNetwork, planes: u32, page: u64) -> Link {
        let time = match network {
            RegisterNetwork::nif(nif) => {
                Time::transfer(page, nif.width.get().saturating_mul(nif.rate.per_s()))
            }
            _ => Time::ZERO,
        };
        Link { buses: vec![Serial::default(); planes as usize], time }
    }

    /// Moves a page from a register of a plane to a different plane; returns the time of arrival.
    #[inline]
    pub fn shift(&mut self, plane: u32, now: Time) -> Time {
        self.buses[plane as usize].grant(now, self.time)
    }

    /// Appends the state.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.buses.save(out);
    }

    /// Restores the saved state of as many planes; `None` if it is truncated or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.buses = Vec::load(input).filter(|buses: &Vec<Serial>| buses.len() == self.buses.len())?;
        Some(())
    }
}

// Registers as specified by a user.

/// Registers that gather writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectRegisters {
    /// Registers of 4 KiB per plane: one is the data register of the array, the others gather writes.
    #[schemars(range(max = 1_024))]
    pub count: u32,
    /// Registers that a page may use.
    pub network: RegisterNetwork,
    /// Share of the registers available to a page, rounded down, that is kept free by evicting the oldest pages before
    /// room is needed.
    pub reserve: Share,
}

config::policies! {
    /// Which registers a dirty page may use, and the cost of programming it from a register of a different plane.
    ///
    /// Except with `private`, the registers of a package are one fully associative cache with LRU replacement.
    #[derive(Eq)]
    pub family RegisterNetwork: choice {
        /// Registers of the page's own plane.
        default private,
        /// All registers of the package. The controller copies a page to the data register of its plane over the flash
        /// network.
        ///
        /// SWnet of ZnG: the page goes out through the package's port to the controller and back.
        swnet,
        /// All registers of the package; every register reaches every plane at once.
        ///
        /// FCnet of ZnG: a fully connected network.
        fcnet,
        /// All registers of the package. A network inside the package moves a page to the data register of its plane.
        ///
        /// NiF of ZnG: the registers of a plane share a bus to that network, so one page at a time leaves them; a
        /// plane's data register takes one page at a time; moves between different planes run in parallel.
        nif(NifSpec),
    }
}

/// Network inside a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NifSpec {
    /// Bytes that the network moves in one transfer.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub width: Bytes,
    /// Transfers per second.
    pub rate: TransferRate,
}

impl Default for NifSpec {
    /// ZnG's Table I; the rate, missing there, is that of the interface.
    fn default() -> NifSpec {
        NifSpec { width: Bytes::new(8), rate: TransferRate::new(800_000_000) }
    }
}

impl DirectRegisters {
    /// Checks that the registers can be built; keys are relative to the component's table.
    pub fn check(&self) -> Result<(), SpecError> {
        self.network.check(self.count)
    }
}

impl RegisterNetwork {
    /// Checks that the network can be built with `count` registers per plane; keys are relative to the component's
    /// table.
    pub fn check(&self, count: u32) -> Result<(), SpecError> {
        if count < 2 {
            let what = format!("{count} registers per plane; at least 2 are needed: for data and for writes");
            return Err(SpecError::new("registers.count", what));
        }
        if count > 1 << 10 {
            let what = format!("{count} registers per plane; at most 1,024 are modelled");
            return Err(SpecError::new("registers.count", what));
        }
        if let RegisterNetwork::nif(nif) = self {
            SpecError::positive("registers.network.nif.width", nif.width.get())?;
            SpecError::positive("registers.network.nif.rate", nif.rate.per_s())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages with two planes each, two registers per plane.
    fn registers(private: bool) -> (Registers, Packages) {
        let packages = Packages::new(2, 2);
        (Registers::new(&packages, 2, private), packages)
    }

    fn fill(registers: &mut Registers, packages: &Packages, plane: u32, page: u64, lines: u64) -> u32 {
        let register = registers.take_free(packages, plane).expect("a free register");
        registers.fill(register, page, lines, 0);
        register
    }

    #[test]
    fn a_page_prefers_its_own_plane_and_takes_any_of_the_set() {
        let (mut shared, packages) = registers(false);
        // Planes 0 and 2 are package 0.
        let planes: Vec<u32> = (0..4)
            .map(|page| {
                let register = fill(&mut shared, &packages, 2, page, 1);
                shared.get(register).plane
            })
            .collect();
        assert_eq!(planes, [2, 2, 0, 0]);
        assert_eq!(shared.take_free(&packages, 0), None);
        assert!(shared.take_free(&packages, 1).is_some(), "the other package has its own");
        let (mut private, packages) = registers(true);
        fill(&mut private, &packages, 2, 0, 1);
        fill(&mut private, &packages, 2, 1, 1);
        assert_eq!(private.take_free(&packages, 2), None);
        assert!(private.take_free(&packages, 0).is_some());
    }

    #[test]
    fn the_least_recently_used_page_leaves_first() {
        let (mut shared, packages) = registers(false);
        let all: Vec<u32> = (0..4).map(|page| fill(&mut shared, &packages, 0, page, 1)).collect();
        shared.merge(all[0], 2, 1);
        assert_eq!((shared.get(all[0]).lines, shared.get(all[0]).app), (3, 1));
        shared.touch(all[2]);
        let mut order = Vec::new();
        while let Some(register) = shared.oldest(0) {
            shared.leave(register, State::Leaving);
            order.push(shared.get(register).page);
        }
        assert_eq!((order, shared.sets[0].leaving), (vec![1, 3, 0, 2], 4));
        assert_eq!(shared.dirty(1), None, "a page that leaves takes no more lines");
    }

    #[test]
    fn a_page_written_while_it_leaves_is_in_two_registers() {
        let (mut shared, packages) = registers(false);
        let first = fill(&mut shared, &packages, 0, 9, 0b0110);
        shared.leave(first, State::Leaving);
        let second = fill(&mut shared, &packages, 0, 9, 0b0011);
        shared.leave(second, State::Offered);
        let third = fill(&mut shared, &packages, 0, 9, 0b1000);
        assert_eq!(shared.holding(9).collect::<Vec<_>>(), [third, second, first]);
        assert_eq!(
            (shared.lines(9), shared.dirty(9), shared.offered(9)),
            (0b1111, Some(third), Some(second))
        );
        shared.release(second);
        assert_eq!(shared.holding(9).collect::<Vec<_>>(), [third, first]);
        shared.release(first);
        assert_eq!((shared.lines(9), shared.used()), (0b1000, (1, 1)));
        shared.leave(third, State::Leaving);
        shared.release(third);
        assert_eq!((shared.lines(9), shared.sets[0].leaving), (0, 0));
    }
}
