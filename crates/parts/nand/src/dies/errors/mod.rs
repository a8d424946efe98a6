//! Raw bit errors: how many bits of a page are wrong, and how often it must be read until a code corrects them.
//!
//! A page's raw bit error rate rises with the erases of its block, with the time since it was programmed, and with the reads that
//! its block has had since (Cai et al., Proc. IEEE 2017, have all three). The rate is worked out when the page is read, from what a
//! block remembers: nothing is stored by page. Pages deviate from one another by a hash of the run's seed, of the place and of the
//! block's erases: a page keeps its deviation until it is erased, whoever reads it in which order.
//!
//! A read whose page has more errors than the code corrects is done again with shifted read voltages, step by step, each of which
//! leaves a share of the errors of the one before (Park et al., ASPLOS 2021: the last step leaves few of them).
//!
//! What power takes: a device that is recovered takes all its data for as old as preconditioning's.

use super::op::{NO_OP, Op, OpKind};
use super::spread::deviations;
use super::{Backend, DieState};
use crate::geometry::Geometry;
use engine::{Snapshot, Time, mix};

/// Standard deviations in the unit that [`deviations`] speaks.
const WHOLE: u32 = 1_000_000;
/// No page.
const NO_PAGE: u32 = u32::MAX;
/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// Raw bit error rates, and the code that corrects them.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRates {
    /// What tells one device from another.
    pub seed: u64,
    /// Of a page just programmed in a block never erased.
    pub fresh: f64,
    /// What an erase of its block adds.
    pub wear: f64,
    /// What a day since its program adds.
    pub retention: f64,
    /// Days since the programs of before the first command.
    pub age: f64,
    /// What a read of its block since it was programmed adds.
    pub reads: f64,
    /// Factors by page type.
    pub types: Vec<f64>,
    /// Standard deviation of the logarithm of a page's rate.
    pub spread: f64,
    /// The rate that the code corrects.
    pub correctable: f64,
    /// What a further step leaves of the rate.
    pub gain: f64,
    /// Further steps, at most.
    pub limit: u8,
    /// What a further step takes beyond its command, sensing and transfer.
    pub latency: Time,
}

/// What a block remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Past {
    /// Its reads since it was erased.
    reads: u32,
    /// The first page that was programmed since the first command; those before it are as old as preconditioning's data.
    first: u32,
    /// When that page was programmed.
    since: Time,
}

engine::snapshot!(Past { reads, first, since });

impl Past {
    const NONE: Past = Past { reads: 0, first: NO_PAGE, since: Time::ZERO };
}

/// Rates, and what blocks remember.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    rates: ErrorRates,
    page_type: Vec<u8>,
    /// Planes of a die, blocks of a plane.
    planes: u32,
    blocks: u32,
    /// Pages of a map unit, if it is larger than one.
    pages: u32,
    past: Vec<Past>,
    /// Further steps that reads were found to need.
    due: u64,
}

impl Errors {
    pub(super) fn new(rates: ErrorRates, page_type: &[u8], geo: &Geometry) -> Errors {
        let blocks = u64::from(geo.die_count * geo.die_planes) * u64::from(geo.shape.blocks);
        Errors {
            rates,
            page_type: page_type.to_vec(),
            planes: geo.die_planes,
            blocks: geo.shape.blocks,
            pages: geo.pages_per_unit(),
            past: vec![Past::NONE; blocks as usize],
            due: 0,
        }
    }

    /// Time of a further step beyond its command, sensing and transfer.
    pub(super) fn latency(&self) -> Time {
        self.rates.latency
    }

    fn past(&mut self, op: &Op, block: u32) -> &mut Past {
        let plane = op.die * self.planes + u32::from(op.plane);
        &mut self.past[plane as usize * self.blocks as usize + block as usize]
    }

    /// The raw bit error rate of a page of a block.
    fn rate(&self, op: &Op, page: u32, past: Past, now: Time) -> f64 {
        let rates = &self.rates;
        let days = if page < past.first {
            rates.age + now.as_s_f64() / DAY
        } else {
            now.since(past.since).as_s_f64() / DAY
        };
        let mean = rates.fresh
            + rates.wear * f64::from(op.erases)
            + rates.retention * days
            + rates.reads * f64::from(past.reads);
        let rate = mean * rates.types[usize::from(self.page_type[page as usize])];
        if rates.spread == 0.0 { rate } else { rate * self.deviation(op, page) }
    }

    /// How far a page deviates, as a factor.
    fn deviation(&self, op: &Op, page: u32) -> f64 {
        let plane = u64::from(op.die) << 8 | u64::from(op.plane);
        let block = mix(self.rates.seed ^ mix(plane << 32 | u64::from(op.block)));
        let bits = mix(block ^ mix(u64::from(op.erases) << 32 | u64::from(page)));
        let deviations = deviations(bits, WHOLE) as f64 / f64::from(WHOLE);
        libm::exp(self.rates.spread * deviations)
    }

    /// Further steps until the code corrects what is left of a rate, and whether it does in the end.
    fn steps(&self, rate: f64) -> (u8, bool) {
        let (mut left, mut steps) = (rate, 0);
        while left > self.rates.correctable && steps < self.rates.limit {
            left *= self.rates.gain;
            steps += 1;
        }
        (steps, left <= self.rates.correctable)
    }

    /// Further steps that a read needs, and whether it ends well: those of the worst of its pages.
    fn judge(&mut self, op: &Op, now: Time) -> (u8, bool) {
        let past = *self.past(op, op.block);
        let pages = op.page..op.page + self.pages;
        let worst = pages.map(|page| self.rate(op, page, past, now)).fold(0.0, f64::max);
        let (steps, ends_well) = self.steps(worst);
        self.due += u64::from(steps);
        (steps, ends_well)
    }

    /// An array has done its work on a block, or sensed it.
    fn worked(&mut self, op: &Op, now: Time) {
        let block = if op.kind == OpKind::CopyBack { op.source_block } else { op.block };
        let past = self.past(op, block);
        match op.kind {
            OpKind::Read | OpKind::CopyBack => past.reads = past.reads.saturating_add(1),
            OpKind::Program => {}
            OpKind::Erase => *past = Past::NONE,
        }
        if matches!(op.kind, OpKind::Program | OpKind::CopyBack) {
            let past = self.past(op, op.block);
            if past.first == NO_PAGE {
                (past.first, past.since) = (op.page, now);
            }
        }
    }

    /// Appends what blocks remember, and which of their pages deviate.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        self.rates.seed.save(out);
        self.past.save(out);
        self.due.save(out);
    }

    /// Replaces it by what one of the same shape saved; `None` if that is cut short or malformed.
    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.rates.seed = u64::load(input)?;
        self.past = Vec::load(input).filter(|past: &Vec<Past>| past.len() == self.past.len())?;
        self.due = u64::load(input)?;
        Some(())
    }
}

impl Backend {
    /// Whether pages have errors: then reads carry the erases of their block.
    #[inline]
    pub fn has_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// Further steps that reads were found to need; and those that were begun, with those that are still to come.
    pub fn retries(&self) -> Option<(u64, u64)> {
        let errors = self.errors.as_ref()?;
        let mut to_come = 0;
        for die in self.dies.iter().filter(|die| die.steps > 0) {
            // A step that waits for the channel has not begun.
            let begun = die.step - u8::from(die.state == DieState::Retrying);
            let mut at = die.active;
            while at != NO_OP {
                to_come += u64::from(self.ops[at].steps.saturating_sub(begun));
                at = self.ops[at].mate;
            }
        }
        Some((errors.due, self.counters.retry_steps + to_come))
    }

    /// The array of a unit has done its work: blocks remember it, and a first sensing is judged.
    #[cold]
    pub(super) fn leaves_traces(&mut self, unit: u32, now: Time) {
        let Some(errors) = &mut self.errors else { return };
        let die = &mut self.dies[unit as usize];
        let mut at = die.active;
        while at != NO_OP {
            let leaves = Backend::page_leaves(&self.ops, at);
            let op = &mut self.ops[at];
            let is_sensed = op.steps >= die.step && !op.from_register;
            if op.kind == OpKind::Read && leaves && is_sensed && die.step == 0 {
                let (steps, ends_well) = errors.judge(op, now);
                op.steps = steps;
                op.is_lost = !ends_well;
                die.steps = die.steps.max(steps);
                self.counters.retried_reads += u64::from(steps > 0);
                self.counters.uncorrectable_reads += u64::from(!ends_well);
            }
            if is_sensed {
                errors.worked(op, now);
            }
            at = op.mate;
        }
    }
}

#[cfg(test)]
mod tests;
