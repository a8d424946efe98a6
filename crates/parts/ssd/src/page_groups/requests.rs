//! Reads and writes of kernels.

use super::access::{Access, Purpose};
use super::{Event, GroupsFlash};
use engine::{Cx, Time};
use ftl::page_groups::{Logical, Write};
use nand::dies::op::Class;
use proto::groups::{Groups, Tell};

/// A read or a write that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    tag: u32,
    groups: Groups,
    is_write: bool,
    /// Groups that have been begun, or that have failed.
    pub(super) begun: u32,
    pub(super) under_way: u32,
    failed: u32,
    pub(super) since: Time,
}

impl Request {
    /// Groups that are not done.
    pub(super) fn open(&self) -> u32 {
        self.groups.count() - self.begun + self.under_way
    }

    /// What its asker is told when all are done.
    pub(super) fn told(&self) -> Tell {
        Tell::Done { tag: self.tag, failed: self.failed }
    }

    fn next(&self) -> Logical {
        Logical(self.groups.first + self.begun)
    }

    fn is_begun(&self) -> bool {
        self.begun == self.groups.count()
    }
}

impl GroupsFlash {
    fn request(&mut self, tag: u32, groups: Groups, is_write: bool, now: Time) -> u32 {
        assert!(groups.first <= groups.last, "a range: {groups:?}");
        self.ledger.requests += 1;
        self.ledger.asked += u64::from(groups.count());
        let request = Request { tag, groups, is_write, begun: 0, under_way: 0, failed: 0, since: now };
        self.requests.insert(request)
    }

    /// A kernel reads groups.
    pub(super) fn read(&mut self, tag: u32, groups: Groups, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        let name = self.request(tag, groups, false, now);
        let first = self.batches.next_group();
        while !self.requests[name].is_begun() {
            let logical = self.requests[name].next();
            let found = self.visor.read(logical);
            if let Some(shadow) = &mut self.shadow {
                shadow.looked_up(logical, found.ok().flatten());
            }
            let request = &mut self.requests[name];
            request.begun += 1;
            match found {
                Ok(Some(group)) => {
                    request.under_way += 1;
                    self.batches.groups.push((logical, group));
                }
                Ok(None) => {
                    self.stats.groups_unwritten += 1;
                    self.ledger.done += 1;
                }
                Err(_) => self.fail(name),
            }
        }
        self.begin_reads(name, first, cx);
        self.answer(name, cx);
    }

    /// A group of a request cannot be read or written.
    fn fail(&mut self, request: u32) {
        self.requests[request].failed += 1;
        self.stats.groups_failed += 1;
        self.ledger.done += 1;
    }

    /// A kernel writes groups.
    pub(super) fn write(&mut self, tag: u32, groups: Groups, cx: &mut impl Cx<Event, Tell>) {
        let name = self.request(tag, groups, true, cx.now());
        if self.short.is_empty() && self.begin_writes(name, cx) {
            self.answer(name, cx);
        } else {
            self.short.push_back(name);
            // Where a number is missing, reclaim may have a block to begin with.
            self.stirred = true;
        }
    }

    /// Begins what a write has numbers for; whether that is all of it.
    fn begin_writes(&mut self, name: u32, cx: &mut impl Cx<Event, Tell>) -> bool {
        while !self.requests[name].is_begun() {
            let logical = self.requests[name].next();
            let number = self.visor.write(logical);
            if matches!(number, Ok(None)) {
                return false;
            }
            self.requests[name].begun += 1;
            match number {
                Ok(Some(write)) => {
                    self.requests[name].under_way += 1;
                    if let Some(shadow) = &mut self.shadow {
                        shadow.begin_write(write);
                    }
                    let purpose = Purpose::Write { request: name, write };
                    self.begin_program(purpose, write.group, Class::HostProgram, cx);
                }
                Ok(None) | Err(_) => self.fail(name),
            }
        }
        true
    }

    /// Writes that waited for numbers go on, in the order in which they came.
    pub(super) fn retry(&mut self, cx: &mut impl Cx<Event, Tell>) {
        while let Some(name) = self.short.front().copied() {
            if !self.begin_writes(name, cx) {
                return;
            }
            self.short.pop_front();
            self.stats.space_wait.record((cx.now() - self.requests[name].since).ps());
            self.answer(name, cx);
        }
    }

    /// A group that a kernel reads is in its memory.
    pub(super) fn group_read(
        &mut self,
        request: u32,
        logical: Logical,
        access: &Access,
        cx: &mut impl Cx<Event, Tell>,
    ) {
        if let Some(shadow) = &mut self.shadow {
            shadow.read(logical, access.group);
        }
        self.visor.read_done(access.group);
        self.stirred = true;
        self.stats.groups_read += 1;
        self.stats.group_read.record((cx.now() - access.since).ps());
        self.group_done(request, cx);
    }

    /// A group that a kernel writes is programmed.
    pub(super) fn group_written(
        &mut self,
        request: u32,
        write: Write,
        access: &Access,
        cx: &mut impl Cx<Event, Tell>,
    ) {
        if let Some(shadow) = &mut self.shadow {
            shadow.written(write);
        }
        self.visor.written(write);
        self.stirred = true;
        self.map_has_changed(cx);
        self.ledger.written += 1;
        self.stats.groups_written += 1;
        self.stats.group_write.record((cx.now() - access.since).ps());
        self.group_done(request, cx);
    }

    fn group_done(&mut self, request: u32, cx: &mut impl Cx<Event, Tell>) {
        self.requests[request].under_way -= 1;
        self.ledger.done += 1;
        self.answer(request, cx);
    }

    /// Answers a request if all its groups are done.
    fn answer(&mut self, name: u32, cx: &mut impl Cx<Event, Tell>) {
        let request = self.requests[name];
        if request.open() == 0 {
            self.answered(name, cx.now());
            cx.emit(request.told());
        }
    }

    /// A request has been answered.
    pub(super) fn answered(&mut self, name: u32, now: Time) {
        let Request { since, is_write, .. } = self.requests[name];
        self.requests.remove(name);
        self.ledger.answered += 1;
        let all = if is_write { &mut self.stats.write } else { &mut self.stats.read };
        all.record((now - since).ps());
    }
}
