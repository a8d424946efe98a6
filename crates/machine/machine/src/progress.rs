//! How far the work of a machine has come.

use crate::complex::Processor;
use crate::governed::Governed;
use crate::machine::Machine;

impl Machine {
    /// Looks at how much is done, and says whether the work is stuck.
    pub(crate) fn is_stuck(&mut self) -> bool {
        let (done, is_under_way, now) = (self.done(), self.is_under_way(), self.now());
        self.advance.is_stuck(done, is_under_way, now)
    }

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
