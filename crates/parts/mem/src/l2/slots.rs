//! Write slots: writes to memory under way.

use proto::memory::Access;

/// A write under way.
#[derive(Clone, Copy, Debug)]
struct Slot {
    page: u64,
    /// Who waits for it.
    access: Option<Access>,
}

/// The write slots of a bank.
pub(super) struct Slots {
    items: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Free ones that are kept for atomics whose line is being fetched.
    kept: usize,
}

impl Slots {
    /// `count` slots.
    pub(super) fn new(count: u32) -> Slots {
        Slots { items: vec![None; count as usize], free: (0..count).rev().collect(), kept: 0 }
    }

    /// Slots that can be taken.
    #[inline]
    pub(super) fn free(&self) -> usize {
        self.free.len() - self.kept
    }

    /// Writes under way, and accesses that wait for them.
    pub(super) fn outstanding(&self) -> usize {
        let waiting = self.items.iter().flatten().filter(|slot| slot.access.is_some()).count();
        self.items.len() - self.free.len() + waiting
    }

    /// Whether lines of a page are on their way to memory.
    pub(super) fn writes_to(&self, page: u64) -> bool {
        self.items.iter().flatten().any(|slot| slot.page == page)
    }

    /// The page that is written from a slot.
    #[inline]
    pub(super) fn page(&self, slot: u32) -> Option<u64> {
        self.items[slot as usize].map(|slot| slot.page)
    }

    /// Takes a slot for a write to a page.
    ///
    /// # Panics
    /// If none is free.
    pub(super) fn take(&mut self, page: u64, access: Option<Access>) -> u32 {
        assert!(self.free() > 0, "a write is sent only when a slot is free");
        let slot = self.free.pop().expect("counted above");
        self.items[slot as usize] = Some(Slot { page, access });
        slot
    }

    /// Keeps a slot.
    ///
    /// # Panics
    /// If none is free.
    pub(super) fn keep(&mut self) {
        assert!(self.free() > 0, "a slot is kept only when one is free");
        self.kept += 1;
    }

    /// Gives back a slot that was kept.
    pub(super) fn unkeep(&mut self) {
        self.kept -= 1;
    }

    /// A write has been done; who waited for it.
    pub(super) fn end(&mut self, slot: u32) -> Option<Access> {
        let ended = self.items[slot as usize].take().expect("a write that ends was under way");
        self.free.push(slot);
        ended.access
    }
}
