//! One bank: its row buffer, and what waits for it.

use super::Timing;
use super::sched::Scheduler;
use engine::{Mutant, Time, planted};
use std::collections::VecDeque;

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
