//! Back end: dies, channels, and the operations that wait for them.
//!
//! An operation waits at its die, requests the channel, sends its command (programs with their data), and works in the
//! array. A read then requests the channel again to hand out its data. The next operation is chosen when the channel is
//! granted, not when it is requested, so that a late but more urgent arrival still counts.

pub mod arbiter;
pub mod batch;
mod channel;
mod energy;
mod errors;
pub mod observe;
pub mod op;
mod pauses;
mod planes;
mod queues;
mod reuse;
pub mod sched;
mod state;
pub mod timing;

pub use channel::{Event, Transfer, Way};
pub use energy::{FlashCosts, FlashEnergySpec, MediaMeter};
pub use errors::ErrorRates;
pub use observe::{Holders, Waited};
pub use pauses::{PowerBudget, Suspend};
pub use planes::{IdlePlanes, Wanted};
pub use state::{Alike, BackendCounters, MultiPlane, Sharing};
pub use timing::Spread;

use crate::geometry::Geometry;
use crate::registers::Link;
use arbiter::{Arbiter, Want};
use channel::{Channel, Links, TRANSFER};
use engine::{Cx, Slab, Ticket, Time};
use errors::Errors;
use observe::Observer;
use op::{Class, NO_OP, Op, OpKind};
use pauses::{ArrayTime, Budget};
use queues::Queues;
use reuse::Reuse;
use sched::{DieView, Scheduler};
use stats::Little;
use std::collections::VecDeque;
use std::convert::Infallible;
use timing::Timing;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DieState {
    /// Free.
    Idle,
    /// Waits for the channel to take a command.
    Asking,
    /// Array busy.
    Working,
    /// Waits for the channel with read data in the register.
    Holding,
    /// Transfers read data over the channel.
    Moving,
    /// Waits for the channel to read again: the data had too many errors.
    Retrying,
    /// Suspends an operation in order to take commands.
    Suspending,
}

#[derive(Clone, Debug)]
struct Die {
    state: DieState,
    channel: u32,
    active: u32,
    ticket: Option<Ticket>,
    /// Start of the array's current work; its end follows.
    array_from: Time,
    array_to: Time,
    suspended: Option<(u32, Time)>,
    busy_since: Time,
    busy: Time,
    /// Time when the active command took the die, or took it again after a suspension.
    held_since: Time,
    touched: bool,
    /// Number of planes whose own read is in the die.
    reading: u8,
    /// Ticket while the die waits, or has waited, for programs that could share its next command.
    gathering: Option<Ticket>,
    has_gathered: bool,
    /// Step of the active read, 0 the first; the last step that it needs follows.
    step: u8,
    steps: u8,
}

/// Dies and channels.
pub struct Backend {
    timing: Timing,
    /// Units that work in parallel: the dies, followed by their planes if these read independently.
    dies: Vec<Die>,
    die_count: u32,
    /// Planes of a die that read independently; 0 if reads take the whole die.
    reading_planes: u32,
    channels: Vec<Channel>,
    queues: Queues,
    reuse: Reuse,
    /// Operations between being queued and being taken by the device.
    pub ops: Slab<Op>,
    /// Finished operations that the device has not yet taken, in order.
    pub finished: VecDeque<u32>,
    touched: Vec<u32>,
    /// Dies that have run out of work since the device last checked; kept only if it does check.
    pub went_idle: Vec<u32>,
    tells_idle: bool,
    scheduler: Box<dyn Scheduler>,
    holds_line: bool,
    arbiter: Box<dyn Arbiter>,
    sharing: Sharing,
    /// Multiplicity of an operation.
    alike: Alike,
    suspend: Suspend,
    /// Remaining power for programs and erases, if it is limited.
    budget: Option<Box<Budget>>,
    /// Raw bit errors, if modelled.
    errors: Option<Box<Errors>>,
    fold: bool,
    /// Planes without work, if the allocator uses them.
    pub idle: IdlePlanes,
    /// Time that a die waits for host programs that could share its next command.
    gather: Option<Time>,
    /// Counters.
    pub counters: BackendCounters,
    array_time: ArrayTime,
    /// Maximum number of suspends of one operation so far.
    suspends_most: u64,
    /// Number in the die queues, for Little's law.
    pub queued: Little,
    /// Data in transfer to and from registers that gather writes.
    transfers: Slab<Transfer>,
    links: Option<Links>,
    /// Observer of every command that ends.
    pub observer: Option<Box<dyn Observer>>,
    /// Energy meter, if energies are known.
    pub meter: Option<Box<MediaMeter>>,
    /// Channel bytes of operations, counted when they are queued, if energies are known.
    queued_bytes: u64,
    /// Log of holders that others wait for, if kept.
    holders: Option<Box<Holders>>,
}

/// Policies and switches of a back end.
pub struct BackendPolicy {
    /// Policy that chooses the operation of a free die.
    pub scheduler: Box<dyn Scheduler>,
    /// Policy that chooses the tenant of a channel.
    pub arbiter: Box<dyn Arbiter>,
    /// Rule of multi-plane commands.
    pub sharing: Sharing,
    /// True if the planes of a die read independently of one another.
    pub independent_reads: bool,
    /// True if a plane's register serves reads of the page that it holds.
    pub register_reads: bool,
    /// True if reads of one page share its sensing.
    pub joins_reads: bool,
    /// Suspend parameters.
    pub suspend: Suspend,
    /// Power limit of the programs and erases of all dies together, if any.
    pub budget: Option<PowerBudget>,
    /// True if the device wants to know when a die runs out of work.
    pub tells_idle: bool,
    /// True if stages without contention are folded into their neighbours. Results do not depend on it.
    pub fold: bool,
    /// Requirements of the allocator.
    pub wanted: Option<Wanted>,
    /// Link over which pages go from registers that gather writes to the data registers of other planes, if any.
    pub link: Option<Link>,
}

impl Backend {
    /// Creates an idle back end.
    pub fn new(geo: &Geometry, mut timing: Timing, policy: BackendPolicy) -> Backend {
        let rates = timing.errors.take();
        let errors = rates.map(|rates| Box::new(Errors::new(rates, &timing.page_type, geo)));
        let die = |n: u32| Die {
            state: DieState::Idle,
            channel: geo.channel_of_die(n),
            active: NO_OP,
            ticket: None,
            array_from: Time::ZERO,
            array_to: Time::ZERO,
            suspended: None,
            busy_since: Time::ZERO,
            busy: Time::ZERO,
            held_since: Time::ZERO,
            touched: false,
            reading: 0,
            gathering: None,
            has_gathered: false,
            step: 0,
            steps: 0,
        };
        let reading_planes = if policy.independent_reads { geo.die_planes } else { 0 };
        let planes = (0..geo.die_count * reading_planes).map(|plane| die(plane / reading_planes));
        Backend {
            timing,
            dies: (0..geo.die_count).map(die).chain(planes).collect(),
            die_count: geo.die_count,
            reading_planes,
            channels: vec![Channel::default(); geo.shape.channels as usize],
            queues: Queues::new(geo.die_count, geo.die_planes, geo.shape.planes),
            reuse: Reuse::new(geo, policy.register_reads, policy.joins_reads),
            ops: Slab::default(),
            finished: VecDeque::new(),
            touched: Vec::new(),
            went_idle: Vec::new(),
            tells_idle: policy.tells_idle,
            holds_line: policy.scheduler.holds_line(),
            scheduler: policy.scheduler,
            arbiter: policy.arbiter,
            sharing: policy.sharing,
            alike: Alike::NONE,
            suspend: policy.suspend,
            budget: policy.budget.map(|rule| Box::new(Budget::new(rule, geo.die_count))),
            errors,
            fold: policy.fold,
            idle: IdlePlanes::new(geo, policy.wanted.as_ref()),
            gather: policy.wanted.map(|w| w.gather).filter(|_| policy.sharing.rule != MultiPlane::Off),
            counters: BackendCounters::default(),
            array_time: ArrayTime::default(),
            suspends_most: 0,
            queued: Little::new(Time::ZERO),
            transfers: Slab::default(),
            links: policy.link.map(|link| Links::new(link, geo.die_planes)),
            observer: None,
            meter: None,
            queued_bytes: 0,
            holders: None,
        }
    }

    /// Queues an operation at its die. It starts at the next [`Backend::kick`] at the earliest, so that operations that
    /// arrive together can share a multi-plane command.
    #[inline]
    pub fn enqueue(&mut self, now: Time, op: Op) -> u32 {
        let name = self.ops.insert(Op { queued: now, ..op });
        self.queued.arrive(now);
        self.counters.reads_queued += u64::from(op.kind == OpKind::Read);
        if self.meter.is_some() {
            self.note_bytes(&op);
        }
        if self.joins(name, now) {
            return name;
        }
        self.queues.push(&mut self.ops, name);
        self.idle.note(op.die, false);
        let die = &mut self.dies[op.die as usize];
        if op.class.is_waited_read() && die.active != NO_OP && self.ops[die.active].class.is_collection() {
            self.counters.reads_behind_gc += 1;
        }
        if self.holds_line {
            self.channels[die.channel as usize].line.push_back(name);
        }
        if !die.touched {
            die.touched = true;
            self.touched.push(op.die);
        }
        name
    }

    /// Starts work on the dies at which operations have been queued.
    #[inline]
    pub fn kick(&mut self, cx: &mut impl Cx<Event, Infallible>) {
        if !self.touched.is_empty() {
            self.serve_touched(cx);
        }
    }

    fn serve_touched(&mut self, cx: &mut impl Cx<Event, Infallible>) {
        // The list does not change during the walk: enqueue is not called from here.
        for at in 0..self.touched.len() {
            let die = self.touched[at];
            self.dies[die as usize].touched = false;
            match self.dies[die as usize].state {
                DieState::Idle => self.next_for(die, cx),
                DieState::Working => self.consider_suspend(die, cx),
                _ => {}
            }
        }
        self.touched.clear();
    }

    /// Returns the classes that the die may take now: while an operation is suspended, only reads with a waiter;
    /// otherwise those for which enough power is left.
    #[inline]
    fn eligible(&self, die: u32) -> u16 {
        let waiting = self.queues.waiting(die);
        if self.dies[die as usize].suspended.is_some() {
            waiting & WAITED_READS
        } else {
            self.powered(die, waiting)
        }
    }

    #[inline]
    fn pick(&mut self, die: u32, now: Time) -> Option<Class> {
        let waiting = self.eligible(die);
        if waiting.is_power_of_two() && !self.holds_line {
            return Some(Class::ALL[waiting.trailing_zeros() as usize]);
        }
        let (queues, ops) = (&self.queues, &self.ops);
        let since = |class: Class| queues.waiting_since(ops, die, class);
        self.scheduler.pick(&DieView { now, waiting, oldest: queues.oldest(die), since: &since })
    }

    /// Looks for work for an idle unit.
    fn next_for(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        if self.reading_planes > 0 {
            return self.next_for_planes(self.die_of(die), cx);
        }
        if self.eligible(die) == 0 {
            return self.out_of_work(die, cx);
        }
        if self.holds_line && !self.is_next_in_line(die) {
            return;
        }
        if self.gathers(die, cx) {
            return;
        }
        self.dies[die as usize].state = DieState::Asking;
        let channel = self.dies[die as usize].channel;
        let c = &self.channels[channel as usize];
        if cx.now() >= c.busy_until && !c.is_wanted() {
            self.grant(die, cx);
        } else if let Some(class) = self.pick(die, cx.now()) {
            let want = Want::of(self.queues.head(&self.ops, die, class));
            self.ask(die, want, cx);
        }
    }

    /// Handles an idle die without eligible work.
    fn out_of_work(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        if let Some((op, left)) = self.dies[die as usize].suspended.take() {
            self.resume(die, op, left, cx);
            return;
        }
        if self.waits_for_power(die) {
            return;
        }
        self.idle.note(die, true);
        if self.tells_idle {
            self.went_idle.push(die);
        }
    }

    fn is_next_in_line(&self, die: u32) -> bool {
        let channel = &self.channels[self.dies[die as usize].channel as usize];
        channel.line.front().is_some_and(|op| self.ops[*op].die == die)
    }

    /// Grants a die its channel.
    #[inline]
    fn grant(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        if die & TRANSFER != 0 {
            return self.grant_transfer(die, cx);
        }
        match self.dies[die as usize].state {
            DieState::Holding => self.grant_data(die, cx),
            DieState::Retrying => self.grant_retry(die, cx),
            _ => self.grant_command(die, cx),
        }
    }

    fn grant_command(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        if self.yields_to_read(die, cx) {
            return;
        }
        let Some(first) = self.take_for(die, now) else {
            // Other dies have taken the power since this die requested its channel.
            self.dies[die as usize].state = DieState::Idle;
            return self.next_for(die, cx);
        };
        self.takes_power(die, first);
        if self.gather.is_some() && self.ops[first].class == Class::HostProgram {
            self.ends_gathering(die, cx);
        }
        self.begins(die, first);
        let (mut tenure, mut array) = (Time::ZERO, Time::ZERO);
        let mut at = first;
        while at != NO_OP {
            let op = &self.ops[at];
            tenure += self.timing.command(op);
            array = array.max(self.timing.array(op));
            self.counters.senses += u64::from(op.kind == OpKind::Read && !op.from_register);
            at = op.mate;
        }
        if self.links.is_some() {
            array = array.max(self.array_with_links(first, now + tenure));
        }
        self.start(first, now, tenure);
        if self.ops[first].mate != NO_OP || self.alike.planes > 1 {
            self.counters.multi_plane += 1;
        }
        if self.is_plane(die) {
            self.occupy(die, now);
        }
        self.array_time.due += array;
        if self.meter.is_some() {
            self.spend_command(first, now, now + tenure);
        }
        if self.dies[die as usize].suspended.is_none() {
            self.dies[die as usize].busy_since = now;
            if !self.is_plane(die)
                && let Some(meter) = &mut self.meter
            {
                meter.die_begins(now);
            }
        }
        let d = &mut self.dies[die as usize];
        d.state = DieState::Working;
        d.active = first;
        d.held_since = now;
        d.array_from = now + tenure;
        d.array_to = now + tenure + array;
        d.ticket = Some(cx.after(tenure + array, Event::ArrayDone(die)));
        let channel = d.channel;
        self.hold(channel, (self.ops[first].class, tenure), cx);
        if self.holds_line {
            self.start_line(channel, first, cx);
        }
    }

    /// Returns the array time of a command from `at` on, including the way from registers of other planes.
    fn array_with_links(&mut self, first: u32, at: Time) -> Time {
        let Some(links) = &mut self.links else { return Time::ZERO };
        let (mut longest, mut op) = (Time::ZERO, first);
        while op != NO_OP {
            let record = &self.ops[op];
            longest = longest.max(links.reach(record, at) + self.timing.array(record));
            op = record.mate;
        }
        longest
    }

    /// Starts the head of the line, so that the next one may request the channel.
    fn start_line(&mut self, channel: u32, first: u32, cx: &mut impl Cx<Event, Infallible>) {
        let mut at = first;
        while at != NO_OP {
            self.channels[channel as usize].line.retain(|op| *op != at);
            at = self.ops[at].mate;
        }
        if let Some(head) = self.channels[channel as usize].line.front() {
            let die = self.ops[*head].die;
            if self.dies[die as usize].state == DieState::Idle {
                self.next_for(die, cx);
            }
        }
    }

    fn grant_data(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let Die { active: first, step, .. } = self.dies[die as usize];
        let tenure = self.leave(first, step, now);
        if self.meter.is_some() {
            self.spend_leaving(first, step, now, now + tenure);
        }
        let d = &mut self.dies[die as usize];
        d.state = DieState::Moving;
        let channel = d.channel;
        self.move_data(channel, (self.ops[first].class, tenure), Event::TransferDone(die), cx);
    }

    /// Handles an event of dies and channels, except the end of a transfer ([`Backend::transferred`]).
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Infallible>) {
        match event {
            Event::ArrayDone(die) => self.array_done(die, cx),
            Event::TransferDone(die) => self.transfer_done(die, cx),
            Event::ChannelFree(channel) => self.channel_free(channel, cx),
            Event::Suspended(die) => self.suspended(die, cx),
            Event::Gathered(die) => self.gathered(die, cx),
            Event::Moved(_) => unreachable!("the requester of a transfer handles its end"),
        }
    }

    /// Handles a die whose array has finished.
    fn array_done(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let d = &mut self.dies[die as usize];
        d.ticket = None;
        self.array_time.worked += now - d.array_from;
        let (first, step, from) = (d.active, d.step, d.array_from);
        if self.meter.is_some() {
            self.spend(first, step, from, now);
        }
        if self.errors.is_some() {
            self.leaves_traces(die, now);
        }
        let is_read = self.ops[first].kind == OpKind::Read;
        if step > 0 {
            self.sensed_again(first, now);
        } else if is_read {
            self.sensed(first, now);
        }
        if is_read && self.hands_out(first) {
            let d = &mut self.dies[die as usize];
            d.state = DieState::Holding;
            let c = &self.channels[d.channel as usize];
            if now >= c.busy_until && !c.is_wanted() {
                self.grant_data(die, cx);
            } else {
                self.ask(die, Want::DataOut, cx);
            }
            return;
        }
        self.finish(die, now);
        self.next_for(die, cx);
    }

    /// Handles a read whose data has left the die.
    fn transfer_done(&mut self, die: u32, cx: &mut impl Cx<Event, Infallible>) {
        // `looks_again` stays set meanwhile: this event is the check.
        let Die { channel, step, steps, .. } = self.dies[die as usize];
        if step < steps {
            self.reads_again(die, cx);
        } else {
            self.finish(die, cx.now());
            self.next_for(die, cx);
        }
        self.channels[channel as usize].looks_again = false;
        self.serve(channel, cx);
    }

    /// Ends the active command of a die: its operations go to the device.
    #[inline]
    fn finish(&mut self, die: u32, now: Time) {
        if self.is_plane(die) {
            self.vacate(die, now);
        }
        let d = &self.dies[die as usize];
        let (Op { class, kind, .. }, held_since) = (self.ops[d.active], d.held_since);
        self.was_held(die, class, held_since, now);
        self.gives_power_back(kind);
        let d = &mut self.dies[die as usize];
        d.state = DieState::Idle;
        let is_free = d.suspended.is_none();
        if is_free {
            d.busy += now - d.busy_since;
        }
        (d.step, d.steps) = (0, 0);
        let mut at = std::mem::replace(&mut d.active, NO_OP);
        if is_free
            && !self.is_plane(die)
            && let Some(meter) = &mut self.meter
        {
            meter.die_ends(now);
        }
        if self.observer.is_some() {
            self.show(at, now);
        }
        while at != NO_OP {
            let op = &self.ops[at];
            self.counters.done[op.class as usize] += 1;
            self.counters.units[op.class as usize] += u64::from(op.units);
            self.counters.copy_backs += u64::from(op.kind == OpKind::CopyBack);
            self.finished.push_back(at);
            at = self.after(at);
        }
    }

    /// Returns whether array times depend on wear.
    pub fn wears(&self) -> bool {
        self.timing.wear_ppm != timing::Wear::default()
    }
}

/// Bit set of the classes of reads with a waiter.
const WAITED_READS: u16 = (1 << (Class::LowRead as u8 + 1)) - 1;
/// Bit set of the classes served by planes that read independently.
const PLANE_READS: u16 = (1 << (Class::AheadRead as u8 + 1)) - 1;
