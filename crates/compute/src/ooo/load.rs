//! The jobs that come: when, and how many have ended.

use super::spec::{Arrivals, LoadSpec};
use kernel::{Rng, Time};
use std::collections::VecDeque;

/// Jobs of all cores.
pub(super) struct Load {
    jobs: u64,
    begun: u64,
    pub(super) ended: u64,
    /// Mean interval of a core's arrivals; none if there is always another job.
    interval: Option<Time>,
    queues: Vec<Queue>,
}

/// Jobs that have come to a core and have not begun.
struct Queue {
    rng: Rng,
    next: Time,
    waiting: VecDeque<Time>,
}

impl Load {
    pub(super) fn new(spec: &LoadSpec, cores: u16, seed: u64) -> Load {
        let interval = match &spec.arrivals {
            Arrivals::closed => None,
            Arrivals::poisson(poisson) => Some(poisson.interval.time()),
        };
        let queue = |core: u16| {
            let mut queue = Queue {
                rng: Rng::stream(seed, &format!("cpu/arrivals{core}")),
                next: Time::ZERO,
                waiting: VecDeque::new(),
            };
            if let Some(mean) = interval {
                queue.draw(mean);
            }
            queue
        };
        Load { jobs: spec.jobs, begun: 0, ended: 0, interval, queues: (0..cores).map(queue).collect() }
    }

    /// Whether every job has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ended == self.jobs
    }

    /// Whether a new job is there for a core. They come until the last that counts has ended, so that no core runs dry before.
    pub(super) fn has(&mut self, core: u16, now: Time) -> bool {
        self.oldest(core, now).is_some()
    }

    /// When the job came that has waited longest.
    fn oldest(&mut self, core: u16, now: Time) -> Option<Time> {
        let Some(mean) = self.interval else { return Some(now) };
        let queue = &mut self.queues[usize::from(core)];
        while queue.next <= now {
            queue.waiting.push_back(queue.next);
            queue.draw(mean);
        }
        queue.waiting.front().copied()
    }

    /// Takes the next job of a core: its number, and when it came.
    pub(super) fn take(&mut self, core: u16, now: Time) -> (u64, Time) {
        let came = self.oldest(core, now).expect("a job is taken that is there");
        if self.interval.is_some() {
            self.queues[usize::from(core)].waiting.pop_front();
        }
        self.begun += 1;
        (self.begun - 1, came)
    }

    /// When the next job comes to a core for which none waits.
    pub(super) fn next(&self, core: u16) -> Option<Time> {
        self.interval.map(|_| self.queues[usize::from(core)].next)
    }

    /// Jobs that wait for a core now, all cores together.
    pub(super) fn waiting(&self) -> u64 {
        self.queues.iter().map(|queue| queue.waiting.len() as u64).sum()
    }

    /// Jobs that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }
}

impl Queue {
    /// Draws the time of the next arrival: exponential intervals.
    fn draw(&mut self, mean: Time) {
        // One minus a number from [0, 1) is not zero.
        let interval = -libm::log(1.0 - self.rng.unit()) * mean.ps() as f64;
        self.next += Time::from_ps(interval as u64);
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
}
