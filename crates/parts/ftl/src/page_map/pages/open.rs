//! Open reclaim units of all groups: in lists by the type of their next page, and in step on the planes of a die.

use super::{Choice, OpenUnits, PageChoice, PageCounters, TYPES};
use crate::buffer::destage::Pace;
use crate::page_map::Ftl;
use crate::page_map::space::Stream;
use engine::Snapshot;
use nand::{dies::MultiPlane, sparse::Bits};
use proto::Slot;
use std::collections::VecDeque;

/// Reclaim unit whose next program unit is known.
#[derive(Clone, Copy, Debug)]
struct Pointer {
    ru: u32,
    next: u32,
}
engine::snapshot!(Pointer { ru, next });

type Lists = [VecDeque<Pointer>; TYPES];

/// Lists of open units, and the skipped pages.
pub(crate) struct Pages {
    choice: Box<dyn PageChoice>,
    /// Type of each page of a block.
    types: Vec<u8>,
    /// Open units by group, then by type.
    open: Vec<Lists>,
    /// Flags of reclaim units with skipped pages; their number and its limit follow.
    skips: Bits,
    skipping: u64,
    most_skipping: u64,
    pub(crate) counters: PageCounters,
}

impl Pages {
    /// Creates empty lists. `ru_bytes` is the size of a reclaim unit.
    pub(crate) fn new(choice: Box<dyn PageChoice>, types: Vec<u8>, ftl: &Ftl, ru_bytes: u64) -> Pages {
        Pages {
            most_skipping: choice.region() / ru_bytes,
            choice,
            types,
            open: (0..ftl.geo.groups).map(|_| Lists::default()).collect(),
            skips: Bits::new(ftl.geo.ru_count),
            skipping: 0,
            counters: PageCounters::default(),
        }
    }

    /// Returns the number of reclaim units with skipped pages.
    pub(crate) fn skipping(&self) -> u64 {
        self.skipping
    }

    /// Returns whether no page was chosen yet: preconditioning programs them in order.
    pub(crate) fn is_unused(&self) -> bool {
        self.open.iter().flatten().all(VecDeque::is_empty)
            && self.skipping == 0
            && self.skips.words().all(|word| word == 0)
            && self.counters == PageCounters::default()
    }

    /// Iterates over the open units of a group, with the number of program units allocated or skipped in each.
    pub(crate) fn open_units(&self, group: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.open[group].iter().flatten().map(|pointer| (pointer.ru, pointer.next))
    }

    fn has_open(&self, group: u32) -> bool {
        self.open[group as usize].iter().any(|list| !list.is_empty())
    }

    fn kind(&self, next: u32, lanes: u32) -> usize {
        usize::from(self.types[(next / lanes) as usize])
    }

    fn note(&mut self, ru: u64) {
        if !self.skips.get(ru) {
            self.skips.flip(ru);
            self.skipping += 1;
        }
    }

    fn erased(&mut self, ru: u64) {
        if self.skips.get(ru) {
            self.skips.flip(ru);
            self.skipping -= 1;
        }
    }

    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        let Pages { choice: _, types: _, open, skips, skipping, most_skipping: _, counters } = self;
        for lists in open {
            lists.iter().for_each(|list| list.iter().copied().collect::<Vec<Pointer>>().save(out));
        }
        skips.save(out);
        skipping.save(out);
        counters.save(out);
    }

    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        for list in self.open.iter_mut().flatten() {
            *list = Vec::<Pointer>::load(input)?.into();
        }
        self.skips = Bits::load(input).filter(|skips| skips.is_like(&self.skips))?;
        self.skipping = u64::load(input)?;
        self.counters = PageCounters::load(input)?;
        Some(())
    }
}

impl Ftl {
    /// Lets a policy choose pages; nothing was written yet. `types` are those of the pages of a block.
    pub fn choose_pages(&mut self, choice: Box<dyn PageChoice>, types: Vec<u8>) {
        if choice.is_off() {
            return;
        }
        let ru_bytes = u64::from(self.geo.units_per_ru) * u64::from(self.geo.shape.unit_bytes);
        self.pages = Some(Box::new(Pages::new(choice, types, self, ru_bytes)));
        self.array.keep_skips(&self.geo);
    }

    /// Returns whether a policy has an open unit of a group for the host.
    #[cold]
    pub(in crate::page_map) fn has_open_pages(&self, group: u32, stream: Stream) -> bool {
        let is_host = matches!(stream, Stream::Host(_));
        is_host && self.pages.as_ref().is_some_and(|pages| pages.has_open(group))
    }

    /// Reserves as [`Ftl::reserve`] does, for data of the host with a pace.
    #[inline]
    pub fn reserve_at(&mut self, group: u32, stream: Stream, pace: Pace) -> Option<Slot> {
        if self.pages.is_none() {
            return self.reserve(group, stream);
        }
        let mut pages = self.pages.take()?;
        let slot = self.reserve_chosen(&mut pages, group, stream, pace);
        self.pages = Some(pages);
        slot
    }

    fn reserve_chosen(&mut self, pages: &mut Pages, group: u32, stream: Stream, pace: Pace) -> Option<Slot> {
        let (lanes, keep) = (self.geo.lanes, self.keep(group, stream));
        // The unit that preconditioning has left open is one of them.
        if let Some((ru, next)) = self.groups[group as usize].take_frontier(stream) {
            let kind = pages.kind(next, lanes);
            pages.open[group as usize][kind].push_back(Pointer { ru, next });
        }
        loop {
            let units = self.open_of(pages, group, keep);
            let mut pointer = match pages.choice.choose(pace, &units)? {
                Choice::Open => {
                    let ru = self.groups[group as usize].open_free(stream, keep)?;
                    self.note_opened(group, ru, stream);
                    Pointer { ru, next: 0 }
                }
                Choice::Take(kind) => pages.open[group as usize][kind].pop_front()?,
                Choice::Skip(kind) => {
                    let mut pointer = pages.open[group as usize][kind].pop_front()?;
                    self.skip(pages, group, &mut pointer);
                    pointer
                }
            };
            if pointer.next == self.geo.programs_per_ru {
                self.groups[group as usize].fills(pointer.ru, self.clock);
                continue;
            }
            let index = pointer.next;
            let kind = pages.kind(index, lanes);
            pages.counters.programs[pace as usize][kind] += 1;
            self.groups[group as usize].gives_out(pointer.ru);
            pointer.next += 1;
            if pointer.next == self.geo.programs_per_ru {
                self.groups[group as usize].fills(pointer.ru, self.clock);
            } else if pointer.next.is_multiple_of(lanes) {
                let next = pages.kind(pointer.next, lanes);
                pages.open[group as usize][next].push_back(pointer);
            } else {
                // The other planes get the same page next.
                pages.open[group as usize][kind].push_front(pointer);
            }
            return Some(self.geo.slot_of_program(self.join(group, pointer.ru), index));
        }
    }

    fn open_of(&self, pages: &Pages, group: u32, keep: u32) -> OpenUnits {
        let lists = &pages.open[group as usize];
        let of_type = std::array::from_fn(|kind| lists[kind].len() as u32);
        let has_room = pages.skipping < pages.most_skipping;
        let skips = |pointer: &Pointer| has_room || pages.skips.get(self.join(group, pointer.ru));
        OpenUnits {
            of_type,
            may_open: of_type.iter().sum::<u32>() < pages.choice.open()
                && self.groups[group as usize].free() > keep,
            may_skip: std::array::from_fn(|kind| lists[kind].front().is_some_and(skips)),
        }
    }

    /// Skips pages up to the next one of the first type.
    fn skip(&mut self, pages: &mut Pages, group: u32, pointer: &mut Pointer) {
        let lanes = self.geo.lanes;
        let row = (pointer.next / lanes) as usize + 1;
        let ahead = pages.types[row..].iter().position(|kind| *kind == 0);
        let to = ahead.map_or(self.geo.programs_per_ru, |ahead| (row + ahead) as u32 * lanes);
        let ru = self.join(group, pointer.ru);
        for index in pointer.next..to {
            let slot = self.geo.slot_of_program(ru, index);
            self.array.skip(slot, &self.geo);
        }
        pages.counters.skipped += u64::from(to - pointer.next);
        pages.note(ru);
        pointer.next = to;
    }

    /// Counts a program unit taken by garbage collection.
    #[cold]
    pub(in crate::page_map) fn count_moved_page(&mut self, index: u32) {
        if let Some(pages) = &mut self.pages {
            let kind = pages.kind(index, self.geo.lanes);
            pages.counters.programs[3][kind] += 1;
        }
    }

    /// Clears the skips of an erased reclaim unit.
    pub(in crate::page_map) fn forgets_skips(&mut self, ru: u64) {
        if let Some(pages) = &mut self.pages {
            pages.erased(ru);
        }
    }

    /// Restores, after a power cut, the flags of reclaim units with skipped pages from flash.
    pub fn find_skips(&mut self) {
        let Some(mut pages) = self.pages.take() else { return };
        self.array.forget_pending_skips();
        for block in 0..self.geo.block_count {
            if self.array.has_skips(block) {
                pages.note(self.geo.ru_of_block(block));
            }
        }
        self.pages = Some(pages);
    }

    /// Returns the counters, and the number of reclaim units with skipped pages now; `None` if pages are programmed in
    /// order.
    pub fn page_counters(&self) -> Option<(PageCounters, u64)> {
        self.pages.as_ref().map(|pages| (pages.counters, pages.skipping()))
    }
}

// Frontiers of the planes of a die in step: at the same page of their blocks, so that their programs can share
// commands.
//
// A multi-plane command programs the same page number on each of its planes (ONFI: multi-plane addressing). If each
// plane has separate reclaim units, evenly spread host data keeps the host's frontiers of a die's planes at equal
// pages, and every write in order finds its mate. Once one plane is a page ahead, none does, for as long as the planes
// are written evenly. Garbage collection writes to separate frontiers and disturbs nothing; after a power cut all
// planes begin a new unit. A plane set or a superblock is one frontier: its planes are in step whatever is written.

impl Ftl {
    /// Returns the program units that each group must take from the host's frontier before the planes that share
    /// commands by `rule` are in step again: the minimum, by group. All are zero if groups have more than one plane.
    pub fn lags(&self, rule: MultiPlane) -> Vec<u32> {
        let planes = self.geo.shape.planes as usize;
        let mut lags = vec![0; self.geo.groups as usize];
        if rule == MultiPlane::Off || self.geo.lanes > 1 || planes == 1 {
            return lags;
        }
        let per_ru = self.geo.programs_per_ru;
        for (set, lags) in lags.chunks_exact_mut(planes).enumerate() {
            let first = (set * planes) as u32;
            let at = |plane: usize| self.programs_of_host(first + plane as u32) as u32;
            // Distance from one page to another, through the end of the block if necessary.
            let way = |from: u32, to: u32| (to + per_ru - from) % per_ru;
            let all_to = |to: u32| (0..planes).map(|plane| way(at(plane), to)).sum::<u32>();
            let Some(target) = (0..planes).map(at).min_by_key(|to| all_to(*to)) else { continue };
            lags.iter_mut().enumerate().for_each(|(plane, lag)| *lag = way(at(plane), target));
        }
        lags
    }

    /// Programs units of a group without data at the host's frontier, as many as fit without reclaiming.
    pub fn pad(&mut self, group: u32, programs: u32) {
        for _ in 0..programs {
            let Some(slot) = self.reserve(group, Stream::Host(0)) else { return };
            for unit in 0..u64::from(self.geo.units_per_program) {
                self.fill(Slot(slot.0 + unit), None);
            }
            self.program(slot);
            self.programmed(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::functional::{FunctionalWriter, Placement};
    use crate::page_map::testing::{check, ftl};
    use engine::Rng;
    use nand::geometry::Reclaim;
    use proto::Lpn;

    /// Writes in order, and then a random number of times at random.
    fn written(reclaim: Reclaim, units: u64, rng: &mut Rng) -> Ftl {
        let mut ftl = ftl(reclaim, 9000);
        ftl.assume_sequential(units);
        let mut writer = FunctionalWriter::new(&ftl, Placement::Striped);
        let lpns: Vec<Lpn> = (0..rng.below(20_000)).map(|_| Lpn(rng.below(units))).collect();
        writer.write_all(&mut ftl, lpns).expect("over-provisioning leaves room");
        writer.finish(&mut ftl).expect("over-provisioning leaves room");
        ftl
    }

    #[test]
    fn padding_what_lags_brings_all_planes_in_step_and_no_less_would() {
        let mut rng = Rng::stream(5, "test");
        for units in [1, 700, 4097, 8999] {
            let mut ftl = written(Reclaim::Block, units, &mut rng);
            let (planes, per_ru) = (ftl.geo.shape.planes, ftl.geo.programs_per_ru);
            let lags = ftl.lags(MultiPlane::SamePage);
            let rows =
                |ftl: &Ftl| -> Vec<u64> { (0..ftl.geo.groups).map(|g| ftl.programs_of_host(g)).collect() };
            // Naive reference: the cheapest of all pages to meet at.
            for (set, rows) in rows(&ftl).chunks(planes as usize).enumerate() {
                let cost =
                    |to: u64| rows.iter().map(|row| (to + u64::from(per_ru) - row) % u64::from(per_ru)).sum();
                let least: u64 = (0..u64::from(per_ru)).map(cost).min().expect("pages");
                let of_set = &lags[set * planes as usize..(set + 1) * planes as usize];
                assert_eq!(of_set.iter().map(|lag| u64::from(*lag)).sum::<u64>(), least, "{rows:?}");
            }
            (0u32..).zip(&lags).for_each(|(group, lag)| ftl.pad(group, *lag));
            for rows in rows(&ftl).chunks(planes as usize) {
                assert!(rows.iter().all(|row| *row == rows[0]), "{rows:?}");
            }
            let whole: Vec<bool> = (0..9000).map(|lpn| lpn < units).collect();
            check(&ftl, &whole);
        }
    }

    #[test]
    fn nothing_lags_where_planes_share_no_command_or_a_frontier() {
        let mut rng = Rng::stream(5, "test");
        let block = written(Reclaim::Block, 8999, &mut rng);
        assert!(block.lags(MultiPlane::Off).iter().all(|lag| *lag == 0));
        assert!(block.lags(MultiPlane::SameBlock).iter().any(|lag| *lag > 0));
        for reclaim in [Reclaim::PlaneSet, Reclaim::Superblock] {
            let ftl = written(reclaim, 8999, &mut rng);
            assert!(ftl.lags(MultiPlane::SamePage).iter().all(|lag| *lag == 0));
        }
    }
}
