//! The page cleaner: writes dirty pages once a second, as many as the log and the pool ask for.
//!
//! MySQL 8.0, `buf0flu.cc`: `page_cleaner_flush_pages_recommendation` (without its average over the last rounds), `buf_flush_LRU_list`.

use engine::Time;
use proto::file::{Call, Next};

use super::flush::Flush;
use super::pool::Pool;
use super::redo::Redo;
use super::{LOG, PAGE};

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
}
