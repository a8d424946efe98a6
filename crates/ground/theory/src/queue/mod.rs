//! Queues in equilibrium. Arrivals are Poisson and service is first come, first served unless said otherwise.
//!
//! Rates and times may be in any unit if it is the same throughout. A queue that cannot keep up has infinite
//! means.

mod closed;
mod delay;
mod md1;
mod mm;

pub use closed::{Bounds, Closed, asymptotic_bounds, mva, uniform_servers};
pub use delay::Delayed;
pub use md1::Md1;
pub use mm::{Mmk, erlang_b, erlang_c, mm1};

/// Mean wait before service in M/G/1, for a service time of mean `service` and squared coefficient of
/// variation `scv` (0 constant, 1 exponential): `rho service (1 + scv) / (2 (1 - rho))`.
///
/// F. Pollaczek, Mathematische Zeitschrift 32, 1930; L. Kleinrock, Queueing Systems 1, 1975, section 5.6.
pub fn mg1_mean_wait(arrival_rate: f64, service: f64, scv: f64) -> f64 {
    let load = arrival_rate * service;
    if load >= 1.0 { f64::INFINITY } else { load * service * (1.0 + scv) / (2.0 * (1.0 - load)) }
}
