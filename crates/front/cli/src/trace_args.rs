//! How traces are read: options of the command line.

use crate::number;
use config::units::Duration;
use config::{Diagnostic, Place};
use engine::Time;
use requests::trace::{Remap, TraceOptions};
use sweep::TraceText;

/// How traces are read.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Trace format; recognised by content if left out
    #[arg(long)]
    format: Option<String>,
    /// What the columns of a table are, from left to right, such as time_us,op,lba_512,size_bytes; `-` passes over one
    #[arg(long, value_name = "NAMES")]
    columns: Option<String>,
    /// Unit of the trace's times (s, ms, us, 100ns, ns, ps)
    #[arg(long)]
    time_unit: Option<String>,
    /// Bytes of the trace's address unit
    #[arg(long, value_parser = number::whole)]
    sector: Option<u64>,
    /// Multiplies every time (0.5 is twice as fast)
    #[arg(long)]
    time_scale: Option<String>,
    /// Drops requests before this time, counted from the first request of all traces; it may be beyond the clock (300d)
    #[arg(long)]
    start: Option<String>,
    /// Drops requests from this time on, counted alike
    #[arg(long)]
    end: Option<String>,
    /// Reads at most this many requests
    #[arg(long, value_parser = number::whole)]
    max_requests: Option<u64>,
    /// Skips and counts bad lines
    #[arg(long)]
    pub(crate) lenient: bool,
    /// What happens to requests beyond the device: fit (the default of a run: as recorded if all fit, else compact), error, wrap or compact; counted and said
    #[arg(long)]
    remap: Option<String>,
    /// Time zero of several traces: clock (the default: the first request of all, so that each keeps its distance) or start (the first
    /// request of each)
    #[arg(long)]
    align: Option<String>,
    /// Whether the volumes of traces have addresses of their own: apart (the default: each file and each stream in it) or one (all are
    /// the same volume)
    #[arg(long)]
    volumes: Option<String>,
    /// The blkparse event that stands for a request (D, Q, ...)
    #[arg(long)]
    action: Option<String>,
    /// Requests held back to put an unsorted trace in order
    #[arg(long, value_parser = number::count)]
    sort_window: Option<usize>,
}

impl TraceArgs {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let TraceArgs {
            format,
            columns,
            time_unit,
            sector,
            time_scale,
            start,
            end,
            max_requests,
            lenient,
            remap: beyond,
            align,
            volumes,
            action,
            sort_window,
        } = self.clone();
        let text = TraceText {
            format,
            columns,
            time_unit,
            sector,
            time_scale,
            start,
            end,
            max_requests,
            lenient,
            remap: beyond,
            align,
            volumes,
            action,
            sort_window,
        };
        text.options(remap)
    }
}

/// A fault in the value of an option.
pub(crate) fn at(option: &str, text: &str, fault: Diagnostic) -> Diagnostic {
    fault.at(Place { source: option.to_owned(), text: text.to_owned(), ..Place::default() })
}

/// Reads a time such as `10ms`.
///
/// # Errors
/// It is none.
pub(crate) fn time(text: &str) -> Result<Time, Diagnostic> {
    text.parse::<Duration>().map(|d| d.time())
}
