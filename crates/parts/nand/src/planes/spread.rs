//! How evenly resources are used.

use engine::Time;

/// A time over several resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Of the one with the least.
    pub min: Time,
    /// Their mean.
    pub mean: Time,
    /// Of the one with the most.
    pub max: Time,
}

impl Spread {
    /// Least, mean and most of `times`; zeros of none.
    pub fn of(times: impl Iterator<Item = Time>) -> Spread {
        let (mut spread, mut sum, mut count) = (Spread { min: Time::MAX, ..Spread::default() }, 0u128, 0u128);
        for time in times {
            spread.min = spread.min.min(time);
            spread.max = spread.max.max(time);
            sum += u128::from(time.ps());
            count += 1;
        }
        if count == 0 {
            return Spread::default();
        }
        spread.mean = Time::from_ps((sum / count) as u64);
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_its_ends_and_its_mean() {
        let us = Time::from_us;
        let spread = Spread::of([us(1), us(2), us(6)].into_iter());
        assert_eq!(spread, Spread { min: us(1), mean: us(3), max: us(6) });
        assert_eq!(Spread::of(std::iter::empty()), Spread::default());
    }
}
