//! Numbers, metadata, blocks: worked examples.

use super::rig::Rig;
use crate::page_groups::testing::{prototype, small};
use crate::page_groups::translation::GroupTranslation;
use crate::page_groups::{Flashvisor, Logical, Physical, Step};

fn number(visor: &mut Flashvisor, logical: u32) -> u32 {
    let write = visor.write(Logical(logical)).expect("it fits").expect("a number is there");
    visor.written(write);
    write.group.0
}

/// Section 4.3: "allocates a new page group number by simply increasing the page group number used in a previous write"; the
/// first two pages of a block of 256 are metadata.
#[test]
fn numbers_grow_and_skip_metadata() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    let numbers: Vec<u32> = (0..600).map(|n| number(&mut visor, n * 7)).collect();
    let expected: Vec<u32> = (0..1_024).filter(|n| n % 256 >= 2).take(600).collect();
    assert_eq!(numbers, expected);
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::striped)).expect("it can be built");
    assert_eq!([0, 1, 2].map(|n| number(&mut visor, n)), [16, 17, 18]);
    assert_eq!(visor.lookup(Logical(1)), Ok(Some(Physical(17))));
    assert_eq!(visor.lookup(Logical(3)), Ok(None));
    assert_eq!((visor.counters.lookups, visor.counters.updates, visor.counters.writes), (2, 3, 3));
}

/// 254 groups a block: group 254 is the first data group of the second block.
#[test]
fn what_is_there_from_the_start_is_in_order() {
    let mut visor = Flashvisor::new(&prototype(2, GroupTranslation::literal)).expect("it can be built");
    visor.assume_written(300).expect("it fits");
    let at = |visor: &mut Flashvisor, n| visor.lookup(Logical(n)).expect("in range");
    assert_eq!(at(&mut visor, 0), Some(Physical(2)));
    assert_eq!(at(&mut visor, 253), Some(Physical(255)));
    assert_eq!(at(&mut visor, 254), Some(Physical(258)));
    assert_eq!(at(&mut visor, 299), Some(Physical(303)));
    assert_eq!(at(&mut visor, 300), None);
    // Writes go on behind it.
    assert_eq!(number(&mut visor, 5), 304);
    assert_eq!(at(&mut visor, 5), Some(Physical(304)));
}

/// A map entry is changed when the program is done; of two writes of a group the later one counts, whichever is done first.
#[test]
fn the_later_write_counts() {
    let mut visor = Flashvisor::new(&small(GroupTranslation::literal)).expect("it can be built");
    let write = |visor: &mut Flashvisor| visor.write(Logical(9)).expect("it fits").expect("a number");
    let (first, second, third) = (write(&mut visor), write(&mut visor), write(&mut visor));
    assert_eq!(visor.lookup(Logical(9)), Ok(None));
    visor.written(second);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(second.group)));
    visor.written(first);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(second.group)));
    visor.written(third);
    assert_eq!(visor.lookup(Logical(9)), Ok(Some(third.group)));
    assert_eq!((visor.counters.overtaken, visor.data()), (1, 1));
}

/// When all of a block is programmed, and not before, its two metadata groups are.
#[test]
fn a_full_block_gets_its_metadata() {
    let mut rig = Rig::new(small(GroupTranslation::literal), 0);
    (0..14).for_each(|n| assert!(rig.begin_write(Logical(n))));
    (0..13).for_each(|_| rig.end_write(0));
    rig.pull();
    assert!(rig.steps.is_empty(), "a program is under way");
    rig.end_write(0);
    rig.pull();
    let steps: Vec<Step> = rig.steps.iter().map(|(_, step)| *step).collect();
    // 14 entries in two groups.
    assert_eq!(steps, [0, 1].map(|n| Step::WriteMeta { group: Physical(n), entries: 7 }));
    rig.drain();
    assert_eq!(rig.visor.counters.metadata, 2);
}
