//! Closed forms and fixed points that simulated metrics are checked against.
//!
//! Pure functions, each with its source and its assumptions.
//!
//! * Knows queues, write amplification, tiers of memory, special functions.
//! * Does not know the simulator: it shares no code with the crates that it checks, and no simulated event depends on
//!   its last bit.
//! * Read first: `wa/mod.rs`, write amplification; then `queue/`.
#![allow(clippy::disallowed_methods, reason = "report-only mathematics: the last bit decides nothing")]

pub mod fit;
pub mod flash;
pub mod queue;
pub mod tiered;
pub mod wa;

pub use fit::{lambert_w0, ln_gamma, regularized_gamma_q};

// One-dimensional root and minimum, to the last bit or nearly so.

/// Returns the root of `f` between `low` and `high`, where `f` rises through zero; an end of the interval if `f` does
/// not change sign. `f` may be infinite at the ends.
///
/// T. R. Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear
/// function without using derivatives, Advances in Engineering Software 28(3), 1997.
fn rising_root(low: f64, high: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    let (mut a, mut b) = (low, high);
    let (mut at_a, mut at_b) = (f(a), f(b));
    if at_a >= 0.0 {
        return a;
    }
    if at_b <= 0.0 {
        return b;
    }
    let smallest = 1e-17 * (high - low);
    let mut step = 0.5;
    loop {
        let x = a + step * (b - a);
        let at_x = f(x);
        // Newest point `a`, point on the other side of the root `b`, dropped point `c`.
        let (c, at_c);
        if (at_x < 0.0) == (at_a < 0.0) {
            (c, at_c) = (a, at_a);
        } else {
            (c, at_c) = (b, at_b);
            (b, at_b) = (a, at_a);
        }
        (a, at_a) = (x, at_x);
        let (best, at_best) = if at_a.abs() < at_b.abs() { (a, at_a) } else { (b, at_b) };
        let least = (2.0 * f64::EPSILON * best.abs() + smallest) / (b - a).abs();
        if least > 0.5 || at_best == 0.0 {
            return best;
        }
        let (xi, phi) = ((a - b) / (c - b), (at_a - at_b) / (at_c - at_b));
        let smooth = phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi;
        step = if smooth {
            at_a / (at_b - at_a) * at_c / (at_b - at_c)
                + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        } else {
            0.5
        };
        step = step.clamp(least, 1.0 - least);
    }
}

/// Returns the point between `low` and `high` at which `f`, with a single minimum, is least, to about `1e-8` of the
/// interval (golden section: J. Kiefer, Proc. AMS 4(3), 1953).
fn minimum(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..40 {
        if at_a < at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - ratio * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + ratio * (high - low);
            at_b = f(b);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::{minimum, rising_root};

    #[test]
    fn finds_a_root_and_a_minimum() {
        assert!((rising_root(0.0, 2.0, |x| x * x - 2.0) - 2f64.sqrt()).abs() < 1e-15);
        assert!((rising_root(0.0, 1.0, |x| 1e-9 - 1e-12 / x) - 1e-3).abs() < 1e-15);
        assert!((rising_root(-1.0, 2.0, |x| x.powi(9)) - 0.0).abs() < 1e-15);
        assert_eq!(rising_root(1.0, 2.0, |x| x), 1.0);
        assert_eq!(rising_root(1.0, 2.0, |x| -x), 2.0);
        assert!((minimum(0.0, 9.0, |x| (x - 3.0).abs()) - 3.0).abs() < 1e-7);
    }
}
