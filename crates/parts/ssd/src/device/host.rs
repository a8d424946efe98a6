//! How commands come in and completions go out.

use super::{Active, Device, Event, Out, milestone};
use crate::port::interface::{Entry, LinkBusy};
use ::stats::Milestones;
use engine::{Cx, Mutant, Time, planted_nth};
use proto::{Command, Completion, IoOp, Lpn, Status};

impl Device {
    /// A command enters: the host has written it to its submission queue and rings the doorbell.
    pub fn submit(&mut self, command: Command, cx: &mut impl Cx<Event, Out>) {
        let (next, end) = self.units(&command);
        if next < end {
            // Those between lie in the same lines of the processor's cache, or follow in order.
            self.ftl.prefetch(Lpn(next));
            self.ftl.prefetch(Lpn(end - 1));
        }
        let life = Milestones::new(cx.now());
        let status = Status::Success;
        let active = Active {
            command,
            pending: 0,
            next,
            end,
            status,
            buffered_bytes: 0,
            waits: false,
            merge: None,
            life,
        };
        let id = self.active.insert(active);
        self.ledger.submitted(&self.ftl);
        if let Some(meter) = &mut self.backend.meter {
            meter.command_begins(cx.now());
        }
        if self.shadow.is_some() {
            let durable = self.promises_flash(&command);
            if let Some(shadow) = &mut self.shadow {
                shadow.enters(id, &command, durable, &self.ftl);
            }
        }
        match self.host.enters(command.queue, cx.now(), id, || cx.reserve()) {
            Entry::Rings(after) => cx.after(after, Event::Doorbell(command.queue)),
            Entry::Fetched(after) => cx.after(after, Event::Fetched(id)),
        };
    }

    /// A doorbell write has arrived: one more entry of the queue may be fetched.
    pub(super) fn doorbell(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        self.host.doorbell(queue);
        self.fetch(queue, cx);
    }

    /// Fetches from the queues that lie beside `queue`, as far as the controller has room.
    fn fetch(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        while let Some((id, place, after)) = self.host.fetch(queue, cx.now()) {
            cx.at_place(place, after, Event::Fetched(id));
        }
    }

    /// A command has been fetched: a core works on it.
    pub(super) fn fetched(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::SUBMISSION, cx.now());
        let (queue, units) = (active.command.queue, active.end - active.next);
        let writes = matches!(active.command.op, IoOp::Write | IoOp::WriteZeroes);
        let end = self.host.work(cx.now(), queue, writes, units);
        if end == cx.now() {
            self.ready(id, cx);
        } else {
            cx.after(end - cx.now(), Event::Ready(id));
        }
    }

    /// The controller knows what to do.
    pub(super) fn ready(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::CONTROLLER, cx.now());
        if active.command.announced > 0 {
            let command = active.command;
            self.announced(&command, cx);
        }
        let active = &mut self.active[id];
        if self.ftl.is_worn_out() && matches!(active.command.op, IoOp::Write | IoOp::WriteZeroes) {
            active.status = Status::WriteFault;
            self.complete(id, cx);
            return;
        }
        self.look_up_entries(id, cx);
    }

    /// Begins what a command asks for.
    pub(super) fn start(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        match active.command.op {
            IoOp::Read => self.start_read(id, cx),
            IoOp::Write => {
                let end = self.host.data_in(active.command.queue, cx.now(), active.command.bytes);
                cx.after(end - cx.now(), Event::DataIn(id));
            }
            IoOp::Trim | IoOp::WriteZeroes | IoOp::Flush => self.start_dataless(id, cx),
        }
    }

    /// Sends the completion of a command that waits for nothing any more.
    pub(super) fn complete(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(self.active[id].pending, 0);
        let end = self.host.completes(self.active[id].command.queue, cx.now());
        cx.after(end - cx.now(), Event::HostDone(id));
    }

    /// The host sees the completion.
    pub(super) fn host_done(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::HOST_TRANSFER, cx.now());
        let status = active.status;
        self.stats.completed(&active.command, status, &active.life, cx.now());
        if planted_nth(Mutant::RecordedTwice, 101) {
            self.stats.completed(&active.command, status, &active.life, cx.now());
        }
        self.ledger.completed += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.leaves(id, status, &self.ftl);
        }
        let errors = u32::from(status != Status::Success);
        let (tag, to, queue) = (active.command.tag, active.command.from, active.command.queue);
        let buffer = self.buffer_state();
        cx.emit(Out::Complete(Completion { tag, to, status, errors, buffer }));
        self.note_answer(id);
        self.active.remove(id);
        if self.folding.is_some() && self.active.is_empty() {
            self.begins_rest(cx);
        }
        if let Some(meter) = &mut self.backend.meter {
            meter.command_ends(cx.now());
        }
        if self.host.leaves(queue) {
            self.fetch(queue, cx);
        }
    }

    /// Time that the host's link has been busy, and the controller's cores, up to `now`.
    pub fn host_busy(&self, now: Time) -> (LinkBusy, Time) {
        self.host.busy(now)
    }

    /// Time that the link of a processor inside the drive has been busy up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<LinkBusy> {
        self.host.inner_busy(now)
    }
}
