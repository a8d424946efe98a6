//! Due times of requests: rate caps and pauses.

use engine::Time;

use super::job::{Arrival, Direction, Each, Job, Rate, Think};
use super::{Purpose, Stream};

const PS_PER_S: u64 = 1_000_000_000_000;

/// Schedule of a rate-capped job; times count from the start of the job.
///
/// `linear`: a request is due when the rate would have carried everything issued before it. `poisson`: the gaps
/// between due times are exponential, with the mean of the rate at the smallest block size. Both follow fio's
/// `usec_for_io`, in picoseconds instead of whole microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    rate: Each<Option<Rate>>,
    arrival: Arrival,
    /// Mean gap of the Poisson process, in picoseconds.
    mean_gap: Each<f64>,
    /// Bytes or requests issued, as the rate counts.
    issued: Each<u64>,
    due: Each<Time>,
    stream: Stream,
}

impl Pace {
    /// Creates the schedule; none if no direction has a rate.
    pub(crate) fn new(job: &Job, seed: u64) -> Option<Pace> {
        let mean_gap = |d: Direction| match job.rate[d as usize] {
            None => 0.0,
            Some(Rate::Bytes(rate)) => PS_PER_S as f64 * job.sizes[d as usize].min() as f64 / rate as f64,
            Some(Rate::Requests(rate)) => PS_PER_S as f64 / rate as f64,
        };
        job.rate.iter().any(Option::is_some).then(|| Pace {
            rate: job.rate,
            arrival: job.arrival,
            mean_gap: Direction::ALL.map(mean_gap),
            issued: [0; 3],
            due: [Time::ZERO; 3],
            stream: Stream::new(seed, Purpose::Arrival),
        })
    }

    /// Returns the direction to issue and its due time (fio's `rate_ddir`). If `wanted` is ahead of its rate and
    /// `other` may replace it, the one that is due first is issued.
    pub(crate) fn choose(&self, wanted: Direction, other: Option<Direction>, now: Time) -> (Direction, Time) {
        let due = self.due[wanted as usize];
        match other {
            Some(other) if due > now && self.due[other as usize] < due => (other, self.due[other as usize]),
            _ => (wanted, due),
        }
    }

    /// Returns true if a direction has a rate.
    pub(crate) fn caps(&self, d: Direction) -> bool {
        self.rate[d as usize].is_some()
    }

    /// Moves the due time of a direction past a request.
    pub(crate) fn issued(&mut self, d: Direction, bytes: u64) {
        let i = d as usize;
        let Some(rate) = self.rate[i] else { return };
        if self.arrival == Arrival::Poisson {
            let gap = -libm::log(self.stream.unit()) * self.mean_gap[i];
            self.due[i] = self.due[i].checked_add(Time::from_ps(gap as u64)).unwrap_or(Time::MAX);
            return;
        }
        let (add, per_s) = match rate {
            Rate::Bytes(rate) => (bytes, rate),
            Rate::Requests(rate) => (1, rate),
        };
        self.issued[i] += add;
        let ps = self.issued[i] as u128 * PS_PER_S as u128 / per_s as u128;
        self.due[i] = Time::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
    }
}

/// Pauses of a job: fio's `handle_thinktime`.
///
/// fio checks after each submission, once the queue has room: if enough requests have been issued (or completed), it
/// waits for the queue to drain and then sleeps.
#[derive(Clone, Debug)]
pub(crate) struct Thinker {
    rule: Think,
    /// Number of requests counted at the last pause.
    seen: u64,
    /// End of the last pause.
    awake: Time,
    /// True if a request was issued since the last check.
    look: bool,
    draining: bool,
}

/// Demand of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thought {
    /// No pause: continue.
    Go,
    /// The queue must drain first.
    Drain,
    /// No request before this time.
    Sleep(Time),
}

impl Thinker {
    pub(crate) fn new(rule: Think, start: Time) -> Thinker {
        Thinker { rule, seen: 0, awake: start, look: false, draining: false }
    }

    /// Counts an issued request.
    pub(crate) fn issued(&mut self) {
        self.look = true;
    }

    /// Returns the end of the last pause.
    pub(crate) fn awake(&self) -> Time {
        self.awake
    }

    /// Checks for a pause. `issued` and `completed` count requests with an address since the start; `room` says
    /// whether the queue has room.
    pub(crate) fn think(
        &mut self,
        now: Time,
        outstanding: u32,
        room: bool,
        issued: u64,
        completed: u64,
    ) -> Thought {
        if self.look && room && !self.draining {
            self.look = false;
            let count = if self.rule.on_completion { completed } else { issued };
            let enough = self.rule.requests.is_some_and(|n| count >= self.seen + n);
            let late = self.rule.every.is_some_and(|every| now.since(self.awake) >= every);
            if enough || late {
                self.seen = count;
                self.draining = true;
            }
        }
        if !self.draining {
            return Thought::Go;
        }
        if outstanding > 0 {
            return Thought::Drain;
        }
        self.draining = false;
        self.awake = now.checked_add(self.rule.time).unwrap_or(Time::MAX);
        Thought::Sleep(self.awake)
    }
}
