//! Range locks: whose data sections may be mapped at the same time.
//!
//! Readers share; a writer shares with nobody. A request waits for every request before it that it conflicts with, whether that
//! one holds its range or waits itself: so nobody is passed by a later request that would delay it, and nobody starves. Who
//! conflicts with nobody goes at once. Each request counts those that it waits for, and goes on when the last of them has
//! gone.
//!
//! All requests, held and waiting, are nodes of a red-black tree, as in FlashAbacus, section 4.3: the first group is the key,
//! nodes are augmented with the last one and the kind. So that a search takes as many steps as it finds and the tree is deep,
//! the last group is kept of whole subtrees too, and of the writers in them.

#[cfg(test)]
mod tests;
mod tree;

use tree::{Node, Tree};

/// What a range is wanted for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Shares the range with other readers.
    Read,
    /// Has the range alone.
    Write,
}

/// Logical groups from the first to the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupRange {
    /// First group.
    pub first: u32,
    /// Last group, which belongs to the range.
    pub last: u32,
}

/// Who asks for a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A kernel's data section, by a name of the caller's.
    Section(u32),
    /// Storengine, for a snapshot or a move.
    Storengine,
}

/// A request for a range, held or waiting, until it is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lock(u32);

/// A request that need not wait any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// Who asked.
    pub owner: Owner,
    /// The request.
    pub lock: Lock,
}

/// The locks of an address space.
#[derive(Clone, Debug, Default)]
pub struct RangeLocks {
    tree: Tree,
    /// Number of the next request in the order of arrival.
    arrivals: u64,
    waiting: u32,
    /// Waiting requests that are found to be free, by arrival; kept for its memory.
    freed: Vec<(u64, u32)>,
}

impl RangeLocks {
    /// Asks for a range. Whether it is held at once; if not, a later [`release`](RangeLocks::release) will tell.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn request(&mut self, range: GroupRange, access: Access, owner: Owner) -> (Lock, bool) {
        let ahead = self.tree.count_conflicts(range, access);
        (self.enter(range, access, owner, ahead), ahead == 0)
    }

    /// Takes a range if it is free, and nobody waits for a part of it that the request conflicts with.
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

    /// Gives a range back, or withdraws a request that waits. Requests that wait for nobody any more are added to `granted`
    /// in the order in which they came.
    pub fn release(&mut self, lock: Lock, granted: &mut Vec<Granted>) {
        let (range, access, arrival) = self.tree.remove(lock.0, &mut self.waiting);
        let freed = &mut self.freed;
        self.tree.each_conflict(range, access, |name, node| {
            // Those that came before never waited for this one.
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

    /// Requests that hold their range, and requests that wait.
    pub fn counts(&self) -> (u32, u32) {
        (self.tree.len() as u32 - self.waiting, self.waiting)
    }

    /// Nodes of the tree visited so far.
    pub fn visits(&self) -> u64 {
        self.tree.visits
    }
}
