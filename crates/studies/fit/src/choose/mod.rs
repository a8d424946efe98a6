//! Choice of the metric that fits each value. The rules are those of `papers/drives/README.md`: one metric per value,
//! none of a mixed depth, and at most one percentile.

use super::base::{Base, Bench};
use super::job::{Job, Measure};
use super::knob::{Asleep, Knob, asleep, few};
use super::point::Point;
use super::search::{Range, search};
use config::Diagnostic;

/// Value to fit, and the metric that it must meet.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) knob: Knob,
    pub(super) job: Job,
    pub(super) worn: bool,
    pub(super) measure: Measure,
    pub(super) figure: f64,
    /// Initial guess of the value.
    pub(super) guess: f64,
    /// Reason for this metric.
    pub(super) why: &'static str,
}

/// Requests in flight from which a drive may be saturated.
const MANY: u64 = 16;
/// Requests in flight at which late ones show the spread of batches: more than one, and fewer than in a batch. The
/// middle is best.
const SOME: std::ops::RangeInclusive<u64> = 4..=16;
const MIDDLE: u64 = 8;
/// Share of a core from which a thread is the limit.
const BUSY: f64 = 0.95;
/// Share of the time between requests from which the thread of a busy job is its limit.
const NEARLY: f64 = 0.98;
/// Ratio of several threads' rate to one thread's, from which the one thread was its own limit.
const MORE: f64 = 1.1;
/// Plausible latency range of a flash read without moving parts, in microseconds.
const FLASH: (f64, f64) = (5.0, 2_000.0);

/// Converts a metric to a time that rises with every knob.
pub(super) fn as_time(measure: Measure, figure: f64) -> f64 {
    if measure == Measure::Iops { 1e6 / figure } else { figure }
}

/// Choices made from the points.
#[derive(Clone, Default, Debug)]
pub(super) struct Chosen {
    /// Targets in the order of the search.
    pub(super) targets: Vec<Target>,
    /// Time of a thread per request, where it is known without a search: microseconds, and the point that determines
    /// it.
    pub(super) thread: Option<(f64, Job)>,
    /// Idle time after which a sleeping core sleeps, in microseconds, and the point that determines it.
    pub(super) after: Option<(f64, Job)>,
    /// True if something may sleep while nothing is in flight: no point with few requests in flight tells.
    pub(super) may_sleep: bool,
    /// True if the time of the thread is the user's, or follows from saturated reads.
    pub(super) thread_is_known: bool,
    /// Notes on points that were not used despite their appearance, and on open questions.
    pub(super) notes: Vec<String>,
}

/// Chooses the targets.
///
/// # Errors
/// A random read at depth 1 is missing or is not of flash, or a worn drive's point lacks requests per second.
pub(super) fn choose(
    points: &[Point],
    base: &Base,
    program: bool,
    thread_is_set: bool,
) -> Result<Chosen, Diagnostic> {
    let points: Vec<&Point> = points.iter().filter(|point| !point.held).collect();
    let idle = idle(&points)?;
    let block = idle.job.block;
    let mut chosen = Chosen { thread_is_known: thread_is_set, ..Chosen::default() };
    let fresh = |write: bool, random: bool| {
        points.iter().copied().filter(move |p| {
            !p.worn && p.job.write == write && p.job.random == random && p.job.block == block
        })
    };
    let saturated = |write: bool, one: bool| {
        let of = fresh(write, true).filter(|p| p.job.in_flight() >= MANY && (!one || p.job.jobs == 1));
        most(of)
    };
    let between = between(idle);
    let limits = |point: &Point| is_host(point, between);
    let in_order = most(fresh(false, false).filter(|p| p.job.in_flight() == 1));
    let (all, one) = (saturated(false, false), saturated(false, true));
    chosen.reads(all, one, in_order, thread_is_set, base, &limits);
    chosen.thread_is_known |= chosen.targets.iter().any(|target| target.knob == Knob::Thread);
    let is_open = !chosen.thread_is_known;
    let busiest = most(points.iter().copied().filter(|p| p.job.jobs == 1));
    chosen.thread =
        between.filter(|_| is_open).map(|us| (us.min(busiest.map_or(us, |p| 1e6 / rate(p))), idle.job));
    let reads: Vec<&Point> = fresh(false, true).collect();
    let idle_write = fresh(true, true).find(|p| p.job.in_flight() == 1).and_then(|p| p.figures.mean);
    let is_awake = base.link_exit == 0.0 && base.core_exit == 0.0;
    chosen.may_sleep = is_awake && few(&reads).is_empty();
    chosen.idle(idle, asleep(idle, &reads, idle_write).filter(|_| is_awake), base);
    chosen.writes(saturated(true, false), base, &limits);
    if base.upkeep().is_some() {
        chosen.later(&fresh(true, true).collect::<Vec<_>>(), base);
    }
    let worn = most(points.iter().copied().filter(|p| p.worn && p.job.write && p.job.random));
    if let Some(worn) = worn {
        let iops = worn.figures.iops.unwrap_or_default();
        chosen.targets.push(Target::new(
            Knob::Moved,
            worn,
            Measure::Iops,
            iops,
            1e6 / iops,
            "steady random writes",
        ));
    }
    if program {
        let largest = points.iter().copied().filter(|p| !p.worn && p.job.write && !p.job.random);
        let largest =
            largest.filter(|p| p.figures.iops.is_some()).max_by_key(|p| (p.job.block, p.job.in_flight()));
        let Some(largest) = largest else {
            return Err(Diagnostic::new("cannot fit the program time: it needs a point of sequential writes")
                .help("give one of large blocks, `rw=write,bs=128k,iodepth=16,bw=1.9GB/s`, or leave `--program` out"));
        };
        let iops = largest.figures.iops.unwrap_or_default();
        chosen.targets.push(Target::new(
            Knob::Program,
            largest,
            Measure::Iops,
            iops,
            Knob::Program.of(base),
            "largest sequential writes",
        ));
    }
    Ok(chosen)
}

/// Requests per second, as measured or from latency; zero if neither is known.
fn rate(point: &Point) -> f64 {
    let of_latency = |mean: f64| point.job.in_flight() as f64 * 1e6 / mean;
    point.figures.iops.or(point.figures.mean.map(of_latency)).unwrap_or_default()
}

/// Point with the most requests per second.
fn most<'p>(points: impl Iterator<Item = &'p Point>) -> Option<&'p Point> {
    points.filter(|p| rate(p) > 0.0).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// Time of the thread of a depth-1 job beyond the latency of each request, in microseconds: the time between requests
/// less their latency. Processors that sleep meanwhile take longer than busy ones.
fn between(idle: &Point) -> Option<f64> {
    let took = 1e6 / idle.figures.iops? - idle.figures.mean?;
    (took > 0.0).then_some(took)
}

/// Returns whether the host's thread limits a job: it is always busy or, if that is unknown, needs as long per request
/// as it has.
fn is_host(point: &Point, between: Option<f64>) -> bool {
    let needs = between.filter(|_| point.job.jobs == 1).is_some_and(|us| us >= NEARLY * 1e6 / rate(point));
    point.busy.map_or(needs, |busy| busy >= BUSY)
}

/// Mean latency of a point, or else its requests per second.
fn latency(point: &Point) -> (Measure, f64) {
    match (point.figures.mean, point.figures.iops) {
        (Some(mean), _) => (Measure::Mean, mean),
        (None, iops) => (Measure::Iops, iops.unwrap_or_default()),
    }
}

/// Random read of the smallest block at depth 1.
fn idle<'p>(points: &[&'p Point]) -> Result<&'p Point, Diagnostic> {
    let of =
        points.iter().copied().filter(|p| !p.worn && !p.job.write && p.job.random && p.job.in_flight() == 1);
    let known = of.filter(|p| p.figures.mean.is_some() || p.figures.iops.is_some());
    let Some(idle) = known.min_by_key(|p| p.job.block) else {
        return Err(Diagnostic::new("cannot fit idle latency: it needs a point of a random read at depth 1")
            .help("give one: `fio --rw=randread --bs=4k --iodepth=1 --direct=1 …`, or `--point rw=randread,bs=4k,iodepth=1,clat=80us`"));
    };
    let (measure, figure) = latency(idle);
    let took = as_time(measure, figure);
    let (least, most) = FLASH;
    if took < least {
        return Err(Diagnostic::new(format!("{}: a random read takes {took:.1} us, less than flash takes to sense a page", idle.place))
            .help("such reads come from memory: bypass the page cache (`direct=1`), and read more of the drive than a buffer holds, written before"));
    }
    if took > most {
        return Err(Diagnostic::new(format!(
            "{}: a random read takes {:.1} ms: that is not an SSD, but a hard disk",
            idle.place,
            took / 1e3
        )));
    }
    Ok(idle)
}

impl Target {
    fn new(
        knob: Knob,
        point: &Point,
        measure: Measure,
        figure: f64,
        guess: f64,
        why: &'static str,
    ) -> Target {
        Target { knob, job: point.job, worn: point.worn, measure, figure, guess, why }
    }
}

impl Chosen {
    /// Overrides that are known without a search.
    pub(super) fn fixed(&self, base: &Base) -> Vec<String> {
        let of = |knob: Knob, known: &Option<(f64, Job)>| known.map(|(us, _)| knob.assignment(base, us));
        [of(Knob::Thread, &self.thread), of(Knob::CoreAfter, &self.after)].into_iter().flatten().collect()
    }

    /// Returns whether a point chose a value by this metric.
    pub(super) fn is_fitted(&self, point: &Point, measure: Measure) -> bool {
        let chose = |t: &Target| (t.job, t.worn, t.measure) == (point.job, point.worn, measure);
        !point.held && self.targets.iter().any(chose)
    }

    /// Returns whether every metric of a point chose a value, which leaves no prediction.
    pub(super) fn is_all_fitted(&self, point: &Point) -> bool {
        let of = |measure: &Measure| measure.of(&point.figures).is_none() || self.is_fitted(point, *measure);
        Measure::ALL.iter().all(of)
    }

    /// Returns whether a saturated metric of a direction chose a value.
    pub(super) fn saturates(&self, write: bool) -> bool {
        let of = |t: &Target| t.job.write == write && t.job.in_flight() >= MANY && t.measure == Measure::Iops;
        self.targets.iter().any(of)
    }

    /// Adds targets for the thread of a job, and the cores.
    fn reads(
        &mut self,
        all: Option<&Point>,
        one: Option<&Point>,
        in_order: Option<&Point>,
        thread_is_set: bool,
        base: &Base,
        limits: &dyn Fn(&Point) -> bool,
    ) {
        let Some(all) = all else {
            self.notes.push(format!(
                "no point shows where random reads saturate (at least {MANY} in flight): cores and host stay those of the initial drive"
            ));
            return;
        };
        let target = |knob, p: &Point, threads: u32, why| {
            Target::new(knob, p, Measure::Iops, rate(p), f64::from(threads) * 1e6 / rate(p), why)
        };
        let outdone = one.filter(|one| all.job.jobs > 1 && rate(all) > MORE * rate(one));
        let of_thread = if limits(all) { Some(all) } else { outdone };
        if let (Some(point), false) = (of_thread, thread_is_set) {
            let why = if limits(point) { "its threads are always busy" } else { "several threads have more" };
            self.targets.push(target(Knob::Thread, point, point.job.jobs, why));
        }
        if !limits(all) {
            self.targets.push(target(Knob::Command, all, base.controller.cores, "saturated random reads"));
        } else if let Some(in_order) = in_order {
            let (measure, figure) = latency(in_order);
            let guess = Knob::Command.of(base);
            self.targets.push(Target::new(
                Knob::Command,
                in_order,
                measure,
                figure,
                guess,
                "sequential reads come from the buffer",
            ));
            self.notes
                .push("the host limits every saturated read: the drive's own limit may be higher".into());
        } else {
            self.notes.push(
                "the host limits every saturated read: the limit of the drive's cores is unknown".into(),
            );
        }
    }

    /// Adds targets for the flash, and for what sleeps in front of it, if anything does.
    fn idle(&mut self, idle: &Point, asleep: Option<Asleep<'_>>, base: &Base) {
        let (measure, figure) = latency(idle);
        let start = Knob::Read.of(base);
        let Some(asleep) = asleep else {
            self.targets.push(Target::new(Knob::Read, idle, measure, figure, start, "idle latency"));
            return;
        };
        let Asleep { awake, mean, knob, guess } = asleep;
        let why = "with few in flight, everything is awake";
        self.targets.push(Target::new(Knob::Read, awake, Measure::Mean, mean, start, why));
        let why = "one in flight is slower than several: it wakes what sleeps";
        self.targets.push(Target::new(knob, idle, measure, figure, guess, why));
        self.after = asleep.after().map(|us| (us, idle.job));
        let what = if knob == Knob::CoreExit {
            "cores sleep while their threads wait"
        } else {
            "the link sleeps while nothing is in flight"
        };
        self.notes.push(format!(
            "one request in flight takes {figure:.1} us and {} take {mean:.1}: {what}; a point of several threads with one request each distinguishes a core from a link",
            awake.job.in_flight()
        ));
    }

    /// Adds targets for the wait of an idle write, and for the spread of batches, of a drive that works on writes after
    /// acknowledging them.
    fn later(&mut self, writes: &[&Point], base: &Base) {
        let idle = writes.iter().find(|p| p.job.in_flight() == 1);
        if let Some((idle, mean)) = idle.and_then(|idle| Some((idle, idle.figures.mean?))) {
            let guess = Knob::Acknowledge.of(base);
            self.targets.push(Target::new(
                Knob::Acknowledge,
                idle,
                Measure::Mean,
                mean,
                guess,
                "idle writes",
            ));
        }
        let some = writes.iter().filter(|p| SOME.contains(&p.job.in_flight()));
        let nearest = some
            .filter_map(|p| Some((p, p.figures.p99?)))
            .min_by_key(|(p, _)| (p.job.in_flight().abs_diff(MIDDLE), p.job.jobs));
        if let Some((point, p99)) = nearest {
            let guess = Knob::Spread.of(base);
            let why = "late writes, with some in flight";
            self.targets.push(Target::new(Knob::Spread, point, Measure::P99, p99, guess, why));
        }
    }

    fn writes(&mut self, all: Option<&Point>, base: &Base, limits: &dyn Fn(&Point) -> bool) {
        let Some((all, iops)) = all.and_then(|all| Some((all, all.figures.iops?))) else {
            self.notes.push(format!("no point shows where random writes saturate (at least {MANY} in flight): writes are a prediction"));
            return;
        };
        if limits(all) {
            self.notes
                .push("the host limits every saturated write: the drive's own limit may be higher".into());
            return;
        }
        let cores = match &base.controller.write {
            Some(write) if write.upkeep.is_none() => write.cores,
            _ => 1,
        };
        self.targets.push(Target::new(
            Knob::Write,
            all,
            Measure::Iops,
            iops,
            f64::from(cores) * 1e6 / iops,
            "saturated random writes",
        ));
    }
}

#[cfg(test)]
mod tests;

// Values at which all metrics are met at once.

/// Maximum number of rounds: each value slightly moves the metrics of the others, so they are searched again.
const ROUNDS: u32 = 4;

/// Relative tolerance of a metric; percentiles, which move in steps, have a larger one.
const MET: f64 = 0.01;

const MET_TAIL: f64 = 0.05;

/// Fitted value.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) target: Target,
    /// Value in microseconds.
    pub(super) at: f64,
    /// Metric there, in its own unit.
    pub(super) reached: f64,
}

impl Solved {
    /// Returns whether the metric is met.
    pub(super) fn is_met(&self) -> bool {
        let within = if self.target.measure.is_tail() { MET_TAIL } else { MET };
        (self.reached / self.target.figure - 1.0).abs() <= within
    }
}

/// Overrides of the fitted values.
pub(super) fn assignments(bench: &Bench<'_>, found: &[Solved]) -> Vec<String> {
    found.iter().map(|one| one.target.knob.assignment(bench.base, one.at)).collect()
}

/// Searches the values of all targets on a drive with these overrides.
///
/// # Errors
/// The errors of [`Bench::run`].
pub(super) fn solve(
    bench: &Bench<'_>,
    set: &[String],
    targets: &[Target],
) -> Result<Vec<Solved>, Diagnostic> {
    let begun = |target: &Target| Solved { at: target.guess, reached: f64::NAN, target: target.clone() };
    let mut found: Vec<Solved> = targets.iter().map(begun).collect();
    for _ in 0..ROUNDS {
        let mut moved = false;
        for n in 0..found.len() {
            let target = found[n].target.clone();
            let range = Range { start: found[n].at, ..target.knob.range(bench.base) };
            let others: Vec<String> = assignments(bench, &found);
            let at = |at: f64| {
                let mut values = [set, &others].concat();
                values[set.len() + n] = target.knob.assignment(bench.base, at);
                let figure = bench.figure(&values, &target.job, target.worn, target.measure)?;
                Ok::<_, Diagnostic>(as_time(target.measure, figure))
            };
            let best = search(as_time(target.measure, target.figure), range, at)?;
            moved |= best.at.to_bits() != found[n].at.to_bits();
            found[n].at = best.at;
            found[n].reached = as_time(target.measure, best.reached);
        }
        if !moved {
            break;
        }
    }
    Ok(found)
}

/// Returns whether every required value was found.
pub(super) fn all_met(found: &[Solved]) -> bool {
    found.iter().all(Solved::is_met)
}
