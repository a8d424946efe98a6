//! Anything that a host may do, in any order: the accounts hold, and at the end nothing is dirty.

use super::writeback;
use crate::Inode;
use crate::writeback::{Dirtier, DirtyFlags, Reason, Step, SyncMode, WriteInode, Writeback, Wrote};
use engine::Time;
use proptest::prelude::*;

const AVAIL: u64 = 20_000;
const INODES: u32 = 6;

#[derive(Clone, Debug)]
enum Act {
    Dirty { inode: u32, pages: u64 },
    Mark { inode: u32 },
    Cut { inode: u32, pages: u64 },
    Remove { inode: u32 },
    Fsync { inode: u32 },
    End { inode: u32, pages: u64 },
    Reclaim { drive: u16 },
    Sync { drive: u16 },
    Flush { drive: u16, share: u64, skipped: u64 },
    Wait { ms: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let (inode, pages, drive) = (0..INODES, 1..3_000_u64, 0..2_u16);
    let act = prop_oneof![
        6 => (inode.clone(), pages.clone()).prop_map(|(inode, pages)| Act::Dirty { inode, pages }),
        1 => inode.clone().prop_map(|inode| Act::Mark { inode }),
        1 => (inode.clone(), pages.clone()).prop_map(|(inode, pages)| Act::Cut { inode, pages }),
        1 => inode.clone().prop_map(|inode| Act::Remove { inode }),
        1 => inode.clone().prop_map(|inode| Act::Fsync { inode }),
        6 => (inode, pages).prop_map(|(inode, pages)| Act::End { inode, pages }),
        1 => drive.clone().prop_map(|drive| Act::Reclaim { drive }),
        1 => drive.clone().prop_map(|drive| Act::Sync { drive }),
        8 => (drive, 0..=4_u64, 0..=9_u64).prop_map(|(drive, share, s)| Act::Flush { drive, share, skipped: s / 9 }),
        3 => (1..3_000_u64).prop_map(|ms| Act::Wait { ms }),
    ];
    prop::collection::vec(act, 0..200)
}

struct Host {
    writeback: Writeback,
    task: Dirtier,
    now: Time,
    /// The step under way of each drive.
    steps: [Option<WriteInode>; 2],
    writing: [u64; INODES as usize],
}

/// Inodes are on drives in turn.
fn drive_of(inode: u32) -> u16 {
    (inode % 2) as u16
}

impl Host {
    fn act(&mut self, act: &Act) {
        let dirty_of = |host: &Host, inode| host.writeback.dirty_of(Inode(inode));
        match *act {
            Act::Dirty { inode, pages } => {
                let drive = drive_of(inode);
                let _ = self.writeback.dirtied(Inode(inode), drive, pages, &mut self.task, 0, self.now);
                let _ = self.writeback.balance(drive, &mut self.task, 0, AVAIL, self.now);
            }
            Act::Mark { inode } => {
                let _ = self.writeback.mark_dirty(Inode(inode), drive_of(inode), DirtyFlags::INODE, self.now);
            }
            Act::Cut { inode, pages } => {
                let pages = pages.min(dirty_of(self, inode));
                if pages > 0 {
                    self.writeback.cleaned(Inode(inode), pages);
                }
            }
            Act::Remove { inode } => {
                // A file whose number comes again is another one: not while the old one is in use.
                let used = self.steps.iter().flatten().any(|step| step.inode == Inode(inode));
                if !used && self.writing[inode as usize] == 0 {
                    let dirty = dirty_of(self, inode);
                    if dirty > 0 {
                        self.writeback.cleaned(Inode(inode), dirty);
                    }
                    self.writeback.evict(Inode(inode));
                }
            }
            Act::Fsync { inode } => {
                self.writeback.begin_writepages(drive_of(inode), self.now);
                self.submit(inode, u64::MAX);
                self.writeback.end_writepages(drive_of(inode), self.now);
                let _ = self.writeback.sync_inode(Inode(inode), false, self.now);
            }
            Act::End { inode, pages } => {
                let pages = pages.min(self.writing[inode as usize]);
                if pages > 0 {
                    self.writing[inode as usize] -= pages;
                    self.writeback.ended(Inode(inode), pages, self.now);
                }
            }
            Act::Reclaim { drive } => {
                let _ = self.writeback.start_all(drive, Reason::Vmscan);
            }
            Act::Sync { drive } => {
                let _ = self.writeback.sync(drive);
            }
            Act::Flush { drive, share, skipped } => self.flush(drive, share, skipped),
            Act::Wait { ms } => self.now += Time::from_ms(ms),
        }
        self.writeback.check().expect("the accounts hold");
    }

    fn submit(&mut self, inode: u32, most: u64) -> u64 {
        let pages = most.min(self.writeback.dirty_of(Inode(inode)));
        if pages > 0 {
            self.writeback.started(Inode(inode), pages);
            self.writing[inode as usize] += pages;
        }
        pages
    }

    /// The flusher begins a step, or does `share` quarters of the one that it has.
    fn flush(&mut self, drive: u16, share: u64, skipped: u64) {
        let Some(step) = self.steps[usize::from(drive)].take() else {
            let runs = self.writeback.is_running(drive) || self.writeback.start(drive, self.now);
            if runs && let Step::Write(step) = self.writeback.next(drive, AVAIL, self.now) {
                assert_eq!(drive_of(step.inode.0), drive);
                self.steps[usize::from(drive)] = Some(step);
            }
            return;
        };
        let dirty = self.writeback.dirty_of(step.inode);
        let all = step.mode == SyncMode::All;
        let most = if all { dirty } else { dirty.min(step.pages) * share / 4 };
        let pages = self.submit(step.inode.0, most);
        let skipped = if pages < dirty { skipped } else { 0 };
        self.writeback.wrote(drive, Wrote { pages: pages + skipped, skipped, next: 0 }, self.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_a_host_does(acts in acts()) {
        let mut host = Host {
            writeback: writeback(2, AVAIL),
            task: Dirtier::default(),
            now: Time::ZERO,
            steps: [None; 2],
            writing: [0; INODES as usize],
        };
        for act in &acts {
            host.act(act);
        }
        for drive in 0..2 {
            let _ = host.writeback.sync(drive);
            // What is old is written soon after, and a flusher with nothing to do sleeps.
            for _ in 0..2_000 {
                host.flush(drive, 4, 0);
                host.now += Time::from_ms(1);
            }
            prop_assert!(!host.writeback.is_running(drive), "it ends: drive {drive}");
        }
        prop_assert_eq!(host.writeback.dirty(), 0);
        let writing: u64 = host.writing.iter().sum();
        prop_assert_eq!(host.writeback.writeback(), writing);
        for inode in 0..INODES {
            prop_assert_eq!(host.writeback.flags_of(Inode(inode)), DirtyFlags::CLEAN);
        }
    }
}
