//! Sequential jobs of Storengine: metadata of full blocks, reclaim of used ones.

use super::{Flashvisor, Physical, Step, Storengine, Work};
use crate::page_groups::victim::VictimView;

/// Job in progress.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    Idle,
    /// Writes the metadata of a full block.
    Describe {
        block: u32,
        progress: Progress,
    },
    /// Reads the metadata of a victim.
    Load {
        victim: u32,
        progress: Progress,
    },
    /// Moves the valid groups of a victim.
    Move {
        victim: u32,
        /// Number of the block's groups examined.
        looked: u32,
        /// Number of moves in flight.
        under_way: u32,
    },
    /// Erases a victim.
    Erase {
        victim: u32,
    },
}

/// Progress over a block's metadata groups.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    begun: u32,
    done: u32,
}

impl Storengine {
    /// Returns the next step of the job in progress, or of a new one.
    pub(super) fn next_of_job(&mut self, visor: &mut Flashvisor) -> Option<(Work, Step)> {
        if matches!(self.job, Job::Idle) {
            self.job = self.choose(visor)?;
        }
        match self.job {
            Job::Idle => None,
            Job::Describe { block, progress } => {
                let group = self.next_metadata(block, progress, visor)?;
                let entries = visor.layout.data_groups().div_ceil(visor.layout.metadata_groups());
                Some((Work::Meta, Step::WriteMeta { group, entries }))
            }
            Job::Load { victim, progress } => {
                let group = self.next_metadata(victim, progress, visor)?;
                Some((Work::Meta, Step::ReadMeta { group }))
            }
            Job::Move { victim, looked, under_way } => self.next_move(victim, looked, under_way, visor),
            Job::Erase { .. } => None,
        }
    }

    fn choose(&mut self, visor: &mut Flashvisor) -> Option<Job> {
        let progress = Progress::default();
        if let Some(block) = visor.space.take_undescribed() {
            return Some(Job::Describe { block, progress });
        }
        let gains = visor.space.invalid() >= u64::from(visor.space.data_groups());
        if visor.space.free_count() >= self.below || !gains {
            return None;
        }
        let view = VictimView::new(&visor.space);
        let victim = self.victim.pick(&view)?;
        visor.counters.weighed += view.weighed();
        visor.space.reclaim(victim);
        Some(Job::Load { victim, progress })
    }

    fn next_metadata(&mut self, block: u32, progress: Progress, visor: &Flashvisor) -> Option<Physical> {
        if progress.begun == visor.layout.metadata_groups() {
            return None;
        }
        if let Job::Describe { progress, .. } | Job::Load { progress, .. } = &mut self.job {
            progress.begun += 1;
        }
        Some(visor.layout.group(block, progress.begun))
    }

    /// Registers a metadata group that has been written or read.
    pub(super) fn metadata_done(&mut self, visor: &mut Flashvisor) {
        let all = visor.layout.metadata_groups();
        match &mut self.job {
            Job::Describe { block, progress } => {
                progress.done += 1;
                visor.counters.metadata += 1;
                if progress.done == all {
                    visor.space.described(*block);
                    if let Some(durable) = &mut visor.durable {
                        durable.described[*block as usize] = true;
                    }
                    self.job = Job::Idle;
                }
            }
            Job::Load { victim, progress } => {
                progress.done += 1;
                if progress.done == all {
                    self.job = Job::Move { victim: *victim, looked: all, under_way: 0 };
                }
            }
            _ => unreachable!("no metadata step is in flight"),
        }
    }

    fn next_move(
        &mut self,
        victim: u32,
        mut looked: u32,
        under_way: u32,
        visor: &mut Flashvisor,
    ) -> Option<(Work, Step)> {
        if under_way == self.moves {
            return None;
        }
        while looked < visor.layout.block_groups() {
            let group = visor.layout.group(victim, looked);
            looked += 1;
            visor.counters.examined += 1;
            visor.counters.lookups += 1;
            let index = visor.held(group);
            let Some(index) = index.filter(|n| visor.map.get(*n, &visor.layout) == Some(group)) else {
                continue;
            };
            self.job = Job::Move { victim, looked, under_way: under_way + 1 };
            return Some(self.begin_move(index, group, visor));
        }
        self.job = Job::Move { victim, looked, under_way };
        if under_way > 0 || visor.space.is_read(victim) {
            return None;
        }
        self.job = Job::Erase { victim };
        if let Some(durable) = &mut visor.durable {
            durable.erase_begins(victim);
        }
        Some((Work::Erase, Step::Erase { block: victim }))
    }

    pub(super) fn move_has_ended(&mut self) {
        if let Job::Move { under_way, .. } = &mut self.job {
            *under_way -= 1;
        }
    }

    pub(super) fn erased(&mut self, visor: &mut Flashvisor) {
        let Job::Erase { victim } = self.job else { unreachable!("no erase is in flight") };
        visor.erased(victim);
        self.job = Job::Idle;
    }

    /// Returns whether numbers of Storengine's block are reserved for moves.
    pub(super) fn is_moving(&self) -> bool {
        matches!(self.job, Job::Load { .. } | Job::Move { .. })
    }
}
