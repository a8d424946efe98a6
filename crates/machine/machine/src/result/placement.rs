//! What a placement of several memories did.

use super::hierarchy::{Window, share};
use mem::placement::{Placement, TargetStats};
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::Serialize;

/// One memory of a placement, in the order of `targets`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacedResult {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Share of the lines of all memories that were read or written here; moves apart.
    pub line_share: f64,
    /// Pages that moves brought.
    pub pages_in: u64,
    /// Pages that moves took away.
    pub pages_out: u64,
}

/// Several memories, and which page lies in which.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlacementResult {
    /// The memories.
    pub targets: Vec<PlacedResult>,
    /// Pages that were given a frame because they were used for the first time.
    pub first_touches: u64,
    /// Pages that were hot enough to be moved to an earlier memory.
    pub candidates: u64,
    /// Of them, those beyond the rate of moves.
    pub limited: u64,
    /// Of them, those for which too many moves were under way.
    pub crowded: u64,
    /// Of them, those for which no page could make room.
    pub without_room: u64,
    /// Pages moved to an earlier memory.
    pub promotions: u64,
    /// Pages moved to a later memory, to make room.
    pub demotions: u64,
    /// Bytes that moves wrote, a second; they read as many.
    pub moved_bytes_per_s: f64,
    /// Commands that waited because their page was on the move.
    pub waits: u64,
    /// Mean time that these waited; null if none did.
    pub wait_ns: Option<f64>,
}

impl PlacementResult {
    pub(super) fn collect(placement: &Placement, window: Window) -> PlacementResult {
        let s = &placement.stats;
        let lines = |target: &TargetStats| target.lines_read + target.lines_written;
        let all: u64 = s.targets.iter().map(lines).sum();
        let target = |target: &TargetStats| PlacedResult {
            reads: target.reads,
            writes: target.writes,
            line_share: share(lines(target), all),
            pages_in: target.pages_in,
            pages_out: target.pages_out,
        };
        debug_assert_eq!(s.moved_bytes % PAGE, 0, "whole pages are moved");
        PlacementResult {
            targets: s.targets.iter().map(target).collect(),
            first_touches: s.first_touches,
            candidates: s.candidates,
            limited: s.limited,
            crowded: s.crowded,
            without_room: s.without_room,
            promotions: s.promotions,
            demotions: s.demotions,
            moved_bytes_per_s: window.per_second(s.moved_bytes),
            waits: s.waits,
            wait_ns: (s.waits > 0).then(|| s.wait.as_ns_f64() / s.waits as f64),
        }
    }
}
