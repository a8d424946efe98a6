//! What looks on at a run: the log of requests, the file of them, and the timeline of the device.

mod log;
mod requests;
mod sink;
mod timeline;

pub(crate) use log::RequestLog;
pub(crate) use requests::{RequestFile, keep};
pub(crate) use timeline::{Show, Shown, Timeline, show};

use proto::Account;
use workload::inject::{Observer, Seen};

/// Several observers in the place of one.
pub(crate) struct Several(pub(crate) Vec<Box<dyn Observer>>);

impl Observer for Several {
    fn completed(&mut self, seen: &Seen, account: Option<&Account>) {
        self.0.iter_mut().for_each(|one| one.completed(seen, account));
    }
}
