//! Command submission and completion, the events of a device, and an account of the waits of each command.

use super::{Active, Device, milestone};
use crate::port::interface::{Entry, LinkBusy};
use engine::{Cx, Mutant, Time, planted_nth};
use nand::dies::{self, Waited, op::Op};
use proto::{Account, ByHolder, Command, Completion, Holder, IoOp, Lpn, Place, Status};
use stats::Milestones;

impl Device {
    /// Submits a command: the host has written it to its submission queue and rings the doorbell.
    pub fn submit(&mut self, command: Command, cx: &mut impl Cx<Event, Out>) {
        let (next, end) = self.units(&command);
        if next < end {
            // Those in between are in the same cache lines of the processor, or follow in order.
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

    /// Handles a doorbell write: one more entry of the queue may be fetched.
    pub(super) fn doorbell(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        self.host.doorbell(queue);
        self.fetch(queue, cx);
    }

    /// Fetches from the queues of the same interface as `queue`, as far as the controller has room.
    fn fetch(&mut self, queue: u16, cx: &mut impl Cx<Event, Out>) {
        while let Some((id, place, after)) = self.host.fetch(queue, cx.now()) {
            cx.at_place(place, after, Event::Fetched(id));
        }
    }

    /// Handles a fetched command: a core works on it.
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

    /// Handles a command that the controller has processed.
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

    /// Starts the operations of a command.
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

    /// Sends the completion of a command with nothing left to wait for.
    pub(super) fn complete(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        debug_assert_eq!(self.active[id].pending, 0);
        let end = self.host.completes(self.active[id].command.queue, cx.now());
        cx.after(end - cx.now(), Event::HostDone(id));
    }

    /// Handles a completion that has reached the host.
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

    /// Busy time of the host's link, and of the controller's cores, up to `now`.
    pub fn host_busy(&self, now: Time) -> (LinkBusy, Time) {
        self.host.busy(now)
    }

    /// Busy time of the link of a processor inside the drive, up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<LinkBusy> {
        self.host.inner_busy(now)
    }
}

// Internal events of the flash device, and its messages.

engine::events! {
    /// Internal events of the device.
    pub enum Event {
        /// A doorbell write has reached the controller.
        Doorbell(u16),
        /// A command has been fetched.
        Fetched(u32),
        /// The controller has processed a command.
        Ready(u32),
        /// The data of a write has arrived.
        DataIn(u32),
        /// The buffer's memory has been accessed for a command.
        Buffered(u32),
        /// A completion has reached the host.
        HostDone(u32),
        /// The map's entries for a command have been looked up.
        Known(u32),
        /// Cores have found new places for units read by garbage collection.
        Placed(u32),
        /// A sampling window of the dies, for a buffer that seeks idle ones, has ended: only one exists, the first.
        Sampled(u16),
        /// An event of the dies or channels.
        Dies(dies::Event),
        /// An idle period may be long enough for folding: only one exists, the first.
        Rested(u16),
    }
}

impl From<dies::Event> for Event {
    #[inline]
    fn from(event: dies::Event) -> Event {
        Event::Dies(event)
    }
}

/// Messages sent by the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done.
    Complete(Completion),
}

// Waits of each command, available when it is answered.

/// Operations of commands, kept until their accounts are taken.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// Last operation to end, by command. One left over from an earlier command of the same name never counts, because
    /// the milestones of the new one show that it did not wait.
    last: Vec<Waited>,
    /// Command answered last.
    answered: Option<u32>,
}

impl Device {
    /// Enables accounts of commands. This costs time and memory, and does not change results.
    pub fn keep_accounts(&mut self) {
        self.backend.keep_holders();
        self.accounts = Some(Box::default());
    }

    /// Records the waits of a command's last operation.
    #[inline]
    pub(super) fn note_waits(&mut self, op: &Op) {
        let Some(accounts) = &mut self.accounts else { return };
        let command = op.owner as usize;
        if command >= accounts.last.len() {
            accounts.last.resize(command + 1, Waited::default());
        }
        accounts.last[command] = self.backend.waited(op);
    }

    /// Records that a command is answered.
    #[inline]
    pub(super) fn note_answer(&mut self, id: u32) {
        let Some(accounts) = &mut self.accounts else { return };
        accounts.answered = Some(id);
        if self.backend.remembers_much() {
            self.forget();
        }
    }

    /// Forgets conflicts from before the oldest command under way.
    #[cold]
    fn forget(&mut self) {
        let oldest = self.active.live().map(|(_, active)| active.life.start()).min();
        self.backend.forget(oldest.unwrap_or_default());
    }

    /// Account of the command answered last, until the next command is submitted; `None` if accounts are not kept.
    pub fn account(&self) -> Option<Account> {
        let accounts = self.accounts.as_ref()?;
        let id = accounts.answered?;
        // The record stays readable until its name is reused.
        let life = &self.active[id].life;
        let waits: [u64; proto::MILESTONES] = std::array::from_fn(|n| life.part(n).ps());
        let (at_die, at_channel) = (waits[milestone::DIE_WAIT], waits[milestone::CHANNEL_WAIT]);
        let op = accounts.last.get(id as usize).copied().unwrap_or_default();
        let (mut die, mut channel) = ([0; Holder::COUNT], [0; Holder::COUNT]);
        if at_die + at_channel > 0 {
            (die, channel) = self.backend.in_the_way(&op)?;
        }
        let worked = waits[milestone::ARRAY] > 0 || at_die > 0;
        let (die_of_op, started) = (op.die(), op.started());
        let channel_of_op = self.ftl.geo.channel_of_die(die_of_op);
        let place = Place { drive: 0, die: die_of_op, channel: channel_of_op, started };
        Some(Account {
            waits,
            die: fit(die, at_die),
            channel: fit(channel, at_channel),
            place: worked.then_some(place),
        })
    }
}

/// Cuts or extends the waits found so that they sum to the time of a milestone. Usually the operation was queued at the
/// previous milestone. If the command waited for something else in between, that has its own milestone, and less is
/// left.
fn fit(mut found: ByHolder, time: u64) -> ByHolder {
    let mut left = time;
    for held in &mut found {
        *held = (*held).min(left);
        left -= *held;
    }
    found[Holder::Nobody as usize] += left;
    found
}
