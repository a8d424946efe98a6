//! Where requests come from.

use config::Diagnostic;
use engine::Time;
use proto::file::Advice;
use proto::{Batches, IoRequest};

use crate::fio::{Guards, LaidOut};
use crate::inject::Recorded;

/// What a source says when it is asked for its next request.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Issue this now. `at` is when it arrived, at the present or before.
    Issue(IoRequest),
    /// Issue this now: a fragment of a request whose others follow, the last of them as [`Next::Issue`]. All have the `at` of
    /// the request; it has completed when all of them have.
    Part(IoRequest),
    /// Nothing before this time.
    At(Time),
    /// Nothing before one of its requests completes.
    Blocked,
    /// Nothing ever again.
    Done,
}

/// A stream of requests.
///
/// Contract: `poll` is called with times that do not go back; after `Done` it says `Done` for ever; `Blocked` is said
/// only while requests are outstanding.
pub trait Source {
    /// The next request, or fragment of one, given how many requests of this source are in flight.
    ///
    /// # Errors
    /// If the input behind it turns out to be unusable.
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic>;
    /// One of its requests has completed; of one in fragments, the request is the first with the bytes of all.
    fn completed(&mut self, now: Time, request: &IoRequest);
    /// Requests of its own that may wait at the host for room in their submission queue; while so many do, it is not
    /// asked. A source that limits what it has outstanding needs no other limit.
    fn backlog(&self) -> u32 {
        u32::MAX
    }
    /// Names of its flows so far; [`IoRequest::flow`] is an index into them.
    fn flows(&self) -> Vec<String>;
    /// Which target a flow goes to, counted from the one that the source was given.
    fn target(&self, _flow: u16) -> u16 {
        0
    }
    /// Whether the requests of a flow arrive at times of their own, whatever the device does: an open loop.
    fn is_open(&self, _flow: u16) -> bool {
        false
    }
    /// Whether one thread issues and reaps all requests of a flow, and needs time of its own for each.
    fn has_thread(&self, _flow: u16) -> bool {
        false
    }
    /// The batches in which the thread of a flow submits its requests and takes their completions, if not one by one.
    fn batches(&self, _flow: u16) -> Option<Batches> {
        None
    }
    /// Completions that such a thread takes now, of `ended` that have come.
    fn takes(&mut self, _flow: u16, ended: u32) -> u32 {
        ended
    }
    /// What a flow says of its reads to come, if its requests are system calls: then its batches are those of its calls.
    fn advice(&self, _flow: u16) -> Option<Advice> {
        None
    }
    /// What a user must know about how it was read: skipped, moved, ignored.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
    /// How long its requests took where they were recorded, if it is a recording that says so.
    fn recorded(&self) -> Option<&Recorded> {
        None
    }
    /// The files that it goes over, where they lie on the device; those of sources beside it as well.
    fn files(&self) -> &[LaidOut] {
        &[]
    }
    /// What would have ended a flow elsewhere, if anything could.
    fn guards(&self, _flow: u16) -> Option<&Guards> {
        None
    }
    /// Requests that it has read from a recording so far, if it is one and all of them have a place: their times do not go back.
    fn handed_out(&self) -> Option<u64> {
        None
    }
    /// Share of the work done, if known.
    fn progress(&self) -> Option<f64> {
        None
    }
}
