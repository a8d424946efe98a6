//! The closed reclaim units of a group by erase count, for static wear levelling.

use super::index::{Links, NONE, chain};
use std::collections::VecDeque;

/// How a translation layer levels wear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WearRule {
    /// The least erased free unit is opened next (dynamic wear levelling); without, the one freed first.
    pub least_worn: bool,
    /// Erases that a closed unit may lie behind a free one of its group; `None`: any number.
    pub gap: Option<u32>,
}

/// What is known about one reclaim unit.
#[derive(Clone, Debug)]
struct Entry {
    erases: u32,
    list: Links,
}
engine::snapshot!(Entry { erases, list });

const EMPTY: Links = Links { prev: NONE, next: NONE };

/// The closed reclaim units of a group by erase count: a list for each count, longest closed first. Every update is O(1);
/// a look for the least worn passes each empty list once.
#[derive(Clone, Debug)]
pub(crate) struct ByWear {
    /// Up to the highest number that was ever closed or erased; the others have never been erased.
    entries: Vec<Entry>,
    /// First and last of each list, from the erase count `first` on.
    lists: VecDeque<Links>,
    first: u32,
    /// Reclaim units of the group.
    count: u32,
}
engine::snapshot!(ByWear { entries, lists, first, count });

impl ByWear {
    pub(crate) fn new(count: u32) -> ByWear {
        ByWear { entries: Vec::new(), lists: VecDeque::new(), first: 0, count }
    }

    /// Erase count of a reclaim unit.
    pub(crate) fn erases(&self, ru: u32) -> u32 {
        self.entries.get(ru as usize).map_or(0, |entry| entry.erases)
    }

    fn entry(&mut self, ru: u32) -> &mut Entry {
        if self.entries.is_empty() {
            self.entries.reserve_exact(self.count as usize);
        }
        if ru as usize >= self.entries.len() {
            self.entries.resize(ru as usize + 1, Entry { erases: 0, list: EMPTY });
        }
        &mut self.entries[ru as usize]
    }

    /// A unit that is not closed has been erased.
    pub(crate) fn erased(&mut self, ru: u32, erases: u32) {
        self.entry(ru).erases = erases;
    }

    /// A unit has been closed.
    pub(crate) fn insert(&mut self, ru: u32) {
        let erases = self.entry(ru).erases;
        if self.lists.is_empty() {
            self.first = erases;
        }
        while erases < self.first {
            self.lists.push_front(EMPTY);
            self.first -= 1;
        }
        while self.lists.len() as u32 <= erases - self.first {
            self.lists.push_back(EMPTY);
        }
        let ends = &mut self.lists[(erases - self.first) as usize];
        let last = std::mem::replace(&mut ends.next, ru);
        if last == NONE {
            ends.prev = ru;
        } else {
            self.entries[last as usize].list.next = ru;
        }
        self.entries[ru as usize].list = Links { prev: last, next: NONE };
    }

    /// A unit is closed no longer.
    pub(crate) fn remove(&mut self, ru: u32) {
        let Entry { erases, list: Links { prev, next } } = self.entries[ru as usize];
        let ends = &mut self.lists[(erases - self.first) as usize];
        match prev {
            NONE => ends.prev = next,
            p => self.entries[p as usize].list.next = next,
        }
        match next {
            NONE => ends.next = prev,
            n => self.entries[n as usize].list.prev = prev,
        }
    }

    /// The closed unit that was erased least often, of these the one closed first.
    pub(crate) fn least(&mut self) -> Option<u32> {
        while let Some(ends) = self.lists.front() {
            if ends.prev != NONE {
                return Some(ends.prev);
            }
            self.lists.pop_front();
            self.first += 1;
        }
        None
    }

    /// Whether this can stand in the place of one that was built.
    pub(crate) fn fits(&self, built: &ByWear) -> bool {
        self.count == built.count && self.entries.len() <= self.count as usize
    }

    /// Whether the lists hold `count` units, each one that is closed and in the list of its erases; `erases_of` each as the array has them.
    pub(crate) fn is_sound(
        &self,
        count: usize,
        is_closed: &dyn Fn(u32) -> bool,
        erases_of: &dyn Fn(u32) -> u32,
    ) -> bool {
        let known = (0u32..).zip(&self.entries).all(|(ru, entry)| entry.erases == erases_of(ru));
        let listed = (u64::from(self.first)..).zip(&self.lists).map(|(erases, ends)| {
            chain(*ends, &|ru| {
                let entry = self.entries.get(ru as usize).filter(|_| is_closed(ru))?;
                (u64::from(entry.erases) == erases).then_some(entry.list)
            })
        });
        known && listed.sum::<Option<usize>>() == Some(count)
    }

    /// Bytes allocated.
    pub(crate) fn bytes(&self) -> u64 {
        (self.entries.capacity() * size_of::<Entry>() + self.lists.capacity() * size_of::<Links>()) as u64
    }
}
