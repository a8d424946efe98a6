//! How far the work of a machine has come, and whether it advances while time does.

use crate::complex::Processor;
use crate::governed::Governed;
use crate::machine::Machine;
use kernel::Time;

/// Simulated time after which work that has not advanced is stuck.
pub(crate) const PATIENCE: Time = Time::from_s(3_600);

/// When the work of a machine was last seen to advance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advance {
    done: u64,
    since: Time,
}

impl Advance {
    /// Whether something has been under way for longer than [`PATIENCE`], with as much done as before.
    fn is_stuck(&mut self, done: u64, is_under_way: bool, now: Time) -> bool {
        if done != self.done || !is_under_way {
            *self = Advance { done, since: now };
        }
        now.since(self.since) > PATIENCE
    }

    /// Looks at a machine, and says whether its work is stuck.
    pub(crate) fn look(machine: &mut Machine) -> bool {
        let (done, is_under_way, now) = (machine.done(), machine.is_under_way(), machine.now());
        machine.advance.is_stuck(done, is_under_way, now)
    }

    /// Since when nothing has been done.
    pub(crate) fn since(&self) -> Time {
        self.since
    }
}

impl Machine {
    /// Requests that came and ended, commands that drives answered, instructions of processors, kernels that ended: it changes
    /// whenever work advances.
    fn done(&self) -> u64 {
        let injector = &self.injector;
        let drives = self.drives().map(|(_, device)| device.stats.recorded());
        let processors = self.complexes().iter().map(|complex| match &complex.processor {
            Processor::Simt(simt) => simt.issued().iter().sum(),
            Processor::Ooo(ooo) => ooo.cores.stats().instructions,
        });
        let kernels = self.governed().iter().map(|at| at.accelerator.open() as u64);
        let sums = drives.chain(processors).chain(kernels);
        sums.fold(injector.issued.wrapping_add(injector.completed), u64::wrapping_add)
    }

    /// Whether a request, a command or an access has begun and not ended.
    fn is_under_way(&self) -> bool {
        self.injector.outstanding() > 0
            || self.drives().any(|(_, device)| device.in_flight() > 0)
            || self.complexes().iter().any(|complex| self.outstanding(complex) > 0)
    }

    /// Share of the work that is done, zero to one, where it is known how much there is: of requests, of the jobs of a server, of the kernels
    /// of an accelerator or a coprocessor, or of the time that the run was given.
    pub fn progress(&self) -> Option<f64> {
        let requests = self.injector.progress().into_iter();
        let jobs = self.server().map(|(_, ooo)| ooo.cores.progress());
        let kernels = self.governed().iter().map(Governed::progress);
        let offloaded = self.driven().iter().filter_map(|at| at.progress(self.hosts()));
        let time = self.until().map(|until| self.now().ps() as f64 / until.ps().max(1) as f64);
        let all = requests.chain(jobs).chain(kernels).chain(offloaded).chain(time);
        all.reduce(f64::max).map(|share| share.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_without_anything_done_is_stuck() {
        let (mut advance, s) = (Advance::default(), Time::from_s);
        assert!(!advance.is_stuck(1, true, s(10)));
        assert!(!advance.is_stuck(1, true, s(3_610)), "an hour, and not more");
        assert!(!advance.is_stuck(2, true, s(9_000)), "something was done");
        assert!(!advance.is_stuck(2, false, s(90_000)), "nothing is under way");
        assert!(!advance.is_stuck(2, true, s(93_600)));
        assert!(advance.is_stuck(2, true, s(93_601)));
        assert_eq!(advance.since(), s(90_000));
    }
}
