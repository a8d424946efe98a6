//! What a command waited for, for whoever asks when it is answered.

use super::{Device, milestone};
use nand::dies::Waited;
use nand::dies::op::Op;
use proto::{Account, ByHolder, Holder, Place};

/// Operations of commands, kept until accounts of them are taken.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By command, the one that ended last; left of an earlier command of the same name, it counts nowhere, because the new one's milestones
    /// say that it did not wait.
    last: Vec<Waited>,
    /// The command that was answered last.
    answered: Option<u32>,
}

impl Device {
    /// Keeps accounts of commands. It costs time and memory, and changes no result.
    pub fn keep_accounts(&mut self) {
        self.backend.keep_holders();
        self.accounts = Some(Box::default());
    }

    /// The last operation of a command has ended: its waits are the command's.
    #[inline]
    pub(super) fn note_waits(&mut self, op: &Op) {
        let Some(accounts) = &mut self.accounts else { return };
        let command = op.owner as usize;
        if command >= accounts.last.len() {
            accounts.last.resize(command + 1, Waited::default());
        }
        accounts.last[command] = self.backend.waited(op);
    }

    /// A command is answered.
    #[inline]
    pub(super) fn note_answer(&mut self, id: u32) {
        let Some(accounts) = &mut self.accounts else { return };
        accounts.answered = Some(id);
        if self.backend.remembers_much() {
            self.forget();
        }
    }

    /// Forgets who was in whose way before the oldest command that is under way.
    #[cold]
    fn forget(&mut self) {
        let oldest = self.active.live().map(|(_, active)| active.life.start()).min();
        self.backend.forget(oldest.unwrap_or_default());
    }

    /// The account of the command that was answered last, as long as no other has been submitted since; nothing if accounts are
    /// not kept.
    pub fn account(&self) -> Option<Account> {
        let accounts = self.accounts.as_ref()?;
        let id = accounts.answered?;
        // Its record stays readable until its name is given to another.
        let life = &self.active[id].life;
        let waits: [u64; proto::MILESTONES] = std::array::from_fn(|n| life.part(n).ps());
        let (at_die, at_channel) = (waits[milestone::DIE_WAIT], waits[milestone::CHANNEL_WAIT]);
        let op = accounts.last.get(id as usize).copied().unwrap_or_default();
        let (mut die, mut channel) = ([0; Holder::COUNT], [0; Holder::COUNT]);
        if at_die + at_channel > 0 {
            (die, channel) = self.backend.in_the_way(&op)?;
        }
        let worked = waits[milestone::ARRAY] > 0 || at_die > 0;
        let (die_of_op, started) = (op.die(), op.started());
        let channel_of_op = self.ftl.geo.channel_of_die(die_of_op);
        let place = Place { drive: 0, die: die_of_op, channel: channel_of_op, started };
        Some(Account {
            waits,
            die: fit(die, at_die),
            channel: fit(channel, at_channel),
            place: worked.then_some(place),
        })
    }
}

/// What was found, made to sum to a milestone's time. Its operation was queued at the milestone before, as a rule; if the command waited
/// for something else meanwhile, that has its milestone, and less is left.
fn fit(mut found: ByHolder, time: u64) -> ByHolder {
    let mut left = time;
    for held in &mut found {
        *held = (*held).min(left);
        left -= *held;
    }
    found[Holder::Nobody as usize] += left;
    found
}
