//! Occupancy over time: the utilisation of one resource, gauges of a level, and Little's law between accounts of a queue.

use engine::Time;
use std::fmt;

/// Exact number of picoseconds of a window during which at least one activity was under way.
///
/// Activities are nested pairs of [`Busy::begin`] and [`Busy::end`], or whole intervals whose end is known
/// when they start ([`Busy::add`]); the two may be mixed, and overlap counts once. Starting times never go
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    start: Time,
    /// Busy time before the current interval.
    closed: u64,
    /// Current interval; while `depth > 0` its end is open.
    from: Time,
    to: Time,
    depth: u32,
}

impl Busy {
    /// Creates an idle resource, observed from `start` on.
    pub const fn new(start: Time) -> Busy {
        Busy { start, closed: 0, from: start, to: start, depth: 0 }
    }

    /// Begins an activity.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.open_at(now);
        self.depth += 1;
    }

    /// Ends an activity.
    ///
    /// # Panics
    /// If no activity is under way.
    #[inline]
    pub fn end(&mut self, now: Time) {
        self.depth = self.depth.checked_sub(1).expect("end without begin");
        self.to = self.to.max(now);
    }

    /// Adds an activity that starts at `from` and lasts until `to`, which may be in the future.
    #[inline]
    pub fn add(&mut self, from: Time, to: Time) {
        debug_assert!(from <= to, "interval from {from} to {to}");
        self.open_at(from);
        self.to = self.to.max(to);
    }

    #[inline]
    fn open_at(&mut self, from: Time) {
        debug_assert!(from >= self.from, "activity at {from}, after {}", self.from);
        if self.depth == 0 && from > self.to {
            self.closed += self.to.since(self.from).ps();
            self.from = from;
            self.to = from;
        }
    }

    /// Returns whether an activity is under way at `now`.
    pub fn is_busy(&self, now: Time) -> bool {
        self.depth > 0 || (self.from <= now && now < self.to)
    }

    /// Returns the busy time from the start of the window to `now`; never more than the window.
    pub fn total(&self, now: Time) -> Time {
        let to = if self.depth > 0 { now } else { self.to.min(now) };
        Time::from_ps(self.closed + to.since(self.from).ps())
    }

    /// Returns the busy share of the window that ends at `now`, 0 to 1; zero for an empty window.
    pub fn share(&self, now: Time) -> f64 {
        let window = now.since(self.start).ps();
        if window == 0 { 0.0 } else { self.total(now).ps() as f64 / window as f64 }
    }

    /// Begins a new window at `now`; activities under way continue in it.
    pub fn reset(&mut self, now: Time) {
        self.start = now;
        self.closed = 0;
        self.from = self.from.max(now);
        self.to = self.to.max(self.from);
    }
}

// Active time of a flow.

/// Span from the arrival of a flow's first request to the completion of its last, over the requests that completed in a
/// window.
///
/// fio divides a job's rates by its own run time in the same way, from its start to its last completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Earliest arrival; the maximum time if nothing has completed.
    pub first_arrival: Time,
    /// Latest arrival.
    pub last_arrival: Time,
    /// Latest completion.
    pub last_completion: Time,
}

impl Default for Span {
    fn default() -> Span {
        Span { first_arrival: Time::MAX, last_arrival: Time::ZERO, last_completion: Time::ZERO }
    }
}

impl Span {
    /// Adds a completed request.
    #[inline]
    pub fn record(&mut self, arrived: Time, completed: Time) {
        self.first_arrival = self.first_arrival.min(arrived);
        self.last_arrival = self.last_arrival.max(arrived);
        self.last_completion = self.last_completion.max(completed);
    }

    /// Returns the time from the first to the last arrival.
    pub fn arrivals(&self) -> Time {
        self.last_arrival.since(self.first_arrival)
    }

    /// Returns the time from the first arrival, or the start of the window if that was later, to the last completion.
    pub fn active(&self, window: Time) -> Time {
        self.last_completion.since(self.first_arrival.max(window))
    }
}

// Quantity that holds its value between changes: queue length, buffer fill, free blocks.

/// Quantity weighted by the time for which it was held, exact: integral in value-picoseconds, mean, maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    value: u64,
    max: u64,
    start: Time,
    changed: Time,
    integral: u128,
}

engine::snapshot!(Gauge { value, max, start, changed, integral });

impl Gauge {
    /// Creates a gauge that holds `value` from `start` on.
    pub const fn new(start: Time, value: u64) -> Gauge {
        Gauge { value, max: value, start, changed: start, integral: 0 }
    }

    /// Sets the value from `now` on. `now` never goes back.
    #[inline]
    pub fn set(&mut self, now: Time, value: u64) {
        debug_assert!(now >= self.changed, "gauge set at {now}, after {}", self.changed);
        self.integral += u128::from(self.value) * u128::from(now.since(self.changed).ps());
        self.changed = now;
        self.value = value;
        self.max = self.max.max(value);
    }

    /// Raises the value by `n`.
    #[inline]
    pub fn add(&mut self, now: Time, n: u64) {
        self.set(now, self.value + n);
    }

    /// Lowers the value by `n`.
    ///
    /// # Panics
    /// If the value would fall below zero.
    #[inline]
    pub fn sub(&mut self, now: Time, n: u64) {
        let value = self.value.checked_sub(n).expect("gauge below zero");
        self.set(now, value);
    }

    /// Adds a past rise: between two times the value was raised by at most `most`, and then fell back. `integral` is
    /// the integral of the rise.
    pub fn rise(&mut self, (from, to): (Time, Time), most: u64, integral: u128) {
        let value = self.value;
        self.add(from, most);
        self.value = value;
        self.set(to, value);
        self.integral += integral;
    }

    /// Returns the current value.
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Returns the maximum value since the window began.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the sum of value times picoseconds from the start of the window to `now`.
    pub fn integral(&self, now: Time) -> u128 {
        self.integral + u128::from(self.value) * u128::from(now.since(self.changed).ps())
    }

    /// Returns the time-weighted mean from the start of the window to `now`; the value itself for an empty window.
    pub fn mean(&self, now: Time) -> f64 {
        let window = now.since(self.start).ps();
        if window == 0 { self.value as f64 } else { self.integral(now) as f64 / window as f64 }
    }

    /// Begins a new window at `now` with the current value, at the end of warm-up.
    pub fn reset(&mut self, now: Time) {
        *self = Gauge::new(now, self.value);
    }
}

// Little's law as an identity between two independent accounts of one queue.

/// Arrivals, departures, time in system, and number in system over time.
///
/// Over any window, the integral of the number in system equals the time that customers spent inside during it:
/// sojourns of those that left plus the time so far of those still inside. The left side counts arrival and departure
/// events, the right side uses the arrival times that customers carry, so a lost, duplicated or wrongly stamped
/// customer breaks it. (J. D. C. Little, Operations Research 9(3), 1961; sample-path form: S. Stidham, Operations
/// Research 22(2), 1974.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Little {
    inside: Gauge,
    start: Time,
    arrivals: u64,
    departures: u64,
    sojourn: u128,
}

engine::snapshot!(Little { inside, start, arrivals, departures, sojourn });

/// Disagreement between the two sides of Little's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LittleViolation {
    /// Customers inside according to arrivals less departures.
    pub counted: u64,
    /// Customers that the caller found inside.
    pub found: u64,
    /// Integral of the number in system, customer-picoseconds.
    pub integral: u128,
    /// Time spent inside by all customers, picoseconds.
    pub spent: u128,
}

impl fmt::Display for LittleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Little's law: {} customers counted inside and {} found; integral of the number in system {} ps, \
             time spent inside {} ps",
            self.counted, self.found, self.integral, self.spent
        )
    }
}

impl std::error::Error for LittleViolation {}

impl Little {
    /// Creates an empty system, observed from `start` on.
    pub const fn new(start: Time) -> Little {
        Little { inside: Gauge::new(start, 0), start, arrivals: 0, departures: 0, sojourn: 0 }
    }

    /// Adds a customer that enters.
    #[inline]
    pub fn arrive(&mut self, now: Time) {
        self.inside.add(now, 1);
        self.arrivals += 1;
    }

    /// Removes a customer that entered at `arrived`.
    ///
    /// # Panics
    /// If the system is empty.
    #[inline]
    pub fn depart(&mut self, now: Time, arrived: Time) {
        self.inside.sub(now, 1);
        self.departures += 1;
        self.sojourn += u128::from(now.since(arrived.max(self.start)).ps());
    }

    /// Adds a crowd: `customers` that entered and left between two times, at most `most` of them inside at once, with a
    /// total sojourn in picoseconds.
    ///
    /// # Panics
    /// If a customer is inside.
    pub fn crowd(&mut self, (first, last): (Time, Time), customers: u64, most: u64, sojourn: u128) {
        assert!(self.inside() == 0, "a crowd needs an empty system");
        self.inside.rise((first, last), most, sojourn);
        self.arrivals += customers;
        self.departures += customers;
        self.sojourn += sojourn;
    }

    /// Returns the number of customers that entered during the window.
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Returns the number of customers that left during the window.
    pub const fn departures(&self) -> u64 {
        self.departures
    }

    /// Returns the number of customers inside.
    pub const fn inside(&self) -> u64 {
        self.inside.value()
    }

    /// Returns the maximum number of customers inside at once during the window.
    pub const fn inside_max(&self) -> u64 {
        self.inside.max()
    }

    /// Returns `L`: the time-weighted mean number in system from the start of the window to `now`.
    pub fn mean_inside(&self, now: Time) -> f64 {
        self.inside.mean(now)
    }

    /// Returns `lambda`: departures per second of the window; zero for an empty window.
    pub fn departure_rate(&self, now: Time) -> f64 {
        let window = now.since(self.start).as_s_f64();
        if window == 0.0 { 0.0 } else { self.departures as f64 / window }
    }

    /// Returns `W`: the mean time in system, in picoseconds, of customers that left during the window, without the time
    /// before it began; `None` if none left.
    pub fn mean_sojourn_ps(&self) -> Option<f64> {
        (self.departures > 0).then(|| self.sojourn as f64 / self.departures as f64)
    }

    /// Compares the two accounts at `now`, given the arrival times of all customers still inside.
    ///
    /// # Errors
    /// If they differ by a customer or a picosecond.
    pub fn check(&self, now: Time, inside: impl IntoIterator<Item = Time>) -> Result<(), LittleViolation> {
        let (mut found, mut spent) = (0, self.sojourn);
        for arrived in inside {
            found += 1;
            spent += u128::from(now.since(arrived.max(self.start)).ps());
        }
        let (counted, integral) = (self.inside(), self.inside.integral(now));
        if found == counted && spent == integral {
            return Ok(());
        }
        Err(LittleViolation { counted, found, integral, spent })
    }

    /// Begins a new window at `now`; customers inside stay and count from now on.
    pub fn reset(&mut self, now: Time) {
        self.inside.reset(now);
        *self = Little { inside: self.inside, ..Little::new(now) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Time;

    #[test]
    fn covers_what_was_recorded_in_any_order_and_begins_with_the_window() {
        let us = Time::from_us;
        let mut span = Span::default();
        assert_eq!((span.arrivals(), span.active(Time::ZERO)), (Time::ZERO, Time::ZERO));
        span.record(us(5), us(9));
        span.record(us(3), us(20));
        span.record(us(8), us(10));
        assert_eq!((span.first_arrival, span.last_arrival, span.last_completion), (us(3), us(8), us(20)));
        assert_eq!((span.arrivals(), span.active(Time::ZERO), span.active(us(4))), (us(5), us(17), us(16)));
    }

    #[test]
    fn weights_by_time() {
        let mut g = Gauge::new(Time::from_ps(10), 1);
        g.set(Time::from_ps(20), 5);
        g.add(Time::from_ps(22), 2);
        g.sub(Time::from_ps(22), 6);
        assert_eq!(g.integral(Time::from_ps(30)), 10 + 2 * 5 + 8);
        assert_eq!(g.mean(Time::from_ps(30)), 28.0 / 20.0);
        assert_eq!((g.value(), g.max()), (1, 7));
    }

    #[test]
    fn a_new_window_keeps_the_value_and_forgets_the_past() {
        let mut g = Gauge::new(Time::ZERO, 9);
        g.set(Time::from_ps(5), 4);
        g.reset(Time::from_ps(10));
        assert_eq!((g.value(), g.max(), g.integral(Time::from_ps(10))), (4, 4, 0));
        assert_eq!(g.mean(Time::from_ps(10)), 4.0);
        assert_eq!(g.integral(Time::from_ps(13)), 12);
    }

    #[test]
    #[should_panic(expected = "gauge below zero")]
    fn never_negative() {
        Gauge::new(Time::ZERO, 1).sub(Time::ZERO, 2);
    }
}
