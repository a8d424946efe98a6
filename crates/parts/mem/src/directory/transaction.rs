//! Transactions of a line.

use super::{Directory, Event, Out};
use engine::{Cx, Mutant, planted_nth};
use proto::memory::{Absent, Access, AccessKind, CPU_LINE, Stage};
use proto::{Probe, Probed};

/// Invalid record number.
const NONE: u32 = u32::MAX;

/// Directory entry of a line: its sharers, and the waiting transactions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Bit mask of the cores that have a copy.
    pub(super) sharers: u64,
    /// True if the only sharer may change the line: it is exclusive or modified there.
    pub(super) exclusive: bool,
    /// Transaction under way, and the last one waiting; or none.
    first: u32,
    last: u32,
}

impl Line {
    const UNKNOWN: Line = Line { sharers: 0, exclusive: false, first: NONE, last: NONE };

    /// Returns true if a transaction is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.last != NONE
    }

    /// Removes a core that no longer has a copy.
    pub(super) fn forget(&mut self, core: u16) {
        self.sharers &= !(1 << core);
        // Exclusive copies are the only ones.
        self.exclusive &= self.sharers != 0;
    }

    /// Returns true if the entry has no content.
    pub(super) fn is_unused(&self) -> bool {
        self.sharers == 0 && self.first == NONE
    }
}

/// Purpose of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// A read or an own.
    Transaction,
    /// Access forwarded to the bank and back to its port.
    Pass,
    /// Line changed by an owner that now shares it: goes to the bank.
    Spill,
}

/// Location of a transaction's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Data {
    /// Not requested yet.
    Wanted,
    /// Requested from the bank.
    Looking,
    /// Available.
    Here,
    /// In flash.
    Signalled,
}

/// Request inside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) tile: u16,
    pub(super) purpose: Purpose,
    /// Access as sent by its core, except for its latest milestone.
    pub(super) access: Access,
    data: Data,
    /// Probes under way for the request.
    probes: u8,
    /// Next transaction of the line.
    next: u32,
}

impl Record {
    pub(super) fn new(tile: u16, purpose: Purpose, access: Access) -> Record {
        Record { tile, purpose, access, data: Data::Wanted, probes: 0, next: NONE }
    }

    fn owns(&self) -> bool {
        self.access.kind == AccessKind::Own
    }
}

impl Directory {
    /// Number of transactions that wait for the only copy of a line, held by a different core, without a probe under
    /// way. With no message under way, they would wait for ever. O(lines).
    pub fn unasked_owners(&self) -> u64 {
        let waits = |line: &&Line| {
            let record = &self.records[line.first];
            line.exclusive && record.probes == 0 && line.sharers & (1 << record.access.port) == 0
        };
        self.lines.values().filter(|line| line.is_busy()).filter(waits).count() as u64
    }

    /// Starts a transaction, or queues it for its line.
    pub(super) fn join(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let line = self.lines.entry(self.records[name].access.address).or_insert(Line::UNKNOWN);
        let before = std::mem::replace(&mut line.last, name);
        if before == NONE {
            line.first = name;
            self.begin(name, cx);
            self.proceed(name, cx);
        } else {
            self.records[before].next = name;
            self.stats.conflicts += 1;
        }
    }

    /// Sends a transaction's probes.
    fn begin(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let record = &mut self.records[name];
        let invalidate = record.owns();
        *(if invalidate { &mut self.stats.owns } else { &mut self.stats.reads }) += 1;
        let (tile, address) = (record.tile, record.access.address);
        let line = &self.lines[&address];
        if !line.exclusive && !invalidate {
            return;
        }
        let mut others = line.sharers & !(1 << record.access.port);
        if planted_nth(Mutant::SkippedProbe, 4) {
            others &= others.wrapping_sub(1);
        }
        record.probes = others.count_ones() as u8;
        let sent = if invalidate { &mut self.stats.invalidations } else { &mut self.stats.downgrades };
        *sent += u64::from(record.probes);
        while others != 0 {
            let core = others.trailing_zeros() as u16;
            others &= others - 1;
            cx.emit(Out::Probe(Probe { tag: name, core, tile, address, invalidate }));
        }
    }

    /// Advances a transaction as far as possible, and then those that waited for it.
    fn proceed(&mut self, mut name: u32, cx: &mut impl Cx<Event, Out>) {
        while self.is_ready(name, cx) {
            let next = self.finish(name, cx);
            if next == NONE {
                return;
            }
            self.begin(next, cx);
            name = next;
        }
    }

    /// Returns true if a transaction has everything it needs. Requests from the bank what no core can bring.
    fn is_ready(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let record = &self.records[name];
        let line = &self.lines[&record.access.address];
        if line.exclusive {
            // The owner answers a probe, or its write-back arrives. If the owner is the requester, it is the
            // write-back.
            return false;
        }
        let has_copy = line.sharers & (1 << record.access.port) != 0;
        if record.data == Data::Wanted && !(record.owns() && has_copy) {
            self.records[name].data = Data::Looking;
            self.look(name, AccessKind::Read, cx);
            return false;
        }
        record.data != Data::Looking && record.probes == 0
    }

    /// Handles the bank's answer to a transaction.
    pub(super) fn read(&mut self, name: u32, answer: &Access, cx: &mut impl Cx<Event, Out>) {
        let record = &mut self.records[name];
        debug_assert_eq!(record.data, Data::Looking, "it has asked");
        record.data = if answer.absent == Absent::Signalled { Data::Signalled } else { Data::Here };
        record.access.since = answer.since;
        self.proceed(name, cx);
    }

    /// Handles a core's answer to a probe.
    pub fn probed(&mut self, answer: Probed, cx: &mut impl Cx<Event, Out>) {
        let Probe { tag: name, core, address, invalidate, .. } = answer.probe;
        let record = &mut self.records[name];
        debug_assert!(record.probes > 0 && record.access.address == address, "a probe is answered once");
        record.probes -= 1;
        let spilled = answer.dirty && !invalidate;
        let passes = spilled && planted_nth(Mutant::StaleBank, 4);
        if answer.dirty {
            debug_assert_eq!(
                record.data,
                Data::Wanted,
                "the bank is not asked for what an owner may have changed"
            );
            record.data = if passes { Data::Wanted } else { Data::Here };
            self.stats.forwarded += 1;
            self.ledger.came += 1;
            self.ledger.passed_on += u64::from(invalidate);
        }
        let line = self.lines.get_mut(&address).expect("a line with a transaction is known");
        if !answer.found && line.exclusive {
            // An owner that has not reported dropping the line is writing it back, and stays the owner until that
            // arrives.
        } else if invalidate {
            // A core that waits for the right to change a shared copy may have dropped the copy without a report.
            line.forget(core);
        } else {
            line.exclusive = false;
        }
        if passes {
            self.proceed(name, cx);
            return self.spill(name, core, cx);
        }
        if spilled && !planted_nth(Mutant::LostSpill, 4) {
            self.spill(name, core, cx);
        }
        self.proceed(name, cx);
    }

    /// Sends a line to the bank that one core has changed and another reads.
    fn spill(&mut self, name: u32, core: u16, cx: &mut impl Cx<Event, Out>) {
        let Record { tile, access, .. } = self.records[name];
        let access = Access {
            kind: AccessKind::Write,
            bytes: CPU_LINE as u8,
            port: core,
            absent: Absent::Wait,
            since: cx.now(),
            ..access
        };
        let name = self.records.insert(Record::new(tile, Purpose::Spill, access));
        self.look(name, AccessKind::Write, cx);
    }

    /// Handles an owner's write-back. A transaction of the line may have waited for it.
    pub(super) fn write_back(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let Access { port, address, .. } = self.records[name].access;
        self.stats.write_backs += 1;
        self.ledger.came += 1;
        self.look(name, AccessKind::Write, cx);
        let line = self.lines.get_mut(&address).filter(|line| line.exclusive && line.sharers == 1 << port);
        let Some(line) = line else {
            unreachable!("core {port} writes {address:#x} back, but does not own it");
        };
        line.forget(port);
        let first = line.first;
        if first == NONE {
            self.lines.remove(&address);
        } else {
            self.proceed(first, cx);
        }
    }

    /// Answers a transaction, and notes the line's new sharers. Returns the next transaction.
    fn finish(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) -> u32 {
        let Record { tile, mut access, data, next, .. } = self.records[name];
        self.records.remove(name);
        self.tally.access(Stage::Coherence, &mut access, cx.now());
        let line = self.lines.get_mut(&access.address).expect("a line with a transaction is known");
        let copy = 1 << access.port;
        if data == Data::Signalled {
            access.absent = Absent::Signalled;
        } else {
            line.sharers |= copy;
            line.exclusive = line.sharers == copy;
            debug_assert!(line.exclusive || access.kind == AccessKind::Read, "the others have been probed");
            access.kind = if line.exclusive { AccessKind::Own } else { AccessKind::Read };
        }
        if data != Data::Here {
            access.bytes = 0;
        }
        self.stats.upgrades += u64::from(data == Data::Wanted);
        line.first = next;
        if next == NONE {
            line.last = NONE;
            if line.is_unused() {
                self.lines.remove(&access.address);
            }
        }
        cx.emit(Out::Answer { tile, access });
        next
    }

    /// Cores that have a copy of a line, and whether it is the only one, which may be changed.
    #[cfg(test)]
    pub(super) fn copies(&self, address: u64) -> (u64, bool) {
        self.lines.get(&address).map_or((0, false), |line| (line.sharers, line.exclusive))
    }

    /// Number of lines with an entry.
    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.lines.len()
    }
}
