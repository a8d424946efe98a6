//! Timeline in Perfetto's own format: a stream of protobuf messages (Perfetto, protos/perfetto/trace); only the fields
//! in use are declared. Times are nanoseconds: shorter events begin and end together.

use super::event::{Arg, Counter, Event, Names, Track};
use engine::Time;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(double, optional, tag = "44")]
    double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    uint_value: Option<u64>,
    #[prost(double, optional, tag = "5")]
    double_value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct InternedData {
    #[prost(message, repeated, tag = "2")]
    event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "3")]
    debug_annotation_names: Vec<Interned>,
}

#[derive(Clone, PartialEq, Message)]
struct Interned {
    #[prost(uint64, optional, tag = "1")]
    iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(message, optional, tag = "3")]
    process: Option<ProcessDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, optional, tag = "6")]
    process_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    unit_name: Option<String>,
}

/// Id of the only sequence of packets.
const SEQUENCE: u32 = 1;
const STATE_CLEARED: u32 = 1;
const NEEDS_STATE: u32 = 2;
const BEGIN: i32 = 1;
const END: i32 = 2;
const COUNTER: i32 = 4;

/// Writes a timeline.
pub(super) fn write(
    sink: &mut dyn Write,
    names: &Names,
    events: &[Event],
    counters: &[Counter],
) -> io::Result<()> {
    let mut out = Writer { sink, fault: Ok(()), tracks: 0 };
    let of_args: BTreeSet<&str> =
        events.iter().flat_map(|event| event.args.list()).map(|(name, _)| name).collect();
    let of_args: BTreeMap<&str, u64> = of_args.into_iter().zip(1..).collect();
    let flows = flows(events);
    let interned = |(iid, name): (u64, &str)| Interned { iid: Some(iid), name: Some(name.to_owned()) };
    out.packet(TracePacket {
        sequence_flags: Some(STATE_CLEARED),
        interned_data: Some(InternedData {
            event_names: (1..).zip(names.events.iter().map(String::as_str)).map(interned).collect(),
            debug_annotation_names: of_args.iter().map(|(name, iid)| interned((*iid, name))).collect(),
        }),
        ..TracePacket::default()
    });
    let processes: Vec<u64> = (1..).zip(&names.processes).map(|(pid, name)| out.process(pid, name)).collect();
    for counter in counters {
        out.counter(processes[counter.process as usize - 1], counter);
    }
    for ((at, lane), events) in lanes(events) {
        let name = names.tracks.get(&at).map_or("", String::as_str);
        let uuid = out.track(processes[at.0 as usize - 1], name, lane);
        out.slices(uuid, &events, &of_args, &flows);
    }
    out.fault
}

/// Ids of arrows, by the event that one leads to.
fn flows(events: &[Event]) -> BTreeMap<(Track, Time), u64> {
    let wanted: BTreeSet<(Track, Time)> = events.iter().filter_map(|event| event.joins).collect();
    let there = events.iter().map(|event| (event.at, event.from)).filter(|event| wanted.contains(event));
    there.collect::<BTreeSet<_>>().into_iter().zip(1..).collect()
}

type Lanes<'a> = BTreeMap<(Track, usize), Vec<&'a Event>>;

/// Events by track, sorted by their beginnings, the longest first. A track has as many lanes as needed for each event
/// of a lane to follow the one before or, where events may nest, to lie within it.
fn lanes(events: &[Event]) -> Lanes<'_> {
    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by_key(|event| (event.at, event.from, std::cmp::Reverse(event.to)));
    let mut lanes = Lanes::new();
    for of_track in sorted.chunk_by(|a, b| a.at == b.at) {
        // Ends of the open events of each lane; for events that do not nest, lanes by the end of their last event.
        let mut open: Vec<Vec<Time>> = Vec::new();
        let mut free: BTreeSet<(Time, usize)> = BTreeSet::new();
        for event in of_track {
            let lane = if event.overlaps {
                let last = free.range(..=(event.from, usize::MAX)).next_back().copied();
                if let Some(last) = last {
                    free.remove(&last);
                }
                let lane = last.map_or(free.len(), |(_, lane)| lane);
                free.insert((event.to, lane));
                lane
            } else {
                let fits = |open: &mut Vec<Time>| {
                    while open.pop_if(|to| *to <= event.from).is_some() {}
                    open.last().is_none_or(|to| event.to <= *to)
                };
                let lane = open.iter_mut().position(fits).unwrap_or(open.len());
                if lane == open.len() {
                    open.push(Vec::new());
                }
                open[lane].push(event.to);
                lane
            };
            lanes.entry((event.at, lane)).or_default().push(*event);
        }
    }
    lanes
}

struct Writer<'a> {
    sink: &'a mut dyn Write,
    /// First error; nothing is written after it.
    fault: io::Result<()>,
    tracks: u64,
}

impl Writer<'_> {
    fn packet(&mut self, packet: TracePacket) {
        let packet = TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..packet };
        // Field 1 of the outer message, length-delimited.
        let mut bytes = vec![0x0a];
        // The buffer grows as needed: encoding cannot fail.
        let _ = packet.encode_length_delimited(&mut bytes);
        if self.fault.is_ok() {
            self.fault = self.sink.write_all(&bytes);
        }
    }

    fn describe(&mut self, track: TrackDescriptor) -> u64 {
        self.tracks += 1;
        let track_descriptor = Some(TrackDescriptor { uuid: Some(self.tracks), ..track });
        self.packet(TracePacket { track_descriptor, ..TracePacket::default() });
        self.tracks
    }

    fn process(&mut self, pid: i32, name: &str) -> u64 {
        let process = Some(ProcessDescriptor { pid: Some(pid), process_name: Some(name.to_owned()) });
        self.describe(TrackDescriptor { process, ..TrackDescriptor::default() })
    }

    fn track(&mut self, parent: u64, name: &str, lane: usize) -> u64 {
        let name = if lane == 0 { name.to_owned() } else { format!("{name} +{lane}") };
        self.describe(TrackDescriptor {
            name: Some(name),
            parent_uuid: Some(parent),
            ..TrackDescriptor::default()
        })
    }

    fn counter(&mut self, parent: u64, counter: &Counter) {
        let uuid = self.describe(TrackDescriptor {
            name: Some(counter.name.clone()),
            parent_uuid: Some(parent),
            counter: Some(CounterDescriptor { unit_name: Some(counter.unit.to_owned()) }),
            ..TrackDescriptor::default()
        });
        for (at_ns, value) in &counter.points {
            let event = TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(uuid),
                double_counter_value: Some(*value),
                ..TrackEvent::default()
            };
            self.event(*at_ns as u64, event);
        }
    }

    fn event(&mut self, timestamp: u64, event: TrackEvent) {
        self.packet(TracePacket {
            timestamp: Some(timestamp),
            sequence_flags: Some(NEEDS_STATE),
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    /// Writes the slices of a lane: nested slices begin after, and end before, the outer one.
    fn slices(
        &mut self,
        uuid: u64,
        events: &[&Event],
        names: &BTreeMap<&str, u64>,
        flows: &BTreeMap<(Track, Time), u64>,
    ) {
        let ns = |time: Time| time.ps() / 1000;
        let end = TrackEvent { r#type: Some(END), track_uuid: Some(uuid), ..TrackEvent::default() };
        let mut open: Vec<Time> = Vec::new();
        for event in events {
            while let Some(to) = open.pop_if(|to| *to <= event.from) {
                self.event(ns(to), end.clone());
            }
            let annotation = |(name, arg): (&str, Arg)| {
                let mut annotation =
                    DebugAnnotation { name_iid: names.get(name).copied(), ..DebugAnnotation::default() };
                match arg {
                    Arg::Whole(number) => annotation.uint_value = Some(number),
                    Arg::Time(time) => annotation.double_value = Some(time.ps() as f64 / 1e6),
                }
                annotation
            };
            let ends_of_arrows = [event.joins, Some((event.at, event.from))];
            let begin = TrackEvent {
                r#type: Some(BEGIN),
                track_uuid: Some(uuid),
                name_iid: Some(u64::from(event.name) + 1),
                debug_annotations: event.args.list().map(annotation).collect(),
                flow_ids: ends_of_arrows.iter().flatten().filter_map(|end| flows.get(end)).copied().collect(),
                ..TrackEvent::default()
            };
            self.event(ns(event.from), begin);
            open.push(event.to);
        }
        while let Some(to) = open.pop() {
            self.event(ns(to), end.clone());
        }
    }
}
