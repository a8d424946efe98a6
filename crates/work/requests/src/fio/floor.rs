//! Rate floors of a job, `rate_min` and `rate_iops_min`: checked in each `rate_cycle`, as in fio's
//! `__check_min_rate`.
//!
//! fio checks its clock whenever it takes completions; here a cycle has exactly its configured length. fio does not
//! check cycles that begin in the first two seconds of a job: such a cycle is reported with that remark.

use engine::Time;
use proto::IoRequest;

use super::{ENDED, Guards, KINDS};
use crate::synth::{Direction, Each};

/// Time after the start of a job at which fio begins to check: `__check_min_rate`.
const SETTLES: Time = Time::from_s(2);

/// Shortest cycle: fio's rate clock counts milliseconds, so shorter cycles are this long.
const SHORTEST: Time = Time::from_ms(1);

/// Rates of one flow, cycle by cycle.
#[derive(Clone, Debug)]
pub(crate) struct Floors {
    guards: Guards,
    length: Time,
    /// Start of the first cycle; none before the flow's first request.
    start: Option<Time>,
    /// Index of the current cycle, from zero.
    cycle: u64,
    /// Bytes and requests completed in the current cycle, by direction.
    done: Each<(u64, u64)>,
    /// Directions that have completed something since the start.
    seen: Each<bool>,
    /// First cycles below a floor: in the first two seconds, and after them.
    early: Each<Option<Missed>>,
    late: Each<Option<Missed>>,
}

/// A cycle below a floor.
#[derive(Clone, Copy, Debug)]
struct Missed {
    cycle: u64,
    /// Amount completed in the cycle: bytes for `rate_min`, requests for `rate_iops_min`.
    done: u64,
}

impl Floors {
    /// Returns the floors of a flow, if it has any.
    pub(crate) fn of(guards: &Guards) -> Option<Floors> {
        guards.has_floors().then(|| Floors {
            guards: *guards,
            length: guards.rate_cycle.max(SHORTEST),
            start: None,
            cycle: 0,
            done: [(0, 0); 3],
            seen: [false; 3],
            early: [None; 3],
            late: [None; 3],
        })
    }

    /// Restarts the first cycle at `now`, if the flow was active.
    pub(crate) fn reset(&mut self, now: Time) {
        if let Some(fresh) = Floors::of(&self.guards) {
            *self = Floors { start: self.start.map(|_| now), ..fresh };
        }
    }

    /// Counts a completed request; completion times never decrease.
    pub(crate) fn completed(&mut self, request: &IoRequest, now: Time) {
        let start = *self.start.get_or_insert(request.at);
        let cycle = now.since(start).ps() / self.length.ps();
        if cycle > self.cycle {
            self.judge(self.cycle);
            self.done = [(0, 0); 3];
            // If several cycles had no completion, report only the first one and the first one that fio checks.
            for empty in [self.cycle + 1, self.first_judged()] {
                if (self.cycle + 1..cycle).contains(&empty) {
                    self.judge(empty);
                }
            }
            self.cycle = cycle;
        }
        if let Some(at) = Direction::ALL.iter().position(|d| d.op() == request.op) {
            self.done[at].0 += request.bytes;
            self.done[at].1 += 1;
            self.seen[at] = true;
        }
    }

    /// Returns the first cycle that fio checks.
    fn first_judged(&self) -> u64 {
        SETTLES.ps().div_ceil(self.length.ps())
    }

    /// Returns the floor of a direction and the amount that counts towards it. As in fio, `rate_iops_min` is ignored
    /// if `rate_min` is set.
    fn floor(&self, at: usize) -> (&'static str, u64, &'static str) {
        match self.guards.rate_min[at] {
            0 => ("rate_iops_min", self.guards.rate_iops_min[at], "IOPS"),
            least => ("rate_min", least, "B/s"),
        }
    }

    fn judge(&mut self, cycle: u64) {
        let is_early = cycle < self.first_judged();
        for at in 0..KINDS.len() {
            let (_, least, unit) = self.floor(at);
            let (bytes, requests) = self.done[at];
            let done = if unit == "B/s" { bytes } else { requests };
            let ps_per_s = u128::from(Time::from_s(1).ps());
            let is_met = u128::from(done) * ps_per_s >= u128::from(least) * u128::from(self.length.ps());
            if self.seen[at] && !is_met {
                let first = if is_early { &mut self.early[at] } else { &mut self.late[at] };
                first.get_or_insert(Missed { cycle, done });
            }
        }
    }

    /// Describes the first cycle of each direction below its floor, preferably one that fio checks.
    pub(crate) fn missed(&self) -> Vec<String> {
        let of = |at: usize| {
            let late = self.late[at];
            let missed = late.or(self.early[at])?;
            let (option, least, unit) = self.floor(at);
            let rate = missed.done as f64 / self.length.as_s_f64();
            let end_of = |cycles: u64| Time::from_ps(self.length.ps().saturating_mul(cycles));
            let (from, to) = (end_of(missed.cycle), end_of(missed.cycle + 1));
            let (ended, but) = match late {
                Some(_) => (ENDED, String::new()),
                None => ("", format!("; fio does not check cycles that begin in the first {SETTLES}")),
            };
            let cycle = missed.cycle + 1;
            let kind = KINDS[at];
            Some(format!(
                "{ended}{option}={least}: {kind}s reached {rate:.0} {unit} in cycle {cycle}, {from} to {to} after its start{but}"
            ))
        };
        (0..KINDS.len()).filter_map(of).collect()
    }
}
