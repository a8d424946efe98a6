//! Test stand: D16 with overrides, one workload, and values to compare with a reference; and overwrites without time,
//! unit by unit.

use super::Context;
use config::Diagnostic;
use engine::{Rng, Time};
use ftl::page_map::Ftl;
use ftl::page_map::space::Stream;
use machine::source::FioSource;
use machine::{End, Machine};
use nand::dies::op::Class;
use proto::{IoOp, IoRequest, Lpn};
use requests::fio;
use requests::inject::{Injector, Next, Source};
use spec::{Drive, Loaded, queues};
use ssd::Device;
use stats::{BatchMeans, Interval, OpStats};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Queues of each run on which Little's law is checked.
pub(super) const QUEUES: usize = 2;
/// Seed of every run: results are the same on every machine.
pub(super) const SEED: u64 = 1;

/// Loads D16 with overrides.
///
/// # Errors
/// The spec does not accept an override.
pub(super) fn d16<S: AsRef<str>>(overrides: &[S]) -> Result<Loaded, Diagnostic> {
    let overrides: Vec<String> = overrides.iter().map(|o| o.as_ref().to_owned()).collect();
    machine::load("d16", &overrides)
}

/// Builds a device that is empty, or written once in order.
///
/// # Errors
/// The device cannot be built.
pub(super) fn device(loaded: &Loaded, written: bool) -> Result<Device, Diagnostic> {
    let mut device = loaded.device(SEED)?;
    if written {
        let logical = device.ftl.logical();
        device.ftl.assume_sequential(logical);
    }
    Ok(device)
}

/// Builds the source of an inline fio job.
///
/// # Errors
/// The job does not fit the device.
pub(super) fn fio(job: &str, device: &Device) -> Result<Box<dyn Source>, Diagnostic> {
    Ok(Box::new(FioSource::new(&fio::parse_inline(job)?, device.capacity(), SEED)?))
}

/// Runs a device under a source to its end.
///
/// # Errors
/// The run fails, or its queues break Little's law.
pub(super) fn drive(
    loaded: &Loaded,
    device: Device,
    source: Box<dyn Source>,
    context: &Context<'_>,
) -> Result<Ran, Diagnostic> {
    let Drive { flash, host, .. } = loaded.drive()?;
    let cost = host.cost();
    let injector = Injector::new(vec![source], queues(flash), cost);
    let mut machine = Machine::new(device, injector, None);
    let end = machine.run(context.stop, |_| ());
    if let Some(failure) = machine.injector.failure.take() {
        return Err(failure);
    }
    if end != End::Done || machine.injector.errors > 0 {
        return Err(Diagnostic::new(format!("the run ended by {end:?}, {} errors", machine.injector.errors)));
    }
    check_little(&machine)?;
    context.checks.fetch_add(QUEUES, Ordering::Relaxed);
    Ok(Ran(machine))
}

/// Runs an inline fio job on D16 with overrides.
///
/// # Errors
/// An override, the job or the run fails.
pub(super) fn run<S: AsRef<str>>(
    overrides: &[S],
    written: bool,
    job: &str,
    context: &Context<'_>,
) -> Result<Ran, Diagnostic> {
    let loaded = d16(overrides)?;
    let device = device(&loaded, written)?;
    let source = fio(job, &device)?;
    drive(&loaded, device, source, context)
}

/// Machine that has run to its end.
pub(super) struct Ran(pub(super) Machine);

impl Ran {
    /// Measurements of reads, or of writes, over all flows.
    pub(super) fn of(&self, op: IoOp) -> OpStats {
        let mut total = OpStats::default();
        for flow in &self.0.injector.flows {
            total.merge(if op == IoOp::Read { &flow.read } else { &flow.write });
        }
        total
    }

    /// Bytes per second up to the last completion.
    pub(super) fn bytes_per_s(&self, op: IoOp) -> f64 {
        self.of(op).bytes as f64 / self.0.injector.last_completion.as_s_f64()
    }

    /// Map units programmed per map unit written by the host.
    pub(super) fn amplification(&self) -> f64 {
        let units = self.0.device().backend.counters.units;
        let [host, gc] = [Class::HostProgram, Class::GcProgram].map(|class| units[class as usize] as f64);
        (host + gc) / host
    }
}

/// Checks Little's law on the requests in flight at the host and on the operations that wait at dies: L = lambda W
/// (J. D. C. Little, Operations Research 9(3), 1961) as an identity of two integer accounts, equal to the picosecond.
///
/// # Errors
/// The queue whose accounts differ.
fn check_little(machine: &Machine) -> Result<(), Diagnostic> {
    let (injector, device, now) = (&machine.injector, machine.device(), machine.now());
    let queues = [
        ("host", injector.in_flight.check(now, Vec::new())),
        ("dies", device.backend.queued.check(now, device.backend.waiting_since())),
    ];
    for (queue, accounts) in queues {
        accounts.map_err(|fault| Diagnostic::new(format!("{queue}: {fault}")))?;
    }
    Ok(())
}

/// Source that records the sojourn of each request.
struct Observed {
    inner: Box<dyn Source>,
    sojourns: Rc<RefCell<BatchMeans>>,
}

/// Wraps a source; picoseconds from arrival to completion go to the batch means.
pub(super) fn observe(inner: Box<dyn Source>) -> (Box<dyn Source>, Rc<RefCell<BatchMeans>>) {
    let sojourns = Rc::new(RefCell::new(BatchMeans::new()));
    (Box::new(Observed { inner, sojourns: Rc::clone(&sojourns) }), sojourns)
}

impl Source for Observed {
    fn poll(&mut self, now: Time, outstanding: u32) -> Result<Next, Diagnostic> {
        self.inner.poll(now, outstanding)
    }
    fn completed(&mut self, now: Time, request: &IoRequest) {
        self.sojourns.borrow_mut().push((now - request.at).ps() as f64);
        self.inner.completed(now, request);
    }
    fn flows(&self) -> Vec<String> {
        self.inner.flows()
    }
}

/// Overwrite of one unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overwrite {
    pub(super) unit: u64,
    pub(super) group: u32,
    pub(super) placement: u8,
}

/// Overwrites between two checks for a stop.
const SLICE: u64 = 1 << 16;

/// Overwriter of single units without time, through the functions that the timed device calls.
pub(super) struct Churn<'a, Draw> {
    ftl: &'a mut Ftl,
    rng: Rng,
    draw: Draw,
    stop: &'a AtomicBool,
}

impl<'a, Draw: Fn(&mut Rng) -> Overwrite> Churn<'a, Draw> {
    /// Overwrites units chosen by `draw`, in the same order every time, one for each device; until `stop` is set.
    pub(super) fn new(draw: Draw, device: &'a mut Device, stop: &'a AtomicBool) -> Churn<'a, Draw> {
        Churn { ftl: &mut device.ftl, rng: Rng::stream(SEED, "reproduce/churn"), draw, stop }
    }

    /// Overwrites `turns` times the logical space.
    ///
    /// # Errors
    /// No block can be reclaimed.
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

    /// Write amplification over `turns` times the logical space, with its 99 % confidence interval.
    ///
    /// # Errors
    /// No block can be reclaimed.
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

/// Writes one unit, after reclaiming if space is short.
///
/// # Errors
/// No block can be reclaimed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Effort;
    use std::sync::atomic::{AtomicBool, AtomicUsize};

    #[test]
    fn every_run_is_checked_and_a_lost_customer_is_found() {
        let (stop, checks) = (AtomicBool::new(false), AtomicUsize::new(0));
        let context = Context { effort: Effort::Quick, stop: &stop, checks: &checks };
        let mut ran = run::<&str>(&[], true, "fio:rw=randread,bs=4k,iodepth=8,number_ios=500", &context)
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(checks.into_inner(), QUEUES);
        assert!(check_little(&ran.0).is_ok());
        // A request that arrived and never left, and that is not found in flight.
        let now = ran.0.now();
        ran.0.injector.in_flight.arrive(now);
        let fault = check_little(&ran.0).expect_err("a customer is missing");
        assert!(fault.what.contains("host: Little's law: 1 customers counted inside and 0 found"), "{fault}");
    }
}
