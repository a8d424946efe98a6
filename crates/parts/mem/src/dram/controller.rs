//! Memory controller: its banks, each with its row buffer and queue, and its data bus.
//!
//! A controller acts only at the present: it activates a row or accesses columns when banks, activation window and bus
//! allow it at that moment, and sleeps until the earliest moment at which something else may be allowed. A data bus is
//! booked in column slots: an access at time `t` puts its data on the bus from `t + tCL` or `t + tCWL` on.

use super::energy::DramMeter;
use super::sched::Scheduler;
use super::{DramStats, Timing};
use engine::{Mutant, Ticket, Time, planted};
use std::collections::VecDeque;

const READ: usize = 0;
const WRITE: usize = 1;
/// Third kind of need, beside the two directions of accesses.
const ACTIVATE: usize = 2;

/// Surroundings of a controller's decision.
pub(super) struct Around<'a> {
    pub(super) timing: &'a Timing,
    pub(super) policy: &'a dyn Scheduler,
    pub(super) stats: &'a mut DramStats,
    /// Energy meter of the memory, if its energies are known, and the controller's number.
    pub(super) metered: Option<(&'a mut DramMeter, usize)>,
}

/// Data transfer over the bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Transfer {
    pub(super) command: u32,
    pub(super) write: bool,
    pub(super) begin: Time,
    pub(super) end: Time,
}

/// Controller with its channel.
pub(super) struct Controller {
    banks: Vec<Bank>,
    /// Needs of each bank's next piece, if any.
    wanted: Vec<Wanted>,
    /// Bit masks of banks: those whose next piece must still wait, and, for each kind of need, those whose next piece
    /// is allowed by the bank.
    early: u64,
    ready: [u64; 3],
    /// True while the bus writes; and the lines it has carried since it last turned.
    write: bool,
    carried: u64,
    /// Earliest column accesses: reads, writes.
    column: [Time; 2],
    /// Earliest activation of any bank.
    activation: Time,
    /// Last four activations, if there were as many; the oldest is at `oldest`.
    activations: [Option<Time>; 4],
    oldest: usize,
    /// Refreshes begun so far, and their lead over those of the first controller.
    refreshes: u64,
    shift: Time,
    /// Time of the last decision.
    pub(super) looked: Time,
    /// Pieces arrived, and pieces served.
    arrived: u64,
    served: u64,
    /// Next decision.
    pub(super) wake: Option<(Time, Ticket)>,
}

/// Needs of a bank's next piece, in compact form for scanning many banks.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// Earliest time allowed by the bank.
    at: Time,
    /// Number of the piece.
    number: u64,
    kind: usize,
}

/// Banks of a mask.
fn each(mut banks: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bank = (banks != 0).then(|| banks.trailing_zeros() as usize);
        banks &= banks.wrapping_sub(1);
        bank
    })
}

impl Controller {
    /// Creates an idle controller whose refreshes are `shift` earlier than those of the first.
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

    /// Adds a piece for a bank; returns true if a decision is due.
    pub(super) fn arrive(&mut self, bank: u8, mut piece: Piece, around: &mut Around<'_>) -> bool {
        self.looked = piece.arrived;
        // A refresh that no access has waited for closes the row first.
        self.refresh(piece.arrived, around);
        piece.number = self.arrived;
        self.arrived += 1;
        let due = self.banks[usize::from(bank)].arrive(piece, around.policy, around.timing);
        if due {
            self.note(bank.into());
        }
        due
    }

    /// Notes a bank's present need.
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

    /// Does everything possible now, and returns the time of the next decision. Reports every bus transfer to
    /// `transfer`.
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

    /// Finds banks that have become ready; returns the time at which the next ones do, for accesses and for
    /// activations.
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

    /// Ready bank with the oldest piece of a kind.
    fn oldest(&self, kind: usize) -> Option<usize> {
        each(self.ready[kind]).min_by_key(|bank| self.wanted[*bank].number)
    }

    /// Bank served next by the bus, and its direction.
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

    /// Refreshes begun, as known to the banks.
    pub(super) fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// Refreshes due until a time.
    pub(super) fn due(&self, until: Time, interval: Time) -> u64 {
        (until + self.shift).ps() / interval.ps()
    }

    /// Catches up with the refreshes begun until now. During a refresh, all banks are closed and busy.
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

// One bank: its row buffer, and the pieces that wait for it.

/// Lines of one command in one row of one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Command of the piece.
    pub(super) command: u32,
    /// Number in the order of arrival at the controller.
    pub(super) number: u64,
    pub(super) arrived: Time,
    pub(super) row: u64,
    pub(super) lines: u8,
    pub(super) write: bool,
}

/// State in which a piece found its bank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    Hit,
    Closed,
    Conflict,
}

/// Need of the piece that a bank serves next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// Column access, possible from then on.
    Column(Time),
    /// Activation, allowed by the bank from then on.
    Activation(Time),
}

/// Piece that a bank serves next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) piece: Piece,
    pub(super) found: Found,
    pub(super) need: Need,
    /// Begin of the precharge that it needs; a younger piece may still be served before.
    precharge: Time,
}

/// Bank of a controller.
#[derive(Clone, Debug, Default)]
pub(super) struct Bank {
    open: Option<u64>,
    /// Earliest column access to the open row, or earliest activation of a closed bank.
    ready: Time,
    /// Earliest precharge of the open row.
    precharge: Time,
    waiting: VecDeque<Piece>,
    next: Option<Next>,
}

impl Bank {
    /// Piece that the bank serves next.
    #[inline]
    pub(super) fn next(&self) -> Option<&Next> {
        self.next.as_ref()
    }

    /// Adds a piece; returns true if that changes what the bank serves next.
    pub(super) fn arrive(&mut self, piece: Piece, policy: &dyn Scheduler, timing: &Timing) -> bool {
        let now = piece.arrived;
        let Some(next) = self.next else {
            self.waiting.push_back(piece);
            self.choose(now, policy, timing);
            return true;
        };
        // The row stays open until the precharge begins.
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

    /// Chooses the piece to serve next, if any.
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

    /// Activates the row of the next piece.
    pub(super) fn activate(&mut self, now: Time, timing: &Timing) {
        let next = self.next.as_mut().expect("an activation is for a piece");
        self.open = Some(next.piece.row);
        self.ready = now + timing.rcd;
        self.precharge = now + timing.ras;
        next.need = Need::Column(self.ready);
    }

    /// Accesses the columns of the next piece; the row cannot be precharged before `precharge`. The bank then chooses
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

    /// Earliest time at which the bank can be refreshed, for a refresh due at `start`.
    pub(super) fn refreshable(&self, start: Time, timing: &Timing) -> Time {
        match self.open {
            Some(_) => start.max(self.precharge + timing.rp),
            None => start,
        }
    }

    /// Closes the row for a refresh; the bank can be activated from `end` on.
    pub(super) fn refresh(&mut self, end: Time) {
        self.open = None;
        self.ready = self.ready.max(end);
        if let Some(next) = &mut self.next {
            if next.found == Found::Hit {
                next.found = Found::Closed;
            }
            // The refresh has replaced the precharge, if one was needed.
            next.precharge = Time::ZERO;
            next.need = Need::Activation(self.ready);
        }
    }
}
