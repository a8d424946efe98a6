//! Processors: the multiprocessors of a GPU or the cores of a server, and the instructions of applications over time.

use crate::wires::Here;
use compute::ooo::Cores;
use compute::simt::{Gpu, Need, Unfit};
use config::Diagnostic;
use engine::Time;
use programs::program::Apps;
use proto::cpu::Service;
use proto::memory::Tally;
use proto::simt::Programs;
use schemars::JsonSchema;
use serde::Serialize;
use stats::EnergyReport;

/// Processor with its programs.
pub enum Processor {
    /// Warps in lockstep (GPU).
    Simt(Box<Simt>),
    /// Threads out of order (server).
    Ooo(Box<Ooo>),
}

/// Multiprocessors and their programs.
pub struct Simt {
    /// Programs of the GPU.
    pub programs: Apps,
    /// Multiprocessors of the GPU.
    pub gpu: Gpu,
    /// Cycle of the multiprocessors.
    pub cycle: Time,
    /// End time of each application.
    pub ended: Vec<Option<Time>>,
    /// A first kernel that fits on no multiprocessor.
    unfit: Option<Unfit>,
    /// Instructions over time, if recorded.
    series: Option<InstructionSeries>,
}

/// Cores and the service that they run.
pub struct Ooo {
    /// Service of the server.
    pub service: Box<dyn Service>,
    /// Cores of the server.
    pub cores: Cores,
    /// Bytes covered by a translation.
    pub(crate) reach: u64,
    /// Jobs executed without time before the run.
    pub fill_jobs: u64,
}

impl Processor {
    /// Name of the processor in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Processor::Simt(_) => "the multiprocessors",
            Processor::Ooo(_) => "the cores",
        }
    }

    /// Returns the multiprocessors.
    ///
    /// # Panics
    /// If the processor has none.
    #[inline]
    pub(crate) fn simt(&mut self) -> &mut Simt {
        let Processor::Simt(simt) = self else { unreachable!("something of multiprocessors") };
        simt
    }

    /// Returns the cores.
    ///
    /// # Panics
    /// If the processor has none.
    #[inline]
    pub(crate) fn ooo(&mut self) -> &mut Ooo {
        let Processor::Ooo(ooo) = self else { unreachable!("something of cores") };
        ooo
    }

    /// Number of requests under way.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Processor::Simt(simt) => simt.gpu.outstanding(),
            Processor::Ooo(ooo) => ooo.cores.outstanding(),
        }
    }

    /// Returns whether every program has ended.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Processor::Simt(simt) => simt.gpu.is_done(),
            Processor::Ooo(ooo) => ooo.cores.is_done(),
        }
    }

    /// Time that requests have waited in the processor.
    pub(crate) fn tally(&self) -> &Tally {
        match self {
            Processor::Simt(simt) => &simt.gpu.tally,
            Processor::Ooo(ooo) => ooo.cores.tally(),
        }
    }

    /// Energy since the measured window began; `None` without energy constants in the spec.
    pub(crate) fn energy(&self, now: Time) -> Option<EnergyReport> {
        match self {
            Processor::Simt(simt) => simt.gpu.energy(now),
            Processor::Ooo(ooo) => ooo.cores.energy(now),
        }
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self, now: Time) {
        match self {
            Processor::Simt(simt) => {
                simt.gpu.reset_stats(now);
                if let Some(series) = &mut simt.series {
                    series.reset(now);
                }
            }
            Processor::Ooo(ooo) => ooo.cores.reset_stats(now),
        }
    }

    /// Records what was issued before a mark of the series that has been reached.
    #[inline]
    pub(crate) fn record(&mut self, now: Time) {
        if let Processor::Simt(simt) = self
            && simt.series.as_ref().is_some_and(|series| series.is_due(now))
        {
            simt.record_due(now);
        }
    }
}

impl Simt {
    /// Creates multiprocessors with programs; `series` records the issued instructions.
    pub(crate) fn new(programs: Apps, gpu: Gpu, cycle: Time, series: Option<InstructionSeries>) -> Simt {
        let ended = vec![None; usize::from(programs.apps())];
        Simt { programs, gpu, cycle, ended, unfit: None, series }
    }

    /// Launches the first kernels.
    pub(crate) fn begin(&mut self, here: &mut Here<'_>) {
        self.unfit = self.gpu.begin(&mut self.programs, here).err();
    }

    /// A kernel that fits on no multiprocessor, as a diagnostic.
    pub fn failure(&self) -> Option<Diagnostic> {
        let unfit = self.unfit.or(self.gpu.unfit)?;
        let name = self.programs.kernel_name(unfit.app, unfit.kernel);
        let (what, key) = match unfit.what {
            Need::BlockThreads => ("threads in a block", "gpu.resident.block_threads"),
            Need::Warps => ("warps", "gpu.resident.warps"),
            Need::Threads => ("threads", "gpu.resident.threads"),
            Need::Registers => ("registers", "gpu.resident.registers"),
            Need::Shared => ("bytes of shared memory", "gpu.resident.shared"),
        };
        let Unfit { needs, limit, .. } = unfit;
        let said = format!("kernel `{name}` needs {needs} {what} per block; a multiprocessor has {limit}");
        Some(Diagnostic::new(said).help(format!("the limit is `{key}` of the system")))
    }

    /// Returns whether instructions over time are recorded.
    pub(crate) fn records(&self) -> bool {
        self.series.is_some()
    }

    /// Instructions of each application over time, if recorded.
    pub fn series(&self) -> Option<Vec<InstructionWindow>> {
        let series = self.series.as_ref()?;
        Some(series.windows(self.issued()))
    }

    /// Warp instructions that each application has issued.
    pub(crate) fn issued(&self) -> Vec<u64> {
        (0..self.programs.apps()).map(|app| self.gpu.stats.app(app).warp_instructions).collect()
    }

    #[cold]
    fn record_due(&mut self, now: Time) {
        let issued = self.issued();
        if let Some(series) = &mut self.series {
            series.record(now, &issued);
        }
    }
}

impl Ooo {
    /// End of the last job; now, if it has not ended.
    pub fn ended(&self, now: Time) -> Time {
        self.cores.over_at().unwrap_or(now)
    }
}

/// Most marks to keep. This many windows hold any run, because they double in length instead of growing in number.
const MOST: usize = 4096;

/// Warp instructions that each application had issued at marks a fixed time apart.
#[derive(Clone, Debug)]
pub struct InstructionSeries {
    origin: Time,
    width: Time,
    /// Time of the next mark.
    next: Time,
    /// Instructions issued between the origin and each mark.
    marks: Vec<Box<[u64]>>,
}

/// Instructions issued in a window of time.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct InstructionWindow {
    /// Start of the window in simulated time.
    pub start_ns: f64,
    /// Length of the window. The last window ends with the run.
    pub width_ns: f64,
    /// Warp instructions that each application issued in the window.
    pub warp_instructions: Vec<u64>,
}

impl InstructionSeries {
    /// Creates a series with marks every `width` from time zero.
    ///
    /// # Panics
    /// If `width` is zero.
    pub(crate) fn new(width: Time) -> InstructionSeries {
        assert!(width > Time::ZERO, "windows of no length");
        InstructionSeries { origin: Time::ZERO, width, next: width, marks: Vec::new() }
    }

    /// Returns whether a mark has been reached.
    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        now >= self.next
    }

    /// Records what had been issued at the marks up to `now`, before anything happens at `now`.
    pub(crate) fn record(&mut self, now: Time, issued: &[u64]) {
        while now >= self.next {
            self.marks.push(issued.into());
            if self.marks.len() == MOST {
                // Marks are cumulative: those in between are not needed.
                let mut nth = 0;
                self.marks.retain(|_| {
                    nth += 1;
                    nth % 2 == 0
                });
                self.width += self.width;
            }
            self.next += self.width;
        }
    }

    /// Begins again at `origin`.
    pub(crate) fn reset(&mut self, origin: Time) {
        self.marks.clear();
        (self.origin, self.next) = (origin, origin + self.width);
    }

    /// Returns the windows; `issued` is the present count.
    pub(crate) fn windows(&self, issued: Vec<u64>) -> Vec<InstructionWindow> {
        let (origin, width) = (self.origin.as_ns_f64(), self.width.as_ns_f64());
        let mut before = vec![0; issued.len()];
        let sums = self.marks.iter().map(|mark| mark.to_vec()).chain([issued]);
        let window = |(n, sums): (usize, Vec<u64>)| {
            let warp_instructions = sums.iter().zip(&before).map(|(sum, before)| sum - before).collect();
            before = sums;
            InstructionWindow { start_ns: origin + n as f64 * width, width_ns: width, warp_instructions }
        };
        sums.enumerate().map(window).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issued_in(series: &InstructionSeries, now: u64) -> Vec<u64> {
        series.windows(vec![now]).iter().map(|window| window.warp_instructions[0]).collect()
    }

    /// Four windows of 10 ns; an event at a mark belongs to the window that begins there.
    #[test]
    fn windows_hold_what_was_issued_in_them() {
        let mut series = InstructionSeries::new(Time::from_ns(10));
        assert!(!series.is_due(Time::from_ns(9)) && series.is_due(Time::from_ns(10)));
        series.record(Time::from_ns(10), &[3]);
        series.record(Time::from_ns(35), &[5]);
        assert_eq!(issued_in(&series, 12), [3, 2, 0, 7]);
        assert_eq!(series.windows(vec![12])[3].start_ns, 30.0);
        series.reset(Time::from_ns(40));
        assert_eq!(issued_in(&series, 1), [1]);
        assert!(!series.is_due(Time::from_ns(49)) && series.is_due(Time::from_ns(50)));
    }

    /// An instruction every nanosecond, for longer than the first windows reach: as many in each, whatever their
    /// length.
    #[test]
    fn windows_double_instead_of_growing_in_number() {
        let mut series = InstructionSeries::new(Time::from_ns(1));
        for now in 1..=20_000 {
            series.record(Time::from_ns(now), &[now]);
        }
        let windows = series.windows(vec![20_000]);
        assert!(windows.len() <= MOST);
        let (last, full) = windows.split_last().expect("windows");
        assert!(full.iter().all(|w| w.width_ns == 8.0 && w.warp_instructions == [8]), "{full:?}");
        assert_eq!(last.start_ns + last.warp_instructions[0] as f64, 20_000.0);
    }
}
