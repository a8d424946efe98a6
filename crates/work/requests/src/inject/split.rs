//! Requests that go to the device in several commands, because a trace's remap has put their bytes apart.

use super::flow::FlowStats;
use engine::{Slab, Time};
use proto::IoRequest;

/// No request: what most commands are a fragment of.
pub(super) const NONE: u32 = u32::MAX;

/// What was measured of requests that were split. They count in their flows too, as one request each.
#[derive(Default)]
pub struct Split {
    /// Such requests by themselves.
    pub requests: FlowStats,
    /// Their fragments, a command each.
    pub fragments: FlowStats,
    whole: Slab<Whole>,
}

/// A request of which fragments are to come or under way.
struct Whole {
    /// The first fragment, with the bytes of all.
    request: IoRequest,
    /// Fragments that have not completed.
    left: u32,
    /// Whether more are to come.
    open: bool,
    issued: Option<Time>,
    submitted: Time,
}

/// A request whose last fragment has completed.
pub(super) struct Ended {
    /// The first fragment, with the bytes of all.
    pub(super) request: IoRequest,
    /// When the first fragment was issued, and when it was submitted.
    pub(super) issued: Time,
    pub(super) submitted: Time,
}

impl Split {
    /// The next fragment of a request, [`NONE`] for the first; `more` says that others follow. The request's name.
    pub(super) fn add(&mut self, whole: u32, fragment: IoRequest, more: bool) -> u32 {
        if whole == NONE {
            let first = Whole { request: fragment, left: 1, open: more, issued: None, submitted: Time::ZERO };
            return self.whole.insert(first);
        }
        let known = &mut self.whole[whole];
        known.request.bytes += fragment.bytes;
        known.left += 1;
        known.open = more;
        whole
    }

    /// A fragment has completed; the request, if it was the last.
    pub(super) fn complete(&mut self, whole: u32, issued: Time, submitted: Time) -> Option<Ended> {
        let known = &mut self.whole[whole];
        known.left -= 1;
        // Fragments are issued in turn, but the first need not be the first to complete.
        let earlier = known.issued.is_none_or(|first| issued < first);
        if earlier {
            (known.issued, known.submitted) = (Some(issued), submitted);
        }
        if known.open || known.left > 0 {
            return None;
        }
        let ended = Ended { request: known.request, issued: known.issued?, submitted: known.submitted };
        self.whole.remove(whole);
        Some(ended)
    }

    /// Forgets what was measured.
    pub(super) fn reset(&mut self) {
        self.requests = FlowStats::default();
        self.fragments = FlowStats::default();
    }
}
