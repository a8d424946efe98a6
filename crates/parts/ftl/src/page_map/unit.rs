//! One reclaim unit.

/// Where a reclaim unit stands in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuState {
    /// Erased, on a free list.
    Free,
    /// A frontier: takes program units.
    Open,
    /// All program units given out, some not yet programmed.
    Full,
    /// All programmed; a candidate for reclaiming.
    Closed,
    /// Being reclaimed.
    Collecting,
    /// Out of use.
    Bad,
    /// All of its one bit a cell programmed; a candidate for folding.
    Cached,
}

impl engine::Snapshot for RuState {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Self> {
        use RuState::*;
        [Free, Open, Full, Closed, Collecting, Bad, Cached].get(u8::load(input)? as usize).copied()
    }
}

/// A reclaim unit as the FTL sees it: hot data, 16 bytes.
#[derive(Clone, Debug)]
pub struct Ru {
    /// Valid map units.
    pub valid: u32,
    /// Reads under way: it must not be erased before they end.
    pub readers: u32,
    /// Program units given out and not yet programmed.
    pub inflight: u32,
    /// Where it stands.
    pub state: RuState,
    /// Whether unwritten table entries of it follow the implicit base.
    pub follows_base: bool,
    /// Closed before it was full: power went while it was open.
    pub short: bool,
    /// The placement that its data was written for; of what garbage collection has mixed, the first.
    pub placement: u8,
}
engine::snapshot!(Ru { valid, readers, inflight, state, follows_base, short, placement });

/// A reclaim unit that was never opened.
pub(super) const FRESH: Ru = Ru {
    valid: 0,
    readers: 0,
    inflight: 0,
    state: RuState::Free,
    follows_base: false,
    short: false,
    placement: 0,
};
