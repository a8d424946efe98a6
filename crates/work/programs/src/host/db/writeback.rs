//! Writing back: the redo log, which one thread makes durable for all that have appended, and the page cleaner, which writes
//! dirty pages once a second, as many as the log and the pool ask for.
//!
//! MySQL 8.0, `buf0flu.cc`: `page_cleaner_flush_pages_recommendation` (without its average over the last rounds), `buf_flush_LRU_list`.

use engine::Time;
use proto::file::{Call, Next};

use super::pool::Pool;
use super::{DOUBLEWRITE, LOG, PAGE, TABLE};

/// A round begins so often.
const ROUND: Time = Time::from_s(1);
/// While the log presses and others write all dirty pages, it looks again so often.
const AGAIN: Time = Time::from_ms(1);
/// Pages that go through the doublewrite file together: `srv_doublewrite_batch_size`.
pub(super) const BATCH: usize = 120;
/// `innodb_adaptive_flushing_lwm`, percent of the log.
const LOW_AGE: u64 = 10;

/// What the cleaner is told.
#[derive(Clone, Copy)]
pub(super) struct Capacity {
    /// `innodb_io_capacity`: pages a second.
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
    /// Pages of a round: the larger of `af_get_pct_for_dirty` and `af_get_pct_for_lsn`, in percent of the usual ones, at most the most.
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
    /// Pages that the round may still write from the end of the list by use, and from the list by change.
    left: (u64, u64),
    /// The checkpoint has moved: its block in the log's header is to be written, then synced.
    header: Option<bool>,
    /// It looked for pages since the log presses and has found none.
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

    /// What its thread does next.
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
                // What is not dirty any more, by whoever has written it, is behind the checkpoint.
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

// Writes pages of the pool: to the doublewrite file first, then to their places.

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
    /// Their frames.
    pub(super) frames: Vec<u32>,
    at: usize,
    phase: Phase,
}

impl Flush {
    /// Whether pages are being written, or a write has just returned.
    pub(super) fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Begins to write the frames.
    pub(super) fn begin(&mut self, doublewrite: bool) {
        self.at = 0;
        self.phase = if doublewrite { Phase::Copies } else { Phase::Pages };
    }

    /// The next call; none once all are written, and then the pool knows.
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
// `log_write_up_to` of InnoDB without threads of the log's own: who finds nobody at work writes all that is there and syncs it; the others
// wait, and go on if that has covered them.

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
