//! Chrome traces: JSON events, read one by one.

use crate::profile::{Dims, Format, Profile, check};
use config::{Diagnostic, Place};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::Read;

/// Reads a trace: an object with `traceEvents`, or an array of events. Only kernels are kept in memory.
pub(super) fn read(source: &str, bytes: impl Read) -> Result<Profile, Diagnostic> {
    let mut trace = Trace {
        profile: super::profile(Format::ChromeTrace),
        starts: Vec::new(),
        event: Event::default(),
        has_events: false,
    };
    let mut json = serde_json::Deserializer::from_reader(bytes);
    let done = json.deserialize_any(Whole(&mut trace)).and_then(|()| json.end());
    done.map_err(|fault| explain(source, &fault))?;
    if !trace.has_events {
        return Err(Diagnostic::new(format!("{source} is JSON, but has no `traceEvents`"))
            .help("expected a Chrome trace of `torch.profiler`: export_chrome_trace, or on_trace_ready"));
    }
    let Trace { mut profile, starts, .. } = trace;
    profile.sort_by_start(&starts);
    Ok(profile)
}

fn explain(source: &str, fault: &serde_json::Error) -> Diagnostic {
    if let Some(kind) = fault.io_error_kind() {
        return super::unreadable(source, &std::io::Error::new(kind, fault.to_string()));
    }
    let place = Place {
        source: source.to_owned(),
        line: fault.line() as u64,
        column: fault.column() as u64,
        ..Place::default()
    };
    let text = fault.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    let (what, help) = if fault.is_eof() {
        (format!("the JSON is truncated: {text}"), "copy or record the profile again")
    } else if fault.is_data() {
        (text.to_owned(), "an event of a kernel has a name, ts and dur in us, and args with grid and block")
    } else {
        (format!("not JSON: {text}"), "copy or record the profile again")
    };
    Diagnostic::new(what).at(place).help(help)
}

struct Trace {
    profile: Profile,
    starts: Vec<f64>,
    event: Event,
    has_events: bool,
}

/// State of the event being read; its buffers are reused.
#[derive(Default)]
struct Event {
    category: String,
    phase: String,
    name: String,
    start_us: Number,
    duration_us: Number,
    grid: Sizes,
    block: Sizes,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Number {
    #[default]
    Missing,
    Other,
    Real(f64),
}

#[derive(Clone, Copy, Default)]
enum Sizes {
    #[default]
    Missing,
    Other,
    Three(Dims),
}

impl Event {
    fn clear(&mut self) {
        for text in [&mut self.category, &mut self.phase, &mut self.name] {
            text.clear();
        }
        (self.start_us, self.duration_us) = (Number::Missing, Number::Missing);
        (self.grid, self.block) = (Sizes::Missing, Sizes::Missing);
    }

    /// Returns whether the event is a kernel: `kernel`, or `Kernel` before 2022. Events without a phase are complete
    /// ones.
    fn is_kernel(&self) -> bool {
        self.category.eq_ignore_ascii_case("kernel") && (self.phase == "X" || self.phase.is_empty())
    }
}

impl Trace {
    /// Keeps the event if it is a kernel.
    fn keep<E: de::Error>(&mut self) -> Result<(), E> {
        let Event { name, start_us, duration_us, grid, block, .. } = &self.event;
        if !self.event.is_kernel() {
            return Ok(());
        }
        let number = self.starts.len();
        if name.is_empty() {
            return Err(E::custom(format!("kernel {number} has no name")));
        }
        let real = |value: Number, what: &str| match value {
            Number::Real(value) => Ok(value),
            Number::Missing => Err(E::custom(format!("kernel {number} (`{name}`) has no {what}"))),
            Number::Other => Err(E::custom(format!("kernel {number} (`{name}`): {what} is not a number"))),
        };
        let start = real(*start_us, "start (`ts`)")?;
        let duration_ns = 1e3 * real(*duration_us, "duration (`dur`)")?;
        check(duration_ns)
            .map_err(|fault| E::custom(format!("kernel {number} (`{name}`): {}", fault.one_line())))?;
        let three = |sizes: Sizes, what: &str| match sizes {
            Sizes::Missing => Ok(None),
            Sizes::Three(dims) => Ok(Some(dims)),
            Sizes::Other => Err(E::custom(format!(
                "kernel {number} (`{name}`): its {what} is not three whole numbers from 1"
            ))),
        };
        let (grid, block) = (three(*grid, "grid")?, three(*block, "block")?);
        self.profile.push(name, grid, block, duration_ns).map_err(|fault| E::custom(fault.one_line()))?;
        self.starts.push(start);
        Ok(())
    }
}

/// Visitor of the whole document.
struct Whole<'a>(&'a mut Trace);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut key = String::new();
        while map.next_key_seed(Text(&mut key))?.is_some() {
            if key == "traceEvents" {
                map.next_value_seed(Events(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        Events(self.0).visit_seq(seq)
    }
}

/// Visitor of the array of events.
struct Events<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.has_events = true;
        loop {
            if seq.next_element_seed(OneEvent(self.0))?.is_none() {
                return Ok(());
            }
        }
    }
}

/// Defines the visitor of a value of which only some types matter: all others are read as `Other`.
macro_rules! shapes {
    ($name:ident, $target:ty, $other:expr) => {
        struct $name<'a>(&'a mut $target);

        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.deserialize_any(self)
            }
        }

        impl $name<'_> {
            fn other<E>(self) -> Result<(), E> {
                $other(self.0);
                Ok(())
            }
        }
    };
}

/// Defines the methods for all types that do not matter.
macro_rules! others {
    ($($method:ident: $type:ty),*) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON value")
        }
        fn visit_unit<E: de::Error>(self) -> Result<(), E> {
            self.other()
        }
        $(fn $method<E: de::Error>(self, _: $type) -> Result<(), E> {
            self.other()
        })*
    };
}

fn skip_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

shapes!(Text, String, |text: &mut String| text.clear());

impl<'de> Visitor<'de> for Text<'_> {
    type Value = ();
    others!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
    fn visit_str<E: de::Error>(self, text: &str) -> Result<(), E> {
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        skip_map(map)?;
        self.other()
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        skip_seq(seq)?;
        self.other()
    }
}

shapes!(Real, Number, |number: &mut Number| *number = Number::Other);

impl<'de> Visitor<'de> for Real<'_> {
    type Value = ();
    others!(visit_bool: bool, visit_str: &str);
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.visit_f64(value as f64)
    }
    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        *self.0 = Number::Real(value);
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        skip_map(map)?;
        self.other()
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        skip_seq(seq)?;
        self.other()
    }
}

shapes!(Three, Sizes, |sizes: &mut Sizes| *sizes = Sizes::Other);

impl<'de> Visitor<'de> for Three<'_> {
    type Value = ();
    others!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        skip_map(map)?;
        self.other()
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let (mut sides, mut found) = ([0_u32; 3], 0);
        let mut number = Number::Missing;
        while seq.next_element_seed(Real(&mut number))?.is_some() {
            if let (Number::Real(value), Some(side)) = (number, sides.get_mut(found))
                && value >= 1.0
                && value <= f64::from(u32::MAX)
                && value.fract() == 0.0
            {
                *side = value as u32;
            }
            found += 1;
        }
        let is_whole = found == 3 && sides.iter().all(|side| *side > 0);
        *self.0 = if is_whole { Sizes::Three(Dims(sides)) } else { Sizes::Other };
        Ok(())
    }
}

shapes!(OneEvent, Trace, |_: &mut Trace| ());

impl<'de> Visitor<'de> for OneEvent<'_> {
    type Value = ();
    others!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        skip_seq(seq)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let event = &mut self.0.event;
        event.clear();
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Cat => map.next_value_seed(Text(&mut event.category))?,
                Key::Ph => map.next_value_seed(Text(&mut event.phase))?,
                Key::Name => map.next_value_seed(Text(&mut event.name))?,
                Key::Ts => map.next_value_seed(Real(&mut event.start_us))?,
                Key::Dur => map.next_value_seed(Real(&mut event.duration_us))?,
                Key::Args => map.next_value_seed(Arguments(event))?,
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        // Checked here, so that a fault has the place of the event.
        self.0.keep()
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Key {
    Cat,
    Ph,
    Name,
    Ts,
    Dur,
    Args,
    #[serde(other)]
    Other,
}

shapes!(Arguments, Event, |_: &mut Event| ());

impl<'de> Visitor<'de> for Arguments<'_> {
    type Value = ();
    others!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        skip_seq(seq)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Argument>()? {
            match key {
                Argument::Grid => map.next_value_seed(Three(&mut self.0.grid))?,
                Argument::Block => map.next_value_seed(Three(&mut self.0.block))?,
                Argument::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Argument {
    Grid,
    Block,
    #[serde(other)]
    Other,
}
