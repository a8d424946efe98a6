//! Queries of an injector while it runs and afterwards.

use super::super::{FlowStats, Recorded, Waiting};
use super::{FLOWS, Injector, Pending, Running};
use crate::fio::LaidOut;
use engine::Time;

impl Running {
    /// Counts an issued request that arrived at a time.
    #[inline]
    pub(super) fn takes(&mut self, at: Time) {
        self.taken += 1;
        self.early += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
    }
}

impl Injector {
    /// Returns remarks for the user on how the sources were read.
    pub fn warnings(&self) -> Vec<String> {
        self.sources.iter().flat_map(|s| s.source.warnings()).collect()
    }

    /// Returns the guards that would have ended flows in fio, once flows have their names.
    pub fn tripped(&self) -> Vec<String> {
        let of = |running: &Running| {
            let seen = running.flows.iter().zip(0..).filter(|(flow, _)| usize::from(flow.index) < FLOWS - 1);
            let guarded = seen.filter_map(|(flow, number)| Some((flow, running.source.guards(number)?)));
            guarded
                .flat_map(|(flow, guards)| {
                    guards.tripped(&self.flows[usize::from(flow.index)], self.floors.of(flow.index))
                })
                .collect::<Vec<_>>()
        };
        self.sources.iter().flat_map(of).collect()
    }

    /// Returns the files that sources access, each with its target.
    pub fn files(&self) -> Vec<(u16, LaidOut)> {
        let of = |running: &Running| {
            let target = running.target;
            running.source.files().iter().map(move |file| (target, file.clone())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.sources.iter().flat_map(of).collect();
        all.dedup();
        all
    }

    /// Returns the recorded response times of requests.
    pub fn recorded(&self) -> Recorded {
        let mut all = Recorded::default();
        self.sources.iter().filter_map(|s| s.source.recorded()).for_each(|one| all.merge(one));
        all
    }

    /// Returns true if nothing more will be issued.
    pub fn is_done(&self) -> bool {
        self.sources.iter().all(|s| s.done)
    }

    /// Returns up to `limit` requests in flight, in the order of issue.
    pub fn oldest(&self, limit: usize) -> Vec<Waiting> {
        let waiting = |(_, pending): (u32, &Pending)| Waiting {
            request: pending.request,
            source: pending.source,
            issued: pending.issued,
            submitted: (pending.submitted > pending.issued || self.cost.submit == Time::ZERO)
                .then_some(pending.submitted),
            answered: (pending.answered > pending.issued).then_some(pending.answered),
        };
        let mut all: Vec<Waiting> = self.pending.live().map(waiting).collect();
        all.sort_by_key(|w| w.issued);
        all.truncate(limit);
        all
    }

    /// Returns the sources that have not ended: requests in flight of each, and when it wants to be polled again.
    pub fn unfinished(&self) -> Vec<(u16, u32, Option<Time>)> {
        let numbered = self.sources.iter().enumerate().filter(|(_, s)| !s.done);
        numbered.map(|(n, s)| (n as u16, s.outstanding, s.asked)).collect()
    }

    /// Returns the requests in flight.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Returns the commands that no target has answered: requests in flight, except those that the host's software
    /// works on before submission or after completion.
    pub fn in_device(&self) -> usize {
        (0..self.targets()).map(|target| self.in_device_of(target)).sum()
    }

    /// Returns the unanswered commands of one target.
    pub fn in_device_of(&self, target: u16) -> usize {
        self.targets.inside(target) as usize
    }

    /// Returns the answers of all targets in the measured window.
    pub fn answered_in_window(&self) -> u64 {
        (0..self.targets()).map(|target| self.answered_in_window_of(target)).sum()
    }

    /// Returns the answers of one target in the measured window.
    pub fn answered_in_window_of(&self, target: u16) -> u64 {
        self.targets.answered_in_window(target)
    }

    /// Returns the number of targets.
    pub fn targets(&self) -> u16 {
        self.targets.len() as u16
    }

    /// Returns the requests that ended in the measured window, as counted, and the number of latencies that all flows
    /// have recorded.
    pub fn measured(&self) -> (u64, u64) {
        let recorded = |flow: &FlowStats| {
            let ops = [&flow.read, &flow.write, &flow.trim, &flow.flush];
            ops.iter().map(|op| op.latency.count()).sum::<u64>()
        };
        (self.requests - self.before, self.flows.iter().map(recorded).sum())
    }

    /// Returns the requests of fully read recordings: as read, as issued, and those that were issued behind a later
    /// one.
    pub fn replayed(&self) -> [u64; 3] {
        let over = self.sources.iter().filter(|running| running.done && self.failure.is_none());
        let counts =
            over.filter_map(|running| Some([running.source.handed_out()?, running.taken, running.early]));
        counts.fold([0; 3], |sum, of| std::array::from_fn(|n| sum[n] + of[n]))
    }

    /// Returns the share of the work done, over the sources that know theirs.
    pub fn progress(&self) -> Option<f64> {
        let known: Vec<f64> = self.sources.iter().filter_map(|s| s.source.progress()).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}
