//! What a reader noticed: nothing that was changed, skipped or guessed goes unsaid.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FlowNames;
use crate::trace::fault::FaultKind;
use crate::trace::human;

/// What happened while a trace was read. Complete once the reader has returned `None`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TraceNotes {
    /// The format it was read as.
    pub format: &'static str,
    /// How the file was packed: `plain`, `gzip` …
    pub compression: &'static str,
    /// Other formats that the content fits as well.
    pub also_fits: Vec<&'static str>,
    /// Remarks that are not counts: ambiguity, time resolution …
    pub remarks: Vec<String>,
    /// Lines taken.
    pub lines: u64,
    /// Requests that the lines held.
    pub requests: u64,
    /// Requests handed out, before those split by a remap.
    pub delivered: u64,
    /// Lines without a request of their own: headers, comments, events of another kind.
    pub other_lines: u64,
    /// Pass-through commands (blkparse), which address no data.
    pub passthrough: u64,
    /// Bad lines that `lenient` skipped, by kind.
    pub skipped: BTreeMap<FaultKind, Skipped>,
    /// Why the first of them are bad, a line each.
    pub bad_lines: Vec<String>,
    /// Requests that `lenient` skipped because they fit the device under no address.
    pub beyond_device: u64,
    /// Requests before the start of the clip.
    pub clipped: u64,
    /// Whether all streams are put on one device as they are, with the same addresses.
    pub one_device: bool,
    /// Requests moved to another address.
    pub remapped: u64,
    /// Requests of which `compact` cut a part off or apart: their regions do not lie side by side.
    pub split: u64,
    /// Trims of regions that no request had touched, dropped by `compact`.
    pub trims_of_nothing: u64,
    /// Requests that come after a later one in the file.
    pub unsorted: u64,
    /// How much earlier such a request is than one before it, at most, in picoseconds.
    pub lateness_ps: u128,
    /// A sort window that puts everything read so far in order; zero if it was in order.
    pub sort_window_needed: u64,
    /// Requests whose times are negative.
    pub negative: u64,
    /// How often a clock of 32 bits began again at zero.
    pub wraps: u64,
    /// How long it takes to, in picoseconds.
    pub wraps_after_ps: u128,
    /// Late requests that `lenient` moved to the time of the request before.
    pub clamped: u64,
    /// Requests that are later than the sort window reaches, where no time is used.
    pub taken_late: u64,
    /// The streams by flow number.
    pub flows: FlowNames,
}

/// Bad lines of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// Number of the first, counted from one.
    pub first_line: u64,
}

impl TraceNotes {
    /// Counts a bad line.
    pub(crate) fn skip(&mut self, kind: FaultKind, line: u64) {
        self.skipped.entry(kind).or_insert(Skipped { count: 0, first_line: line }).count += 1;
    }
    /// Notes something once.
    pub(crate) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Everything a user must know, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut all = self.remarks.clone();
        let mut counted = |count: u64, text: &str| {
            if count > 0 {
                all.push(format!("{} {text}", human::count(count)));
            }
        };
        counted(
            self.negative,
            "requests have negative times: the earliest request is moved to time zero, the others keep their distance from it",
        );
        let clock = format!(
            "times the clock begins again at zero after {}, 2^32 of its units: it has 32 bits, and the times behind are counted on",
            human::span(self.wraps_after_ps)
        );
        counted(self.wraps, &clock);
        let late = format!(
            "requests are out of order, by up to {}; they were put in order (a sort window of {} is enough)",
            human::span(self.lateness_ps),
            human::count(self.sort_window_needed),
        );
        counted(self.unsorted, &late);
        counted(
            self.clamped,
            "requests were later than the sort window allows: moved to the time of the request before",
        );
        counted(
            self.taken_late,
            "requests come after later ones, further than the sort window reaches: they keep their place, no time is used",
        );
        for (kind, skipped) in &self.skipped {
            let text = format!("lines skipped: {}, first on line {}", kind.name(), skipped.first_line);
            counted(skipped.count, &text);
        }
        counted(self.beyond_device, "requests skipped: beyond the device");
        counted(self.passthrough, "pass-through commands skipped: they address no data");
        counted(self.clipped, "requests before the start of the clip dropped");
        counted(self.remapped, "requests moved to fit the device");
        counted(self.split, "of them split, because their regions do not lie side by side");
        counted(self.trims_of_nothing, "trims dropped: no request had touched what they deallocate");
        counted(self.flows.shared(), "requests of streams beyond the 65,535th share the flow `other`");
        let streams = self.flows.names().len() as u64;
        if self.one_device && streams > 1 {
            let shared = "streams, each with addresses of its own, share the addresses of one device; \
                          --remap compact lays them apart, --volumes one says that they are one";
            all.push(format!("{} {shared}", human::count(streams)));
        }
        all
    }
}
