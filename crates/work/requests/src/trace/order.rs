//! Sorting of an almost sorted trace in bounded memory, and a measure of its disorder.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::trace::record::RawRequest;

/// Holds back up to a number of requests and returns the earliest; requests with equal times keep the order of the
/// file.
///
/// Requests in order only pass through a queue; stragglers wait in a heap beside it. A sorted trace costs a single
/// comparison per request, any other trace at most the logarithm of the number of stragglers held.
pub(crate) struct SortWindow {
    limit: usize,
    in_order: VecDeque<RawRequest>,
    late: BinaryHeap<Reverse<Late>>,
    pushed: u64,
}

/// A request that came after a later one, ordered by time, then by its place in the file.
struct Late {
    request: RawRequest,
    place: u64,
}

impl Late {
    fn key(&self) -> (u128, u64) {
        (self.request.at, self.place)
    }
}
impl PartialEq for Late {
    fn eq(&self, other: &Late) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Late {}
impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Late) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Late {
    fn cmp(&self, other: &Late) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl SortWindow {
    /// Creates a window that holds back `limit` requests.
    pub(crate) fn new(limit: usize) -> SortWindow {
        SortWindow { limit, in_order: VecDeque::new(), late: BinaryHeap::new(), pushed: 0 }
    }
    /// Returns true if a request must be taken before the next one may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.in_order.len() + self.late.len() > self.limit
    }
    /// Adds a request.
    pub(crate) fn push(&mut self, request: RawRequest) {
        match self.in_order.back() {
            Some(last) if request.at < last.at => {
                self.late.push(Reverse(Late { request, place: self.pushed }))
            }
            _ => self.in_order.push_back(request),
        }
        self.pushed += 1;
    }
    /// Returns the time of the earliest request.
    pub(crate) fn first(&self) -> Option<u128> {
        let queue = self.in_order.front().map(|request| request.at);
        let heap = self.late.peek().map(|Reverse(late)| late.request.at);
        queue.into_iter().chain(heap).min()
    }
    /// Takes the earliest request.
    pub(crate) fn pop(&mut self) -> Option<RawRequest> {
        let queue = self.in_order.front().map(|request| request.at);
        let heap = self.late.peek().map(|Reverse(late)| late.request.at);
        match (queue, heap) {
            // A straggler is younger than every queued request with its time: the queue goes first among equals.
            (Some(queued), Some(late)) if late < queued => self.late.pop().map(|Reverse(late)| late.request),
            (None, Some(_)) => self.late.pop().map(|Reverse(late)| late.request),
            _ => self.in_order.pop_front(),
        }
    }
}

/// Measures how far a stream of times is from sorted, in bounded memory.
pub(crate) struct Disorder {
    count: u64,
    latest: u128,
    unsorted: u64,
    lateness: u128,
    window: u64,
    /// Position and latest time up to it, at every `stride` positions where the latest time grew.
    marks: Vec<(u64, u128)>,
    stride: u64,
}

/// Number of marks kept: the reported window is too large by less than 1/2048 of the trace.
const MARKS: usize = 4_096;

impl Disorder {
    pub(crate) fn new() -> Disorder {
        Disorder { count: 0, latest: 0, unsorted: 0, lateness: 0, window: 0, marks: Vec::new(), stride: 1 }
    }

    /// Adds the next time of the stream.
    pub(crate) fn add(&mut self, at: u128) {
        if self.count > 0 && at < self.latest {
            self.unsorted += 1;
            self.lateness = self.lateness.max(self.latest - at);
            // Everything up to this mark is at most as late as `at`: only later marks can be in its way.
            let harmless = self.marks.partition_point(|(_, latest)| *latest <= at);
            let from = if harmless == 0 { 0 } else { self.marks[harmless - 1].0 + 1 };
            self.window = self.window.max(self.count - from);
        }
        self.latest = self.latest.max(at);
        if self.count.is_multiple_of(self.stride) {
            if self.marks.len() == MARKS {
                self.stride *= 2;
                let stride = self.stride;
                self.marks.retain(|(position, _)| position.is_multiple_of(stride));
            }
            if self.count.is_multiple_of(self.stride) {
                self.marks.push((self.count, self.latest));
            }
        }
        self.count += 1;
    }

    /// Returns the number of times that come after a later one.
    pub(crate) fn unsorted(&self) -> u64 {
        self.unsorted
    }
    /// Returns the largest difference between a time and the latest one before it.
    pub(crate) fn lateness(&self) -> u128 {
        self.lateness
    }
    /// Returns a sort window that sorts the stream so far: at least the smallest that does.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::IoOp;

    use super::*;

    fn request(at: u128, line: u64) -> RawRequest {
        RawRequest {
            at,
            offset: 0,
            bytes: 512,
            line,
            flow: 0,
            part: 0,
            op: IoOp::Read,
            fua: false,
            response: None,
        }
    }

    fn through(times: &[u32], limit: usize) -> Vec<(u128, u64)> {
        let mut window = SortWindow::new(limit);
        let mut out = Vec::new();
        for (n, at) in times.iter().enumerate() {
            window.push(request(u128::from(*at), n as u64));
            if window.is_full() {
                out.extend(window.pop());
            }
        }
        out.extend(std::iter::from_fn(|| window.pop()));
        out.iter().map(|r| (r.at, r.line)).collect()
    }

    fn stable_sort(times: &[u32]) -> Vec<(u128, u64)> {
        let mut all: Vec<(u128, u64)> =
            times.iter().enumerate().map(|(n, t)| (u128::from(*t), n as u64)).collect();
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Returns the smallest window by definition: the most requests with a later time before any one request.
    fn smallest_window(times: &[u32]) -> usize {
        (0..times.len()).map(|i| times[..i].iter().filter(|t| **t > times[i]).count()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn the_window_told_is_enough_and_makes_a_stable_sort(times in prop::collection::vec(0_u32..50, 0..200)) {
            let mut disorder = Disorder::new();
            times.iter().for_each(|t| disorder.add(u128::from(*t)));
            let told = disorder.window() as usize;
            prop_assert!(told >= smallest_window(&times));
            prop_assert_eq!(through(&times, told), stable_sort(&times));
            prop_assert_eq!(through(&times, smallest_window(&times)), stable_sort(&times));
        }
    }

    #[test]
    fn a_window_one_too_small_is_not_enough() {
        // The last must pass three later ones.
        let times = [5, 6, 7, 1];
        assert_eq!(smallest_window(&times), 3);
        assert_eq!(through(&times, 3), stable_sort(&times));
        assert_ne!(through(&times, 2), stable_sort(&times));
    }

    #[test]
    fn a_long_trace_is_measured_with_few_marks() {
        let mut disorder = Disorder::new();
        let n = 100_000_u128;
        (0..n).for_each(|t| disorder.add(t * 10));
        disorder.add((n - 1_000) * 10 + 5);
        assert_eq!(disorder.unsorted(), 1);
        assert_eq!(disorder.lateness(), 9_985);
        assert!((999..999 + 100_000 / 1_000).contains(&disorder.window()), "{}", disorder.window());
        assert!(disorder.marks.len() <= MARKS);
    }
}
