//! Garbage collection in time: one job per group moves the valid units of a victim and erases it.

use super::{Device, Event, Out};
use engine::{Cx, Mutant, Time, planted};
use ftl::page_map::space::Stream;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{Lpn, Slot};

/// Job that reclaims one reclaim unit.
#[derive(Default)]
pub(super) struct Job {
    ru: u64,
    /// Number of slots examined so far.
    cursor: u32,
    scanned: bool,
    /// Page reads, programs and erases under way.
    reads: u32,
    programs: u32,
    erases: u32,
    erasing: bool,
    /// Units that have been read and wait for a program unit to fill up.
    staged: Vec<(Lpn, Slot)>,
    /// True if the job waits for its die to be otherwise idle.
    parked: bool,
    /// True if the job levels wear instead of gaining space.
    levels_wear: bool,
    /// True if the job empties a unit of the SLC cache.
    folds: bool,
}

/// Sharing of the device between garbage collection and the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GcMode {
    /// GC operations wait in the dies' queues beside the host's; the die scheduler decides.
    Preemptible,
    /// Host data avoids a group while it is being reclaimed.
    Foreground,
    /// A group is reclaimed while its die is otherwise idle, until its free units fall to the hard limit.
    Background,
}

/// Configuration of garbage collection in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReclaimPolicy {
    /// Sharing of the device with the host.
    pub mode: GcMode,
    /// Program units in flight per group.
    pub window: u32,
    /// Copy-back: whole pages are copied inside their plane.
    pub copy_back: bool,
    /// True if moved data may go to any group that has space.
    pub global: bool,
}

engine::snapshot!(Job {
    ru,
    cursor,
    scanned,
    reads,
    programs,
    erases,
    erasing,
    staged,
    parked,
    levels_wear,
    folds
});

impl Job {
    /// Reclaim unit of the job.
    pub(super) fn ru(&self) -> u64 {
        self.ru
    }

    /// Returns true if the blocks of the unit are being erased.
    pub(super) fn is_erasing(&self) -> bool {
        self.erasing
    }

    /// Number of erased blocks of the reclaim unit.
    pub(super) fn erased(&self, lanes: u32) -> u32 {
        if self.erasing { lanes - self.erases } else { 0 }
    }
}

impl Device {
    /// Starts a job in a group that is short of space, unless one is running; a job that waits for an idle die stops
    /// waiting once the hard limit is reached.
    #[inline]
    pub(super) fn reclaim(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let free = self.ftl.free(group);
        if free > self.ftl.thresholds.start {
            if self.folding.is_some() {
                self.fold(group, cx);
            }
            return;
        }
        match &self.jobs[group as usize] {
            None => self.start_job(group, cx),
            Some(job) if job.parked && free <= self.ftl.thresholds.hard => self.advance(group, cx),
            Some(_) => {}
        }
    }

    fn start_job(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        if self.ftl.slc_is_over(group) && self.start_fold(group, cx) {
            return;
        }
        let mut victim = self.ftl.pick_victim(group);
        // Host data may have put a group over its share; then others have room for its excess.
        if victim.is_none() && self.ftl.share_left(group) < 0 && self.destination(group) != group {
            victim = self.ftl.pick_emptiest(group);
        }
        let Some(ru) = victim else {
            if self.folding.is_some() {
                self.fold(group, cx);
            }
            return;
        };
        self.stats.gc_runs += 1;
        self.run_job(group, ru, false, cx);
    }

    pub(super) fn run_job(&mut self, group: u32, ru: u64, levels_wear: bool, cx: &mut impl Cx<Event, Out>) {
        let folds = self.ftl.is_slc(self.ftl.geo.first_slot(self.ftl.geo.block_of_ru(ru, 0)));
        let mut job = self.spare_jobs.pop().unwrap_or_default();
        *job = Job { ru, levels_wear, folds, staged: std::mem::take(&mut job.staged), ..Job::default() };
        self.jobs[group as usize] = Some(job);
        self.advance(group, cx);
    }

    /// Resumes jobs that waited for a die to become idle.
    pub(super) fn die_idle(&mut self, die: u32, cx: &mut impl Cx<Event, Out>) {
        for group in self.ftl.geo.groups_of_die(die) {
            if self.jobs[group as usize].as_ref().is_some_and(|job| job.parked) {
                self.advance(group, cx);
            }
        }
        self.evict_to_idle(cx);
    }

    /// Returns true if host data must not go to a group now.
    #[inline]
    pub(super) fn is_closed_to_host(&self, group: u32) -> bool {
        self.gc.mode == GcMode::Foreground && self.jobs[group as usize].is_some()
    }

    /// Group that takes a group's moved data. No group takes more than its share of the logical space: a group full of
    /// others' data would have nothing to reclaim for its own.
    fn destination(&mut self, group: u32) -> u32 {
        if !self.gc.global {
            return group;
        }
        for _ in 0..self.ftl.geo.groups {
            self.gc_turn += 1;
            let other = self.ftl.geo.group_at(self.gc_turn);
            if self.ftl.free(other) > self.ftl.thresholds.hard && self.ftl.share_left(other) > 0 {
                return other;
            }
        }
        group
    }

    /// Issues the operations that the job can begin now.
    fn advance(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let Some(mut job) = self.jobs[group as usize].take() else { return };
        self.issue_reads(group, &mut job, cx);
        self.issue_programs(group, &mut job, cx);
        let moved = job.scanned && job.reads == 0 && job.programs == 0 && job.staged.is_empty();
        if moved && !job.erasing && !self.is_pinned(job.ru) {
            job.erasing = true;
            job.erases = self.ftl.geo.lanes;
            for lane in 0..self.ftl.geo.lanes {
                let slot = self.ftl.geo.first_slot(self.ftl.geo.block_of_ru(job.ru, lane));
                let mut op =
                    Op::new(OpKind::Erase, Class::Erase, self.ftl.geo.address(slot), slot, 0, 0, group);
                op.erases = self.erases_of(slot);
                self.backend.enqueue(cx.now(), Purpose::Reclaim.tags(op));
                self.mutate_erase(slot);
            }
        }
        self.jobs[group as usize] = Some(job);
    }

    fn issue_reads(&mut self, group: u32, job: &mut Job, cx: &mut impl Cx<Event, Out>) {
        let per_program = self.ftl.geo.units_per_program;
        let window = self.gc.window * per_program;
        let may_wait = self.gc.mode == GcMode::Background
            && !job.folds
            && self.ftl.free(group) > self.ftl.thresholds.hard;
        job.parked = may_wait && self.backend.load(self.ftl.geo.first_die_of_group(group)) > 0;
        if job.parked {
            return;
        }
        while !job.scanned
            && job.reads * self.ftl.geo.units_per_page()
                + (job.staged.len() as u32)
                + job.programs * per_program
                < window
        {
            let Some(slot) = self.ftl.next_valid(job.ru, &mut job.cursor) else {
                job.scanned = true;
                break;
            };
            // The other valid units of the page come along.
            let page = self.ftl.geo.page_name(slot);
            let mut units = 1;
            let mut ahead = job.cursor;
            while self.ftl.geo.units_per_page() > 1
                && let Some(next) = self.ftl.next_valid(job.ru, &mut ahead)
            {
                if self.ftl.geo.page_name(next) != page {
                    break;
                }
                units += 1;
                job.cursor = ahead;
            }
            if !job.folds
                && self.copies_back(group, units)
                && self.issue_copy(group, job, slot, units, cx.now())
            {
                continue;
            }
            self.ftl.array.prefetch(slot);
            let at = self.ftl.geo.address(slot);
            let bytes = u32::from(units) * self.unit_bytes as u32;
            let mut op = Op::new(OpKind::Read, Class::GcRead, at, slot, units, bytes, group);
            op.erases = self.erases_of_read(slot);
            op.is_slc = self.ftl.is_slc(slot);
            let name = self.backend.enqueue(cx.now(), Purpose::Reclaim.tags(op));
            if let Some(shadow) = &mut self.shadow {
                shadow.collects(name, slot, &self.ftl);
            }
            job.reads += 1;
        }
    }

    /// Returns true if whole pages are copied inside a plane. A group of one plane has its frontier there. A group over
    /// its share has to give data away: copying full victims inside it would gain nothing.
    fn copies_back(&self, group: u32, units: u16) -> bool {
        let geo = &self.ftl.geo;
        let keeps = !self.gc.global || self.ftl.share_left(group) >= 0;
        self.gc.copy_back && keeps && geo.lanes == 1 && u32::from(units) == geo.units_per_program
    }

    fn issue_copy(&mut self, group: u32, job: &mut Job, from: Slot, units: u16, now: Time) -> bool {
        let Some(to) = self.ftl.reserve(group, self.mover(job)) else { return false };
        self.spends_on_moves(group);
        let mut op =
            Op::new(OpKind::CopyBack, Class::GcProgram, self.ftl.geo.address(to), to, units, 0, group);
        let source = self.ftl.geo.address(from);
        (op.source_block, op.source_page) = (source.block, source.page);
        op.erases = self.erases_of(to);
        let sources: Vec<(Lpn, Slot)> = (0..u64::from(units))
            .filter_map(|n| self.ftl.lpn_at(Slot(from.0 + n)).map(|lpn| (lpn, Slot(from.0 + n))))
            .collect();
        for (n, (lpn, _)) in sources.iter().enumerate() {
            self.ftl.fill(Slot(to.0 + n as u64), Some(*lpn));
        }
        let name = self.program(Purpose::Reclaim, op, now);
        if let Some(shadow) = &mut self.shadow {
            shadow.copies(name, &sources);
        }
        *self.moves_of(name) = sources;
        job.programs += 1;
        true
    }

    /// Stream of the data that a job moves.
    fn mover(&self, job: &Job) -> Stream {
        match self.ftl.mover(job.ru, job.levels_wear) {
            Stream::Gc(placement) if planted(Mutant::WrongStream) => {
                Stream::Gc((placement + 1) % self.placements)
            }
            stream => stream,
        }
    }

    fn moves_of(&mut self, name: u32) -> &mut Vec<(Lpn, Slot)> {
        if self.moves.len() <= name as usize {
            let units = self.ftl.geo.units_per_program as usize;
            self.moves.resize_with(name as usize + 1, || Vec::with_capacity(units));
        }
        &mut self.moves[name as usize]
    }

    fn issue_programs(&mut self, group: u32, job: &mut Job, cx: &mut impl Cx<Event, Out>) {
        let per_program = self.ftl.geo.units_per_program as usize;
        let last = job.scanned && job.reads == 0;
        while job.staged.len() >= per_program || (last && !job.staged.is_empty()) {
            // The hard limit keeps this from failing: a job frees more than it takes.
            let target = if job.levels_wear { group } else { self.destination(group) };
            let Some(to) = self.ftl.reserve(target, self.mover(job)) else { return };
            self.spends_on_moves(target);
            let units = job.staged.len().min(per_program);
            for n in 0..per_program {
                let lpn = job.staged.get(n).filter(|_| n < units).map(|(lpn, _)| *lpn);
                self.ftl.fill(Slot(to.0 + n as u64), lpn);
            }
            let at = self.ftl.geo.address(to);
            let bytes = units as u32 * self.unit_bytes as u32;
            let mut op = Op::new(OpKind::Program, Class::GcProgram, at, to, units as u16, bytes, group);
            op.erases = self.erases_of(to);
            let name = self.program(Purpose::Reclaim, op, cx.now());
            let moves = self.moves_of(name);
            moves.clear();
            moves.extend(job.staged.drain(..units));
            if let Some(shadow) = &mut self.shadow {
                shadow.moves(name, &self.moves[name as usize]);
            }
            job.programs += 1;
        }
    }

    /// Handles a page read from the victim: cores find new places for its units.
    pub(super) fn gc_read_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if let Some(shadow) = &mut self.shadow {
            shadow.keeps();
        }
        let end = self.host.moves(cx.now(), op.units.into());
        if end == cx.now() {
            self.placed(op.owner, op.slot, cx);
        } else {
            let id = self.placing.insert((op.owner, op.slot));
            cx.after(end - cx.now(), Event::Placed(id));
        }
    }

    /// Handles units whose new places have been found.
    pub(super) fn place_found(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let (group, slot) = self.placing[id];
        self.placing.remove(id);
        self.placed(group, slot, cx);
    }

    /// Stages the units read from a page for programming. Units overwritten by the host meanwhile need not move.
    fn placed(&mut self, group: u32, first: Slot, cx: &mut impl Cx<Event, Out>) {
        if let Some(job) = &mut self.jobs[group as usize] {
            job.reads -= 1;
            let page = self.ftl.geo.page_name(first);
            let mut slot = first;
            while slot.0 < self.ftl.geo.slots && self.ftl.geo.page_name(slot) == page {
                if self.ftl.is_valid(slot)
                    && let Some(lpn) = self.ftl.lpn_at(slot)
                {
                    job.staged.push((lpn, slot));
                    self.ftl.prefetch(lpn);
                } else if let Some(shadow) = &mut self.shadow {
                    shadow.forgets(slot);
                }
                slot.0 += 1;
            }
        }
        self.advance(group, cx);
    }

    /// Completes a durable program unit of moved data.
    pub(super) fn gc_program_done(&mut self, name: u32, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ftl.program(op.slot);
        for n in 0..self.moves[name as usize].len() {
            let (lpn, from) = self.moves[name as usize][n];
            if self.commit_move(lpn, from, Slot(op.slot.0 + n as u64)) {
                self.map_moved(lpn);
            }
        }
        self.ftl.programmed(op.slot);
        if let Some(job) = &mut self.jobs[op.owner as usize] {
            job.programs -= 1;
            self.stats.wear_units += if job.levels_wear { u64::from(op.units) } else { 0 };
            self.stats.slc.folded += if job.folds { u64::from(op.units) } else { 0 };
        }
        self.advance(op.owner, cx);
    }

    /// Continues a job after the last reader of its reclaim unit is done.
    pub(super) fn reclaim_unpinned(&mut self, slot: Slot, cx: &mut impl Cx<Event, Out>) {
        let group = self.ftl.geo.group_of_ru(self.ftl.geo.ru_of_slot(slot));
        self.advance(group, cx);
    }

    /// Handles an erased block of the victim.
    pub(super) fn erase_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let group = op.owner;
        let erased = self.jobs[group as usize].take_if(|job| {
            job.erases -= 1;
            job.erases == 0
        });
        let Some(job) = erased else { return };
        let Job { ru, levels_wear, folds, .. } = *job;
        self.spare_jobs.push(job);
        let free = self.ftl.free(group);
        self.ftl.erased(ru);
        // A failed block, or one kept for the cache, gives nothing back.
        if self.ftl.free(group) > free {
            self.gains_by_erase(group);
        }
        if let Some(ru) = self.ftl.pick_unworn(group, levels_wear) {
            self.run_job(group, ru, true, cx);
        } else if folds {
            self.reclaim(group, cx);
        } else if self.ftl.free(group) < self.ftl.thresholds.stop {
            self.start_job(group, cx);
        }
        if self.folding.is_some() {
            self.fold(group, cx);
        }
        // While space is short, recently moved data is likely to be moved again soon.
        if self.jobs[group as usize].is_none() {
            self.write_back_moved(cx);
        }
        self.wake(group, cx);
        if self.gc.global {
            self.advance_staged(cx);
            // Jobs that wait elsewhere may find a place for their data.
            self.stalled = true;
        }
    }

    /// Advances jobs when space has appeared where any job's data may go.
    fn advance_staged(&mut self, cx: &mut impl Cx<Event, Out>) {
        for group in 0..self.ftl.geo.groups {
            if self.jobs[group as usize].as_ref().is_some_and(|job| !job.staged.is_empty()) {
                self.advance(group, cx);
            }
        }
    }
}
