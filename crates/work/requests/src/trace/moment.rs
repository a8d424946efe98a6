//! A time of a trace, which may be longer than the simulator's clock reaches.

use std::fmt;
use std::str::FromStr;

use config::Diagnostic;
use config::units::Duration;
use engine::Time;

use crate::trace::human;

/// A span of a trace's time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(u128);

impl Moment {
    /// Picoseconds.
    pub const fn ps(self) -> u128 {
        self.0
    }
}

impl From<Time> for Moment {
    fn from(time: Time) -> Moment {
        Moment(u128::from(time.ps()))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&human::span(self.0))
    }
}

impl FromStr for Moment {
    type Err = Diagnostic;
    /// Reads what a duration can be, and more: `10ms`, `300d`.
    fn from_str(text: &str) -> Result<Moment, Diagnostic> {
        let refused = match text.parse::<Duration>() {
            Ok(duration) => return Ok(duration.time().into()),
            Err(refused) => refused,
        };
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let count = text[..split].parse::<u64>().ok();
        let unit = format!("1{}", text[split..].trim_start()).parse::<Duration>().ok();
        let ps = count.zip(unit).map(|(count, unit)| u128::from(count) * u128::from(unit.time().ps()));
        ps.map(Moment).ok_or(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn a_moment_may_be_beyond_the_clock() {
        const DAY: u128 = 86_400_000_000_000_000;
        let ps = |text: &str| text.parse::<Moment>().map(Moment::ps);
        assert_eq!(ps("10ms"), Ok(10_000_000_000));
        assert_eq!(ps("1.5h"), Ok(DAY / 16));
        assert_eq!(ps("300d"), Ok(300 * DAY));
        assert_eq!(ps("86400000 s"), Ok(1000 * DAY));
        for bad in ["", "d", "300", "300x", "-300d", "1e3d"] {
            assert!(ps(bad).is_err(), "{bad}");
        }
    }
}
