//! Oracle: the data that a read may return.
//!
//! NVMe does not order outstanding commands (NVM Express 1.4, section 6.3). Per sector, a read may return the data
//! acknowledged last when it was submitted, or any write that was outstanding during its life. Of writes that
//! overlapped, either may be the last; the first read after all of them pins the winner. A map unit deallocated as a
//! whole reads as zeroes in this device (DLFEAT 001b, section 6.7.1.1). If a deallocation covers a unit in part, the
//! old data may stay or zeroes appear, the same for every read until the next write.
//!
//! Each unit therefore keeps the writes that may still be the last one of some sector. An acknowledged write rules out
//! those that had been acknowledged before it was submitted; a read rules out those that it shows to be older.

use super::data::{Sectors, Stamps, Version};
use proto::Lpn;
use rustc_hash::FxHashMap;

/// Sequence number of a write that is not acknowledged yet.
pub(super) const OUTSTANDING: u64 = u64::MAX;

/// Write, or deallocation, that may be the last one of its `sectors`.
#[derive(Clone, Debug)]
struct Write {
    command: u32,
    version: Version,
    sectors: Sectors,
    submitted: u64,
    acknowledged: u64,
    /// True for a deallocation of a partial unit: the old data may stay.
    may_keep: bool,
}

/// Read under way.
#[derive(Clone, Debug)]
struct Read {
    command: u32,
    submitted: u64,
    sectors: Sectors,
    /// Versions that the read may return.
    legal: Vec<(Version, Sectors)>,
}

#[derive(Clone, Debug, Default)]
struct Unit {
    writes: Vec<Write>,
    reads: Vec<Read>,
}

impl Unit {
    fn untouched(initially: &Stamps) -> Unit {
        let mut writes = Vec::new();
        initially.each(|version, sectors| {
            let (command, submitted, acknowledged) = (u32::MAX, 0, 0);
            writes.push(Write { command, version, sectors, submitted, acknowledged, may_keep: false });
        });
        Unit { writes, reads: Vec::new() }
    }
}

/// Data that may be read, for each logical unit that has been touched.
#[derive(Default)]
pub(super) struct Oracle {
    units: FxHashMap<Lpn, Unit>,
    /// Submissions and acknowledgements so far: the order seen by the host.
    sequence: u64,
}

impl Oracle {
    /// Advances the sequence for a submitted or acknowledged command; its units follow.
    pub(super) fn tick(&mut self) {
        self.sequence += 1;
    }

    /// Registers a unit with its initial contents.
    pub(super) fn touch(&mut self, lpn: Lpn, initially: impl FnOnce() -> Stamps) {
        self.units.entry(lpn).or_insert_with(|| Unit::untouched(&initially()));
    }

    /// Returns true if a command has touched a unit.
    pub(super) fn knows(&self, lpn: Lpn) -> bool {
        self.units.contains_key(&lpn)
    }

    /// Units that a command has touched, in arbitrary order.
    pub(super) fn known(&self) -> impl Iterator<Item = Lpn> {
        self.units.keys().copied()
    }

    /// Notes a submitted write of some sectors. With `may_keep`, it is a deallocation of a partial unit, which need not
    /// change anything.
    pub(super) fn begin_write(
        &mut self,
        lpn: Lpn,
        command: u32,
        version: Version,
        sectors: Sectors,
        may_keep: bool,
    ) {
        let submitted = self.sequence;
        let unit = self.units.entry(lpn).or_default();
        unit.reads.iter_mut().for_each(|r| r.legal.push((version, sectors)));
        unit.writes.push(Write { command, version, sectors, submitted, acknowledged: OUTSTANDING, may_keep });
    }

    /// Notes an acknowledged write.
    pub(super) fn end_write(&mut self, lpn: Lpn, command: u32) {
        let Some(unit) = self.units.get_mut(&lpn) else { return };
        let done = |w: &Write| w.command == command && w.acknowledged == OUTSTANDING;
        let Some(at) = unit.writes.iter().position(done) else { return };
        unit.writes[at].acknowledged = self.sequence;
        let new = unit.writes[at].clone();
        for old in &mut unit.writes {
            // Of two deallocations, the younger one covers everything that the older one did.
            if old.acknowledged < new.submitted && (!new.may_keep || old.version == new.version) {
                old.sectors &= !new.sectors;
            }
        }
        unit.writes.retain(|w| w.sectors != 0);
    }

    /// Removes a refused write, which had no effect, whatever was promised.
    pub(super) fn cancel_write(&mut self, lpn: Lpn, command: u32) {
        let Some(unit) = self.units.get_mut(&lpn) else { return };
        unit.writes.retain(|w| w.command != command || w.acknowledged != OUTSTANDING);
        unit.reads.retain(|r| r.command != command);
    }

    /// Notes a submitted read of some sectors.
    pub(super) fn begin_read(&mut self, lpn: Lpn, command: u32, sectors: Sectors) {
        let submitted = self.sequence;
        let unit = self.units.entry(lpn).or_default();
        let legal = unit.writes.iter().map(|w| (w.version, w.sectors)).collect();
        unit.reads.push(Read { command, submitted, sectors, legal });
    }

    /// Checks an acknowledged read against the data found. Returns the first forbidden version, with its sectors.
    pub(super) fn end_read(
        &mut self,
        lpn: Lpn,
        command: u32,
        found: Option<&Stamps>,
    ) -> Option<(Version, Sectors)> {
        let unit = self.units.get_mut(&lpn)?;
        let at = unit.reads.iter().position(|r| r.command == command)?;
        let read = unit.reads.swap_remove(at);
        let mut illegal = None;
        found?.each(|version, sectors| {
            let sectors = sectors & read.sectors;
            let wrong = sectors & !legal(&read.legal, version);
            if wrong != 0 {
                illegal.get_or_insert((version, wrong));
            }
            unit.pin(version, sectors, read.submitted);
        });
        unit.writes.retain(|w| w.sectors != 0);
        illegal
    }

    /// Notes a submitted write whose completion promises its data to be on flash: flash may then hold this data, or
    /// that of writes outstanding with it or later.
    pub(super) fn begin_durable(&mut self, lpn: Lpn, command: u32, sectors: Sectors) {
        let submitted = self.sequence;
        let unit = self.units.entry(lpn).or_default();
        let outstanding = unit.writes.iter().filter(|w| w.acknowledged == OUTSTANDING);
        let legal = outstanding.map(|w| (w.version, w.sectors)).collect();
        unit.reads.push(Read { command, submitted, sectors, legal });
    }

    /// Ends an invisible read with the data it would have found: later reads are not affected. Returns the first
    /// forbidden version, with its sectors.
    pub(super) fn end_flush(&mut self, lpn: Lpn, command: u32, found: &Stamps) -> Option<(Version, Sectors)> {
        let unit = self.units.get_mut(&lpn)?;
        let at = unit.reads.iter().position(|r| r.command == command)?;
        let read = unit.reads.swap_remove(at);
        let mut illegal = None;
        found.each(|version, sectors| {
            let wrong = sectors & read.sectors & !legal(&read.legal, version);
            if wrong != 0 {
                illegal.get_or_insert((version, wrong));
            }
        });
        illegal
    }

    /// Returns true if a unit can hold only this data, and no write of it is outstanding.
    pub(super) fn is_settled(&self, lpn: Lpn, found: &Stamps, all: Sectors) -> bool {
        let Some(unit) = self.units.get(&lpn) else { return true };
        unit.writes.iter().all(|w| {
            let mut same = 0;
            found.each(|version, sectors| same |= if version == w.version { sectors } else { 0 });
            w.acknowledged != OUTSTANDING && w.sectors & all & !same == 0
        })
    }

    /// Versions that a unit may hold now, with the possible sectors of each.
    pub(super) fn candidates(&self, lpn: Lpn) -> impl Iterator<Item = (Version, Sectors)> {
        self.units.get(&lpn).into_iter().flat_map(|unit| unit.writes.iter().map(|w| (w.version, w.sectors)))
    }

    /// Sectors of a unit that may hold `version` now; `None` for a unit that was never touched.
    pub(super) fn legal_now(&self, lpn: Lpn, version: Version) -> Option<Sectors> {
        let unit = self.units.get(&lpn)?;
        Some(unit.writes.iter().filter(|w| w.version == version).fold(0, |all, w| all | w.sectors))
    }
}

impl Unit {
    /// Notes that a read submitted at `since` has found `version` in `sectors`: among the writes that were over by
    /// then, it is the last.
    fn pin(&mut self, version: Version, sectors: Sectors, since: u64) {
        let over = |w: &Write| w.acknowledged < since;
        let same = self.writes.iter().filter(|w| over(w) && w.version == version);
        let pinned = sectors & same.fold(0, |all, w| all | w.sectors);
        for other in self.writes.iter_mut().filter(|w| over(w) && w.version != version) {
            other.sectors &= !pinned;
        }
    }
}

fn legal(list: &[(Version, Sectors)], version: Version) -> Sectors {
    list.iter().filter(|(v, _)| *v == version).fold(0, |all, (_, s)| all | s)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Lpn = Lpn(7);
    const ALL: Sectors = Sectors::MAX;

    /// Test host that names its commands; a read returns a version for the whole unit.
    struct Host {
        oracle: Oracle,
    }

    fn v(n: u64) -> Version {
        Version::of_write(n)
    }

    impl Host {
        fn new() -> Host {
            let mut oracle = Oracle::default();
            oracle.touch(UNIT, || Stamps::Whole(Version::BASE));
            Host { oracle }
        }
        fn write(&mut self, command: u32, sectors: Sectors) {
            self.oracle.tick();
            self.oracle.begin_write(UNIT, command, v(u64::from(command)), sectors, false);
        }
        fn trim(&mut self, command: u32) {
            self.oracle.tick();
            self.oracle.begin_write(UNIT, command, Version::ZERO, ALL, true);
        }
        fn acknowledge(&mut self, command: u32) {
            self.oracle.tick();
            self.oracle.end_write(UNIT, command);
        }
        fn read(&mut self, command: u32) {
            self.oracle.tick();
            self.oracle.begin_read(UNIT, command, ALL);
        }
        fn returns(&mut self, command: u32, version: Version) -> bool {
            self.oracle.tick();
            self.oracle.end_read(UNIT, command, Some(&Stamps::Whole(version))).is_none()
        }
        /// Performs a read that does not overlap any command.
        fn reads(&mut self, version: Version) -> bool {
            self.read(1000);
            self.returns(1000, version)
        }
        fn wrote(&mut self, command: u32) {
            self.write(command, ALL);
            self.acknowledge(command);
        }
    }

    #[test]
    fn a_read_returns_the_last_acknowledged_write() {
        let mut host = Host::new();
        assert!(host.reads(Version::BASE));
        host.wrote(1);
        assert!(!host.reads(Version::BASE));
        assert!(host.reads(v(1)));
        host.wrote(2);
        assert!(!host.reads(v(1)));
        assert!(!host.reads(v(3)));
        assert!(host.reads(v(2)));
    }

    #[test]
    fn a_read_returns_any_write_outstanding_in_its_life() {
        for (answer, fine) in [(v(1), true), (v(2), true), (v(3), true), (Version::BASE, false)] {
            let mut host = Host::new();
            host.wrote(1);
            host.write(2, ALL);
            host.read(9);
            host.acknowledge(2);
            host.write(3, ALL);
            host.acknowledge(3);
            assert_eq!(host.returns(9, answer), fine, "{answer}");
        }
    }

    #[test]
    fn an_outstanding_write_may_show_or_not() {
        let mut host = Host::new();
        host.write(1, ALL);
        assert!(host.reads(v(1)) && host.reads(Version::BASE));
        host.acknowledge(1);
        assert!(!host.reads(Version::BASE));
    }

    #[test]
    fn overlapping_writes_end_in_either_order_until_a_read_pins_one() {
        for (winner, loser) in [(1, 2), (2, 1)] {
            let mut host = Host::new();
            host.write(1, ALL);
            host.write(2, ALL);
            host.acknowledge(1);
            host.acknowledge(2);
            assert!(host.reads(v(winner)));
            assert!(!host.reads(v(loser)));
            assert!(host.reads(v(winner)));
        }
    }

    #[test]
    fn a_read_beside_a_third_write_pins_the_first_two() {
        let mut host = Host::new();
        host.write(1, ALL);
        host.write(2, ALL);
        host.acknowledge(2);
        host.acknowledge(1);
        host.write(3, ALL);
        assert!(host.reads(v(1)));
        assert!(!host.reads(v(2)));
        assert!(host.reads(v(3)));
    }

    #[test]
    fn a_chain_of_overlaps_rules_out_what_is_surely_older() {
        // 1 overlaps 2, 2 overlaps 3, 3 begins after 1 has ended.
        let mut host = Host::new();
        host.write(1, ALL);
        host.write(2, ALL);
        host.acknowledge(1);
        host.write(3, ALL);
        host.acknowledge(2);
        host.acknowledge(3);
        assert_eq!(host.oracle.legal_now(UNIT, v(1)), Some(0));
        assert_eq!(host.oracle.legal_now(UNIT, v(2)), Some(ALL));
        assert_eq!(host.oracle.legal_now(UNIT, v(3)), Some(ALL));
    }

    #[test]
    fn a_deallocation_leaves_old_data_or_zeroes_and_is_stable() {
        for (first, second) in [(v(1), Version::ZERO), (Version::ZERO, v(1))] {
            let mut host = Host::new();
            host.wrote(1);
            host.trim(2);
            host.acknowledge(2);
            assert!(!host.reads(Version::BASE));
            assert!(host.reads(first));
            assert!(!host.reads(second));
            host.wrote(3);
            assert!(host.reads(v(3)));
        }
    }

    #[test]
    fn deallocations_do_not_pile_up() {
        let mut host = Host::new();
        for command in 0..100 {
            host.trim(command);
            host.acknowledge(command);
        }
        assert_eq!(host.oracle.units[&UNIT].writes.len(), 2);
    }

    #[test]
    fn sectors_are_kept_apart() {
        let mut host = Host::new();
        host.wrote(1);
        host.write(2, 0b0110);
        host.acknowledge(2);
        host.read(9);
        host.oracle.tick();
        let torn = Stamps::Whole(v(1)).with(v(2), 0b0010);
        assert_eq!(host.oracle.end_read(UNIT, 9, Some(&torn)), Some((v(1), 0b0100)));
        host.read(9);
        host.oracle.tick();
        let whole = Stamps::Whole(v(1)).with(v(2), 0b0110);
        assert_eq!(host.oracle.end_read(UNIT, 9, Some(&whole)), None);
    }
}
