//! How runs are read, in the words of the user: warm-up, and the options of traces.

use config::{Diagnostic, Place};
use machine::Warmup;
use requests::trace::{Remap, TraceOptions};
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How runs are read, as the file says it.
#[derive(Clone)]
pub(crate) struct Words {
    /// When the measured windows begin.
    pub(crate) warmup: Option<String>,
    /// Reading of traces.
    pub(crate) trace: TraceText,
}

/// `5000` requests or `10ms` of simulated time.
///
/// # Errors
/// It is neither.
pub fn warmup(text: &str) -> Result<Warmup, Diagnostic> {
    text.parse().map_err(|d: Diagnostic| d.help("--warmup takes a number of requests or a time"))
}

/// How traces are read: the `[trace]` table of a sweep, and the options of the command line.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename = "TraceArgs", default, deny_unknown_fields)]
pub struct TraceText {
    /// Trace format; recognised by content if left out.
    pub format: Option<String>,
    /// Columns of a table from left to right.
    pub columns: Option<String>,
    /// Unit of the trace's times.
    pub time_unit: Option<String>,
    /// Bytes of the trace's address unit.
    pub sector: Option<u64>,
    /// Factor of every time.
    pub time_scale: Option<String>,
    /// Time of the first request that is read.
    pub start: Option<String>,
    /// Time from which on requests are dropped.
    pub end: Option<String>,
    /// Most requests that are read.
    pub max_requests: Option<u64>,
    /// Whether bad lines are skipped and counted.
    pub lenient: bool,
    /// What happens to requests beyond the device.
    pub remap: Option<String>,
    /// Time zero of several traces.
    pub align: Option<String>,
    /// Whether the volumes of traces have addresses of their own.
    pub volumes: Option<String>,
    /// The blkparse event that stands for a request.
    pub action: Option<String>,
    /// Requests held back to put an unsorted trace in order.
    pub sort_window: Option<usize>,
}

impl TraceText {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let default = TraceOptions::default();
        Ok(TraceOptions {
            format: self.format.clone(),
            columns: self.columns.clone(),
            time_unit: parsed("--time-unit", self.time_unit.as_ref())?,
            sector: self.sector,
            time_scale: parsed("--time-scale", self.time_scale.as_ref())?.unwrap_or(default.time_scale),
            timed: default.timed,
            start: parsed("--start", self.start.as_ref())?,
            end: parsed("--end", self.end.as_ref())?,
            align: parsed("--align", self.align.as_ref())?.unwrap_or(default.align),
            volumes: parsed("--volumes", self.volumes.as_ref())?.unwrap_or(default.volumes),
            max_requests: self.max_requests,
            lenient: self.lenient,
            capacity: None,
            remap: parsed("--remap", self.remap.as_ref())?.unwrap_or(remap),
            action: parsed("--action", self.action.as_ref())?,
            sort_window: self.sort_window.unwrap_or(default.sort_window),
            others: programs::FILES,
        })
    }
}

/// The value of an option, if it is given.
fn parsed<T: FromStr<Err = Diagnostic>>(
    option: &str,
    text: Option<&String>,
) -> Result<Option<T>, Diagnostic> {
    let at = |text: &String| Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() };
    text.map(|text| text.parse().map_err(|fault: Diagnostic| fault.at(at(text)))).transpose()
}
