//! Cache against a naive one: pages in a sorted map, lists as vectors, and the kernel's functions written a second
//! time.

mod generations;
mod world;

use super::super::{Folio, Next, PageCache, ScanControl, Tag};
use super::{ReclaimPolicy, cache};
use crate::Inode;
use crate::pagecache::Cause;
use generations::Generations;
use proptest::prelude::*;
use world::{Counts, Key, Policy, Scan, Verdict, World};

/// Pages of the memory: the min watermark is 40 pages, and the watermarks are 10 apart.
const MEMORY: u64 = 400;

/// Action on a few consecutive pages of a file, where possible.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Insert(Cause),
    Ready,
    Lock,
    Access,
    Map,
    Dirty,
    Clean,
    Begin,
    End,
    Mark,
    Remove,
}

#[derive(Clone, Debug)]
enum Step {
    Pages(u32, u64, u64, Deed),
    Truncate(u32, u64),
    Invalidate(u32, u64, u64),
    Kswapd,
    Direct,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let cause = prop::sample::select(vec![Cause::Read, Cause::ReadAhead, Cause::Write, Cause::Fault]);
    let deed = prop_oneof![
        8 => cause.prop_map(Deed::Insert),
        4 => Just(Deed::Ready),
        1 => Just(Deed::Lock),
        6 => Just(Deed::Access),
        1 => Just(Deed::Map),
        2 => Just(Deed::Dirty),
        1 => Just(Deed::Clean),
        2 => Just(Deed::Begin),
        2 => Just(Deed::End),
        1 => Just(Deed::Mark),
        1 => Just(Deed::Remove),
    ];
    let step = prop_oneof![
        24 => (0..2u32, 0..300u64, 1..120u64, deed).prop_map(|(inode, first, pages, deed)| Step::Pages(inode, first, pages, deed)),
        1 => (0..2u32, 200..420u64).prop_map(|(inode, from)| Step::Truncate(inode, from)),
        1 => (0..2u32, 0..400u64, 0..100u64).prop_map(|(inode, from, pages)| Step::Invalidate(inode, from, from + pages)),
        5 => Just(Step::Kswapd),
        5 => Just(Step::Direct),
    ];
    prop::collection::vec(step, 0..120)
}

struct Pair<P> {
    cache: PageCache,
    world: World,
    policy: P,
}

impl<P: Policy> Pair<P> {
    fn deed(&mut self, key: Key, deed: Deed) {
        let (inode, page) = (Inode(key.0), key.1);
        let Pair { cache, world, policy } = self;
        let Some(folio) = cache.find(inode, page) else {
            if let Deed::Insert(cause) = deed
                && cache.free() > 0
            {
                let folio = cache.insert(inode, page, cause);
                cache.set_version(folio, page as u32 + 1);
                world.insert(policy, key, cause);
            }
            return;
        };
        assert_eq!((cache.owner(folio), cache.version(folio)), ((inode, page), page as u32 + 1));
        let (locked, writeback) = (cache.is_locked(folio), cache.is_writeback(folio));
        match deed {
            Deed::Ready if locked => {
                cache.set_uptodate(folio);
                cache.unlock(folio);
                world.page(key).locked = false;
            }
            Deed::Lock if !locked => {
                cache.lock(folio);
                world.page(key).locked = true;
            }
            Deed::Access => {
                cache.mark_accessed(folio);
                policy.accessed(world, key);
            }
            Deed::Map => {
                cache.map(folio);
                (world.page(key).mapped, world.page(key).young) = (true, true);
            }
            Deed::Dirty => {
                assert_eq!(cache.set_dirty(folio), !world.page(key).dirty);
                (world.page(key).dirty, world.page(key).marked) = (true, false);
            }
            Deed::Clean if !locked && !writeback => {
                assert_eq!(cache.clear_dirty_for_io(folio), world.page(key).dirty);
                world.page(key).dirty = false;
            }
            Deed::Begin if !locked && !writeback => self.begin(key, folio),
            Deed::End if writeback => {
                cache.end_writeback(folio);
                world.end_writeback(policy, key);
            }
            Deed::Mark => {
                cache.set_readahead(folio);
                world.page(key).marked = true;
            }
            Deed::Remove if !writeback => {
                cache.remove(folio);
                world.remove(policy, key);
            }
            _ => {}
        }
    }

    /// Begins the write-back of a dirty page.
    fn begin(&mut self, key: Key, folio: Folio) {
        if self.cache.clear_dirty_for_io(folio) {
            self.cache.start_writeback(folio);
            let page = self.world.page(key);
            (page.dirty, page.writeback) = (false, true);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Pages(inode, first, pages, deed) => {
                (first..first + pages).for_each(|page| self.deed((inode, page), deed));
            }
            Step::Truncate(inode, from) => {
                let mut gone = Vec::new();
                let stays = self.cache.truncate(Inode(inode), from, |_, page, _| gone.push(page));
                let (left, expected) = self.world.truncate(&mut self.policy, inode, from);
                assert_eq!((stays.map(|folio| self.cache.owner(folio).1), gone), (left, expected));
            }
            Step::Invalidate(inode, from, to) => {
                let count = self.cache.invalidate(Inode(inode), from, to);
                assert_eq!(count, self.world.invalidate(&mut self.policy, inode, from, to));
            }
            Step::Kswapd => self.reclaim(ScanControl::kswapd(), Scan::new(true)),
            Step::Direct => self.reclaim(ScanControl::direct(), Scan::new(false)),
        }
    }

    fn reclaim(&mut self, mut control: ScanControl, mut scan: Scan) {
        loop {
            let round = self.cache.reclaim(&mut control);
            let expected = self.world.round(&mut self.policy, &mut scan);
            assert_eq!(round, expected);
            let mut pageouts = Vec::new();
            self.cache.pageouts(&mut pageouts);
            let pages: Vec<Key> = pageouts.iter().map(|folio| self.key(folio.0)).collect();
            assert_eq!(pages, std::mem::take(&mut self.world.pageouts));
            for folio in pageouts {
                self.begin(self.key(folio.0), folio);
            }
            if round.next != Next::Again {
                assert_eq!(control.reclaimed(), scan.reclaimed);
                return;
            }
        }
    }

    fn key(&self, at: u32) -> Key {
        let (inode, page) = self.cache.owner(Folio(at));
        (inode.0, page)
    }

    fn compare(&self) {
        let lists = self.cache.reclaim.lists(&self.cache.core);
        let lists: Vec<Vec<Key>> =
            lists.iter().map(|list| list.iter().map(|at| self.key(*at)).collect()).collect();
        assert_eq!(lists, self.policy.lists(), "heads first");
        let count =
            |of: fn(&world::Page) -> bool| self.world.pages.values().filter(|page| of(page)).count() as u64;
        assert_eq!(self.cache.nr_dirty(), count(|page| page.dirty));
        assert_eq!(self.cache.nr_writeback(), count(|page| page.writeback));
        assert_eq!(self.cache.nr_file_pages(), self.world.pages.len() as u64);
        for (&key, page) in &self.world.pages {
            let folio = self.cache.find(Inode(key.0), key.1).expect("the model has it");
            let marks = [
                (self.cache.is_referenced(folio), page.referenced),
                (self.cache.is_workingset(folio), page.workingset),
                (self.cache.is_readahead(folio), page.marked),
                (self.cache.is_mapped(folio), page.mapped),
                (self.cache.core.index.has_tag(Inode(key.0), key.1, Tag::Writeback), page.writeback),
            ];
            assert!(marks.iter().all(|(one, other)| one == other), "{key:?}: {marks:?} {page:?}");
        }
        let (stats, world) = (self.cache.stats(), &self.world);
        let counts = (stats.evicted, stats.activated, stats.deactivated, stats.refaults);
        assert_eq!(counts, (world.evicted, world.activated, world.deactivated, world.refaults));
        assert_eq!(self.cache.check(), Ok(()));
    }
}

fn run<P: Policy>(reclaim: ReclaimPolicy, policy: P, steps: &[Step]) {
    let mut pair = Pair { cache: cache(reclaim, MEMORY), world: World::new(MEMORY), policy };
    for step in steps {
        pair.step(step);
        pair.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]
    #[test]
    fn two_lists_are_as_the_model(steps in steps()) {
        run(ReclaimPolicy::two_lists, Lists::default(), &steps);
    }

    #[test]
    fn generations_are_as_the_model(steps in steps()) {
        run(ReclaimPolicy::mglru, Generations::new(), &steps);
    }
}

// Two vectors, heads first.

#[derive(Default)]
struct Lists {
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
        // Far below a gigabyte both lists should be equally long.
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
