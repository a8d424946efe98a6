//! Two vectors, heads first.

use super::world::{Counts, Key, Policy, Scan, Verdict, World};

#[derive(Default)]
pub(super) struct Lists {
    inactive: Vec<Key>,
    active: Vec<Key>,
    age: u64,
    activations: u64,
    seen: u64,
}

impl Lists {
    fn shrink_inactive(&mut self, world: &mut World, count: usize, scan: &mut Scan, counts: &mut Counts) {
        let at = self.inactive.len().saturating_sub(count);
        let batch = self.inactive.split_off(at);
        let unqueued = counts.unqueued;
        let mut kept = Vec::new();
        for &key in batch.iter().rev() {
            let verdict = world.judge(key, scan, counts);
            if verdict == Verdict::Free {
                let workingset = world.page(key).workingset;
                world.evict(key, (self.age, u64::from(workingset)));
                self.age += 1;
                counts.freed += 1;
            } else {
                kept.push((key, verdict));
            }
        }
        for (key, verdict) in kept {
            if verdict == Verdict::Activate {
                world.page(key).active = true;
                world.activated += 1;
                self.active.insert(0, key);
                self.age += 1;
            } else {
                self.inactive.insert(0, key);
            }
        }
        counts.taken += batch.len() as u64;
        counts.wakes |= !batch.is_empty() && counts.unqueued - unqueued == batch.len() as u64;
    }
}

impl Policy for Lists {
    fn add(&mut self, world: &mut World, key: Key, shadow: Option<(u64, u64)>, _fault: bool) {
        if let Some((age, workingset)) = shadow {
            world.refaults += 1;
            if self.age - age <= self.active.len() as u64 {
                let page = world.page(key);
                (page.active, page.workingset) = (true, workingset == 1);
                self.age += 1;
                self.activations += 1;
            }
        }
        let list = if world.page(key).active { &mut self.active } else { &mut self.inactive };
        list.insert(0, key);
    }

    fn accessed(&mut self, world: &mut World, key: Key) {
        let page = world.page(key);
        if !page.referenced {
            page.referenced = true;
        } else if !page.active {
            (page.active, page.referenced) = (true, false);
            world.activated += 1;
            self.unlink(key);
            self.active.insert(0, key);
            self.age += 1;
        }
    }

    fn unlink(&mut self, key: Key) {
        self.inactive.retain(|one| *one != key);
        self.active.retain(|one| *one != key);
    }

    fn to_tail(&mut self, _world: &mut World, key: Key) {
        self.inactive.push(key);
    }

    fn to_head(&mut self, _world: &mut World, key: Key) {
        self.inactive.insert(0, key);
    }

    fn is_active(&self, _world: &World, key: Key) -> bool {
        self.active.contains(&key)
    }

    fn age(&mut self, _scan: &mut Scan) {}

    fn shrink(&mut self, world: &mut World, scan: &mut Scan, counts: &mut Counts) {
        // Far below a gigabyte the lists are to be as long as each other.
        let may_deactivate =
            scan.force || self.activations != self.seen || self.inactive.len() < self.active.len();
        let (mut inactive, mut active) =
            (self.inactive.len() >> scan.priority, self.active.len() >> scan.priority);
        while inactive + active > 0 {
            let (some, others) = (inactive.min(32), active.min(32));
            self.shrink_inactive(world, some, scan, counts);
            if others > 0 && !may_deactivate {
                scan.spared = true;
            }
            for _ in 0..if may_deactivate { others } else { 0 } {
                let Some(key) = self.active.pop() else { break };
                let page = world.page(key);
                (page.active, page.young, page.workingset) = (false, false, true);
                self.inactive.insert(0, key);
                counts.refilled += 1;
                world.deactivated += 1;
            }
            (inactive, active) = (inactive - some, active - others);
            if counts.freed >= scan.target && (scan.kswapd || scan.priority < 12) {
                break;
            }
        }
    }

    fn end(&mut self) {
        self.seen = self.activations;
    }

    fn lists(&self) -> Vec<Vec<Key>> {
        vec![self.inactive.clone(), self.active.clone()]
    }
}
