//! Raw bit errors: the number of wrong bits in a page, and the number of reads until a code corrects them.
//!
//! A page's raw bit error rate rises with the erases of its block, with the time since it was programmed, and with the
//! reads of its block since then (Cai et al., Proc. IEEE 2017, have all three). The rate is computed when the page is
//! read, from per-block state: nothing is stored per page. Pages deviate from one another by a hash of the run's seed,
//! the place and the block's erases. A page keeps its deviation until it is erased, whatever the order of reads.
//!
//! A read whose page has more errors than the code corrects is repeated with shifted read voltages, step by step. Each
//! step leaves a share of the errors of the previous one (Park et al., ASPLOS 2021: the last step leaves few of them).
//!
//! State lost at a power cut: a recovered device treats all its data as being as old as that of preconditioning.

use super::timing::deviations;
use super::{Backend, DieState, Event};
use super::{
    arbiter::Want,
    op::{NO_OP, Op, OpKind},
};
use crate::geometry::Geometry;
use engine::{Cx, Snapshot, Time, mix};
use std::convert::Infallible;

/// One standard deviation in the unit of [`deviations`].
const WHOLE: u32 = 1_000_000;
/// No page.
const NO_PAGE: u32 = u32::MAX;
/// Seconds per day.
const DAY: f64 = 86_400.0;

/// Raw bit error rates, and the code that corrects them.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorRates {
    /// Seed that distinguishes devices.
    pub seed: u64,
    /// Rate of a page just programmed in a block that was never erased.
    pub fresh: f64,
    /// Rate that each erase of the block adds.
    pub wear: f64,
    /// Rate that each day since the program adds.
    pub retention: f64,
    /// Age in days of data programmed before the first command.
    pub age: f64,
    /// Rate that each read of the block since the program adds.
    pub reads: f64,
    /// Factors by page type.
    pub types: Vec<f64>,
    /// Standard deviation of the logarithm of a page's rate.
    pub spread: f64,
    /// Highest rate that the code corrects.
    pub correctable: f64,
    /// Share of the rate that a further step leaves.
    pub gain: f64,
    /// Maximum number of further steps.
    pub limit: u8,
    /// Time of a further step beyond its command, sensing and transfer.
    pub latency: Time,
}

/// State of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Past {
    /// Reads since the block was erased.
    reads: u32,
    /// First page programmed since the first command; earlier pages are as old as preconditioning's data.
    first: u32,
    /// Time when that page was programmed.
    since: Time,
}

engine::snapshot!(Past { reads, first, since });

impl Past {
    const NONE: Past = Past { reads: 0, first: NO_PAGE, since: Time::ZERO };
}

/// Rates, and the state of blocks.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    rates: ErrorRates,
    page_type: Vec<u8>,
    /// Planes per die; blocks per plane follow.
    planes: u32,
    blocks: u32,
    /// Pages per map unit, if it is larger than one.
    pages: u32,
    past: Vec<Past>,
    /// Number of further steps that reads needed.
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

    /// Returns the time of a further step beyond its command, sensing and transfer.
    pub(super) fn latency(&self) -> Time {
        self.rates.latency
    }

    fn past(&mut self, op: &Op, block: u32) -> &mut Past {
        let plane = op.die * self.planes + u32::from(op.plane);
        &mut self.past[plane as usize * self.blocks as usize + block as usize]
    }

    /// Returns the raw bit error rate of a page of a block.
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

    /// Returns the deviation of a page, as a factor.
    fn deviation(&self, op: &Op, page: u32) -> f64 {
        let plane = u64::from(op.die) << 8 | u64::from(op.plane);
        let block = mix(self.rates.seed ^ mix(plane << 32 | u64::from(op.block)));
        let bits = mix(block ^ mix(u64::from(op.erases) << 32 | u64::from(page)));
        let deviations = deviations(bits, WHOLE) as f64 / f64::from(WHOLE);
        libm::exp(self.rates.spread * deviations)
    }

    /// Returns the number of further steps until the code corrects the remaining errors, and whether it succeeds.
    fn steps(&self, rate: f64) -> (u8, bool) {
        let (mut left, mut steps) = (rate, 0);
        while left > self.rates.correctable && steps < self.rates.limit {
            left *= self.rates.gain;
            steps += 1;
        }
        (steps, left <= self.rates.correctable)
    }

    /// Returns the number of further steps that a read needs, and whether it succeeds: those of its worst page.
    fn judge(&mut self, op: &Op, now: Time) -> (u8, bool) {
        let past = *self.past(op, op.block);
        let pages = op.page..op.page + self.pages;
        let worst = pages.map(|page| self.rate(op, page, past, now)).fold(0.0, f64::max);
        let (steps, ends_well) = self.steps(worst);
        self.due += u64::from(steps);
        (steps, ends_well)
    }

    /// Updates a block after its array has worked on it or sensed it.
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

    /// Appends the state of blocks and the seed of the deviations.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        self.rates.seed.save(out);
        self.past.save(out);
        self.due.save(out);
    }

    /// Restores the state saved with the same shape; `None` if it is truncated or malformed.
    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.rates.seed = u64::load(input)?;
        self.past = Vec::load(input).filter(|past: &Vec<Past>| past.len() == self.past.len())?;
        self.due = u64::load(input)?;
        Some(())
    }
}

impl Backend {
    /// Returns whether pages have errors: then reads carry the erases of their block.
    #[inline]
    pub fn has_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// Returns the number of further steps that reads needed, and the number begun or still to come.
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

    /// Updates blocks after a unit's array has finished, and judges a first sensing.
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

// Read retry: a page that the code could not correct is sensed again with different read voltages.
//
// The decoder is in the controller: a page leaves over the channel before it is known whether it can be corrected. If
// not, the die stays with its command: it takes the read again, senses, and hands out its data again; all other
// requests for the die wait. Requests for the channel wait while it is in use. For a command on several planes, each
// step senses together the pages that still need it. Reads that joined this one get its data, and data in a register
// has already been corrected: neither is read again separately.

impl Backend {
    /// Handles read data of which the decoder could not correct all: the die requests its channel again.
    #[cold]
    pub(super) fn reads_again(&mut self, unit: u32, cx: &mut impl Cx<Event, Infallible>) {
        let d = &mut self.dies[unit as usize];
        d.step += 1;
        d.state = DieState::Retrying;
        let c = &self.channels[d.channel as usize];
        if cx.now() >= c.busy_until && !c.is_wanted() {
            self.grant_retry(unit, cx);
        } else {
            self.ask(unit, Want::Read, cx);
        }
    }

    /// Senses the pages that still have too many errors again.
    #[cold]
    pub(super) fn grant_retry(&mut self, unit: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let latency = self.errors.as_ref().map_or(Time::ZERO, |errors| errors.latency());
        let (first, step) = (self.dies[unit as usize].active, self.dies[unit as usize].step);
        let (mut tenure, mut sensing, mut at) = (Time::ZERO, Time::ZERO, first);
        while at != NO_OP {
            let op = &self.ops[at];
            if op.steps >= step {
                tenure += self.timing.command(op);
                sensing = sensing.max(self.timing.array(op));
                self.counters.retry_steps += 1;
            }
            at = op.mate;
        }
        let array = sensing + latency;
        self.array_time.due += array;
        let d = &mut self.dies[unit as usize];
        d.state = DieState::Working;
        d.array_from = now + tenure;
        d.array_to = now + tenure + array;
        d.ticket = Some(cx.after(tenure + array, Event::ArrayDone(unit)));
        let channel = d.channel;
        self.hold(channel, (self.ops[first].class, tenure), cx);
    }

    /// Handles a repeated sensing. Further reads of its pages no longer join this command.
    #[cold]
    pub(super) fn sensed_again(&mut self, first: u32, now: Time) {
        let mut at = first;
        while at != NO_OP {
            self.ops[at].sensed = now;
            at = self.after(at);
        }
    }
}

#[cfg(test)]
mod tests {
    // Rates against their formula, steps against the distribution that deviations are drawn from.
    use super::*;
    use crate::dies::op::Class;
    use crate::geometry::tests::small;
    use crate::geometry::{Address, Reclaim, Shape};
    use proto::Slot;

    const RATES: ErrorRates = ErrorRates {
        seed: 11,
        fresh: 0.001,
        wear: 0.0,
        retention: 0.0,
        age: 0.0,
        reads: 0.0,
        types: Vec::new(),
        spread: 0.0,
        correctable: 0.004,
        gain: 0.5,
        limit: 8,
        latency: Time::ZERO,
    };

    fn errors(rates: &ErrorRates) -> Errors {
        let geo = Geometry::new(Shape { blocks: 16, pages: 48, ..small(Reclaim::Block) });
        let types = if rates.types.is_empty() { vec![1.0, 1.0] } else { rates.types.clone() };
        // Types take turns.
        let page_type: Vec<u8> = (0..geo.shape.pages).map(|page| (page % 2) as u8).collect();
        Errors::new(ErrorRates { types, ..rates.clone() }, &page_type, &geo)
    }

    fn op(kind: OpKind, block: u32, page: u32, erases: u32) -> Op {
        let at = Address { die: 1, plane: 1, block, page };
        Op { erases, ..Op::new(kind, Class::HostRead, at, Slot(0), 1, 4096, 0) }
    }

    fn rate(errors: &mut Errors, op: &Op, now: Time) -> f64 {
        let past = *errors.past(op, op.block);
        errors.rate(op, op.page, past, now)
    }

    fn is_near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, expected {expected}");
    }

    /// Returns the probability that the sum of four uniform numbers is below `x` (Irwin and Hall).
    fn below(x: f64) -> f64 {
        let terms = [1.0, -4.0, 6.0, -4.0, 1.0].into_iter().enumerate();
        terms.map(|(k, c)| c * (x - k as f64).max(0.0).powi(4)).sum::<f64>() / 24.0
    }

    #[test]
    fn steps_are_distributed_as_deviations_are() {
        let rates = ErrorRates { fresh: 0.003, spread: 0.6, ..RATES };
        let mut errors = errors(&rates);
        let mut with = [0u32; 10];
        let (mut uncorrectable, mut all) = (0, 0);
        for erases in 0..40 {
            for (block, page) in (0..16).flat_map(|block| (0..48).map(move |page| (block, page))) {
                let (steps, ends_well) = errors.judge(&op(OpKind::Read, block, page, erases), Time::ZERO);
                (0..=usize::from(steps)).for_each(|n| with[n] += 1);
                uncorrectable += u32::from(!ends_well);
                all += 1;
            }
        }
        assert_eq!((with[0], uncorrectable), (all, 0));
        for n in 1..4 {
            // The nth step is needed if the rate left by the previous steps exceeds what can be corrected.
            let threshold =
                libm::log(rates.correctable / rates.gain.powi(n - 1) / rates.fresh) / rates.spread;
            let expected = 1.0 - below(2.0 + threshold / 3f64.sqrt());
            let found = f64::from(with[n as usize]) / f64::from(all);
            let error = (expected * (1.0 - expected) / f64::from(all)).sqrt();
            assert!(
                (found - expected).abs() < 4.0 * error,
                "{n} steps: {found}, expected {expected} +-{error}"
            );
        }
        let due: u32 = with[1..].iter().sum();
        assert_eq!(errors.due, u64::from(due));
    }

    #[test]
    fn what_wears_a_page_adds_up() {
        let types = vec![1.0, 3.0];
        let rates = ErrorRates { wear: 1e-5, retention: 2e-4, age: 30.0, reads: 1e-7, types, ..RATES };
        let mut errors = errors(&rates);
        let hours = |n: u64| Time::from_ms(n * 3_600_000);
        let old = op(OpKind::Read, 3, 4, 20);
        is_near(rate(&mut errors, &old, Time::ZERO), 0.001 + 20.0 * 1e-5 + 30.0 * 2e-4);
        is_near(rate(&mut errors, &op(OpKind::Read, 3, 5, 20), Time::ZERO), 3.0 * 0.0072);
        (0..50).for_each(|_| errors.worked(&old, Time::ZERO));
        is_near(rate(&mut errors, &old, hours(12)), 0.0012 + 30.5 * 2e-4 + 50.0 * 1e-7);
        // The block continues where preconditioning stopped: earlier pages are older.
        errors.worked(&op(OpKind::Program, 3, 8, 20), hours(24));
        errors.worked(&op(OpKind::Program, 3, 10, 20), hours(48));
        is_near(rate(&mut errors, &op(OpKind::Read, 3, 6, 20), hours(72)), 0.0012 + 33.0 * 2e-4 + 5e-6);
        is_near(rate(&mut errors, &op(OpKind::Read, 3, 8, 20), hours(72)), 0.0012 + 2.0 * 2e-4 + 5e-6);
        is_near(rate(&mut errors, &op(OpKind::Read, 3, 10, 20), hours(72)), 0.0012 + 2.0 * 2e-4 + 5e-6);
        // An erase resets the block, and other blocks are unaffected.
        errors.worked(&op(OpKind::Erase, 3, 0, 20), hours(72));
        errors.worked(&op(OpKind::Program, 3, 0, 21), hours(72));
        is_near(rate(&mut errors, &op(OpKind::Read, 3, 0, 21), hours(96)), 0.001 + 21.0 * 1e-5 + 2e-4);
        is_near(rate(&mut errors, &op(OpKind::Read, 4, 0, 0), Time::ZERO), 0.001 + 30.0 * 2e-4);
        // A copy reads one block and programs another.
        let copy = Op { source_block: 5, ..op(OpKind::CopyBack, 6, 0, 0) };
        errors.worked(&copy, hours(100));
        assert_eq!((errors.past(&copy, 5).reads, errors.past(&copy, 6).reads), (1, 0));
        assert_eq!((errors.past(&copy, 5).first, errors.past(&copy, 6).first), (NO_PAGE, 0));
    }

    #[test]
    fn a_page_keeps_its_deviation_until_it_is_erased() {
        let of = |seed: u64, erases: u32| {
            let mut errors = errors(&ErrorRates { seed, spread: 0.3, ..RATES });
            (0..48).map(|page| rate(&mut errors, &op(OpKind::Read, 2, page, erases), Time::ZERO)).collect()
        };
        let first: Vec<f64> = of(1, 7);
        assert_eq!(of(1, 7), first);
        for other in [of(2, 7), of(1, 8)] {
            assert!(first.iter().zip(&other).all(|(a, b)| a != b));
        }
        let furthest = libm::exp(0.3 * 3.4642);
        assert!(first.iter().all(|rate| (1.0 / furthest..furthest).contains(&(rate / RATES.fresh))));
    }

    #[test]
    fn steps_end_where_the_code_corrects_or_nobody_goes_on() {
        let errors = errors(&RATES);
        for (rate, steps) in [
            (0.0, (0, true)),
            (0.004, (0, true)),
            (0.0041, (1, true)),
            (0.008, (1, true)),
            (0.5, (7, true)),
            (1.0, (8, true)),
            (1.1, (8, false)),
        ] {
            assert_eq!(errors.steps(rate), steps, "{rate}");
        }
    }
}
