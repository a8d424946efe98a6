//! Data on their way into the GPU's memory and out of it.

use super::{Event, Granule, Job, Out, Paging, Phase, Place};
use engine::{Cx, List, Mutant, Time, planted_nth};

impl Paging {
    /// The data lie in a pinned buffer: they move as soon as there is room.
    pub(super) fn move_in(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let mut free = cx.now();
        if self.taken == self.capacity {
            let Some(victim) = self.mapped.pop_front() else {
                self.without_room.push_back(job);
                return;
            };
            free = self.evict(victim, cx);
        } else {
            self.taken += 1;
        }
        if free > cx.now() {
            cx.after(free - cx.now(), Event::Room(job));
        } else {
            self.send(job, cx);
        }
    }

    /// A granule makes room; returns when its place is free.
    fn evict(&mut self, granule: Granule, cx: &mut impl Cx<Event, Out>) -> Time {
        self.stats.evictions += 1;
        let (_, bytes) = self.bytes_of(granule);
        let first = granule.number * self.granule / self.reach;
        for page in first..first + bytes.div_ceil(self.reach) {
            cx.emit(Out::Evict { app: granule.app, page });
        }
        if self.write_back {
            self.ledger.evicted += 1;
        }
        if !self.write_back || planted_nth(Mutant::DroppedGranule, 4) {
            self.at.remove(&granule);
            return cx.now();
        }
        let job = self.jobs.insert(Job { granule, phase: Phase::Leaving, waiting: List::EMPTY });
        self.at.insert(granule, Place::Busy(job));
        let end = self.link.to_host(cx.now(), bytes);
        cx.after(end + self.link.latency() - cx.now(), Event::Left(job));
        end
    }

    /// Moves a granule over PCIe and maps it.
    pub(super) fn send(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let (_, bytes) = self.bytes_of(self.jobs[job].granule);
        self.stats.moved_bytes += bytes;
        let end = self.link.to_device(cx.now(), bytes);
        cx.after(end + self.link.latency() + self.resume - cx.now(), Event::Mapped(job));
    }

    pub(super) fn mapped(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let Job { granule, mut waiting, .. } = self.jobs[job];
        self.jobs.remove(job);
        self.at.insert(granule, Place::Gpu);
        self.mapped.push_back(granule);
        self.stats.mapped += 1;
        while let Some(translation) = self.waiting.pop(&mut waiting) {
            self.resolve(translation, cx);
        }
        if let Some(next) = self.without_room.pop_front() {
            self.move_in(next, cx);
        }
    }

    /// A granule that left is in the SSD; a fault for it may have come.
    pub(super) fn stored(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let Job { granule, waiting, .. } = self.jobs[job];
        self.ledger.stored += 1;
        if waiting.is_empty() {
            self.at.remove(&granule);
            self.jobs.remove(job);
        } else {
            self.stats.faults += 1;
            self.jobs[job].phase = Phase::Coming;
            self.report(job, cx);
        }
    }
}
