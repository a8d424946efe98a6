//! Clocks of 32 bits, which begin again at zero.

/// A span of 2^32 ns, 2^32 times 100 ns, 2^32 us and 2^32 ms, in picoseconds.
const PERIODS: [u128; 4] = [1_000 << 32, 100_000 << 32, 1_000_000 << 32, 1_000_000_000 << 32];

/// Puts the times of a clock that begins again at zero behind those before.
///
/// A clock has begun again if a time is more than half of a period earlier than the one before, and the latest so far was in the last
/// eighth of the period: a trace of an hour that is not sorted does not reach it.
#[derive(Default)]
pub(crate) struct Clock {
    /// The latest time as recorded.
    latest: u128,
    /// The time before, as recorded.
    last: u128,
    /// Its period, once it has begun again.
    period: u128,
    turns: u64,
}

impl Clock {
    /// The time that was recorded as `at`, in picoseconds.
    pub(crate) fn time(&mut self, at: u128) -> u128 {
        let candidate = PERIODS.iter().find(|period| (*period / 8 * 7..**period).contains(&self.latest));
        let period = if self.turns > 0 { Some(self.period) } else { candidate.copied() };
        let mut turns = self.turns;
        match period {
            Some(period) if self.last.saturating_sub(at) > period / 2 => {
                turns += 1;
                (self.turns, self.period, self.last) = (turns, period, at);
            }
            // A straggler from before the clock began again.
            Some(period) if turns > 0 && at.saturating_sub(self.last) > period / 2 => turns -= 1,
            _ => self.last = at,
        }
        self.latest = self.latest.max(at);
        at + u128::from(turns) * self.period
    }

    /// How often it has begun again.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// How long it takes to, in picoseconds; zero if it has not.
    pub(crate) fn period(&self) -> u128 {
        self.period
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    /// Times in units of `unit` ps, of which a clock of 32 bits records the lower part.
    fn through(times: &[u64], unit: u128) -> (Vec<u64>, u64) {
        let mut clock = Clock::default();
        let recorded = times.iter().map(|time| u128::from(time % (1 << 32)) * unit);
        let seen = recorded.map(|at| (clock.time(at) / unit) as u64).collect();
        (seen, clock.turns())
    }

    #[test]
    fn a_clock_of_32_bits_is_counted_on() {
        for unit in [1_000, 100_000, 1_000_000, 1_000_000_000] {
            // Steps of a tenth of the period, with two requests in the wrong order around the third turn.
            let mut times: Vec<u64> = (0..50).map(|n| n * 429_496_729).collect();
            times.swap(30, 31);
            assert_eq!(through(&times, unit), (times, 4), "{unit}");
        }
    }

    #[test]
    fn what_is_not_sorted_has_no_such_clock() {
        // Two recordings of 3,600 s one behind the other, in us; and a time that goes back by less than half.
        for times in [vec![0, 3_600_000_000, 0, 3_600_000_000], vec![4_200_000_000, 2_500_000_000]] {
            assert_eq!(through(&times, 1_000_000), (times, 0));
        }
        assert_eq!(through(&[5_000_000_000, 10], 1_000_000_000_000).1, 0);
    }
}
