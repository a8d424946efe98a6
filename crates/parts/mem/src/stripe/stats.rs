//! What a stripe counts.

use super::Stripe;
use engine::Time;

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
pub(super) struct Ledger {
    pub(super) commands: u64,
    pub(super) completed: u64,
    /// Parts given to members, and their answers.
    pub(super) parts: u64,
    pub(super) answered: u64,
    /// Bytes of commands, and of the parts given to members.
    pub(super) bytes: u64,
    pub(super) parted: u64,
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
