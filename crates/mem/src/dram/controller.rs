//! A controller: its banks and its data bus.
//!
//! It acts only at the present: it activates a row or accesses columns when banks, activation window and bus allow it at
//! that moment, and sleeps until the earliest moment at which something can be allowed that is not yet. A data bus is
//! taken in column slots: an access at time `t` puts its data on the bus from `t + tCL` or `t + tCWL` on.

use super::DramStats;
use super::bank::{Bank, Found, Need, Piece};
use super::sched::Scheduler;
use super::timing::Timing;
use kernel::{Ticket, Time};

const READ: usize = 0;
const WRITE: usize = 1;

/// What a decision needs besides the controller.
pub(super) struct Around<'a> {
    pub(super) timing: &'a Timing,
    pub(super) policy: &'a dyn Scheduler,
    pub(super) stats: &'a mut DramStats,
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
    /// Bit by bit, the banks that have a piece to serve.
    busy: u64,
    /// Whether the bus writes.
    write: bool,
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
    /// Pieces that have come, and that have been served.
    arrived: u64,
    served: u64,
    /// The next decision.
    pub(super) wake: Option<(Time, Ticket)>,
}

/// What one look at all banks finds.
#[derive(Default)]
struct Look {
    /// The oldest piece whose row can be activated as far as the bank is concerned: number, bank.
    activate: Option<(u64, u32)>,
    /// When the next one can.
    activate_at: Option<Time>,
    /// The oldest pieces whose columns can be accessed as far as the bank is concerned, by direction: number, bank.
    access: [Option<(u64, u32)>; 2],
    /// When the next one can.
    access_at: Option<Time>,
}

fn earliest(at: &mut Option<Time>, time: Time) {
    *at = Some(at.map_or(time, |t| t.min(time)));
}

fn oldest(at: &mut Option<(u64, u32)>, number: u64, bank: u32) {
    if at.is_none_or(|(other, _)| number < other) {
        *at = Some((number, bank));
    }
}

impl Controller {
    /// An idle controller; its refreshes are `shift` earlier than those of the first.
    pub(super) fn new(banks: u32, shift: Time) -> Controller {
        Controller {
            banks: vec![Bank::default(); banks as usize],
            busy: 0,
            write: false,
            column: [Time::ZERO; 2],
            activation: Time::ZERO,
            activations: [None; 4],
            oldest: 0,
            refreshes: 0,
            shift,
            arrived: 0,
            served: 0,
            wake: None,
        }
    }

    /// A piece arrives for a bank; whether a decision is due.
    pub(super) fn arrive(&mut self, bank: u8, mut piece: Piece, around: &mut Around<'_>) -> bool {
        // A refresh that nobody has waited for closes the row first.
        self.refresh(piece.arrived, around.timing);
        piece.number = self.arrived;
        self.arrived += 1;
        self.busy |= 1 << bank;
        self.banks[usize::from(bank)].arrive(piece, around.policy, around.timing)
    }

    /// Does all that can be done now, and says when to ask again. `transfer` is told of everything that goes over the bus.
    pub(super) fn decide(
        &mut self,
        now: Time,
        around: &mut Around<'_>,
        mut transfer: impl FnMut(Transfer),
    ) -> Option<Time> {
        self.refresh(now, around.timing);
        loop {
            let look = self.look(now, around.policy.banks_pass());
            if let Some((_, bank)) = look.activate
                && self.activation <= now
            {
                self.activate(bank, now, around);
                continue;
            }
            let winner = self.winner(&look, now, around.policy);
            if let Some((bank, direction)) = winner
                && self.column[direction] <= now
            {
                transfer(self.access(bank, now, around));
                continue;
            }
            let mut again = None;
            if look.activate.is_some() {
                earliest(&mut again, self.activation);
            }
            if let Some(at) = look.activate_at {
                earliest(&mut again, at.max(self.activation));
            }
            if let Some((_, direction)) = winner {
                earliest(&mut again, self.column[direction]);
            }
            if let Some(at) = look.access_at {
                earliest(&mut again, at.max(self.column[READ].min(self.column[WRITE])));
            }
            return again;
        }
    }

    /// Looks at all banks.
    fn look(&self, now: Time, banks_pass: bool) -> Look {
        let mut look = Look::default();
        let mut busy = self.busy;
        while busy != 0 {
            let bank = busy.trailing_zeros();
            busy &= busy - 1;
            let Some(next) = self.banks[bank as usize].next() else { continue };
            let number = next.piece.number;
            match next.need {
                Need::Activation(at) if at <= now => oldest(&mut look.activate, number, bank),
                Need::Activation(at) => earliest(&mut look.activate_at, at),
                Need::Column(_) if !banks_pass && number != self.served => {}
                Need::Column(at) if at <= now => {
                    oldest(&mut look.access[usize::from(next.piece.write)], number, bank);
                }
                Need::Column(at) => earliest(&mut look.access_at, at),
            }
        }
        look
    }

    /// The bank that the bus serves next, and in which direction.
    fn winner(&self, look: &Look, now: Time, policy: &dyn Scheduler) -> Option<(u32, usize)> {
        let (present, other) = (usize::from(self.write), usize::from(!self.write));
        match (look.access[present], look.access[other]) {
            (Some((younger, _)), Some((older, bank))) if older < younger => {
                let waited = now - self.banks[bank as usize].next()?.piece.arrived;
                if policy.direction_passes(waited) {
                    look.access[present].map(|(_, bank)| (bank, present))
                } else {
                    Some((bank, other))
                }
            }
            (Some((_, bank)), _) => Some((bank, present)),
            (None, Some((_, bank))) => Some((bank, other)),
            (None, None) => None,
        }
    }

    fn activate(&mut self, bank: u32, now: Time, around: &mut Around<'_>) {
        around.stats.activations += 1;
        self.banks[bank as usize].activate(now, around.timing);
        self.activations[self.oldest] = Some(now);
        self.oldest = (self.oldest + 1) % self.activations.len();
        let window = self.activations[self.oldest].map_or(Time::ZERO, |fourth| fourth + around.timing.faw);
        self.activation = (now + around.timing.rrd).max(window);
    }

    /// Accesses the columns of a bank's next piece.
    fn access(&mut self, bank: u32, now: Time, around: &mut Around<'_>) -> Transfer {
        let timing = around.timing;
        let at = &mut self.banks[bank as usize];
        let next = at.next().expect("an access is for a piece");
        let (lines, write) = (u64::from(next.piece.lines), next.piece.write);
        let slot = timing.line.times(lines);
        let begin = now + if write { timing.cwl } else { timing.cl };
        let end = begin + slot;
        let precharge = if write { end + timing.wr } else { now + slot - timing.column + timing.rtp };
        let served = at.access(now, precharge, around.policy, timing).expect("an access is for a piece");
        if at.next().is_none() {
            self.busy &= !(1 << bank);
        }
        self.column[usize::from(write)] = now + slot;
        self.column[usize::from(!write)] = if write {
            end + timing.wtr
        } else {
            (end + timing.turnaround).since(timing.cwl).max(now + slot)
        };
        self.served += 1;
        let stats = &mut *around.stats;
        stats.turnarounds += u64::from(self.write != write);
        stats.bus_busy += timing.transfer.times(lines);
        match served.found {
            Found::Hit => stats.row_hits += 1,
            Found::Closed => stats.row_closed += 1,
            Found::Conflict => stats.row_conflicts += 1,
        }
        self.write = write;
        Transfer { command: served.piece.command, write, begin, end }
    }

    /// Catches up with the refreshes that have begun until now. All banks are closed and busy for the duration of one.
    fn refresh(&mut self, now: Time, timing: &Timing) {
        let Some(refresh) = timing.refresh else { return };
        let begun = (now + self.shift).ps() / refresh.interval.ps();
        if begun == self.refreshes {
            return;
        }
        self.refreshes = begun;
        let due = refresh.interval.times(begun).since(self.shift);
        let start = self.banks.iter().fold(due, |start, bank| bank.refreshable(start, timing));
        let end = start + refresh.duration;
        for bank in &mut self.banks {
            bank.refresh(end);
        }
        self.activation = self.activation.max(end);
    }
}
