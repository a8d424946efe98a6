//! Arrivals of jobs, and the number that have ended.

use super::spec::{Arrivals, LoadSpec};
use engine::{Rng, Time};

/// Most jobs of a core that are counted one by one; the rest is computed from the mean interval.
const COUNTED: u64 = 1 << 20;

/// Jobs of all cores.
pub(super) struct Load {
    jobs: u64,
    /// Most jobs that may begin.
    most: u64,
    begun: u64,
    pub(super) ended: u64,
    /// Mean interval of a core's arrivals; `None` in a closed loop.
    interval: Option<Time>,
    queues: Vec<Arriving>,
    /// Jobs that had begun, and that waited, when the window began.
    before: (u64, u64),
}

/// Arrivals at a core. Waiting jobs are not stored: the arrival time of each is drawn when the previous one begins, so
/// any number of them takes no memory.
#[derive(Clone)]
struct Arriving {
    rng: Rng,
    /// Arrival time of the oldest job that has not begun.
    next: Time,
}

/// Arrivals at the cores in the measured window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Jobs that arrived.
    pub came: u64,
    /// Jobs that waited when the window began.
    pub before: u64,
    /// Jobs that wait now.
    pub waiting: u64,
}

impl Load {
    pub(super) fn new(spec: &LoadSpec, cores: u16, seed: u64) -> Load {
        let interval = match &spec.arrivals {
            Arrivals::closed => None,
            Arrivals::poisson(poisson) => Some(poisson.interval.time()),
        };
        let queue = |core: u16| {
            let mut queue =
                Arriving { rng: Rng::stream(seed, &format!("cpu/arrivals{core}")), next: Time::ZERO };
            if let Some(mean) = interval {
                queue.draw(mean);
            }
            queue
        };
        let queues = (0..cores).map(queue).collect();
        Load { jobs: spec.jobs, most: u64::MAX, begun: 0, ended: 0, interval, queues, before: (0, 0) }
    }

    /// Limits the number of jobs, in place of the spec.
    pub(super) fn only(&mut self, jobs: u64) {
        (self.jobs, self.most) = (jobs, jobs);
    }

    /// Share of the jobs that have ended.
    pub(super) fn progress(&self) -> f64 {
        self.ended as f64 / self.jobs.max(1) as f64
    }

    /// Returns whether every job has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended == self.jobs
    }

    /// Returns whether a new job is available for a core. Jobs arrive until the last one that counts has ended, so that
    /// cores do not run dry before, unless no others exist.
    pub(super) fn has(&self, core: u16, now: Time) -> bool {
        self.begun < self.most && (self.interval.is_none() || self.queues[usize::from(core)].next <= now)
    }

    /// Takes the next job of a core, which must be available: its number and its arrival time.
    pub(super) fn take(&mut self, core: u16, now: Time) -> (u64, Time) {
        debug_assert!(self.has(core, now), "the job must have arrived");
        let mut came = now;
        if let Some(mean) = self.interval {
            let queue = &mut self.queues[usize::from(core)];
            came = queue.next;
            queue.draw(mean);
        }
        self.begun += 1;
        (self.begun - 1, came)
    }

    /// Arrival time of the next job of a core for which none waits.
    pub(super) fn next(&self, core: u16) -> Option<Time> {
        let more = self.interval.filter(|_| self.begun < self.most);
        more.map(|_| self.queues[usize::from(core)].next)
    }

    /// Number of jobs that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Number of jobs that wait now, all cores together.
    fn waiting(&self, now: Time) -> u64 {
        let mean = self.interval.unwrap_or(Time::ZERO);
        let come: u64 = self.queues.iter().map(|queue| queue.waiting(mean, now)).sum();
        come.min(self.most - self.begun)
    }

    /// Begins the measured window.
    pub(super) fn begin_window(&mut self, now: Time) {
        if self.interval.is_some() {
            self.before = (self.begun, self.waiting(now));
        }
    }

    /// Arrivals in the window until now; `None` in a closed loop.
    pub(super) fn queue(&self, now: Time) -> Option<Queue> {
        self.interval?;
        let (begun, before) = self.before;
        let waiting = self.waiting(now);
        Some(Queue { came: (self.begun + waiting).saturating_sub(begun + before), before, waiting })
    }
}

impl Arriving {
    /// Draws the time of the next arrival: exponential intervals.
    fn draw(&mut self, mean: Time) {
        // One minus a number from [0, 1) is not zero.
        let interval = -libm::log(1.0 - self.rng.unit()) * mean.ps() as f64;
        self.next += Time::from_ps(interval as u64);
    }

    /// Number of jobs that have arrived by now and not begun.
    fn waiting(&self, mean: Time, now: Time) -> u64 {
        let (mut queue, mut count) = (self.clone(), 0);
        while queue.next <= now {
            if count == COUNTED {
                return count + (now - queue.next).ps() / mean.ps();
            }
            queue.draw(mean);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::Poisson;
    use super::*;
    use config::units::Duration;

    #[test]
    fn intervals_are_exponential() {
        let arrivals = Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(10)) });
        let mut load = Load::new(&LoadSpec { jobs: 40_000, arrivals }, 1, 7);
        let mut times = Vec::new();
        while load.begun() < 40_000 {
            let now = load.next(0).expect("more jobs");
            assert!(load.has(0, now));
            let (number, came) = load.take(0, now);
            assert_eq!((number, came), (times.len() as u64, now));
            times.push(now.as_ns_f64());
        }
        assert!(load.has(0, Time::from_s(100)));
        let intervals: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let n = intervals.len() as f64;
        let mean = intervals.iter().sum::<f64>() / n;
        let variance = intervals.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        // Five standard errors of the mean; of the variance with the exponential distribution's kurtosis of nine.
        assert!((mean / 10_000.0 - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance / 1e8 - 1.0).abs() < 5.0 * 8f64.sqrt() / n.sqrt(), "{variance}");
    }

    #[test]
    fn a_closed_load_always_has_another_job() {
        let mut load = Load::new(&LoadSpec { jobs: 2, arrivals: Arrivals::closed }, 2, 0);
        let now = Time::from_us(3);
        for number in 0..5 {
            assert!(load.has(1, now) && load.next(1).is_none());
            assert_eq!(load.take(1, now), (number, now));
        }
    }

    #[test]
    fn jobs_that_have_an_end_come_once() {
        for arrivals in
            [Arrivals::closed, Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(1)) })]
        {
            let mut load = Load::new(&LoadSpec { jobs: 1000, arrivals }, 2, 7);
            load.only(3);
            let now = Time::from_ms(1);
            for number in 0..3 {
                assert!(load.has(number as u16 % 2, now) && !load.is_over());
                assert_eq!(load.take(number as u16 % 2, now).0, number);
                load.ended += 1;
            }
            assert!(load.is_over() && !load.has(0, now) && load.next(0).is_none());
            assert!(load.queue(now).is_none_or(|queue| queue.waiting == 0));
        }
    }

    #[test]
    fn what_waits_is_counted_and_not_kept() {
        // A job a microsecond to each of two cores, and one begun every four by the first alone.
        let arrivals = Arrivals::poisson(Poisson { interval: Duration::new(Time::from_us(1)) });
        let mut load = Load::new(&LoadSpec { jobs: 1 << 40, arrivals }, 2, 5);
        assert_eq!(load.queue(Time::ZERO), Some(Queue { came: 0, before: 0, waiting: 0 }));
        let run = |load: &mut Load, from: u64, to: u64| {
            (from..to).filter(|us| us % 4 == 3).for_each(|us| {
                let (_, came) = load.take(0, Time::from_us(us));
                assert!(came <= Time::from_us(us));
            });
        };
        run(&mut load, 100, 10_100);
        load.begin_window(Time::from_us(10_100));
        run(&mut load, 10_100, 50_100);
        let Some(Queue { came, before, waiting }) = load.queue(Time::from_us(50_100)) else { panic!("open") };
        // Five standard errors of Poisson counts.
        assert!(before.abs_diff(2 * 10_100 - 2_500) < 5 * 142, "{before}");
        assert!(came.abs_diff(2 * 40_000) < 5 * 283, "{came}");
        assert_eq!(waiting, before + came - 10_000);
        // Far beyond what is counted one by one: 10^8 jobs of each core.
        let Some(Queue { waiting, .. }) = load.queue(Time::from_s(100)) else { panic!("open") };
        assert!(waiting.abs_diff(200_000_000) < 200_000, "{waiting}");
    }
}
