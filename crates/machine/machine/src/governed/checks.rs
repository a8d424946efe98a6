//! What must hold of every run of an accelerator: bounds of schedules with the times that screens took, and accounts that must agree.

use super::Governed;
use compute::vliw::accelerator::{AcceleratorStats, KernelTimes};
use engine::Time;
use ssd::Check;

impl Governed {
    /// All checks; bounds only of a run whose kernels are all over.
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

/// Time in which workers compute, as sections were counted, and as events found them: with a screen, less what they waited.
fn busy_agrees(stats: &AcceleratorStats) -> Check {
    let counted =
        stats.held.iter().zip(&stats.waited).map(|(held, waited)| held.ps() as i128 - waited.ps() as i128);
    let ok = counted.clone().eq(stats.busy.iter().map(|busy| i128::from(busy.ps())));
    bound("workers compute for as long as their screens last and do not wait", ok, || {
        format!("{:?} of sections, {:?} ps of screens", stats.busy, counted.collect::<Vec<_>>())
    })
}

/// No schedule is shorter than a kernel's longest chain of screens, or than all screens on all workers.
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

/// When the last screen was over.
fn computed(stats: &AcceleratorStats) -> Time {
    stats.kernels.iter().map(|times| times.computed).max().unwrap_or_default()
}

/// Graham's bound for list scheduling (1969): at any time, either all `m` workers have something, or the kernel that ends last is not released yet, or a
/// screen of its critical path is under way. So `end <= release + path + (work - path) / m`, for one kernel at least. It holds where nobody
/// waits while something may begin: not where a core takes kernels of its own applications alone, or where one microblock runs at a time.
fn graham(stats: &AcceleratorStats, workers: u64) -> Check {
    let m = u128::from(workers);
    let end = computed(stats);
    // Times m, so that nothing is rounded.
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
