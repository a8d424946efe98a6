//! Lists of requests, linked through the requests themselves.

use super::request::{NONE, Requests};

/// A list of requests. A request is in one list at most.
#[derive(Clone, Copy, Debug)]
pub struct RequestList {
    first: u32,
    last: u32,
}

impl Default for RequestList {
    fn default() -> RequestList {
        RequestList { first: NONE, last: NONE }
    }
}

impl RequestList {
    /// Whether it holds none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// The first request.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The last request.
    #[inline]
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// A request joins at the end.
    pub fn push_back(&mut self, requests: &mut Requests, name: u32) {
        let last = self.last;
        (requests[name].next, requests[name].previous) = (NONE, last);
        self.last = name;
        if last == NONE {
            self.first = name;
        } else {
            requests[last].next = name;
        }
    }

    /// A request joins in front.
    pub fn push_front(&mut self, requests: &mut Requests, name: u32) {
        let first = self.first;
        (requests[name].next, requests[name].previous) = (first, NONE);
        self.first = name;
        if first == NONE {
            self.last = name;
        } else {
            requests[first].previous = name;
        }
    }

    /// A request of this list joins in front of another one, which is in it as well.
    pub fn move_before(&mut self, requests: &mut Requests, name: u32, before: u32) {
        self.remove(requests, name);
        let previous = requests[before].previous;
        (requests[name].next, requests[name].previous) = (before, previous);
        requests[before].previous = name;
        if previous == NONE {
            self.first = name;
        } else {
            requests[previous].next = name;
        }
    }

    /// A request of this list leaves it.
    pub fn remove(&mut self, requests: &mut Requests, name: u32) {
        let (next, previous) = (requests[name].next, requests[name].previous);
        if previous == NONE {
            self.first = next;
        } else {
            requests[previous].next = next;
        }
        if next == NONE {
            self.last = previous;
        } else {
            requests[next].previous = previous;
        }
        (requests[name].next, requests[name].previous) = (NONE, NONE);
    }

    /// The first request leaves.
    pub fn pop_front(&mut self, requests: &mut Requests) -> Option<u32> {
        let name = self.first()?;
        self.remove(requests, name);
        Some(name)
    }

    /// All requests of another list join at the end.
    pub fn append(&mut self, requests: &mut Requests, other: RequestList) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        requests[self.last].next = other.first;
        requests[other.first].previous = self.last;
        self.last = other.last;
    }

    /// What it holds; it is empty afterwards.
    #[must_use]
    pub fn take(&mut self) -> RequestList {
        std::mem::take(self)
    }
}
