//! How traces are read: options of the command line, and the `[trace]` table of a sweep.

use config::Diagnostic;
use config::units::Duration;
use kernel::Time;
use serde::Deserialize;
use workload::trace::{Remap, TraceOptions};

/// How traces are read.
#[derive(clap::Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TraceArgs {
    /// Trace format; recognised by content if left out
    #[arg(long)]
    format: Option<String>,
    /// Unit of the trace's times (s, ms, us, 100ns, ns, ps)
    #[arg(long)]
    time_unit: Option<String>,
    /// Bytes of the trace's address unit
    #[arg(long)]
    sector: Option<u64>,
    /// Multiplies every time (0.5 is twice as fast)
    #[arg(long)]
    time_scale: Option<String>,
    /// Drops requests before this time
    #[arg(long)]
    start: Option<String>,
    /// Drops requests from this time on
    #[arg(long)]
    end: Option<String>,
    /// Reads at most this many requests
    #[arg(long)]
    max_requests: Option<u64>,
    /// Skips and counts bad lines
    #[arg(long)]
    pub(crate) lenient: bool,
    /// What happens to requests beyond the device: fit (the default of a run: as recorded if all fit, else compact), error, wrap or compact; counted and said
    #[arg(long)]
    remap: Option<String>,
    /// The blkparse event that stands for a request (D, Q, ...)
    #[arg(long)]
    action: Option<String>,
    /// Requests held back to put an unsorted trace in order
    #[arg(long)]
    sort_window: Option<usize>,
}

impl TraceArgs {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let default = TraceOptions::default();
        Ok(TraceOptions {
            format: self.format.clone(),
            time_unit: self.time_unit.as_deref().map(str::parse).transpose()?,
            sector: self.sector,
            time_scale: self.time_scale.as_deref().map(str::parse).transpose()?.unwrap_or(default.time_scale),
            start: self.start.as_deref().map(time).transpose()?,
            end: self.end.as_deref().map(time).transpose()?,
            max_requests: self.max_requests,
            lenient: self.lenient,
            capacity: None,
            remap: self.remap.as_deref().map(str::parse).transpose()?.unwrap_or(remap),
            action: self.action.as_deref().map(str::parse).transpose()?,
            sort_window: self.sort_window.unwrap_or(default.sort_window),
        })
    }
}

/// Reads a time such as `10ms`.
///
/// # Errors
/// It is none.
pub(crate) fn time(text: &str) -> Result<Time, Diagnostic> {
    text.parse::<Duration>().map(|d| d.time())
}
