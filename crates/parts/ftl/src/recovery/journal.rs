//! Which deallocations survive a power cut.
//!
//! A deallocation changes the map in memory and nothing on flash: the unit's old copy is still there, with its address
//! and number, and a scan would find it. So the controller writes a journal of the units that were deallocated, each
//! with the number of the program before it. Assumed: the journal has a place of its own (a few blocks of SLC that the
//! capacity does not count), and writing it takes no time. It is written
//!
//! * with a flush command,
//! * with a write of zeroes that is answered from flash,
//! * with a deallocation that takes data from the buffer whose write waits to become durable,
//! * before any block is erased: the newest copy of a deallocated unit may lie in it, and an older one elsewhere,
//! * at once, if the device's memory is protected: it lies there.
//!
//! What has not been written is lost in a cut: the unit holds its last data again, as NVMe allows it while no flush has
//! been answered.

use proto::Lpn;
use std::collections::BTreeMap;

/// Units that were deallocated and not written since, with the number of the last program before that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    written: BTreeMap<u64, u64>,
    pending: BTreeMap<u64, u64>,
}

engine::snapshot!(Journal { written, pending });

impl Journal {
    /// A unit has been deallocated after program `sequence`.
    pub fn trimmed(&mut self, lpn: Lpn, sequence: u64) {
        self.pending.insert(lpn.0, sequence);
    }

    /// A newer copy of a unit is on flash.
    pub fn superseded(&mut self, lpn: Lpn) {
        self.written.remove(&lpn.0);
        self.pending.remove(&lpn.0);
    }

    /// Writes what is pending.
    pub fn write(&mut self) {
        self.written.append(&mut self.pending);
    }

    /// What a power cut leaves, and how many deallocations it undoes.
    pub fn cut(mut self) -> (Journal, u64) {
        let undone = self.pending.len() as u64;
        self.pending.clear();
        (self, undone)
    }

    /// Whether a copy of a unit with this number was deallocated.
    pub fn outdates(&self, lpn: Lpn, sequence: u64) -> bool {
        self.written.get(&lpn.0).is_some_and(|trimmed| sequence <= *trimmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_survives() {
        let mut journal = Journal::default();
        journal.trimmed(Lpn(1), 10);
        journal.trimmed(Lpn(2), 11);
        journal.write();
        journal.trimmed(Lpn(3), 12);
        journal.superseded(Lpn(2));
        let (left, undone) = journal.cut();
        assert_eq!(undone, 1);
        assert!(left.outdates(Lpn(1), 10) && !left.outdates(Lpn(1), 11));
        assert!(!left.outdates(Lpn(2), 11) && !left.outdates(Lpn(3), 12));
    }
}
