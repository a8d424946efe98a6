//! A timeline as Chrome Trace Event JSON, which Perfetto and chrome://tracing open.

use super::Micro;
use super::event::{Arg, Counter, Event, Names};
use crate::observe::sink::Sink;

/// Writes a timeline. Events of one track that overlap are pairs of asynchronous events, which have names of their own.
pub(super) fn write(sink: &mut Sink, names: &Names, events: &[Event], counters: &[Counter], left_out: u64) {
    sink.write(format_args!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
    for (at, (pid, name)) in (1..).zip(&names.processes).enumerate() {
        let comma = if at == 0 { "" } else { "," };
        sink.write(format_args!(
            "{comma}\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        ));
    }
    for ((pid, track), name) in &names.tracks {
        sink.write(format_args!(
            ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        ));
    }
    for (id, event) in events.iter().enumerate() {
        let ((pid, track), name) = (event.at, quoted(&names.events[event.name as usize]));
        let from = Micro(event.from);
        if event.overlaps {
            sink.write(format_args!(
                ",\n{{\"ph\":\"b\",\"cat\":\"request\",\"pid\":{pid},\"tid\":{track},\"id\":{id},\"name\":{name},\"ts\":{from},\"args\":{{"
            ));
            args(sink, event);
            sink.write(format_args!(
                "}}}},\n{{\"ph\":\"e\",\"cat\":\"request\",\"pid\":{pid},\"tid\":{track},\"id\":{id},\"name\":{name},\"ts\":{}}}",
                Micro(event.to)
            ));
        } else {
            sink.write(format_args!(
                ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{track},\"name\":{name},\"ts\":{from},\"dur\":{},\"args\":{{",
                Micro(event.to - event.from)
            ));
            args(sink, event);
            sink.write(format_args!("}}}}"));
        }
    }
    for Counter { process, name, points, .. } in counters {
        for (at_ns, value) in points {
            sink.write(format_args!(
                ",\n{{\"ph\":\"C\",\"pid\":{process},\"name\":{},\"ts\":{},\"args\":{{\"value\":{value}}}}}",
                quoted(name),
                at_ns / 1e3
            ));
        }
    }
    sink.write(format_args!("\n],\"otherData\":{{\"events_left_out\":{left_out}}}}}\n"));
}

fn args(sink: &mut Sink, event: &Event) {
    for (at, (name, arg)) in event.args.list().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        match arg {
            Arg::Whole(number) => sink.write(format_args!("{comma}\"{name}\":{number}")),
            Arg::Time(time) => sink.write(format_args!("{comma}\"{name}\":{}", Micro(time))),
        }
    }
}

/// Text as JSON has it.
fn quoted(text: &str) -> serde_json::Value {
    text.into()
}
