//! The timeline of a run as Chrome Trace Event JSON, which Perfetto and chrome://tracing open: requests, channels and
//! dies, each busy interval a slice.

use super::sink::Sink;
use crate::output::Fault;
use flash::backend::observe::{Observer as CommandObserver, Tenure};
use flash::backend::op::{Class, OpKind};
use kernel::Time;
use proto::IoOp;
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use workload::inject::{Observer as RequestObserver, Seen};

/// Events that a timeline holds; what comes after is left out and counted. A viewer has trouble with more.
pub(crate) const MAX_EVENTS: u64 = 1_000_000;

/// The tracks, as processes of the format.
const REQUESTS: u32 = 1;
const CHANNELS: u32 = 2;
const DIES: u32 = 3;

/// A timeline under way.
#[derive(Clone)]
pub(crate) struct Timeline(Rc<RefCell<State>>);

struct State {
    sink: Sink,
    events: u64,
    left_out: u64,
    requests: u64,
    /// Tracks that have a name by now, by process.
    named: [Vec<bool>; 3],
}

impl Timeline {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Timeline, Fault> {
        let mut sink = Sink::create(path)?;
        sink.write(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
        for (pid, name) in [(REQUESTS, "requests"), (CHANNELS, "channels"), (DIES, "dies")] {
            let comma = if pid == REQUESTS { "" } else { "," };
            sink.write(format_args!(
                "{comma}\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            ));
        }
        let state = State { sink, events: 0, left_out: 0, requests: 0, named: Default::default() };
        Ok(Timeline(Rc::new(RefCell::new(state))))
    }

    /// Closes the document; how many events were left out.
    ///
    /// # Errors
    /// The file is not whole.
    pub(crate) fn finish(&self) -> Result<u64, Fault> {
        let mut state = self.0.borrow_mut();
        let left_out = state.left_out;
        state.sink.write(format_args!("\n],\"otherData\":{{\"events_left_out\":{left_out}}}}}\n"));
        state.sink.finish().map(|()| left_out)
    }
}

/// Microseconds, exact to the picosecond.
struct Micro(Time);

impl std::fmt::Display for Micro {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.ps() / 1_000_000, self.0.ps() % 1_000_000)
    }
}

impl State {
    /// Room for `count` more events.
    fn has_room(&mut self, count: u64) -> bool {
        let room = self.events + count <= MAX_EVENTS;
        *(if room { &mut self.events } else { &mut self.left_out }) += count;
        room
    }

    /// Gives a track its name when it is first used.
    fn name(&mut self, pid: u32, track: u32, what: &str) {
        let named = &mut self.named[pid as usize - 1];
        if named.len() <= track as usize {
            named.resize(track as usize + 1, false);
        }
        if !std::mem::replace(&mut named[track as usize], true) {
            self.sink.write(format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":\"{what} {track}\"}}}}"
            ));
        }
    }

    fn slice(&mut self, pid: u32, track: u32, name: &str, from: Time, to: Time, tenure: &Tenure) {
        if !self.has_room(1) {
            return;
        }
        self.name(pid, track, if pid == DIES { "die" } else { "channel" });
        let Tenure { die, planes, units, suspends, .. } = tenure;
        self.sink.write(format_args!(
            ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{track},\"name\":\"{name}\",\"ts\":{},\"dur\":{},\"args\":{{\"die\":{die},\"planes\":{planes},\"units\":{units},\"suspends\":{suspends}}}}}",
            Micro(from),
            Micro(to - from)
        ));
    }
}

impl CommandObserver for Timeline {
    fn ended(&mut self, tenure: &Tenure) {
        let mut state = self.0.borrow_mut();
        let name = command_name(tenure);
        state.slice(DIES, tenure.die, &name, tenure.started, tenure.ended, tenure);
        if tenure.sent > tenure.started {
            let what = if tenure.kind == OpKind::Program { "data in" } else { "command" };
            state.slice(CHANNELS, tenure.channel, what, tenure.started, tenure.sent, tenure);
        }
        if tenure.ended > tenure.moved {
            state.slice(CHANNELS, tenure.channel, "data out", tenure.moved, tenure.ended, tenure);
        }
    }
}

fn command_name(tenure: &Tenure) -> String {
    let kind = match tenure.kind {
        OpKind::Read => "read",
        OpKind::Program => "program",
        OpKind::Erase => return "erase".to_owned(),
        OpKind::CopyBack => "copy-back",
    };
    let whose = match tenure.class {
        Class::MapRead | Class::MapProgram => "mapping",
        Class::GcRead | Class::GcProgram => "gc",
        Class::UrgentRead | Class::HighRead | Class::HostRead | Class::LowRead | Class::HostProgram => "host",
        Class::AheadRead => "look-ahead",
        Class::Erase => "erase",
    };
    format!("{whose} {kind}")
}

impl RequestObserver for Timeline {
    fn completed(&mut self, seen: &Seen) {
        let mut state = self.0.borrow_mut();
        if !state.has_room(2) {
            return;
        }
        let name = match seen.request.op {
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::Trim => "trim",
            IoOp::WriteZeroes => "write zeroes",
            IoOp::Flush => "flush",
        };
        // Requests overlap: they are pairs of asynchronous events, which have a name of their own.
        let id = state.requests;
        state.requests += 1;
        let (flow, bytes, offset) = (seen.flow, seen.request.bytes, seen.request.offset);
        state.sink.write(format_args!(
            ",\n{{\"ph\":\"b\",\"cat\":\"request\",\"pid\":{REQUESTS},\"tid\":{flow},\"id\":{id},\"name\":\"{name}\",\"ts\":{},\"args\":{{\"bytes\":{bytes},\"offset\":{offset}}}}}",
            Micro(seen.request.at)
        ));
        state.sink.write(format_args!(
            ",\n{{\"ph\":\"e\",\"cat\":\"request\",\"pid\":{REQUESTS},\"tid\":{flow},\"id\":{id},\"name\":\"{name}\",\"ts\":{}}}",
            Micro(seen.completed)
        ));
    }
}
