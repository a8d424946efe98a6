//! Where the newest copy of a line is, as the messages of cores and the directory say it.

use flash::Check;
use proto::Probed;
use proto::memory::{Access, AccessKind};
use rustc_hash::FxHashSet;

/// Lines whose newest copy is not in a bank: an owner has answered a probe with changed data, and the bank has not been given them, or a
/// later change, yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    is_on: bool,
    stale: FxHashSet<u64>,
    /// Reads of a bank whose copy is old, and the first of them.
    wrong: u64,
    first: Option<u64>,
}

impl Copies {
    /// From now on messages are followed; no core has a line yet.
    pub(crate) fn follow(&mut self) {
        self.is_on = true;
    }

    /// A core has answered a probe.
    #[inline]
    pub(crate) fn probed(&mut self, answer: &Probed) {
        if self.is_on && answer.dirty {
            self.stale.insert(answer.probe.address);
        }
    }

    /// The directory turns to a bank.
    #[inline]
    pub(crate) fn looked(&mut self, access: &Access) {
        if !self.is_on {
            return;
        }
        let line = access.address;
        if access.kind == AccessKind::Write {
            self.stale.remove(&line);
        } else if self.stale.contains(&line) {
            self.wrong += 1;
            self.first.get_or_insert(line);
        }
    }

    /// Whether every read of a line has brought the newest copy.
    pub(crate) fn check(&self) -> Check {
        let first = self.first.map(|line| format!(", the first of line {line:#x}")).unwrap_or_default();
        Check {
            name: "banks are not read for what a core has changed since",
            ok: self.wrong == 0,
            detail: format!("{} reads brought an old copy{first}", self.wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Probe;
    use proto::memory::Absent;

    fn look(kind: AccessKind, address: u64) -> Access {
        Access {
            tag: 0,
            kind,
            address,
            bytes: 64,
            app: 0,
            port: 0,
            warp: 0,
            pc: 0,
            absent: Absent::Wait,
            since: engine::Time::ZERO,
        }
    }

    fn answer(address: u64, invalidate: bool) -> Probed {
        let probe = Probe { tag: 0, core: 0, tile: 0, address, invalidate };
        Probed { probe, found: true, dirty: true }
    }

    #[test]
    fn a_bank_is_old_until_it_is_given_the_change() {
        let mut copies = Copies::default();
        copies.follow();
        copies.probed(&answer(64, false));
        copies.looked(&look(AccessKind::Read, 0));
        copies.looked(&look(AccessKind::Write, 64));
        copies.looked(&look(AccessKind::Read, 64));
        assert!(copies.check().ok);
        // The next owner has the change, and the bank does not.
        copies.probed(&answer(64, true));
        copies.looked(&look(AccessKind::Read, 64));
        assert!(!copies.check().ok);
    }
}
