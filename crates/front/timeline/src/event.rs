//! Elements of a timeline: spans of time on tracks, with names and arguments, and curves, which are the series of a
//! result.

use super::{REQUESTS, State, Timeline, Tracks, process};
use compute::vliw::{Act, Done, Observer};
use engine::Time;
use machine::result::{Document, metrics};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};

/// Track: its process, counted from one, and its number there.
pub(super) type Track = (u32, u32);

/// Span of time on a track.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: Track,
    pub(super) from: Time,
    pub(super) to: Time,
    /// Index of the event's name.
    pub(super) name: u32,
    /// True if other events of the track may overlap it.
    pub(super) overlaps: bool,
    /// Event that it waited for: its track, and the time when it began.
    pub(super) joins: Option<(Track, Time)>,
    pub(super) args: Args,
}

/// Arguments of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Args {
    None,
    Request { bytes: u64, offset: u64 },
    Command { die: u32, planes: u32, units: u32, suspends: u8 },
    Screen { kernel: u32, microblock: u32, screen: u32 },
    Section { kernel: u32, stalled: Time },
    Step(u32),
    Stalled(Time),
    Bytes(u64),
    Core(Time),
}

/// Value of an argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    Whole(u64),
    Time(Time),
}

impl Args {
    /// Names and values of the arguments. Times are in microseconds, as their names say.
    pub(super) fn list(&self) -> impl Iterator<Item = (&'static str, Arg)> + use<> {
        let whole = |name, value: u32| Some((name, Arg::Whole(value.into())));
        let wide = |name, value| Some((name, Arg::Whole(value)));
        let time = |name, value| Some((name, Arg::Time(value)));
        let list = match *self {
            Args::None => [None; 4],
            Args::Request { bytes, offset } => [wide("bytes", bytes), wide("offset", offset), None, None],
            Args::Command { die, planes, units, suspends } => [
                whole("die", die),
                whole("planes", planes),
                whole("units", units),
                whole("suspends", suspends.into()),
            ],
            Args::Screen { kernel, microblock, screen } => {
                [whole("kernel", kernel), whole("microblock", microblock), whole("screen", screen), None]
            }
            Args::Section { kernel, stalled } => {
                [whole("kernel", kernel), time("stalled_us", stalled), None, None]
            }
            Args::Step(step) => [whole("step", step), None, None, None],
            Args::Stalled(stalled) => [time("stalled_us", stalled), None, None, None],
            Args::Bytes(bytes) => [wide("bytes", bytes), None, None, None],
            Args::Core(core) => [time("core_us", core), None, None, None],
        };
        list.into_iter().flatten()
    }
}

/// Curve over time.
pub(super) struct Counter {
    /// Process of the curve.
    pub(super) process: u32,
    pub(super) name: String,
    pub(super) unit: &'static str,
    /// Time in nanoseconds, and the value from then on.
    pub(super) points: Vec<(f64, f64)>,
}

/// Names of processes, tracks and events.
#[derive(Default)]
pub(super) struct Names {
    pub(super) processes: Vec<String>,
    pub(super) tracks: BTreeMap<Track, String>,
    pub(super) events: Vec<String>,
    known: BTreeMap<String, u32>,
    text: String,
}

impl Names {
    /// Creates names from those of processes.
    pub(super) fn of(processes: Vec<String>) -> Names {
        Names { processes, ..Names::default() }
    }

    /// Index of an event's name, added if new.
    pub(super) fn event(&mut self, name: Arguments<'_>) -> u32 {
        self.text.clear();
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(name);
        if let Some(known) = self.known.get(&self.text) {
            return *known;
        }
        let number = self.events.len() as u32;
        self.events.push(self.text.clone());
        self.known.insert(self.text.clone(), number);
        number
    }

    /// Names a track when it is first used.
    pub(super) fn track(&mut self, track: Track, name: Arguments<'_>) {
        self.tracks.entry(track).or_insert_with(|| name.to_string());
    }
}

// Tracks of accelerators: cores, firmware, and locks on data sections.

/// Track of Flashvisor's core; Storengine's follows. Both come after those of workers.
const FIRMWARE: u32 = 64;

/// First track of locks, one per kernel.
const LOCKS: u32 = 128;

/// Observer of an accelerator.
pub(super) struct Cores {
    timeline: Timeline,
    /// Process of the track.
    pid: u32,
}

impl Timeline {
    /// Observers of each accelerator, in order.
    pub(super) fn accelerators(&self) -> impl Iterator<Item = Cores> {
        let (first, count) = {
            let state = self.0.borrow();
            (state.behind_drives(), state.accelerators)
        };
        (first..first + count).map(|pid| Cores { timeline: self.clone(), pid })
    }
}

impl Observer for Cores {
    fn done(&mut self, done: &Done<'_>) {
        let (mut state, pid) = (self.timeline.0.borrow_mut(), self.pid);
        let Done { act, kernel, program, from, to } = *done;
        let kernel = kernel.unwrap_or_default();
        let at = (from, to);
        match act {
            Act::Screen { worker, microblock, screen } => {
                state.names.track((pid, worker.into()), format_args!("worker {worker}"));
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("{program} {kernel}"),
                    Args::Screen { kernel, microblock, screen },
                );
            }
            Act::Section { worker, stalled } => {
                state.names.track((pid, worker.into()), format_args!("worker {worker}"));
                state.act(
                    (pid, worker.into()),
                    at,
                    format_args!("section"),
                    Args::Section { kernel, stalled },
                );
            }
            Act::Flashvisor => {
                state.names.track((pid, FIRMWARE), format_args!("Flashvisor"));
                state.act((pid, FIRMWARE), at, format_args!("message"), Args::None);
            }
            Act::Storengine => {
                state.names.track((pid, FIRMWARE + 1), format_args!("Storengine"));
                state.act((pid, FIRMWARE + 1), at, format_args!("work"), Args::None);
            }
            Act::Waits { array } => state.lock((pid, LOCKS + kernel), ("waits", array), program, at),
            Act::Holds { array } => state.lock((pid, LOCKS + kernel), ("holds", array), program, at),
        }
    }
}

impl State {
    /// Adds a kernel's lock on a data section; locks overlap.
    fn lock(&mut self, at: (u32, u32), (what, array): (&str, &str), program: &str, (from, to): (Time, Time)) {
        let kernel = at.1 - LOCKS;
        self.names.track(at, format_args!("locks of kernel {kernel}"));
        let name = self.names.event(format_args!("{program} {kernel} {what} {array}"));
        self.acts.add(Event { at, from, to, name, overlaps: true, joins: None, args: Args::None });
    }
}

/// Curves of every series: those of requests beside requests, those of a drive beside its channels; limited to a span
/// of time if given.
pub(super) fn curves_of(document: &Document, drives: u32, span: Option<(Time, Time)>) -> Vec<Counter> {
    let metrics = metrics::all();
    let unit = |key: &str, name: &str| {
        let key = format!("{key}.*.{name}");
        metrics.iter().find(|metric| metric.key == key).map_or("", |metric| metric.unit)
    };
    let mut counters = of_series(&serde_json::json!(document.io.series), REQUESTS, span);
    for counter in &mut counters {
        counter.unit = unit("io.series", &counter.name);
    }
    for (number, flash) in (0..drives).zip(&document.flash) {
        let series = serde_json::json!(flash.series);
        for mut counter in of_series(&series, process(number, Tracks::Channels), span) {
            counter.unit = unit("flash.*.series", &counter.name);
            counters.push(counter);
        }
    }
    counters
}

fn of_series(series: &Value, process: u32, span: Option<(Time, Time)>) -> Vec<Counter> {
    let mut curves = BTreeMap::<&str, Vec<(f64, f64)>>::new();
    let is_shown = |at_ns: f64, width_ns: f64| {
        span.is_none_or(|(from, to)| at_ns < to.as_ns_f64() && at_ns + width_ns > from.as_ns_f64())
    };
    for window in series.as_array().into_iter().flatten().filter_map(Value::as_object) {
        let ns = |name: &str| window.get(name).and_then(Value::as_f64).unwrap_or_default();
        let at_ns = ns("start_ns");
        if !is_shown(at_ns, ns("width_ns")) {
            continue;
        }
        for (name, value) in window.iter().filter(|(name, _)| !["start_ns", "width_ns"].contains(&&***name)) {
            if let Some(value) = value.as_f64() {
                curves.entry(name).or_default().push((at_ns, value));
            }
        }
    }
    let counter = |(name, points): (&str, _)| Counter { process, name: name.to_owned(), unit: "", points };
    curves.into_iter().map(counter).collect()
}
