//! Several drives as one: RAID 0, as Linux has it in software (`drivers/md/raid0.c`, and `drivers/md/dm-stripe.c`).
//!
//! Chunk `c` of the stripe is chunk `c / n` of member `c % n`. A command becomes at most one command for each member; it is
//! answered when all of them are, with the worst of their statuses and the sum of their errors. A flush goes to every member. All else
//! that a command says (queue, flow, namespace, placement, priority, FUA) its parts say too. What it announces is announced to
//! each member that has a part of it, for its share; the stripe's buffer is as full as the fullest that a member has told of.
//!
//! Decisions:
//!
//! * One command for each member. `raid0_make_request` cuts a request at every chunk; what follows on the same member is then
//!   merged by the block layer's plug, and deallocation is cut by member in the first place (`raid0_handle_discard`).
//! * Members of different size: of each, as much is used as the smallest has, in whole chunks, as dm-stripe demands.
//!   md makes a second zone of what is left, over fewer members: a stripe whose speed depends on the address. [`Stripe::unused`]
//!   says how much that is.
//! * The software's time is that of the thread that submits. It delays its command, and no other; answers cost nothing, as
//!   they pass by callback in the interrupt of the last member.
//! * The parts go out in one instant, in the order of their bytes.
//!
//! Bounds: commands are bounded by who submits them; none waits here for a member, whose own queues take its part.

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
    /// What happens inside a stripe.
    pub enum Event {
        /// The software has split a command.
        Split(u32),
    }
}

/// Messages that a stripe sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command for a member.
    Submit {
        /// Which of them.
        member: u16,
        /// The command. Its tag is the same at every member that has a part of the command it is of.
        command: Command,
    },
    /// A command that came is done.
    Complete(Completion),
}

/// A command inside.
#[derive(Clone, Copy, Debug)]
struct Job {
    command: Command,
    /// Parts without an answer; zero before they go out.
    left: u16,
    /// The worst so far, and map units in error.
    status: Status,
    errors: u32,
    /// The fullest.
    buffer: BufferState,
    /// The first answer of a part.
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
    /// What happened since the window began.
    pub stats: StripeStats,
}

impl Stripe {
    /// A stripe over drives of so many bytes each.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key; what is wrong with the drives, with the key `drives`.
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

    /// From now on, a shadow follows where bytes go and what has been answered. Before the first command.
    pub fn attach_shadow(&mut self) {
        self.shadow = Some(Box::new(Shadow::new(self.layout)));
    }

    /// What the shadow has found, if there is one.
    pub fn shadowed(&self) -> Option<&Shadowed> {
        self.shadow.as_deref().map(Shadow::found)
    }

    /// Bytes that it has for who submits to it.
    pub fn capacity(&self) -> u64 {
        self.layout.capacity()
    }

    /// Members.
    pub fn members(&self) -> u16 {
        self.layout.members as u16
    }

    /// Bytes of the members beyond what the smallest of them has in whole chunks: no command reaches them.
    pub fn unused(&self) -> u64 {
        self.unused
    }

    /// Where a byte lies: the member, and the byte there.
    pub fn place(&self, offset: u64) -> (u16, u64) {
        let Layout { chunk, members, .. } = self.layout;
        let at = offset / chunk;
        ((at % members) as u16, at / members * chunk + offset % chunk)
    }

    /// Commands inside.
    pub fn outstanding(&self) -> usize {
        self.jobs.len()
    }

    /// Takes a command. It is answered by [`Out::Complete`] when all its parts are.
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

    /// Runs one of the stripe's own events.
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

    /// A member has done its part of a command.
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

/// Who can take no writes any more is worse off than who has lost data.
fn worse(one: Status, other: Status) -> Status {
    let rank = |status| match status {
        Status::Success => 0,
        Status::UnrecoveredRead => 1,
        Status::WriteFault => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

// What a user writes about a stripe.

/// Several drives as one, chunk after chunk in turn: RAID 0. As many bytes of each are used as the smallest has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StripeSpec {
    /// Consecutive bytes on a drive before the next drive's turn: a multiple of 4 KiB.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-multiple-of" = "4KiB"))]
    pub chunk: Bytes,
    /// Host time of a command before its parts are submitted: finding the drives, splitting. Commands do not wait for each other.
    pub submit: Duration,
}

// What a stripe counts.

/// What a member was given in the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberStats {
    /// Commands.
    pub commands: u64,
    /// Their bytes: read, written, deallocated, zeroed.
    pub bytes: u64,
}

/// Counters of the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripeStats {
    /// Commands that came.
    pub commands: u64,
    /// Commands that their parts made of them, over all members.
    pub parts: u64,
    /// Commands that had bytes of more than one chunk.
    pub crossed: u64,
    /// Commands that were answered with an error.
    pub failed: u64,
    /// Time from the first answer of a part to the last, of all commands together: what waiting for the slowest member costs.
    pub straggling: Time,
    /// By member.
    pub members: Vec<MemberStats>,
}

/// What has been counted since the beginning, for the check.
#[derive(Clone, Copy, Debug, Default)]
struct Ledger {
    commands: u64,
    completed: u64,
    /// Parts given to members, and their answers.
    parts: u64,
    answered: u64,
    /// Bytes of commands, and of the parts given to members.
    bytes: u64,
    parted: u64,
}

impl Stripe {
    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, _now: Time) {
        let members = vec![MemberStats::default(); self.layout.members as usize];
        self.stats = StripeStats { members, ..StripeStats::default() };
    }

    /// Holds the accounts against each other; they hold between any two events.
    ///
    /// # Errors
    /// What does not hold, in numbers.
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
            return Err(format!("{} parts, {} answered, {left} to come", ledger.parts, ledger.answered));
        }
        // What still waits for its software has no parts.
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

// Where the bytes of a stripe lie.

/// Members of a stripe, at most: their numbers are 16 bits wide, and a flush goes to all of them at once.
const MEMBERS: usize = 1024;

/// A range of bytes of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extent {
    member: u16,
    offset: u64,
    bytes: u64,
}

/// Chunk `c` is chunk `c / members` of member `c % members`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Layout {
    chunk: u64,
    members: u64,
    /// Chunks of each member that are used.
    rows: u64,
}

impl Layout {
    /// # Errors
    /// No members or too many, or one that is smaller than a chunk; a chunk of nothing, or more than 2^64 bytes.
    fn new(chunk: u64, capacities: &[u64]) -> Result<Layout, SpecError> {
        SpecError::positive("chunk", chunk)?;
        let smallest = capacities.iter().copied().enumerate().min_by_key(|(_, capacity)| *capacity);
        let Some((member, smallest)) = smallest.filter(|_| capacities.len() <= MEMBERS) else {
            let what = format!("{} drives are striped, but 1 to {MEMBERS} can be", capacities.len());
            return Err(SpecError::new("drives", what));
        };
        if smallest < chunk {
            let (chunk, smallest) = (Bytes::new(chunk), Bytes::new(smallest));
            let what =
                format!("a chunk of {chunk} does not fit on drive {member} of the stripe, of {smallest}");
            return Err(SpecError::new("chunk", what));
        }
        let (members, rows) = (capacities.len() as u64, smallest / chunk);
        if (rows * chunk).checked_mul(members).is_none() {
            return Err(SpecError::new(
                "drives",
                format!("{members} drives of {smallest} bytes are above 2^64 bytes"),
            ));
        }
        Ok(Layout { chunk, members, rows })
    }

    /// Bytes of all members that are used.
    fn capacity(&self) -> u64 {
        self.rows * self.chunk * self.members
    }

    /// Whether a range has bytes of more than one chunk.
    fn crosses(&self, offset: u64, bytes: u64) -> bool {
        offset % self.chunk + bytes > self.chunk
    }

    /// The parts of a range, in the order in which their members come in it: one for each member that has any of it. The chunks of a
    /// range that a member has follow each other there, because those between are on the other members.
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
            // Of a part behind the first.
            let off = u64::from(planted(Mutant::WrongDrive) && part > 0);
            Extent { member: ((begin + off) % self.members) as u16, offset: from, bytes: to - from }
        })
    }
}
