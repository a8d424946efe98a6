//! What can be asked of an injector while it runs and after it.

use super::super::{FlowStats, Recorded, Waiting};
use super::{FLOWS, Injector, Pending, Running};
use crate::fio::LaidOut;
use engine::Time;

impl Running {
    /// A request that arrived at a time is issued.
    #[inline]
    pub(super) fn takes(&mut self, at: Time) {
        self.taken += 1;
        self.early += u64::from(at < self.latest);
        self.latest = self.latest.max(at);
    }
}

impl Injector {
    /// What a user must know about how the sources were read.
    pub fn warnings(&self) -> Vec<String> {
        self.sources.iter().flat_map(|s| s.source.warnings()).collect()
    }

    /// What would have ended flows elsewhere, once they have their names.
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

    /// The files that sources go over, each with the target on which it lies.
    pub fn files(&self) -> Vec<(u16, LaidOut)> {
        let of = |running: &Running| {
            let target = running.target;
            running.source.files().iter().map(move |file| (target, file.clone())).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.sources.iter().flat_map(of).collect();
        all.dedup();
        all
    }

    /// How long requests took where they were recorded.
    pub fn recorded(&self) -> Recorded {
        let mut all = Recorded::default();
        self.sources.iter().filter_map(|s| s.source.recorded()).for_each(|one| all.merge(one));
        all
    }

    /// Whether nothing more will be issued.
    pub fn is_done(&self) -> bool {
        self.sources.iter().all(|s| s.done)
    }

    /// The requests in flight that were issued first, at most `limit`.
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

    /// Sources that have not ended: how many of each one's requests are in flight, and when it wants to be asked again.
    pub fn unfinished(&self) -> Vec<(u16, u32, Option<Time>)> {
        let numbered = self.sources.iter().enumerate().filter(|(_, s)| !s.done);
        numbered.map(|(n, s)| (n as u16, s.outstanding, s.asked)).collect()
    }

    /// Requests in flight.
    pub fn outstanding(&self) -> usize {
        self.pending.len()
    }

    /// Commands that all targets have and have not answered: requests in flight, but for those that the host's software works
    /// on before their submission or after their completion.
    pub fn in_device(&self) -> usize {
        (0..self.targets()).map(|target| self.in_device_of(target)).sum()
    }

    /// The same of one target.
    pub fn in_device_of(&self, target: u16) -> usize {
        self.targets.inside(target) as usize
    }

    /// Answers of all targets in the measured window.
    pub fn answered_in_window(&self) -> u64 {
        (0..self.targets()).map(|target| self.answered_in_window_of(target)).sum()
    }

    /// Answers of one target in the measured window.
    pub fn answered_in_window_of(&self, target: u16) -> u64 {
        self.targets.answered_in_window(target)
    }

    /// What it submits to is numbered from zero to one less than this.
    pub fn targets(&self) -> u16 {
        self.targets.len() as u16
    }

    /// Requests that have ended in the measured window, as counted; and the latencies that all flows have recorded.
    pub fn measured(&self) -> (u64, u64) {
        let recorded = |flow: &FlowStats| {
            let ops = [&flow.read, &flow.write, &flow.trim, &flow.flush];
            ops.iter().map(|op| op.latency.count()).sum::<u64>()
        };
        (self.requests - self.before, self.flows.iter().map(recorded).sum())
    }

    /// Requests of recordings that have been read to their end: as read, as issued, and those that were issued behind a later one.
    pub fn replayed(&self) -> [u64; 3] {
        let over = self.sources.iter().filter(|running| running.done && self.failure.is_none());
        let counts =
            over.filter_map(|running| Some([running.source.handed_out()?, running.taken, running.early]));
        counts.fold([0; 3], |sum, of| std::array::from_fn(|n| sum[n] + of[n]))
    }

    /// Share of the work done, over the sources that know.
    pub fn progress(&self) -> Option<f64> {
        let known: Vec<f64> = self.sources.iter().filter_map(|s| s.source.progress()).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}
