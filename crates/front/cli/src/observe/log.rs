//! The log of requests, a line each, in the layout of fio's per-I/O latency logs (fio documentation, "Log File
//! Formats"): `time (ms), value (ns), direction, bytes, offset, priority, issue time (ns)`.

use super::sink::Sink;
use crate::output::Fault;
use proto::{Account, IoOp};
use requests::inject::{Observer, Seen};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

/// A log under way. Warm-up is logged too; the lines are in the order of completion.
#[derive(Clone)]
pub(crate) struct RequestLog(Rc<RefCell<Sink>>);

impl RequestLog {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<RequestLog, Fault> {
        Ok(RequestLog(Rc::new(RefCell::new(Sink::create(path)?))))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The log is not whole.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        self.0.borrow_mut().finish()
    }
}

/// fio's number of a direction.
const fn direction(op: IoOp) -> u8 {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim | IoOp::WriteZeroes => 2,
        IoOp::Flush => 3,
    }
}

impl Observer for RequestLog {
    fn completed(&mut self, seen: &Seen, _: Option<&Account>) {
        let Seen { request, submitted, completed, .. } = seen;
        self.0.borrow_mut().write(format_args!(
            "{}, {}, {}, {}, {}, 0, {}\n",
            completed.ps() / 1_000_000_000,
            (*completed - request.at).ps() / 1_000,
            direction(request.op),
            request.bytes,
            request.offset,
            submitted.ps() / 1_000
        ));
    }
}
