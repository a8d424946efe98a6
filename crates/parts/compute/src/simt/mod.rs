//! Streaming multiprocessors of a GPU.

pub mod blocks;
mod dispatch;
pub mod kernels;
pub mod sched;
mod sm;
mod spec;
mod stats;
#[cfg(test)]
mod tests;

pub use dispatch::{Need, Unfit};
pub use sm::{Event, Out};
pub use spec::{
    AluSpec, GpuEnergySpec, GpuSpec, L1Spec, LoadStoreSpec, ResidentSpec, SfuSpec, SharedSpec, TlbSpec,
};
pub use stats::{Counters, GpuStats, KernelStats, LatencySum, SmStats};

use blocks::BlockScheduler;
use config::SpecError;
use dispatch::App;
use engine::{Cx, Ticket, Time};
use kernels::{AppView, KernelScheduler};
use proto::memory::{Access, Help, Tally, Translation};
use proto::simt::Programs;
use sm::{Env, Sm};
use spec::{GpuMeter, Model};
use std::ops::Range;

/// Cycle that never comes.
const NEVER: u64 = u64::MAX;

/// All multiprocessors of a GPU.
///
/// Cycles are counted from time zero. One event serves all multiprocessors with work in a cycle; it comes after
/// everything else of its instant, so that arrivals at the edge of a cycle are seen in that cycle, in whatever order
/// they come.
pub struct Gpu {
    /// Counters of the multiprocessors.
    pub stats: GpuStats,
    /// Time in the stages of multiprocessors.
    pub tally: Tally,
    /// A later kernel that fits on no multiprocessor; its application has stopped there.
    pub unfit: Option<Unfit>,
    model: Model,
    sms: Vec<Sm>,
    /// Next cycle in which each multiprocessor has work, and the first of them.
    due: Vec<u64>,
    first: u64,
    apps: Vec<App>,
    /// Applications as `sharing` sees them, including which are held: [`Gpu::hold`].
    views: Vec<AppView>,
    /// Scheduler of the applications' kernels.
    sharing: Box<dyn KernelScheduler>,
    /// Multiprocessors that take each application's blocks.
    shares: Vec<Range<u16>>,
    /// Scheduler of each application's blocks among these.
    blocks: Vec<Box<dyn BlockScheduler>>,
    /// True if an application that has ended restarts until all have ended.
    repeat: bool,
    /// True if all have ended: nothing more is issued for restarted applications.
    over: bool,
    /// Position of each application's present kernel in `stats.kernels`.
    kernels: Vec<usize>,
    /// Application whose block is taken next.
    turn: usize,
    /// Pending event and its cycle.
    pending: Option<(u64, Ticket)>,
    /// First cycle that has not come yet.
    next: u64,
    /// Applications of blocks that have ended.
    ended: Vec<u8>,
    /// True if blocks may have become ready: a kernel has been launched, or an application is held or released.
    fresh: bool,
    meter: Option<Box<GpuMeter>>,
}

impl Gpu {
    /// Creates idle multiprocessors for `apps` applications; a translation entry covers `reach` bytes, a multiple of 4
    /// KiB.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key inside the `gpu` table.
    pub fn new(spec: &GpuSpec, apps: u8, reach: u64) -> Result<Gpu, SpecError> {
        spec.check()?;
        spec::check_reach(reach)?;
        let model = Model::new(spec, reach);
        let sms = usize::from(spec.sms);
        let sharing = spec.kernels.build(&spec.sms);
        let share = |app: u8| sharing.share(app.into(), apps.into(), spec.sms);
        let shares: Vec<Range<u16>> = (0..apps).map(share).collect();
        Ok(Gpu {
            stats: GpuStats { sms: vec![SmStats::default(); sms], ..GpuStats::default() },
            tally: Tally::default(),
            unfit: None,
            sms: (0..spec.sms).map(|sm| Sm::new(sm, spec, &model)).collect(),
            model,
            due: vec![NEVER; sms],
            first: NEVER,
            apps: vec![App::default(); apps.into()],
            views: vec![AppView::default(); apps.into()],
            sharing,
            blocks: shares.iter().map(|share| spec.blocks.build(&(share.end - share.start))).collect(),
            shares,
            repeat: spec.repeat,
            over: false,
            kernels: vec![0; apps.into()],
            turn: 0,
            pending: None,
            next: 0,
            ended: Vec::new(),
            fresh: false,
            meter: spec.energy.as_ref().map(|costs| Box::new(GpuMeter::new(costs, spec.sms))),
        })
    }

    /// Launches the first kernel of every application.
    ///
    /// # Errors
    /// A kernel that fits on no multiprocessor.
    pub fn begin(&mut self, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) -> Result<(), Unfit> {
        let edge = self.edge(cx.now());
        for app in 0..self.apps.len() as u8 {
            self.launch(app, programs, cx);
        }
        self.take_blocks(edge, programs, cx);
        self.schedule(cx);
        self.unfit.map_or(Ok(()), Err)
    }

    /// Runs the cycle that has come.
    pub fn handle(&mut self, Event::Cycle: Event, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) {
        let Some((cycle, _)) = self.pending.take() else {
            debug_assert!(false, "a cycle that was not asked for");
            return;
        };
        self.next = cycle + 1;
        let mut first = NEVER;
        let (sms, all_due, mut env) = self.parts(cycle, programs, cx.now());
        for (sm, due) in sms.iter_mut().zip(all_due) {
            if *due <= cycle {
                sm.tick(&mut env, cx);
                *due = sm.due(cycle + 1, env.model).unwrap_or(NEVER);
            }
            first = first.min(*due);
        }
        self.first = first;
        if let Some(meter) = &mut self.meter {
            let period = self.model.period;
            let issued = self.stats.sms.iter().map(|sm| sm.busy).sum();
            meter.cycle((period.times(cycle), period.times(cycle + 1)), issued);
        }
        self.take_blocks(cycle + 1, programs, cx);
        self.schedule(cx);
    }

    /// Prefetches the data for an answer that will arrive soon. Changes no state.
    #[inline]
    pub fn expect(&self, access: &Access) {
        self.sms[usize::from(access.port)].expect(access);
    }

    /// Handles the answer to an access.
    pub fn answer(&mut self, access: Access, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) {
        let (sm, edge) = (usize::from(access.port), self.edge(cx.now()));
        let (sms, _, mut env) = self.parts(edge, programs, cx.now());
        sms[sm].answer(access, &mut env);
        self.wake(sm, edge);
        self.take_blocks(edge, programs, cx);
        self.schedule(cx);
    }

    /// Handles the answer to a translation.
    pub fn translated(
        &mut self,
        translation: Translation,
        programs: &mut dyn Programs,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let (sm, edge) = (usize::from(translation.port), self.edge(cx.now()));
        let (sms, _, mut env) = self.parts(edge, programs, cx.now());
        sms[sm].translated(translation, &mut env);
        self.wake(sm, edge);
        self.schedule(cx);
    }

    /// Gives a helper thread more work, on the next multiprocessor in turn; [`Out::Helped`] answers. The thread has
    /// priority over warps of applications, and is neither held nor stopped with them.
    pub fn help(&mut self, help: Help, cx: &mut impl Cx<Event, Out>) {
        let (sm, edge) = (help.thread as usize % self.sms.len(), self.edge(cx.now()));
        self.sms[sm].help(help);
        self.wake(sm, edge);
        self.schedule(cx);
    }

    /// Holds or releases an application. While it is held, its warps issue no access to global memory, and
    /// multiprocessors take none of its blocks. Issued work continues, and so do all other applications: a held
    /// application occupies only the places of its running blocks, and takes no turn.
    pub fn hold(&mut self, app: u8, held: bool, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) {
        self.views[usize::from(app)].held = held;
        for sm in &mut self.sms {
            sm.hold(app, held);
        }
        let edge = self.edge(cx.now());
        if !held {
            for sm in 0..self.sms.len() {
                self.wake(sm, edge);
            }
        }
        // The owner of the turn may have changed either way.
        self.fresh = true;
        self.take_blocks(edge, programs, cx);
        self.schedule(cx);
    }

    /// Removes a translation, and the lines of its page, from every multiprocessor. The sender must handle translations
    /// under way.
    pub fn invalidate(&mut self, app: u8, page: u64) {
        for sm in &mut self.sms {
            sm.invalidate(app, page);
        }
    }

    /// Number of multiprocessors: ports of the network that they take.
    pub fn ports(&self) -> u16 {
        self.sms.len() as u16
    }

    /// Returns whether every application has ended, at least once.
    pub fn is_done(&self) -> bool {
        self.apps.iter().all(|app| app.done)
    }

    /// Returns whether an application that has ended restarts until all have ended.
    pub fn repeats(&self) -> bool {
        self.repeat
    }

    /// Number of unanswered accesses and translations.
    pub fn outstanding(&self) -> usize {
        self.sms.iter().map(Sm::outstanding).sum()
    }

    /// Resets the counters; running kernels begin now.
    pub fn reset_stats(&mut self, now: Time) {
        // Events before the present cycle are counted first, then discarded.
        let cycle = now.ps() / self.model.period.ps();
        let running: Vec<_> = self.stats.kernels.iter().filter(|k| k.ended.is_none()).copied().collect();
        self.stats.kernels = running;
        for (place, kernel) in self.stats.kernels.iter_mut().enumerate() {
            self.kernels[usize::from(kernel.app)] = place;
            kernel.begun = now;
            kernel.counters = Counters::default();
        }
        for (sm, cycles) in self.sms.iter_mut().zip(&mut self.stats.sms) {
            sm.count_idle(cycle, cycles);
            *cycles = SmStats::default();
        }
        self.stats.reads.clear();
        self.stats.writes.clear();
        self.stats.store_translations = 0;
        self.stats.helper_instructions = 0;
        self.tally = Tally::default();
        if let Some(meter) = &mut self.meter {
            meter.reset(now);
        }
    }

    /// Energy of the multiprocessors since counters were reset, and of the rest of their chip; `None` without energy
    /// constants in the spec.
    pub fn energy(&self, now: Time) -> Option<::stats::EnergyReport> {
        self.meter.as_ref().map(|meter| meter.report(now))
    }

    /// First cycle, at or after a time, that has not come yet.
    #[inline]
    fn edge(&self, now: Time) -> u64 {
        now.ps().div_ceil(self.model.period.ps()).max(self.next)
    }

    /// Multiprocessors, the cycles in which each has work, and their environment.
    #[inline]
    fn parts<'a>(
        &'a mut self,
        cycle: u64,
        programs: &'a mut dyn Programs,
        now: Time,
    ) -> (&'a mut [Sm], &'a mut [u64], Env<'a>) {
        let env = Env {
            model: &self.model,
            stats: &mut self.stats,
            tally: &mut self.tally,
            kernels: &self.kernels,
            ended: &mut self.ended,
            programs,
            now,
            cycle,
        };
        (&mut self.sms, &mut self.due, env)
    }

    /// Notes that a multiprocessor may have work from a cycle on.
    #[inline]
    fn wake(&mut self, sm: usize, from: u64) {
        if self.due[sm] > from
            && let Some(due) = self.sms[sm].due(from, &self.model)
        {
            self.due[sm] = self.due[sm].min(due);
            self.first = self.first.min(due);
        }
    }

    /// Schedules the first cycle with work.
    fn schedule(&mut self, cx: &mut impl Cx<Event, Out>) {
        let first = self.first;
        debug_assert_eq!(Some(first), self.due.iter().copied().min());
        if let Some((cycle, ticket)) = self.pending {
            if cycle <= first {
                return;
            }
            cx.cancel(ticket);
            self.pending = None;
        }
        if first != NEVER {
            let delay = self.model.period.times(first) - cx.now();
            self.pending = Some((first, cx.late(delay, Event::Cycle)));
        }
    }
}

#[cfg(test)]
impl Gpu {
    /// Gives every multiprocessor a translation at the start.
    fn know(&mut self, app: u8, page: u64, frame: u64) {
        for sm in &mut self.sms {
            sm.know(app, page, frame);
        }
    }
}
