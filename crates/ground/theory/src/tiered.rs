//! Server whose memory is DRAM over flash: job time lost to flash, cost of the memory, required bandwidth.
//!
//! The analytic comparison is that of S. Gupta et al., AstriFlash, HPCA 2023, section III-A: a job's processor time is
//! exponential, with an access to flash after every `work` of it. Either the core waits for the access, or it serves
//! other jobs meanwhile, as many as cover the access: "k requests are required to overlap the flash accesses". The
//! paper leaves `k` and the service time of its M/M/k open; here both follow from the core's being always busy at
//! saturation:
//!
//! * in each period of a job, `work + overhead` occupies the core and `flash` does not, so that
//!   `k = ceil((work + overhead + flash) / (work + overhead))` jobs cover it;
//! * each of them has a `k`-th of a core, so that a job of processor time `service` stays
//!   `k service (1 + overhead / work)`, and the station completes `1 / (service (1 + overhead / work))` jobs per unit
//!   of time, the capacity of a core.
//!
//! If the quotient is not a whole number, rounding up makes a job stay a little longer than its own accesses take: its
//! core serves a different job in that time.

use super::rising_root;
use crate::queue::{Mmk, mm1};

/// Program of a server with one core, and the flash behind it. Times are in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Program {
    /// Mean processor time of a job.
    pub service: f64,
    /// Processor time between accesses to flash.
    pub work: f64,
    /// Time of a flash access.
    pub flash: f64,
}

/// Station that jobs go through: `servers` equal servers with one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Mean time of a job at a server.
    pub service: f64,
    /// Number of servers.
    pub servers: u32,
}

impl Program {
    /// Returns the station with all data in DRAM: M/M/1.
    pub fn dram_only(&self) -> Station {
        Station { service: self.service, servers: 1 }
    }

    /// Returns the station whose core waits for flash: M/M/1 with jobs of `service (1 + flash / work)`.
    pub fn synchronous(&self) -> Station {
        Station { service: self.service * (1.0 + self.flash / self.work), servers: 1 }
    }

    /// Returns the station whose core switches to other jobs at a cost of `overhead` per access: M/M/k.
    pub fn overlapped(&self, overhead: f64) -> Station {
        let busy = self.work + overhead;
        // A quotient that is whole but for its last bits counts as whole.
        let servers = ((busy + self.flash) / busy - 1e-9).ceil();
        Station { service: servers * self.service * busy / self.work, servers: servers as u32 }
    }

    /// Returns the smallest limit on the `p`-quantile of the response under which [`Program::overlapped`] completes at
    /// least `share` of the jobs of [`Program::dram_only`] under the same limit; infinite if it never does.
    pub fn limit_within(&self, share: f64, overhead: f64, p: f64) -> f64 {
        let (dram, overlapped) = (self.dram_only(), self.overlapped(overhead));
        let above = |limit: f64| overlapped.rate_within(p, limit) - share * dram.rate_within(p, limit);
        let (lowest, highest) = (overlapped.at(0.0).response_quantile(p), 1e6 * overlapped.service);
        if above(highest) < 0.0 { f64::INFINITY } else { rising_root(lowest, highest, above) }
    }
}

impl Station {
    /// Returns the station under Poisson arrivals.
    pub fn at(&self, arrival_rate: f64) -> Mmk {
        Mmk { service: self.service, servers: self.servers, ..mm1(arrival_rate, self.service) }
    }

    /// Returns the maximum number of jobs per unit of time.
    pub fn capacity(&self) -> f64 {
        f64::from(self.servers) / self.service
    }

    /// Returns the highest arrival rate at which the `p`-quantile of the response is at most `limit`; zero if a single
    /// job takes longer.
    pub fn rate_within(&self, p: f64, limit: f64) -> f64 {
        rising_root(0.0, self.capacity(), |rate| self.at(rate).response_quantile(p) - limit)
    }
}

/// Returns the cost of a DRAM memory over that of a flash memory of the same capacity with a share `dram` of DRAM on
/// top. The price of flash is 1/`cheaper` of that of DRAM.
///
/// AstriFlash, section II-A: a ratio of 20 for 3 % and 50.
pub fn cost_ratio(cheaper: f64, dram: f64) -> f64 {
    1.0 / (dram + 1.0 / cheaper)
}

/// Returns the flash bandwidth in bytes per second of a core that moves `dram` bytes per second in `block`s, a share
/// `missing` of which brings a `page`: equation 1 of AstriFlash, section II-A.
pub fn flash_bandwidth(dram: f64, block: f64, missing: f64, page: f64) -> f64 {
    dram / block * missing * page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's figure: a job of 10 us, 10 us of work between accesses of 50 us. In units of 10 us.
    const FIGURE: Program = Program { service: 1.0, work: 1.0, flash: 5.0 };

    #[test]
    fn stations_of_the_figure_by_hand() {
        assert_eq!(FIGURE.dram_only(), Station { service: 1.0, servers: 1 });
        assert_eq!(FIGURE.synchronous(), Station { service: 6.0, servers: 1 });
        assert_eq!(FIGURE.overlapped(0.0), Station { service: 6.0, servers: 6 });
        // 10 us of overhead: (10 + 10 + 50) / 20 = 3.5 jobs cover the access, each of 20 us of the core.
        assert_eq!(FIGURE.overlapped(1.0), Station { service: 8.0, servers: 4 });
        // 100 ns: 60.1 / 10.1 = 5.95.
        let switched = FIGURE.overlapped(0.01);
        assert!(switched.servers == 6 && (switched.service - 6.06).abs() < 1e-12);
        // Throughput over DRAM-only's: a sixth, a half, 1 / 1.01.
        for (station, share) in
            [(FIGURE.synchronous(), 1.0 / 6.0), (FIGURE.overlapped(1.0), 0.5), (switched, 1.0 / 1.01)]
        {
            assert!((station.capacity() - share).abs() < 1e-12);
        }
        // A job of several periods scales all of them.
        let longer = Program { service: 3.0, ..FIGURE };
        assert_eq!(longer.overlapped(0.0), Station { service: 18.0, servers: 6 });
    }

    #[test]
    fn rates_within_a_limit_invert_the_quantile() {
        // M/M/1's response is exponential of rate 1 / service - lambda.
        let p99 = -(0.01f64.ln());
        let dram = FIGURE.dram_only();
        assert!((dram.rate_within(0.99, 40.0) - (1.0 - p99 / 40.0)).abs() < 1e-9);
        assert_eq!(dram.rate_within(0.99, 4.6), 0.0);
        let overlapped = FIGURE.overlapped(0.0);
        for limit in [28.0, 30.0, 40.0, 100.0] {
            let rate = overlapped.rate_within(0.99, limit);
            assert!((overlapped.at(rate).response_quantile(0.99) - limit).abs() < 1e-6 * limit, "{limit}");
        }
        // Alone a job takes six exponential units on average.
        assert_eq!(overlapped.rate_within(0.99, 6.0 * p99 - 1e-6), 0.0);
    }

    #[test]
    fn the_limit_at_which_overlapped_flash_comes_near() {
        let share = 0.8;
        let limit = FIGURE.limit_within(share, 0.0, 0.99);
        let ratio = |limit: f64| {
            FIGURE.overlapped(0.0).rate_within(0.99, limit) / FIGURE.dram_only().rate_within(0.99, limit)
        };
        assert!((ratio(limit) - share).abs() < 1e-9);
        assert!(ratio(limit - 0.5) < share && ratio(limit + 0.5) > share);
        // Half of DRAM-only's throughput can never be four fifths of it.
        assert_eq!(FIGURE.limit_within(share, 1.0, 0.99), f64::INFINITY);
    }

    #[test]
    fn cost_and_bandwidth_by_hand() {
        // 1 TB: 50 of DRAM against 1 of flash and 1.5 of DRAM.
        assert!((cost_ratio(50.0, 0.03) - 50.0 / 2.5).abs() < 1e-12);
        // 0.5 GB/s in blocks of 64 B are 7.8125 M a second; one in a hundred brings 4 KiB.
        assert!((flash_bandwidth(0.5e9, 64.0, 0.01, 4096.0) - 320e6).abs() < 1e-3);
    }
}
