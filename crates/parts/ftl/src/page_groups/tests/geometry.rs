//! The paper's arithmetic.

use crate::page_groups::testing::{prototype, small};
use crate::page_groups::translation::GroupTranslation;
use crate::page_groups::{Flashvisor, Layout, Physical};
use nand::geometry::Geometry;
use std::collections::BTreeSet;

/// Section 4.3: 64 KB page groups are 4 channels x 2 planes x 8 KB; 32 GB are 524,288 of them, and at 4 B each 2 MB of map, which
/// a scratchpad of 4 MB holds. On flash the map fills 32 groups of 16,384 entries.
#[test]
fn the_map_of_32_gb_takes_2_mb() {
    for translation in GroupTranslation::all_defaults() {
        for dies in [1, 2] {
            let layout = Layout::new(&prototype(dies, translation.clone()));
            assert_eq!(layout.group_bytes(), 64 << 10);
            assert_eq!(u64::from(layout.groups()) * layout.group_bytes(), 32 << 30);
            assert_eq!((layout.groups(), layout.map_bytes()), (524_288, 2 << 20));
            assert_eq!((layout.group_entries(), layout.map_groups()), (16_384, 32));
        }
    }
}

/// Sixteen dies, as in Table 1, or 16 packages of two dies, as in the text: map and groups are the same, but where consecutive
/// groups are striped, half as many are at work at once. Read literally, one is. With 81 us a read and 2.6 ms a program that
/// is 809 and 25 MB/s, or 6.5 GB/s and 202 MB/s with 32 dies.
#[test]
fn dies_at_work_on_groups_in_a_row() {
    let at_work = |dies, translation| {
        let layout = Layout::new(&prototype(dies, translation));
        let places = (0..8).map(|n| layout.place(layout.group(0, n)));
        places.map(|place| (place.package, place.die)).collect::<BTreeSet<_>>().len() as u64
    };
    for dies in [1, 2] {
        assert_eq!(at_work(dies, GroupTranslation::literal), 1);
        assert_eq!(at_work(dies, GroupTranslation::striped), 4 * u64::from(dies));
    }
    let rate = |dies: u64, us: u64| dies * (64 << 10) / us;
    assert_eq!((rate(1, 81), rate(1, 2_600)), (809, 25));
    assert_eq!((rate(4, 2_600), rate(8, 2_600)), (100, 201));
}

/// 256 pages a block: read literally, a block is 16 MB of 254 data groups; striped, of all dies: 128 MB with 32 dies, 64 MB with
/// 16. Two pages of 256 are metadata either way.
#[test]
fn blocks_are_what_consecutive_groups_fill() {
    let of = |dies, translation| {
        let layout = Layout::new(&prototype(dies, translation));
        (layout.blocks(), layout.block_groups(), layout.metadata_groups(), layout.data_groups())
    };
    assert_eq!(of(2, GroupTranslation::literal), (2_048, 256, 2, 254));
    assert_eq!(of(1, GroupTranslation::literal), (2_048, 256, 2, 254));
    assert_eq!(of(2, GroupTranslation::striped), (256, 2_048, 16, 2_032));
    assert_eq!(of(1, GroupTranslation::striped), (512, 1_024, 8, 1_016));
}

/// Every page of the flash belongs to one group, whose pages are on all channels and planes; erasing a block erases exactly the
/// blocks that its groups lie in; metadata is in the first pages. Dies are numbered as the media number them.
#[test]
fn groups_and_blocks_cover_the_flash() {
    for translation in GroupTranslation::all_defaults() {
        let mut spec = small(translation);
        (spec.geometry.channels, spec.geometry.planes) = (3, 2);
        let layout = Layout::new(&spec);
        let media = Geometry::new(layout.shape());
        let mut pages = BTreeSet::new();
        for block in 0..layout.blocks() {
            let mut touched = BTreeSet::new();
            for index in 0..layout.block_groups() {
                let group = layout.group(block, index);
                assert_eq!(layout.block_of(group), (block, index));
                let all: Vec<_> = layout.pages(group).collect();
                let channels: BTreeSet<_> =
                    all.iter().map(|page| (media.channel_of_die(page.die), page.plane)).collect();
                assert_eq!((all.len(), channels.len()), (6, 6));
                for page in all {
                    assert!(page.die < media.die_count && page.block < media.shape.blocks);
                    assert_eq!(page.page < spec.metadata_pages, index < layout.metadata_groups());
                    touched.insert((page.die, page.plane, page.block));
                    assert!(pages.insert((page.die, page.plane, page.block, page.page)));
                }
            }
            let erased: Vec<_> = layout.erase(block).map(|at| (at.die, at.plane, at.block)).collect();
            assert_eq!(erased.len(), touched.len());
            assert_eq!(erased.into_iter().collect::<BTreeSet<_>>(), touched);
        }
        assert_eq!(pages.len() as u64, media.block_count * u64::from(media.shape.pages));
    }
}

#[test]
fn data_groups_are_numbered_without_metadata() {
    for translation in GroupTranslation::all_defaults() {
        let layout = Layout::new(&small(translation));
        let mut number = 0;
        for group in (0..layout.groups()).map(Physical) {
            let is_data = layout.block_of(group).1 >= layout.metadata_groups();
            assert_eq!(layout.data_number(group), is_data.then_some(number));
            if is_data {
                assert_eq!(layout.nth_data(number), group);
                number += 1;
            }
        }
        assert_eq!(number, layout.blocks() * layout.data_groups());
    }
}

/// 26 GB of inputs that are there from the start take no memory of ours.
#[test]
fn what_is_there_from_the_start_costs_nothing() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    let empty = visor.map.bytes() + visor.holds.bytes();
    visor.assume_written(26 << 14).expect("it fits");
    assert_eq!(visor.map.bytes() + visor.holds.bytes(), empty);
    assert!(empty < 1_000, "{empty} B");
}
