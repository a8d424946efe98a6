//! A controller: its banks, each with its row buffer and queue, and its data bus.
//!
//! It acts only at the present: it activates a row or accesses columns when banks, activation window and bus allow it at
//! that moment, and sleeps until the earliest moment at which something can be allowed that is not yet. A data bus is
//! taken in column slots: an access at time `t` puts its data on the bus from `t + tCL` or `t + tCWL` on.

use super::energy::DramMeter;
use super::sched::Scheduler;
use super::{DramStats, Timing};
use engine::{Mutant, Ticket, Time, planted};
use std::collections::VecDeque;

const READ: usize = 0;
const WRITE: usize = 1;
/// Beside the two directions of accesses, the third kind of need.
const ACTIVATE: usize = 2;

/// What a decision needs besides the controller.
pub(super) struct Around<'a> {
    pub(super) timing: &'a Timing,
    pub(super) policy: &'a dyn Scheduler,
    pub(super) stats: &'a mut DramStats,
    /// What the memory spends, if it is known, and the controller's number.
    pub(super) metered: Option<(&'a mut DramMeter, usize)>,
}

/// Data that pass the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Transfer {
    pub(super) command: u32,
    pub(super) write: bool,
    pub(super) begin: Time,
    pub(super) end: Time,
}

/// A controller with its channel.
pub(super) struct Controller {
    banks: Vec<Bank>,
    /// What the next piece of each bank needs, if it has one.
    wanted: Vec<Wanted>,
    /// Bit by bit, the banks whose next piece cannot have it yet, and, for each kind of need, those whose next piece can
    /// as far as the bank is concerned.
    early: u64,
    ready: [u64; 3],
    /// Whether the bus writes, and the lines it has carried since it last turned.
    write: bool,
    carried: u64,
    /// Earliest column accesses: reads, writes.
    column: [Time; 2],
    /// Earliest activation, whatever the bank.
    activation: Time,
    /// The latest four activations, as far as there have been so many; the oldest is at `oldest`.
    activations: [Option<Time>; 4],
    oldest: usize,
    /// Refreshes begun so far, and the time by which they are earlier than those of the first controller.
    refreshes: u64,
    shift: Time,
    /// When it was last looked at.
    pub(super) looked: Time,
    /// Pieces that have come, and that have been served.
    arrived: u64,
    served: u64,
    /// The next decision.
    pub(super) wake: Option<(Time, Ticket)>,
}

/// What a bank's next piece needs, for the look at many banks.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// From when on it can have it, as far as the bank is concerned.
    at: Time,
    /// The number of the piece.
    number: u64,
    kind: usize,
}

/// The banks of a mask.
fn each(mut banks: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bank = (banks != 0).then(|| banks.trailing_zeros() as usize);
        banks &= banks.wrapping_sub(1);
        bank
    })
}

impl Controller {
    /// An idle controller; its refreshes are `shift` earlier than those of the first.
    pub(super) fn new(banks: u32, shift: Time) -> Controller {
        Controller {
            banks: vec![Bank::default(); banks as usize],
            wanted: vec![Wanted::default(); banks as usize],
            early: 0,
            ready: [0; 3],
            write: false,
            carried: 0,
            column: [Time::ZERO; 2],
            activation: Time::ZERO,
            activations: [None; 4],
            oldest: 0,
            refreshes: 0,
            shift,
            looked: Time::ZERO,
            arrived: 0,
            served: 0,
            wake: None,
        }
    }

    /// A piece arrives for a bank; whether a decision is due.
    pub(super) fn arrive(&mut self, bank: u8, mut piece: Piece, around: &mut Around<'_>) -> bool {
        self.looked = piece.arrived;
        // A refresh that nobody has waited for closes the row first.
        self.refresh(piece.arrived, around);
        piece.number = self.arrived;
        self.arrived += 1;
        let due = self.banks[usize::from(bank)].arrive(piece, around.policy, around.timing);
        if due {
            self.note(bank.into());
        }
        due
    }

    /// Notes what a bank needs now.
    fn note(&mut self, bank: usize) {
        let bit = 1 << bank;
        self.early &= !bit;
        self.ready.iter_mut().for_each(|banks| *banks &= !bit);
        if let Some(next) = self.banks[bank].next() {
            let (at, kind) = match next.need {
                Need::Column(at) => (at, usize::from(next.piece.write)),
                Need::Activation(at) => (at, ACTIVATE),
            };
            self.wanted[bank] = Wanted { at, number: next.piece.number, kind };
            self.early |= bit;
        }
    }

    /// Does all that can be done now, and says when to ask again. `transfer` is told of everything that goes over the bus.
    pub(super) fn decide(
        &mut self,
        now: Time,
        around: &mut Around<'_>,
        mut transfer: impl FnMut(Transfer),
    ) -> Option<Time> {
        self.looked = now;
        self.refresh(now, around);
        loop {
            let [access_at, activate_at] = self.look(now);
            let mut again = activate_at.max(self.activation);
            if let Some(bank) = self.oldest(ACTIVATE) {
                if self.activation <= now {
                    self.activate(bank, now, around);
                    continue;
                }
                again = self.activation;
            }
            let mut column = access_at.max(self.column[READ].min(self.column[WRITE]));
            if let Some((bank, direction)) = self.winner(around.policy) {
                if self.column[direction] <= now {
                    transfer(self.access(bank, now, around));
                    continue;
                }
                column = column.min(self.column[direction]);
            }
            again = again.min(column);
            return (again < Time::MAX).then_some(again);
        }
    }

    /// Sorts out which banks have become ready; answers when the next ones do, for an access and for an activation.
    fn look(&mut self, now: Time) -> [Time; 2] {
        let mut next = [Time::MAX; 2];
        for bank in each(self.early) {
            let Wanted { at, kind, .. } = self.wanted[bank];
            if at <= now {
                self.early &= !(1 << bank);
                self.ready[kind] |= 1 << bank;
            } else {
                let next = &mut next[usize::from(kind == ACTIVATE)];
                *next = at.min(*next);
            }
        }
        next
    }

    /// The ready bank with the oldest piece of a kind.
    fn oldest(&self, kind: usize) -> Option<usize> {
        each(self.ready[kind]).min_by_key(|bank| self.wanted[*bank].number)
    }

    /// The bank that the bus serves next, and in which direction.
    fn winner(&self, policy: &dyn Scheduler) -> Option<(usize, usize)> {
        let (present, other) = (usize::from(self.write), usize::from(!self.write));
        let number = |bank: usize| self.wanted[bank].number;
        let (bank, direction) = match (self.oldest(present), self.oldest(other)) {
            (Some(younger), Some(older))
                if number(older) < number(younger) && !policy.direction_passes(self.carried) =>
            {
                (older, other)
            }
            (Some(bank), _) => (bank, present),
            (None, bank) => (bank?, other),
        };
        (policy.banks_pass() || number(bank) == self.served).then_some((bank, direction))
    }

    fn activate(&mut self, bank: usize, now: Time, around: &mut Around<'_>) {
        around.stats.activations += 1;
        if let Some((meter, number)) = &mut around.metered {
            meter.activate(*number, now);
        }
        self.banks[bank].activate(now, around.timing);
        self.note(bank);
        self.activations[self.oldest] = Some(now);
        self.oldest = (self.oldest + 1) % self.activations.len();
        let window = self.activations[self.oldest].map_or(Time::ZERO, |fourth| fourth + around.timing.faw);
        self.activation = (now + around.timing.rrd).max(window);
    }

    /// Accesses the columns of a bank's next piece.
    fn access(&mut self, bank: usize, now: Time, around: &mut Around<'_>) -> Transfer {
        let timing = around.timing;
        let at = &mut self.banks[bank];
        let next = at.next().expect("an access is for a piece");
        let (lines, write) = (u64::from(next.piece.lines), next.piece.write);
        let slot = timing.line.times(lines);
        let begin = now + if write { timing.cwl } else { timing.cl };
        let end = begin + slot;
        let precharge = if write { end + timing.wr } else { now + slot - timing.column + timing.rtp };
        let served = at.access(now, precharge, around.policy, timing).expect("an access is for a piece");
        self.note(bank);
        self.column[usize::from(write)] = now + slot;
        self.column[usize::from(!write)] = if write {
            end + timing.wtr
        } else {
            (end + timing.turnaround).since(timing.cwl).max(now + slot)
        };
        self.served += 1;
        let stats = &mut *around.stats;
        if self.write != write {
            stats.turnarounds += 1;
            self.carried = 0;
        }
        self.carried += lines;
        stats.lines[usize::from(write)] += lines;
        stats.bus_busy += timing.transfer.times(lines);
        if let Some((meter, _)) = &mut around.metered {
            meter.access(write, lines, begin, end);
        }
        match served.found {
            Found::Hit => stats.row_hits += 1,
            Found::Closed => stats.row_closed += 1,
            Found::Conflict => stats.row_conflicts += 1,
        }
        self.write = write;
        Transfer { command: served.piece.command, write, begin, end }
    }

    /// Refreshes that have begun, as the banks know them.
    pub(super) fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// Refreshes that are due until a time.
    pub(super) fn due(&self, until: Time, interval: Time) -> u64 {
        (until + self.shift).ps() / interval.ps()
    }

    /// Catches up with the refreshes that have begun until now. All banks are closed and busy for the duration of one.
    fn refresh(&mut self, now: Time, around: &mut Around<'_>) {
        let timing = around.timing;
        let Some(refresh) = timing.refresh else { return };
        let begun = (now + self.shift).ps() / refresh.interval.ps();
        let begun = if planted(Mutant::SkippedRefresh) { begun & !1 } else { begun };
        if begun == self.refreshes {
            return;
        }
        if let Some((meter, number)) = &mut around.metered {
            meter.refresh(*number, now, timing);
        }
        self.refreshes = begun;
        let due = refresh.interval.times(begun).since(self.shift);
        let start = self.banks.iter().fold(due, |start, bank| bank.refreshable(start, timing));
        let end = start + refresh.duration;
        for bank in 0..self.banks.len() {
            self.banks[bank].refresh(end);
            self.note(bank);
        }
        self.activation = self.activation.max(end);
    }
}

// One bank: its row buffer, and what waits for it.

/// Lines of one command in one row of one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The command.
    pub(super) command: u32,
    /// Its number in the order of arrival at the controller.
    pub(super) number: u64,
    pub(super) arrived: Time,
    pub(super) row: u64,
    pub(super) lines: u8,
    pub(super) write: bool,
}

/// How a piece found its bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Hit,
    Closed,
    Conflict,
}

/// What the piece that the bank serves next needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// A column access, possible from then on.
    Column(Time),
    /// An activation, possible from then on as far as the bank is concerned.
    Activation(Time),
}

/// The piece that a bank serves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) piece: Piece,
    pub(super) found: Found,
    pub(super) need: Need,
    /// When the precharge begins that it asks for; a younger piece may still come in between before.
    precharge: Time,
}

/// A bank.
#[derive(Clone, Debug, Default)]
pub(super) struct Bank {
    open: Option<u64>,
    /// Earliest column access to the open row, earliest activation of a closed bank.
    ready: Time,
    /// Earliest precharge of the open row.
    precharge: Time,
    waiting: VecDeque<Piece>,
    next: Option<Next>,
}

impl Bank {
    /// The piece that it serves next.
    #[inline]
    pub(super) fn next(&self) -> Option<&Next> {
        self.next.as_ref()
    }

    /// A piece arrives; whether that changes what the bank serves next.
    pub(super) fn arrive(&mut self, piece: Piece, policy: &dyn Scheduler, timing: &Timing) -> bool {
        let now = piece.arrived;
        let Some(next) = self.next else {
            self.waiting.push_back(piece);
            self.choose(now, policy, timing);
            return true;
        };
        // The row is still open until the precharge begins.
        let overtakes = next.found == Found::Conflict
            && now < next.precharge
            && self.open == Some(piece.row)
            && policy.row_hit_passes(now - next.piece.arrived);
        if overtakes {
            self.waiting.push_front(next.piece);
            self.serve(piece, now, timing);
        } else {
            self.waiting.push_back(piece);
        }
        overtakes
    }

    /// Chooses the piece to serve next, if any waits.
    fn choose(&mut self, now: Time, policy: &dyn Scheduler, timing: &Timing) {
        let Some(oldest) = self.waiting.front() else { return };
        let hit = match self.open {
            Some(open) if open != oldest.row && policy.row_hit_passes(now - oldest.arrived) => {
                self.waiting.iter().position(|piece| piece.row == open)
            }
            _ => None,
        };
        if let Some(piece) = self.waiting.remove(hit.unwrap_or(0)) {
            self.serve(piece, now, timing);
        }
    }

    /// Serves a piece next.
    fn serve(&mut self, piece: Piece, now: Time, timing: &Timing) {
        let precharge = self.precharge.max(now);
        let (found, need) = match self.open {
            Some(row) if row == piece.row => (Found::Hit, Need::Column(self.ready)),
            Some(_) if planted(Mutant::FreePrecharge) => (Found::Conflict, Need::Activation(precharge)),
            Some(_) => (Found::Conflict, Need::Activation(precharge + timing.rp)),
            None => (Found::Closed, Need::Activation(self.ready)),
        };
        self.next = Some(Next { piece, found, need, precharge });
    }

    /// The row of the next piece is activated.
    pub(super) fn activate(&mut self, now: Time, timing: &Timing) {
        let next = self.next.as_mut().expect("an activation is for a piece");
        self.open = Some(next.piece.row);
        self.ready = now + timing.rcd;
        self.precharge = now + timing.ras;
        next.need = Need::Column(self.ready);
    }

    /// The columns of the next piece are accessed; the row cannot be precharged before `precharge`. The bank chooses
    /// anew.
    pub(super) fn access(
        &mut self,
        now: Time,
        precharge: Time,
        policy: &dyn Scheduler,
        timing: &Timing,
    ) -> Option<Next> {
        let served = self.next.take();
        self.precharge = self.precharge.max(precharge);
        self.choose(now, policy, timing);
        served
    }

    /// When the bank can be refreshed at the earliest, if that has to begin at `start`.
    pub(super) fn refreshable(&self, start: Time, timing: &Timing) -> Time {
        match self.open {
            Some(_) => start.max(self.precharge + timing.rp),
            None => start,
        }
    }

    /// A refresh closes the row; the bank can be activated from `end` on.
    pub(super) fn refresh(&mut self, end: Time) {
        self.open = None;
        self.ready = self.ready.max(end);
        if let Some(next) = &mut self.next {
            if next.found == Found::Hit {
                next.found = Found::Closed;
            }
            // Its precharge, if it asked for one, has been the refresh's.
            next.precharge = Time::ZERO;
            next.need = Need::Activation(self.ready);
        }
    }
}
