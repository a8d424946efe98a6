//! Each formula against numbers worked out by hand from the kernel's function, then the machines: alone, in a loop with writers and
//! devices, and under anything that a host may do.

mod accounts;
mod balance;
mod bandwidth;
mod clock;
mod flusher;
mod fprop;
mod limits;
mod pause;
mod position;
mod settling;
mod spec;

use super::{Dirtier, Reason, Step, Writeback, WritebackSpec, Wrote};
use crate::Inode;
use engine::Time;

/// Linux's defaults, four cores.
fn writeback(drives: u16, avail: u64) -> Writeback {
    Writeback::new(&WritebackSpec::default(), 250, drives, 4, avail).expect("defaults can be built")
}

/// As [`writeback`] with a drive that all that was ever written is on, so that it has all of the limit.
fn busy(avail: u64) -> Writeback {
    let mut writeback = writeback(1, avail);
    let inode = Inode(9);
    let _ = writeback.dirtied(inode, 0, 1_000, &mut Dirtier::default(), 0, Time::ZERO);
    let _ = writeback.start_all(0, Reason::Vmscan);
    assert!(writeback.start(0, Time::ZERO));
    while !matches!(writeback.next(0, avail, Time::ZERO), Step::Idle { .. }) {
        let pages = writeback.dirty_of(inode);
        if pages > 0 {
            writeback.started(inode, pages);
            writeback.ended(inode, pages, Time::ZERO);
            writeback.wrote(0, Wrote { pages, skipped: 0, next: 0 }, Time::ZERO);
        }
    }
    writeback.reset_stats();
    writeback
}
