//! Timeline as Chrome Trace Event JSON, for Perfetto and chrome://tracing.

use super::Micro;
use super::event::{Arg, Counter, Event, Names};
use std::io::{self, Write};

/// Writes a timeline. Overlapping events of one track become pairs of asynchronous events, which have names of their
/// own.
pub(super) fn write(
    sink: &mut dyn Write,
    names: &Names,
    events: &[Event],
    counters: &[Counter],
    left_out: u64,
) -> io::Result<()> {
    write!(sink, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (at, (pid, name)) in (1..).zip(&names.processes).enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(
            sink,
            "{comma}\n{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        )?;
    }
    for ((pid, track), name) in &names.tracks {
        write!(
            sink,
            ",\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{track},\"name\":\"thread_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        )?;
    }
    for (id, event) in events.iter().enumerate() {
        let ((pid, track), name) = (event.at, quoted(&names.events[event.name as usize]));
        let from = Micro(event.from);
        if event.overlaps {
            write!(
                sink,
                ",\n{{\"ph\":\"b\",\"cat\":\"request\",\"pid\":{pid},\"tid\":{track},\"id\":{id},\"name\":{name},\"ts\":{from},\"args\":{{"
            )?;
            args(sink, event)?;
            write!(
                sink,
                "}}}},\n{{\"ph\":\"e\",\"cat\":\"request\",\"pid\":{pid},\"tid\":{track},\"id\":{id},\"name\":{name},\"ts\":{}}}",
                Micro(event.to)
            )?;
        } else {
            write!(
                sink,
                ",\n{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{track},\"name\":{name},\"ts\":{from},\"dur\":{},\"args\":{{",
                Micro(event.to - event.from)
            )?;
            args(sink, event)?;
            write!(sink, "}}}}")?;
        }
    }
    for Counter { process, name, points, .. } in counters {
        for (at_ns, value) in points {
            write!(
                sink,
                ",\n{{\"ph\":\"C\",\"pid\":{process},\"name\":{},\"ts\":{},\"args\":{{\"value\":{value}}}}}",
                quoted(name),
                at_ns / 1e3
            )?;
        }
    }
    write!(sink, "\n],\"otherData\":{{\"events_left_out\":{left_out}}}}}\n")
}

fn args(sink: &mut dyn Write, event: &Event) -> io::Result<()> {
    for (at, (name, arg)) in event.args.list().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        match arg {
            Arg::Whole(number) => write!(sink, "{comma}\"{name}\":{number}")?,
            Arg::Time(time) => write!(sink, "{comma}\"{name}\":{}", Micro(time))?,
        }
    }
    Ok(())
}

/// Quotes text as JSON.
fn quoted(text: &str) -> serde_json::Value {
    text.into()
}
