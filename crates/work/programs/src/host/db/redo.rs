//! The redo log: appended by all, made durable by one thread for all that have appended.
//!
//! `log_write_up_to` of InnoDB without threads of the log's own: who finds nobody at work writes all that is there and syncs it; the others
//! wait, and go on if that has covered them.

/// Writes are whole blocks of this: `OS_FILE_LOG_BLOCK_SIZE`.
const BLOCK: u64 = 512;
/// Before the records: `LOG_FILE_HDR_SIZE`.
const HEADER: u64 = 2_048;
/// The first write into an area of this goes on to its end, so that the kernel need not read the rest: `innodb_log_write_ahead_size`.
const AHEAD: u64 = 8_192;

/// What a thread that commits does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Commit {
    /// Goes on: it is durable.
    Durable,
    /// Writes and syncs for all.
    Lead,
    /// Sleeps until it is woken.
    Wait,
}

pub(super) struct Redo {
    capacity: u64,
    /// End of what was appended.
    end: u64,
    /// End of what is durable.
    durable: u64,
    /// Where the pages' changes begin that are not written.
    checkpoint: u64,
    /// The thread that writes and syncs for all, or was woken to do so.
    leader: Option<u32>,
    /// How far it has written and will write.
    writes: (u64, u64),
    /// End of the areas that were written to their ends.
    ahead: u64,
    waiting: Vec<(u32, u64)>,
}

impl Redo {
    /// A log in a file of so many bytes.
    pub(super) fn new(bytes: u64) -> Redo {
        let capacity = (bytes - HEADER) / AHEAD * AHEAD;
        Redo {
            capacity,
            end: 0,
            durable: 0,
            checkpoint: 0,
            leader: None,
            writes: (0, 0),
            ahead: 0,
            waiting: Vec::new(),
        }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Appends a record; where it ends.
    pub(super) fn append(&mut self, bytes: u64) -> u64 {
        self.end += bytes;
        self.end
    }

    /// Changes that a crash would have to repeat.
    pub(super) fn age(&self) -> u64 {
        self.end - self.checkpoint
    }

    /// From this age on pages are written at any price: 7/8 of the log, less what is reserved.
    pub(super) fn pressing(&self) -> u64 {
        self.capacity / 8 * 7
    }

    /// At this age nothing can be appended before pages are written: 15/16 of the log.
    pub(super) fn most(&self) -> u64 {
        self.capacity / 16 * 15
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The checkpoint moves on; whether it did.
    pub(super) fn check(&mut self, oldest: Option<u64>) -> bool {
        // What is not durable yet may not be left out.
        let to = oldest.unwrap_or(self.durable).min(self.durable);
        let moved = to > self.checkpoint;
        self.checkpoint = self.checkpoint.max(to);
        moved
    }

    /// A thread must have the log durable up to `lsn`.
    pub(super) fn commit(&mut self, thread: u32, lsn: u64) -> Commit {
        if lsn <= self.durable {
            return Commit::Durable;
        }
        if *self.leader.get_or_insert(thread) == thread {
            self.writes = (self.durable, self.end);
            return Commit::Lead;
        }
        self.waiting.push((thread, lsn));
        Commit::Wait
    }

    /// The next write of the thread that leads, offset in the file and length; none once all is written.
    pub(super) fn write(&mut self) -> Option<(u64, u64)> {
        let (from, to) = self.writes;
        if from == to {
            return None;
        }
        let start = from / BLOCK * BLOCK;
        // A write ends where the file does.
        let turn = (start / self.capacity + 1) * self.capacity;
        let mut end = to.next_multiple_of(BLOCK);
        if end > self.ahead {
            end = to.next_multiple_of(AHEAD);
        }
        end = end.min(turn);
        self.ahead = self.ahead.max(end);
        self.writes.0 = end.min(to);
        Some((HEADER + start % self.capacity, end - start))
    }

    /// The sync of the thread that leads has returned.
    pub(super) fn synced(&mut self) {
        self.leader = None;
        self.durable = self.writes.1;
    }

    /// A thread to wake: all that are durable, and one more, who leads the next time.
    pub(super) fn wake(&mut self) -> Option<u32> {
        if let Some(at) = self.waiting.iter().position(|(_, lsn)| *lsn <= self.durable) {
            return Some(self.waiting.remove(at).0);
        }
        if self.leader.is_some() || self.waiting.is_empty() {
            return None;
        }
        // Nobody else begins before it.
        self.leader = Some(self.waiting.remove(0).0);
        self.leader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_leads_and_the_others_are_covered_or_lead_next() {
        let mut redo = Redo::new(2_048 + 16_384);
        let first = redo.append(600);
        assert_eq!((redo.commit(0, first), redo.commit(1, first)), (Commit::Lead, Commit::Wait));
        // The first write of an area goes to its end.
        assert_eq!(redo.write(), Some((2_048, 8_192)));
        assert_eq!(redo.write(), None);
        // This one comes too late for it.
        let second = redo.append(600);
        assert_eq!(redo.commit(2, second), Commit::Wait);
        redo.synced();
        assert_eq!((redo.wake(), redo.wake(), redo.wake()), (Some(1), Some(2), None));
        assert_eq!((redo.commit(1, first), redo.commit(2, second)), (Commit::Durable, Commit::Lead));
        // From the block that 600 is in, 512, to the end of the one that 1,200 is in.
        assert_eq!(redo.write(), Some((2_048 + 512, 1_024)));
        redo.synced();
        assert_eq!((redo.wake(), redo.commit(2, second)), (None, Commit::Durable));
    }

    #[test]
    fn the_log_is_a_circle() {
        let mut redo = Redo::new(2_048 + 16_384);
        let end = redo.append(20_000);
        assert_eq!(redo.commit(0, end), Commit::Lead);
        assert_eq!(redo.write(), Some((2_048, 16_384)));
        assert_eq!(redo.write(), Some((2_048, 8_192)));
        assert_eq!(redo.write(), None);
        redo.synced();
        assert!(redo.check(Some(5_000)) && !redo.check(Some(5_000)));
        assert_eq!((redo.age(), redo.pressing(), redo.most()), (15_000, 14_336, 15_360));
        assert!(redo.check(None));
        assert_eq!(redo.age(), 0);
    }
}
