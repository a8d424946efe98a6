//! A coprocessor, and the host program that has it execute kernels.

use compute::vliw::coprocessor::{Coprocessor, Moved};
use engine::Time;
use linux::path::Host;
use programs::host::HostProgram;
use programs::host::offload::Executed;
use proto::file::Way;
use ssd::Check;

/// Kernels that a coprocessor executes.
pub(crate) struct OffloadedKernels {
    /// Program that orders the kernels, by its position among the host's programs.
    pub(crate) program: usize,
    /// Kernel of each application, and the bytes present before an instance starts.
    pub(crate) applications: Vec<(String, u64)>,
    /// Number of instances of all applications.
    pub(crate) instances: u64,
}

/// Coprocessor of a host.
pub(crate) struct Driven {
    /// Name of the coprocessor.
    pub(crate) name: String,
    pub(crate) coprocessor: Coprocessor,
    /// Number of the host.
    pub(crate) host: u16,
    /// Kernels to execute; `None` if it has no work.
    pub(crate) kernels: Option<OffloadedKernels>,
}

impl Driven {
    fn program<'h>(&self, hosts: &'h [Hosted]) -> Option<&'h dyn HostProgram> {
        let number = self.kernels.as_ref()?.program;
        hosts[usize::from(self.host)].host.programs().nth(number).map(|program| &**program)
    }

    /// Instances executed so far, in order.
    pub(crate) fn executed<'h>(&self, hosts: &'h [Hosted]) -> &'h [Executed] {
        self.program(hosts).map_or(&[], |program| program.executed())
    }

    /// Share of the kernels' actions that are done.
    pub(crate) fn progress(&self, hosts: &[Hosted]) -> Option<f64> {
        self.program(hosts)?.progress()
    }

    /// Describes what the coprocessor waits for.
    pub(crate) fn waiting(&self, hosts: &[Hosted]) -> String {
        let over = self.executed(hosts).iter().filter(|one| one.ended.is_some()).count() as u64;
        let all = self.kernels.as_ref().map_or(0, |kernels| kernels.instances);
        format!(
            "waiting: {} of {all} kernels of `{}`; {} orders to it are not done",
            all - over,
            self.name,
            self.coprocessor.open()
        )
    }

    /// Returns all checks; some hold only at the end, once all kernels are over.
    pub(crate) fn checks(&self, hosts: &[Hosted]) -> Vec<Check> {
        let executed = self.executed(hosts);
        let stats = &self.coprocessor.stats;
        let lost = executed.iter().find(|one| !one.is_accounted());
        let mut checks = vec![
            check("the phases of an offloaded kernel last as long as it does", lost.is_none(), || {
                format!("{lost:?}")
            }),
            check(
                "a step lasts as long as its longest core, and as its work on all",
                stats.short == 0,
                || format!("{} steps are shorter", stats.short),
            ),
        ];
        if self.progress(hosts).is_none_or(|progress| progress < 1.0) || self.coprocessor.open() > 0 {
            return checks;
        }
        checks.push(check(
            "cores compute for as long as their shares of steps say",
            stats.busy == stats.computed,
            || format!("{:?} of shares, {:?} of events", stats.busy, stats.computed),
        ));
        let Moved { sent, loads, received, stores } = self.coprocessor.moved();
        checks.push(check(
            "a coprocessor is sent, and gives back, what its plans say",
            (sent, received) == (loads, stores),
            || format!("{sent} B sent and {received} B received, by plans {loads} B and {stores} B"),
        ));
        let sum = |of: fn(&Executed) -> u64| executed.iter().map(of).sum::<u64>();
        let by_host = (sum(|one| one.sent_bytes), sum(|one| one.received_bytes));
        // A window that begins late misses the first kernels.
        let is_whole = executed.len() as u64 == self.kernels.as_ref().map_or(0, |kernels| kernels.instances);
        checks.push(check(
            "what a host's program sends and receives crosses the link",
            !is_whole || (sent, received) == by_host,
            || format!("{by_host:?} B of the program, {sent} B and {received} B over the link"),
        ));
        checks
    }

    /// End of the last kernel; `None` while one is left.
    pub(crate) fn end(&self, hosts: &[Hosted]) -> Option<Time> {
        let executed = self.executed(hosts);
        let all = self.kernels.as_ref().map_or(0, |kernels| kernels.instances);
        let is_over = executed.len() as u64 == all && executed.iter().all(|one| one.ended.is_some());
        executed.iter().filter(|_| is_over).filter_map(|one| one.ended).max()
    }
}

fn check(name: &'static str, ok: bool, detail: impl FnOnce() -> String) -> Check {
    Check { name, ok, detail: if ok { String::new() } else { detail() } }
}

// A host's path to its drives, and targets of block commands.

/// Host path to drives, used by programs and requests.
pub(crate) struct Hosted {
    /// Name of the host.
    pub(crate) name: String,
    pub(crate) host: Host<Box<dyn HostProgram>>,
    /// Drives of the host, by drive number.
    pub(crate) drives: Vec<Target>,
    /// Coprocessors of the host, by coprocessor number.
    pub(crate) coprocessors: Vec<u16>,
}

/// Target of block commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Target {
    /// A drive.
    Drive(u16),
    /// A stripe of several.
    Stripe(u16),
    /// File that fills a drive of a host.
    File {
        /// Number of the host.
        host: u16,
        /// Number of the drive within the host.
        disk: u16,
        /// Path of the requests.
        way: Way,
    },
}
