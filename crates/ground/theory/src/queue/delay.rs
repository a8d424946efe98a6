//! One station and a delay: jobs that are served in periods, and are away for a fixed time between them.
//!
//! It is what a core does whose jobs need a page from flash after each period of work, if a switch of jobs is part of the period.

use super::closed::{Closed, mva};

/// A station that serves one period of a job at a time, first come first served, and a delay that any number of jobs spend at once.
/// Times are in one unit.
///
/// With exponential periods, and a number of periods of a job that is geometric (its end is forgotten as its work is), the
/// network has product form whatever the distribution of the delay (F. Baskett, K. M. Chandy, R. R. Muntz, F. G. Palacios,
/// Journal of the ACM 22(2), 1975: delays are insensitive), and the station is M/M/1 at the rate of periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delayed {
    /// Mean service of a period.
    pub service: f64,
    /// Time away between two periods.
    pub delay: f64,
}

impl Delayed {
    /// So many threads that always have a job, exponential periods: the machine repairman, periods a unit of time.
    pub fn closed(&self, threads: u32) -> Closed {
        mva(&[self.service], self.delay, threads)
    }

    /// The same with constant periods, which threads take in turn: nobody waits, or the station never rests. Periods a unit of
    /// time.
    pub fn closed_constant(&self, threads: u32) -> f64 {
        (f64::from(threads) / (self.service + self.delay)).min(1.0 / self.service)
    }

    /// Mean time of a job of `periods` periods in the mean, of which `rate` come in a unit of time at random, from its arrival
    /// to its end: `periods service / (1 - rate periods service) + (periods - 1) delay`. Infinite from a load of one on.
    pub fn open_response(&self, rate: f64, periods: f64) -> f64 {
        let load = rate * periods * self.service;
        if load >= 1.0 {
            return f64::INFINITY;
        }
        periods * self.service / (1.0 - load) + (periods - 1.0) * self.delay
    }
}

#[cfg(test)]
mod tests {
    use super::Delayed;
    use crate::queue::{asymptotic_bounds, mm1};

    #[test]
    fn without_a_delay_or_a_second_period_it_is_a_plain_queue() {
        let plain = mm1(0.07, 10.0);
        assert!(
            (Delayed { service: 10.0, delay: 50.0 }.open_response(0.07, 1.0) - plain.mean_response()).abs()
                < 1e-9
        );
        // Three periods at once are one of geometric sums, which are exponential again.
        let whole = Delayed { service: 10.0 / 3.0, delay: 0.0 }.open_response(0.07, 3.0);
        assert!((whole - plain.mean_response()).abs() < 1e-9);
        assert_eq!(Delayed { service: 1.0, delay: 5.0 }.open_response(0.5, 2.0), f64::INFINITY);
    }

    #[test]
    fn constant_periods_reach_the_asymptotic_bound() {
        let network = Delayed { service: 20.0, delay: 50.0 };
        for threads in 1..9 {
            let bounds = asymptotic_bounds(&[20.0], 50.0, threads);
            let (constant, exponential) =
                (network.closed_constant(threads), network.closed(threads).throughput);
            assert!((constant - bounds.throughput_high).abs() < 1e-12);
            assert!(exponential <= constant + 1e-12 && exponential >= bounds.throughput_low);
        }
        // One thread alone waits for nobody.
        assert!((network.closed(1).throughput - 1.0 / 70.0).abs() < 1e-12);
    }
}
