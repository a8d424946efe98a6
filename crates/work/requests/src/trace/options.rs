//! Options for reading a trace.

use std::fmt;
use std::str::FromStr;

use config::Diagnostic;
use serde::Serialize;

use super::Moment;
use crate::trace::detect::OtherFiles;

/// Options for reading a trace. The default reads every request as it was recorded and is strict.
#[derive(Clone)]
pub struct TraceOptions {
    /// Name of the format ([`crate::trace::formats`]); `None` recognises it by content.
    pub format: Option<String>,
    /// Columns of a table, from left to right (`time,op,offset,size`), for a table without a header that names them.
    pub columns: Option<String>,
    /// Unit of the trace's times, if it differs from the format's.
    pub time_unit: Option<TimeUnit>,
    /// Bytes per address unit, for formats that count in sectors (512 by default).
    pub sector: Option<u64>,
    /// Factor applied to every time.
    pub time_scale: TimeScale,
    /// True if the times of requests are used. If not, every request has time zero: the length of the trace and the
    /// sort window then do not matter.
    pub timed: bool,
    /// Start of the clip, counted from the first request: earlier requests are dropped, and it becomes time zero.
    pub start: Option<Moment>,
    /// End of the clip, counted from the first request: requests at or after it are dropped.
    pub end: Option<Moment>,
    /// Time zero of several traces that are read side by side.
    pub align: Align,
    /// Relation of the addresses of volumes.
    pub volumes: Volumes,
    /// Number of requests after which reading stops.
    pub max_requests: Option<u64>,
    /// True to skip and count bad lines, and to clamp and count late requests.
    pub lenient: bool,
    /// Bytes of the device that the requests must fit; `None` disables the check.
    pub capacity: Option<u64>,
    /// Treatment of requests beyond the device.
    pub remap: Remap,
    /// Event of blkparse that represents a request; `None` takes `D`, or `Q` without any `D`.
    pub action: Option<Action>,
    /// Number of requests held back to sort an unsorted trace.
    pub sort_window: usize,
    /// Files that could be mistaken for a trace.
    pub others: OtherFiles,
}

/// Default of [`TraceOptions::sort_window`].
pub const SORT_WINDOW: usize = 65_536;

/// Formats the user's options without `others`: digests of runs include them, and function addresses differ between
/// processes.
impl fmt::Debug for TraceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceOptions {
            format,
            columns,
            time_unit,
            sector,
            time_scale,
            timed,
            start,
            end,
            align,
            volumes,
            max_requests,
            lenient,
            capacity,
            remap,
            action,
            sort_window,
            others: _,
        } = self;
        f.debug_struct("TraceOptions")
            .field("format", format)
            .field("columns", columns)
            .field("time_unit", time_unit)
            .field("sector", sector)
            .field("time_scale", time_scale)
            .field("timed", timed)
            .field("start", start)
            .field("end", end)
            .field("align", align)
            .field("volumes", volumes)
            .field("max_requests", max_requests)
            .field("lenient", lenient)
            .field("capacity", capacity)
            .field("remap", remap)
            .field("action", action)
            .field("sort_window", sort_window)
            .finish()
    }
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            format: None,
            columns: None,
            time_unit: None,
            sector: None,
            time_scale: TimeScale::ONE,
            timed: true,
            start: None,
            end: None,
            align: Align::Clock,
            volumes: Volumes::Apart,
            max_requests: None,
            lenient: false,
            capacity: None,
            remap: Remap::Error,
            action: None,
            sort_window: SORT_WINDOW,
            others: OtherFiles::NONE,
        }
    }
}

impl TraceOptions {
    /// Refuses invalid values.
    pub(crate) fn check(&self) -> Result<(), Diagnostic> {
        if let Some(sector) = self.sector
            && !(1..=1 << 20).contains(&sector)
        {
            return Err(Diagnostic::new(format!("invalid sector size of {sector} bytes"))
                .help("--sector takes 1 B to 1 MiB, usually 512 or 4096"));
        }
        if let (Some(start), Some(end)) = (self.start, self.end)
            && start >= end
        {
            return Err(Diagnostic::new(format!("the clip from {start} to {end} is empty"))
                .help("--start must be earlier than --end"));
        }
        if self.capacity == Some(0) {
            return Err(Diagnostic::new("the device has zero bytes"));
        }
        let placed = [
            (self.remap != Remap::Error, "--remap needs the device capacity"),
            (self.volumes != Volumes::Apart, "--volumes needs a device"),
            (self.align != Align::Clock, "--align applies only to traces run side by side"),
        ];
        if let Some((_, what)) = placed.iter().find(|(given, _)| *given && self.capacity.is_none()) {
            return Err(Diagnostic::new(*what));
        }
        Ok(())
    }
}

/// A unit of time, a power of ten of picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Second,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millisecond,
    /// Microseconds.
    #[serde(rename = "us")]
    Microsecond,
    /// 100 ns, the tick of Windows FILETIME.
    #[serde(rename = "100ns")]
    Filetime,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanosecond,
    /// Picoseconds.
    #[serde(rename = "ps")]
    Picosecond,
}

impl TimeUnit {
    const ALL: [TimeUnit; 6] = [
        TimeUnit::Second,
        TimeUnit::Millisecond,
        TimeUnit::Microsecond,
        TimeUnit::Filetime,
        TimeUnit::Nanosecond,
        TimeUnit::Picosecond,
    ];

    /// Returns the name: `s`, `ms`, `us`, `100ns`, `ns`, `ps`.
    pub const fn name(self) -> &'static str {
        match self {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Microsecond => "us",
            TimeUnit::Filetime => "100ns",
            TimeUnit::Nanosecond => "ns",
            TimeUnit::Picosecond => "ps",
        }
    }
    /// Returns `k`, where the unit is 10^k ps.
    pub(crate) const fn exponent(self) -> u32 {
        match self {
            TimeUnit::Second => 12,
            TimeUnit::Millisecond => 9,
            TimeUnit::Microsecond => 6,
            TimeUnit::Filetime => 5,
            TimeUnit::Nanosecond => 3,
            TimeUnit::Picosecond => 0,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<TimeUnit, Diagnostic> {
        let names = TimeUnit::ALL.map(TimeUnit::name);
        let found = TimeUnit::ALL.into_iter().find(|unit| unit.name() == text);
        found.ok_or_else(|| Diagnostic::new(format!("unknown time unit `{text}`")).allowed(text, names))
    }
}

/// An exact positive ratio: 2 slows a trace to half its speed, 1/10 makes it ten times faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeScale {
    numerator: u64,
    denominator: u64,
}

impl TimeScale {
    /// Scale of recorded time.
    pub const ONE: TimeScale = TimeScale { numerator: 1, denominator: 1 };

    /// Creates `numerator / denominator`; `None` if either is zero.
    pub const fn new(numerator: u64, denominator: u64) -> Option<TimeScale> {
        if numerator == 0 || denominator == 0 { None } else { Some(TimeScale { numerator, denominator }) }
    }
    /// Returns the scale that shortens times by a further factor of `times`, if it can be represented.
    pub(crate) fn shortened(self, times: u64) -> Option<TimeScale> {
        TimeScale::new(self.numerator, self.denominator.checked_mul(times)?)
    }
    /// Returns the longest span that is at most `ps` after scaling.
    pub(crate) fn unscaled(self, ps: u64) -> u128 {
        u128::from(ps) * u128::from(self.denominator) / u128::from(self.numerator)
    }
    /// Returns `ps` scaled, rounded down; `None` beyond the range of `u128`.
    pub(crate) fn apply(self, ps: u128) -> Option<u128> {
        if self == TimeScale::ONE {
            return Some(ps);
        }
        Some(ps.checked_mul(u128::from(self.numerator))? / u128::from(self.denominator))
    }
}

impl fmt::Display for TimeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl FromStr for TimeScale {
    type Err = Diagnostic;
    /// Reads `2`, `0.5` or `1/3`.
    fn from_str(text: &str) -> Result<TimeScale, Diagnostic> {
        let ratio = match text.split_once('/') {
            Some((n, d)) => n.trim().parse().ok().zip(d.trim().parse().ok()),
            None => decimal_ratio(text),
        };
        ratio.and_then(|(n, d)| TimeScale::new(n, d)).ok_or_else(|| {
            Diagnostic::new(format!("`{text}` is not a time scale"))
                .help("a positive number or ratio: 2 (half speed), 0.5 (double speed), 1/3")
        })
    }
}

fn decimal_ratio(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?))
}

/// Treatment of requests that do not fit the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remap {
    /// As recorded if all requests of the trace come from one device and fit; otherwise, and for a pipe,
    /// [`Remap::Compact`].
    ///
    /// A file is read once more to find out, at most to the first request that does not fit.
    Fit,
    /// A request beyond the device is an error.
    Error,
    /// The offset modulo the capacity, moved down if the request would straddle the end.
    Wrap,
    /// Regions of 1 MiB are packed in the order of their first touch, separately for each flow; trims touch nothing.
    Compact,
}

impl Remap {
    const ALL: [(&'static str, Remap); 4] =
        [("fit", Remap::Fit), ("error", Remap::Error), ("wrap", Remap::Wrap), ("compact", Remap::Compact)];
}

impl Remap {
    /// Returns true if a reader packs regions; whether the trace fits unchanged was determined before.
    pub(crate) fn packs(self) -> bool {
        matches!(self, Remap::Compact | Remap::Fit)
    }
}

impl FromStr for Remap {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Remap, Diagnostic> {
        by_name("remap policy", text, &Remap::ALL)
    }
}

/// Time zero of several traces that are read side by side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// First request of all traces: they keep their relative times.
    Clock,
    /// First request of each trace.
    Start,
}

impl FromStr for Align {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Align, Diagnostic> {
        by_name("alignment", text, &[("clock", Align::Clock), ("start", Align::Start)])
    }
}

/// Relation of the addresses of volumes: each file is a volume, and so is each stream of a file whose format does not
/// say that its streams share a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Volumes {
    /// Separate addresses: byte 0 of one volume is not byte 0 of the others.
    Apart,
    /// Shared addresses: an address means the same byte in all volumes.
    One,
}

impl FromStr for Volumes {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Volumes, Diagnostic> {
        by_name("relation of volumes", text, &[("apart", Volumes::Apart), ("one", Volumes::One)])
    }
}

/// Event of blkparse that can represent a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// `Q`: queued by the application.
    Queue,
    /// `G`: given a request structure.
    Get,
    /// `I`: inserted into the scheduler.
    Insert,
    /// `D`: issued to the driver.
    Issue,
    /// `C`: completed.
    Complete,
}

impl Action {
    const ALL: [(&'static str, Action); 5] = [
        ("Q", Action::Queue),
        ("G", Action::Get),
        ("I", Action::Insert),
        ("D", Action::Issue),
        ("C", Action::Complete),
    ];

    /// Returns the letter that blkparse prints.
    pub const fn letter(self) -> u8 {
        match self {
            Action::Queue => b'Q',
            Action::Get => b'G',
            Action::Insert => b'I',
            Action::Issue => b'D',
            Action::Complete => b'C',
        }
    }
}

impl FromStr for Action {
    type Err = Diagnostic;
    fn from_str(text: &str) -> Result<Action, Diagnostic> {
        by_name("blkparse action", text, &Action::ALL)
    }
}

fn by_name<T: Copy>(what: &str, text: &str, all: &[(&'static str, T)]) -> Result<T, Diagnostic> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        Diagnostic::new(format!("unknown {what} `{text}`")).allowed(text, all.iter().map(|(name, _)| *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_read_are_no_part_of_a_digest() {
        let others =
            OtherFiles { inputs: |_, _| None, recordings: |_, all| all.then_some(("a file", "read it")) };
        let options = TraceOptions { others, ..TraceOptions::default() };
        assert_eq!(format!("{options:?}"), format!("{:?}", TraceOptions::default()));
    }
}
