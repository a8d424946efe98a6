//! Exponential service: M/M/1 and M/M/k.

use super::super::rising_root;

/// Returns the blocking probability of `servers` without waiting room offered `offered` erlangs.
///
/// A. K. Erlang, 1917, by the usual stable recursion over the servers.
pub fn erlang_b(offered: f64, servers: u32) -> f64 {
    (1..=servers).fold(1.0, |b, k| offered * b / (f64::from(k) + offered * b))
}

/// Returns the probability of waiting in M/M/k offered `offered` erlangs; one if they are `servers` or more.
///
/// A. K. Erlang, 1917; L. Kleinrock, Queueing Systems 1, 1975, section 3.5.
pub fn erlang_c(offered: f64, servers: u32) -> f64 {
    let k = f64::from(servers);
    if offered >= k {
        return 1.0;
    }
    let b = erlang_b(offered, servers);
    b / (1.0 - (offered / k) * (1.0 - b))
}

/// Creates an M/M/1 queue: [`Mmk`] with one server.
pub const fn mm1(arrival_rate: f64, service: f64) -> Mmk {
    Mmk { arrival_rate, service, servers: 1 }
}

/// M/M/k queue: exponential service of mean `service` at each of `servers`, one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mmk {
    /// Arrivals per unit of time.
    pub arrival_rate: f64,
    /// Mean service time.
    pub service: f64,
    /// Number of servers.
    pub servers: u32,
}

impl Mmk {
    /// Returns the busy share of each server; at least one if the queue cannot keep up.
    pub fn load(&self) -> f64 {
        self.arrival_rate * self.service / f64::from(self.servers)
    }

    /// Returns the probability that an arrival waits.
    pub fn wait_probability(&self) -> f64 {
        erlang_c(self.arrival_rate * self.service, self.servers)
    }

    /// Returns the rate at which waiting ends while all servers are busy: `k / service - lambda`.
    fn drain_rate(&self) -> f64 {
        f64::from(self.servers) / self.service - self.arrival_rate
    }

    /// Returns the mean time before service.
    pub fn mean_wait(&self) -> f64 {
        if self.load() >= 1.0 { f64::INFINITY } else { self.wait_probability() / self.drain_rate() }
    }

    /// Returns the mean time before and in service.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.service
    }

    /// Returns the mean number of customers waiting or in service (Little's law).
    pub fn mean_number(&self) -> f64 {
        self.arrival_rate * self.mean_response()
    }

    /// Returns the probability that the wait exceeds `t`.
    pub fn wait_tail(&self, t: f64) -> f64 {
        if self.load() >= 1.0 {
            return 1.0;
        }
        self.wait_probability() * (-self.drain_rate() * t).exp()
    }

    /// Returns the probability that the response exceeds `t`: service alone, or after an exponential wait.
    ///
    /// D. Gross, C. M. Harris, Fundamentals of Queueing Theory, 3rd ed. 1998, section 2.3.
    pub fn response_tail(&self, t: f64) -> f64 {
        if self.load() >= 1.0 {
            return 1.0;
        }
        let (wait, drain, rate) = (self.wait_probability(), self.drain_rate(), 1.0 / self.service);
        // P(wait + service > t) = e^-rate t + rate (e^-rate t - e^-drain t) / (drain - rate), with expm1
        // because the two rates may be equal.
        let gap = (drain - rate) * t;
        let factor = if gap == 0.0 { 1.0 } else { -(-gap).exp_m1() / gap };
        let waited = (-rate * t).exp() * (1.0 + rate * t * factor);
        (1.0 - wait) * (-rate * t).exp() + wait * waited
    }

    /// Returns the `p`-quantile of the response, infinite if the queue cannot keep up.
    pub fn response_quantile(&self, p: f64) -> f64 {
        if self.load() >= 1.0 {
            return f64::INFINITY;
        }
        let mut high = self.mean_response();
        while self.response_tail(high) > 1.0 - p {
            high *= 2.0;
        }
        rising_root(0.0, high, |t| 1.0 - p - self.response_tail(t))
    }
}

#[cfg(test)]
mod tests {
    use super::{Mmk, erlang_b, erlang_c, mm1};

    #[test]
    fn erlang_by_its_defining_sums() {
        for servers in [1u32, 2, 6, 10, 40] {
            for load in [0.1, 0.5, 0.9, 0.99] {
                let a = load * f64::from(servers);
                let (mut term, mut below) = (1.0, 0.0);
                for k in 0..servers {
                    below += term;
                    term *= a / f64::from(k + 1);
                }
                assert!((erlang_b(a, servers) - term / (below + term)).abs() < 1e-12);
                let waiting = term / (1.0 - load);
                assert!((erlang_c(a, servers) - waiting / (below + waiting)).abs() < 1e-12);
            }
        }
        assert!((erlang_b(10.0, 10) - 0.214_58).abs() < 1e-5, "Erlang's table: 10 erlangs on 10 lines");
        assert!((erlang_c(1.0, 2) - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_server_is_the_textbook_queue() {
        let q = mm1(0.8, 1.0);
        assert!((q.mean_response() - 5.0).abs() < 1e-12);
        assert!((q.mean_number() - 4.0).abs() < 1e-12);
        assert!((q.wait_tail(3.0) - 0.8 * (-0.6f64).exp()).abs() < 1e-12);
        // The response of M/M/1 is exponential of rate mu - lambda.
        for p in [0.5, 0.9, 0.99, 0.9999] {
            assert!((q.response_quantile(p) + (1.0 - p).ln() / 0.2).abs() < 1e-9);
        }
        assert_eq!(mm1(1.0, 1.0).mean_wait(), f64::INFINITY);
    }

    #[test]
    fn quantiles_where_wait_and_service_have_equal_rates() {
        // k mu - lambda = mu: k = 2, lambda = mu.
        let q = Mmk { arrival_rate: 1.0, service: 1.0, servers: 2 };
        let t = 2.0f64;
        let expected = (-t).exp() * (2.0 / 3.0 + (1.0 + t) / 3.0);
        assert!((q.response_tail(t) - expected).abs() < 1e-14);
        let near = Mmk { arrival_rate: 1.0 + 1e-9, ..q };
        assert!((near.response_tail(t) - expected).abs() < 1e-8);
    }

    /// F. S. Hillier, G. J. Lieberman, Introduction to Operations Research, County Hospital: two arrivals an hour, three
    /// served an hour, with one doctor and with two.
    #[test]
    fn a_textbook_table() {
        let with = |servers| Mmk { arrival_rate: 2.0, service: 1.0 / 3.0, servers };
        for (servers, number, wait, response, tails) in [
            (1, 2.0, 2.0 / 3.0, 1.0, [0.667, 0.404, 0.245]),
            (2, 0.75, 1.0 / 24.0, 0.375, [0.167, 0.022, 0.003]),
        ] {
            let q = with(servers);
            assert!((q.mean_number() - number).abs() < 1e-12);
            assert!((q.mean_wait() - wait).abs() < 1e-12 && (q.mean_response() - response).abs() < 1e-12);
            for (t, tail) in [0.0, 0.5, 1.0].into_iter().zip(tails) {
                assert!((q.wait_tail(t) - tail).abs() <= 1e-3, "{servers} {t}");
            }
        }
        // Two and three servers in closed form: 2 r^2 / (1 + r) and 9 r^3 / (2 + 4 r + 3 r^2), r the load.
        for r in [0.1f64, 0.4, 2.0 / 3.0, 0.95] {
            assert!((erlang_c(2.0 * r, 2) - 2.0 * r * r / (1.0 + r)).abs() < 1e-12);
            assert!((erlang_c(3.0 * r, 3) - 9.0 * r.powi(3) / (2.0 + 4.0 * r + 3.0 * r * r)).abs() < 1e-12);
        }
    }

    /// Returns mean, median and 99th percentile of the response of jobs that a station serves one after another.
    fn simulated(station: &Mmk, jobs: usize) -> [f64; 3] {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut exponential = |mean: f64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            -mean * (((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64).ln()
        };
        let (mut now, mut free) = (0.0f64, vec![0.0f64; station.servers as usize]);
        let mut responses: Vec<f64> = (0..jobs)
            .map(|_| {
                now += exponential(1.0 / station.arrival_rate);
                let next = (0..free.len()).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap_or(0);
                free[next] = now.max(free[next]) + exponential(station.service);
                free[next] - now
            })
            .collect();
        let mean = responses.iter().sum::<f64>() / jobs as f64;
        responses.sort_by(f64::total_cmp);
        [mean, responses[jobs / 2], responses[jobs / 100 * 99]]
    }

    #[test]
    fn a_naive_station_agrees() {
        for (servers, load) in [(1, 0.3), (1, 0.7), (4, 0.8), (6, 0.3), (6, 0.7), (6, 0.85)] {
            let service = f64::from(servers);
            let q = Mmk { arrival_rate: load, service, servers };
            let expected = [q.mean_response(), q.response_quantile(0.5), q.response_quantile(0.99)];
            for (ours, found) in expected.into_iter().zip(simulated(&q, 1_000_000)) {
                assert!((found / ours - 1.0).abs() < 0.02, "{servers} at {load}: {ours}, found {found}");
            }
        }
    }
}
