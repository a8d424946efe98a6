//! What looks on at a run: the log of requests, the file of them, and the timeline of the device.

mod log;
mod requests;
mod sink;
mod timeline;

pub(crate) use log::RequestLog;
pub(crate) use requests::{RequestFile, keep};
pub(crate) use timeline::{TimelineFile, show};
