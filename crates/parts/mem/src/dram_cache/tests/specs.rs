//! What can be built, and what not.

use super::*;
use config::policy::{Choice, check_family};

fn error(change: impl Fn(&mut DramCacheSpec)) -> SpecError {
    let mut spec = table_1();
    change(&mut spec);
    spec.check().expect_err("cannot be built")
}

#[test]
fn table_1_has_two_gibibytes_a_controller() {
    let cache = DramCache::new(&table_1(), CPU_LINE).expect("can be built");
    assert_eq!((cache.controllers(), cache.capacity()), (4, 8 << 30));
}

#[test]
fn a_line_is_one_of_the_sizes_that_memories_have() {
    for line in [0, 32, 96, 1024] {
        assert_eq!(DramCache::new(&table_1(), line).err().map(|error| error.key), Some("line".to_owned()));
    }
}

#[test]
fn a_line_is_neighbouring_columns() {
    let columns =
        |line, lines| Layout::new(&table_1(), crate::lines_of(line).expect("a size of lines")).columns(lines);
    assert_eq!([columns(64, 0b101), columns(128, 0b101), columns(512, 0b101)], [0b101, 0b110011, 0xFF00FF]);
    assert_eq!([64, 128, 256, 512].map(|line| columns(line, u64::MAX >> (64 - PAGE / line))), [u64::MAX; 4]);
}

#[test]
fn a_row_has_to_hold_a_set() {
    let small = error(|spec| spec.dram.banks.row = Bytes::from_kib(16));
    assert_eq!(small.key, "dram.banks.row");
    assert!(small.help.is_some_and(|help| help.contains("16448B")), "{}", small.what);
    assert_eq!(error(|spec| spec.dram.interleave = Bytes::from_kib(4)).key, "dram.interleave");
    assert_eq!(error(|spec| spec.ways = 3).key, "dram.banks.row");
    assert_eq!(error(|spec| spec.ways = 9).key, "ways");
    assert_eq!(error(|spec| spec.misses.ways = 9).key, "misses.ways");
    assert_eq!(error(|spec| spec.misses.sets = 258).key, "misses.sets");
    assert_eq!(error(|spec| spec.sets = 0).key, "sets");
    assert_eq!(error(|spec| spec.sets = 1 << 27).key, "sets");
    assert_eq!(error(|spec| spec.evict_buffer = 0).key, "evict_buffer");
    assert_eq!(error(|spec| spec.frontside.queue = 0).key, "frontside.queue");
    assert_eq!(error(|spec| spec.backside.burst = 65).key, "backside.burst");
    assert_eq!(error(|spec| spec.dram.bus.width = 12).key, "dram.bus.width");
}

/// Sets, the miss status row and page tables of a controller lie in rows of their own, behind that controller.
#[test]
fn nothing_lies_in_a_row_twice() {
    let mut spec = small(5, 2);
    (spec.dram.controllers, spec.partition) = (3, Partition::flat);
    let mut layout = Layout::new(&spec, crate::lines_of(CPU_LINE).expect("a size of lines"));
    layout.set_tables(100 * PAGE..120 * PAGE);
    let row = spec.dram.banks.row.get();
    // Which row of which controller, and where in it, an address of the DRAM is.
    let at = |address: u64| (address / row % 3, address / row / 3, address % row);
    let mut seen = std::collections::BTreeSet::new();
    for controller in 0..3 {
        for place in 0..10 {
            let (behind, number, offset) = at(layout.way(controller, place));
            assert_eq!((behind, number), (controller.into(), u64::from(place / 2)));
            assert!(seen.insert((behind, number, offset)) && offset + PAGE <= 2 * PAGE);
        }
        for page in 0..15 {
            let page = page * PAGE;
            if layout.controller_of(page) == controller {
                let set = layout.line_of(page) % 5;
                assert_eq!(at(layout.tags(controller, page)), (controller.into(), set, 2 * PAGE));
                assert_eq!(at(layout.misses(controller, page)).1, 5);
                assert_eq!(layout.page_of(controller, layout.line_of(page)), page);
            }
        }
    }
    for page in 100..120 {
        let (behind, number, offset) = at(layout.flat(page * PAGE).expect("a page table"));
        assert_eq!(behind, page % 3);
        assert!(number > 5 && seen.insert((behind, number, offset)) && offset + PAGE <= 2 * PAGE);
    }
    assert_eq!((layout.flat(99 * PAGE), layout.flat(120 * PAGE)), (None, None));
}

#[test]
fn the_families_are_in_order() {
    for result in [check_family::<Partition>(), check_family::<Backing>(), check_family::<PageAdmission>()] {
        assert!(result.is_ok(), "{result:?}");
    }
    assert_eq!(Backing::FAMILY.name, <Backing as Choice>::FAMILY.name);
    for backing in Backing::all_defaults() {
        for partition in Partition::all_defaults() {
            assert!(
                DramCache::new(&DramCacheSpec { backing: backing.clone(), partition, ..table_1() }, CPU_LINE)
                    .is_ok()
            );
        }
    }
}
