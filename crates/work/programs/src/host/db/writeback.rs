//! Write-back: the redo log, which one thread makes durable for all that have appended, and the page cleaner, which
//! writes dirty pages once a second, as many as the log and the pool demand.
//!
//! As in MySQL 8.0, `buf0flu.cc`: `page_cleaner_flush_pages_recommendation` (without its average over the last
//! rounds), `buf_flush_LRU_list`.

use engine::Time;
use proto::file::{Call, Next};

use super::pool::Pool;
use super::{DOUBLEWRITE, LOG, PAGE, TABLE};

/// Interval between rounds.
const ROUND: Time = Time::from_s(1);
/// Interval of checks while the log presses and other threads write all dirty pages.
const AGAIN: Time = Time::from_ms(1);
/// Number of pages per doublewrite batch: `srv_doublewrite_batch_size`.
pub(super) const BATCH: usize = 120;
/// `innodb_adaptive_flushing_lwm`, percent of the log.
const LOW_AGE: u64 = 10;

/// Settings of the cleaner.
#[derive(Clone, Copy)]
pub(super) struct Capacity {
    /// Value of `innodb_io_capacity`, pages per second.
    pub(super) usual: u64,
    /// `innodb_io_capacity_max`.
    pub(super) most: u64,
    /// `innodb_max_dirty_pages_pct_lwm`.
    pub(super) low_dirty: u64,
    /// `innodb_max_dirty_pages_pct`.
    pub(super) most_dirty: u64,
    /// `innodb_lru_scan_depth`.
    pub(super) depth: u32,
}

impl Capacity {
    /// Returns the pages of a round: the larger of `af_get_pct_for_dirty` and `af_get_pct_for_lsn`, in percent of the
    /// usual number, limited to the maximum.
    pub(super) fn pages(&self, dirty_percent: u64, age: u64, redo: &Redo) -> u64 {
        let dirty = match self.low_dirty {
            0 if dirty_percent >= self.most_dirty => 100,
            0 => 0,
            low if dirty_percent >= low => dirty_percent * 100 / (self.most_dirty + 1),
            _ => 0,
        };
        let aged = if age < redo.capacity() * LOW_AGE / 100 {
            0
        } else {
            let factor = age * 100 / redo.pressing();
            let steep = libm::sqrt(factor as f64);
            ((self.most / self.usual * factor) as f64 * steep / 7.5) as u64
        };
        (self.usual * dirty.max(aged) / 100).min(self.most)
    }
}

pub(super) struct Cleaner {
    capacity: Capacity,
    doublewrite: bool,
    flush: Flush,
    next_round: Time,
    /// Pages that the round may still write from the end of the LRU list, and from the list by change.
    left: (u64, u64),
    /// Set when the checkpoint has moved: its block in the log's header must be written, then synced.
    header: Option<bool>,
    /// True if it has looked for pages since the log presses and found none.
    found_none: bool,
}

impl Cleaner {
    pub(super) fn new(capacity: Capacity, doublewrite: bool) -> Cleaner {
        let flush = Flush::default();
        Cleaner {
            capacity,
            doublewrite,
            flush,
            next_round: ROUND,
            left: (0, 0),
            header: None,
            found_none: false,
        }
    }

    /// Returns the next step of its thread.
    pub(super) fn next(&mut self, pool: &mut Pool, redo: &mut Redo, now: Time) -> Next {
        loop {
            if self.flush.is_busy() {
                if let Some(call) = self.flush.next(pool, redo.end()) {
                    return Next::Call(call);
                }
                if redo.check(pool.oldest()) && self.header.is_none() {
                    self.header = Some(false);
                }
            }
            let depth = self.capacity.depth;
            if self.left.0 > 0 {
                let most = self.left.0.min(BATCH as u64) as usize;
                pool.sweep(depth, depth, most, &mut self.flush.frames);
                self.left.0 -= (self.flush.frames.len() as u64).min(self.left.0);
                if self.flush.frames.is_empty() {
                    self.left.0 = 0;
                }
            }
            if self.left.1 > 0 && self.flush.frames.is_empty() {
                let most = self.left.1.min(BATCH as u64) as usize;
                pool.oldest_changes(most, &mut self.flush.frames);
                self.left.1 -= self.flush.frames.len() as u64;
                if self.flush.frames.is_empty() {
                    self.left.1 = 0;
                }
            }
            if !self.flush.frames.is_empty() {
                self.found_none = false;
                self.flush.begin(self.doublewrite);
                continue;
            }
            match self.header {
                Some(false) => {
                    self.header = Some(true);
                    return Next::Call(Call::Write { fd: LOG, offset: 512, bytes: 512 });
                }
                Some(true) => {
                    self.header = None;
                    return Next::Call(Call::Sync { fd: LOG, data_only: false });
                }
                None => {}
            }
            if now >= self.next_round {
                self.next_round = now + ROUND;
                let pages = self.capacity.pages(pool.dirty_percent(), redo.age(), redo);
                self.left = (u64::from(depth), pages);
                // Pages that have become clean, whichever thread wrote them, are before the checkpoint.
                if redo.check(pool.oldest()) {
                    self.header = Some(false);
                }
                continue;
            }
            if redo.age() < redo.pressing() || pool.oldest().is_none() {
                return Next::Until(self.next_round);
            }
            if std::mem::take(&mut self.found_none) {
                return Next::Until(now + AGAIN);
            }
            (self.left.1, self.found_none) = (self.capacity.most, true);
        }
    }
}

const _: () = assert!(PAGE == 16_384, "counts of pages above are of pages of 16 KiB");

// Writes of pool pages: to the doublewrite file first, then to their places.

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    Copies,
    CopiesDurable,
    Pages,
    Done,
}

/// Pages that one thread writes.
#[derive(Clone, Default)]
pub(super) struct Flush {
    /// Frames of the pages.
    pub(super) frames: Vec<u32>,
    at: usize,
    phase: Phase,
}

impl Flush {
    /// Returns true if pages are being written, or a write has just returned.
    pub(super) fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Starts writing the frames.
    pub(super) fn begin(&mut self, doublewrite: bool) {
        self.at = 0;
        self.phase = if doublewrite { Phase::Copies } else { Phase::Pages };
    }

    /// Returns the next call; none once all are written and the pool knows.
    pub(super) fn next(&mut self, pool: &mut Pool, lsn: u64) -> Option<Call> {
        let pages = self.frames.len() as u64;
        let (after, call) = match self.phase {
            Phase::Copies => {
                (Phase::CopiesDurable, Call::Write { fd: DOUBLEWRITE, offset: 0, bytes: pages * PAGE })
            }
            Phase::CopiesDurable => (Phase::Pages, Call::Sync { fd: DOUBLEWRITE, data_only: false }),
            Phase::Pages if self.at < self.frames.len() => {
                let page = pool.page(self.frames[self.at]);
                self.at += 1;
                (Phase::Pages, Call::Write { fd: TABLE, offset: u64::from(page) * PAGE, bytes: PAGE })
            }
            Phase::Pages => (Phase::Done, Call::Sync { fd: TABLE, data_only: false }),
            Phase::Idle | Phase::Done => {
                for frame in self.frames.drain(..) {
                    pool.written(frame, lsn);
                }
                self.phase = Phase::Idle;
                return None;
            }
        };
        self.phase = after;
        Some(call)
    }
}

// The redo log: appended by all, made durable by one thread for all that have appended.
//
// As `log_write_up_to` of InnoDB without dedicated log threads: a thread that finds no other one at work writes and
// syncs everything there is; the others wait, and continue if that has covered them.

/// Block of a log write in bytes: `OS_FILE_LOG_BLOCK_SIZE`.
const BLOCK: u64 = 512;

/// Bytes before the records: `LOG_FILE_HDR_SIZE`.
const HEADER: u64 = 2_048;

/// Size of an area: the first write into it continues to its end, so that the kernel need not read the rest:
/// `innodb_log_write_ahead_size`.
const AHEAD: u64 = 8_192;

/// Next step of a committing thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Commit {
    /// Continues: its record is durable.
    Durable,
    /// Writes and syncs for all threads.
    Lead,
    /// Sleeps until it is woken.
    Wait,
}

pub(super) struct Redo {
    capacity: u64,
    /// End of the appended records.
    end: u64,
    /// End of the durable records.
    durable: u64,
    /// Start of the records whose page changes are not written.
    checkpoint: u64,
    /// Thread that writes and syncs for all, or was woken to do so.
    leader: Option<u32>,
    /// Position to which it has written, and to which it will write.
    writes: (u64, u64),
    /// End of the areas that were written to their ends.
    ahead: u64,
    waiting: Vec<(u32, u64)>,
}

impl Redo {
    /// Creates a log in a file of `bytes` bytes.
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

    /// Appends a record; returns its end.
    pub(super) fn append(&mut self, bytes: u64) -> u64 {
        self.end += bytes;
        self.end
    }

    /// Returns the bytes of changes that a crash would have to repeat.
    pub(super) fn age(&self) -> u64 {
        self.end - self.checkpoint
    }

    /// Returns the age from which pages are written at any price: 7/8 of the log, less what is reserved.
    pub(super) fn pressing(&self) -> u64 {
        self.capacity / 8 * 7
    }

    /// Returns the age at which nothing can be appended before pages are written: 15/16 of the log.
    pub(super) fn most(&self) -> u64 {
        self.capacity / 16 * 15
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Advances the checkpoint; returns whether it moved.
    pub(super) fn check(&mut self, oldest: Option<u64>) -> bool {
        // Records that are not durable yet must be kept.
        let to = oldest.unwrap_or(self.durable).min(self.durable);
        let moved = to > self.checkpoint;
        self.checkpoint = self.checkpoint.max(to);
        moved
    }

    /// Requests that the log is durable up to `lsn` for a thread.
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

    /// Returns the leading thread's next write, as offset in the file and length; none once all is written.
    pub(super) fn write(&mut self) -> Option<(u64, u64)> {
        let (from, to) = self.writes;
        if from == to {
            return None;
        }
        let start = from / BLOCK * BLOCK;
        // A write ends at the end of the file.
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

    /// Handles the end of the leading thread's sync.
    pub(super) fn synced(&mut self) {
        self.leader = None;
        self.durable = self.writes.1;
    }

    /// Returns a thread to wake: all that are durable, and one more, which leads next.
    pub(super) fn wake(&mut self) -> Option<u32> {
        if let Some(at) = self.waiting.iter().position(|(_, lsn)| *lsn <= self.durable) {
            return Some(self.waiting.remove(at).0);
        }
        if self.leader.is_some() || self.waiting.is_empty() {
            return None;
        }
        // No other thread begins before it.
        self.leader = Some(self.waiting.remove(0).0);
        self.leader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `af_get_pct_for_dirty` and `af_get_pct_for_lsn` by hand.
    #[test]
    fn a_round_writes_what_log_and_pool_ask_for() {
        let capacity = Capacity { usual: 200, most: 2_000, low_dirty: 10, most_dirty: 90, depth: 1_024 };
        // 2,048 bytes of header and 1,024 areas of 8 KiB: 8,388,608; pressing at 7,340,032.
        let redo = Redo::new(2_048 + (8 << 20));
        assert_eq!((redo.capacity(), redo.pressing()), (8_388_608, 7_340_032));
        assert_eq!(capacity.pages(9, 0, &redo), 0);
        // 45 x 100 / 91 = 49 %, of 200 pages.
        assert_eq!(capacity.pages(45, 0, &redo), 98);
        // Half of the pressing age: factor 50, 10 x 50 x 7.0711 / 7.5 = 471 %.
        assert_eq!(capacity.pages(45, 3_670_016, &redo), 942);
        // A tenth of the log is 838,860. Factor 11: 10 x 11 x 3.3166 / 7.5 = 48 %.
        assert_eq!([838_859, 838_860].map(|age| capacity.pages(0, age, &redo)), [0, 96]);
        // At the pressing age 10 x 100 x 10 / 7.5 = 1,333 %: more than the most.
        assert_eq!(capacity.pages(0, 7_340_032, &redo), 2_000);
        let late = Capacity { low_dirty: 0, most_dirty: 75, ..capacity };
        assert_eq!((late.pages(74, 0, &redo), late.pages(75, 0, &redo)), (0, 200));
    }

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
