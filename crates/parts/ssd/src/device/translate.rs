//! Demand-cached mapping in time: look-ups that miss wait for a translation page; dirty entries evicted from the cache
//! are written back.
//!
//! Translation pages are logical units after the host's. Their place follows the stripe order of their own number;
//! garbage collection moves them like any other unit.

use super::map_memory::Moved;
use super::{Device, Event, Out, milestone};
use engine::{Cx, Mutant, Slab, Snapshot, planted};
use ftl::buffer::Flush;
use ftl::page_map::map_cache::{MapCache, WriteBack};
use ftl::page_map::space::Stream;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{IoOp, Lpn, Slot};
use rustc_hash::FxHashMap;

/// Parts of a demand-cached map.
pub struct TranslationParts {
    /// State machine of the map cache.
    pub cache: MapCache,
    /// Bytes that a look-up moves over the channel.
    pub read_bytes: u32,
}

/// Waiter for a translation page, and the unit whose entry it needs.
#[derive(Clone, Copy, Debug)]
enum Waiter {
    /// A command's unit.
    Command(u32, u64),
    /// A unit on its way out of the buffer.
    Flush(Flush),
}

/// Purpose of an operation on a translation page.
#[derive(Clone, Copy, Debug)]
enum Errand {
    /// A look-up waits for the page.
    Fetch(u64),
    /// The page is read to be written back.
    ReadBack(u64),
    /// Pages are written back.
    WriteBack,
}

/// Translation page in flight to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Back {
    /// Not being programmed yet: further changes are included.
    Gathers,
    /// Being programmed.
    Programs,
    /// Being programmed, and has changed meanwhile.
    Again,
}

/// Map cache, and data in flight between it and flash.
pub(super) struct Translation {
    pub(super) cache: MapCache,
    read_bytes: u32,
    waiting: FxHashMap<u64, Vec<Waiter>>,
    errands: Slab<Errand>,
    /// Pages being written back, each once at a time.
    backs: FxHashMap<u64, Back>,
    /// Pages waiting for their program unit to fill up, by group.
    gathered: Vec<Vec<u64>>,
    /// Groups without space for a full program unit.
    stalled: Vec<u32>,
    /// Pages changed by moves, by group.
    pub(super) moved: Vec<Moved>,
}

impl Translation {
    pub(super) fn new(parts: TranslationParts, groups: usize) -> Translation {
        Translation {
            cache: parts.cache,
            read_bytes: parts.read_bytes,
            waiting: FxHashMap::default(),
            errands: Slab::default(),
            backs: FxHashMap::default(),
            gathered: vec![Vec::new(); groups],
            stalled: Vec::new(),
            moved: vec![Moved::default(); groups],
        }
    }

    /// Returns true if the controller's memory has a unit's entry, which may be newer than flash.
    pub(super) fn knows(&self, lpn: u64) -> bool {
        let page = self.cache.page_of(lpn);
        self.cache.is_dirty(lpn)
            || self.backs.contains_key(&page)
            || self.moved.iter().any(|moved| moved.has(page))
    }
}

impl Translation {
    /// Appends the state while no page is being read or programmed, including pages that wait for their program unit to
    /// fill up: they are the write-backs.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Translation { cache, read_bytes: _, waiting: _, errands: _, backs: _, gathered, stalled, moved } =
            self;
        cache.save(out);
        gathered.save(out);
        stalled.save(out);
        moved.save(out);
    }

    /// Replaces the state with one saved by a map of the same parameters; `None` if it is truncated or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.cache.restore(input)?;
        self.gathered = Vec::load(input).filter(|g: &Vec<Vec<u64>>| g.len() == self.gathered.len())?;
        self.stalled = Vec::load(input)?;
        self.moved = Vec::load(input).filter(|m: &Vec<Moved>| m.len() == self.moved.len())?;
        self.backs = self.gathered.iter().flatten().map(|page| (*page, Back::Gathers)).collect();
        Some(())
    }
}

impl Device {
    /// Writes every translation page once, without time, as formatting does.
    pub fn format_map(&mut self) {
        if self.translation.is_none() {
            return;
        }
        let ftl = &mut self.ftl;
        let (first, per_program) = (ftl.logical(), u64::from(ftl.geo.units_per_program));
        for stripe in 0..ftl.hidden().div_ceil(per_program) {
            let group = ftl.geo.group_at(stripe);
            // A group without room keeps its pages unwritten; reading one costs nothing then.
            if ftl.make_room(group).is_err() {
                continue;
            }
            let Some(slot) = ftl.reserve(group, Stream::Map) else { continue };
            let pages =
                (stripe * per_program..(stripe + 1) * per_program).map(|p| (p < ftl.hidden()).then_some(p));
            let pages: Vec<Option<u64>> = pages.collect();
            for (n, page) in pages.iter().enumerate() {
                ftl.fill(Slot(slot.0 + n as u64), page.map(|p| Lpn(first + p)));
            }
            ftl.program(slot);
            for (n, page) in pages.iter().enumerate() {
                if let Some(page) = page {
                    ftl.commit_map(Lpn(first + page), Slot(slot.0 + n as u64));
                }
            }
            ftl.programmed(slot);
        }
    }

    /// Returns true if a command's unit can be translated now; otherwise the command is resumed later.
    #[inline]
    pub(super) fn translates(&mut self, id: u32, unit: u64, cx: &mut impl Cx<Event, Out>) -> bool {
        self.translation.is_none() || self.looks_up(unit, Waiter::Command(id, unit), cx)
    }

    /// Returns true if a unit leaving the buffer can be translated now; otherwise its flush is resumed later.
    pub(super) fn translates_flush(&mut self, flush: &Flush, cx: &mut impl Cx<Event, Out>) -> bool {
        self.translation.is_none() || self.looks_up(flush.lpn.0, Waiter::Flush(*flush), cx)
    }

    fn looks_up(&mut self, lpn: u64, waiter: Waiter, cx: &mut impl Cx<Event, Out>) -> bool {
        let Some(mut translation) = self.translation.take() else { return true };
        let found = translation.cache.look_up(lpn);
        if found && let Some(shadow) = &mut self.shadow {
            shadow.map_finds(lpn, &self.ftl);
        }
        let page = translation.cache.page_of(lpn);
        if !found && let Some(waiting) = translation.waiting.get_mut(&page) {
            translation.cache.counters.joined += 1;
            waiting.push(waiter);
        } else if !found {
            let bytes = translation.read_bytes;
            if self.read_page(&mut translation, Errand::Fetch(page), page, bytes, cx) {
                translation.waiting.insert(page, vec![waiter]);
            } else {
                // A page that was never written holds nothing: its entries are known at once.
                self.translation = Some(translation);
                self.load_entry(lpn, None, cx);
                return true;
            }
        }
        self.translation = Some(translation);
        found
    }

    /// Queues the read of a translation page; returns false if it was never written.
    fn read_page(
        &mut self,
        translation: &mut Translation,
        errand: Errand,
        page: u64,
        bytes: u32,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Some(slot) = self.ftl.lookup(Lpn(self.ftl.logical() + page)) else { return false };
        self.ftl.pin(slot);
        let owner = translation.errands.insert(errand);
        let at = self.ftl.geo.address(slot);
        let mut op = Op::new(OpKind::Read, Class::MapRead, at, slot, 1, bytes, owner);
        op.erases = self.erases_of_read(slot);
        op.is_slc = self.ftl.is_slc(slot);
        let name = self.backend.enqueue(cx.now(), Purpose::Map.tags(op));
        self.ledger.read_ops += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.line_fetches(name, slot);
        }
        true
    }

    /// Completes an operation on a translation page.
    pub(super) fn map_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if op.kind == OpKind::Read && self.ftl.unpin(op.slot) {
            self.reclaim_unpinned(op.slot, cx);
        }
        let Some(translation) = &mut self.translation else { return };
        let errand = translation.errands[op.owner];
        translation.errands.remove(op.owner);
        match errand {
            Errand::Fetch(page) => self.page_is_here(page, op.slot, cx),
            Errand::ReadBack(page) => {
                self.shadow_merges(page, Some(op.slot));
                self.program_page(page, cx);
            }
            Errand::WriteBack => self.pages_are_durable(op, cx),
        }
    }

    fn page_is_here(&mut self, page: u64, slot: Slot, cx: &mut impl Cx<Event, Out>) {
        let waiting = self.translation.as_mut().and_then(|t| t.waiting.remove(&page)).unwrap_or_default();
        for waiter in waiting {
            let lpn = match waiter {
                Waiter::Command(_, unit) => unit,
                Waiter::Flush(flush) => flush.lpn.0,
            };
            self.load_entry(lpn, Some(slot), cx);
            match waiter {
                Waiter::Command(id, unit) => {
                    self.active[id].reach(milestone::MAPPING, cx.now());
                    if self.active[id].command.op == IoOp::Read {
                        self.read_late_unit(id, unit, cx);
                    } else {
                        self.write_translated(id, cx);
                    }
                }
                Waiter::Flush(flush) => self.destage_translated(&flush, cx),
            }
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.map_has_loaded(page);
        }
    }

    /// Takes an entry into the cache: from the page that has just been read at `slot`, or from one never written.
    fn load_entry(&mut self, lpn: u64, slot: Option<Slot>, cx: &mut impl Cx<Event, Out>) {
        if let Some(shadow) = &mut self.shadow
            && let Some(translation) = &self.translation
        {
            shadow.map_loads(lpn, slot, translation.knows(lpn), &self.ftl);
        }
        let back = self.translation.as_mut().and_then(|t| t.cache.load(lpn));
        self.write_back(back, cx);
    }

    fn shadow_merges(&mut self, page: u64, slot: Option<Slot>) {
        if let Some(shadow) = &mut self.shadow {
            shadow.map_merges(page, slot, &self.ftl);
        }
    }

    /// Updates the cached map after a unit's place has changed: it is newer than flash.
    #[inline]
    pub(super) fn map_changed(&mut self, lpn: Lpn, cx: &mut impl Cx<Event, Out>) {
        if self.translation.is_some() && lpn.0 < self.ftl.logical() {
            if let Some(shadow) = &mut self.shadow {
                shadow.map_changes(lpn, &self.ftl);
            }
            let back = self.translation.as_mut().and_then(|t| t.cache.change(lpn.0));
            self.write_back(back, cx);
        }
    }

    pub(super) fn write_back(&mut self, back: Option<WriteBack>, cx: &mut impl Cx<Event, Out>) {
        let Some(WriteBack { page, needs_read }) = back else { return };
        if planted(Mutant::LostWriteBack) {
            return;
        }
        if let Some(translation) = &mut self.translation {
            match translation.backs.get_mut(&page) {
                Some(Back::Gathers) => return,
                Some(under_way) => {
                    if !planted(Mutant::StalePage) {
                        *under_way = Back::Again;
                    }
                    return;
                }
                None => translation.backs.insert(page, Back::Gathers),
            };
        }
        let reads = needs_read && !planted(Mutant::UnreadPage);
        if reads && let Some(mut translation) = self.translation.take() {
            let bytes = self.unit_bytes as u32;
            let reads = self.read_page(&mut translation, Errand::ReadBack(page), page, bytes, cx);
            self.translation = Some(translation);
            if reads {
                return;
            }
            self.shadow_merges(page, None);
        } else if let Some(shadow) = &mut self.shadow
            && let Some(translation) = &self.translation
        {
            shadow.map_gathers(page, |lpn| translation.cache.holds(lpn), &self.ftl);
        }
        self.program_page(page, cx);
    }

    fn pages_are_durable(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ftl.program(op.slot);
        let slots = (op.slot.0..op.slot.0 + u64::from(op.units)).map(Slot);
        let lpns: Vec<Lpn> = slots.clone().filter_map(|slot| self.ftl.lpn_at(slot)).collect();
        slots.zip(&lpns).for_each(|(slot, lpn)| self.ftl.commit_map(*lpn, slot));
        self.ftl.programmed(op.slot);
        let first = self.ftl.logical();
        for (n, lpn) in lpns.iter().enumerate() {
            if let Some(shadow) = &mut self.shadow {
                let awaited =
                    self.translation.as_ref().is_some_and(|t| t.waiting.contains_key(&(lpn.0 - first)));
                shadow.map_is_durable(lpn.0 - first, Slot(op.slot.0 + n as u64), awaited, &self.ftl);
            }
            self.written_back(lpn.0 - first, cx);
        }
    }

    fn written_back(&mut self, page: u64, cx: &mut impl Cx<Event, Out>) {
        let back = self.translation.as_mut().and_then(|t| t.backs.remove(&page));
        if back == Some(Back::Again) {
            self.write_back(Some(WriteBack { page, needs_read: true }), cx);
        }
    }

    /// Gathers a page that is complete in memory with others of its group, until they fill a program unit.
    fn program_page(&mut self, page: u64, cx: &mut impl Cx<Event, Out>) {
        let per_program = u64::from(self.ftl.geo.units_per_program);
        let group = self.ftl.geo.group_at(page / per_program);
        let Some(translation) = &mut self.translation else { return };
        let gathered = &mut translation.gathered[group as usize];
        gathered.push(page);
        if gathered.len() as u64 >= per_program && !translation.stalled.contains(&group) {
            self.program_pages(group, cx);
        }
    }

    /// Programs the pages gathered by a group, as far as they fill program units.
    fn program_pages(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        let per_program = self.ftl.geo.units_per_program as usize;
        let first = self.ftl.logical();
        while self.translation.as_ref().is_some_and(|t| t.gathered[group as usize].len() >= per_program) {
            let slot = self.ftl.reserve(group, Stream::Map);
            let Some(translation) = &mut self.translation else { return };
            let Some(slot) = slot else {
                translation.stalled.push(group);
                self.reclaim(group, cx);
                self.stalled |= self.jobs[group as usize].is_none();
                return;
            };
            let pages = translation.gathered[group as usize].drain(..per_program);
            let lpns: Vec<Lpn> = pages.map(|page| Lpn(first + page)).collect();
            for (n, lpn) in lpns.iter().enumerate() {
                translation.backs.insert(lpn.0 - first, Back::Programs);
                translation.moved[group as usize].written(lpn.0 - first);
                self.ftl.fill(Slot(slot.0 + n as u64), Some(*lpn));
            }
            let owner = translation.errands.insert(Errand::WriteBack);
            let at = self.ftl.geo.address(slot);
            let (units, bytes) = (per_program as u16, per_program as u32 * self.unit_bytes as u32);
            let mut op = Op::new(OpKind::Program, Class::MapProgram, at, slot, units, bytes, owner);
            op.erases = self.erases_of(slot);
            let name = self.program(Purpose::Map, op, cx.now());
            if let Some(shadow) = &mut self.shadow {
                shadow.map_writes(name, &lpns, &self.ftl);
            }
            self.reclaim(group, cx);
        }
    }

    /// Records that garbage collection has moved a unit. An uncached entry is not fetched for that: the page is noted.
    pub(super) fn map_moved(&mut self, lpn: Lpn) {
        if lpn.0 >= self.ftl.logical() {
            return;
        }
        let Some(translation) = &mut self.translation else { return };
        if let Some(shadow) = &mut self.shadow {
            shadow.map_changes(lpn, &self.ftl);
        }
        if !translation.cache.change_if_here(lpn.0) {
            let page = translation.cache.page_of(lpn.0);
            let group = self.ftl.geo.group_at(page / u64::from(self.ftl.geo.units_per_program));
            translation.moved[group as usize].note(page);
        }
    }

    /// Groups in which write-backs wait for space.
    pub(super) fn groups_of_write_backs(&self) -> Vec<u32> {
        self.translation.as_ref().map_or_else(Vec::new, |t| t.stalled.clone())
    }

    /// Writes back pages that waited for space.
    pub(super) fn wake_write_backs(&mut self, cx: &mut impl Cx<Event, Out>) {
        let stalled = self.translation.as_mut().map(|t| std::mem::take(&mut t.stalled)).unwrap_or_default();
        for group in stalled {
            self.program_pages(group, cx);
        }
    }
}
