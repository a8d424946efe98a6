//! Block traces: any common format, plain or compressed, as a stream of [`proto::IoRequest`].
//!
//! Bytes are unpacked ([`text::Compression`], by content), split into lines of bounded length, and read by the parser
//! of one format ([`formats`], by content or by name). Requests then pass a sort window, are rebased exactly to time
//! zero, clipped, scaled and placed on the device. Nothing is guessed, skipped or moved without a line in
//! [`TraceNotes`]; invalid input is a [`config::Diagnostic`] that names the line.
//!
//! ```text
//! Read -> input (unpack) -> lines -> format (parse) -> scan (count, refuse) -> inspect
//!                                                        '-> reader (sort, rebase, clip, scale, remap) -> convert
//! ```

// A reader returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod convert;
mod detect;
mod field;
mod format;

mod human;
mod inspect;
mod options;
mod order;
mod reader;
mod record;
mod remap;
mod scan;
mod together;

pub use convert::{ConvertOptions, Converted, Sample, convert, written_formats};
pub use detect::{Detected, OtherFiles, Reading, detect, what_is};
pub use format::{FormatInfo, formats};
pub use inspect::{Activity, FlowSummary, Inspection, SizeSummary, inspect, inspect_read};
pub use options::{Action, Align, Remap, SORT_WINDOW, TimeScale, TimeUnit, TraceOptions, Volumes};
pub use reader::TraceReader;
pub use record::{FaultKind, Skipped, TraceNotes};
pub use together::{open_together, parts};

use config::{Diagnostic, units::Duration};
use engine::Time;
use record::Fault;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use std::{fmt, io::Cursor, str::FromStr};

// Numbers in binary records.

/// A binary record; its numbers are little-endian unless it says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) record: &'a [u8],
    pub(crate) big_endian: bool,
}

impl<'a> Bytes<'a> {
    pub(crate) fn little(record: &'a [u8]) -> Bytes<'a> {
        Bytes { record, big_endian: false }
    }

    fn number(&self, at: usize, len: usize) -> u64 {
        let bytes = self.record.get(at..at + len).unwrap_or_default().iter();
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.big_endian { bytes.fold(0, add) } else { bytes.rev().fold(0, add) }
    }
    /// Returns the 16-bit number at a byte of the record; zero beyond its end.
    pub(crate) fn u16(&self, at: usize) -> u64 {
        self.number(at, 2)
    }
    /// Returns a 32-bit number, as [`Bytes::u16`].
    pub(crate) fn u32(&self, at: usize) -> u64 {
        self.number(at, 4)
    }
    /// Returns a 64-bit number, as [`Bytes::u16`].
    pub(crate) fn u64(&self, at: usize) -> u64 {
        self.number(at, 8)
    }
}

/// Returns a fault about the bytes of a field.
pub(crate) fn fault(
    kind: FaultKind,
    field: &'static str,
    at: usize,
    len: usize,
    allowed: &'static str,
) -> Fault {
    Fault { kind, field, at, len, allowed }
}

// The entry point of a fuzzer.

/// Reads `data` in every possible way; the first byte chooses options. Panics if the reader breaks its contract.
pub fn fuzz_one(data: &[u8], others: OtherFiles) {
    let Some((choice, content)) = data.split_first() else {
        return;
    };
    let names: Vec<&str> = formats().map(|info| info.name).collect();
    let options = TraceOptions {
        format: (choice & 1 != 0).then(|| names[usize::from(choice >> 1) % names.len()].to_owned()),
        lenient: choice & 2 != 0,
        capacity: (choice & 4 != 0).then_some(64 << 20),
        remap: [Remap::Error, Remap::Wrap, Remap::Compact, Remap::Fit][usize::from(choice >> 3) % 4],
        sort_window: usize::from(choice >> 5),
        time_scale: TimeScale::new(1, 1 + u64::from(choice >> 6)).unwrap_or(TimeScale::ONE),
        others,
        ..TraceOptions::default()
    };
    in_order_and_on_the_device(content, &options);
    let plain = TraceOptions { format: options.format.clone(), others, ..TraceOptions::default() };
    if let Ok(inspection) = inspect_read("fuzz", Cursor::new(content.to_vec()), &plain) {
        assert!(!inspection.to_string().is_empty());
        assert!(inspection.requests > 0);
    }
    if let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(content.to_vec()), &options) {
        let to = ConvertOptions { to: "csv".to_owned(), sample: None, lenient: false };
        // The writer receives everything that the reader accepts; it must not refuse anything itself.
        let _ = convert(&mut reader, &to, &mut std::io::sink());
    }
}

fn in_order_and_on_the_device(content: &[u8], options: &TraceOptions) {
    let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(content.to_vec()), options) else {
        return;
    };
    let mut last = engine::Time::ZERO;
    // A request that `compact` scatters can have any number of pieces.
    for _ in 0..10_000 {
        let Ok(Some(request)) = reader.next() else {
            break;
        };
        assert!(request.at >= last, "{} after {last}", request.at);
        last = request.at;
        let end = request.offset.checked_add(request.bytes);
        assert!(end.is_some_and(|end| options.capacity.is_none_or(|capacity| end <= capacity)));
    }
    let _ = reader.notes().warnings();
}

// Places of objects that a trace identifies by a key instead of an address.

/// Alignment of objects in bytes: *chosen*, the page of most drives.
const ALIGN: u64 = 4096;

/// Places objects in order of first access. Memory grows with the number of objects.
#[derive(Default)]
pub(crate) struct Objects {
    /// Offset of each object, and the number of bytes reserved for it.
    places: FxHashMap<u64, (u64, u64)>,
    end: u64,
}

impl Objects {
    /// Returns the offset of the object `key`, with room for `bytes`; an object that has outgrown its room gets a new
    /// place. `None` beyond 2^64 bytes.
    pub(crate) fn place(&mut self, key: u64, bytes: u64) -> Option<u64> {
        if let Some(&(at, room)) = self.places.get(&key)
            && bytes <= room
        {
            return Some(at);
        }
        let room = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        let at = self.end;
        self.end = at.checked_add(room)?;
        self.places.insert(key, (at, room));
        Some(at)
    }

    /// Converts a text key to a number: a 64-bit hash. The chance that any two of a billion keys collide is 3 in 100.
    pub(crate) fn key(text: &[u8]) -> u64 {
        // FNV-1a, then the finaliser of SplitMix64: keys that differ in the last digit lie far apart in the table.
        let fnv = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

// Times of a trace, which may exceed the range of the simulator's clock.

/// A span of a trace's time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(u128);

impl Moment {
    /// Returns the span in picoseconds.
    pub const fn ps(self) -> u128 {
        self.0
    }
}

impl From<Time> for Moment {
    fn from(time: Time) -> Moment {
        Moment(u128::from(time.ps()))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&human::span(self.0))
    }
}

impl FromStr for Moment {
    type Err = Diagnostic;
    /// Reads any duration, including longer ones: `10ms`, `300d`.
    fn from_str(text: &str) -> Result<Moment, Diagnostic> {
        let refused = match text.parse::<Duration>() {
            Ok(duration) => return Ok(duration.time().into()),
            Err(refused) => refused,
        };
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let count = text[..split].parse::<u64>().ok();
        let unit = format!("1{}", text[split..].trim_start()).parse::<Duration>().ok();
        let ps = count.zip(unit).map(|(count, unit)| u128::from(count) * u128::from(unit.time().ps()));
        ps.map(Moment).ok_or(refused)
    }
}

// 32-bit clocks, which wrap to zero.

/// Spans of 2^32 ns, 2^32 times 100 ns, 2^32 us and 2^32 ms, in picoseconds.
const PERIODS: [u128; 4] = [1_000 << 32, 100_000 << 32, 1_000_000 << 32, 1_000_000_000 << 32];

/// Unwraps the times of a clock that wraps to zero.
///
/// A clock has wrapped if a time is more than half a period earlier than the previous one, and the latest so far was
/// in the last eighth of the period: an unsorted trace of an hour does not reach it.
#[derive(Default)]
pub(crate) struct Clock {
    /// Latest time as recorded.
    latest: u128,
    /// Previous time as recorded.
    last: u128,
    /// Period of the clock, once it has wrapped.
    period: u128,
    turns: u64,
}

impl Clock {
    /// Returns the unwrapped time of a request recorded at `at`, in picoseconds.
    pub(crate) fn time(&mut self, at: u128) -> u128 {
        let candidate = PERIODS.iter().find(|period| (*period / 8 * 7..**period).contains(&self.latest));
        let period = if self.turns > 0 { Some(self.period) } else { candidate.copied() };
        let mut turns = self.turns;
        match period {
            Some(period) if self.last.saturating_sub(at) > period / 2 => {
                turns += 1;
                (self.turns, self.period, self.last) = (turns, period, at);
            }
            // A straggler from before the clock wrapped.
            Some(period) if turns > 0 && at.saturating_sub(self.last) > period / 2 => turns -= 1,
            _ => self.last = at,
        }
        self.latest = self.latest.max(at);
        at + u128::from(turns) * self.period
    }

    /// Returns how often it has wrapped.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the period of the clock in picoseconds; zero if it has not wrapped.
    pub(crate) fn period(&self) -> u128 {
        self.period
    }
}

// Streams of a trace: devices, volumes, hosts, files.

/// Number of flows with their own name; the rest share [`FlowNames::OTHER`].
const NAMED: usize = u16::MAX as usize;

/// Maximum length of a name in bytes: 65,535 of them must stay small.
pub(crate) const MAX_NAME: usize = 255;

/// Numbers the streams of a trace in the order they first appear.
#[derive(Clone, Debug, Default)]
pub struct FlowNames {
    ids: FxHashMap<Box<[u8]>, u16>,
    names: Vec<String>,
    last_key: Vec<u8>,
    last_id: Option<u16>,
    shared: u64,
}

impl FlowNames {
    /// Flow shared by all names after the first 65,535.
    pub const OTHER: u16 = u16::MAX;

    /// Returns the names, indexed by flow.
    pub fn names(&self) -> &[String] {
        &self.names
    }
    /// Returns the name of a flow.
    pub fn name(&self, flow: u16) -> &str {
        self.names.get(usize::from(flow)).map_or("other", String::as_str)
    }
    /// Returns the number of requests that share the flow `other`.
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// Returns the number of the flow named `key`; `None` if the name is too long.
    pub(crate) fn number(&mut self, key: &[u8]) -> Option<u16> {
        // Requests of one stream come in runs.
        if self.last_id.is_some() && self.last_key == key {
            return self.last_id;
        }
        let id = match self.ids.get(key) {
            Some(&id) => id,
            None if key.len() > MAX_NAME => return None,
            None if self.names.len() == NAMED => {
                self.shared += 1;
                return Some(FlowNames::OTHER);
            }
            None => self.add(key),
        };
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_id = Some(id);
        Some(id)
    }

    fn add(&mut self, key: &[u8]) -> u16 {
        let id = self.names.len() as u16;
        let name = text::shown(key, MAX_NAME);
        self.names.push(if name.is_empty() { "unnamed".to_owned() } else { name });
        self.ids.insert(key.into(), id);
        id
    }
}

impl Serialize for FlowNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, Moment, Objects, *};

    #[test]
    fn objects_lie_in_the_order_of_their_first_touch_and_move_when_they_outgrow_their_room() {
        let mut objects = Objects::default();
        let places = [(7, 100), (9, 5000), (7, 4096), (7, 4097), (9, 1), (7, 1)]
            .map(|(key, bytes)| objects.place(key, bytes));
        assert_eq!(places, [0, 4096, 0, 12_288, 4096, 12_288].map(Some));
        assert_eq!(objects.place(1, u64::MAX), None);
        assert_ne!(Objects::key(b"a1"), Objects::key(b"a2"));
    }

    #[test]
    fn a_moment_may_be_beyond_the_clock() {
        const DAY: u128 = 86_400_000_000_000_000;
        let ps = |text: &str| text.parse::<Moment>().map(Moment::ps);
        assert_eq!(ps("10ms"), Ok(10_000_000_000));
        assert_eq!(ps("1.5h"), Ok(DAY / 16));
        assert_eq!(ps("300d"), Ok(300 * DAY));
        assert_eq!(ps("86400000 s"), Ok(1000 * DAY));
        for bad in ["", "d", "300", "300x", "-300d", "1e3d"] {
            assert!(ps(bad).is_err(), "{bad}");
        }
    }

    /// Truncates times in units of `unit` ps to the lower part, as a 32-bit clock records them.
    fn through(times: &[u64], unit: u128) -> (Vec<u64>, u64) {
        let mut clock = Clock::default();
        let recorded = times.iter().map(|time| u128::from(time % (1 << 32)) * unit);
        let seen = recorded.map(|at| (clock.time(at) / unit) as u64).collect();
        (seen, clock.turns())
    }

    #[test]
    fn a_clock_of_32_bits_is_counted_on() {
        for unit in [1_000, 100_000, 1_000_000, 1_000_000_000] {
            // Steps of a tenth of the period, with two requests in the wrong order around the third wrap.
            let mut times: Vec<u64> = (0..50).map(|n| n * 429_496_729).collect();
            times.swap(30, 31);
            assert_eq!(through(&times, unit), (times, 4), "{unit}");
        }
    }

    #[test]
    fn what_is_not_sorted_has_no_such_clock() {
        // Two recordings of 3,600 s in succession, in us; and a time that goes back by less than half.
        for times in [vec![0, 3_600_000_000, 0, 3_600_000_000], vec![4_200_000_000, 2_500_000_000]] {
            assert_eq!(through(&times, 1_000_000), (times, 0));
        }
        assert_eq!(through(&[5_000_000_000, 10], 1_000_000_000_000).1, 0);
    }

    #[test]
    fn names_beyond_the_last_number_share_one_flow_and_are_counted() {
        let mut flows = FlowNames::default();
        for n in 0..65_535_u32 {
            assert_eq!(flows.number(n.to_string().as_bytes()), Some(n as u16));
        }
        assert_eq!(flows.number(b"one too many"), Some(FlowNames::OTHER));
        assert_eq!(flows.number(b"two too many"), Some(FlowNames::OTHER));
        assert_eq!(flows.number(b"17"), Some(17));
        assert_eq!(flows.shared(), 2);
        assert_eq!(flows.name(FlowNames::OTHER), "other");
        assert_eq!(flows.name(17), "17");
    }
}
