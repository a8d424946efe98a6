//! Reads of kernels without events for their pages, used while only reads are under way.
//!
//! A section is hundreds of groups of a few arrays, and most sections arrive while only other reads are under way. Such
//! reads are [computed in one step](nand::dies::batch), and each has one event, at its end. If any other request
//! arrives in between, all of them are replayed from their arrival times, page by page up to the present, as if there
//! had been no batch. Their counts are made then, or at the end of the batch.

use super::access::{Link, Purpose};
use super::{Event, GroupsFlash};
use engine::resource::Serial;
use engine::{Cx, Inside, Recorder, Time};
use ftl::page_groups::{Logical, Physical};
use nand::dies::batch::Batch;
use nand::dies::op::Class;
use proto::groups::Tell;
use std::ops::Range;

/// Maximum groups of a batch: the amount that has to be replayed if another request arrives.
const MOST: usize = 1 << 14;
/// Event that marks a moment of the past.
const MOMENT: Event = Event::Told(u32::MAX);

/// Read of a batch.
#[derive(Clone, Debug)]
struct Read {
    request: u32,
    groups: Range<usize>,
    /// Arrival of the last group.
    over: Time,
    is_told: bool,
}

/// Reads computed in one step.
#[derive(Default)]
pub(super) struct Batches {
    /// True if batches are disabled.
    is_off: bool,
    reads: Vec<Read>,
    /// Groups of all reads.
    pub(super) groups: Vec<(Logical, Physical)>,
    batch: Batch,
    /// Arrival times of groups, in the order in which they leave their channels.
    over: Vec<Time>,
    /// State of the link after all arrivals.
    inward: Serial,
    /// State of the link at the last arrival of reads, and the number of groups on it or done.
    saved: (Serial, usize),
    /// Next end of a read, and the event that marks it: earlier such events are obsolete.
    next: Time,
    turn: u32,
}

impl Batches {
    /// Returns true if no read of a batch is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Clears the previous batch.
    fn clear(&mut self, link: &Link) {
        self.reads.clear();
        self.batch.clear();
        self.over.clear();
        self.saved = (link.inward.clone(), 0);
    }

    /// Place of the first group of a read that arrives now.
    pub(super) fn next_group(&mut self) -> usize {
        if self.reads.is_empty() {
            self.groups.clear();
        }
        self.groups.len()
    }

    /// Sends groups over the link, in `grants` grants each, and notes the end of each read.
    fn cross(&mut self, service: Time, grants: u32) {
        let (left, before) = self.batch.left();
        self.over.truncate(self.saved.1);
        let mut inward = self.saved.0.clone();
        for at in self.saved.1..=left.len() {
            if at == before {
                self.saved = (inward.clone(), before);
            }
            let Some((group, leaves)) = left.get(at) else { break };
            let over = (0..grants).fold(*leaves, |_, _| inward.grant(*leaves, service));
            self.over.push(over);
            let read = self.reads.partition_point(|read| read.groups.end <= *group as usize);
            self.reads[read].over = over;
        }
        self.inward = inward;
    }
}

impl GroupsFlash {
    /// Gives every page of a read its events from now on, for callers that stop at arbitrary moments. Results do not
    /// depend on it.
    pub fn one_by_one(&mut self) {
        self.batches.is_off = true;
    }

    /// Starts the groups of a read from the given one on; in one step if only reads are under way.
    pub(super) fn begin_reads(&mut self, request: u32, first: usize, cx: &mut impl Cx<Event, Tell>) {
        let groups = first..self.batches.groups.len();
        if groups.is_empty() {
            return;
        }
        if self.joins_batch(cx.now()) && self.works_out(request, groups.clone(), cx.now()) {
            return self.tell_next(cx);
        }
        self.unfold(cx);
        self.begin_each(request, groups, cx.now());
    }

    /// Starts the groups of a read, page by page.
    fn begin_each(&mut self, request: u32, groups: Range<usize>, now: Time) {
        for at in groups {
            let (logical, group) = self.batches.groups[at];
            self.begin_read(Purpose::Read { request, logical }, group, Class::HostRead, now);
        }
    }

    /// Returns true if reads are computed in one step now: a batch is under way, or can begin.
    fn joins_batch(&mut self, now: Time) -> bool {
        let batches = &mut self.batches;
        if batches.is_off || batches.groups.len() > MOST {
            return false;
        }
        if !batches.reads.is_empty() {
            return true;
        }
        let begins = self.shadow.is_none()
            && self.accesses.is_empty()
            && self.short.is_empty()
            && self.chores.is_empty()
            && self.storengine.is_idle()
            && !self.stirred
            && self.backend.takes_batches(now);
        if begins {
            batches.clear(&self.link);
        }
        begins
    }

    /// Computes a read in one step. Returns false if that cannot be used: all energy must fall in one window of power.
    fn works_out(&mut self, request: u32, groups: Range<usize>, now: Time) -> bool {
        let Batches { batch, reads, groups: all, .. } = &mut self.batches;
        let layout = self.visor.layout();
        let reads_of = all[groups.clone()].iter().map(|(_, group)| {
            let place = layout.place(*group);
            (layout.first_die(place), place.page)
        });
        let begins = reads.first().map_or(now, |first| self.requests[first.request].since);
        self.backend.work_out(batch, (now, self.media.operation_bytes()), reads_of);
        reads.push(Read { request, groups, over: now, is_told: false });
        let service = self.link.service(self.media.page_bytes.into(), self.media.alike.pages());
        self.batches.cross(service, self.media.operations());
        let end = self.batches.over.last().map_or(now, |over| *over);
        let is_one = self.backend.meter.as_ref().is_none_or(|meter| meter.is_one_window(begins, end))
            && self.link.meter.as_ref().is_none_or(|meter| meter.is_one_window(begins, end));
        if !is_one {
            self.batches.reads.pop();
        }
        is_one
    }

    /// Schedules the end of the next read to complete.
    fn tell_next(&mut self, cx: &mut impl Cx<Event, Tell>) {
        let batches = &mut self.batches;
        let open = batches.reads.iter().filter(|read| !read.is_told);
        let Some(next) = open.map(|read| read.over).min() else { return };
        if next != batches.next {
            batches.next = next;
            batches.turn = (batches.turn + 1) % u32::MAX;
            cx.after(next - cx.now(), Event::Told(batches.turn));
        }
    }

    /// Completes a read of a batch.
    pub(super) fn tell(&mut self, turn: u32, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        if turn != self.batches.turn || self.batches.next != now {
            return;
        }
        // At most one: the last link transfer of each read ends at its own time.
        let (mut over, mut open) = (None, false);
        for read in &mut self.batches.reads {
            if read.over == now && !read.is_told {
                read.is_told = true;
                over = Some(read.request);
            }
            open |= !read.is_told;
        }
        self.batches.next = Time::ZERO;
        if let Some(request) = over {
            let told = self.requests[request].told();
            if !open {
                self.carried_out(now);
            }
            cx.emit(told);
        }
        self.tell_next(cx);
    }

    /// Counts all reads of a batch, which are complete.
    fn carried_out(&mut self, now: Time) {
        // Kept meanwhile, so that its memory is reused.
        let mut batches = std::mem::take(&mut self.batches);
        let Batches { reads, groups, batch, over, inward, .. } = &mut batches;
        let begins = self.requests[reads[0].request].since;
        if let Some(meter) = &mut self.backend.meter {
            meter.command_begins(begins);
        }
        self.backend.carried_out(batch, self.media.operation_bytes());
        if let Some(meter) = &mut self.backend.meter {
            meter.command_ends(now);
        }
        let (left, _) = batch.left();
        if let Some(meter) = &mut self.link.meter {
            meter.crossed(left.len() as u64 * self.visor.layout().group_bytes(), begins);
        }
        std::mem::swap(&mut self.link.inward, inward);
        for ((at, _), over) in left.iter().zip(&*over) {
            let read = &reads[reads.partition_point(|read| read.groups.end <= *at as usize)];
            let (_, group) = groups[*at as usize];
            self.visor.read_done(group);
            self.stats.groups_read += 1;
            self.ledger.done += 1;
            let request = &mut self.requests[read.request];
            self.stats.group_read.record((*over - request.since).ps());
            request.under_way -= 1;
            if request.under_way == 0 {
                self.answered(read.request, *over);
            }
        }
        self.stirred = true;
        reads.clear();
        self.batches = batches;
    }

    /// Dissolves the batch because another request has arrived: its reads go on page by page.
    pub fn unfold(&mut self, cx: &mut impl Cx<Event, Tell>) {
        if self.batches.reads.is_empty() {
            return;
        }
        let reads = std::mem::take(&mut self.batches.reads);
        self.batches.next = Time::ZERO;
        let now = cx.now();
        let mut past: Recorder<Event, Tell> = Recorder::default();
        for Read { request, groups, .. } in &reads {
            let since = self.requests[*request].since;
            self.relive(since, &mut past);
            self.begin_each(*request, groups.clone(), since);
            self.backend.kick(&mut Inside::of(&mut past));
        }
        self.relive(now, &mut past);
        // Completed reads are not reported again.
        let told = reads.iter().filter(|read| read.is_told).count();
        for (_, tell) in past.sent.drain(..).skip(told) {
            cx.emit(tell);
        }
        self.backend.forget_places();
        while let Some(event) = past.queue.pop() {
            let wait = past.now() - now;
            match event {
                Event::Dies(event) => self.backend.takes_up(event, wait, &mut Inside::of(cx)),
                event => _ = cx.after(wait, event),
            }
        }
    }

    /// Replays events up to and including a moment.
    fn relive(&mut self, until: Time, past: &mut Recorder<Event, Tell>) {
        past.late(until - past.now(), MOMENT);
        while let Some(event) = past.queue.pop() {
            if event == MOMENT {
                return;
            }
            self.happens(event, past);
        }
    }
}
