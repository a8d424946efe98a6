//! Readings over time in bounded memory: when there are too many, every second one is given up.

use engine::Time;

/// Readings, at most `limit` of them, spread over all of the time.
///
/// Of what grows with time (bytes, busy time) any two that are left say exactly what happened between them.
#[derive(Clone, Debug)]
pub struct Samples<T> {
    limit: usize,
    /// One in so many readings is kept.
    stride: u64,
    offered: u64,
    kept: Vec<(Time, T)>,
}

impl<T> Samples<T> {
    /// At most `limit` readings.
    ///
    /// # Panics
    /// If `limit` is less than two.
    pub fn new(limit: usize) -> Samples<T> {
        assert!(limit >= 2, "fewer than two readings");
        Samples { limit, stride: 1, offered: 0, kept: Vec::new() }
    }

    /// A reading at `now`.
    pub fn record(&mut self, now: Time, reading: T) {
        let wanted = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !wanted {
            return;
        }
        if self.kept.len() == self.limit {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride *= 2;
            // The one that is offered follows the last of an odd place.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.kept.push((now, reading));
    }

    /// The readings, in order of time.
    pub fn kept(&self) -> &[(Time, T)] {
        &self.kept
    }

    /// Forgets everything: the end of warm-up.
    pub fn clear(&mut self) {
        *self = Samples::new(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;
    use engine::Time;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn readings_stay_evenly_spread(limit in 2usize..40, n in 1u64..2000) {
            let mut samples = Samples::new(limit);
            (0..n).for_each(|at| samples.record(Time::from_ns(at), at));
            let kept: Vec<u64> = samples.kept().iter().map(|(_, at)| *at).collect();
            prop_assert!(kept.len() <= limit && kept[0] == 0);
            // Multiples of one power of two, none left out, and half the limit at least where there were as many.
            let stride = kept.get(1).copied().unwrap_or(1);
            prop_assert!(stride.is_power_of_two());
            prop_assert!(kept.iter().zip(0..).all(|(at, k)| *at == k * stride));
            prop_assert!(n - kept[kept.len() - 1] <= stride);
            prop_assert!(kept.len() as u64 >= n.min(limit as u64 / 2));
        }
    }
}
