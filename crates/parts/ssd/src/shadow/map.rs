//! Data of the demand-cached map: the entries of each translation page, on flash and in memory.
//!
//! Entries travel like the host's data: a change is noted when the device learns of it, goes into a page when that page
//! is programmed, and comes back when it is read. So a page written back without a change, or not at all, is detected,
//! although the simulated device looks units up in the whole map.

use super::data::{Content, Stamps, Version};
use super::{Entries, Shadow, UNKNOWN, Word, word};
use ftl::page_map::Ftl;
use ftl::page_map::map_cache::MapCache;
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

/// Contents of the controller's memory for the map.
#[derive(Default)]
pub(super) struct MapMemory {
    pub(super) per_page: u64,
    by_page: bool,
    /// Changes that are not on flash.
    pub(super) fresh: FxHashMap<u64, Word>,
    /// Entries that have come from flash, or have gone there: one by one…
    entries: FxHashMap<u64, Word>,
    /// … or by page.
    pages: FxHashMap<u64, Entries>,
    /// Contents on flash of pages to be written back.
    bases: FxHashMap<u64, Entries>,
    /// Changes that went to flash while an older copy of their page was being read, by page: memory keeps them until
    /// that read has finished.
    kept: FxHashMap<u64, FxHashMap<u64, Word>>,
    /// Initial contents of memory: assumed correct if the shadow has joined a used device.
    before: Entries,
}

impl MapMemory {
    pub(super) fn new(cache: Option<&MapCache>) -> MapMemory {
        let shape = cache.map(|c| (c.entries_per_page(), c.holds_pages()));
        let (per_page, by_page) = shape.unwrap_or((1, false));
        let used = cache.is_some_and(|c| !c.is_empty());
        let before = if used { Entries::Initial } else { Entries::Unknown };
        MapMemory { per_page, by_page, before, ..MapMemory::default() }
    }
}

impl Shadow {
    pub(super) fn entry(&self, entries: &Entries, lpn: u64, ftl: &Ftl) -> Word {
        match entries {
            Entries::Unknown => UNKNOWN,
            Entries::Initial => word(self.truth.initial_slot(Lpn(lpn), ftl)),
            Entries::Known(words) => words[(lpn % self.map.per_page) as usize],
        }
    }

    /// Contents of a translation page on flash.
    pub(super) fn page_on_flash(&self, page: u64, ftl: &Ftl) -> Entries {
        let lpn = Lpn(ftl.logical() + page);
        match ftl.lookup(lpn) {
            Some(slot) => self.truth.read(slot, ftl).entries_of(lpn),
            None => Entries::Initial,
        }
    }

    /// Entries of the page that has just been read.
    fn page_landed(&self, page: u64, slot: Slot, ftl: &Ftl) -> Entries {
        let landed = self.landed.iter().find(|(s, _)| *s == slot).map(|(_, content)| content.clone());
        landed.map_or(Entries::Unknown, |content| content.entries_of(Lpn(ftl.logical() + page)))
    }

    fn compare_entry(&mut self, lpn: u64, found: Word, whence: &str, ftl: &Ftl) {
        if found != word(ftl.lookup(Lpn(lpn))) {
            self.violation(format!("the entry of unit {lpn} {whence} is outdated"));
        }
    }

    /// Checks an entry that the device uses from its cache.
    #[cold]
    pub(crate) fn map_finds(&mut self, lpn: u64, ftl: &Ftl) {
        let old = match self.map.by_page {
            true => self.map.pages.get(&(lpn / self.map.per_page)).map(|page| self.entry(page, lpn, ftl)),
            false => self.map.entries.get(&lpn).copied(),
        };
        let found = self.map.fresh.get(&lpn).copied().or(old);
        let found = found.unwrap_or_else(|| self.entry(&self.map.before, lpn, ftl));
        self.compare_entry(lpn, found, "in the map cache", ftl);
    }

    /// Notes that the cache takes an entry from the page just read at `slot`, or from one never written. With `known`,
    /// memory has a newer one.
    #[cold]
    pub(crate) fn map_loads(&mut self, lpn: u64, slot: Option<Slot>, known: bool, ftl: &Ftl) {
        let page = lpn / self.map.per_page;
        let mut read = slot.map_or(Entries::Initial, |slot| self.page_landed(page, slot, ftl));
        if let Some(kept) = self.map.kept.get(&page) {
            read = self.page_with(page, &read, kept, ftl);
        }
        let old = self.entry(&read, lpn, ftl);
        let fresh = self.map.fresh.get(&lpn).copied().filter(|_| known);
        self.compare_entry(lpn, fresh.unwrap_or(old), "in a translation page", ftl);
        if self.map.by_page {
            self.map.pages.insert(page, read);
        } else {
            self.map.entries.insert(lpn, old);
        }
    }

    /// Notes that all waiters of a translation page have taken its entries.
    #[cold]
    pub(crate) fn map_has_loaded(&mut self, page: u64) {
        self.map.kept.remove(&page);
    }

    /// Notes that the device has learned a unit's present place.
    #[cold]
    pub(crate) fn map_changes(&mut self, lpn: Lpn, ftl: &Ftl) {
        self.map.fresh.insert(lpn.0, word(ftl.lookup(lpn)));
    }

    /// Notes that a translation page to be written back has just been read at `slot`, or was never written.
    #[cold]
    pub(crate) fn map_merges(&mut self, page: u64, slot: Option<Slot>, ftl: &Ftl) {
        let base = slot.map_or(Entries::Initial, |slot| self.page_landed(page, slot, ftl));
        self.map.bases.insert(page, base);
    }

    /// Notes that a translation page is to be written back without being read: memory `holds` every entry of it, except
    /// the one just evicted. Changes that went to flash before are not new, and yet only memory has them at hand.
    #[cold]
    pub(crate) fn map_gathers(&mut self, page: u64, holds: impl Fn(u64) -> bool, ftl: &Ftl) {
        if self.map.by_page {
            return;
        }
        let first = page * self.map.per_page;
        let units = first..(first + self.map.per_page).min(ftl.logical());
        let lacks = units.clone().filter(|lpn| !holds(*lpn)).count();
        if lacks > 1 {
            self.violation(format!(
                "translation page {page} is written as a whole, but {lacks} entries are not in memory"
            ));
        }
        let held = |lpn: u64| {
            let known = self.map.entries.get(&lpn).copied();
            known.unwrap_or_else(|| self.entry(&self.map.before, lpn, ftl))
        };
        let words = units.map(held).collect();
        self.map.bases.insert(page, Entries::Known(words));
    }

    /// Notes a queued program of translation pages. Entries in memory override those read.
    #[cold]
    pub(crate) fn map_writes(&mut self, name: u32, lpns: &[Lpn], ftl: &Ftl) {
        let stamps = Stamps::Whole(Version::of_write(self.writes));
        self.writes += 1;
        let mut data = Vec::with_capacity(lpns.len());
        for lpn in lpns {
            let page = lpn.0 - ftl.logical();
            let read = self.map.bases.remove(&page);
            let base = read
                .or_else(|| self.map.pages.get(&page).cloned())
                .unwrap_or_else(|| self.map.before.clone());
            let entries = self.page_with(page, &base, &self.map.fresh, ftl);
            data.push(Content { lpn: *lpn, stamps: stamps.clone(), entries });
        }
        self.carries(name, data);
    }

    /// Entries of a page with changes overlaid.
    fn page_with(&self, page: u64, base: &Entries, changes: &FxHashMap<u64, Word>, ftl: &Ftl) -> Entries {
        let first = page * self.map.per_page;
        let units = first..(first + self.map.per_page).min(ftl.logical());
        let words = units.map(|lpn| changes.get(&lpn).copied().unwrap_or_else(|| self.entry(base, lpn, ftl)));
        Entries::Known(words.collect())
    }

    /// Notes that a translation page has become durable at `slot`: its entries are not new any more. With `awaited`, an
    /// older copy may be on its way into memory.
    #[cold]
    pub(crate) fn map_is_durable(&mut self, page: u64, slot: Slot, awaited: bool, ftl: &Ftl) {
        let Entries::Known(words) = self.truth.read(slot, ftl).entries else { return };
        for (lpn, word) in (page * self.map.per_page..).zip(words.iter().copied()) {
            if self.map.fresh.get(&lpn) == Some(&word) {
                self.map.fresh.remove(&lpn);
                if awaited {
                    self.map.kept.entry(page).or_default().insert(lpn, word);
                }
                if !self.map.by_page {
                    self.map.entries.insert(lpn, word);
                }
            }
        }
        if self.map.by_page {
            self.map.pages.insert(page, Entries::Known(words));
        }
    }
}
