//! Whether the latency of an idle drive has the exit latency of a host's core, or of a link, in it.
//!
//! More in flight never makes a request faster, unless something sleeps while nothing is in flight. A link sleeps when no command is outstanding;
//! a core when its thread has waited long enough for one. Several threads with one request each tell them apart: each has a core of its own, and
//! together they keep the link awake.

use super::knob::Knob;
use super::point::Point;
use std::ops::RangeInclusive;

/// Means this far apart are not noise, of which drives have about 3 %.
const LATER: f64 = 1.05;
/// Requests in flight at which a drive hardly waits for itself.
const FEW: RangeInclusive<u64> = 2..=8;
/// A core sleeps when its thread has waited for this share of an awake drive's latency: with two in flight it waits for half of it on average, with one
/// for all of it. *Chosen*: processors enter a state when they expect to stay for its target residency, two to three times its exit latency
/// (Linux, `drivers/idle/intel_idle.c`).
const PATIENCE: f64 = 2.0 / 3.0;

/// What the points say of sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asleep<'p> {
    /// The point that finds everything awake.
    pub(super) awake: &'p Point,
    /// Mean latency of the point, microseconds.
    pub(super) mean: f64,
    /// The exit latency to look for: the link's, or the core's.
    pub(super) knob: Knob,
    /// A guess of it, microseconds.
    pub(super) guess: f64,
}

impl Asleep<'_> {
    /// Idle time after which a core sleeps, microseconds; nothing for a link, which sleeps at once.
    pub(super) fn after(&self) -> Option<f64> {
        (self.knob == Knob::CoreExit).then(|| patience(self.mean))
    }
}

/// Idle time after which a core sleeps that waits for an awake drive of this mean latency, microseconds.
pub(super) fn patience(mean: f64) -> f64 {
    PATIENCE * mean
}

/// Random reads of few in flight, each with its mean.
pub(super) fn few<'p>(reads: &[&'p Point]) -> Vec<(&'p Point, f64)> {
    let of = reads.iter().copied().filter(|point| FEW.contains(&point.job.in_flight()));
    of.filter_map(|point| Some((point, point.figures.mean?))).collect()
}

/// What random reads, and the mean of an idle write, say of a drive whose idle read is this point.
pub(super) fn asleep<'p>(idle: &Point, reads: &[&'p Point], idle_write: Option<f64>) -> Option<Asleep<'p>> {
    let late = idle.figures.mean?;
    let few = few(reads);
    let (awake, mean) = few.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
    if late <= LATER * mean {
        return None;
    }
    let guess = late - mean;
    let threads =
        few.iter().filter(|(point, _)| point.job.depth == 1).min_by_key(|(point, _)| point.job.jobs);
    let is_core = match threads {
        Some((_, several)) => several * several > late * mean,
        // A link wakes for a write as it does for a read.
        None => idle_write.is_some_and(|write| write < guess),
    };
    let knob = if is_core { Knob::CoreExit } else { Knob::LinkExit };
    Some(Asleep { awake, mean, knob, guess })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(texts: &[&str], idle_write: Option<f64>) -> Option<(Knob, f64)> {
        let points: Vec<Point> =
            texts.iter().map(|text| Point::parse("--point", text).expect("a point")).collect();
        let reads: Vec<&Point> = points.iter().collect();
        let found = asleep(&points[0], &reads, idle_write)?;
        Some((found.knob, found.guess))
    }

    const ONE: &str = "rw=randread,bs=4k,iodepth=1,clat=155us";
    const TWO: &str = "rw=randread,bs=4k,iodepth=2,clat=112us";

    #[test]
    fn several_in_flight_are_faster_only_where_something_sleeps() {
        assert_eq!(knob(&[ONE, TWO], None), Some((Knob::LinkExit, 43.0)));
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=2,clat=152us"], None), None);
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=64,clat=112us"], None), None);
        assert_eq!(knob(&[ONE, "rw=randread,bs=4k,iodepth=2,iops=18k"], None), None);
    }

    #[test]
    fn several_threads_tell_a_core_from_a_link() {
        let late = "rw=randread,bs=4k,iodepth=1,numjobs=4,clat=150us";
        let early = "rw=randread,bs=4k,iodepth=1,numjobs=4,clat=115us";
        assert_eq!(knob(&[ONE, TWO, late], None), Some((Knob::CoreExit, 43.0)));
        assert_eq!(knob(&[ONE, TWO, early], None), Some((Knob::LinkExit, 43.0)));
        // An idle write that is over before a link would be awake.
        assert_eq!(knob(&[ONE, TWO], Some(38.0)), Some((Knob::CoreExit, 43.0)));
        assert_eq!(knob(&[ONE, TWO], Some(80.0)), Some((Knob::LinkExit, 43.0)));
    }
}
