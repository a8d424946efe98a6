//! Batch of reads on an otherwise idle channel, computed without events.
//!
//! Between the first command and the last transfer nothing observes the state, so only the ends of transfers and the
//! sums count. The outcome and its timing are those of [`Backend`] with the same reads: [`Batch`] follows its states of
//! dies and of the channel, and a test compares the two. More reads may arrive while the first ones are in flight: the
//! results beyond that moment are then computed again.

use super::arbiter::{Arbiter, Want};
use super::op::Class;
use super::{Backend, DieState, Event};
use engine::{Cx, Time};
use std::collections::VecDeque;
use std::convert::Infallible;

/// No command.
const NONE: u32 = u32::MAX;

/// Read of one page of all planes of a die.
#[derive(Clone, Copy, Debug)]
struct Command {
    arrived: Time,
    kind: u8,
    /// Next command of the same die.
    next: u32,
}

/// Die with commands of the batch.
#[derive(Clone, Copy, Debug)]
struct Unit {
    die: u32,
    state: DieState,
    active: u32,
    head: u32,
    tail: u32,
    busy_since: Time,
    busy: Time,
}

/// Durations of a command on each resource.
#[derive(Clone, Copy, Debug)]
struct Tenures<'t> {
    /// Time on the channel for the command.
    command: Time,
    /// Time in the array, by page type.
    array: &'t [Time],
    /// Time on the channel for the data.
    data: Time,
}

/// Batch of reads, each of which begins while another one is in flight.
#[derive(Debug, Default)]
pub struct Batch {
    commands: Vec<Command>,
    /// Index into the units by die, for dies in the batch.
    place: Vec<u32>,
    /// Units with commands, in order of their first command.
    touched: Vec<u32>,
    /// Commands whose data have left the channel, in that order, with the time.
    left: Vec<(u32, Time)>,
    state: State,
    /// State when commands last arrived, and the number that had left by then.
    saved: (State, usize),
    /// Maximum number of commands that have waited at once.
    most: u64,
    /// Number of commands by page type.
    kinds: Vec<u64>,
}

/// State that changes as time passes.
#[derive(Debug, Default)]
struct State {
    units: Vec<Unit>,
    /// End of each unit's array work or transfer, and its position in the schedule order.
    due: Vec<(Time, u32)>,
    channel: Shared,
    scheduled: u32,
    /// Number of commands that have gone out; the last of them and the sum of their waits follow.
    begun: u64,
    last: Time,
    waited: u128,
    array: Time,
}

/// Channel state.
#[derive(Debug, Default)]
struct Shared {
    busy_until: Time,
    busy: Time,
    looks_again: bool,
    moves_data: bool,
    wake: Option<Time>,
    /// Units that wait to take a command, and to hand out data, with their positions in the order of requests.
    waiting: [VecDeque<(u32, u64)>; 2],
    asked: u64,
}

impl State {
    /// Copies a different state into this one's memory.
    fn become_like(&mut self, other: &State) {
        let State { units, due, channel, scheduled, begun, last, waited, array } = other;
        self.units.clone_from(units);
        self.due.clone_from(due);
        self.channel.become_like(channel);
        (self.scheduled, self.begun, self.last) = (*scheduled, *begun, *last);
        (self.waited, self.array) = (*waited, *array);
    }

    /// Resets the state to that before the first command.
    fn clear(&mut self) {
        let State { mut units, mut due, channel, .. } = std::mem::take(self);
        units.clear();
        due.clear();
        let mut waiting = channel.waiting;
        waiting.iter_mut().for_each(VecDeque::clear);
        *self = State { units, due, channel: Shared { waiting, ..Shared::default() }, ..State::default() };
    }
}

impl Shared {
    fn become_like(&mut self, other: &Shared) {
        let Shared { busy_until, busy, looks_again, moves_data, wake, waiting, asked } = other;
        (self.busy_until, self.busy, self.wake, self.asked) = (*busy_until, *busy, *wake, *asked);
        (self.looks_again, self.moves_data) = (*looks_again, *moves_data);
        for (own, others) in self.waiting.iter_mut().zip(waiting) {
            own.clear();
            own.extend(others);
        }
    }

    fn is_wanted(&self) -> bool {
        self.waiting.iter().any(|waiting| !waiting.is_empty())
    }

    fn is_free(&self, now: Time) -> bool {
        now >= self.busy_until && !self.is_wanted()
    }

    fn look_again(&mut self) {
        self.looks_again = true;
        self.wake = Some(self.busy_until);
    }

    fn ask(&mut self, unit: u32, is_data: bool) {
        self.asked += 1;
        self.waiting[usize::from(is_data)].push_back((unit, self.asked));
        if !self.looks_again {
            self.look_again();
        }
    }

    fn hold(&mut self, now: Time, tenure: Time, moves_data: bool) {
        self.busy_until = now + tenure;
        self.busy += tenure;
        self.looks_again |= moves_data;
        self.moves_data = moves_data;
    }
}

/// Batch while it advances.
struct Pass<'b> {
    commands: &'b [Command],
    left: &'b mut Vec<(u32, Time)>,
    state: &'b mut State,
    tenures: Tenures<'b>,
    arbiter: &'b mut dyn Arbiter,
}

impl Pass<'_> {
    /// Advances time up to `until`, events at that time included.
    fn run(&mut self, until: Time) {
        loop {
            let Some((unit, due)) = self.soonest() else { return };
            // The channel's own wake-up follows the other events of its instant.
            if let Some(wake) = self.state.channel.wake.filter(|wake| *wake < due) {
                if wake > until {
                    return;
                }
                self.state.channel.wake = None;
                self.channel_free(wake);
            } else if due > until || due == Time::MAX {
                return;
            } else {
                self.state.due[unit as usize] = (Time::MAX, 0);
                match self.state.units[unit as usize].state {
                    DieState::Working => self.array_done(unit, due),
                    _ => self.transfer_done(unit, due),
                }
            }
        }
    }

    /// Returns the unit whose array or transfer ends first, and the time; `None` if nothing is in flight.
    #[inline]
    fn soonest(&self) -> Option<(u32, Time)> {
        let (mut soonest, mut at) = (*self.state.due.first()?, 0);
        for (unit, due) in (1..).zip(&self.state.due[1..]) {
            if due.0 < soonest.0 || due.0 == soonest.0 && due.1 < soonest.1 {
                (soonest, at) = (*due, unit);
            }
        }
        Some((at, soonest.0))
    }

    fn channel_free(&mut self, now: Time) {
        let channel = &mut self.state.channel;
        if now >= channel.busy_until {
            channel.looks_again = false;
            self.serve(now);
        } else if !channel.moves_data {
            channel.look_again();
        }
    }

    fn array_done(&mut self, unit: u32, now: Time) {
        self.state.units[unit as usize].state = DieState::Holding;
        if self.state.channel.is_free(now) {
            self.grant_data(unit, now);
        } else {
            self.state.channel.ask(unit, true);
        }
    }

    fn transfer_done(&mut self, unit: u32, now: Time) {
        let of = &mut self.state.units[unit as usize];
        of.busy += now - of.busy_since;
        of.state = DieState::Idle;
        self.left.push((of.active, now));
        self.next_for(unit, now);
        self.state.channel.looks_again = false;
        self.serve(now);
    }

    fn next_for(&mut self, unit: u32, now: Time) {
        let of = &mut self.state.units[unit as usize];
        if of.head == NONE {
            return;
        }
        of.state = DieState::Asking;
        if self.state.channel.is_free(now) {
            self.grant_command(unit, now);
        } else {
            self.state.channel.ask(unit, false);
        }
    }

    fn serve(&mut self, now: Time) {
        while !self.state.channel.looks_again && self.state.channel.is_wanted() {
            if now < self.state.channel.busy_until {
                return self.state.channel.look_again();
            }
            let [commands, data] = &self.state.channel.waiting;
            let head = |waiting: &VecDeque<(u32, u64)>| waiting.front().map(|(_, asked)| *asked);
            let want = self.arbiter.pick(&[head(commands), None, head(data), None]);
            let is_data = want == Want::DataOut;
            let Some((unit, _)) = self.state.channel.waiting[usize::from(is_data)].pop_front() else {
                return;
            };
            if is_data {
                self.grant_data(unit, now);
            } else {
                self.grant_command(unit, now);
            }
        }
    }

    fn grant_command(&mut self, unit: u32, now: Time) {
        let of = &mut self.state.units[unit as usize];
        let command = self.commands[of.head as usize];
        of.active = std::mem::replace(&mut of.head, command.next);
        of.busy_since = now;
        of.state = DieState::Working;
        let array = self.tenures.array[usize::from(command.kind)];
        self.state.begun += 1;
        self.state.last = now;
        self.state.waited += u128::from((now - command.arrived).ps());
        self.state.array += array;
        self.due(unit, now + self.tenures.command + array);
        self.state.channel.hold(now, self.tenures.command, false);
    }

    fn grant_data(&mut self, unit: u32, now: Time) {
        self.state.units[unit as usize].state = DieState::Moving;
        self.state.channel.hold(now, self.tenures.data, true);
        self.due(unit, now + self.tenures.data);
    }

    fn due(&mut self, unit: u32, at: Time) {
        self.state.scheduled += 1;
        self.state.due[unit as usize] = (at, self.state.scheduled);
    }
}

impl Batch {
    /// Clears the previous batch.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.place.fill(NONE);
        self.left.clear();
        self.kinds.fill(0);
        self.most = 0;
        self.state.clear();
        self.saved.0.clear();
        self.saved.1 = 0;
    }

    /// Returns the commands whose data have left the channel, in that order with the time, and the number that had left
    /// when commands last arrived.
    pub fn left(&self) -> (&[(u32, Time)], usize) {
        (&self.left, self.saved.1)
    }

    fn pass<'b>(&'b mut self, tenures: Tenures<'b>, arbiter: &'b mut dyn Arbiter) -> Pass<'b> {
        Pass { commands: &self.commands, left: &mut self.left, state: &mut self.state, tenures, arbiter }
    }

    /// Adds a read of a page, by type, on all planes of a die.
    fn push(&mut self, arrived: Time, die: u32, kind: u8) {
        let at = self.commands.len() as u32;
        if self.place.len() <= die as usize {
            self.place.resize(die as usize + 1, NONE);
        }
        if self.kinds.len() <= usize::from(kind) {
            self.kinds.resize(usize::from(kind) + 1, 0);
        }
        self.kinds[usize::from(kind)] += 1;
        self.commands.push(Command { arrived, kind, next: NONE });
        let units = &mut self.state.units;
        let unit = &mut self.place[die as usize];
        if *unit == NONE {
            *unit = units.len() as u32;
            let (state, none) = (DieState::Idle, Time::ZERO);
            units.push(Unit {
                die,
                state,
                active: NONE,
                head: NONE,
                tail: NONE,
                busy_since: none,
                busy: none,
            });
            self.state.due.push((Time::MAX, 0));
        }
        let of = &mut units[*unit as usize];
        let tail = std::mem::replace(&mut of.tail, at);
        if of.head == NONE {
            of.head = at;
        } else {
            self.commands[tail as usize].next = at;
        }
        if of.state == DieState::Idle && !self.touched.contains(unit) {
            self.touched.push(*unit);
        }
    }

    /// Returns the time that dies were busy, summed over them.
    pub fn busy(&self) -> Time {
        self.state.units.iter().fold(Time::ZERO, |sum, unit| sum + unit.busy)
    }

    /// Returns the number of commands by page type.
    pub fn kinds(&self) -> &[u64] {
        &self.kinds
    }

    /// Returns the time of the first command, and the time when the last data left the channel.
    pub fn span(&self) -> (Time, Time) {
        let begins = self.commands.first().map_or(Time::ZERO, |first| first.arrived);
        (begins, self.left.last().map_or(begins, |(_, at)| *at))
    }
}

impl Backend {
    /// Returns whether reads of all planes of dies can be computed as a batch now: nothing is in flight, and no
    /// observer is attached.
    pub fn takes_batches(&self, now: Time) -> bool {
        self.fold
            && self.channels.len() == 1
            && self.observer.is_none()
            && self.holders.is_none()
            && self.errors.is_none()
            && self.timing.spread.is_none()
            && self.timing.pages_per_unit == 1
            && self.reading_planes == 0
            && !self.holds_line
            && !self.shares_sensings()
            && self.is_at_rest()
            && self.channels.iter().all(|channel| now >= channel.busy_until)
    }

    /// Computes reads that join a batch now: each is a die and a page, on all planes. `bytes` is the page size.
    pub fn work_out(
        &mut self,
        batch: &mut Batch,
        (now, bytes): (Time, u32),
        reads: impl Iterator<Item = (u32, u32)>,
    ) {
        let planes = self.queues.planes_of_a_die() as u64;
        let tenures = Tenures {
            command: self.timing.read_command.times(planes),
            array: &self.timing.read,
            data: self.timing.leave(bytes.into()).times(planes),
        };
        let arbiter = &mut *self.arbiter;
        // Return to the time when commands last arrived, and advance from there to the present.
        batch.state.become_like(&batch.saved.0);
        batch.left.truncate(batch.saved.1);
        batch.pass(tenures, arbiter).run(now);
        for (die, page) in reads {
            batch.push(now, die, self.timing.page_type[page as usize]);
        }
        batch.most = batch.most.max(batch.commands.len() as u64 - batch.state.begun);
        let touched = std::mem::take(&mut batch.touched);
        let mut pass = batch.pass(tenures, arbiter);
        touched.iter().for_each(|unit| pass.next_for(*unit, now));
        batch.touched = touched;
        batch.touched.clear();
        batch.saved.0.become_like(&batch.state);
        batch.saved.1 = batch.left.len();
        batch.pass(tenures, arbiter).run(Time::MAX);
    }

    /// Counts a batch that has ended.
    pub fn carried_out(&mut self, batch: &Batch, bytes: u32) {
        let planes = self.queues.planes_of_a_die() as u64;
        let commands = batch.commands.len() as u64;
        let operations = commands * planes;
        let (begins, _) = batch.span();
        let waited = batch.state.waited * u128::from(planes);
        self.queued.crowd((begins, batch.state.last), operations, batch.most * planes, waited);
        self.counters.reads_queued += operations;
        self.counters.senses += operations;
        self.counters.multi_plane += if planes.max(self.alike.planes.into()) > 1 { commands } else { 0 };
        self.counters.done[Class::HostRead as usize] += operations;
        self.counters.units[Class::HostRead as usize] += operations;
        self.array_time.due += batch.state.array;
        self.array_time.worked += batch.state.array;
        for unit in &batch.state.units {
            self.dies[unit.die as usize].busy += unit.busy;
        }
        let (channel, shared) = (&mut self.channels[0], &batch.state.channel);
        channel.busy += shared.busy;
        channel.busy_until = shared.busy_until;
        channel.tenant = Class::HostRead;
        if let Some(meter) = &mut self.meter {
            meter.batch(batch, planes, operations * u64::from(bytes));
        }
    }

    /// Forgets the places in the schedule order of a queue that no longer exists; call before
    /// [`takes_up`](Backend::takes_up).
    pub fn forget_places(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.wake = None);
    }

    /// Takes up an event that was pending in a different queue; it is due after `wait`.
    pub fn takes_up(&mut self, event: Event, wait: Time, cx: &mut impl Cx<Event, Infallible>) {
        match event {
            Event::ChannelFree(channel) => {
                let place = cx.reserve_late();
                cx.at_place(place, wait, event);
                self.channels[channel as usize].wake = Some(place);
            }
            Event::ArrayDone(die) => self.dies[die as usize].ticket = Some(cx.after(wait, event)),
            event => _ = cx.after(wait, event),
        }
    }
}
