//! Closed networks: a fixed number of customers, as in a benchmark at constant queue depth.

/// Bounds that hold for any service-time distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Throughput is at least this: every customer waits for all others everywhere.
    pub throughput_low: f64,
    /// Throughput is at most this: no one ever waits, or the bottleneck never rests.
    pub throughput_high: f64,
    /// Response time, think time apart, is at least this.
    pub response_low: f64,
    /// Response time, think time apart, is at most this.
    pub response_high: f64,
}

/// Asymptotic bounds for `customers` that each need `demands[i]` of service at queueing station `i` and
/// `think` of time without contention, in every cycle.
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

/// A closed network in equilibrium.
#[derive(Clone, Debug, PartialEq)]
pub struct Closed {
    /// Cycles per unit of time.
    pub throughput: f64,
    /// Mean time per cycle, think time apart.
    pub response: f64,
    /// Mean number of customers at each station.
    pub queues: Vec<f64>,
}

/// Exact mean value analysis of the network of [`asymptotic_bounds`], for exponential service.
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

/// Throughput of `customers` who each choose one of `servers` uniformly at random, are served for an
/// exponential time of mean `service`, and choose again: `n k / (service (n + k - 1))`, [`mva`] solved for
/// equal demands.
///
/// With constant service more is done: between this and [`asymptotic_bounds`]'s `min(n, k) / service`.
pub fn uniform_servers(servers: u32, service: f64, customers: u32) -> f64 {
    let (n, k) = (f64::from(customers), f64::from(servers));
    n * k / (service * (n + k - 1.0))
}

#[cfg(test)]
mod tests {
    use super::{asymptotic_bounds, mva, uniform_servers};

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
}
