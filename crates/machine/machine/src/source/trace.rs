//! A recorded trace as a source.

use config::Diagnostic;
use engine::Time;
use proto::IoRequest;
use requests::inject::{Next, Recorded, Source};
use requests::trace::TraceReader;

/// How a trace is replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// Every request arrives at its own time. While its submission queue is full it waits, and the backlog behind it is
    /// the reader's position in the trace.
    Open,
    /// Requests are issued as fast as a queue depth allows; the trace's times are not used.
    Closed {
        /// Requests outstanding.
        depth: u32,
    },
}

/// A recorded trace.
pub struct TraceSource {
    name: String,
    reader: TraceReader,
    replay: Replay,
    /// The request, or fragment of one, read ahead, and whether more fragments follow it.
    ahead: Option<(IoRequest, bool)>,
    /// When the request arrived whose next fragment is to be issued.
    began: Option<Time>,
    ended: bool,
}

impl TraceSource {
    /// A source that replays what `reader` delivers.
    pub fn new(name: String, reader: TraceReader, replay: Replay) -> TraceSource {
        TraceSource { name, reader, replay, ahead: None, began: None, ended: false }
    }
}

impl Source for TraceSource {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic> {
        if self.ahead.is_none() && !self.ended {
            self.ahead = self.reader.next()?.map(|request| (request, self.reader.continues()));
            self.ended = self.ahead.is_none();
        }
        let Some((request, more)) = self.ahead else { return Ok(Next::Done) };
        let (at, limit) = match (self.began, self.replay) {
            // A fragment takes no other place in the queue depth than its request.
            (Some(at), _) => (at, u32::MAX),
            (None, Replay::Open) => (request.at, u32::MAX),
            (None, Replay::Closed { depth }) => (now, depth),
        };
        if at > now {
            return Ok(Next::At(at));
        }
        if outstanding >= limit {
            return Ok(Next::Blocked);
        }
        self.ahead = None;
        self.began = more.then_some(at);
        let request = IoRequest { at, ..request };
        Ok(if more { Next::Part(request) } else { Next::Issue(request) })
    }

    fn completed(&mut self, _: Time, _: &IoRequest) {}

    fn backlog(&self) -> u32 {
        1
    }

    fn flows(&self) -> Vec<String> {
        let names = self.reader.notes().flows.names();
        names.iter().map(|flow| format!("{}/{flow}", self.name)).collect()
    }

    fn is_open(&self, _: u16) -> bool {
        self.replay == Replay::Open
    }

    fn recorded(&self) -> Option<&Recorded> {
        Some(self.reader.recorded())
    }

    fn handed_out(&self) -> Option<u64> {
        self.reader.handed_out()
    }

    fn progress(&self) -> Option<f64> {
        self.reader.progress()
    }

    fn warnings(&self) -> Vec<String> {
        let notes = self.reader.notes();
        let read_as = format!("read as `{}`", notes.format);
        let said = std::iter::once(read_as).chain(notes.warnings());
        said.map(|warning| format!("{}: {warning}", self.name)).collect()
    }
}
