//! Pages in a sorted map, and reclaim of `mm/vmscan.c` without the decisions of policies.

use crate::pagecache::{Cause, Next, Reclaimed, Throttle};
use std::collections::BTreeMap;

/// File and page.
pub(super) type Key = (u32, u64);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub(super) locked: bool,
    pub(super) dirty: bool,
    pub(super) writeback: bool,
    pub(super) referenced: bool,
    /// Active flag; with generations set only between lists.
    pub(super) active: bool,
    pub(super) workingset: bool,
    /// `PG_reclaim`, `PG_readahead`.
    pub(super) marked: bool,
    pub(super) mapped: bool,
    pub(super) young: bool,
    /// Accesses beyond the third.
    pub(super) refs: u64,
}

/// Order of pages.
pub(super) trait Policy {
    fn add(&mut self, world: &mut World, key: Key, shadow: Option<(u64, u64)>, fault: bool);
    fn accessed(&mut self, world: &mut World, key: Key);
    /// Removes a page from its list.
    fn unlink(&mut self, key: Key);
    /// Moves a page to the end that is evicted from.
    fn to_tail(&mut self, world: &mut World, key: Key);
    /// Adds a page as an unused one.
    fn to_head(&mut self, world: &mut World, key: Key);
    fn is_active(&self, world: &World, key: Key) -> bool;
    fn age(&mut self, scan: &mut Scan);
    fn shrink(&mut self, world: &mut World, scan: &mut Scan, counts: &mut Counts);
    fn end(&mut self);
    fn lists(&self) -> Vec<Vec<Key>>;
}

/// Reclaim in progress.
pub(super) struct Scan {
    pub(super) kswapd: bool,
    pub(super) priority: u32,
    pub(super) target: u64,
    pub(super) reclaimed: u64,
    pub(super) reclaimed_before: u64,
    pub(super) scanned: u64,
    pub(super) force: bool,
    pub(super) spared: bool,
    pub(super) needs_aging: bool,
}

impl Scan {
    pub(super) fn new(kswapd: bool) -> Scan {
        Scan {
            kswapd,
            priority: 12,
            target: 32,
            reclaimed: 0,
            reclaimed_before: 0,
            scanned: 0,
            force: false,
            spared: false,
            needs_aging: false,
        }
    }
}

/// Counters of a round.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) taken: u64,
    pub(super) refilled: u64,
    pub(super) freed: u64,
    pub(super) dirty: u64,
    pub(super) unqueued: u64,
    pub(super) congested: u64,
    pub(super) writeback: u64,
    pub(super) immediate: u64,
    pub(super) wakes: bool,
}

#[derive(PartialEq)]
pub(super) enum Verdict {
    Free,
    Activate,
    Keep,
}

pub(super) struct World {
    pub(super) pages: BTreeMap<Key, Page>,
    pub(super) shadows: BTreeMap<Key, (u64, u64)>,
    pub(super) pageouts: Vec<Key>,
    memory: u64,
    node_dirty: bool,
    node_writeback: bool,
    congested: bool,
    failures: u32,
    pub(super) evicted: u64,
    pub(super) activated: u64,
    pub(super) deactivated: u64,
    pub(super) refaults: u64,
}

const MIN: u64 = 40;
pub(super) const LOW: u64 = 50;
pub(super) const HIGH: u64 = 60;

impl World {
    pub(super) fn new(memory: u64) -> World {
        // 1600 kbytes: the root of 25,600 is 160, a quarter of it pages; the watermarks are a quarter of these apart.
        assert_eq!((memory, MIN), (400, 160 / 4));
        World {
            pages: BTreeMap::new(),
            shadows: BTreeMap::new(),
            pageouts: Vec::new(),
            memory,
            node_dirty: false,
            node_writeback: false,
            congested: false,
            failures: 0,
            evicted: 0,
            activated: 0,
            deactivated: 0,
            refaults: 0,
        }
    }

    pub(super) fn page(&mut self, key: Key) -> &mut Page {
        self.pages.get_mut(&key).expect("in memory")
    }

    pub(super) fn free(&self) -> u64 {
        self.memory - self.pages.len() as u64
    }

    pub(super) fn insert(&mut self, policy: &mut impl Policy, key: Key, cause: Cause) {
        self.pages.insert(key, Page { locked: true, ..Page::default() });
        let shadow = self.shadows.remove(&key).filter(|_| cause != Cause::Write);
        policy.add(self, key, shadow, cause == Cause::Fault);
    }

    pub(super) fn end_writeback(&mut self, policy: &mut impl Policy, key: Key) {
        let page = self.page(key);
        let goes = page.marked && !page.locked && !page.dirty;
        page.marked = false;
        if goes {
            policy.unlink(key);
            self.page(key).active = false;
            policy.to_tail(self, key);
        }
        self.page(key).writeback = false;
    }

    pub(super) fn remove(&mut self, policy: &mut impl Policy, key: Key) {
        policy.unlink(key);
        self.pages.remove(&key);
    }

    pub(super) fn evict(&mut self, key: Key, shadow: (u64, u64)) {
        self.pages.remove(&key);
        self.shadows.insert(key, shadow);
        self.evicted += 1;
    }

    fn keys(&self, inode: u32, from: u64, to: u64) -> Vec<Key> {
        self.pages.range((inode, from)..=(inode, to)).map(|(key, _)| *key).collect()
    }

    pub(super) fn truncate(
        &mut self,
        policy: &mut impl Policy,
        inode: u32,
        from: u64,
    ) -> (Option<u64>, Vec<u64>) {
        let (mut left, mut gone) = (None, Vec::new());
        for key in self.keys(inode, from, u64::MAX) {
            let page = *self.page(key);
            if page.locked || page.writeback {
                left = left.or(Some(key.1));
            } else {
                self.remove(policy, key);
                gone.push(key.1);
            }
        }
        self.shadows.retain(|key, _| key.0 != inode || key.1 < from);
        (left, gone)
    }

    pub(super) fn invalidate(&mut self, policy: &mut impl Policy, inode: u32, from: u64, to: u64) -> u64 {
        let mut count = 0;
        for key in self.keys(inode, from, to) {
            let page = *self.page(key);
            if page.locked || page.writeback {
                continue;
            }
            if !page.dirty && !page.mapped {
                self.remove(policy, key);
                count += 1;
            } else if !page.mapped {
                self.deactivated += u64::from(policy.is_active(self, key));
                policy.unlink(key);
                (self.page(key).active, self.page(key).referenced) = (false, false);
                policy.to_head(self, key);
                self.page(key).marked = true;
            }
        }
        self.shadows.retain(|key, _| key.0 != inode || key.1 < from || key.1 > to);
        count
    }

    /// `shrink_folio_list`, for one unlisted page.
    pub(super) fn judge(&mut self, key: Key, scan: &mut Scan, counts: &mut Counts) -> Verdict {
        let (node_dirty, node_writeback, kswapd) = (self.node_dirty, self.node_writeback, scan.kswapd);
        let page = self.page(key);
        if page.locked {
            return Verdict::Keep;
        }
        scan.scanned += 1;
        if page.dirty || page.writeback {
            counts.dirty += 1;
        }
        if page.dirty && !page.writeback {
            counts.unqueued += 1;
        }
        if page.writeback && page.marked {
            counts.congested += 1;
        }
        if page.writeback {
            if kswapd && page.marked && node_writeback {
                counts.immediate += 1;
            } else {
                page.marked = true;
                counts.writeback += 1;
            }
            return Verdict::Activate;
        }
        let (young, referenced) = (page.young, page.referenced);
        (page.young, page.referenced) = (false, young);
        if young {
            return if referenced { Verdict::Activate } else { Verdict::Keep };
        }
        page.mapped = false;
        if !page.dirty {
            return Verdict::Free;
        }
        if !kswapd || !page.marked || !node_dirty {
            page.marked = true;
            return Verdict::Activate;
        }
        if !referenced {
            self.pageouts.push(key);
        }
        Verdict::Keep
    }

    fn balanced(&mut self) -> bool {
        if self.free() <= HIGH {
            return false;
        }
        (self.node_dirty, self.node_writeback, self.congested) = (false, false, false);
        true
    }

    /// `skip_throttle_noprogress`.
    fn skips(&self) -> bool {
        let pending = self.pages.values().map(|page| usize::from(page.dirty) + usize::from(page.writeback));
        self.failures >= 16 || 2 * pending.sum::<usize>() <= self.pages.len()
    }

    /// Runs an iteration of `balance_pgdat` or `do_try_to_free_pages`.
    pub(super) fn round(&mut self, policy: &mut impl Policy, scan: &mut Scan) -> Reclaimed {
        let mut counts = Counts::default();
        scan.scanned = 0;
        let (mut throttle, next);
        if scan.kswapd {
            if self.balanced() {
                policy.end();
                return answer(&counts, None, Next::Done);
            }
            scan.target = HIGH;
            scan.reclaimed_before = scan.reclaimed;
            policy.age(scan);
            policy.shrink(self, scan, &mut counts);
            scan.reclaimed += counts.freed;
            self.failures = if counts.freed > 0 { 0 } else { self.failures };
            self.node_writeback |= counts.writeback > 0 && counts.writeback == counts.taken;
            self.node_dirty |= counts.unqueued == counts.taken;
            self.congested |= counts.dirty > 0 && counts.dirty == counts.congested;
            throttle = (counts.immediate > 0).then_some(Throttle::Writeback);
            if scan.scanned < scan.target || counts.freed == 0 {
                scan.priority -= 1;
            }
            next = if scan.priority > 0 {
                Next::Again
            } else {
                self.failures += u32::from(scan.reclaimed == 0);
                policy.end();
                if self.balanced() { Next::Done } else { Next::Failed }
            };
        } else {
            policy.shrink(self, scan, &mut counts);
            scan.reclaimed += counts.freed;
            self.failures = if counts.freed > 0 { 0 } else { self.failures };
            throttle = (self.congested && !self.skips()).then_some(Throttle::Congested);
            if throttle.is_none() && scan.priority == 1 && scan.reclaimed == 0 && !self.skips() {
                throttle = Some(Throttle::NoProgress);
            }
            next = if scan.reclaimed < 32 && scan.priority > 0 {
                scan.priority -= 1;
                Next::Again
            } else {
                policy.end();
                if scan.reclaimed > 0 {
                    Next::Done
                } else if scan.spared {
                    (scan.spared, scan.force, scan.priority) = (false, true, 12);
                    Next::Again
                } else {
                    Next::Failed
                }
            };
        }
        answer(&counts, throttle, next)
    }
}

fn answer(counts: &Counts, throttle: Option<Throttle>, next: Next) -> Reclaimed {
    Reclaimed {
        scanned: counts.taken,
        refilled: counts.refilled,
        freed: counts.freed,
        dirty: counts.dirty,
        unqueued_dirty: counts.unqueued,
        writeback: counts.writeback,
        congested: counts.congested,
        wakes_flushers: counts.wakes,
        throttle,
        next,
    }
}
