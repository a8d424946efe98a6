//! Queues in equilibrium. Arrivals are Poisson and service is first come, first served unless stated otherwise.
//!
//! Rates and times may be in any unit, as long as it is the same throughout. A queue that cannot keep up has infinite
//! means.

mod mm;

pub use mm::{Mmk, erlang_b, erlang_c, mm1};

use super::rising_root;

/// Returns the mean wait before service in M/G/1, for a service time of mean `service` and squared coefficient of
/// variation `scv` (0 constant, 1 exponential): `rho service (1 + scv) / (2 (1 - rho))`.
///
/// F. Pollaczek, Mathematische Zeitschrift 32, 1930; L. Kleinrock, Queueing Systems 1, 1975, section 5.6.
pub fn mg1_mean_wait(arrival_rate: f64, service: f64, scv: f64) -> f64 {
    let load = arrival_rate * service;
    if load >= 1.0 { f64::INFINITY } else { load * service * (1.0 + scv) / (2.0 * (1.0 - load)) }
}

// One station and a delay: jobs are served in periods, and are away for a fixed time between them.
//
// This models a core whose jobs need a page from flash after each period of work, with job switches part of the period.

/// Station that serves one period of a job at a time, first come first served, and a delay that any number of jobs
/// spend at once. Times are in one unit.
///
/// With exponential periods and a geometric number of periods per job (both are memoryless), the network has product
/// form for any distribution of the delay (F. Baskett, K. M. Chandy, R. R. Muntz, F. G. Palacios, Journal of the ACM
/// 22(2), 1975: delays are insensitive), and the station is M/M/1 at the rate of periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delayed {
    /// Mean service time of a period.
    pub service: f64,
    /// Time away between two periods.
    pub delay: f64,
}

impl Delayed {
    /// Solves the machine repairman: `threads` that always have a job, with exponential periods; throughput in periods
    /// per unit of time.
    pub fn closed(&self, threads: u32) -> Closed {
        mva(&[self.service], self.delay, threads)
    }

    /// Returns the throughput with constant periods that threads take in turn: no thread waits, or the station is never
    /// idle. In periods per unit of time.
    pub fn closed_constant(&self, threads: u32) -> f64 {
        (f64::from(threads) / (self.service + self.delay)).min(1.0 / self.service)
    }

    /// Returns the mean time from arrival to end of a job with `periods` periods on average, for Poisson arrivals at
    /// `rate`: `periods service / (1 - rate periods service) + (periods - 1) delay`. Infinite from a load of one on.
    pub fn open_response(&self, rate: f64, periods: f64) -> f64 {
        let load = rate * periods * self.service;
        if load >= 1.0 {
            return f64::INFINITY;
        }
        periods * self.service / (1.0 - load) + (periods - 1.0) * self.delay
    }
}

// Closed networks: a fixed number of customers, as in a benchmark at constant queue depth.

/// Bounds that hold for any service-time distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Lower bound on throughput: every customer waits for all others everywhere.
    pub throughput_low: f64,
    /// Upper bound on throughput: no customer ever waits, or the bottleneck is never idle.
    pub throughput_high: f64,
    /// Lower bound on response time, without think time.
    pub response_low: f64,
    /// Upper bound on response time, without think time.
    pub response_high: f64,
}

/// Returns asymptotic bounds for `customers` that each need, in every cycle, `demands[i]` of service at queueing
/// station `i` and `think` of time without contention.
///
/// P. J. Denning, J. P. Buzen, Computing Surveys 10(3), 1978; E. D. Lazowska et al., Quantitative System
/// Performance, 1984, chapter 5.
pub fn asymptotic_bounds(demands: &[f64], think: f64, customers: u32) -> Bounds {
    let n = f64::from(customers);
    let total: f64 = demands.iter().sum();
    let largest = demands.iter().copied().fold(0.0, f64::max);
    Bounds {
        throughput_low: n / (n * total + think),
        throughput_high: (n / (total + think)).min(1.0 / largest),
        response_low: total.max(n * largest - think),
        response_high: n * total,
    }
}

/// Closed network in equilibrium.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Cycles per unit of time.
    pub throughput: f64,
    /// Mean time per cycle, without think time.
    pub response: f64,
    /// Mean number of customers at each station.
    pub queues: Vec<f64>,
}

/// Solves the network of [`asymptotic_bounds`] by exact mean value analysis, for exponential service.
///
/// M. Reiser, S. S. Lavenberg, Journal of the ACM 27(2), 1980.
pub fn mva(demands: &[f64], think: f64, customers: u32) -> Closed {
    let mut state = Closed { throughput: 0.0, response: 0.0, queues: vec![0.0; demands.len()] };
    for n in 1..=customers {
        let times: Vec<f64> = demands.iter().zip(&state.queues).map(|(d, q)| d * (1.0 + q)).collect();
        state.response = times.iter().sum();
        state.throughput = f64::from(n) / (state.response + think);
        state.queues = times.iter().map(|t| state.throughput * t).collect();
    }
    state
}

/// Returns the throughput of `customers` that each choose one of `servers` uniformly at random, are served for an
/// exponential time of mean `service`, and choose again: `n k / (service (n + k - 1))`, [`mva`] solved for equal
/// demands.
///
/// With constant service the throughput is higher: between this and [`asymptotic_bounds`]'s `min(n, k) / service`.
pub fn uniform_servers(servers: u32, service: f64, customers: u32) -> f64 {
    let (n, k) = (f64::from(customers), f64::from(servers));
    n * k / (service * (n + k - 1.0))
}

// Constant service: M/D/1.

/// M/D/1 queue: one server whose service always takes `service`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Md1 {
    /// Arrivals per unit of time.
    pub arrival_rate: f64,
    /// Service time.
    pub service: f64,
}

impl Md1 {
    /// Returns the busy share of the server.
    pub fn load(&self) -> f64 {
        self.arrival_rate * self.service
    }

    /// Returns the mean time before service: half of M/M/1's.
    pub fn mean_wait(&self) -> f64 {
        mg1_mean_wait(self.arrival_rate, self.service, 0.0)
    }

    /// Returns the mean time before and in service.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.service
    }

    /// Returns the probabilities of 0, 1 … `last` customers in the system.
    ///
    /// Balance across the cut between `n` and `n + 1` at departures, `p(n+1) a(0) = p(0) A(n) + sum_i p(i) A(n+1-i)`
    /// with `a` and `A` the Poisson probability and tail of arrivals in a service: without subtraction, hence stable.
    fn in_system(&self, last: usize) -> Vec<f64> {
        let load = self.load();
        let mut tail = Vec::with_capacity(last + 2);
        let mut term = (-load).exp();
        let none = term;
        // Summed from the small end, because 1 - P(<= n) would lose the far tail.
        let terms: Vec<f64> = (1..last + 60)
            .map(|n| {
                term *= load / n as f64;
                term
            })
            .collect();
        let mut above = 0.0;
        for t in terms.iter().rev() {
            above += t;
            tail.push(above);
        }
        tail.reverse();
        let mut p = vec![1.0 - load];
        for n in 0..last {
            let up: f64 = p[0] * tail[n] + (1..=n).map(|i| p[i] * tail[n + 1 - i]).sum::<f64>();
            p.push(up / none);
        }
        p
    }

    /// Returns the probability that the wait is at most `t`.
    ///
    /// G. J. Franx, A simple solution for the M/D/c waiting time distribution, Operations Research Letters
    /// 29(5), 2001, for one server: all terms are positive, unlike Erlang's alternating sum.
    pub fn wait_cdf(&self, t: f64) -> f64 {
        if self.load() >= 1.0 || t < 0.0 {
            return 0.0;
        }
        let k = (t / self.service).floor() as usize + 1;
        let rest = self.arrival_rate * (k as f64 * self.service - t);
        let at_most: Vec<f64> = self
            .in_system(k)
            .iter()
            .scan(0.0, |sum, p| {
                *sum += p;
                Some(*sum)
            })
            .collect();
        let (mut term, mut sum) = ((-rest).exp(), 0.0);
        for j in 0..k {
            sum += at_most[k - j] * term;
            term *= rest / (j + 1) as f64;
        }
        sum.min(1.0)
    }

    /// Returns the `p`-quantile of the response: the wait's plus one service. Infinite if the queue cannot keep up.
    pub fn response_quantile(&self, p: f64) -> f64 {
        if self.load() >= 1.0 {
            return f64::INFINITY;
        }
        if self.wait_cdf(0.0) >= p {
            return self.service;
        }
        let mut high = self.service;
        while self.wait_cdf(high) < p {
            high *= 2.0;
        }
        self.service + rising_root(0.0, high, |t| self.wait_cdf(t) - p)
    }
}

#[cfg(test)]
mod tests {
    use super::{Delayed, Md1, asymptotic_bounds, mm1, mva, uniform_servers};

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
        // A single thread never waits.
        assert!((network.closed(1).throughput - 1.0 / 70.0).abs() < 1e-12);
    }

    #[test]
    fn one_station_with_thinkers_is_the_machine_repairman() {
        // M/M/1//N: p(n) ~ N!/(N-n)! (D/Z)^n.
        let (demand, think, customers) = (2.0, 5.0, 7u32);
        let mut weights = vec![1.0];
        for n in 0..customers {
            weights.push(weights[n as usize] * f64::from(customers - n) * demand / think);
        }
        let idle = weights[0] / weights.iter().sum::<f64>();
        let solved = mva(&[demand], think, customers);
        assert!((solved.throughput - (1.0 - idle) / demand).abs() < 1e-12);
    }

    #[test]
    fn equal_demands_have_the_closed_form_and_lie_within_the_bounds() {
        for (servers, customers) in [(1u32, 1u32), (4, 1), (8, 64), (16, 16), (64, 8)] {
            let demands = vec![50.0 / f64::from(servers); servers as usize];
            let solved = mva(&demands, 0.0, customers);
            assert!((solved.throughput - uniform_servers(servers, 50.0, customers)).abs() < 1e-12);
            let bounds = asymptotic_bounds(&demands, 0.0, customers);
            let slack = 1.0 + 1e-12;
            assert!(bounds.throughput_low <= solved.throughput * slack);
            assert!(solved.throughput <= bounds.throughput_high * slack);
            assert!(bounds.response_low <= solved.response * slack);
            assert!(solved.response <= bounds.response_high * slack);
            let inside: f64 = solved.queues.iter().sum();
            assert!((inside - f64::from(customers)).abs() < 1e-9);
        }
    }

    /// Erlang's alternating sum (1909), good for short waits.
    fn erlang(q: &Md1, t: f64) -> f64 {
        let mut sum = 0.0;
        for i in 0..=(t / q.service) as u32 {
            let x = q.arrival_rate * (f64::from(i) * q.service - t);
            let factorial: f64 = (1..=i).map(f64::from).product();
            sum += x.powi(i as i32) / factorial * (-x).exp();
        }
        (1.0 - q.load()) * sum
    }

    #[test]
    fn agrees_with_erlangs_sum() {
        for load in [0.2, 0.5, 0.8, 0.95] {
            let q = Md1 { arrival_rate: load / 2.0, service: 2.0 };
            for t in [0.0, 0.5, 1.9, 2.0, 3.3, 7.0, 11.0, 20.0] {
                assert!((q.wait_cdf(t) - erlang(&q, t)).abs() < 1e-10, "load {load} t {t}");
            }
        }
    }

    #[test]
    fn integral_of_the_tail_is_the_mean() {
        let q = Md1 { arrival_rate: 0.7, service: 1.0 };
        let step = 1e-3;
        let mean: f64 = (0..30_000).map(|i| (1.0 - q.wait_cdf((f64::from(i) + 0.5) * step)) * step).sum();
        assert!((mean - q.mean_wait()).abs() < 1e-6);
        assert!((q.mean_wait() - 0.7 / 0.6).abs() < 1e-12);
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        let q = Md1 { arrival_rate: 0.9, service: 1.0 };
        assert_eq!(q.response_quantile(0.05), 1.0);
        for p in [0.5, 0.99, 0.9999] {
            assert!((q.wait_cdf(q.response_quantile(p) - 1.0) - p).abs() < 1e-12);
        }
    }
}
