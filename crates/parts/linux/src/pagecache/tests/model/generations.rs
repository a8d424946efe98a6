//! Generations as vectors, heads first, the oldest first.

use super::world::{Counts, HIGH, Key, LOW, Page, Policy, Scan, Verdict, World};
use std::collections::VecDeque;

pub(super) struct Generations {
    lists: VecDeque<Vec<Key>>,
    /// Number of the oldest generation.
    oldest: u64,
    /// For each tier: refaulted and evicted or protected pages, current and faded.
    now: [(u64, u64); 4],
    faded: [(u64, u64); 4],
}

/// Accesses beyond the first.
fn refs(page: &Page) -> u64 {
    page.refs + u64::from(page.workingset)
}

/// `order_base_2(refs + 1)`.
fn tier(refs: u64) -> usize {
    [0, 1, 2, 2, 3][refs as usize]
}

fn forget_uses(page: &mut Page) {
    (page.referenced, page.workingset, page.refs) = (false, false, 0);
}

impl Generations {
    /// Creates four generations (`lru_gen_init_lruvec`).
    pub(super) fn new() -> Generations {
        Generations { lists: vec![Vec::new(); 4].into(), oldest: 0, now: [(0, 0); 4], faded: [(0, 0); 4] }
    }

    /// Generation that `lru_gen_add_folio` selects for a page.
    fn place(&self, page: &Page, reclaiming: bool) -> usize {
        let count = self.lists.len();
        if page.active {
            count - 1
        } else if page.marked && (page.dirty || page.writeback) {
            count - 2
        } else {
            usize::from(!reclaiming && count == 4)
        }
    }

    /// Last tier that may be evicted.
    fn limit(&self) -> usize {
        let sum =
            |tier: usize| (self.now[tier].0 + self.faded[tier].0, self.now[tier].1 + self.faded[tier].1);
        let first = sum(0);
        let mut limit = 0;
        while limit < 3 {
            let (refaulted, total) = sum(limit + 1);
            if refaulted >= 64 && refaulted * (first.1 + 64) > 2 * total * (first.0 + 1) {
                break;
            }
            limit += 1;
        }
        limit
    }

    fn due(&self) -> bool {
        let total: usize = self.lists.iter().map(Vec::len).sum();
        match self.lists.len() {
            2 => true,
            3 => self.lists[2].len() * 2 > total || self.lists[0].len() * 4 < total,
            _ => false,
        }
    }

    fn evict(&mut self, world: &mut World, scan: &mut Scan, counts: &mut Counts) -> usize {
        let (mut batch, mut looked) = (Vec::new(), 0);
        if self.lists.len() > 2 {
            let limit = self.limit();
            while batch.len() < 64 && looked < 4096 {
                let Some(key) = self.lists[0].pop() else { break };
                looked += 1;
                let page = world.page(key);
                let refs = refs(page);
                if tier(refs) > limit || refs == 4 {
                    forget_uses(page);
                    self.now[tier(refs)].1 += 1;
                    self.lists[1].push(key);
                    counts.refilled += 1;
                    world.activated += 1;
                } else if page.locked || page.writeback || page.dirty {
                    forget_uses(page);
                    page.marked = true;
                    self.lists[1].insert(0, key);
                    counts.refilled += 1;
                } else {
                    if !page.referenced {
                        forget_uses(page);
                    }
                    (page.referenced, page.marked) = (false, false);
                    batch.push(key);
                }
            }
            if batch.is_empty() && looked < 4096 {
                looked = 0;
            }
        }
        let oldest = self.oldest;
        while self.lists.len() > 2 && self.lists[0].is_empty() {
            self.lists.pop_front();
            self.oldest += 1;
        }
        if self.oldest != oldest {
            looked += 1;
            for (now, faded) in self.now.iter_mut().zip(&mut self.faded) {
                *faded = ((now.0 + faded.0) / 2, (now.1 + faded.1) / 2);
                *now = (0, 0);
            }
        }
        if self.lists.len() == 2 {
            looked = 0;
        }
        counts.taken += batch.len() as u64;
        let mut kept = Vec::new();
        for key in batch {
            match world.judge(key, scan, counts) {
                Verdict::Free => {
                    let refs = refs(world.page(key));
                    self.now[tier(refs)].1 += 1;
                    world.evict(key, (self.oldest, refs));
                    counts.freed += 1;
                }
                verdict => {
                    world.activated += u64::from(verdict == Verdict::Activate);
                    kept.push(key);
                }
            }
        }
        for key in kept {
            forget_uses(world.page(key));
            self.lists.back_mut().expect("there are some").insert(0, key);
        }
        looked
    }
}

impl Policy for Generations {
    fn add(&mut self, world: &mut World, key: Key, shadow: Option<(u64, u64)>, fault: bool) {
        if let Some((oldest, refs)) = shadow
            && oldest == self.oldest
        {
            world.refaults += 1;
            self.now[tier(refs)].0 += 1;
            if fault || refs >= 3 {
                (world.page(key).refs, world.page(key).workingset) = (3, true);
            }
        }
        let page = Page { active: fault, ..*world.page(key) };
        let place = self.place(&page, false);
        self.lists[place].insert(0, key);
    }

    fn accessed(&mut self, world: &mut World, key: Key) {
        let page = world.page(key);
        if !page.referenced {
            page.referenced = true;
        } else if !page.workingset {
            page.workingset = true;
        } else {
            page.refs = (page.refs + 1).min(3);
        }
    }

    fn unlink(&mut self, key: Key) {
        self.lists.iter_mut().for_each(|list| list.retain(|one| *one != key));
    }

    fn to_tail(&mut self, world: &mut World, key: Key) {
        let place = self.place(world.page(key), true);
        self.lists[place].push(key);
    }

    fn to_head(&mut self, world: &mut World, key: Key) {
        let place = self.place(world.page(key), false);
        self.lists[place].insert(0, key);
    }

    fn is_active(&self, _world: &World, key: Key) -> bool {
        self.lists.iter().rev().take(2).any(|list| list.contains(&key))
    }

    fn age(&mut self, scan: &mut Scan) {
        if scan.needs_aging && self.due() {
            self.lists.push_back(Vec::new());
        }
        scan.needs_aging = true;
    }

    fn shrink(&mut self, world: &mut World, scan: &mut Scan, counts: &mut Counts) {
        let (mut looked, mut begun) = (0, 0);
        loop {
            let total: usize = self.lists.iter().map(Vec::len).sum();
            let due = self.due();
            if due && scan.priority < 12 {
                if scan.kswapd {
                    return;
                }
                self.lists.push_back(Vec::new());
                begun += 1;
            } else if due && self.lists.len() == 2 {
                return;
            }
            let wanted = total >> scan.priority;
            if wanted == 0 {
                return;
            }
            let delta = self.evict(world, scan, counts);
            if delta == 0 {
                return;
            }
            looked += delta;
            if looked >= wanted {
                scan.needs_aging &= due || counts.freed < 64;
                return;
            }
            let enough = if scan.kswapd {
                scan.reclaimed + counts.freed - scan.reclaimed_before >= scan.target
            } else if begun > 1 {
                scan.needs_aging &= due || counts.freed < 64;
                return;
            } else {
                true
            };
            if enough && scan.priority <= 10 && world.free() >= if scan.kswapd { HIGH } else { LOW } {
                scan.reclaimed += 64;
                scan.needs_aging &= due;
                return;
            }
        }
    }

    fn end(&mut self) {}

    fn lists(&self) -> Vec<Vec<Key>> {
        self.lists.iter().cloned().collect()
    }
}
