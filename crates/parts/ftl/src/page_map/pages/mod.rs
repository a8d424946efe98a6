//! Choice of the open-block page that a group programs next for the host, if pages of a block take different times.
//!
//! In order, a group has one open reclaim unit for the host, and its pages are programmed one after another. Otherwise
//! several may be open, each known by the type of its next page, and pages may be skipped, so that foreground
//! write-backs use only fast pages. A skipped page holds no data until its block is erased; garbage collection treats
//! it like any page without valid data. Only host data chooses: moved data and the map are written in order.

pub mod by_type;
pub mod in_order;
mod open;
pub mod write_point;

pub(crate) use open::Pages;

use crate::buffer::destage::Pace;

/// Maximum number of page types: bits of a cell.
pub const TYPES: usize = 4;

config::policies! {
    /// Which page a group programs next for the host. Types of pages are those of `cell.layout`; the first is the fastest.
    pub family PageOrder: dyn PageChoice, context () {
        /// The next page of the open reclaim unit, whatever its type.
        default in_order => |_: &()| in_order::InOrder,
        /// The next page, but foreground write-backs go to the next page of the first type: those before it are
        /// skipped.
        ///
        /// The write point of Grupp et al. (MICRO 2009), as FastDrain (section 3.2) describes it.
        write_point(write_point::Params) => |p: &write_point::Params, _: &()| write_point::WritePoint::new(p),
        /// The next page of any open reclaim unit where it has the wanted type: the first for foreground write-backs,
        /// preferably a different one for background write-backs.
        ///
        /// FastDrain's latency-aware FTL (section 3.2): block pointers in lists by the type of their next page, for
        /// each die. Pages are skipped only if no reclaim unit has a page of the first type and none can be opened.
        by_type(by_type::Params) => |p: &by_type::Params, _: &()| by_type::ByType::new(p),
    }
}

/// View of a group for a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenUnits {
    /// Number of open reclaim units by the type of their next page.
    pub of_type: [u32; TYPES],
    /// True if one more may be opened: it begins with a page of the first type.
    pub may_open: bool,
    /// True, by type, if pages may be skipped in the next unit of that type.
    pub may_skip: [bool; TYPES],
}

/// Place of the next program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    /// The next page of a unit whose next page has this type.
    Take(usize),
    /// The next page of the first type, in a unit whose next page has this type: the pages before are skipped. At the
    /// end of the unit it is closed, and the policy is asked again.
    Skip(usize),
    /// The first page of a free unit.
    Open,
}

/// Chooses the pages for host data.
///
/// Contract: a pure decision. `Take` and `Skip` name a type with an open unit; `Skip` one that may be skipped, and not
/// the first; `Open` only if allowed. The answer is not `None` if a unit is open or may be opened.
pub trait PageChoice {
    /// Returns whether pages are programmed in order.
    fn is_off(&self) -> bool {
        false
    }
    /// Returns the number of reclaim units of a group that may be open at once.
    fn open(&self) -> u32;
    /// Returns the maximum bytes of reclaim units with skipped pages.
    fn region(&self) -> u64;
    /// Returns the place of the next program.
    fn choose(&self, pace: Pace, units: &OpenUnits) -> Option<Choice>;
}

/// Counters of programmed and skipped pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounters {
    /// Program units allocated by purpose (even, foreground, background, garbage collection) and page type.
    pub programs: [[u64; TYPES]; 4],
    /// Program units skipped.
    pub skipped: u64,
}
engine::snapshot!(PageCounters { programs, skipped });

impl PageCounters {
    /// Returns the counts since `origin`.
    pub fn since(&self, origin: &PageCounters) -> PageCounters {
        let mut since = *self;
        for (purpose, before) in since.programs.iter_mut().zip(&origin.programs) {
            purpose.iter_mut().zip(before).for_each(|(n, before)| *n -= before);
        }
        since.skipped -= origin.skipped;
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::gc::{VictimContext, greedy::Greedy};
    use crate::page_map::space::Stream;
    use crate::page_map::testing::check;
    use crate::page_map::wear::WearRule;
    use crate::page_map::{Ftl, Thresholds};
    use Pace::{Background, Even, Foreground};
    use config::units::Bytes;
    use engine::Rng;
    use nand::geometry::{Digit, Geometry, Reclaim, Shape};
    use proto::{Lpn, Slot};

    /// Pages per block, three types in turn.
    const PAGES: u32 = 12;
    const HOST: Stream = Stream::Host(0);

    /// Creates one die of two planes, blocks of 48 KiB.
    fn ftl(reclaim: Reclaim, order: &PageOrder) -> Ftl {
        let geo = Geometry::new(Shape {
            channels: 1,
            ways: 1,
            dies: 1,
            planes: 2,
            blocks: 16,
            pages: PAGES,
            page_bytes: 4096,
            unit_bytes: 4096,
            program_pages: 1,
            reclaim,
            stripe: [Digit::Channel, Digit::Way, Digit::Die, Digit::Plane],
            interleave: true,
            parity: None,
        });
        let victim = Box::new(Greedy::new(&VictimContext { seed: 1, device: "flash".into() }));
        let thresholds = Thresholds { start: 2, stop: 3, hard: 1 };
        let mut ftl = Ftl::new(geo, (150, 0), 1, WearRule::default(), thresholds, victim);
        ftl.choose_pages(order.build(&()), (0..PAGES).map(|page| (page % 3) as u8).collect());
        ftl
    }

    fn write_point(region: u64) -> PageOrder {
        PageOrder::write_point(write_point::Params { region: Bytes::new(region) })
    }

    fn by_type(open: u32, region: u64) -> PageOrder {
        PageOrder::by_type(by_type::Params { open, region: Bytes::new(region) })
    }

    /// Reserves a program unit for each pace; returns reclaim unit and page of each.
    fn reserve(ftl: &mut Ftl, paces: &[Pace], slots: &mut Vec<Slot>) -> Vec<(u64, u32)> {
        let mut at = |pace: &Pace| {
            let slot = ftl.reserve_at(0, HOST, *pace).expect("there is space");
            slots.push(slot);
            let (ru, index, _) = ftl.geo.program_of_slot(slot);
            (ru, index / ftl.geo.lanes)
        };
        paces.iter().map(&mut at).collect()
    }

    /// Programs the reserved units with the given logical units.
    fn program(ftl: &mut Ftl, slots: &[Slot], mut lpns: impl Iterator<Item = u64>) {
        for slot in slots {
            let lpn = Lpn(lpns.next().expect("a unit for each"));
            ftl.fill(*slot, Some(lpn));
            ftl.program(*slot);
            ftl.commit(lpn, *slot);
            ftl.programmed(*slot);
        }
    }

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<PageOrder>().expect("the list is whole");
    }

    #[test]
    fn the_write_point_skips_to_the_next_fast_page() {
        let mut ftl = ftl(Reclaim::Block, &write_point(1 << 20));
        let mut slots = Vec::new();
        // Every third page, and the rest of the block after the last; a page of any type for data without urgency.
        let taken = reserve(
            &mut ftl,
            &[Foreground, Foreground, Foreground, Foreground, Foreground, Background, Foreground, Even],
            &mut slots,
        );
        assert_eq!(taken, [(0, 0), (0, 3), (0, 6), (0, 9), (1, 0), (1, 1), (1, 3), (1, 4)]);
        let (counters, units) = ftl.page_counters().expect("pages are chosen");
        // Two after each of the four in the first block, and one in the second.
        assert_eq!((counters.skipped, units), (9, 2));
        assert_eq!(counters.programs, [[0, 1, 0, 0], [6, 0, 0, 0], [0, 1, 0, 0], [0; 4]]);
        // All of it was in flight: nothing is recorded after the first program before that has ended.
        assert_eq!(ftl.census().misprogrammed, 0);
        program(&mut ftl, &slots, 0..);
        assert_eq!((ftl.census().misprogrammed, ftl.array.all_programs()), (0, 8));
        for page in 0..PAGES {
            let slot = ftl.geo.slot_of_program(0, page);
            assert_eq!(ftl.array.is_programmed(slot, &ftl.geo), page % 3 == 0, "page {page}");
            assert_eq!(ftl.lpn_at(slot).is_some(), page % 3 == 0, "page {page}");
        }
        check(&ftl, &(0..150).map(|lpn| lpn < 8).collect::<Vec<_>>());
    }

    #[test]
    fn the_planes_of_a_set_get_the_same_page_before_the_next_is_chosen() {
        let mut ftl = ftl(Reclaim::PlaneSet, &write_point(1 << 20));
        let mut slots = Vec::new();
        let taken = reserve(
            &mut ftl,
            &[Foreground, Foreground, Foreground, Foreground, Even, Foreground],
            &mut slots,
        );
        // One plane of page 4 is used, and one skipped with both of page 5.
        assert_eq!(taken, [(0, 0), (0, 0), (0, 3), (0, 3), (0, 4), (0, 6)]);
        assert_eq!(ftl.page_counters().expect("pages are chosen").0.skipped, 4 + 3);
        program(&mut ftl, &slots, 0..);
        assert_eq!(ftl.census().misprogrammed, 0);
    }

    #[test]
    fn lists_of_fast_pages_skip_nothing_while_the_others_are_used_in_the_background() {
        let mut ftl = ftl(Reclaim::Block, &by_type(4, 1 << 20));
        let mut slots = Vec::new();
        let fast = |page: u32| [(0, page), (1, page), (2, page), (3, page)];
        for word_line in 0..PAGES / 3 {
            assert_eq!(reserve(&mut ftl, &[Foreground; 4], &mut slots), fast(3 * word_line));
            assert_eq!(reserve(&mut ftl, &[Background; 4], &mut slots), fast(3 * word_line + 1));
            assert_eq!(reserve(&mut ftl, &[Background; 4], &mut slots), fast(3 * word_line + 2));
        }
        let (counters, units) = ftl.page_counters().expect("pages are chosen");
        assert_eq!((counters.skipped, units), (0, 0));
        assert_eq!(counters.programs, [[0; 4], [16, 0, 0, 0], [0, 16, 16, 0], [0; 4]]);
        program(&mut ftl, &slots, 0..);
        assert_eq!(ftl.census().misprogrammed, 0);
    }

    #[test]
    fn lists_skip_if_nothing_else_is_left_and_lose_as_few_pages_as_they_can() {
        let mut ftl = ftl(Reclaim::Block, &by_type(3, 1 << 20));
        let mut slots = Vec::new();
        assert_eq!(reserve(&mut ftl, &[Foreground; 3], &mut slots), [(0, 0), (1, 0), (2, 0)]);
        // No fourth may be open: one loses two pages.
        assert_eq!(reserve(&mut ftl, &[Foreground], &mut slots), [(0, 3)]);
        assert_eq!(reserve(&mut ftl, &[Background], &mut slots), [(1, 1)]);
        // The one whose next page is the last of its word line loses one.
        assert_eq!(reserve(&mut ftl, &[Foreground], &mut slots), [(1, 3)]);
        assert_eq!(ftl.page_counters().expect("pages are chosen").0.skipped, 2 + 1);
        // Data without urgency or preference takes slow pages first, so that word lines fill up: two of one type take
        // turns.
        assert_eq!(reserve(&mut ftl, &[Even; 3], &mut slots), [(2, 1), (2, 2), (0, 4)]);
        program(&mut ftl, &slots, 0..);
        assert_eq!(ftl.census().misprogrammed, 0);
    }

    #[test]
    fn no_more_units_skip_than_the_region_has_room_for() {
        let block = u64::from(PAGES) * 4096;
        let mut ftl = ftl(Reclaim::Block, &write_point(block));
        let taken = reserve(&mut ftl, &[Foreground; 8], &mut Vec::new());
        // The first uses the region up; the second is written in order.
        assert_eq!(taken, [(0, 0), (0, 3), (0, 6), (0, 9), (1, 0), (1, 1), (1, 2), (1, 3)]);
        assert_eq!(ftl.page_counters().expect("pages are chosen").1, 1);
    }

    /// Makes room in a group as a device would.
    fn collect(ftl: &mut Ftl, group: u32) {
        let victim = ftl.pick_victim(group).expect("over-provisioning leaves room");
        let mut cursor = 0;
        while let Some(from) = ftl.next_valid(victim, &mut cursor) {
            let lpn = ftl.lpn_at(from).expect("what is valid has an address");
            let to = ftl.reserve(group, Stream::Gc(0)).expect("the hard limit leaves room");
            ftl.fill(to, Some(lpn));
            ftl.program(to);
            assert!(ftl.commit_move(lpn, from, to));
            ftl.programmed(to);
        }
        ftl.erased(victim);
    }

    #[test]
    fn what_was_skipped_comes_back_with_the_erase_and_nothing_is_lost() {
        for order in
            [by_type(3, 5 * 49152), by_type(2, 1 << 30), write_point(1 << 30), write_point(3 * 49152)]
        {
            let mut ftl = ftl(Reclaim::Block, &order);
            let mut rng = Rng::stream(1, "test");
            let mut written = vec![false; 150];
            for round in 0..4_000u32 {
                let (lpn, group) = (rng.below(150), rng.below(2) as u32);
                while ftl.free(group) <= ftl.thresholds.start {
                    collect(&mut ftl, group);
                }
                let pace = [Foreground, Background, Even][rng.below(3) as usize];
                let slot = ftl.reserve_at(group, HOST, pace).expect("there is space");
                program(&mut ftl, &[slot], std::iter::once(lpn));
                written[lpn as usize] = true;
                if round % 500 == 0 {
                    let mut bytes = Vec::new();
                    ftl.save(&mut bytes);
                    let mut copy = self::ftl(Reclaim::Block, &order);
                    assert_eq!(copy.load(&mut bytes.as_slice()), Some(()));
                    ftl = copy;
                }
            }
            check(&ftl, &written);
            let census = ftl.census();
            assert_eq!((census.misprogrammed, census.miscounted), (0, 0));
            let (counters, units) = ftl.page_counters().expect("pages are chosen");
            let marked = (0..ftl.geo.block_count).filter(|block| ftl.array.has_skips(*block)).count();
            assert_eq!(units, marked as u64);
            assert!(counters.skipped > 100 && ftl.counters.erases > 100, "{counters:?}");
        }
    }
}
