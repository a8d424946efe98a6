//! Power cuts: what a device keeps for recovery, and what a cut leaves of it.

use super::gather::home;
use super::{Device, SnapshotFault};
use crate::shadow::{Shadow, Survivors};
use engine::Time;
use ftl::page_map::units::RuState;
use ftl::purpose::Purpose;
use ftl::recovery::{Cut, Durable, Journal, Newer, Recovery};
use nand::array::{Stamp, Stamps};
use nand::dies::op::{Op, OpKind};
use proto::{Lpn, Slot};

impl Device {
    /// Makes an idle device keep what recovery needs: a stamp in the out-of-band area of each copy, and a journal of
    /// deallocations. The present state is assumed to be correct. This costs memory, a little time for each program,
    /// and O(map units) now; results do not change.
    ///
    /// # Errors
    /// Returns [`SnapshotFault::Busy`] if the device is at work.
    pub fn record_stamps(&mut self) -> Result<(), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        let ftl = &mut self.ftl;
        let mut stamps = Stamps::new(&ftl.geo, ftl.clock().max(1));
        for lpn in (0..ftl.logical() + ftl.hidden()).map(Lpn) {
            if let Some(slot) = ftl.lookup(lpn) {
                stamps.set(slot, stamps.present());
            }
        }
        for (group, units) in (0u32..).zip(&ftl.groups) {
            let first = u64::from(group) * u64::from(ftl.geo.shape.blocks);
            for (ru, (unit, closed_at)) in (first..).zip(units.rus.iter().zip(&units.closed_at)) {
                let sequence = if unit.state == RuState::Closed { *closed_at } else { stamps.last() };
                for lane in (0..ftl.geo.lanes).filter(|_| unit.state != RuState::Free) {
                    stamps.assume_opened(ftl.geo.block_of_ru(ru, lane), sequence);
                }
            }
        }
        ftl.array.stamps = Some(stamps);
        self.journal = Some(Box::default());
        Ok(())
    }

    /// Makes the shadow, if any, note from now on what a power cut must leave (`Shadow::survivors`).
    pub fn watch_durability(&mut self) {
        let is_protected = self.is_protected();
        if let Some(shadow) = &mut self.shadow {
            shadow.keep_floor(is_protected, &self.ftl);
        }
    }

    fn is_protected(&self) -> bool {
        self.buffered.as_ref().is_some_and(|b| b.is_protected())
    }

    /// Stamps the out-of-band area of the data of a finished operation that the map does not know yet.
    #[cold]
    pub(super) fn stamp(&mut self, name: u32, op: &Op) {
        let Some(stamps) = &mut self.ftl.array.stamps else { return };
        let (block, _) = self.ftl.geo.block_of_slot(op.slot);
        match op.kind {
            OpKind::Read => {}
            OpKind::Erase => stamps.erase(block, &self.ftl.geo),
            OpKind::Program | OpKind::CopyBack => {
                let stamp = stamps.issue();
                stamps.open(block);
                for n in 0..u64::from(op.units) {
                    let stamp =
                        match self.moves.get(name as usize).filter(|_| Purpose::of(op) == Purpose::Reclaim) {
                            Some(moved) => {
                                moved.get(n as usize).map_or(Stamp::VOID, |(_, s)| stamps.get(*s).moved())
                            }
                            None => stamp,
                        };
                    stamps.set(Slot(op.slot.0 + n), stamp);
                }
            }
        }
    }

    /// Voids the stamps of copies that were out of date when the map took in an operation: recovery must not find them.
    /// Moved copies need no such care, because they are not newer than their source.
    #[cold]
    pub(super) fn void_refused(&mut self, op: &Op) {
        if op.kind == OpKind::Erase {
            self.write_journal();
        }
        if op.kind != OpKind::Program || Purpose::of(op) == Purpose::Reclaim {
            return;
        }
        for slot in (op.slot.0..op.slot.0 + u64::from(op.units)).map(Slot) {
            let Some(lpn) = self.ftl.lpn_at(slot) else { continue };
            if self.ftl.lookup(lpn) == Some(slot) {
                self.journal.iter_mut().for_each(|j| j.superseded(lpn));
            } else if let Some(stamps) = &mut self.ftl.array.stamps {
                stamps.set(slot, Stamp::VOID);
            }
        }
    }

    /// Notes a deallocated unit.
    #[cold]
    pub(super) fn note_trim(&mut self, lpn: Lpn) {
        let last = self.ftl.array.stamps.as_ref().map_or(0, |s| s.last());
        self.journal.iter_mut().for_each(|j| j.trimmed(lpn, last));
        if self.is_protected() {
            self.write_journal();
        }
    }

    /// Notes the deallocation of a unit whose data was not durable yet. Requests that wait for its durability are
    /// answered now; the unit's older copy must not come back.
    #[cold]
    pub(super) fn note_lost(&mut self, lpn: Lpn) {
        self.note_trim(lpn);
        self.write_journal();
    }

    /// Makes the deallocations so far survive a power cut.
    #[inline]
    pub(super) fn write_journal(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.write();
        }
    }

    /// Cuts power at `now`. Returns what is left, and the shadow, which knows what the host was promised. Returns
    /// `None` if the device keeps no stamps ([`Device::record_stamps`]): its data could not be found again.
    pub fn cut_power(mut self, now: Time) -> Option<(Durable, Option<Box<Shadow>>)> {
        let mut journal = *self.journal.take()?;
        if let Some(shadow) = &mut self.shadow {
            shadow.photograph(&self.ftl);
        }
        let mut cut = Cut { commands: self.active.len() as u64, ..Cut::default() };
        self.finish_lanes(&mut journal);
        let mut begun = Vec::new();
        self.backend.at_work_at(now, |op| begun.push(*op));
        // Torn parity holds no data.
        begun.retain(|op| !Purpose::of(op).is_for_parity());
        for op in &begun {
            match op.kind {
                OpKind::Read => {}
                OpKind::Program | OpKind::CopyBack => {
                    self.ftl.array.tear_program(op.slot, &self.ftl.geo);
                    cut.torn_programs += 1;
                }
                OpKind::Erase => {
                    let (block, _) = self.ftl.geo.block_of_slot(op.slot);
                    self.ftl.array.tear_block(block, &self.ftl.geo);
                    if let Some(shadow) = &mut self.shadow {
                        shadow.erased(op.slot, &self.ftl);
                    }
                    cut.torn_erases += 1;
                }
            }
        }
        let lines = self.buffered.as_ref().map_or_else(Vec::new, |b| b.buffer.not_durable());
        let is_protected = self.is_protected();
        let count = lines.len() as u64;
        let lines = if is_protected { lines } else { Vec::new() };
        (cut.lines_kept, cut.lines_lost) = if is_protected { (count, 0) } else { (0, count) };
        let placement = |lpn: Lpn| self.buffered.as_ref().map_or(0, |b| b.buffer.last_placement(lpn));
        let placements = lines.iter().map(|(lpn, _)| placement(*lpn)).collect();
        let (journal, undone) = journal.cut();
        cut.trims_undone = undone;
        let retired = self.ftl.retired_units();
        let cached = self.ftl.slc_members();
        let (array, base) = self.ftl.into_array();
        Some((Durable { array, base, journal, retired, cached, lines, placements, cut }, self.shadow))
    }

    /// Finishes erases of reclaim units of which only some blocks have been erased: the translation layer learns of an
    /// erase when all blocks have been.
    fn finish_lanes(&mut self, journal: &mut Journal) {
        let erases: Vec<Slot> = self
            .backend
            .ops
            .live()
            .filter(|(_, op)| op.kind == OpKind::Erase)
            .map(|(_, op)| op.slot)
            .collect();
        for job in self.jobs.iter().flatten().filter(|job| job.is_erasing()) {
            journal.write();
            for lane in 0..self.ftl.geo.lanes {
                let block = self.ftl.geo.block_of_ru(job.ru(), lane);
                if !erases.contains(&self.ftl.geo.first_slot(block)) {
                    self.ftl.array.erase(block);
                }
            }
        }
    }

    /// Recovers in an empty device, built from the same spec, what a power cut has left of another. Stamps continue.
    /// The shadow of the other device continues too, with a new account, and knows what is in the pages.
    ///
    /// # Errors
    /// Returns an error if the device is at work, was used before, or has a different shape.
    pub fn recover(
        &mut self,
        durable: Durable,
        shadow: Option<Box<Shadow>>,
    ) -> Result<Recovery, SnapshotFault> {
        self.recover_by(durable, shadow, |a, b| a > b).map(|(report, _)| report)
    }

    /// As `recover`, with a rule for which copy is the newer one; also returns the shadow's verdict on the result, if
    /// it has watched.
    pub fn recover_by(
        &mut self,
        durable: Durable,
        mut shadow: Option<Box<Shadow>>,
        newer: Newer,
    ) -> Result<(Recovery, Option<Survivors>), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        let fits = durable.array.all_erases().len() as u64 == self.ftl.geo.block_count;
        if !fits || !self.ftl.is_fresh() {
            return Err(SnapshotFault::OtherDevice);
        }
        let lines = durable.lines.clone();
        let placements = durable.placements.clone();
        let mut erased = Vec::new();
        let pages = self.ftl.geo.shape.program_pages;
        let blocks = 0..self.ftl.geo.block_count;
        let programmed: Vec<u32> = blocks.map(|b| durable.array.programs(b) * pages).collect();
        let (mut report, journal) = self.ftl.recover(durable, newer, |block| erased.push(block));
        report.time = self.backend.time_of_scan(&self.ftl.geo, &programmed, &erased);
        self.journal = Some(Box::new(journal));
        self.reset_stats(Time::ZERO);
        if let Some(buffered) = &mut self.buffered {
            for ((lpn, sectors), placement) in lines.iter().zip(&placements) {
                buffered.restore(*lpn, *sectors, *placement, home(&self.ftl.geo, *lpn));
            }
        }
        if let Some(shadow) = &mut shadow {
            erased.iter().for_each(|block| shadow.erased(self.ftl.geo.first_slot(*block), &self.ftl));
        }
        let survivors = shadow.as_ref().and_then(|s| s.survivors(&self.ftl, &lines));
        let cache = self.translation.as_ref().map(|t| &t.cache);
        self.shadow = shadow.map(|s| Box::new(s.restart(&self.ftl, cache, &lines)));
        if let (Some(shadow), Some(lost)) =
            (&mut self.shadow, survivors.as_ref().and_then(|s| s.lost.clone()))
        {
            shadow.violation(lost);
        }
        Ok((report, survivors))
    }
}
