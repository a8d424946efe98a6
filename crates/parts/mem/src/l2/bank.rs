//! A bank of the shared cache: its state.

use super::L2Spec;
use super::parked::Parked;
use super::registers::Registers;
use super::slots::Slots;
use crate::cache::tags::{Shape, Tags};
use engine::resource::Serial;
use engine::{Rng, Time};
use proto::memory::Access;
use std::collections::VecDeque;

/// What is known of a line that is here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Line {
    /// All of it is here; without, only what has been written.
    pub(super) valid: bool,
    /// Memory does not have what is here.
    pub(super) dirty: bool,
    /// It belongs to a parked page and cannot make room.
    pub(super) pinned: bool,
    /// A fetch of it is under way, and it cannot make room until it comes.
    pub(super) filling: bool,
    /// A prefetch has brought it.
    pub(super) prefetched: bool,
    /// It has been read.
    pub(super) accessed: bool,
    /// The application.
    pub(super) app: u8,
}

impl Line {
    /// Whether it can make room, once memory has it.
    #[inline]
    pub(super) fn may_go(&self) -> bool {
        !self.pinned && !self.filling
    }
}

/// What a bank does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing waits.
    Idle,
    /// It is occupied for the first access that waits, or by a fill before it.
    Serving,
    /// It cannot place the first access that waits, since then.
    Stalled(Time),
}

/// An application whose lines leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    pub(super) app: u8,
    /// Places before this hold none of its lines any more.
    pub(super) next: u32,
}

/// A bank.
pub(super) struct Bank {
    pub(super) tags: Tags<Line>,
    /// Its one port.
    pub(super) port: Serial,
    /// Occupied before the measured window.
    pub(super) busy_before: Time,
    pub(super) state: State,
    pub(super) queue: VecDeque<Access>,
    /// Whether the prefetcher has been told of the first access that waits.
    pub(super) told: bool,
    pub(super) registers: Registers,
    pub(super) slots: Slots,
    pub(super) parked: Parked,
    pub(super) purges: VecDeque<Purge>,
}

impl Bank {
    /// The bank of a number, as a checked spec says.
    pub(super) fn new(spec: &L2Spec, seed: u64, number: u16) -> Bank {
        let shape = Shape { sets: spec.sets, ways: spec.ways };
        let seed = Rng::stream(seed, &format!("l2/bank{number}")).next_u64();
        Bank {
            tags: Tags::seeded(shape, &spec.replacement, seed),
            port: Serial::default(),
            busy_before: Time::ZERO,
            state: State::Idle,
            queue: VecDeque::new(),
            told: false,
            registers: Registers::new(spec.registers, spec.merges),
            slots: Slots::new(spec.write_slots),
            parked: Parked::new(spec.parked_lines() / spec.page_lines()),
            purges: VecDeque::new(),
        }
    }

    /// Whether one more line of the set of `key` may be pinned: a way stays free of them.
    pub(super) fn may_pin(&self, key: u64) -> bool {
        let set = self.tags.set(key);
        let ways = set.len();
        let pinned = set.filter(|p| self.tags.line(*p).is_some() && self.tags.meta(*p).pinned).count();
        pinned + 1 < ways
    }

    /// Accesses and commands inside.
    pub(super) fn outstanding(&self) -> usize {
        self.queue.len() + self.registers.outstanding() + self.slots.outstanding()
    }
}
