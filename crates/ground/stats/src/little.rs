//! Little's law as an identity between two independent accounts of one queue.

use crate::Gauge;
use engine::Time;
use std::fmt;

/// Arrivals, departures, time in system, and number in system over time.
///
/// Over any window the integral of the number in system equals the time that customers spent inside during
/// it: sojourns of those who left plus the time so far of those who are still there. The left side counts
/// arrival and departure events, the right side uses the arrival times that customers carry, so a lost,
/// duplicated or wrongly stamped customer breaks it. (J. D. C. Little, Operations Research 9(3), 1961;
/// sample-path form: S. Stidham, Operations Research 22(2), 1974.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Little {
    inside: Gauge,
    start: Time,
    arrivals: u64,
    departures: u64,
    sojourn: u128,
}

engine::snapshot!(Little { inside, start, arrivals, departures, sojourn });

/// The two sides of Little's identity disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LittleViolation {
    /// Customers counted inside by arrivals less departures.
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
    /// An empty system, observed from `start` on.
    pub const fn new(start: Time) -> Little {
        Little { inside: Gauge::new(start, 0), start, arrivals: 0, departures: 0, sojourn: 0 }
    }

    /// A customer enters.
    #[inline]
    pub fn arrive(&mut self, now: Time) {
        self.inside.add(now, 1);
        self.arrivals += 1;
    }

    /// A customer that entered at `arrived` leaves.
    ///
    /// # Panics
    /// If the system is empty.
    #[inline]
    pub fn depart(&mut self, now: Time, arrived: Time) {
        self.inside.sub(now, 1);
        self.departures += 1;
        self.sojourn += u128::from(now.since(arrived.max(self.start)).ps());
    }

    /// So many customers entered and left from the first to the last of two times, at most `most` of them inside at once; they were inside for so many
    /// picoseconds, all together.
    ///
    /// # Panics
    /// If somebody is inside.
    pub fn crowd(&mut self, (first, last): (Time, Time), customers: u64, most: u64, sojourn: u128) {
        assert!(self.inside() == 0, "a crowd comes alone");
        self.inside.rise((first, last), most, sojourn);
        self.arrivals += customers;
        self.departures += customers;
        self.sojourn += sojourn;
    }

    /// Customers that entered during the window.
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// Customers that left during the window.
    pub const fn departures(&self) -> u64 {
        self.departures
    }

    /// Customers inside.
    pub const fn inside(&self) -> u64 {
        self.inside.value()
    }

    /// The most customers that were inside at once during the window.
    pub const fn inside_max(&self) -> u64 {
        self.inside.max()
    }

    /// `L`: time-weighted mean number in system from the start of the window to `now`.
    pub fn mean_inside(&self, now: Time) -> f64 {
        self.inside.mean(now)
    }

    /// `lambda`: departures per second of the window; zero for an empty window.
    pub fn departure_rate(&self, now: Time) -> f64 {
        let window = now.since(self.start).as_s_f64();
        if window == 0.0 { 0.0 } else { self.departures as f64 / window }
    }

    /// `W`: mean time in system, in picoseconds, of those who left during the window, without what they spent
    /// inside before it began; `None` if none left.
    pub fn mean_sojourn_ps(&self) -> Option<f64> {
        (self.departures > 0).then(|| self.sojourn as f64 / self.departures as f64)
    }

    /// Holds the two accounts against each other at `now`, given the arrival times of all customers still
    /// inside.
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
