//! Values that a fit may change, one figure each.

use super::base::{Base, us};
use super::search::Range;

/// A value of a spec: a time in microseconds, but for the spread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Knob {
    /// What a job's thread needs a request.
    Thread,
    /// What a core needs a command.
    Command,
    /// Sensing of the first page type; the others keep their ratio to it.
    Read,
    /// What a core of its own needs a write: before it is acknowledged or, if most of the work comes later, afterwards.
    Write,
    /// What such a core needs before a write is acknowledged, where work comes later too.
    Acknowledge,
    /// How much the times of batches of writes differ, as a multiple of their mean.
    Spread,
    /// Programs; passes keep their ratio.
    Program,
    /// What collection needs of a core a map unit.
    Moved,
    /// From the end of a command to software running.
    Interrupt,
    /// Exit latency of a link that sleeps while nothing is in flight.
    LinkExit,
    /// Exit latency of a core that sleeps while its thread waits.
    CoreExit,
    /// Idle time after which such a core sleeps.
    CoreAfter,
}

/// Microseconds of a core that no controller needs for a request: a search ends there.
const LONG: f64 = 20_000.0;
/// Batches of which one in a hundred is all that counts: no drive's writes differ more.
const WIDE: f64 = 10.0;

impl Knob {
    /// The key of a spec.
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

    /// Its value in the drive that a fit begins with.
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

    /// Where it is looked for.
    pub(super) fn range(self, base: &Base) -> Range {
        let start = self.of(base);
        match self {
            // Nothing is sensed or programmed in no time.
            Knob::Read | Knob::Program => Range { least: start / 100.0, start, most: 100.0 * start },
            Knob::Spread => Range { least: 0.0, start, most: WIDE },
            _ => Range { least: 0.0, start, most: LONG },
        }
    }

    /// The value as a spec has it.
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

    /// As an override.
    pub(super) fn assignment(self, base: &Base, at: f64) -> String {
        format!("{}={}", self.key(base), self.value(base, at))
    }
}

/// Microseconds, to the nanosecond.
fn time_text(us: f64) -> String {
    let ns = libm::round(us * 1e3);
    let text = format!("{:.3}", ns / 1e3);
    format!("{}us", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::spec::Loaded;

    #[test]
    fn values_are_written_as_a_spec_has_them() {
        let loaded = Loaded::load("d3-s4610", &[]).expect("it is shipped");
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
        let read = Base::of(&Loaded::load("d3-s4610", &set).expect("it is taken"), "d3-s4610")
            .expect("it has a drive");
        for (knob, at) in written {
            assert!((knob.of(&read) - at).abs() < 1e-9, "{knob:?}");
        }
    }

    /// A drive whose reads and writes share their cores gets some for writes; one whose writes have cores keeps the rest of what is said of them.
    #[test]
    fn writes_keep_what_is_said_of_them() {
        let base = |set: &[String]| {
            Base::of(&Loaded::load("pm9a3", set).expect("it is taken"), "pm9a3").expect("it has a drive")
        };
        let shared = base(&[]);
        let apart = Knob::Write.assignment(&shared, 4.0);
        assert_eq!(apart, "flash.host.controller.write={ cores = 1, command = \"4us\", unit = \"0us\" }");
        let spread = [apart, "flash.host.controller.write.spread=0.5".to_owned()];
        let own = Knob::Write.assignment(&base(&spread), 5.0);
        let writes = base(&[&spread[..], &[own]].concat()).controller.write.expect("it has cores for writes");
        assert_eq!((us(writes.command.time()), writes.spread), (5.0, Some(0.5)));
    }
}
