//! Tail attribution of requests: sums over the slowest of each kind, and the slowest of all, one by one.

use super::Explained;
use engine::Time;
use proto::{Account, Holder, IoOp, MILESTONES, Place};
use stats::Tail;

/// Number of sums in a row: the milestones, the time outside the device, and the waits at a die and at a channel by
/// holder.
pub const PARTS: usize = MILESTONES + 1 + 2 * Holder::COUNT;
/// Index of the time outside the device.
pub const OUTSIDE: usize = MILESTONES;
/// Indexes of waits at a die, by holder.
pub const DIE: usize = OUTSIDE + 1;
/// Indexes of waits at a channel, by holder.
pub const CHANNEL: usize = DIE + Holder::COUNT;

/// Number of slowest requests kept individually.
const SLOWEST: usize = 16;

/// Records of slow requests.
#[derive(Clone, Debug, Default)]
pub struct Explain {
    /// Tails by kind: reads, writes, deallocations, flushes.
    tails: [Tail<PARTS>; 4],
    /// Slowest requests in descending order of latency; among equals, the earliest.
    slowest: Vec<Explained>,
    /// Accounts of answered commands whose requests have not ended.
    open: Vec<(u32, Account)>,
}

/// Returns the index of a kind.
const fn kind(op: IoOp) -> usize {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim | IoOp::WriteZeroes => 2,
        IoOp::Flush => 3,
    }
}

impl Explain {
    /// Returns true if the account of the request with this number, kind and latency would be kept.
    #[inline]
    pub(super) fn wants(&self, op: IoOp, latency: Time, id: u64) -> bool {
        self.tails[kind(op)].weight(latency.ps(), id) > 0 || self.is_slowest(latency)
    }

    /// Returns true if a request of this latency is one of the slowest so far.
    #[inline]
    pub(super) fn is_slowest(&self, latency: Time) -> bool {
        self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(|last| last.seen.latency() < latency)
    }

    /// Keeps the account of an answered command.
    pub(super) fn answered(&mut self, tag: u32, account: Account) {
        self.open.push((tag, account));
    }

    /// Takes back the account when the software has seen the answer.
    pub(super) fn take(&mut self, tag: u32) -> Option<Account> {
        let at = self.open.iter().rposition(|(of, _)| *of == tag)?;
        Some(self.open.swap_remove(at).1)
    }

    /// Counts an ended request whose account is not needed.
    #[inline]
    pub(super) fn count(&mut self, op: IoOp) {
        self.tails[kind(op)].count();
    }

    /// Counts an ended request.
    pub(super) fn ended(&mut self, ended: &Explained) {
        let latency = ended.seen.latency();
        let tail = &mut self.tails[kind(ended.seen.request.op)];
        match ended.account.map(|account| (account, tail.weight(latency.ps(), ended.seen.id))) {
            None | Some((_, 0)) => tail.count(),
            Some((account, weight)) => {
                let parts = Explain::parts(latency, &account);
                let waited: u64 = parts[DIE..].iter().sum();
                let place = account.place.map(|place| (name(place), waited));
                tail.keep(latency.ps(), weight, &parts, place);
            }
        }
        if self.is_slowest(latency) {
            let at = self.slowest.partition_point(|kept| kept.seen.latency() >= latency);
            self.slowest.truncate(SLOWEST - 1);
            self.slowest.insert(at, *ended);
        }
    }

    /// Splits a request's latency into parts, in picoseconds; the first [`OUTSIDE`] + 1 parts sum to it.
    pub fn parts(latency: Time, account: &Account) -> [u64; PARTS] {
        let mut parts = [0; PARTS];
        parts[..MILESTONES].copy_from_slice(&account.waits);
        parts[OUTSIDE] = latency.ps().saturating_sub(account.waits.iter().sum());
        parts[DIE..CHANNEL].copy_from_slice(&account.die);
        parts[CHANNEL..].copy_from_slice(&account.channel);
        parts
    }

    /// Clears what was kept; accounts of requests in flight stay.
    pub(super) fn reset(&mut self) {
        self.tails.iter_mut().for_each(Tail::clear);
        self.slowest.clear();
    }

    /// Returns the tail of a kind.
    pub fn tail(&self, op: IoOp) -> &Tail<PARTS> {
        &self.tails[kind(op)]
    }

    /// Returns the slowest requests in descending order of latency.
    pub fn slowest(&self) -> &[Explained] {
        &self.slowest
    }
}

/// Number of bits of a place's name that hold the die.
const DIE_BITS: u32 = 24;

/// Returns the name of a place in the rows.
fn name(place: Place) -> u32 {
    u32::from(place.drive) << DIE_BITS | place.die & ((1 << DIE_BITS) - 1)
}

/// Returns drive and die of a place in the rows.
pub fn of_place(name: u32) -> (u16, u32) {
    ((name >> DIE_BITS) as u16, name & ((1 << DIE_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::super::{Explained, Seen};
    use super::{Explain, SLOWEST, name, of_place};
    use engine::Time;
    use proto::{Account, IoOp, IoRequest, Place};

    fn ended(id: u64, latency: u64) -> Explained {
        let request =
            IoRequest { at: Time::from_ps(id), op: IoOp::Read, offset: 0, bytes: 4096, flow: 0, fua: false };
        let [issued, submitted] = [request.at; 2];
        let completed = request.at + Time::from_ps(latency);
        let seen = Seen { id, request, flow: 0, issued, submitted, answered: completed, completed };
        Explained { seen, account: Some(Account { waits: [latency / 12; 12], ..Account::default() }) }
    }

    #[test]
    fn the_slowest_are_kept_in_order_and_of_equals_the_earliest() {
        let mut explain = Explain::default();
        // 7 is prime to 101: every latency once, out of order, and then again.
        let latencies: Vec<u64> = (0..202).map(|n| 1000 + n * 7 % 101).collect();
        for (id, latency) in (0..).zip(&latencies) {
            explain.ended(&ended(id, *latency));
        }
        let mut expected: Vec<(u64, u64)> = (0..).zip(latencies).map(|(id, latency)| (latency, id)).collect();
        expected.sort_by_key(|(latency, id)| (u64::MAX - latency, *id));
        expected.truncate(SLOWEST);
        let found: Vec<(u64, u64)> =
            explain.slowest().iter().map(|e| (e.seen.latency().ps(), e.seen.id)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_place_is_read_back() {
        for (drive, die) in [(0, 0), (3, 1023), (255, 70_000)] {
            assert_eq!(of_place(name(Place { drive, die, ..Place::default() })), (drive, die));
        }
    }
}
