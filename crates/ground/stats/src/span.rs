//! When a flow was at work.

use engine::Time;

/// From the arrival of a flow's first request to the completion of its last, over the requests that completed in a window.
///
/// fio divides a job's rates by its own run time in the same sense, from its start to its last completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest arrival; the end of all time if nothing has completed.
    pub first_arrival: Time,
    /// The latest arrival.
    pub last_arrival: Time,
    /// The latest completion.
    pub last_completion: Time,
}

impl Default for Span {
    fn default() -> Span {
        Span { first_arrival: Time::MAX, last_arrival: Time::ZERO, last_completion: Time::ZERO }
    }
}

impl Span {
    /// Takes a completed request in.
    #[inline]
    pub fn record(&mut self, arrived: Time, completed: Time) {
        self.first_arrival = self.first_arrival.min(arrived);
        self.last_arrival = self.last_arrival.max(arrived);
        self.last_completion = self.last_completion.max(completed);
    }

    /// From the first to the last arrival.
    pub fn arrivals(&self) -> Time {
        self.last_arrival.since(self.first_arrival)
    }

    /// From the first arrival, or the start of the window if that was later, to the last completion.
    pub fn active(&self, window: Time) -> Time {
        self.last_completion.since(self.first_arrival.max(window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
