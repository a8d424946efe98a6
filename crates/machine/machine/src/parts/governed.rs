//! An accelerator, the flash that it governs, and the host that offloads kernels to it.

use crate::wires::Here;
use compute::vliw::Instance;
use compute::vliw::accelerator::{Accelerator, AcceleratorStats, KernelTimes};
use config::SpecError;
use engine::{Cx, Time};
use nest::executed::Executed;
use net::pcie::Link;
use programs::kernels::{Application, Inputs, Program};
use ssd::Check;
use ssd::page_groups::GroupsFlash;
use std::sync::Arc;

/// Offloaded kernel.
pub(crate) struct Offloaded {
    /// Program of the kernel.
    pub(crate) program: String,
    /// Application of the kernel, by its position in the run.
    pub(crate) app: u16,
    /// Bytes present before the kernel starts, shared ones included.
    pub(crate) input_bytes: u64,
    instance: Instance,
}

/// Offload of kernels: the bytes that cross the link for each, and the following delay.
pub(crate) struct Offload {
    pub(crate) link: Link,
    pub(crate) table: u64,
    pub(crate) interrupt: Time,
}

/// Accelerator with the flash that it governs.
pub(crate) struct Governed {
    /// Name of the accelerator.
    pub(crate) name: String,
    /// Name of the flash.
    pub(crate) storage: String,
    pub(crate) accelerator: Accelerator,
    pub(crate) flash: GroupsFlash,
    /// True if the spec of the flash defines bad blocks.
    pub(crate) has_bad_blocks: bool,
    pub(crate) offload: Offload,
    /// Kernels of the run, in the order of their offload.
    pub(crate) kernels: Vec<Offloaded>,
}

impl Governed {
    /// Places each instance of the applications. Instances of the same kernel share read-only data unless they are to
    /// have their own, and share results if they are to change the same data. Data on flash at the start were written
    /// before the run.
    ///
    /// # Errors
    /// More data than the flash holds.
    pub(crate) fn place(&mut self, applications: Vec<Application>, shadow: bool) -> Result<(), SpecError> {
        let mut known: Vec<(Program, bool, usize)> = Vec::new();
        for (app, Application { program, instances, inputs, in_turn, .. }) in (0..).zip(applications) {
            let is_apart = inputs != Inputs::Shared;
            for _ in 0..instances {
                let same = |(other, turn, _): &&(Program, bool, usize)| *other == program && *turn == in_turn;
                let found = known.iter().find(|one| !is_apart && same(one));
                let number = match found {
                    Some((_, _, number)) => *number,
                    None => {
                        let number = self.add(&program)?;
                        if in_turn {
                            self.accelerator.share_results(number)?;
                        }
                        if !is_apart {
                            known.push((program.clone(), in_turn, number));
                        }
                        number
                    }
                };
                let instance = self.accelerator.instance(number, app)?;
                let (name, input_bytes) = (program.name().to_owned(), program.input_bytes());
                self.kernels.push(Offloaded { program: name, app, input_bytes, instance });
            }
        }
        let written = self.flash.assume_written(self.accelerator.inputs());
        written.map_err(|fault| SpecError::new("groups", fault.to_string()))?;
        if shadow {
            self.flash.attach_shadow();
        }
        Ok(())
    }

    /// Adds a program whose instances share read-only data.
    fn add(&mut self, program: &Program) -> Result<usize, SpecError> {
        match program {
            Program::Nest(kernel) => self.accelerator.add(kernel.clone()),
            Program::Executed(on_data) => {
                let program: Arc<dyn Executed> = on_data.clone();
                self.accelerator.add_executed(&program)
            }
        }
    }

    /// Offloads all kernels at once: their tables cross the link one after another.
    pub(crate) fn begin(&mut self, here: &mut Here<'_>) {
        let Offload { link, table, interrupt } = &mut self.offload;
        for kernel in &self.kernels {
            let now = Cx::<compute::vliw::accelerator::Event, compute::vliw::accelerator::Out>::now(here);
            let there = link.to_device(now, *table) + link.latency() + *interrupt;
            self.accelerator.offload(kernel.instance, there - now, here);
        }
    }

    /// Starts the energy measurement. Other metrics are of whole kernels, from offload to end.
    pub(crate) fn reset_energy(&mut self, now: Time) {
        self.accelerator.reset_energy(now);
        self.flash.reset_energy(now);
        self.offload.link.reset_energy(now);
    }

    /// Share of the kernels that are over.
    pub(crate) fn progress(&self) -> f64 {
        1.0 - self.accelerator.open() as f64 / self.kernels.len().max(1) as f64
    }

    /// Describes what the accelerator waits for.
    pub(crate) fn waiting(&self) -> String {
        format!(
            "waiting: {} of {} kernels of `{}`; {} requests to flash are not answered, {} sections wait for memory; flash has {} under way",
            self.accelerator.open(),
            self.kernels.len(),
            self.name,
            self.accelerator.asked(),
            self.accelerator.hungry(),
            self.flash.outstanding()
        )
    }
}

// Checks of every run of an accelerator: bounds of schedules from the times of screens, and accounts that must agree.

impl Governed {
    /// Returns all checks; bounds only for a run whose kernels are all over.
    pub(crate) fn checks(&self, now: Time) -> Vec<Check> {
        let mut checks = self.flash.checks();
        let stats = &self.accelerator.stats;
        checks.push(bound(
            "every page group that an accelerator asks for is answered",
            stats.failed + self.flash.stats.groups_failed == 0,
            || {
                format!(
                    "{} of the accelerator's and {} of flash's failed",
                    stats.failed, self.flash.stats.groups_failed
                )
            },
        ));
        let unwritten = self.flash.stats.groups_unwritten;
        checks.push(bound("kernels read from flash what was written there", unwritten == 0, || {
            format!("{unwritten} page groups were never written")
        }));
        if !self.accelerator.is_idle() {
            return checks;
        }
        let workers = u64::from(self.accelerator.workers());
        checks.push(groups_agree(stats, self.flash.stats.groups_read, self.flash.stats.groups_written));
        checks.push(busy_agrees(stats));
        checks.extend(bounds(stats, workers, now));
        if self.accelerator.is_greedy() {
            checks.push(graham(stats, workers));
        }
        checks
    }
}

fn bound(name: &'static str, ok: bool, detail: impl FnOnce() -> String) -> Check {
    Check { name, ok, detail: if ok { String::new() } else { detail() } }
}

fn groups_agree(stats: &AcceleratorStats, read: u64, written: u64) -> Check {
    let ok = (stats.fetched, stats.written) == (read, written);
    bound("flash reads and programs the page groups that the accelerator asks for", ok, || {
        let (fetched, programmed) = (stats.fetched, stats.written);
        format!("{fetched} fetched and {programmed} programmed, {read} read and {written} written by flash")
    })
}

/// Checks the time in which workers compute: by section counts, and by events (time with a screen, less waits).
fn busy_agrees(stats: &AcceleratorStats) -> Check {
    let counted =
        stats.held.iter().zip(&stats.waited).map(|(held, waited)| held.ps() as i128 - waited.ps() as i128);
    let ok = counted.clone().eq(stats.busy.iter().map(|busy| i128::from(busy.ps())));
    bound("workers compute for as long as their screens last and do not wait", ok, || {
        format!("{:?} of sections, {:?} ps of screens", stats.busy, counted.collect::<Vec<_>>())
    })
}

/// Checks that no schedule is shorter than a kernel's longest chain of screens, or than all screens on all workers.
fn bounds(stats: &AcceleratorStats, workers: u64, now: Time) -> [Check; 3] {
    let short = stats.kernels.iter().find(|times| times.computed < times.released + times.path);
    let late = stats.kernels.iter().find(|times| {
        let order = [times.offloaded, times.released, times.begun, times.computed, times.over, now];
        !order.is_sorted()
    });
    let end = computed(stats);
    [
        bound("a kernel lasts at least as long as its critical path", short.is_none(), || {
            let KernelTimes { instance, computed, released, path, .. } = short.copied().unwrap_or_default();
            format!("kernel {instance} lasted from {released} to {computed}, with a path of {path}")
        }),
        bound(
            "a kernel is offloaded, released, begun, computed and over in this order",
            late.is_none(),
            || format!("{late:?}"),
        ),
        bound(
            "workers have time for the screens that they executed",
            end.times(workers) >= stats.work,
            || format!("{workers} workers until {end}, {} of screens", stats.work),
        ),
    ]
}

/// Time at which the last screen was over.
fn computed(stats: &AcceleratorStats) -> Time {
    stats.kernels.iter().map(|times| times.computed).max().unwrap_or_default()
}

/// Checks Graham's bound for list scheduling (1969). At any time, all `m` workers are busy, or the kernel that ends
/// last is not released yet, or a screen of its critical path is under way. So `end <= release + path + (work - path) /
/// m`, for at least one kernel. It holds where no worker waits while something may begin: not where a core takes only
/// kernels of its own applications, or where one microblock runs at a time.
fn graham(stats: &AcceleratorStats, workers: u64) -> Check {
    let m = u128::from(workers);
    let end = computed(stats);
    // Multiplied by m, to avoid rounding.
    let most = |times: &KernelTimes| {
        u128::from(times.released.ps()) * m
            + u128::from(times.path.ps()) * (m - 1)
            + u128::from(stats.work.ps())
    };
    let bounded = stats.kernels.iter().map(most).max().unwrap_or_default();
    bound("a greedy schedule keeps Graham's bound", u128::from(end.ps()) * m <= bounded, || {
        format!("the last screen was over at {end}, the bound is {} ps", bounded / m)
    })
}
