//! Knobs: values that a fit may change, each by one metric.

use super::base::{Base, us};
use super::point::Point;
use super::search::Range;
use std::ops::RangeInclusive;

/// Value of a spec: a time in microseconds, except for the spread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Knob {
    /// Time of a job's thread per request.
    Thread,
    /// Time of a controller core per command.
    Command,
    /// Sensing time of the first page type; the others keep their ratio to it.
    Read,
    /// Time of a dedicated core per write: before the acknowledgement or, if most of the work comes later, after it.
    Write,
    /// Time of such a core before a write is acknowledged, where work also follows later.
    Acknowledge,
    /// Spread of the times of write batches, as a multiple of their mean.
    Spread,
    /// Program time; passes keep their ratio.
    Program,
    /// Core time of GC per map unit.
    Moved,
    /// Time from the end of a command to running software.
    Interrupt,
    /// Exit latency of a link that sleeps while nothing is in flight.
    LinkExit,
    /// Exit latency of a core that sleeps while its thread waits.
    CoreExit,
    /// Idle time after which such a core sleeps.
    CoreAfter,
}

/// Upper bound of the search: core time per request that no controller needs, in microseconds.
const LONG: f64 = 20_000.0;
/// Spread at which one batch in a hundred dominates: no drive's writes differ more.
const WIDE: f64 = 10.0;

impl Knob {
    /// Spec key of the knob.
    pub(super) fn key(self, base: &Base) -> String {
        let (flash, host) = (&base.flash, &base.host);
        match self {
            Knob::Thread => format!("{host}.thread"),
            Knob::Command => format!("{flash}.host.controller.command"),
            Knob::Read => format!("{flash}.cell.read"),
            Knob::Write if base.upkeep().is_some() => {
                format!("{flash}.host.controller.write.upkeep.write")
            }
            Knob::Write if base.controller.write.is_some() => {
                format!("{flash}.host.controller.write.command")
            }
            Knob::Write => format!("{flash}.host.controller.write"),
            Knob::Acknowledge => format!("{flash}.host.controller.write.command"),
            Knob::Spread => format!("{flash}.host.controller.write.upkeep.spread"),
            Knob::Program => format!("{flash}.cell.program"),
            Knob::Moved => format!("{flash}.host.controller.moved"),
            Knob::Interrupt if base.is_sata => format!("{flash}.host.ahci.interrupt"),
            Knob::Interrupt => format!("{flash}.host.nvme.interrupt"),
            Knob::LinkExit => format!("{flash}.host.sleep.exit"),
            Knob::CoreExit => format!("{host}.sleep.exit"),
            Knob::CoreAfter => format!("{host}.sleep.after"),
        }
    }

    /// Value in the initial drive.
    pub(super) fn of(self, base: &Base) -> f64 {
        let controller = &base.controller;
        match self {
            Knob::Thread => base.thread,
            Knob::Command => us(controller.command.time()),
            Knob::Read => base.read[0],
            Knob::Write => {
                base.upkeep().map_or_else(|| Knob::Acknowledge.of(base), |upkeep| us(upkeep.write.time()))
            }
            Knob::Acknowledge => controller.write.as_ref().map_or(0.0, |write| us(write.command.time())),
            Knob::Spread => base.upkeep().and_then(|upkeep| upkeep.spread).unwrap_or(0.0),
            Knob::Program => base.program[0],
            Knob::Moved => controller.moved.map_or(0.0, |moved| us(moved.time())),
            Knob::Interrupt => base.interrupt,
            Knob::LinkExit => base.link_exit,
            Knob::CoreExit => base.core_exit,
            Knob::CoreAfter => 0.0,
        }
    }

    /// Search range.
    pub(super) fn range(self, base: &Base) -> Range {
        let start = self.of(base);
        match self {
            // Sensing and programming take some time.
            Knob::Read | Knob::Program => Range { least: start / 100.0, start, most: 100.0 * start },
            Knob::Spread => Range { least: 0.0, start, most: WIDE },
            _ => Range { least: 0.0, start, most: LONG },
        }
    }

    /// Formats the value for a spec.
    pub(super) fn value(self, base: &Base, at: f64) -> String {
        let list = |times: &[f64]| {
            let scaled: Vec<String> =
                times.iter().map(|time| format!("\"{}\"", time_text(time * at / times[0]))).collect();
            format!("[{}]", scaled.join(", "))
        };
        match self {
            Knob::Read => list(&base.read),
            Knob::Program => list(&base.program),
            Knob::Write if base.controller.write.is_none() => {
                format!("{{ cores = 1, command = \"{}\", unit = \"0us\" }}", time_text(at))
            }
            Knob::Spread => format!("{:.3}", at),
            _ => format!("\"{}\"", time_text(at)),
        }
    }

    /// Formats the value as an override.
    pub(super) fn assignment(self, base: &Base, at: f64) -> String {
        format!("{}={}", self.key(base), self.value(base, at))
    }
}

/// Formats microseconds, to the nanosecond.
fn time_text(us: f64) -> String {
    let ns = libm::round(us * 1e3);
    let text = format!("{:.3}", ns / 1e3);
    format!("{}us", text.trim_end_matches('0').trim_end_matches('.'))
}

// Detects whether the latency of an idle drive includes the exit latency of a host core or of a link.
//
// More requests in flight never make a request faster, unless something sleeps while nothing is in flight. A link
// sleeps when no command is outstanding; a core sleeps when its thread has waited long enough for one. Several threads
// with one request each distinguish them: each has a core of its own, and together they keep the link awake.

/// Ratio of means beyond noise, which is about 3 % for drives.
const LATER: f64 = 1.05;

/// Requests in flight at which a drive hardly queues.
const FEW: RangeInclusive<u64> = 2..=8;

/// Share of an awake drive's latency after which a waiting core sleeps: with two in flight its thread waits for half of
/// it on average, with one for all of it. *Chosen*: processors enter a state when they expect to stay for its target
/// residency, two to three times its exit latency (Linux, `drivers/idle/intel_idle.c`).
const PATIENCE: f64 = 2.0 / 3.0;

/// Evidence of sleep in the points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asleep<'p> {
    /// Point at which everything is awake.
    pub(super) awake: &'p Point,
    /// Mean latency of the point, in microseconds.
    pub(super) mean: f64,
    /// Knob to search: the exit latency of the link or of the core.
    pub(super) knob: Knob,
    /// Initial guess of the exit latency, in microseconds.
    pub(super) guess: f64,
}

impl Asleep<'_> {
    /// Idle time after which a core sleeps, in microseconds; `None` for a link, which sleeps at once.
    pub(super) fn after(&self) -> Option<f64> {
        (self.knob == Knob::CoreExit).then(|| patience(self.mean))
    }
}

/// Idle time after which a core sleeps that waits for an awake drive of this mean latency, in microseconds.
pub(super) fn patience(mean: f64) -> f64 {
    PATIENCE * mean
}

/// Random reads with few requests in flight, each with its mean.
pub(super) fn few<'p>(reads: &[&'p Point]) -> Vec<(&'p Point, f64)> {
    let of = reads.iter().copied().filter(|point| FEW.contains(&point.job.in_flight()));
    of.filter_map(|point| Some((point, point.figures.mean?))).collect()
}

/// Looks for sleep in random reads, and in the mean of an idle write, of a drive with this idle read.
pub(super) fn asleep<'p>(idle: &Point, reads: &[&'p Point], idle_write: Option<f64>) -> Option<Asleep<'p>> {
    let late = idle.figures.mean?;
    let few = few(reads);
    let (awake, mean) = few.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if late <= LATER * mean {
        return None;
    }
    let guess = late - mean;
    let threads =
        few.iter().filter(|(point, _)| point.job.depth == 1).min_by_key(|(point, _)| point.job.jobs);
    let is_core = match threads {
        Some((_, several)) => several * several > late * mean,
        // A link wakes for a write as for a read.
        None => idle_write.is_some_and(|write| write < guess),
    };
    let knob = if is_core { Knob::CoreExit } else { Knob::LinkExit };
    Some(Asleep { awake, mean, knob, guess })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_a_spec_has_them() {
        let loaded = machine::load("d3-s4610", &[]).expect("it is shipped");
        let base = Base::of(&loaded, "d3-s4610").expect("it has a drive");
        let written = [
            (Knob::Thread, 3.36),
            (Knob::Read, 30.6),
            (Knob::Write, 20.0),
            (Knob::Acknowledge, 7.5),
            (Knob::Spread, 0.25),
            (Knob::Interrupt, 0.0),
        ];
        let texts = written.map(|(knob, at)| knob.assignment(&base, at));
        assert_eq!(
            texts,
            [
                "host.thread=\"3.36us\"",
                "flash.cell.read=[\"30.6us\", \"45.9us\", \"30.6us\"]",
                "flash.host.controller.write.upkeep.write=\"20us\"",
                "flash.host.controller.write.command=\"7.5us\"",
                "flash.host.controller.write.upkeep.spread=0.250",
                "flash.host.ahci.interrupt=\"0us\"",
            ]
        );
        let set: Vec<String> = texts.to_vec();
        let read = Base::of(&machine::load("d3-s4610", &set).expect("it is taken"), "d3-s4610")
            .expect("it has a drive");
        for (knob, at) in written {
            assert!((knob.of(&read) - at).abs() < 1e-9, "{knob:?}");
        }
    }

    /// A drive whose reads and writes share their cores gets some for writes; one whose writes have cores keeps their
    /// other settings.
    #[test]
    fn writes_keep_what_is_said_of_them() {
        let base = |set: &[String]| {
            Base::of(&machine::load("pm9a3", set).expect("it is taken"), "pm9a3").expect("it has a drive")
        };
        let shared = base(&[]);
        let apart = Knob::Write.assignment(&shared, 4.0);
        assert_eq!(apart, "flash.host.controller.write={ cores = 1, command = \"4us\", unit = \"0us\" }");
        let spread = [apart, "flash.host.controller.write.spread=0.5".to_owned()];
        let own = Knob::Write.assignment(&base(&spread), 5.0);
        let writes = base(&[&spread[..], &[own]].concat()).controller.write.expect("it has cores for writes");
        assert_eq!((us(writes.command.time()), writes.spread), (5.0, Some(0.5)));
    }

    fn knob(texts: &[&str], idle_write: Option<f64>) -> Option<(Knob, f64)> {
        let points: Vec<Point> =
            texts.iter().map(|text| Point::parse("--point", text).expect("a point")).collect();
        let reads: Vec<&Point> = points.iter().collect();
        let found = asleep(&points[0], &reads, idle_write)?;
        Some((found.knob, found.guess))
    }

    const ONE: &str = "rw=randread,bs=4k,iodepth=1,clat=155us";

    const TWO: &str = "rw=randread,bs=4k,iodepth=2,clat=112us";

    #[test]
    fn several_in_flight_are_faster_only_where_something_sleeps() {
        assert_eq!(knob(&[ONE, TWO], None), Some((Knob::LinkExit, 43.0)));
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=2,clat=152us"], None), None);
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=64,clat=112us"], None), None);
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=2,iops=18k"], None), None);
    }

    #[test]
    fn several_threads_tell_a_core_from_a_link() {
        let late = "rw=randread,bs=4k,iodepth=1,numjobs=4,clat=150us";
        let early = "rw=randread,bs=4k,iodepth=1,numjobs=4,clat=115us";
        assert_eq!(knob(&[ONE, TWO, late], None), Some((Knob::CoreExit, 43.0)));
        assert_eq!(knob(&[ONE, TWO, early], None), Some((Knob::LinkExit, 43.0)));
        // An idle write that is over before a link would be awake.
        assert_eq!(knob(&[ONE, TWO], Some(38.0)), Some((Knob::CoreExit, 43.0)));
        assert_eq!(knob(&[ONE, TWO], Some(80.0)), Some((Knob::LinkExit, 43.0)));
    }
}
