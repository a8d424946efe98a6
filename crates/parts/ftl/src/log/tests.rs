//! Worked examples of the tables and of merges.

use super::*;

/// One plane of 12 blocks with 4 pages: 4 data blocks, two to a log block.
fn blocks() -> Blocks {
    let search = config::units::Duration::default();
    let log_filled = vec![config::units::Share::ZERO];
    let mapping = DirectMapping { group: 1, data_blocks: 4, log_share: 2, search, log_filled };
    Blocks::new(&mapping, 1, 12, 4)
}
fn place(slot: u32, index: u32) -> Place {
    Place { plane: 0, slot, index }
}
fn spot(block: u32, page: u32) -> Spot {
    Spot { block, page }
}
/// Runs a merge of the log block to its end; its steps.
fn merge(blocks: &mut Blocks, log: u32) -> Vec<Step> {
    let (mut merge, mut steps) = (blocks.begin(log), Vec::new());
    while let Some(step) = blocks.step(&merge, 0, steps.len() as u32) {
        blocks.done(&mut merge, 0, steps.len() as u32);
        steps.push(step);
    }
    steps
}

/// ZnG, section IV-A: a page that is in the log's page table is read from there, others by index from the data block;
/// pages of the log are programmed in order.
#[test]
fn the_newest_copy_is_in_the_log() {
    let mut blocks = blocks();
    assert_eq!(blocks.locate(place(1, 3)), (spot(1, 3), false));
    // Page 3 of data block 1 twice, page 0 of data block 0 in between: log pages 0, 1, 2 of the first free block.
    let (log, first) = blocks.append(place(1, 3));
    assert_eq!(first, spot(4, 0));
    assert_eq!(blocks.append(place(0, 0)), (log, spot(4, 1)));
    assert_eq!(blocks.append(place(1, 3)), (log, spot(4, 2)));
    assert_eq!(blocks.locate(place(1, 3)), (spot(4, 2), true));
    assert_eq!(blocks.locate(place(0, 0)), (spot(4, 1), true));
    assert_eq!(blocks.locate(place(1, 2)), (spot(1, 2), false));
    // Data blocks 2 and 3 have a log block of their own.
    assert_eq!(blocks.append(place(2, 0)).1, spot(5, 0));
    assert!(blocks.has_room(place(0, 1)));
    blocks.append(place(0, 2));
    assert!(!blocks.has_room(place(1, 1)) && blocks.has_room(place(3, 1)));
}

#[test]
fn a_merge_moves_the_newest_copies_in_order_and_erases_the_old_blocks() {
    let mut blocks = blocks();
    let (log, _) = blocks.append(place(1, 3));
    for (slot, index) in [(0, 1), (1, 3), (0, 0)] {
        blocks.append(place(slot, index));
    }
    let copy = |from, to| Step::Copy { from, to };
    let expected = [
        copy(spot(4, 3), spot(5, 0)),
        copy(spot(4, 1), spot(5, 1)),
        copy(spot(0, 2), spot(5, 2)),
        copy(spot(0, 3), spot(5, 3)),
        copy(spot(1, 0), spot(6, 0)),
        copy(spot(1, 1), spot(6, 1)),
        copy(spot(1, 2), spot(6, 2)),
        copy(spot(4, 2), spot(6, 3)),
        Step::Erase(0),
        Step::Erase(1),
        Step::Erase(4),
    ];
    assert_eq!(merge(&mut blocks, log), expected);
    for index in 0..4 {
        assert_eq!(blocks.locate(place(0, index)), (spot(5, index), false));
        assert_eq!(blocks.locate(place(1, index)), (spot(6, index), false));
    }
    assert_eq!((blocks.programmed, blocks.erased, blocks.log_of(place(0, 0))), (4 + 8, 3, None));
}

/// Of the free blocks, those that were erased least are taken: blocks never used before any that a merge has freed.
#[test]
fn the_least_erased_block_is_taken() {
    let mut blocks = blocks();
    let mut logs = Vec::new();
    for _ in 0..5 {
        let mut last = NONE;
        for index in 0..4 {
            let (log, spot) = blocks.append(place(0, index));
            (last, logs) = (log, [logs, vec![spot.block]].concat());
        }
        merge(&mut blocks, last);
    }
    // Fresh are 4 to 11: each log takes one, and the merge another for the one data block that the log has pages of.
    // Then the blocks erased once follow by number: 0.
    logs.dedup();
    assert_eq!(logs, [4, 6, 8, 10, 0]);
    assert_eq!(blocks.locate(place(0, 0)).0.block, 4);
    assert_eq!(blocks.locate(place(1, 0)).0.block, 1, "no page of it was ever in a log");
}

#[test]
fn pages_without_data_are_not_moved() {
    let mut blocks = blocks();
    blocks.occupy(0, 1, 2);
    let mut last = NONE;
    for _ in 0..4 {
        last = blocks.append(place(1, 1)).0;
    }
    let steps = merge(&mut blocks, last);
    let copy = |from, to| Step::Copy { from, to };
    let moved = [copy(spot(1, 0), spot(5, 0)), copy(spot(4, 3), spot(5, 1))];
    assert_eq!(steps, [&moved[..], &[Step::Erase(1), Step::Erase(4)]].concat());
}

#[test]
fn a_filled_log_has_the_pages_left_that_were_asked_for() {
    let mut blocks = blocks();
    blocks.fill(0, &[(0, 4), (1, 4)], 1, &mut Rng::stream(1, "test"));
    assert!(blocks.has_room(place(1, 0)));
    assert_eq!(blocks.append(place(1, 0)).1, spot(4, 3));
    assert!(!blocks.has_room(place(0, 0)));
    let in_log = (0..8).filter(|n| blocks.locate(place(n / 4, n % 4)).1).count();
    assert!((1..=4).contains(&in_log), "{in_log}");
}

/// Three pages of data block 1 hold data: only these are in its log block, so that a merge leaves data block 0 alone.
#[test]
fn only_pages_that_hold_data_are_filled_in() {
    for seed in 0..20 {
        let mut blocks = blocks();
        blocks.occupy(0, 1, 3);
        blocks.fill(0, &[(1, 3)], 0, &mut Rng::stream(seed, "test"));
        assert!((0..4).all(|n| !blocks.locate(place(0, n)).1) && !blocks.locate(place(1, 3)).1);
        let log = blocks.log_of(place(1, 0)).expect("it has been filled");
        let steps = merge(&mut blocks, log);
        assert_eq!(steps.len(), 3 + 2, "three pages, and erases of the old block and of the log");
    }
}

/// Two planes of a set: the log block of one is full, the other's has a single page, of another data block. Both data blocks
/// move in both planes, under the same numbers; the old blocks are free when both planes have erased them.
#[test]
fn a_set_of_planes_is_merged_together() {
    let search = config::units::Duration::default();
    let log_filled = vec![config::units::Share::ZERO];
    let mapping = DirectMapping { group: 2, data_blocks: 4, log_share: 2, search, log_filled };
    let mut blocks = Blocks::new(&mapping, 2, 12, 2);
    let place = |plane, slot, index| Place { plane, slot, index };
    let (log, _) = blocks.append(place(0, 0, 1));
    assert_eq!(blocks.append(place(0, 0, 1)), (log, spot(4, 1)));
    assert!(!blocks.has_room(place(0, 1, 0)) && blocks.has_room(place(1, 1, 0)));
    assert_eq!(blocks.append(place(1, 1, 0)), (log, spot(4, 0)));
    let mut merge = blocks.begin(log);
    let copy = |from, to| Some(Step::Copy { from, to });
    let moves = [
        [
            (spot(0, 0), spot(5, 0)),
            (spot(4, 1), spot(5, 1)),
            (spot(1, 0), spot(6, 0)),
            (spot(1, 1), spot(6, 1)),
        ],
        [
            (spot(0, 0), spot(5, 0)),
            (spot(0, 1), spot(5, 1)),
            (spot(4, 0), spot(6, 0)),
            (spot(1, 1), spot(6, 1)),
        ],
    ];
    for (plane, moves) in (0..).zip(&moves) {
        for (n, (from, to)) in (0..).zip(moves) {
            assert_eq!(blocks.step(&merge, plane, n), copy(*from, *to));
            let last = plane == 1 && n == 3;
            let progress = if last { Progress::Moved } else { Progress::Going };
            assert_eq!(blocks.done(&mut merge, plane, n), progress);
        }
        if plane == 0 {
            assert_eq!(blocks.step(&merge, 0, 4), None, "the other plane has not moved its pages yet");
            assert_eq!(blocks.locate(place(0, 0, 1)).0, spot(4, 1));
        }
    }
    assert_eq!(blocks.locate(place(0, 0, 1)), (spot(5, 1), false));
    let erases: Vec<_> = (0..6).map(|n| (n / 3, 4 + n % 3)).collect();
    for (plane, n) in &erases {
        let old = [0, 1, 4][*n as usize - 4];
        assert_eq!(blocks.step(&merge, *plane, *n), Some(Step::Erase(old)));
        let over = (*plane, *n) == (1, 6);
        let progress = if over { Progress::Over } else { Progress::Going };
        assert_eq!(blocks.done(&mut merge, *plane, *n), progress);
    }
    assert_eq!((blocks.programmed, blocks.erased, blocks.log_of(place(1, 0, 0))), (3 + 8, 6, None));
}
