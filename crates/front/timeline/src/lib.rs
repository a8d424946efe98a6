//! Timeline of a run. Each busy interval is a slice: requests, channels and dies, cores and data sections of
//! accelerators, and cores, steps and transfers of coprocessors with the phases of the host's program for each kernel.
//! Arrows lead from requests to the dies that they waited for; the result's series are curves.
//!
//! * Knows trace formats of Perfetto and Chrome, and events of components.
//! * Does not know why a component was busy.
//! * Read first: `record.rs`.

mod coprocessors;
mod event;
mod json;
mod pftrace;
mod record;

use engine::Time;
use event::{Args, Event, Names, Track};
use machine::result::Document;
use machine::run::Observers;
use nand::dies::observe::{Observer as CommandObserver, Tenure};
use nand::dies::op::{Class, OpKind};
use proto::{Account, IoOp};
use record::Record;
use requests::inject::{Observer as RequestObserver, Seen};
use spec::Loaded;
use std::cell::RefCell;
use std::fmt::Arguments;
use std::io::{self, Write};
use std::rc::Rc;

pub use record::{Show, show, window};

/// Process of the tracks of requests.
const REQUESTS: u32 = 1;

/// Tracks of a drive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tracks {
    Channels,
    Dies,
}

/// Process of these tracks of a drive.
fn process(drive: u32, tracks: Tracks) -> u32 {
    REQUESTS + 1 + 2 * drive + u32::from(tracks == Tracks::Dies)
}

/// Output format of a timeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Perfetto's protobuf format.
    Pftrace,
    /// Chrome's Trace Event JSON.
    Json,
}

/// Timeline being recorded.
#[derive(Clone)]
pub struct Timeline(Rc<RefCell<State>>);

struct State {
    names: Names,
    events: Record,
    /// Events of accelerators and coprocessors. They are far fewer than those of dies in the same time, and have a
    /// limit of their own.
    acts: Record,
    /// Number of components of each kind with tracks; the processes of one kind follow those of the one before.
    drives: u32,
    accelerators: u32,
    coprocessors: u32,
}

/// Observer of a drive, or of another component with dies.
struct Drive {
    timeline: Timeline,
    number: u32,
}

impl Timeline {
    /// Creates a timeline of every drive, accelerator and coprocessor of a system. Tracks of a single drive omit its
    /// name.
    pub fn new(show: Show, loaded: &Loaded) -> Timeline {
        let spec = &loaded.spec;
        let governed = spec.accelerator.iter().filter_map(|part| {
            let storage = part.link("storage")?;
            Some((part.name.as_str(), spec.group_flash.get(storage.number)?.name.as_str()))
        });
        let (accelerators, flash): (Vec<&str>, Vec<&str>) = governed.unzip();
        let drives: Vec<&str> = spec.flash.iter().map(|part| part.name.as_str()).chain(flash).collect();
        let coprocessors = spec.coprocessor.iter().map(|part| part.name.as_str());
        let mut processes = vec!["requests".to_owned()];
        for drive in &drives {
            let of = if drives.len() > 1 { format!("{drive} ") } else { String::new() };
            processes.extend(["channels", "dies"].map(|tracks| format!("{of}{tracks}")));
        }
        processes.extend(accelerators.iter().map(|name| format!("{name} cores")));
        processes.extend(coprocessors.flat_map(|name| [format!("{name} cores"), format!("{name} kernels")]));
        let state = State {
            names: Names::of(processes),
            events: Record::new(show),
            acts: Record::new(show),
            drives: drives.len() as u32,
            accelerators: accelerators.len() as u32,
            coprocessors: spec.coprocessor.len() as u32,
        };
        Timeline(Rc::new(RefCell::new(state)))
    }

    /// Observers of a run that feed the timeline.
    pub fn observers(&self) -> Observers {
        let (steps, phases): (Vec<_>, Vec<_>) = self.coprocessors().unzip();
        Observers {
            requests: Some(Box::new(self.clone())),
            commands: self.drives().map(|drive| Box::new(drive) as _).collect(),
            kernels: self.accelerators().map(|cores| Box::new(cores) as _).collect(),
            steps: steps.into_iter().map(|steps| Box::new(steps) as _).collect(),
            phases: phases.into_iter().map(|phases| Box::new(phases) as _).collect(),
        }
    }

    /// Observers of each drive, in order.
    fn drives(&self) -> impl Iterator<Item = Drive> {
        let count = self.0.borrow().drives;
        (0..count).map(|number| Drive { timeline: self.clone(), number })
    }

    /// Writes and clears the timeline, with the series of a result as curves; returns notes on events that it omits.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(&self, document: &Document, format: Format, out: &mut dyn Write) -> io::Result<Vec<String>> {
        let State { names, events: of_drives, acts, drives, .. } = &mut *self.0.borrow_mut();
        let left_out = of_drives.left_out() + acts.left_out();
        let counters = event::curves_of(document, *drives, of_drives.span());
        let (mut events, of_events) = of_drives.close();
        let (of_cores, of_acts) = acts.close();
        events.extend(of_cores);
        match format {
            Format::Pftrace => pftrace::write(out, names, &events, &counters)?,
            Format::Json => json::write(out, names, &events, &counters, left_out)?,
        }
        let told = [("requests, channels and dies", of_events), ("cores", of_acts)];
        Ok(told.into_iter().filter_map(|(what, told)| Some(format!("{what}: {}", told?))).collect())
    }
}

/// Time in microseconds, exact to the picosecond.
struct Micro(Time);

impl std::fmt::Display for Micro {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{:06}", self.0.ps() / 1_000_000, self.0.ps() % 1_000_000)
    }
}

impl State {
    /// First process after those of drives.
    fn behind_drives(&self) -> u32 {
        process(self.drives, Tracks::Channels)
    }

    /// Adds a slice of an accelerator or a coprocessor, with its arguments.
    fn act(&mut self, at: Track, (from, to): (Time, Time), name: Arguments<'_>, args: Args) {
        let name = self.names.event(name);
        self.acts.add(Event { at, from, to, name, overlaps: false, joins: None, args });
    }

    fn slice(&mut self, at: (u32, Tracks), name: &str, from: Time, to: Time, tenure: &Tenure) {
        let (at, what) = match at {
            (drive, Tracks::Channels) => ((process(drive, Tracks::Channels), tenure.channel), "channel"),
            (drive, Tracks::Dies) => ((process(drive, Tracks::Dies), tenure.die), "die"),
        };
        self.names.track(at, format_args!("{what} {}", at.1));
        let name = self.names.event(format_args!("{name}"));
        let Tenure { die, planes, units, suspends, .. } = *tenure;
        let args = Args::Command { die, planes, units, suspends };
        self.events.add(Event { at, from, to, name, overlaps: false, joins: None, args });
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
    fn completed(&mut self, seen: &Seen, account: Option<&Account>) {
        let State { names, events, acts, drives, .. } = &mut *self.0.borrow_mut();
        let name = match seen.request.op {
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::Trim => "trim",
            IoOp::WriteZeroes => "write zeroes",
            IoOp::Flush => "flush",
        };
        let (from, to) = (seen.request.at, seen.completed);
        let place =
            account.and_then(|account| account.place).filter(|place| u32::from(place.drive) < *drives);
        let at = (REQUESTS, seen.flow.into());
        names.track(at, format_args!("flow {}", seen.flow));
        events.add(Event {
            at,
            from,
            to,
            name: names.event(format_args!("{name}")),
            overlaps: true,
            joins: place.map(|place| ((process(place.drive.into(), Tracks::Dies), place.die), place.started)),
            args: Args::Request { bytes: seen.request.bytes, offset: seen.request.offset },
        });
        events.ended(from, to);
        acts.ended(from, to);
    }
}
