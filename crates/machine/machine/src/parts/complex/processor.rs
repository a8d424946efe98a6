//! What executes programs: the multiprocessors of a GPU, or the cores of a server.

use super::{InstructionSeries, InstructionWindow};
use crate::wires::Here;
use compute::ooo::Cores;
use compute::simt::{Gpu, Need, Unfit};
use config::Diagnostic;
use engine::Time;
use programs::program::Apps;
use proto::cpu::Service;
use proto::memory::Tally;
use proto::simt::Programs;
use stats::EnergyReport;

/// A processor with its programs.
pub enum Processor {
    /// Warps in lockstep.
    Simt(Box<Simt>),
    /// Threads out of order.
    Ooo(Box<Ooo>),
}

/// Multiprocessors and their programs.
pub struct Simt {
    /// What runs.
    pub programs: Apps,
    /// The multiprocessors.
    pub gpu: Gpu,
    /// A cycle of the multiprocessors.
    pub cycle: Time,
    /// When each application has ended.
    pub ended: Vec<Option<Time>>,
    /// A first kernel that fits on no multiprocessor.
    unfit: Option<Unfit>,
    /// Instructions over time, if they are asked for.
    series: Option<InstructionSeries>,
}

/// Cores and what they serve.
pub struct Ooo {
    /// What runs.
    pub service: Box<dyn Service>,
    /// The cores.
    pub cores: Cores,
    /// Bytes that a translation covers.
    pub(crate) reach: u64,
    /// Jobs executed without time before the run.
    pub fill_jobs: u64,
}

impl Processor {
    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Processor::Simt(_) => "the multiprocessors",
            Processor::Ooo(_) => "the cores",
        }
    }

    /// The multiprocessors.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub(crate) fn simt(&mut self) -> &mut Simt {
        let Processor::Simt(simt) = self else { unreachable!("something of multiprocessors") };
        simt
    }

    /// The cores.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub(crate) fn ooo(&mut self) -> &mut Ooo {
        let Processor::Ooo(ooo) = self else { unreachable!("something of cores") };
        ooo
    }

    /// Requests under way.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Processor::Simt(simt) => simt.gpu.outstanding(),
            Processor::Ooo(ooo) => ooo.cores.outstanding(),
        }
    }

    /// Whether every program has ended.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Processor::Simt(simt) => simt.gpu.is_done(),
            Processor::Ooo(ooo) => ooo.cores.is_done(),
        }
    }

    /// Time that requests have waited here.
    pub(crate) fn tally(&self) -> &Tally {
        match self {
            Processor::Simt(simt) => &simt.gpu.tally,
            Processor::Ooo(ooo) => ooo.cores.tally(),
        }
    }

    /// Energy since the measured window began; `None` if its spec does not tell what it costs.
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

    /// Records what has been issued before a mark of a series that has come.
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
    /// Multiprocessors with programs; `series` records what they issue.
    pub(crate) fn new(programs: Apps, gpu: Gpu, cycle: Time, series: Option<InstructionSeries>) -> Simt {
        let ended = vec![None; usize::from(programs.apps())];
        Simt { programs, gpu, cycle, ended, unfit: None, series }
    }

    /// Launches the first kernels.
    pub(crate) fn begin(&mut self, here: &mut Here<'_>) {
        self.unfit = self.gpu.begin(&mut self.programs, here).err();
    }

    /// A kernel that fits on no multiprocessor.
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
        let said = format!("kernel `{name}` needs {needs} {what} for a block; a multiprocessor has {limit}");
        Some(Diagnostic::new(said).help(format!("the limit is `{key}` of the system")))
    }

    /// Whether instructions over time are asked for.
    pub(crate) fn records(&self) -> bool {
        self.series.is_some()
    }

    /// Instructions of each application over time, if they are asked for.
    pub fn series(&self) -> Option<Vec<InstructionWindow>> {
        let series = self.series.as_ref()?;
        Some(series.windows(self.issued()))
    }

    /// Instructions of warps that each application has issued.
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
    /// When the last job ended; now, if it has not.
    pub fn ended(&self, now: Time) -> Time {
        self.cores.over_at().unwrap_or(now)
    }
}
