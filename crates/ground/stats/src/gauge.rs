//! A quantity that holds its value between changes: queue length, buffer fill, free blocks.

use engine::Time;

/// A `u64` quantity weighted by the time it was held, exact: integral in value-picoseconds, mean, maximum.
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
    /// A gauge that holds `value` from `start` on.
    pub const fn new(start: Time, value: u64) -> Gauge {
        Gauge { value, max: value, start, changed: start, integral: 0 }
    }

    /// Holds `value` from `now` on. `now` never goes back.
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

    /// From the first to the second of two times the value was raised, by at most `most`, and is then what it was: the integral of what it was raised by is `integral`.
    pub fn rise(&mut self, (from, to): (Time, Time), most: u64, integral: u128) {
        let value = self.value;
        self.add(from, most);
        self.value = value;
        self.set(to, value);
        self.integral += integral;
    }

    /// The value now held.
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// The largest value held since the window began.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Sum of value times picoseconds from the start of the window to `now`.
    pub fn integral(&self, now: Time) -> u128 {
        self.integral + u128::from(self.value) * u128::from(now.since(self.changed).ps())
    }

    /// Time-weighted mean from the start of the window to `now`; the value itself for an empty window.
    pub fn mean(&self, now: Time) -> f64 {
        let window = now.since(self.start).ps();
        if window == 0 { self.value as f64 } else { self.integral(now) as f64 / window as f64 }
    }

    /// Begins a new window at `now` with the value held: the end of warm-up.
    pub fn reset(&mut self, now: Time) {
        *self = Gauge::new(now, self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::Gauge;
    use engine::Time;

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
