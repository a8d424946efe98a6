//! Simulated time: integer picoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Point in simulated time, or a span of it, in picoseconds. `u64` reaches 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// Start of every simulation.
    pub const ZERO: Time = Time(0);
    /// Time after every event.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates a time from picoseconds.
    #[inline]
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// Creates a time from nanoseconds.
    #[inline]
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// Creates a time from microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// Creates a time from milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// Creates a time from seconds.
    #[inline]
    pub const fn from_s(s: u64) -> Time {
        Time(s * 1_000_000_000_000)
    }
    /// Returns picoseconds.
    #[inline]
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Returns whole nanoseconds, rounded down.
    #[inline]
    pub const fn ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Returns nanoseconds as a real number; for reports only.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Returns seconds as a real number; for reports only.
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// Returns `self - earlier`, or zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
    /// Returns the time of `bytes` at `bytes_per_s`, rounded up to a picosecond.
    ///
    /// A rate of zero is infinitely fast.
    pub const fn transfer(bytes: u64, bytes_per_s: u64) -> Time {
        if bytes_per_s == 0 {
            return Time::ZERO;
        }
        let ps = (bytes as u128 * 1_000_000_000_000).div_ceil(bytes_per_s as u128);
        Time(ps as u64)
    }
    /// Returns the period of a clock of `hz` cycles per second, rounded to the nearest picosecond.
    ///
    /// # Panics
    /// If `hz` is zero.
    pub const fn period(hz: u64) -> Time {
        assert!(hz > 0, "a clock of 0 Hz has no period");
        Time((1_000_000_000_000 + hz / 2) / hz)
    }
    /// Adds two times; `None` past the horizon (213 days), instead of wrapping.
    pub const fn checked_add(self, other: Time) -> Option<Time> {
        match self.0.checked_add(other.0) {
            Some(t) => Some(Time(t)),
            None => None,
        }
    }
    /// Returns `self * n`.
    #[inline]
    pub const fn times(self, n: u64) -> Time {
        Time(self.0 * n)
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, o: Time) -> Time {
        Time(self.0 + o.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, o: Time) {
        self.0 += o.0;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, o: Time) -> Time {
        Time(self.0 - o.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Time {
    /// Formats the largest unit that leaves at least one whole, with up to three decimals: `54.92us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
        for (scale, name) in units {
            if self.0 >= scale {
                let text = format!("{:.3}", self.0 as f64 / scale as f64);
                let text = text.trim_end_matches('0').trim_end_matches('.');
                return write!(f, "{text}{name}");
            }
        }
        write!(f, "{}ps", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn transfer_rounds_up() {
        assert_eq!(Time::transfer(4096, 800_000_000), Time::from_ns(5120));
        assert_eq!(Time::transfer(1, 3_000_000_000_000), Time::from_ps(1));
        assert_eq!(Time::transfer(1 << 40, 0), Time::ZERO);
    }

    #[test]
    fn shows_the_unit_a_reader_expects() {
        assert_eq!(Time::from_ns(54_920).to_string(), "54.92us");
        assert_eq!(Time::from_ms(3).to_string(), "3ms");
        assert_eq!(Time::from_ps(7).to_string(), "7ps");
    }
}
