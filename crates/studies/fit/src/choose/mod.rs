//! Which figure chooses which value. The rules are those of `papers/drives/README.md`: one figure a value, none of a mixed depth, and of
//! percentiles one at most.

use super::base::{Base, Bench};
use super::job::{Job, Measure};
use super::knob::{Asleep, Knob, asleep, few};
use super::point::Point;
use super::search::{Range, search};
use config::Diagnostic;

/// A value, and the figure that it must meet.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) knob: Knob,
    pub(super) job: Job,
    pub(super) worn: bool,
    pub(super) measure: Measure,
    pub(super) figure: f64,
    /// A guess of the value.
    pub(super) guess: f64,
    /// Why this figure.
    pub(super) why: &'static str,
}

/// Requests in flight from which a drive may be taken to be at its limit.
const MANY: u64 = 16;
/// Requests in flight at which late ones tell how much batches differ: more than one, and fewer than there are in a batch. The middle is best.
const SOME: std::ops::RangeInclusive<u64> = 4..=16;
const MIDDLE: u64 = 8;
/// A thread that takes this share of a core does nothing else: it is the limit.
const BUSY: f64 = 0.95;
/// A thread that needs this share of the time between requests of a busy job is its limit.
const NEARLY: f64 = 0.98;
/// What several threads must have more than one, so that one was its own limit.
const MORE: f64 = 1.1;
/// No flash is read in less than some microseconds, and no drive without moving parts takes so long, microseconds.
const FLASH: (f64, f64) = (5.0, 2_000.0);

/// A run's figure as a time that rises with every knob.
pub(super) fn as_time(measure: Measure, figure: f64) -> f64 {
    if measure == Measure::Iops { 1e6 / figure } else { figure }
}

/// What the points choose.
#[derive(Clone, Default, Debug)]
pub(super) struct Chosen {
    /// In the order in which they are looked for.
    pub(super) targets: Vec<Target>,
    /// What a thread needs a request, where it is known without a search: microseconds, and the point that says it.
    pub(super) thread: Option<(f64, Job)>,
    /// Idle time after which a core sleeps that was found to sleep, microseconds, and the point that says so.
    pub(super) after: Option<(f64, Job)>,
    /// Whether something may sleep while nothing is in flight: no point of few in flight tells.
    pub(super) may_sleep: bool,
    /// Whether `thread`'s value is the user's, or follows from saturated reads.
    pub(super) thread_is_known: bool,
    /// Points that were not used for a value though they seemed to, and why; what is left open.
    pub(super) notes: Vec<String>,
}

/// Chooses.
///
/// # Errors
/// No random read at depth 1; one that is of no flash; a worn drive's figure without requests a second.
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
            return Err(Diagnostic::new("nothing says how fast the drive programs: there is no point of writes in order")
                .help("give one of large blocks, `rw=write,bs=128k,iodepth=16,bw=1.9GB/s`, or leave `--program` out"));
        };
        let iops = largest.figures.iops.unwrap_or_default();
        chosen.targets.push(Target::new(
            Knob::Program,
            largest,
            Measure::Iops,
            iops,
            Knob::Program.of(base),
            "largest writes in order",
        ));
    }
    Ok(chosen)
}

/// Requests a second, as measured or as latency has them; zero if neither is known.
fn rate(point: &Point) -> f64 {
    let of_latency = |mean: f64| point.job.in_flight() as f64 * 1e6 / mean;
    point.figures.iops.or(point.figures.mean.map(of_latency)).unwrap_or_default()
}

/// The point of most requests a second.
fn most<'p>(points: impl Iterator<Item = &'p Point>) -> Option<&'p Point> {
    points.filter(|p| rate(p) > 0.0).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// What the thread of a job of one request in flight does beyond the latency of each, microseconds: the time between requests less their latency.
/// Processors that sleep meanwhile take longer than busy ones.
fn between(idle: &Point) -> Option<f64> {
    let took = 1e6 / idle.figures.iops? - idle.figures.mean?;
    (took > 0.0).then_some(took)
}

/// Whether the host's thread is the limit of a job: it has no rest, or, where nobody says, it needs as long for a request as it has.
fn is_host(point: &Point, between: Option<f64>) -> bool {
    let needs = between.filter(|_| point.job.jobs == 1).is_some_and(|us| us >= NEARLY * 1e6 / rate(point));
    point.busy.map_or(needs, |busy| busy >= BUSY)
}

/// Its mean latency, else its requests a second.
fn latency(point: &Point) -> (Measure, f64) {
    match (point.figures.mean, point.figures.iops) {
        (Some(mean), _) => (Measure::Mean, mean),
        (None, iops) => (Measure::Iops, iops.unwrap_or_default()),
    }
}

/// The random read of the smallest block, one in flight.
fn idle<'p>(points: &[&'p Point]) -> Result<&'p Point, Diagnostic> {
    let of =
        points.iter().copied().filter(|p| !p.worn && !p.job.write && p.job.random && p.job.in_flight() == 1);
    let known = of.filter(|p| p.figures.mean.is_some() || p.figures.iops.is_some());
    let Some(idle) = known.min_by_key(|p| p.job.block) else {
        return Err(Diagnostic::new("nothing says how long an idle drive takes: there is no point of a random read at depth 1")
            .help("give one: `fio --rw=randread --bs=4k --iodepth=1 --direct=1 …`, or `--point rw=randread,bs=4k,iodepth=1,clat=80us`"));
    };
    let (measure, figure) = latency(idle);
    let took = as_time(measure, figure);
    let (least, most) = FLASH;
    if took < least {
        return Err(Diagnostic::new(format!("{}: a random read takes {took:.1} us, less than flash is sensed in", idle.place))
            .help("such reads come from memory: past the page cache (`direct=1`), over more of the drive than a buffer holds, written before"));
    }
    if took > most {
        return Err(Diagnostic::new(format!(
            "{}: a random read takes {:.1} ms: that is no SSD, but a disk that moves an arm",
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
    /// Overrides of what is known without a search.
    pub(super) fn fixed(&self, base: &Base) -> Vec<String> {
        let of = |knob: Knob, known: &Option<(f64, Job)>| known.map(|(us, _)| knob.assignment(base, us));
        [of(Knob::Thread, &self.thread), of(Knob::CoreAfter, &self.after)].into_iter().flatten().collect()
    }

    /// Whether a point chose a value by this figure.
    pub(super) fn is_fitted(&self, point: &Point, measure: Measure) -> bool {
        let chose = |t: &Target| (t.job, t.worn, t.measure) == (point.job, point.worn, measure);
        !point.held && self.targets.iter().any(chose)
    }

    /// Whether every figure of a point chose a value: none is a prediction.
    pub(super) fn is_all_fitted(&self, point: &Point) -> bool {
        let of = |measure: &Measure| measure.of(&point.figures).is_none() || self.is_fitted(point, *measure);
        Measure::ALL.iter().all(of)
    }

    /// Whether a saturated figure of a direction chose a value.
    pub(super) fn saturates(&self, write: bool) -> bool {
        let of = |t: &Target| t.job.write == write && t.job.in_flight() >= MANY && t.measure == Measure::Iops;
        self.targets.iter().any(of)
    }

    /// The thread of a job, and the cores.
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
                "no point says where random reads saturate (at least {MANY} in flight): cores and host stay those of the drive that the fit began with"
            ));
            return;
        };
        let target = |knob, p: &Point, threads: u32, why| {
            Target::new(knob, p, Measure::Iops, rate(p), f64::from(threads) * 1e6 / rate(p), why)
        };
        let outdone = one.filter(|one| all.job.jobs > 1 && rate(all) > MORE * rate(one));
        let of_thread = if limits(all) { Some(all) } else { outdone };
        if let (Some(point), false) = (of_thread, thread_is_set) {
            let why = if limits(point) { "its threads have no rest" } else { "several threads have more" };
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
                "reads in order come from the buffer",
            ));
            self.notes.push(
                "the host is the limit of every saturated read: how much the drive can do is open upwards"
                    .into(),
            );
        } else {
            self.notes.push(
                "the host is the limit of every saturated read: what the drive's cores can do is open".into(),
            );
        }
    }

    /// The flash, and what sleeps in front of it, if something does.
    fn idle(&mut self, idle: &Point, asleep: Option<Asleep<'_>>, base: &Base) {
        let (measure, figure) = latency(idle);
        let start = Knob::Read.of(base);
        let Some(asleep) = asleep else {
            self.targets.push(Target::new(Knob::Read, idle, measure, figure, start, "idle latency"));
            return;
        };
        let Asleep { awake, mean, knob, guess } = asleep;
        let why = "few in flight: everything is awake";
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
            "one request in flight takes {figure:.1} us and {} take {mean:.1}: {what}; a point of several threads with one request each tells a core from a link",
            awake.job.in_flight()
        ));
    }

    /// What an idle write waits for, and how much batches differ, of a drive that works on writes after it has acknowledged them.
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
            self.notes.push(format!("no point says where random writes saturate (at least {MANY} in flight): writes are a prediction"));
            return;
        };
        if limits(all) {
            self.notes.push(
                "the host is the limit of every saturated write: what the drive can take is open upwards"
                    .into(),
            );
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

// Values at which all figures are met at once.

/// Each value moves the figures of the others a little: they are looked for again, so often at most.
const ROUNDS: u32 = 4;

/// A figure is met within this share; a percentile, which moves in steps, within a larger one.
const MET: f64 = 0.01;

const MET_TAIL: f64 = 0.05;

/// A value that was found.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) target: Target,
    /// The value, microseconds.
    pub(super) at: f64,
    /// The figure there, in its own unit.
    pub(super) reached: f64,
}

impl Solved {
    /// Whether the figure is met.
    pub(super) fn is_met(&self) -> bool {
        let within = if self.target.measure.is_tail() { MET_TAIL } else { MET };
        (self.reached / self.target.figure - 1.0).abs() <= within
    }
}

/// Overrides of what was found.
pub(super) fn assignments(bench: &Bench<'_>, found: &[Solved]) -> Vec<String> {
    found.iter().map(|one| one.target.knob.assignment(bench.base, one.at)).collect()
}

/// Looks for the values of all targets on a drive with these changes.
///
/// # Errors
/// As [`Bench::run`].
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

/// Whether every value that is needed was found.
pub(super) fn all_met(found: &[Solved]) -> bool {
    found.iter().all(Solved::is_met)
}
