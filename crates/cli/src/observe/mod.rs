//! What looks on at a run: the log of requests and the timeline of the device.

mod log;
mod sink;
mod timeline;

pub(crate) use log::RequestLog;
pub(crate) use timeline::{Shown, Timeline};

use workload::inject::{Observer, Seen};

/// Several observers in the place of one.
pub(crate) struct Several(pub(crate) Vec<Box<dyn Observer>>);

impl Observer for Several {
    fn completed(&mut self, seen: &Seen) {
        self.0.iter_mut().for_each(|one| one.completed(seen));
    }
}
