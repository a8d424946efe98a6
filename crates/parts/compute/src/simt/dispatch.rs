//! Dispatch of kernels and their blocks: `kernels` decides which blocks may begin, `blocks` where.

use super::Gpu;
use super::blocks::{Place, Room};
use super::sm::{Event, Needs, Out, Sm};
use super::spec::Model;
use super::stats::{Counters, KernelStats};
use engine::Cx;
use proto::simt::{Launch, Programs};
use std::fmt;
use std::ops::Range;

/// Resource that limits a block on a multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Threads of one block.
    BlockThreads,
    /// Warps of a multiprocessor.
    Warps,
    /// Threads of a multiprocessor, counted in whole warps.
    Threads,
    /// Registers of a multiprocessor.
    Registers,
    /// Bytes of shared memory.
    Shared,
}

impl Need {
    /// Key of the limit in the `gpu` table.
    pub fn key(self) -> &'static str {
        match self {
            Need::BlockThreads => "resident.block_threads",
            Need::Warps => "resident.warps",
            Need::Threads => "resident.threads",
            Need::Registers => "resident.registers",
            Need::Shared => "resident.shared",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Need::BlockThreads | Need::Threads => "threads",
            Need::Warps => "warps",
            Need::Registers => "registers",
            Need::Shared => "bytes of shared memory",
        }
    }
}

/// Kernel whose blocks fit on no multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfit {
    /// Application of the kernel.
    pub app: u8,
    /// Number of the launch.
    pub kernel: u32,
    /// Resource that is exceeded.
    pub what: Need,
    /// Amount that a block needs. Zero threads are refused too.
    pub needs: u64,
    /// Limit of the resource.
    pub limit: u64,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, key) = (self.what.noun(), self.what.key());
        write!(f, "a block of kernel {} of application {} has {} {noun}", self.kernel, self.app, self.needs)?;
        write!(f, "; allowed are 1 to {} (`{key}`)", self.limit)
    }
}

impl std::error::Error for Unfit {}

/// Present kernel of an application.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct App {
    /// Kernel, and the needs of each of its blocks.
    kernel: Option<(Launch, Needs)>,
    /// Blocks that a multiprocessor has taken.
    taken: u32,
    /// Blocks that have begun and not ended.
    running: u32,
    /// True if the application has come to its end, the first one if it is repeated.
    pub(super) done: bool,
}

impl Gpu {
    /// Launches an application's next kernel. At its end the application restarts, if applications are repeated and one
    /// has not ended yet.
    pub(super) fn launch(&mut self, app: u8, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) {
        let n = usize::from(app);
        self.views[n].kernel = false;
        let mut begun_again = false;
        loop {
            let Some(launch) = programs.launch(app) else {
                if !std::mem::replace(&mut self.apps[n], App { done: true, ..App::default() }).done {
                    cx.emit(Out::Finished(app));
                }
                // An application without launches would restart for ever.
                if !self.repeat || self.is_done() || std::mem::replace(&mut begun_again, true) {
                    return self.stop_if_all_have_ended();
                }
                programs.restart(app);
                continue;
            };
            let state = &mut self.apps[n];
            if let Err(unfit) = fits(app, &launch, &self.model) {
                self.unfit = self.unfit.or(Some(unfit));
                *state = App { done: true, ..App::default() };
                return;
            }
            *state = App { kernel: Some((launch, Needs::of(&launch))), done: state.done, ..App::default() };
            let now = cx.now();
            let empty = launch.blocks == 0;
            self.kernels[n] = self.stats.kernels.len();
            self.stats.kernels.push(KernelStats {
                app,
                number: launch.number,
                begun: now,
                ended: empty.then_some(now),
                counters: Counters::default(),
            });
            if !empty {
                self.blocks[n].begin(launch.blocks);
                self.views[n].kernel = true;
                self.fresh = true;
                return;
            }
        }
    }

    /// Ends a run with repetition at the first end of the last application: issued instructions complete, and restarted
    /// applications continue no further.
    fn stop_if_all_have_ended(&mut self) {
        if self.repeat && self.is_done() {
            self.over = true;
            self.sms.iter_mut().for_each(Sm::stop);
        }
    }

    /// Gives waiting blocks to multiprocessors: the applications that may begin blocks take turns. A kernel whose last
    /// block has ended is followed by the next. New warps may issue from `cycle` on.
    #[inline]
    pub(super) fn take_blocks(
        &mut self,
        cycle: u64,
        programs: &mut dyn Programs,
        cx: &mut impl Cx<Event, Out>,
    ) {
        if self.fresh || !self.ended.is_empty() {
            self.take_ready_blocks(cycle, programs, cx);
        }
    }

    #[cold]
    fn take_ready_blocks(&mut self, cycle: u64, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) {
        while !self.over && self.close_blocks(programs, cx) {
            let admitted = self.sharing.admit(&self.views);
            let mut refused = 0;
            while refused < self.apps.len() {
                let app = self.turn;
                self.turn = (self.turn + 1) % self.apps.len();
                let taken = admitted.has(app) && self.take_block(app, cycle, programs, cx);
                refused = if taken { 0 } else { refused + 1 };
            }
        }
    }

    /// Returns whether blocks have ended or become ready since the last call.
    fn close_blocks(&mut self, programs: &mut dyn Programs, cx: &mut impl Cx<Event, Out>) -> bool {
        let mut any = false;
        while let Some(app) = self.ended.pop() {
            any = true;
            let state = &mut self.apps[usize::from(app)];
            state.running -= 1;
            let blocks = state.kernel.map_or(0, |(launch, _)| launch.blocks);
            if state.running == 0 && state.taken == blocks {
                self.stats.kernels[self.kernels[usize::from(app)]].ended = Some(cx.now());
                self.sharing.ended(app.into(), blocks);
                self.launch(app, programs, cx);
            }
        }
        any | std::mem::take(&mut self.fresh)
    }

    /// Returns whether a multiprocessor has taken the next block of an application.
    fn take_block(
        &mut self,
        app: usize,
        cycle: u64,
        programs: &mut dyn Programs,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let state = self.apps[app];
        let Some((launch, needs)) = state.kernel.filter(|_| !self.views[app].held) else { return false };
        if state.taken == launch.blocks {
            return false;
        }
        let Range { start, end } = self.shares[app];
        let fits = |sm: u16| self.sms[usize::from(start + sm)].fits(&needs);
        let room = Room::new(end - start, &fits);
        let Some(Place { block, sm }) = self.blocks[app].place(&room) else { return false };
        let sm = usize::from(start + sm);
        if state.taken == 0 {
            self.stats.kernels[self.kernels[app]].begun = cx.now();
        }
        let state = &mut self.apps[app];
        state.taken += 1;
        state.running += 1;
        let (sms, _, mut env) = self.parts(cycle, programs, cx.now());
        sms[sm].start(app as u8, block, needs, &mut env);
        self.wake(sm, cycle);
        true
    }
}

fn fits(app: u8, launch: &Launch, model: &Model) -> Result<(), Unfit> {
    let needs = Needs::of(launch);
    let threads = u64::from(launch.threads);
    let limits = [
        (Need::BlockThreads, threads, u64::from(model.block_threads)),
        (Need::Warps, needs.warps.into(), model.warps.into()),
        (Need::Threads, needs.threads.into(), model.threads.into()),
        (Need::Registers, needs.registers, model.registers.into()),
        (Need::Shared, needs.shared, model.shared_bytes),
    ];
    let unfit = |(what, needs, limit)| Unfit { app, kernel: launch.number, what, needs, limit };
    let broken = limits.into_iter().find(|(_, needs, limit)| needs > limit);
    let empty = (threads == 0).then_some(limits[0]);
    broken.or(empty).map_or(Ok(()), |limit| Err(unfit(limit)))
}
