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

mod layout;
mod shadow;
mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use shadow::Shadowed;
pub use spec::StripeSpec;
pub use stats::{MemberStats, StripeStats};

use config::SpecError;
use engine::{Cx, Mutant, Slab, Time, planted};
use layout::{Extent, Layout};
use proto::{BufferState, Command, Completion, IoOp, Status};
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
    ledger: stats::Ledger,
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
            ledger: stats::Ledger::default(),
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
