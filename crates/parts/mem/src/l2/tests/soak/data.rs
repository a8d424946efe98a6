//! The data that the cache would move, as versions: each write and each atomic is one.

use crate::l2::Move;
use crate::l2::layout::{Target, bits};
use proptest::prelude::*;
use proto::memory::{Absent, Access, AccessKind, LINE, MemCommand};
use std::collections::{BTreeMap, BTreeSet};

/// An access's life, in steps of the soak.
struct Life {
    line: u64,
    kind: AccessKind,
    issued: u64,
    answered: Option<u64>,
    /// The version that it returned.
    value: Option<u32>,
    /// It did nothing: its page was in flash.
    signalled: bool,
}

/// What a line of the cache holds.
#[derive(Clone, Copy)]
struct Held {
    version: u32,
    whole: bool,
}

/// Versions everywhere. Zero is what memory held before; access `n` writes version `n + 1`.
#[derive(Default)]
pub(super) struct Data {
    step: u64,
    lives: Vec<Life>,
    memory: BTreeMap<u64, u32>,
    lines: BTreeMap<(u16, u64), (u64, Held)>,
    /// By bank and register, what the fetch has brought.
    fetched: BTreeMap<(u16, u32), BTreeMap<u64, u32>>,
    /// By bank and slot, what the next command takes.
    slots: BTreeMap<(u16, u32), BTreeMap<u64, u32>>,
    /// By command, what it carries.
    carried: BTreeMap<usize, BTreeMap<u64, u32>>,
    /// Lines and versions that atomics have found.
    found: BTreeSet<(u64, u32)>,
}

fn line_of(target: Target) -> u64 {
    target.page / LINE + u64::from(target.line)
}

fn lines_of(command: &MemCommand) -> impl Iterator<Item = u64> {
    let first = command.page / LINE;
    bits(command.lines).map(move |line| first + u64::from(line))
}

impl Data {
    /// An access goes in; its tag.
    pub(super) fn issue(&mut self, access: &Access) -> u32 {
        self.step += 1;
        let line = access.address / LINE;
        let (kind, issued) = (access.kind, self.step);
        self.lives.push(Life { line, kind, issued, answered: None, value: None, signalled: false });
        self.lives.len() as u32 - 1
    }

    fn held(&mut self, target: Target) -> Result<&mut Held, TestCaseError> {
        match self.lines.get_mut(&(target.bank, target.key)) {
            Some((_, held)) => Ok(held),
            None => Err(TestCaseError::fail(format!("{target:?} is not here"))),
        }
    }

    fn put(&mut self, target: Target, version: u32, whole: bool) {
        let old = self.lines.get(&(target.bank, target.key));
        // What is here already is newer, and becomes whole.
        let version = old.map_or(version, |(_, held)| held.version);
        let whole = whole || old.is_some_and(|(_, held)| held.whole);
        self.lines.insert((target.bank, target.key), (line_of(target), Held { version, whole }));
    }

    /// The cache moves data.
    pub(super) fn replay(&mut self, step: Move) -> Result<(), TestCaseError> {
        match step {
            Move::FromLine(target, access) => {
                let held = *self.held(target)?;
                prop_assert!(held.whole, "{access:?} gets a part of a line");
                self.lives[access.tag as usize].value = Some(held.version);
            }
            Move::FromFetch(register, target, access) => {
                let value = self.fetched[&(target.bank, register)][&line_of(target)];
                self.lives[access.tag as usize].value = Some(value);
            }
            Move::Store(target, access) => {
                let full = u64::from(access.bytes) == LINE;
                self.put(target, 0, full);
                self.held(target)?.version = access.tag + 1;
            }
            Move::Fill(register, target) => {
                let version = self.fetched[&(target.bank, register)][&line_of(target)];
                self.put(target, version, true);
            }
            Move::Unload(slot, target) => {
                let version = self.held(target)?.version;
                self.slots.entry((target.bank, slot)).or_default().insert(line_of(target), version);
            }
            Move::Through(slot, register, target, access) => {
                let (line, version) = (line_of(target), access.tag + 1);
                self.slots.entry((target.bank, slot)).or_default().insert(line, version);
                if let Some(register) = register {
                    self.fetched.get_mut(&(target.bank, register)).expect("a fetch").insert(line, version);
                }
            }
            Move::Drop(target) => {
                self.lines.remove(&(target.bank, target.key));
            }
            Move::Park(target) => {
                // Flash registers hand over what memory holds now.
                let version = self.memory.get(&line_of(target)).copied().unwrap_or(0);
                self.put(target, version, true);
            }
        }
        Ok(())
    }

    /// The cache sends a command.
    pub(super) fn send(&mut self, command: &MemCommand, n: usize) {
        if command.write {
            let data = self.slots.remove(&(command.port, command.tag)).expect("a write has data");
            assert!(data.keys().copied().eq(lines_of(command)), "a write carries its lines");
            self.carried.insert(n, data);
        }
    }

    /// Memory gets to a command.
    pub(super) fn apply(&mut self, command: &MemCommand, n: usize) {
        if command.write {
            self.memory.extend(self.carried.remove(&n).expect("it was sent"));
        } else {
            let read = |line| (line, self.memory.get(&line).copied().unwrap_or(0));
            self.carried.insert(n, lines_of(command).map(read).collect());
        }
    }

    /// A command comes back.
    pub(super) fn arrive(&mut self, command: &MemCommand, n: usize) {
        if !command.write {
            let data = self.carried.remove(&n).expect("memory got to it");
            if command.absent == Absent::Signalled {
                return;
            }
            self.fetched.insert((command.port, command.tag), data);
        }
    }

    /// Whether a read issued at `issued` may return a version: no write that was surely later is surely earlier than the
    /// read.
    fn check(&self, line: u64, version: u32, issued: u64) -> Result<(), TestCaseError> {
        let acknowledged = match version.checked_sub(1) {
            None => 0,
            Some(tag) => {
                prop_assert_eq!(self.lives[tag as usize].line, line, "another line's data");
                self.lives[tag as usize].answered.unwrap_or(u64::MAX)
            }
        };
        let over = self.lives.iter().position(|life| {
            life.line == line
                && matches!(life.kind, AccessKind::Write | AccessKind::Atomic)
                && !life.signalled
                && life.issued > acknowledged
                && life.answered.is_some_and(|answered| answered < issued)
        });
        prop_assert!(over.is_none(), "line {line}: version {version} was overwritten by {over:?}");
        Ok(())
    }

    /// An access comes back.
    pub(super) fn answer(&mut self, access: &Access) -> Result<(), TestCaseError> {
        self.step += 1;
        let life = &mut self.lives[access.tag as usize];
        prop_assert!(life.answered.replace(self.step).is_none(), "answered twice");
        let (line, issued) = (life.line, life.issued);
        if life.kind == AccessKind::Write {
            return Ok(());
        }
        if access.absent == Absent::Signalled {
            prop_assert!(life.value.is_none(), "an answer without data took some");
            life.signalled = true;
            return Ok(());
        }
        let value = life.value.expect("a read takes its value from somewhere");
        if life.kind == AccessKind::Atomic {
            prop_assert!(
                self.found.insert((line, value)),
                "two atomics found version {value} of line {line}"
            );
        }
        self.check(line, value, issued)
    }

    /// Accesses that have come back.
    pub(super) fn answered(&self) -> u64 {
        self.lives.iter().filter(|life| life.answered.is_some()).count() as u64
    }

    /// At the end memory holds everything, and the cache nothing.
    pub(super) fn finish(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.lives.iter().all(|life| life.answered.is_some()), "an answer is lost");
        prop_assert!(self.lines.is_empty(), "lines of purged applications are here");
        for line in self.lives.iter().map(|life| life.line).collect::<BTreeSet<u64>>() {
            self.check(line, self.memory.get(&line).copied().unwrap_or(0), u64::MAX)?;
        }
        Ok(())
    }
}
