//! The timeline of a run as Chrome Trace Event JSON, which Perfetto and chrome://tracing open: requests, the channels and dies of
//! everything with dies, the cores and data sections of accelerators, and the cores, steps and transfers of coprocessors with what the
//! host's program does for each kernel, each busy interval a slice.

mod accelerators;
mod coprocessors;

use super::sink::Sink;
use crate::output::Fault;
use flash::media::dies::observe::{Observer as CommandObserver, Tenure};
use flash::media::dies::op::{Class, OpKind};
use kernel::Time;
use proto::IoOp;
use std::cell::RefCell;
use std::fmt::Arguments;
use std::path::Path;
use std::rc::Rc;
use workload::inject::{Observer as RequestObserver, Seen};

/// Events that a timeline holds, and as many again of accelerators and coprocessors; what comes after is left out and counted. A viewer has trouble with more.
pub(crate) const MAX_EVENTS: u64 = 1_000_000;

/// The tracks of requests, as a process of the format.
const REQUESTS: u32 = 1;

/// The tracks of a drive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracks {
    Channels,
    Dies,
}

/// The process that the tracks of the drive of this number are.
fn process(drive: u32, tracks: Tracks) -> u32 {
    REQUESTS + 1 + 2 * drive + u32::from(tracks == Tracks::Dies)
}

/// A timeline under way.
#[derive(Clone)]
pub(crate) struct Timeline(Rc<RefCell<State>>);

struct State {
    sink: Sink,
    events: u64,
    /// Events of accelerators and coprocessors: there are far fewer of them in the same time, and they are not to end with those of dies.
    acts: u64,
    left_out: u64,
    requests: u64,
    /// Tracks that have a name by now, by process.
    named: Vec<Vec<bool>>,
    /// How many of each have tracks; the processes of one kind are behind those of the one before.
    drives: u32,
    accelerators: u32,
    coprocessors: u32,
}

/// What a timeline has tracks of, by name; one drive needs none.
pub(crate) struct Shown<'a> {
    pub(crate) drives: Vec<&'a str>,
    pub(crate) accelerators: Vec<&'a str>,
    pub(crate) coprocessors: Vec<&'a str>,
}

/// What looks on at a drive, or at what else has dies.
pub(crate) struct Drive {
    timeline: Timeline,
    number: u32,
}

impl Timeline {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path, shown: &Shown<'_>) -> Result<Timeline, Fault> {
        let Shown { drives, accelerators, coprocessors } = shown;
        let mut sink = Sink::create(path)?;
        sink.write(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
        let mut processes = vec![(REQUESTS, "requests".to_owned())];
        for (number, drive) in (0..).zip(drives) {
            let of = if drives.len() > 1 { format!("{drive} ") } else { String::new() };
            processes.push((process(number, Tracks::Channels), format!("{of}channels")));
            processes.push((process(number, Tracks::Dies), format!("{of}dies")));
        }
        let first = process(drives.len() as u32, Tracks::Channels);
        let accelerated = accelerators.iter().map(|name| format!("{name} cores"));
        let driven =
            coprocessors.iter().flat_map(|name| [format!("{name} cores"), format!("{name} kernels")]);
        processes.extend((first..).zip(accelerated.chain(driven)));
        for (pid, name) in &processes {
            let comma = if *pid == REQUESTS { "" } else { "," };
            sink.write(format_args!(
                "{comma}\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            ));
        }
        let named = vec![Vec::new(); processes.len()];
        let state = State {
            sink,
            events: 0,
            acts: 0,
            left_out: 0,
            requests: 0,
            named,
            drives: drives.len() as u32,
            accelerators: accelerators.len() as u32,
            coprocessors: coprocessors.len() as u32,
        };
        Ok(Timeline(Rc::new(RefCell::new(state))))
    }

    /// What looks on at each drive, in their order.
    pub(crate) fn drives(&self) -> impl Iterator<Item = Drive> {
        let count = self.0.borrow().drives;
        (0..count).map(|number| Drive { timeline: self.clone(), number })
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

    /// Room for one more event of an accelerator or a coprocessor.
    fn has_room_for_act(&mut self) -> bool {
        let room = self.acts < MAX_EVENTS;
        *(if room { &mut self.acts } else { &mut self.left_out }) += 1;
        room
    }

    /// The first process behind those of drives.
    fn behind_drives(&self) -> u32 {
        process(self.drives, Tracks::Channels)
    }

    /// A slice of an accelerator or a coprocessor, with its arguments.
    fn act(
        &mut self,
        (pid, track): (u32, u32),
        (from, to): (Time, Time),
        name: Arguments<'_>,
        args: Arguments<'_>,
    ) {
        self.sink.write(format_args!(
            ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{track},\"name\":\"{name}\",\"ts\":{},\"dur\":{},\"args\":{{{args}}}}}",
            Micro(from),
            Micro(to - from)
        ));
    }

    /// Gives a track its name when it is first used.
    fn name(&mut self, pid: u32, track: u32, what: &str) {
        self.name_as(pid, track, format_args!("{what} {track}"));
    }

    fn name_as(&mut self, pid: u32, track: u32, name: Arguments<'_>) {
        let named = &mut self.named[pid as usize - 1];
        if named.len() <= track as usize {
            named.resize(track as usize + 1, false);
        }
        if !std::mem::replace(&mut named[track as usize], true) {
            self.sink.write(format_args!(
                ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":\"{name}\"}}}}"
            ));
        }
    }

    fn slice(&mut self, at: (u32, Tracks), name: &str, from: Time, to: Time, tenure: &Tenure) {
        if !self.has_room(1) {
            return;
        }
        let (pid, (track, what)) = match at {
            (drive, Tracks::Channels) => (process(drive, Tracks::Channels), (tenure.channel, "channel")),
            (drive, Tracks::Dies) => (process(drive, Tracks::Dies), (tenure.die, "die")),
        };
        self.name(pid, track, what);
        let Tenure { die, planes, units, suspends, .. } = tenure;
        self.sink.write(format_args!(
            ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{track},\"name\":\"{name}\",\"ts\":{},\"dur\":{},\"args\":{{\"die\":{die},\"planes\":{planes},\"units\":{units},\"suspends\":{suspends}}}}}",
            Micro(from),
            Micro(to - from)
        ));
    }
}

impl CommandObserver for Drive {
    fn ended(&mut self, tenure: &Tenure) {
        let mut state = self.timeline.0.borrow_mut();
        let (dies, channels) = ((self.number, Tracks::Dies), (self.number, Tracks::Channels));
        let name = command_name(tenure);
        state.slice(dies, &name, tenure.started, tenure.ended, tenure);
        if tenure.sent > tenure.started {
            let what = if tenure.kind == OpKind::Program { "data in" } else { "command" };
            state.slice(channels, what, tenure.started, tenure.sent, tenure);
        }
        if tenure.ended > tenure.moved {
            state.slice(channels, "data out", tenure.moved, tenure.ended, tenure);
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
