//! Several drives as one: RAID 0, as Linux has it in software (`drivers/md/raid0.c`, and `drivers/md/dm-stripe.c`).
//!
//! Chunk `c` of the stripe is chunk `c / n` of member `c % n`. A command becomes at most one command for each member;
//! it is answered when all of them are, with the worst of their statuses and the sum of their errors. A flush goes to
//! every member. Its parts inherit all other attributes of a command (queue, flow, namespace, placement, priority,
//! FUA). An announcement goes to each member that has a part of it, for its share; the stripe's buffer is as full as
//! the fullest reported by a member.
//!
//! Decisions:
//!
//! * One command for each member. `raid0_make_request` splits a request at every chunk; parts for the same member are
//!   then merged by the block layer's plug, and deallocation is split by member in the first place
//!   (`raid0_handle_discard`).
//! * Members of different size: of each, only the size of the smallest is used, in whole chunks, as dm-stripe demands.
//!   md makes a second zone of the rest, over fewer members: a stripe whose speed depends on the address.
//!   [`Stripe::unused`] returns the size of the rest.
//! * The software's time is that of the submitting thread. It delays only its own command; answers cost nothing,
//!   because they pass by callback in the interrupt of the last member.
//! * The parts go out in one instant, in the order of their bytes.
//!
//! Bounds: commands are bounded by their submitters; none waits here for a member, whose own queues take its part.

mod shadow;
#[cfg(test)]
mod tests;

pub use shadow::Shadowed;

use config::{
    SpecError,
    units::{Bytes, Duration},
};
use engine::{Cx, Mutant, Slab, Time, planted};
use proto::{BufferState, Command, Completion, IoOp, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shadow::Shadow;

engine::events! {
    /// Internal events of a stripe.
    pub enum Event {
        /// The software has split a command.
        Split(u32),
    }
}

/// Messages sent by a stripe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command for a member.
    Submit {
        /// Number of the member.
        member: u16,
        /// Part of the command for the member. Its tag is the same at every member that has a part of the original
        /// command.
        command: Command,
    },
    /// A command is done.
    Complete(Completion),
}

/// Command inside.
#[derive(Clone, Copy, Debug)]
struct Job {
    command: Command,
    /// Unanswered parts; zero before they are sent.
    left: u16,
    /// Worst status so far, and map units in error.
    status: Status,
    errors: u32,
    /// Fullest buffer state so far.
    buffer: BufferState,
    /// Time of the first answer of a part.
    first: Option<Time>,
}

/// Several drives as one.
pub struct Stripe {
    submit: Time,
    layout: Layout,
    unused: u64,
    jobs: Slab<Job>,
    ledger: Ledger,
    shadow: Option<Box<Shadow>>,
    /// Statistics since the window began.
    pub stats: StripeStats,
}

impl Stripe {
    /// Creates a stripe over drives of `capacities` bytes.
    ///
    /// # Errors
    /// Returns the first value that cannot be built, with its key; problems of the drives have the key `drives`.
    pub fn new(spec: &StripeSpec, capacities: &[u64]) -> Result<Stripe, SpecError> {
        let layout = Layout::new(spec.chunk.get(), capacities)?;
        let used = layout.rows * layout.chunk;
        let mut stripe = Stripe {
            submit: spec.submit.time(),
            layout,
            unused: capacities.iter().map(|capacity| capacity - used).fold(0, u64::saturating_add),
            jobs: Slab::default(),
            ledger: Ledger::default(),
            shadow: None,
            stats: StripeStats::default(),
        };
        stripe.reset_stats(Time::ZERO);
        Ok(stripe)
    }

    /// Attaches a shadow, which follows the placement of bytes and the answers. Call it before the first command.
    pub fn attach_shadow(&mut self) {
        self.shadow = Some(Box::new(Shadow::new(self.layout)));
    }

    /// Results of the shadow, if any.
    pub fn shadowed(&self) -> Option<&Shadowed> {
        self.shadow.as_deref().map(Shadow::found)
    }

    /// Capacity in bytes, as seen by the submitter.
    pub fn capacity(&self) -> u64 {
        self.layout.capacity()
    }

    /// Number of members.
    pub fn members(&self) -> u16 {
        self.layout.members as u16
    }

    /// Bytes of the members beyond the whole chunks of the smallest one: no command reaches them.
    pub fn unused(&self) -> u64 {
        self.unused
    }

    /// Member of a byte, and its offset there.
    pub fn place(&self, offset: u64) -> (u16, u64) {
        let Layout { chunk, members, .. } = self.layout;
        let at = offset / chunk;
        ((at % members) as u16, at / members * chunk + offset % chunk)
    }

    /// Number of commands inside.
    pub fn outstanding(&self) -> usize {
        self.jobs.len()
    }

    /// Accepts a command. It is answered by [`Out::Complete`] when all its parts are.
    pub fn submit(&mut self, command: Command, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(command.op == IoOp::Flush || command.offset + command.bytes <= self.capacity());
        self.ledger.commands += 1;
        self.ledger.bytes += command.bytes;
        self.stats.commands += 1;
        self.stats.crossed += u64::from(self.layout.crosses(command.offset, command.bytes));
        let job = Job {
            command,
            left: 0,
            status: Status::Success,
            errors: 0,
            buffer: BufferState::Unknown,
            first: None,
        };
        let job = self.jobs.insert(job);
        if self.submit == Time::ZERO {
            self.split(job, cx);
        } else {
            cx.after(self.submit, Event::Split(job));
        }
    }

    /// Runs one internal event.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        let Event::Split(job) = event;
        self.split(job, cx);
    }

    fn split(&mut self, job: u32, cx: &mut impl Cx<Event, Out>) {
        let command = self.jobs[job].command;
        if let Some(shadow) = &mut self.shadow {
            shadow.splits(job, &command);
        }
        if command.op == IoOp::Flush {
            self.jobs[job].left = self.members();
            self.ledger.parted += command.bytes;
            for member in 0..self.members() {
                self.part(job, Extent { member, offset: 0, bytes: 0 }, &command, cx);
            }
        } else {
            let parts = self.layout.parts(command.offset, command.bytes);
            let lost = usize::from(planted(Mutant::LostPart) && parts.len() > 1);
            let sent = parts.len() - lost;
            self.jobs[job].left = sent as u16;
            for extent in parts.take(sent) {
                self.ledger.parted += extent.bytes;
                self.part(job, extent, &command, cx);
            }
        }
    }

    #[inline]
    fn part(&mut self, job: u32, extent: Extent, command: &Command, cx: &mut impl Cx<Event, Out>) {
        let Extent { member, offset, bytes } = extent;
        if let Some(shadow) = &mut self.shadow {
            shadow.sent(job, extent);
        }
        self.ledger.parts += 1;
        self.stats.parts += 1;
        let stats = &mut self.stats.members[usize::from(member)];
        stats.commands += 1;
        stats.bytes += bytes;
        let announced = command.announced.div_ceil(self.members().into());
        cx.emit(Out::Submit { member, command: Command { tag: job, offset, bytes, announced, ..*command } });
    }

    /// Handles a member's completion of its part of a command.
    pub fn completed(&mut self, member: u16, completion: Completion, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(member < self.members());
        self.ledger.answered += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.answered(completion.tag, member);
        }
        let job = &mut self.jobs[completion.tag];
        job.status = worse(job.status, completion.status);
        job.errors = job.errors.saturating_add(completion.errors);
        job.buffer = job.buffer.max(completion.buffer);
        let is_first = job.first.is_none();
        let first = *job.first.get_or_insert(cx.now());
        job.left -= 1;
        let Job { command, left, status, errors, buffer, .. } = *job;
        if if planted(Mutant::EarlyStripe) { is_first } else { left == 0 } {
            if let Some(shadow) = &mut self.shadow {
                shadow.completed(completion.tag);
            }
            cx.emit(Out::Complete(Completion { tag: command.tag, to: command.from, status, errors, buffer }));
        }
        if left == 0 {
            self.jobs.remove(completion.tag);
            self.ledger.completed += 1;
            self.stats.failed += u64::from(status != Status::Success);
            self.stats.straggling += cx.now() - first;
        }
    }
}

/// Returns the worse status: a write failure is worse than lost data.
fn worse(one: Status, other: Status) -> Status {
    let rank = |status| match status {
        Status::Success => 0,
        Status::UnrecoveredRead => 1,
        Status::WriteFault => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

// Spec of a stripe.

/// RAID 0: several drives as one, striped by chunk. The size of the smallest drive is used of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeSpec {
    /// Chunk: consecutive bytes on a drive before the next drive's turn, a multiple of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-multiple-of" = "4KiB"))]
    pub chunk: Bytes,
    /// Host time of a command before its parts are submitted: finding the drives, splitting. Commands do not wait for
    /// each other.
    pub submit: Duration,
}

// Statistics of a stripe.

/// Statistics of a member in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberStats {
    /// Number of commands.
    pub commands: u64,
    /// Bytes of these commands: read, written, deallocated, zeroed.
    pub bytes: u64,
}

/// Statistics of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripeStats {
    /// Commands received.
    pub commands: u64,
    /// Parts of these commands, over all members.
    pub parts: u64,
    /// Commands that spanned more than one chunk.
    pub crossed: u64,
    /// Commands answered with an error.
    pub failed: u64,
    /// Time from the first answer of a part to the last, summed over commands: the cost of waiting for the slowest
    /// member.
    pub straggling: Time,
    /// Statistics of each member.
    pub members: Vec<MemberStats>,
}

/// Counts since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    commands: u64,
    completed: u64,
    /// Parts sent to members, and their answers.
    parts: u64,
    answered: u64,
    /// Bytes of commands, and of the parts sent to members.
    bytes: u64,
    parted: u64,
}

impl Stripe {
    /// Starts the measured window and clears the statistics.
    pub fn reset_stats(&mut self, _now: Time) {
        let members = vec![MemberStats::default(); self.layout.members as usize];
        self.stats = StripeStats { members, ..StripeStats::default() };
    }

    /// Checks the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// Returns the violated equation, in numbers.
    pub fn check(&self) -> Result<(), String> {
        let (ledger, inside) = (self.ledger, self.jobs.len() as u64);
        if ledger.commands != ledger.completed + inside {
            return Err(format!(
                "{} commands, {} completed, {inside} inside",
                ledger.commands, ledger.completed
            ));
        }
        let left: u64 = self.jobs.live().map(|(_, job)| u64::from(job.left)).sum();
        if ledger.parts != ledger.answered + left {
            return Err(format!("{} parts, {} answered, {left} unanswered", ledger.parts, ledger.answered));
        }
        // Commands that still wait for their software have no parts.
        let waiting = self.jobs.live().filter(|(_, job)| job.left == 0);
        let waiting: u64 = waiting.map(|(_, job)| job.command.bytes).sum();
        if ledger.bytes != ledger.parted + waiting {
            return Err(format!(
                "{} bytes of commands, {} of their parts, {waiting} waiting",
                ledger.bytes, ledger.parted
            ));
        }
        Ok(())
    }
}

// Layout of the bytes of a stripe.

/// Maximum number of members: their numbers are 16 bits wide, and a flush goes to all of them at once.
const MEMBERS: usize = 1024;

/// Range of bytes of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extent {
    member: u16,
    offset: u64,
    bytes: u64,
}

/// Layout of a stripe: chunk `c` is chunk `c / members` of member `c % members`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    chunk: u64,
    members: u64,
    /// Number of chunks used on each member.
    rows: u64,
}

impl Layout {
    /// # Errors
    /// No members or too many, or one that is smaller than a chunk; a chunk of zero bytes, or more than 2^64 bytes in
    /// total.
    fn new(chunk: u64, capacities: &[u64]) -> Result<Layout, SpecError> {
        SpecError::positive("chunk", chunk)?;
        let smallest = capacities.iter().copied().enumerate().min_by_key(|(_, capacity)| *capacity);
        let Some((member, smallest)) = smallest.filter(|_| capacities.len() <= MEMBERS) else {
            let what = format!("{} striped drives; allowed are 1 to {MEMBERS}", capacities.len());
            return Err(SpecError::new("drives", what));
        };
        if smallest < chunk {
            let (chunk, smallest) = (Bytes::new(chunk), Bytes::new(smallest));
            let what =
                format!("a chunk of {chunk} does not fit on drive {member} of the stripe, with {smallest}");
            return Err(SpecError::new("chunk", what));
        }
        let (members, rows) = (capacities.len() as u64, smallest / chunk);
        if (rows * chunk).checked_mul(members).is_none() {
            return Err(SpecError::new(
                "drives",
                format!("{members} drives of {smallest} bytes exceed 2^64 bytes"),
            ));
        }
        Ok(Layout { chunk, members, rows })
    }

    /// Capacity used on all members, in bytes.
    fn capacity(&self) -> u64 {
        self.rows * self.chunk * self.members
    }

    /// Returns true if a range spans more than one chunk.
    fn crosses(&self, offset: u64, bytes: u64) -> bool {
        offset % self.chunk + bytes > self.chunk
    }

    /// Parts of a range, in the order in which their members come in it: at most one for each member. The chunks of a
    /// range on one member are consecutive there, because those in between are on the other members.
    fn parts(self, offset: u64, bytes: u64) -> impl ExactSizeIterator<Item = Extent> {
        let end = offset + bytes;
        let first = offset / self.chunk;
        let last = end.saturating_sub(1).max(offset) / self.chunk;
        // At most one for each member, of which there are few.
        let parts = (last - first + 1).min(self.members) as u16;
        (0..parts).map(move |part| {
            let begin = first + u64::from(part);
            let behind = last - (last - begin) % self.members;
            let at = |chunk: u64, byte: u64| chunk / self.members * self.chunk + byte.min(self.chunk);
            let from = at(begin, offset.saturating_sub(begin * self.chunk));
            let to = at(behind, end - behind * self.chunk);
            // The mutant misplaces parts after the first.
            let off = u64::from(planted(Mutant::WrongDrive) && part > 0);
            Extent { member: ((begin + off) % self.members) as u16, offset: from, bytes: to - from }
        })
    }
}
