//! Looking on: who sees the requests without taking part, and who is told why they do not end.

use engine::Time;
use proto::{Account, IoRequest};

/// A request that has completed, with the moments of its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Its number in the order in which requests were issued, from zero.
    pub id: u64,
    /// The request; `at` is when it arrived.
    pub request: IoRequest,
    /// The injector's number of its flow.
    pub flow: u16,
    /// When its source handed it out.
    pub issued: Time,
    /// When the command went to the device.
    pub submitted: Time,
    /// When the device had answered.
    pub answered: Time,
    /// When the application knew.
    pub completed: Time,
}

/// Looks on at every completion, warm-up included.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// A request has completed; `account` is that of its last command, if accounts are kept and its target gives one.
    fn completed(&mut self, seen: &Seen, account: Option<&Account>);
}

impl Seen {
    /// From arrival to completion.
    pub fn latency(&self) -> Time {
        self.completed - self.request.at
    }
}

/// A request with the account of the command of it that ended last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explained {
    /// The request.
    pub seen: Seen,
    /// What it waited for inside its device; none where nothing gave an account, as of requests through the host's kernel.
    pub account: Option<Account>,
}

/// A request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// The request.
    pub request: IoRequest,
    /// The source it came from.
    pub source: u16,
    /// When its source handed it out.
    pub issued: Time,
    /// When the command went to the device, if it has.
    pub submitted: Option<Time>,
    /// When the device answered, if it has.
    pub answered: Option<Time>,
}
