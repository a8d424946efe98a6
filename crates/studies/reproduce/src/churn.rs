//! Overwrites without time: the functional mode, unit by unit.

use super::stand::SEED;
use config::Diagnostic;
use engine::Rng;
use ftl::page_map::Ftl;
use ftl::page_map::space::Stream;
use proto::Lpn;
use ssd::Device;
use stats::{BatchMeans, Interval};
use std::sync::atomic::{AtomicBool, Ordering};

/// One overwrite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overwrite {
    pub(super) unit: u64,
    pub(super) group: u32,
    pub(super) placement: u8,
}

/// Overwrites between two looks at whether to stop.
const SLICE: u64 = 1 << 16;

/// Overwrites single units without time, by the functions that the timed device calls.
pub(super) struct Churn<'a, Draw> {
    ftl: &'a mut Ftl,
    rng: Rng,
    draw: Draw,
    stop: &'a AtomicBool,
}

impl<'a, Draw: Fn(&mut Rng) -> Overwrite> Churn<'a, Draw> {
    /// Overwrites what `draw` chooses, in the same order every time, one for each device; until `stop` is set.
    pub(super) fn new(draw: Draw, device: &'a mut Device, stop: &'a AtomicBool) -> Churn<'a, Draw> {
        Churn { ftl: &mut device.ftl, rng: Rng::stream(SEED, "reproduce/churn"), draw, stop }
    }

    /// Overwrites `turns` of the logical space.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    pub(super) fn turn(&mut self, turns: u64) -> Result<(), Diagnostic> {
        self.overwrite(turns * self.ftl.logical())
    }

    fn overwrite(&mut self, count: u64) -> Result<(), Diagnostic> {
        for n in 0..count {
            if n % SLICE == 0 && self.stop.load(Ordering::Relaxed) {
                return Err(Diagnostic::new("interrupted"));
            }
            write(self.ftl, (self.draw)(&mut self.rng))?;
        }
        Ok(())
    }

    /// Write amplification over `turns` of the logical space, with its 99 % confidence interval.
    ///
    /// # Errors
    /// If nothing can be reclaimed.
    pub(super) fn measure(&mut self, turns: u64) -> Result<(f64, Option<Interval>), Diagnostic> {
        let mut batches = BatchMeans::new();
        let batch = (self.ftl.logical() / 64).max(1);
        let before = self.ftl.counters;
        let mut last = before;
        for _ in 0..64 * turns {
            self.overwrite(batch)?;
            let now = self.ftl.counters;
            batches.push(1.0 + (now.moves - last.moves) as f64 / batch as f64);
            last = now;
        }
        let all = last.since(&before);
        Ok((1.0 + all.moves as f64 / all.host_commits as f64, batches.interval(0.99)))
    }
}

/// Writes one unit, reclaiming first where space is short.
///
/// # Errors
/// If nothing can be reclaimed.
pub(super) fn write(ftl: &mut Ftl, to: Overwrite) -> Result<(), Diagnostic> {
    let full = |free| Diagnostic::new(format!("group {} has no space: {free} blocks free", to.group));
    ftl.make_room(to.group).map_err(|fault| full(fault.free))?;
    let slot = ftl.reserve(to.group, Stream::Host(to.placement)).ok_or_else(|| full(ftl.free(to.group)))?;
    ftl.fill(slot, Some(Lpn(to.unit)));
    ftl.program(slot);
    ftl.commit(Lpn(to.unit), slot);
    ftl.programmed(slot);
    Ok(())
}
