//! Window of a core: operations between dispatch and retirement. Behind it, the store buffer: stores that have retired
//! and are not done.

use proto::cpu::OpKind;
use std::collections::VecDeque;

/// Progress of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Waits for a result, for a free register, or for earlier operations.
    Waiting,
    /// Waits for the translation of its page.
    Translating(u64),
    /// Waits for a line, in this register.
    Fetching(u8),
    /// Executed, at the time given by the entry.
    Done,
    /// Missed: its page is in flash.
    Missed,
    /// Missed, and the page is not requested before a different one has arrived.
    Behind,
}

/// Cause of retirement later than the width allows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Spent {
    /// Instructions retire at the full width.
    Retiring,
    /// Dependent operations take their latency, including first-level hits.
    Latency,
    /// A load or an atomic waits for a line.
    Memory,
    /// A load or a store waits for a translation.
    Translation,
    /// Instructions are not in the first-level cache.
    Fetch,
    /// The store buffer is full, or an atomic waits until it is empty.
    Stores,
    /// A resumed thread waits for the access with which it resumed.
    Resume,
    /// A miss is known, and older operations have not retired, or their stores are not done.
    Drain,
    /// The window is flushed.
    Flush,
    /// Threads are switched.
    Switch,
    /// The kernel has the core.
    Kernel,
    /// No job to run.
    Idle,
}

impl Spent {
    /// Number of causes.
    pub const COUNT: usize = 12;
    /// Names of the causes, in order.
    pub const NAMES: [&'static str; Spent::COUNT] = [
        "retiring",
        "latency",
        "memory",
        "translation",
        "fetch",
        "stores",
        "resume",
        "drain",
        "flush",
        "switch",
        "kernel",
        "idle",
    ];
}

/// Operation in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) kind: OpKind,
    pub(super) state: State,
    pub(super) cause: Spent,
    /// True if the access found no free register; it cannot execute before a retry.
    pub(super) blocked: bool,
    pub(super) count: u16,
    /// Numbers of the operations that it needs; zero for none.
    pub(super) needs: [u64; 2],
    /// Latest atomic before it; zero for none.
    pub(super) fence: u64,
    /// Address: virtual, and physical once translated.
    pub(super) address: u64,
    pub(super) physical: u64,
    /// Cycles from which the first and the last of its instructions may execute.
    pub(super) begins: u64,
    pub(super) ready: u64,
    /// Cycle in which its result is available, once done.
    pub(super) done: u64,
    /// Retirement of its last instruction, in slots, once known.
    pub(super) retire: u64,
}

/// Window: operations by number, consecutive from `head` to before `tail`. Those before `retired` have a retirement
/// time.
pub(super) struct Window {
    entries: Vec<Entry>,
    pub(super) head: u64,
    pub(super) retired: u64,
    pub(super) tail: u64,
    /// Instructions: capacity of the window, number inside, and number of the first operation's inside.
    room: u64,
    /// First operation since the last reset.
    first: u64,
    taken: u64,
    left: u64,
    /// Slot in which room was last made.
    freed: u64,
}

const NOTHING: Entry = Entry {
    kind: OpKind::Compute,
    state: State::Done,
    cause: Spent::Latency,
    blocked: false,
    count: 0,
    needs: [0; 2],
    fence: 0,
    address: 0,
    physical: 0,
    begins: 0,
    ready: 0,
    done: 0,
    retire: 0,
};

impl Window {
    pub(super) fn new(room: u32) -> Window {
        let entries = vec![NOTHING; room.next_power_of_two() as usize];
        Window {
            entries,
            head: 1,
            retired: 1,
            tail: 1,
            room: room.into(),
            first: 1,
            taken: 0,
            left: 0,
            freed: 0,
        }
    }

    /// Empties the window; the next operation is `number`.
    pub(super) fn reset(&mut self, number: u64) {
        (self.first, self.head, self.retired, self.tail) = (number, number, number, number);
        (self.taken, self.left, self.freed) = (0, 0, 0);
    }

    #[inline]
    fn at(&self, number: u64) -> usize {
        number as usize & (self.entries.len() - 1)
    }

    /// Returns an operation of the window.
    #[inline]
    pub(super) fn get(&self, number: u64) -> &Entry {
        &self.entries[self.at(number)]
    }

    /// Returns an operation of the window, mutably.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> &mut Entry {
        let at = self.at(number);
        &mut self.entries[at]
    }

    /// Returns whether an operation is still known: it is inside, or retired so recently that its result may be younger
    /// than the place of a new operation. Results of older operations have been available for long.
    #[inline]
    pub(super) fn knows(&self, number: u64) -> bool {
        number >= self.first && number + self.entries.len() as u64 >= self.tail
    }

    /// Returns whether every operation in the window has a retirement time.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.retired == self.tail
    }

    /// Slots of an operation of `count` instructions.
    #[inline]
    fn size(&self, count: u16) -> u64 {
        u64::from(count).min(self.room)
    }

    /// Makes room for an operation of `count` instructions. Returns the slots from which its first and its last
    /// instruction have room; `None` if unknown. `chain` is the number of slots that an instruction of a chain takes to
    /// retire.
    #[inline]
    pub(super) fn make_room(&mut self, count: u16, chain: u64) -> Option<(u64, u64)> {
        let mut needed = (self.taken + self.size(count)).saturating_sub(self.room);
        let mut first = None;
        while needed > 0 {
            if self.head == self.retired {
                return None;
            }
            let entry = *self.get(self.head);
            let each = if entry.kind == OpKind::Chain { chain } else { 1 };
            first = first.or(Some(self.freed.max(entry.retire.saturating_sub((self.left - 1) * each))));
            let freed = self.left.min(needed);
            needed -= freed;
            self.taken -= freed;
            self.left -= freed;
            self.freed = self.freed.max(entry.retire.saturating_sub(self.left * each));
            if self.left == 0 {
                self.head += 1;
                self.left = if self.head < self.tail { self.size(self.get(self.head).count) } else { 0 };
            }
        }
        Some((first.unwrap_or(self.freed), self.freed))
    }

    /// Inserts an operation for which room has been made.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        let size = self.size(entry.count);
        if self.head == self.tail {
            self.left = size;
        }
        self.taken += size;
        let at = self.at(self.tail);
        self.entries[at] = entry;
        self.tail += 1;
    }
}

// Store buffer: stores that have retired and are not done.

/// Progress of a retired store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doing {
    /// Done in this cycle.
    Known(u64),
    /// Waits for its line, in this register.
    Fetching(u8),
    /// Must be retried: no register was free, or its line came as a shared copy.
    Again,
    /// Missed: its page is in flash.
    Missed,
    /// Missed, and the page is not requested before a different one has arrived.
    Behind,
}

/// Retired store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Store {
    /// Number of its operation.
    pub(super) op: u64,
    /// First byte, physical.
    pub(super) address: u64,
    pub(super) width: u8,
    pub(super) doing: Doing,
}

/// Store buffer of a core, oldest store first. Stores are done in any order.
pub(super) struct Stores {
    held: VecDeque<Store>,
    room: usize,
    /// Cycle of the latest store sent to the cache: one per cycle.
    pub(super) port: u64,
}

impl Stores {
    pub(super) fn new(room: u32) -> Stores {
        Stores { held: VecDeque::with_capacity(room as usize), room: room as usize, port: 0 }
    }

    /// Cycle from which a store has room, `at` at the earliest; `None` if unknown.
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

    /// Number of stores in the buffer.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns a store.
    pub(super) fn get(&self, n: usize) -> Store {
        self.held[n]
    }

    /// Sets the progress of a store.
    pub(super) fn set(&mut self, n: usize, doing: Doing) {
        self.held[n].doing = doing;
    }

    /// Returns whether a store holds all bytes of a load.
    pub(super) fn forwards(&self, address: u64, width: u8) -> bool {
        let end = address + u64::from(width);
        self.held
            .iter()
            .any(|store| store.address <= address && end <= store.address + u64::from(store.width))
    }

    /// Cycle in which all stores are done; `None` if unknown.
    #[inline]
    pub(super) fn settled(&self) -> Option<u64> {
        self.held.iter().try_fold(0, |latest, store| match store.doing {
            Doing::Known(done) => Some(latest.max(done)),
            _ => None,
        })
    }

    /// Oldest store whose page is in flash, if all stores before it are done: its operation, and the time at which they
    /// are.
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

    /// Operation number of the oldest store that is not known to be done.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.held.iter().find(|store| !matches!(store.doing, Doing::Known(_))).map(|store| store.op)
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}
