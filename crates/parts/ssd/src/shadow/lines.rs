//! Buffered data, and the promises about it. The device calls these functions where its buffer takes data, gives data,
//! and flushes.
//!
//! The buffer decides which of a unit's sectors it has: every call that takes data from here names them. Sectors that
//! it claims but never received read as an erased page.

use super::Shadow;
use super::data::{Content, Sectors, Stamps, Version};
use ftl::buffer::Sets;
use ftl::page_map::Ftl;
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

impl Shadow {
    /// Takes over an initially filled buffer: data not on flash is treated as just written.
    pub(crate) fn takes_over(&mut self, buffer: &Sets, ftl: &Ftl) {
        let unflushed: FxHashMap<Lpn, Sectors> = buffer.not_durable().into_iter().collect();
        for lpn in buffer.held() {
            let mut line = self.on_flash(lpn, ftl);
            if let Some(sectors) = unflushed.get(&lpn) {
                let version = Version::of_write(self.writes);
                self.writes += 1;
                self.oracle.tick();
                self.oracle.touch(lpn, || self.truth.initially(lpn, ftl));
                self.oracle.begin_write(lpn, u32::MAX, version, *sectors, false);
                self.oracle.tick();
                self.oracle.end_write(lpn, u32::MAX);
                self.unsettled.insert(lpn);
                line = line.with(version, *sectors);
            }
            if buffer.is_flushing(lpn) {
                // The other sectors have been read from flash.
                self.leaving.insert(lpn, (Sectors::MAX, line.clone()));
            }
            self.lines.insert(lpn, line);
        }
    }

    /// Notes that a line has taken a unit's sectors from a write command.
    pub fn line_takes(&mut self, id: u32, lpn: Lpn) {
        let Some(inside) = self.commands.get(id as usize).and_then(Option::as_ref) else { return };
        let sectors = self.sectors(&inside.command, lpn.0);
        let version = inside.version;
        self.unsettled.insert(lpn);
        let line = self.lines.entry(lpn).or_insert(Stamps::Whole(Version::BLANK));
        *line = line.with(version, sectors);
    }

    /// Notes that a line has taken these sectors of a unit from the read that has just finished. A page is sensed as a
    /// whole: data beside the requested units is unchanged.
    pub(crate) fn line_fills(&mut self, lpn: Lpn, slot: Slot, sectors: Sectors, ftl: &Ftl) {
        let landed = self.landed.iter().find(|(s, _)| *s == slot).map(|(_, content)| content.clone());
        let landed = landed.unwrap_or_else(|| self.truth.read(slot, ftl)).seen_as(lpn);
        let line = self.lines.entry(lpn).or_insert(Stamps::Whole(Version::BLANK));
        *line = line.under(&landed, sectors);
    }

    /// Notes that a command finds these sectors of a unit in the buffer; the rest comes from flash.
    pub fn line_gives(&mut self, id: u32, lpn: Lpn, here: Sectors) {
        let line = self.lines.get(&lpn).cloned().unwrap_or(Stamps::Whole(Version::BLANK));
        if let Some(inside) = self.inside(id) {
            inside.over.push((lpn, here, line));
        }
        self.gets(id, lpn, Stamps::Whole(Version::BLANK));
    }

    /// Notes that a unit begins its way to flash, with these sectors.
    pub fn line_leaves(&mut self, lpn: Lpn, present: Sectors) {
        let line = self.lines.get(&lpn).cloned().unwrap_or(Stamps::Whole(Version::BLANK));
        self.leaving.insert(lpn, (present, line));
    }

    /// Notes a queued read of the rest of a unit on its way to flash.
    pub fn line_fetches(&mut self, name: u32, slot: Slot) {
        self.errand(name).collect(std::iter::once(slot));
    }

    /// Notes a queued read of units that stay in the controller's memory.
    pub(crate) fn fetches(&mut self, name: u32, slots: impl Iterator<Item = Slot>) {
        self.errand(name).collect(slots);
    }

    /// Notes that the rest of a unit on its way to flash has been read.
    pub fn line_is_completed(&mut self, lpn: Lpn, slot: Slot) {
        let Some((_, content)) = self.landed.iter().find(|(s, _)| *s == slot) else { return };
        let old = content.clone().seen_as(lpn);
        if let Some((present, line)) = self.leaving.get_mut(&lpn) {
            *line = old.under(line, *present);
            *present = Sectors::MAX;
        }
    }

    /// Notes a queued program of units on their way to flash. Sectors that were not read are zeroes: the unit had no
    /// data.
    pub fn line_writes(&mut self, name: u32, units: &[Lpn]) {
        let mut data = Vec::with_capacity(units.len());
        for lpn in units {
            match self.leaving.remove(lpn) {
                Some((present, line)) => {
                    let stamps = Stamps::Whole(Version::ZERO).under(&line, present);
                    data.push(Content::new(*lpn, stamps));
                }
                None => self.violation(format!("unit {} is flushed, but has not left the buffer", lpn.0)),
            }
        }
        self.carries(name, data);
    }

    /// Forgets a unit's line, as a device does that loses it.
    pub fn line_is_lost(&mut self, lpn: Lpn) {
        self.lines.remove(&lpn);
    }
}

// Promises of completions about a power cut: the data is on flash, whatever the buffer holds.
//
// A flush promises everything acknowledged before its submission. To the oracle, it is a read of every unit that has
// been in the buffer; the result is what flash holds when the flush completes. A durable write promises its own data.

impl Shadow {
    /// Contents of a unit after a power cut.
    pub(super) fn on_flash(&self, lpn: Lpn, ftl: &Ftl) -> Stamps {
        match ftl.lookup(lpn) {
            Some(slot) => self.truth.read(slot, ftl).seen_as(lpn),
            None => Stamps::Whole(Version::ZERO),
        }
    }

    /// Units promised by a flush that has been submitted.
    pub(super) fn promises(&mut self, id: u32) -> Vec<Lpn> {
        let all = self.all_sectors();
        for lpn in &self.unsettled {
            self.oracle.begin_read(*lpn, id, all);
        }
        self.unsettled.iter().copied().collect()
    }

    /// Compares one unit promised by a completed flush or durable write.
    pub(super) fn keeps_promise(&mut self, lpn: Lpn, id: u32, ftl: &Ftl) {
        let found = self.on_flash(lpn, ftl);
        if let Some((version, sectors)) = self.oracle.end_flush(lpn, id, &found) {
            self.broken(lpn, version, sectors);
        }
        if self.oracle.is_settled(lpn, &found, self.all_sectors()) {
            self.unsettled.remove(&lpn);
        }
    }

    fn broken(&mut self, lpn: Lpn, version: Version, sectors: Sectors) {
        let sector = sectors.trailing_zeros();
        let unit = lpn.0;
        self.violation(format!(
            "the promised data is missing: flash holds {version} in sector {sector} of unit {unit}"
        ));
    }

    /// Sectors of a whole unit.
    pub(super) fn all_sectors(&self) -> Sectors {
        Sectors::MAX >> (128 - self.unit_bytes / super::SECTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::soak::{Fill, combinations};
    use ftl::page_map::space::Stream;
    use nand::dies::op::{Class, Op, OpKind};
    use proto::{Command, IoOp, Status};

    const UNIT: u64 = 4096;
    const LPN: Lpn = Lpn(2);

    /// Shadow and FTL of a full device, without a device: the test acts as the device.
    struct Stage {
        ftl: Ftl,
        shadow: Shadow,
    }

    impl Stage {
        fn new() -> Stage {
            let any = combinations(1).into_iter().find(|c| c.map_unit == UNIT && c.page == 4 * UNIT);
            let mut combination = any.expect("pairs are covered");
            combination.fill = Fill::Sequential;
            let ftl = combination.build(1).expect("it can be built").ftl;
            Stage { shadow: Shadow::new(&ftl, None), ftl }
        }
        fn enters(&mut self, id: u32, op: IoOp, sectors: std::ops::Range<u64>) {
            let offset = LPN.0 * UNIT + sectors.start * 512;
            let bytes = (sectors.end - sectors.start) * 512;
            let command = Command::new(id, op, offset, bytes);
            self.shadow.enters(id, &command, false, &self.ftl);
        }
        fn leaves(&mut self, id: u32) {
            self.shadow.leaves(id, Status::Success, &self.ftl);
        }
        fn wrote(&mut self, id: u32, sectors: std::ops::Range<u64>) {
            self.enters(id, IoOp::Write, sectors);
            self.shadow.line_takes(id, LPN);
            self.leaves(id);
        }
        fn op(&self, kind: OpKind, slot: Slot) -> Op {
            Op::new(kind, Class::HostRead, self.ftl.geo.address(slot), slot, 1, UNIT as u32, 0)
        }
        /// A read of flash from beginning to end.
        fn senses(&mut self, name: u32, slot: Slot) {
            let op = self.op(OpKind::Read, slot);
            self.shadow.sensed(name, &op, false, &self.ftl);
            self.shadow.finished(name, &op, &self.ftl);
        }
        /// Reads the unit from the buffer's sectors `here` and flash.
        fn reads(&mut self, here: Sectors) {
            self.enters(9, IoOp::Read, 0..8);
            self.shadow.line_gives(9, LPN, here);
            if here != 0xff {
                let slot = self.ftl.lookup(LPN).expect("the device is full");
                self.shadow.looks_up(LPN, slot);
                self.shadow.reads(7, 9, 1);
                self.senses(7, slot);
            }
            self.leaves(9);
        }
        /// Programs the data on its way to flash, and maps it.
        fn flushes(&mut self) {
            let to = self.ftl.reserve(0, Stream::Host(0)).expect("there is space");
            self.ftl.fill(to, Some(LPN));
            self.shadow.line_writes(8, &[LPN]);
            let op = self.op(OpKind::Program, to);
            self.shadow.finished(8, &op, &self.ftl);
            self.ftl.program(to);
            self.ftl.commit(LPN, to);
            self.ftl.programmed(to);
        }
    }

    #[test]
    fn a_read_gets_the_newest_sectors_of_buffer_and_flash() {
        let mut stage = Stage::new();
        stage.wrote(1, 2..4);
        stage.reads(0b1100);
        assert_eq!(stage.shadow.violations, 0, "{:?}", stage.shadow.described);
        // The buffer must not be bypassed.
        stage.reads(0);
        assert_eq!(stage.shadow.violations, 1);
    }

    #[test]
    fn a_flush_carries_the_line_and_the_rest_of_the_unit() {
        let mut stage = Stage::new();
        stage.wrote(1, 2..4);
        stage.shadow.line_leaves(LPN, 0b1100);
        // Rewritten while on its way: flash gets the older data, the line keeps the newer.
        stage.wrote(2, 3..4);
        let old = stage.ftl.lookup(LPN).expect("the device is full");
        stage.shadow.line_fetches(3, old);
        stage.senses(3, old);
        stage.shadow.line_is_completed(LPN, old);
        stage.flushes();
        stage.reads(0b1000);
        assert_eq!(stage.shadow.violations, 0, "{:?}", stage.shadow.described);
        stage.shadow.line_leaves(LPN, 0b1000);
        // Sectors that are not read would be zeroes.
        stage.flushes();
        stage.reads(0);
        assert_eq!(stage.shadow.violations, 1);
    }

    #[test]
    fn a_line_filled_from_flash_serves_reads() {
        let mut stage = Stage::new();
        let slot = stage.ftl.lookup(LPN).expect("the device is full");
        stage.shadow.line_fetches(3, slot);
        stage.senses(3, slot);
        stage.shadow.line_fills(LPN, slot, 0xff, &stage.ftl);
        stage.wrote(1, 0..1);
        stage.reads(0xff);
        assert_eq!(stage.shadow.violations, 0, "{:?}", stage.shadow.described);
    }

    #[test]
    fn a_lost_line_is_found() {
        let mut stage = Stage::new();
        stage.wrote(1, 0..8);
        stage.shadow.line_is_lost(LPN);
        stage.reads(0xff);
        assert_eq!(stage.shadow.violations, 1);
    }
}
