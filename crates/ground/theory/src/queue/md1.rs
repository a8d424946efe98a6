//! Constant service: M/D/1.

use super::mg1_mean_wait;
use crate::solve::rising_root;

/// M/D/1: one server whose service always takes `service`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Md1 {
    /// Arrivals per unit of time.
    pub arrival_rate: f64,
    /// Service time.
    pub service: f64,
}

impl Md1 {
    /// Busy share of the server.
    pub fn load(&self) -> f64 {
        self.arrival_rate * self.service
    }

    /// Mean time before service: half of M/M/1's.
    pub fn mean_wait(&self) -> f64 {
        mg1_mean_wait(self.arrival_rate, self.service, 0.0)
    }

    /// Mean time before and in service.
    pub fn mean_response(&self) -> f64 {
        self.mean_wait() + self.service
    }

    /// Probabilities of 0, 1 … `last` customers in the system.
    ///
    /// Balance across the cut between `n` and `n + 1` at departures, `p(n+1) a(0) = p(0) A(n) + sum_i p(i)
    /// A(n+1-i)` with `a` and `A` the Poisson probability and tail of arrivals in a service: no subtraction,
    /// hence stable.
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

    /// Probability that the wait is at most `t`.
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

    /// The `p`-quantile of the response: the wait's plus one service. Infinite where the queue cannot keep
    /// up.
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
    use super::Md1;

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
