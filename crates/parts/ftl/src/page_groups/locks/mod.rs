//! Range locks: which data sections may be mapped at the same time.
//!
//! Readers share; a writer has its range alone. A request waits for every earlier request that it conflicts with,
//! whether that one holds its range or waits itself: so no request is overtaken by a later one that would delay it, and
//! none starves. A request without conflicts is granted at once. Each request counts those that it waits for, and is
//! granted when the last of them has gone.
//!
//! All requests, held and waiting, are nodes of a red-black tree, as in FlashAbacus, section 4.3: the first group is
//! the key, nodes are augmented with the last group and the kind. The last group is also kept for whole subtrees, and
//! for the writers in them, so that the cost of a search is proportional to the matches and the depth of the tree.

mod tree;

use tree::{Node, Tree};

/// Kind of access to a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Write,
}

/// Range of logical groups, from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupRange {
    /// First group.
    pub first: u32,
    /// Last group, included in the range.
    pub last: u32,
}

/// Requester of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Data section of a kernel, under a name of the caller.
    Section(u32),
    /// Storengine, for a snapshot or a move.
    Storengine,
}

/// Request for a range, held or waiting, until it is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock(u32);

/// Request that has just been granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// Requester.
    pub owner: Owner,
    /// Request.
    pub lock: Lock,
}

/// Locks of an address space.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    tree: Tree,
    /// Number of the next request in the order of arrival.
    arrivals: u64,
    waiting: u32,
    /// Waiting requests found to be grantable, by arrival; kept for its memory.
    freed: Vec<(u64, u32)>,
}

impl RangeLocks {
    /// Requests a range. Returns whether it is held at once; if not, a later [`release`](RangeLocks::release) reports
    /// it.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn request(&mut self, range: GroupRange, access: Access, owner: Owner) -> (Lock, bool) {
        let ahead = self.tree.count_conflicts(range, access);
        (self.enter(range, access, owner, ahead), ahead == 0)
    }

    /// Takes a range if it is free, and no request with a conflict waits for a part of it.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn try_lock(&mut self, range: GroupRange, access: Access, owner: Owner) -> Option<Lock> {
        let is_free = !self.tree.has_conflict(range, access);
        is_free.then(|| self.enter(range, access, owner, 0))
    }

    fn enter(&mut self, range: GroupRange, access: Access, owner: Owner, ahead: u32) -> Lock {
        assert!(range.first <= range.last, "a range of {} to {}", range.first, range.last);
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.waiting += u32::from(ahead > 0);
        Lock(self.tree.insert(Node::new(range, access, owner, arrival, ahead)))
    }

    /// Releases a range, or withdraws a waiting request. Requests that become granted are added to `granted` in the
    /// order in which they came.
    pub fn release(&mut self, lock: Lock, granted: &mut Vec<Granted>) {
        let (range, access, arrival) = self.tree.remove(lock.0, &mut self.waiting);
        let freed = &mut self.freed;
        self.tree.each_conflict(range, access, |name, node| {
            // Earlier requests never waited for this one.
            if node.arrival > arrival {
                node.ahead -= 1;
                if node.ahead == 0 {
                    freed.push((node.arrival, name));
                }
            }
        });
        freed.sort_unstable();
        self.waiting -= freed.len() as u32;
        for (_, name) in freed.drain(..) {
            granted.push(Granted { owner: self.tree.owner(name), lock: Lock(name) });
        }
    }

    /// Returns the numbers of requests that hold their range, and that wait.
    pub fn counts(&self) -> (u32, u32) {
        (self.tree.len() as u32 - self.waiting, self.waiting)
    }

    /// Returns the number of tree nodes visited so far.
    pub fn visits(&self) -> u64 {
        self.tree.visits
    }
}

#[cfg(test)]
mod tests {
    // Worked examples, and arbitrary requests against a list of them.
    use super::*;
    use proptest::prelude::*;

    fn range(first: u32, last: u32) -> GroupRange {
        GroupRange { first, last }
    }

    /// Requests made, by number of arrival: the reference for the locks.
    #[derive(Default)]
    struct Naive {
        all: Vec<(u32, GroupRange, Access, Lock)>,
    }

    impl Naive {
        /// Returns whether two requests conflict by the paper's definition: ranges overlap, and not both are for reads.
        fn conflict(a: (GroupRange, Access), b: (GroupRange, Access)) -> bool {
            let overlap = (a.0.first..=a.0.last).any(|group| (b.0.first..=b.0.last).contains(&group));
            overlap && !(a.1 == Access::Read && b.1 == Access::Read)
        }
        /// Returns the requests that hold their range: those without an earlier conflict.
        fn held(&self) -> Vec<u32> {
            let free = |(at, this): &(usize, &(u32, GroupRange, Access, Lock))| {
                !self.all[..*at].iter().any(|other| Naive::conflict((other.1, other.2), (this.1, this.2)))
            };
            self.all.iter().enumerate().filter(free).map(|(_, this)| this.0).collect()
        }
        /// Checks that no two requests that hold their ranges conflict.
        fn check(&self) {
            let held = self.held();
            let held: Vec<_> = self.all.iter().filter(|this| held.contains(&this.0)).collect();
            for (at, a) in held.iter().enumerate() {
                assert!(held[..at].iter().all(|b| !Naive::conflict((a.1, a.2), (b.1, b.2))));
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        Request(GroupRange, Access),
        Try(GroupRange, Access),
        Release(usize),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let wanted = || {
            let access = prop_oneof![2 => Just(Access::Read), 1 => Just(Access::Write)];
            let ranges = prop_oneof![
                3 => (0u32..40, 0u32..6).prop_map(|(first, more)| range(first, first + more)),
                1 => (0u32..40, 0u32..40).prop_map(|(a, b)| range(a.min(b), a.max(b))),
                1 => Just(range(0, u32::MAX)),
            ];
            (ranges, access)
        };
        let op = prop_oneof![
            4 => wanted().prop_map(|(range, access)| Op::Request(range, access)),
            1 => wanted().prop_map(|(range, access)| Op::Try(range, access)),
            4 => any::<usize>().prop_map(Op::Release),
        ];
        prop::collection::vec(op, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Holders and grants match the list; the tree is in order throughout. Every waiting request is granted once
        /// all before it have gone: in the end every request has had its range.
        #[test]
        fn requests_are_served_as_a_list_of_them_says(ops in ops()) {
            // Ranges to the end of the address space are cut for the list, which counts groups.
            let cut = |wide: GroupRange| range(wide.first, wide.last.min(99));
            let (mut locks, mut naive, mut granted) = (RangeLocks::default(), Naive::default(), Vec::new());
            let mut rest = Vec::new();
            for (number, op) in (0u32..).zip(ops) {
                let before = naive.held();
                match op {
                    Op::Request(wanted, access) => {
                        let (lock, is_held) = locks.request(wanted, access, Owner::Section(number));
                        naive.all.push((number, cut(wanted), access, lock));
                        prop_assert_eq!(is_held, naive.held().contains(&number));
                    }
                    Op::Try(wanted, access) => {
                        let lock = locks.try_lock(wanted, access, Owner::Section(number));
                        naive.all.push((number, cut(wanted), access, lock.unwrap_or(Lock(0))));
                        prop_assert_eq!(lock.is_some(), naive.held().contains(&number));
                        if lock.is_none() {
                            naive.all.pop();
                        }
                    }
                    Op::Release(which) if !naive.all.is_empty() => rest.push(which % naive.all.len()),
                    Op::Release(_) => {}
                }
                for which in rest.drain(..) {
                    let (gone, .., lock) = naive.all.remove(which);
                    locks.release(lock, &mut granted);
                    let new: Vec<u32> = naive.held().into_iter().filter(|n| !before.contains(n)).collect();
                    let told: Vec<Owner> = granted.drain(..).map(|granted| granted.owner).collect();
                    prop_assert_eq!(told, new.into_iter().map(Owner::Section).collect::<Vec<_>>(), "{} gone", gone);
                }
                naive.check();
                let (held, all) = (naive.held().len(), naive.all.len());
                prop_assert_eq!(locks.counts(), (held as u32, (all - held) as u32));
                // Red and black: at most twice the logarithm (Cormen et al., lemma 13.1).
                let levels = f64::from(locks.tree.check());
                prop_assert!(levels <= 2.0 * ((all + 1) as f64).log2() + 1e-9);
            }
            let mut served = naive.held().len();
            let all = naive.all.len();
            while let Some(first) = naive.held().first().copied() {
                let at = naive.all.iter().position(|this| this.0 == first).expect("it is there");
                let (.., lock) = naive.all.remove(at);
                locks.release(lock, &mut granted);
                served += granted.drain(..).count();
            }
            prop_assert_eq!((served, locks.counts()), (all, (0, 0)));
        }
    }

    /// Section 4.3: readers share; a map for writes is blocked by a range that is read, and a map for reads by one that
    /// is written.
    #[test]
    fn readers_share_and_writers_do_not() {
        let (mut locks, mut granted) = (RangeLocks::default(), Vec::new());
        let mut ask = |first, last, access, n| locks.request(range(first, last), access, Owner::Section(n));
        let (a, held) = ask(0, 9, Access::Read, 0);
        assert!(held);
        let (b, held) = ask(5, 14, Access::Read, 1);
        assert!(held);
        let (writer, held) = ask(9, 20, Access::Write, 2);
        assert!(!held);
        // A later reader does not overtake the writer that it conflicts with; one beside it does.
        let (late, held) = ask(12, 13, Access::Read, 3);
        assert!(!held);
        let (_, held) = ask(2, 8, Access::Read, 4);
        assert!(held);
        let (_, held) = ask(21, 30, Access::Write, 5);
        assert!(held);
        locks.release(a, &mut granted);
        assert!(granted.is_empty(), "the other reader still holds its range");
        locks.release(b, &mut granted);
        assert_eq!(granted, [Granted { owner: Owner::Section(2), lock: writer }]);
        granted.clear();
        locks.release(writer, &mut granted);
        assert_eq!(granted, [Granted { owner: Owner::Section(3), lock: late }]);
        assert_eq!(locks.counts(), (3, 0));
    }

    #[test]
    fn a_request_that_waits_can_be_withdrawn() {
        let (mut locks, mut granted) = (RangeLocks::default(), Vec::new());
        locks.request(range(0, 9), Access::Read, Owner::Storengine);
        let (writer, _) = locks.request(range(0, 9), Access::Write, Owner::Section(0));
        let (reader, is_held) = locks.request(range(3, 3), Access::Read, Owner::Section(1));
        assert!(!is_held && locks.try_lock(range(4, 4), Access::Read, Owner::Storengine).is_none());
        locks.release(writer, &mut granted);
        assert_eq!(granted, [Granted { owner: Owner::Section(1), lock: reader }]);
        assert_eq!(locks.counts(), (2, 0));
    }

    /// Readers arrive without end, each before the last has gone: the writer is granted after those that came before
    /// it.
    #[test]
    fn a_writer_among_readers_without_end_is_served() {
        let (mut locks, mut granted) = (RangeLocks::default(), Vec::new());
        let mut readers = std::collections::VecDeque::new();
        for n in 0..8 {
            readers.push_back(locks.request(range(0, 99), Access::Read, Owner::Section(n)).0);
        }
        let (writer, _) = locks.request(range(50, 60), Access::Write, Owner::Storengine);
        for n in 8..16 {
            readers.push_back(locks.request(range(0, 99), Access::Read, Owner::Section(n)).0);
            let first = readers.pop_front().expect("eight are there");
            assert!(granted.is_empty());
            locks.release(first, &mut granted);
        }
        assert_eq!(granted, [Granted { owner: Owner::Storengine, lock: writer }]);
        granted.clear();
        locks.release(writer, &mut granted);
        let told: Vec<Owner> = granted.iter().map(|granted| granted.owner).collect();
        assert_eq!(told, (8..16).map(Owner::Section).collect::<Vec<_>>());
    }

    /// A search visits at most one path per match and one more, two nodes per level; insertion and removal add their
    /// own paths.
    #[test]
    fn visits_grow_with_the_logarithm_and_the_matches() {
        for bits in [4, 8, 12, 16] {
            let (mut locks, mut granted) = (RangeLocks::default(), Vec::new());
            let count = 1u32 << bits;
            let all: Vec<Lock> = (0..count)
                .map(|n| {
                    // Not in order: an odd factor visits every number once.
                    let first = n.wrapping_mul(40_503) % count * 10;
                    let (lock, is_held) =
                        locks.request(range(first, first + 9), Access::Write, Owner::Section(n));
                    assert!(is_held);
                    lock
                })
                .collect();
            let levels = u64::from(locks.tree.check());
            assert!(levels <= 2 * (bits + 1));
            let way = 2 * levels + 2;
            let before = locks.visits();
            let (lock, is_held) = locks.request(range(35, 44), Access::Read, Owner::Storengine);
            assert!(!is_held);
            let visits = locks.visits() - before;
            assert!(visits <= 3 * way + 2 * way, "two matches of {count}: {visits} visits");
            locks.release(lock, &mut granted);
            // Readers on one range, as of a shared input: a further one visits none of them.
            (0..100).for_each(|n| {
                locks.request(range(count * 10, count * 10 + 99), Access::Read, Owner::Section(n));
            });
            let before = locks.visits();
            locks.request(range(count * 10, count * 10 + 99), Access::Read, Owner::Section(100));
            let way = 2 * u64::from(locks.tree.check()) + 2;
            assert!(locks.visits() - before <= 2 * way);
            all.into_iter().for_each(|lock| locks.release(lock, &mut granted));
            assert_eq!(locks.counts(), (101, 0));
        }
    }

    #[test]
    fn memory_is_used_again() {
        let (mut locks, mut granted) = (RangeLocks::default(), Vec::new());
        let mut held = std::collections::VecDeque::new();
        let mut sizes = None;
        for n in 0..10_000u32 {
            let access = if n % 3 == 0 { Access::Write } else { Access::Read };
            held.push_back(
                locks.request(range(n * 7 % 90, n * 7 % 90 + n % 11), access, Owner::Section(n)).0,
            );
            if held.len() > 50 {
                locks.release(held.pop_front().expect("some are there"), &mut granted);
                granted.clear();
            }
            let now = (locks.tree.places(), locks.tree.path_room(), locks.freed.capacity());
            if n == 1_000 {
                sizes = Some(now);
            }
            assert!(n < 1_000 || sizes == Some(now));
        }
    }
}
