//! Counters of storage that a GPU reaches by itself.

use super::Initiator;
use crate::check::Check;
use engine::Time;
use stats::{OpStats, Span};

/// Counters of one measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InitiatorStats {
    /// Reads of the shared cache.
    pub reads: u64,
    /// Of them, answered by lines that wait to be written.
    pub gathered_reads: u64,
    /// Writes of the shared cache.
    pub writes: u64,
    /// Pages of which lines had been written and that made room.
    pub evictions: u64,
    /// Reads of sectors that had been written in part.
    pub fills: u64,
    /// Writes that waited for room.
    pub waits_for_room: u64,
    /// Commands that waited for an entry of a queue.
    pub waits_for_entry: u64,
    /// Commands that the device could not do.
    pub failed: u64,
}

/// Block commands of one application.
#[derive(Clone, Debug, Default)]
pub struct InitiatedFlow {
    /// Reads.
    pub read: OpStats,
    /// Writes.
    pub write: OpStats,
    /// When they were under way.
    pub span: Span,
}

/// What has been counted since the beginning, for the checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ledger {
    pub(super) entered: u64,
    pub(super) answered: u64,
    pub(super) submitted: u64,
    pub(super) completed: u64,
}

impl Initiator {
    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, now: Time) {
        self.stats = InitiatorStats::default();
        self.flows.iter_mut().for_each(|flow| *flow = InitiatedFlow::default());
        self.series.reset(now);
        self.tally = proto::memory::Tally::default();
        self.last_completion = now;
    }

    /// Holds the accounts against each other. They hold between any two events.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let equal = |name, left: u64, right: u64, words: &str| Check {
            name,
            ok: left == right,
            detail: format!("{words} {left}, {right}"),
        };
        let at_device = (self.commands.len() - self.held.len()) as u64;
        vec![
            equal(
                "initiator requests",
                ledger.entered,
                ledger.answered + self.requests.len() as u64,
                "entered; answered or inside:",
            ),
            equal(
                "initiator commands",
                ledger.submitted,
                ledger.completed + at_device,
                "submitted; completed or at the device:",
            ),
        ]
    }
}
