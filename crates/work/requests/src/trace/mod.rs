//! Block traces: any common format, plain or compressed, as a stream of [`proto::IoRequest`].
//!
//! Bytes are unpacked ([`text::Compression`], by content), split into lines of bounded length, and read by the parser of
//! one format ([`formats`], by content or by name). Requests then pass a sort window, are rebased exactly to time
//! zero, clipped, scaled and placed on the device. Nothing is guessed, skipped or moved without a line in
//! [`TraceNotes`]; what cannot be meant is a [`config::Diagnostic`] that names the line.
//!
//! ```text
//! Read -> input (unpack) -> lines -> format (parse) -> scan (count, refuse) -> inspect
//!                                                        '-> reader (sort, rebase, clip, scale, remap) -> convert
//! ```

// A diagnostic is returned once in the life of a reader: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod bytes;
mod clock;
mod convert;
mod detect;
mod fault;
mod field;
mod flows;
mod format;

mod fuzz;
mod human;
mod inspect;
mod moment;
mod notes;
mod objects;
mod options;
mod order;
mod parts;
mod reader;
mod record;
mod remap;
mod scan;
mod together;

pub use convert::{ConvertOptions, Converted, Sample, convert, written_formats};
pub use detect::{Detected, OtherFiles, Reading, detect, what_is};
pub use fault::FaultKind;
pub use flows::FlowNames;
pub use format::{FormatInfo, formats};
pub use inspect::{Activity, FlowSummary, Inspection, SizeSummary, inspect, inspect_read};
pub use moment::Moment;
pub use notes::{Skipped, TraceNotes};
pub use options::{Action, Align, Remap, SORT_WINDOW, TimeScale, TimeUnit, TraceOptions, Volumes};
pub use parts::parts;
pub use reader::TraceReader;
pub use together::open_together;

#[doc(hidden)]
pub use fuzz::fuzz_one;
