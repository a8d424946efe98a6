//! The file of a timeline.

use super::sink::Sink;
use crate::output::Fault;
use crate::trace_args::at;
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Observers, Plan};
use std::path::Path;
use timeline::{Format, Show, Timeline};

/// A timeline, and where it goes.
pub(crate) struct TimelineFile {
    sink: Sink,
    format: Format,
    timeline: Timeline,
}

impl TimelineFile {
    /// Makes the file: Perfetto's own format if its name ends so, else Chrome's.
    ///
    /// # Errors
    /// It cannot be made, or the system cannot be read.
    pub(crate) fn create(path: &Path, show: Show, plan: &Plan) -> Result<TimelineFile, Fault> {
        let is_pftrace = path.extension().is_some_and(|ending| ending == "pftrace");
        Ok(TimelineFile {
            timeline: Timeline::new(show, &plan.load()?),
            sink: Sink::create(path)?,
            format: if is_pftrace { Format::Pftrace } else { Format::Json },
        })
    }

    /// What looks on at the run for it.
    pub(crate) fn observers(&self) -> Observers {
        self.timeline.observers()
    }

    /// Writes the file, with the series of a result as curves; what a reader must know of events that it does not hold.
    ///
    /// # Errors
    /// The file is not whole.
    pub(crate) fn finish(mut self, document: &Document) -> Result<Vec<String>, Fault> {
        // The sink remembers what fails.
        let told = self.timeline.write(document, self.format, &mut self.sink).unwrap_or_default();
        self.sink.finish()?;
        Ok(told)
    }
}

/// What `--timeline-show` asks for.
///
/// # Errors
/// Anything but `all`, `slowest` and a window.
pub(crate) fn show(text: &str) -> Result<Show, Fault> {
    let help = "`all`, `window=1ms..2ms`, or `slowest`: what was going on around the slowest request";
    timeline::show(text)
        .map_err(|what| Fault::Input(at("--timeline-show", text, Diagnostic::new(what).help(help))))
}
