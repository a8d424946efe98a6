//! Utilisation of one resource: the union of the intervals during which it works.

use engine::Time;

/// Picoseconds of a window during which at least one activity was under way, exact.
///
/// Activities are nested pairs of [`Busy::begin`] and [`Busy::end`], or whole intervals whose end is known
/// when they start ([`Busy::add`]); the two may be mixed, and overlap counts once. Starting times never go
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    start: Time,
    /// Busy time before the current interval.
    closed: u64,
    /// The current interval; while `depth > 0` its end is open.
    from: Time,
    to: Time,
    depth: u32,
}

impl Busy {
    /// An idle resource, observed from `start` on.
    pub const fn new(start: Time) -> Busy {
        Busy { start, closed: 0, from: start, to: start, depth: 0 }
    }

    /// An activity starts.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        self.open_at(now);
        self.depth += 1;
    }

    /// An activity that was begun ends.
    ///
    /// # Panics
    /// If none is under way.
    #[inline]
    pub fn end(&mut self, now: Time) {
        self.depth = self.depth.checked_sub(1).expect("end without begin");
        self.to = self.to.max(now);
    }

    /// An activity that starts at `from` and will last until `to`, which may lie in the future.
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

    /// True if an activity is under way at `now`.
    pub fn is_busy(&self, now: Time) -> bool {
        self.depth > 0 || (self.from <= now && now < self.to)
    }

    /// Busy time from the start of the window to `now`; never more than the window.
    pub fn total(&self, now: Time) -> Time {
        let to = if self.depth > 0 { now } else { self.to.min(now) };
        Time::from_ps(self.closed + to.since(self.from).ps())
    }

    /// Busy share of the window that ends at `now`, 0 to 1; zero for an empty window.
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
