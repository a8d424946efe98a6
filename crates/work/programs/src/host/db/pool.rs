//! The buffer pool: resident pages, dirty pages, and eviction.
//!
//! As in MySQL 8.0, `storage/innobase/buf/buf0lru.cc` and `buf0flu.cc`: an LRU list whose last 37 % are old. A page
//! is read to the head of the old part, and moves to the head of the list when it is used a second or more after its
//! first use (`buf_page_make_young_if_needed`; here a young page always moves, not only one beyond the first
//! quarter). Dirty pages are in a list by their first change, until they are written.

use engine::Time;
use rustc_hash::FxHashMap;

/// `innodb_old_blocks_pct`.
const OLD_PERCENT: u32 = 37;
/// `innodb_old_blocks_time`.
const OLD_TIME: Time = Time::from_s(1);
/// Minimum number of frames with an old part: `BUF_LRU_OLD_MIN_LEN`.
const OLD_LEAST: u32 = 512;
/// Number of frames from the end among which a clean one is sought: `BUF_LRU_SEARCH_SCAN_THRESHOLD`.
const SCAN: usize = 100;

#[derive(Clone, Copy, Default)]
struct Frame {
    page: u32,
    /// Time of first use.
    used: Time,
    old: bool,
    dirty: bool,
    /// True while it is being written.
    flushing: bool,
    /// True if it changed while it was being written.
    changed: bool,
    /// Log sequence number of the first change.
    since: u64,
}

/// Frame for a page that is not in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// A free frame, now owned by the caller.
    Free(u32),
    /// A frame that the caller must write first.
    Write(u32),
    /// No frame: all are being written.
    None,
}

pub(super) struct Pool {
    frames: Vec<Frame>,
    by_page: FxHashMap<u32, u32>,
    free: Vec<u32>,
    uses: Ring,
    /// First frame of the old part, and number of its frames.
    old: (Option<u32>, u32),
    changes: Ring,
}

impl Pool {
    pub(super) fn new(frames: u32) -> Pool {
        let mut by_page = FxHashMap::default();
        by_page.reserve(frames as usize);
        Pool {
            frames: vec![Frame::default(); frames as usize],
            by_page,
            free: (0..frames).rev().collect(),
            uses: Ring::new(frames),
            old: (None, 0),
            changes: Ring::new(frames),
        }
    }

    pub(super) fn page(&self, frame: u32) -> u32 {
        self.frames[frame as usize].page
    }

    /// Returns the number of free frames.
    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// Returns the percentage of resident pages that are dirty.
    pub(super) fn dirty_percent(&self) -> u64 {
        u64::from(self.changes.len()) * 100 / u64::from(self.uses.len().max(1))
    }

    /// Returns the oldest change that is not written.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.changes.first().map(|frame| self.frames[frame as usize].since)
    }

    /// Uses a resident page.
    pub(super) fn find(&mut self, page: u32, now: Time) -> Option<u32> {
        let frame = *self.by_page.get(&page)?;
        let Frame { old, used, .. } = self.frames[frame as usize];
        if !old || now.since(used) >= OLD_TIME {
            self.leave(frame);
            self.frames[frame as usize].old = false;
            let first = self.uses.first();
            self.uses.insert_before(first, frame);
            self.balance();
        }
        Some(frame)
    }

    /// Returns a frame to read a page into.
    pub(super) fn room(&mut self) -> Room {
        if let Some(frame) = self.free.pop() {
            return Room::Free(frame);
        }
        let (mut at, mut dirty, mut seen) = (self.uses.last(), None, 0);
        while let Some(frame) = at {
            let Frame { dirty: is_dirty, flushing, .. } = self.frames[frame as usize];
            if !is_dirty {
                self.evict(frame);
                return Room::Free(self.free.pop().expect("it was evicted"));
            }
            if !flushing {
                dirty = dirty.or(Some(frame));
                if seen >= SCAN {
                    break;
                }
            }
            seen += 1;
            at = self.uses.before(frame);
        }
        match dirty {
            Some(frame) => {
                self.frames[frame as usize].flushing = true;
                Room::Write(frame)
            }
            None => Room::None,
        }
    }

    /// Inserts a page that was read into a free frame.
    pub(super) fn insert(&mut self, frame: u32, page: u32, now: Time) -> u32 {
        if let Some(there) = self.by_page.get(&page) {
            // A different thread has read it meanwhile.
            self.free.push(frame);
            return *there;
        }
        self.by_page.insert(page, frame);
        let parted = self.uses.len() >= OLD_LEAST;
        self.frames[frame as usize] = Frame { page, used: now, old: parted, ..Frame::default() };
        if parted {
            self.uses.insert_before(self.old.0, frame);
            self.old = (Some(frame), self.old.1 + 1);
        } else {
            let first = self.uses.first();
            self.uses.insert_before(first, frame);
        }
        self.balance();
        frame
    }

    /// Changes a page; its record starts at `lsn` in the log.
    pub(super) fn change(&mut self, frame: u32, lsn: u64) {
        let Frame { dirty, flushing, changed, since, .. } = &mut self.frames[frame as usize];
        if !*dirty {
            (*dirty, *since) = (true, lsn);
            self.changes.insert_before(None, frame);
        } else if *flushing {
            *changed = true;
        }
    }

    /// Marks a page as written; `lsn` is the end of the log, from which a change made meanwhile counts.
    pub(super) fn written(&mut self, frame: u32, lsn: u64) {
        let state = &mut self.frames[frame as usize];
        (state.dirty, state.flushing) = (false, false);
        let changed = std::mem::take(&mut state.changed);
        self.changes.remove(frame);
        if changed {
            self.change(frame, lsn);
        }
    }

    /// Frees clean frames among the last `depth` until `enough` are free, and appends dirty ones among them to `out`,
    /// at most `most`.
    pub(super) fn sweep(&mut self, depth: u32, enough: u32, most: usize, out: &mut Vec<u32>) {
        let mut at = self.uses.last();
        for _ in 0..depth {
            let Some(frame) = at else {
                return;
            };
            if self.free() + out.len() as u32 >= enough || out.len() >= most {
                return;
            }
            at = self.uses.before(frame);
            let state = &mut self.frames[frame as usize];
            if !state.dirty {
                self.evict(frame);
            } else if !state.flushing {
                state.flushing = true;
                out.push(frame);
            }
        }
    }

    /// Appends the frames with the oldest changes to `out`, at most `most`.
    pub(super) fn oldest_changes(&mut self, most: usize, out: &mut Vec<u32>) {
        let mut at = self.changes.first();
        while let Some(frame) = at.filter(|_| out.len() < most) {
            at = self.changes.after(frame);
            let state = &mut self.frames[frame as usize];
            if !std::mem::replace(&mut state.flushing, true) {
                out.push(frame);
            }
        }
    }

    fn evict(&mut self, frame: u32) {
        self.leave(frame);
        self.balance();
        self.by_page.remove(&self.frames[frame as usize].page);
        self.free.push(frame);
    }

    /// Removes a frame from the LRU list.
    fn leave(&mut self, frame: u32) {
        if self.frames[frame as usize].old {
            if self.old.0 == Some(frame) {
                self.old.0 = self.uses.after(frame);
            }
            self.old.1 -= 1;
        }
        self.uses.remove(frame);
    }

    /// Moves the boundary so that the old part has its share.
    fn balance(&mut self) {
        let len = self.uses.len();
        let target = if len < OLD_LEAST { 0 } else { len * OLD_PERCENT / 100 };
        while self.old.1 < target {
            let next = match self.old.0 {
                Some(first) => self.uses.before(first),
                None => self.uses.last(),
            };
            let next = next.expect("the old part is not all");
            self.frames[next as usize].old = true;
            self.old = (Some(next), self.old.1 + 1);
        }
        while self.old.1 > target {
            let first = self.old.0.expect("there are old frames");
            self.frames[first as usize].old = false;
            self.old = (self.uses.after(first), self.old.1 - 1);
        }
    }
}

// Lists of frames in which a frame is found, removed, and inserted next to a different one in constant time.

/// No frame.
pub(super) const NONE: u32 = u32::MAX;

/// Doubly linked list over frames `0..n`, each in it at most once.
pub(super) struct Ring {
    /// Neighbours of each frame: towards the first, towards the last.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
    len: u32,
}

impl Ring {
    pub(super) fn new(n: u32) -> Ring {
        Ring { links: vec![(NONE, NONE); n as usize], first: NONE, last: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Returns the neighbour towards the first.
    pub(super) fn before(&self, frame: u32) -> Option<u32> {
        let before = self.links[frame as usize].0;
        (before != NONE).then_some(before)
    }

    /// Returns the neighbour towards the last.
    pub(super) fn after(&self, frame: u32) -> Option<u32> {
        let after = self.links[frame as usize].1;
        (after != NONE).then_some(after)
    }

    /// Inserts a frame before `place`; at the end if that is none.
    pub(super) fn insert_before(&mut self, place: Option<u32>, frame: u32) {
        let (before, after) = match place {
            Some(place) => (self.links[place as usize].0, place),
            None => (self.last, NONE),
        };
        self.links[frame as usize] = (before, after);
        match before {
            NONE => self.first = frame,
            _ => self.links[before as usize].1 = frame,
        }
        match after {
            NONE => self.last = frame,
            _ => self.links[after as usize].0 = frame,
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, frame: u32) {
        let (before, after) = self.links[frame as usize];
        match before {
            NONE => self.first = after,
            _ => self.links[before as usize].1 = after,
        }
        match after {
            NONE => self.last = before,
            _ => self.links[after as usize].0 = before,
        }
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the pool with a searched list: the same frames by use, boundary, and dirty pages in order.
    #[test]
    fn the_pool_is_a_list_that_is_searched() {
        let (frames, pages) = (900_u32, 2_000);
        let mut pool = Pool::new(frames);
        // (page, first use, old, dirty since), most recently used first.
        let mut naive: Vec<(u32, Time, bool, Option<u64>)> = Vec::new();
        let mut rng = engine::Rng::stream(1, "pool");
        let border = |list: &mut Vec<(u32, Time, bool, Option<u64>)>| {
            let len = list.len();
            let target = if len < 512 { 0 } else { len * 37 / 100 };
            for (n, entry) in list.iter_mut().enumerate() {
                entry.2 = n >= len - target;
            }
        };
        for turn in 0..30_000_u64 {
            let (now, page) = (Time::from_ms(turn), rng.below(pages) as u32);
            let change = rng.below(4) == 0;
            let at = naive.iter().position(|entry| entry.0 == page);
            let frame = match pool.find(page, now) {
                Some(frame) => {
                    let at = at.expect("it is in memory");
                    if !naive[at].2 || now.since(naive[at].1) >= Time::from_s(1) {
                        let entry = naive.remove(at);
                        naive.insert(0, entry);
                    }
                    frame
                }
                None => {
                    assert_eq!(at, None, "turn {turn}");
                    let frame = loop {
                        match pool.room() {
                            Room::Free(frame) => break frame,
                            Room::Write(frame) => {
                                let last = naive.iter_mut().rev().find(|entry| entry.3.is_some());
                                let last = last.unwrap();
                                assert_eq!(pool.page(frame), last.0);
                                last.3 = None;
                                pool.written(frame, turn);
                            }
                            Room::None => unreachable!("nothing is being written"),
                        }
                    };
                    if naive.len() == frames as usize {
                        let clean = naive.iter().rposition(|entry| entry.3.is_none()).unwrap();
                        naive.remove(clean);
                        border(&mut naive);
                    }
                    let len = naive.len();
                    let place = if len < 512 { 0 } else { len - len * 37 / 100 };
                    naive.insert(place, (page, now, false, None));
                    pool.insert(frame, page, now)
                }
            };
            border(&mut naive);
            if change {
                pool.change(frame, turn);
                let entry = naive.iter_mut().find(|entry| entry.0 == page).unwrap();
                entry.3 = entry.3.or(Some(turn));
            }
            assert_eq!(pool.oldest(), naive.iter().filter_map(|entry| entry.3).min(), "turn {turn}");
            let dirty = naive.iter().filter(|entry| entry.3.is_some()).count();
            assert_eq!(pool.dirty_percent(), (dirty * 100 / naive.len()) as u64);
        }
    }

    #[test]
    fn a_change_while_a_page_is_written_is_not_lost() {
        let mut pool = Pool::new(4);
        let Room::Free(frame) = pool.room() else { panic!("it is empty") };
        pool.insert(frame, 7, Time::ZERO);
        pool.change(frame, 10);
        let mut out = Vec::new();
        pool.oldest_changes(9, &mut out);
        assert_eq!(out, [frame]);
        pool.oldest_changes(9, &mut out);
        assert_eq!(out.len(), 1);
        pool.change(frame, 20);
        pool.written(frame, 30);
        assert_eq!(pool.oldest(), Some(30));
        out.clear();
        pool.sweep(4, 4, 9, &mut out);
        assert_eq!((out.as_slice(), pool.free()), ([frame].as_slice(), 3));
        pool.written(frame, 40);
        assert_eq!(pool.oldest(), None);
    }
}
