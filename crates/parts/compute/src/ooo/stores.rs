//! The store buffer: stores that have retired and are not done.

use std::collections::VecDeque;

/// How far a retired store is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// It is done in this cycle.
    Known(u64),
    /// It waits for its line, in this register.
    Fetching(u8),
    /// It has to be tried again: there was no register, or its line came as a shared copy.
    Again,
    /// Its page is in flash.
    Missed,
    /// Its page is in flash, and is not asked for before another one has come.
    Behind,
}

/// A retired store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Store {
    /// Number of its operation.
    pub(super) op: u64,
    /// First byte, physical.
    pub(super) address: u64,
    pub(super) width: u8,
    pub(super) doing: Doing,
}

/// The store buffer of a core, oldest first. Stores are done in any order.
pub(super) struct Stores {
    held: VecDeque<Store>,
    room: usize,
    /// Cycle of the latest store that went to the cache: one a cycle.
    pub(super) port: u64,
}

impl Stores {
    pub(super) fn new(room: u32) -> Stores {
        Stores { held: VecDeque::with_capacity(room as usize), room: room as usize, port: 0 }
    }

    /// From which cycle on, at the earliest `at`, a store has room; none if that is not known yet.
    pub(super) fn make_room(&mut self, at: u64) -> Option<u64> {
        self.held.retain(|store| !matches!(store.doing, Doing::Known(done) if done <= at));
        if self.held.len() < self.room {
            return Some(at);
        }
        let known = self.held.iter().filter_map(|store| match store.doing {
            Doing::Known(done) => Some(done),
            _ => None,
        });
        let first = known.min()?;
        self.held.retain(|store| store.doing != Doing::Known(first));
        Some(first)
    }

    pub(super) fn push(&mut self, store: Store) {
        self.held.push_back(store);
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Store> {
        self.held.iter_mut()
    }

    /// Stores inside.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// A store.
    pub(super) fn get(&self, n: usize) -> Store {
        self.held[n]
    }

    /// How far a store is.
    pub(super) fn set(&mut self, n: usize, doing: Doing) {
        self.held[n].doing = doing;
    }

    /// Whether a store holds all bytes of a load.
    pub(super) fn forwards(&self, address: u64, width: u8) -> bool {
        let end = address + u64::from(width);
        self.held
            .iter()
            .any(|store| store.address <= address && end <= store.address + u64::from(store.width))
    }

    /// The cycle in which all of them are done; none if that is not known yet.
    #[inline]
    pub(super) fn settled(&self) -> Option<u64> {
        self.held.iter().try_fold(0, |latest, store| match store.doing {
            Doing::Known(done) => Some(latest.max(done)),
            _ => None,
        })
    }

    /// The oldest store whose page is in flash, if all before it are done: its operation, and when they are.
    #[inline]
    pub(super) fn missed(&self) -> Option<(u64, u64)> {
        let mut latest = 0;
        for store in &self.held {
            match store.doing {
                Doing::Known(done) => latest = latest.max(done),
                Doing::Missed => return Some((store.op, latest)),
                Doing::Fetching(_) | Doing::Again | Doing::Behind => return None,
            }
        }
        None
    }

    /// The number of the oldest store's operation that is not known to be done.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.held.iter().find(|store| !matches!(store.doing, Doing::Known(_))).map(|store| store.op)
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
