//! Shadow of the shared cache: a second account of the lines, which tracks the store that each copy comes from.
//!
//! Every store to a line, and every atomic, makes a version of it. Versions travel with the data: into the line, with a
//! write command to memory, from memory with a fetch, from the fetch into the line. The cache has no data itself; the
//! shadow follows its moves. A read must bring the version that was the latest when it reached its bank, or a later
//! one. It must not take any from a line that is not completely here. In the end, the latest version of every line is
//! here or in memory.
//!
//! Memory takes commands of one bank for one line in the order in which they are sent, so the shadow treats a sent
//! command as done. It schedules and answers nothing.

use super::Move;
use super::layout::Target;
use proto::memory::{Access, AccessKind, PAGE};
use rustc_hash::FxHashMap;

/// Line in the cache.
#[derive(Clone, Copy, Debug)]
struct Held {
    version: u32,
    whole: bool,
}

/// Name of an access: port, tag, address of the line, and whether it is an atomic.
type Name = (u16, u32, u64, bool);

/// Second account of the lines. Memory grows with the lines that are stored to, and those in the cache.
#[derive(Debug)]
pub(super) struct Shadow {
    line: u64,
    held: FxHashMap<u64, Held>,
    memory: FxHashMap<u64, u32>,
    /// Latest version of each line, which is also the number of versions.
    latest: FxHashMap<u64, u32>,
    /// Versions brought by a fetch, by bank and register.
    fetched: FxHashMap<(u16, u32), Vec<(u64, u32)>>,
    /// Versions taken by the next write command, by bank and slot.
    slots: FxHashMap<(u16, u32), Vec<(u64, u32)>>,
    /// Minimum version that each access under way may bring.
    least: FxHashMap<Name, u32>,
    /// Reads and atomics compared, and those with wrong data.
    pub(super) compared: u64,
    pub(super) wrong: u64,
    /// Description of the first wrong one.
    pub(super) first: Option<String>,
}

impl Shadow {
    /// Creates a shadow of an empty cache whose lines have `line` bytes.
    pub(super) fn new(line: u64) -> Shadow {
        Shadow {
            line,
            held: FxHashMap::default(),
            memory: FxHashMap::default(),
            latest: FxHashMap::default(),
            fetched: FxHashMap::default(),
            slots: FxHashMap::default(),
            least: FxHashMap::default(),
            compared: 0,
            wrong: 0,
            first: None,
        }
    }

    fn at(&self, target: Target) -> u64 {
        target.page + u64::from(target.line) * self.line
    }

    fn name(&self, access: &Access) -> Name {
        let line = access.address & !(self.line - 1);
        (access.port, access.tag, line, access.kind == AccessKind::Atomic)
    }

    fn latest(&self, line: u64) -> u32 {
        self.latest.get(&line).copied().unwrap_or(0)
    }

    fn in_memory(&self, line: u64) -> u32 {
        self.memory.get(&line).copied().unwrap_or(0)
    }

    /// Makes a version of a line for a store or an atomic.
    fn new_version(&mut self, line: u64) -> u32 {
        let latest = self.latest.entry(line).or_default();
        *latest += 1;
        *latest
    }

    /// Notes an access at its bank.
    #[cold]
    pub(super) fn arrives(&mut self, access: &Access) {
        if access.kind == AccessKind::Write {
            return;
        }
        let name = self.name(access);
        let least = self.latest(name.2);
        // If two cannot be distinguished, both may bring what the first may.
        self.least.entry(name).and_modify(|l| *l = least.min(*l)).or_insert(least);
    }

    /// Notes an access answered without data.
    #[cold]
    pub(super) fn gives_up(&mut self, access: &Access) {
        self.least.remove(&self.name(access));
    }

    /// Notes a sent fetch.
    #[cold]
    pub(super) fn fetches(&mut self, bank: u16, register: u32, page: u64, lines: u64) {
        debug_assert!(page.is_multiple_of(PAGE), "commands name pages");
        let lines = super::layout::bits(lines).map(|line| page + u64::from(line) * self.line);
        let data = lines.map(|line| (line, self.in_memory(line))).collect();
        self.fetched.insert((bank, register), data);
    }

    /// Notes a sent write command.
    #[cold]
    pub(super) fn writes(&mut self, bank: u16, slot: u32) {
        let data = self.slots.remove(&(bank, slot)).unwrap_or_default();
        self.memory.extend(data);
    }

    fn brought(&self, bank: u16, register: u32, line: u64) -> u32 {
        let data = self.fetched.get(&(bank, register));
        let found = data.and_then(|data| data.iter().find(|(l, _)| *l == line));
        found.map_or(0, |(_, version)| *version)
    }

    fn compare(&mut self, access: &Access, found: Option<u32>) {
        let name = self.name(access);
        let Some(least) = self.least.remove(&name) else { return };
        self.compared += 1;
        if found.is_some_and(|version| version >= least) {
            return;
        }
        self.wrong += 1;
        let line = name.2;
        self.first.get_or_insert_with(|| match found {
            Some(version) => format!("line {line:#x}: version {version} was read after version {least}"),
            None => format!("line {line:#x} was read and is not here, or not all of it"),
        });
    }

    /// Follows a data move of the cache.
    #[cold]
    pub(super) fn follow(&mut self, step: Move) {
        match step {
            Move::FromLine(target, access) => {
                let held = self.held.get(&self.at(target)).filter(|held| held.whole);
                let found = held.map(|held| held.version);
                self.compare(&access, found);
            }
            Move::FromFetch(register, target, access) => {
                let found = self.brought(target.bank, register, self.at(target));
                self.compare(&access, Some(found));
            }
            Move::Store(target, access) => {
                let line = self.at(target);
                let version = self.new_version(line);
                let whole = access.kind == AccessKind::Write && u64::from(access.bytes) == self.line;
                let held = self.held.entry(line).or_insert(Held { version, whole: false });
                held.version = version;
                held.whole |= whole;
            }
            Move::Fill(register, target) => {
                let line = self.at(target);
                let version = self.brought(target.bank, register, line);
                // Data already here are newer, and the line becomes complete.
                self.held.entry(line).or_insert(Held { version, whole: true }).whole = true;
            }
            Move::Unload(slot, target) => {
                let line = self.at(target);
                let version = self.held.get(&line).map_or(0, |held| held.version);
                self.slots.entry((target.bank, slot)).or_default().push((line, version));
            }
            Move::Through(slot, register, target, _) => {
                let line = self.at(target);
                let version = self.new_version(line);
                self.slots.entry((target.bank, slot)).or_default().push((line, version));
                let fetched = register.and_then(|register| self.fetched.get_mut(&(target.bank, register)));
                let brought = fetched.and_then(|data| data.iter_mut().find(|(l, _)| *l == line));
                if let Some(brought) = brought {
                    brought.1 = version;
                }
            }
            Move::Drop(target) => {
                self.held.remove(&self.at(target));
            }
            Move::Park(target) => {
                // Flash registers hand over the version in memory.
                let line = self.at(target);
                let version = self.in_memory(line);
                self.held.entry(line).or_insert(Held { version, whole: true }).whole = true;
            }
        }
    }

    /// Lines whose latest version is neither here nor in memory, and the number of lines stored to.
    pub(super) fn audit(&self) -> (usize, usize) {
        let here = |line: u64| self.held.get(&line).map_or(0, |held| held.version);
        let is_lost = |line: u64, latest: u32| self.in_memory(line).max(here(line)) != latest;
        let mut stored: Vec<(u64, u32)> = self.latest.iter().map(|(line, latest)| (*line, *latest)).collect();
        stored.sort_unstable();
        (stored.iter().filter(|(line, latest)| is_lost(*line, *latest)).count(), stored.len())
    }
}
