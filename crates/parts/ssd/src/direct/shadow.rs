//! Shadow of flash as memory: a version with each write, which travels with the data of every line.
//!
//! A read has to return, for each line, the version written by the last write command before it, or a later one. Lines
//! taken by the shared cache are not followed until they are written back.

use super::array::Op;
use ftl::log::{Blocks, Spot};
use nand::registers::Registers;
use proto::memory::{Lines, MemCommand, PAGE};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Version of each line of a page; zero is the initial data.
type Versions = [u32; Lines::MOST];

const UNWRITTEN: Versions = [0; Lines::MOST];

fn lines_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..Lines::MOST).filter(move |line| mask >> line & 1 == 1)
}

/// Versions of a page as known to the cores.
#[derive(Clone, Copy, Debug)]
struct Known {
    written: Versions,
    parked: u64,
}

/// Versions of a page without any write.
const UNKNOWN: Known = Known { written: UNWRITTEN, parked: 0 };

/// Command inside: the version a write stores; or the minimum a read may return, then the version it returns.
#[derive(Clone, Copy, Debug)]
struct Follow {
    page: u64,
    versions: Versions,
    brings: Versions,
    /// Checked lines.
    lines: u64,
}

/// Shadow of the data of every line.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// Version of the latest write command.
    latest: u32,
    known: FxHashMap<u64, Known>,
    commands: BTreeMap<u32, Follow>,
    registers: FxHashMap<u32, Versions>,
    array: BTreeMap<(u32, Spot), Versions>,
    /// Versions in the data register for a read.
    sensed: FxHashMap<u32, Versions>,
    /// Lines of reads checked, and the wrong ones.
    pub(super) checked: u64,
    pub(super) wrong: u64,
}

impl Shadow {
    /// Follows an arriving command.
    pub(super) fn arrived(&mut self, id: u32, command: &MemCommand) {
        let page = command.page / PAGE;
        let known = self.known.entry(page).or_insert(UNKNOWN);
        let versions = if command.write {
            self.latest += 1;
            known.parked &= !command.lines;
            for line in lines_of(command.lines) {
                known.written[line] = self.latest;
            }
            [self.latest; Lines::MOST]
        } else {
            known.written
        };
        let lines = if command.write { command.lines } else { command.lines & !known.parked };
        self.commands.insert(id, Follow { page, versions, brings: UNWRITTEN, lines });
    }

    /// Checks a completed command.
    pub(super) fn done(&mut self, id: u32, command: &MemCommand) {
        let Some(follow) = self.commands.remove(&id) else { return };
        if command.write {
            return;
        }
        for line in lines_of(follow.lines) {
            self.checked += 1;
            let fits = (follow.versions[line]..=self.latest).contains(&follow.brings[line]);
            self.wrong += u64::from(!fits);
        }
    }

    /// Follows the lines of a write into a register.
    pub(super) fn stored(&mut self, id: u32, register: u32, command: &MemCommand) {
        let Some(follow) = self.commands.get(&id) else { return };
        let versions = self.registers.entry(register).or_insert(UNWRITTEN);
        for line in lines_of(command.lines) {
            versions[line] = follow.versions[line];
        }
    }

    /// Versions of `below` overlaid with the lines in registers, the newest on top.
    fn on_top(&self, page: u64, below: Versions, registers: &Registers) -> Versions {
        let (mut versions, mut taken) = (below, 0);
        for register in registers.holding(page) {
            let lines = registers.get(register).lines & !taken;
            for line in lines_of(lines) {
                versions[line] = self.registers[&register][line];
            }
            taken |= lines;
        }
        versions
    }

    /// Follows a read served by registers alone.
    pub(super) fn held(&mut self, id: u32, page: u64, registers: &Registers) {
        let brings = self.on_top(page, UNWRITTEN, registers);
        if let Some(follow) = self.commands.get_mut(&id) {
            follow.brings = brings;
        }
    }

    /// Follows a page sensed for a read.
    pub(super) fn sensed(&mut self, id: u32, name: u32, op: &Op, blocks: &Blocks, registers: &Registers) {
        let spot = blocks.locate(op.place).0;
        let page = self.array.get(&(op.place.plane, spot)).copied().unwrap_or(UNWRITTEN);
        self.sensed.insert(name, page);
        self.joined(id, name, op.page, registers);
    }

    /// Follows a read that joins the contents of a data register.
    pub(super) fn joined(&mut self, id: u32, name: u32, page: u64, registers: &Registers) {
        let brings = self.on_top(page, self.sensed[&name], registers);
        if let Some(follow) = self.commands.get_mut(&id) {
            follow.brings = brings;
        }
    }

    /// Follows the program of a register over the old copy of its page.
    pub(super) fn programmed(
        &mut self,
        plane: u32,
        old: Spot,
        new: Spot,
        register: u32,
        registers: &Registers,
    ) {
        let mut page = self.array.get(&(plane, old)).copied().unwrap_or(UNWRITTEN);
        for line in lines_of(registers.get(register).lines) {
            page[line] = self.registers[&register][line];
        }
        self.array.insert((plane, new), page);
    }

    /// Follows a page moved by a merge.
    pub(super) fn copied(&mut self, plane: u32, from: Spot, to: Spot) {
        let page = self.array.get(&(plane, from)).copied().unwrap_or(UNWRITTEN);
        self.array.insert((plane, to), page);
    }

    /// Follows the erase of a block.
    pub(super) fn erased(&mut self, plane: u32, block: u32) {
        let spots = |page| (plane, Spot { block, page });
        let gone: Vec<_> = self.array.range(spots(0)..=spots(u32::MAX)).map(|(spot, _)| *spot).collect();
        for spot in gone {
            self.array.remove(&spot);
        }
    }

    /// Follows lines of a page taken by the shared cache.
    pub(super) fn parked(&mut self, page: u64, lines: u64) {
        self.known.entry(page).or_insert(UNKNOWN).parked |= lines;
        for follow in self.commands.values_mut().filter(|f| f.page == page) {
            follow.lines &= !lines;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct::array::Kind;
    use engine::Time;
    use ftl::log::mapping::Place;
    use nand::registers::State;
    use proto::memory::Absent;

    fn command(write: bool) -> MemCommand {
        let (page, lines) = (0, 0b10u64);
        MemCommand {
            from: proto::Port::default(),
            tag: 0,
            page,
            lines,
            write,
            demand: true,
            app: 0,
            port: 0,
            pc: 0,
            absent: Absent::Wait,
            since: Time::ZERO,
        }
    }

    /// Writes and programs a line; then a read looks for it in the log block or, wrongly, at its former place.
    fn read_after_program(finds_log: bool) -> u64 {
        let spec = crate::direct::tests::small();
        let packages = spec.geometry.packages();
        let fresh = || Blocks::new(&spec.mapping, 4, 16, 8);
        let (mut blocks, mut registers) = (fresh(), Registers::new(&packages, 2, true));
        let (mut shadow, place) = (Shadow::default(), Place { plane: 0, slot: 0, index: 0 });
        shadow.arrived(0, &command(true));
        let register = registers.take_free(&packages, 0).expect("free");
        registers.fill(register, 0, 0b10, 0);
        shadow.stored(0, register, &command(true));
        shadow.done(0, &command(true));
        registers.leave(register, State::Leaving);
        let (old, _) = blocks.locate(place);
        let (_, new) = blocks.append(place);
        shadow.programmed(0, old, new, register, &registers);
        registers.release(register);
        shadow.arrived(1, &command(false));
        let op = Op::new(Kind::Read, place, 0, 0b10, 1);
        let looked_up = if finds_log { &blocks } else { &fresh() };
        shadow.sensed(1, 0, &op, looked_up, &registers);
        shadow.done(1, &command(false));
        assert_eq!(shadow.checked, 1);
        shadow.wrong
    }

    #[test]
    fn a_stale_copy_is_noticed() {
        assert_eq!((read_after_program(true), read_after_program(false)), (0, 1));
    }
}
