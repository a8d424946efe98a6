//! What becomes of a folio that reclaim has taken off its list.

use super::{Core, ScanControl};
use crate::pagecache::Folio;
use crate::pagecache::folio::flag;
use engine::{Mutant, planted};

/// Counts of a round (`struct reclaim_stat` and `scan_control.nr`), in pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Taken off the inactive list, or the oldest generation.
    pub(in crate::pagecache) taken: u64,
    /// Moved between lists without being looked at closely.
    pub(in crate::pagecache) refilled: u64,
    /// Freed.
    pub(in crate::pagecache) freed: u64,
    /// Dirty or under write-back.
    pub(in crate::pagecache) dirty: u64,
    /// Dirty and not under write-back.
    pub(in crate::pagecache) unqueued_dirty: u64,
    /// Under write-back, and marked for reclaim before.
    pub(in crate::pagecache) congested: u64,
    /// Under write-back, and marked for reclaim now.
    pub(in crate::pagecache) writeback: u64,
    /// Under write-back, marked, and met by `kswapd` when all that it finds is under write-back.
    pub(in crate::pagecache) immediate: u64,
    /// Activated.
    pub(in crate::pagecache) activated: u64,
    /// Whether a batch held nothing but dirty pages that nobody writes.
    pub(in crate::pagecache) wakes_flushers: bool,
}

/// What becomes of a folio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::pagecache) enum Fate {
    /// It is freed.
    Free,
    /// It gets out of the way.
    Activate,
    /// It stays as it is.
    Keep,
}

/// What the use of a folio says (`enum folio_references`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum References {
    Reclaim,
    ReclaimClean,
    Keep,
    Activate,
}

/// `folio_check_references`, without pages of programs.
fn check_references(core: &mut Core, at: u32) -> References {
    let young = core.folios.take_flag(at, flag::YOUNG);
    let referenced = core.folios.take_flag(at, flag::REFERENCED);
    if young {
        // Its first use is the fault that mapped it: a folio has to be used twice.
        core.folios.set(at, flag::REFERENCED);
        return if referenced { References::Activate } else { References::Keep };
    }
    if referenced { References::ReclaimClean } else { References::Reclaim }
}

/// The part of `shrink_folio_list` for one folio of a file, which is on no list.
pub(in crate::pagecache) fn shrink_folio(
    core: &mut Core,
    at: u32,
    control: &mut ScanControl,
    tally: &mut Tally,
) -> Fate {
    let flags = core.folios.flags(at);
    if flags & flag::LOCKED != 0 {
        return Fate::Keep;
    }
    control.nr_scanned += 1;
    let (dirty, writeback) = (flags & flag::DIRTY != 0, flags & flag::WRITEBACK != 0);
    let marked = flags & flag::RECLAIM != 0;
    tally.dirty += u64::from(dirty || writeback);
    tally.unqueued_dirty += u64::from(dirty && !writeback);
    if writeback {
        tally.congested += u64::from(marked);
        if control.kswapd && marked && core.node.writeback {
            tally.immediate += 1;
        } else {
            core.folios.set(at, flag::RECLAIM);
            tally.writeback += 1;
        }
        return Fate::Activate;
    }
    let references = check_references(core, at);
    match references {
        References::Activate => return Fate::Activate,
        References::Keep => return Fate::Keep,
        References::Reclaim | References::ReclaimClean => {}
    }
    core.folios.clear(at, flag::MAPPED);
    if !dirty || planted(Mutant::ReclaimedDirty) {
        return Fate::Free;
    }
    if !(control.kswapd && marked && core.node.dirty) {
        core.folios.set(at, flag::RECLAIM);
        core.stats.marked_for_reclaim += 1;
        return Fate::Activate;
    }
    if references == References::Reclaim {
        core.pageout.push(Folio(at));
        core.stats.pageouts += 1;
    }
    Fate::Keep
}
