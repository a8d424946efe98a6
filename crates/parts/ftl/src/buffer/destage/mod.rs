//! Destaging: when dirty data is written back from the buffer to flash, and with what urgency.

pub mod two_speed;
pub mod watermarks;
pub mod when_full;

use engine::Time;
use proto::BufferState;

config::policies! {
    /// When dirty data is written back, and to which dies.
    pub family DestagePolicy: dyn Destage, context DestageContext {
        /// Starts above `high`, and stops once no more than `low` is dirty. A request without room waits until all
        /// write-backs in flight have completed before more are started.
        default watermarks => |_: &DestageContext| watermarks::Watermarks,
        /// Starts only when more than `high` is not on flash, or a request finds no room. Stops once no more than `low`
        /// has not been sent.
        ///
        /// The cache of SimpleSSD and Amber (Gouk et al., MICRO 2018), which evicts when a write finds no line, with
        /// `high` at 100 % and `low` one page per plane below it. Write-backs in flight count as used, and do not delay
        /// further ones.
        when_full => |c: &DestageContext| when_full::WhenFull::new(c),
        /// Foreground write-back to all dies once the expected use exceeds `high`, until no more than `low` has not
        /// been sent; below `high` background write-back, to idle dies.
        ///
        /// FastDrain (Zhang et al., section 3.2). The expected use is the data not on flash, plus data that the host
        /// has announced and not sent yet. The drive reports `Full` from a use above `high` until it has fallen to
        /// `low`. Dies are chosen at eviction: the allocation must leave all of them free, and a reclaim unit must lie
        /// within a die.
        two_speed(two_speed::Params) => two_speed::TwoSpeed::new,
    }
}

/// Context from which a policy is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DestageContext {
    /// High watermark in lines.
    pub high: u32,
    /// Low watermark in lines, at most `high`.
    pub low: u32,
    /// Number of 512-byte sectors per line.
    pub unit_sectors: u32,
}

/// Urgency of a write-back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Pace {
    /// Urgency of a drive with a single one: the device's allocation decides.
    #[default]
    Even,
    /// To all dies at once, because room is needed.
    Foreground,
    /// To idle dies.
    Background,
}

impl Pace {
    /// Number of paces.
    pub const COUNT: usize = 3;
    const ALL: [Pace; Pace::COUNT] = [Pace::Even, Pace::Foreground, Pace::Background];

    /// Returns the `n`th of [`Pace::COUNT`].
    pub fn nth(n: usize) -> Pace {
        Pace::ALL[n]
    }
}

impl engine::Snapshot for Pace {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Pace> {
        Pace::ALL.get(usize::from(u8::load(input)?)).copied()
    }
}

/// View of a buffer for a policy. Counts are in lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fill {
    /// Lines that are dirty, not being flushed, and not kept.
    pub dirty: u32,
    /// Being flushed.
    pub flushing: u32,
    /// True if a request finds no room, or is held back because too much is in flight.
    pub pressed: bool,
}

impl Fill {
    /// Returns the number of lines that are not on flash.
    fn used(&self) -> u32 {
        self.dirty + self.flushing
    }
}

/// Limits of background write-back: the dies that it may use, and the amount in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Maximum bytes in flight.
    pub at_once: u64,
    /// Window over which a die's busy time is limited by `busy_ppm`; zero: the die must be idle now.
    pub window: Time,
    /// Maximum busy share of the window, in parts per million.
    pub busy_ppm: u32,
}

/// Decides when dirty data is written back from a buffer that keeps written data.
///
/// Contract: asked again without a change of the fill, the answer is the same. The answer is not `None` whenever data
/// is dirty, a request is pressed and nothing is being flushed. A policy whose answer may be [`Pace::Background`] has a
/// [`Destage::background`]. After `load`, the policy decides as it would have at `save`.
pub trait Destage {
    /// Returns whether the buffer's own rule decides.
    fn is_off(&self) -> bool {
        false
    }
    /// Returns the pace at which a line is to be written back now, if any.
    fn pace(&mut self, now: Time, fill: &Fill) -> Option<Pace>;
    /// Handles the host's announcement of a write of `sectors`.
    fn announced(&mut self, _now: Time, _sectors: u64) {}
    /// Handles host sectors that the buffer has taken.
    fn came(&mut self, _sectors: u32) {}
    /// Returns the limits of background write-back, if it exists.
    fn background(&self) -> Option<Background> {
        None
    }
    /// Returns the state that the drive reports to its host.
    fn state(&self) -> BufferState {
        BufferState::Unknown
    }
    /// Appends the policy's state, without parameters.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores the state that a policy with the same parameters saved; `None` if it is truncated or malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Bytes, Duration, Share};
    use engine::Rng;

    /// A hundred lines of eight sectors, watermarks of FastDrain's Table I.
    const CONTEXT: DestageContext = DestageContext { high: 80, low: 20, unit_sectors: 8 };

    fn two_speed() -> Box<dyn Destage> {
        DestagePolicy::two_speed(two_speed::Params {
            at_once: Bytes::from_kib(1024),
            window: Duration::new(Time::ZERO),
            busy: Share::percent(10),
        })
        .build(&CONTEXT)
    }

    fn fill(dirty: u32, flushing: u32) -> Fill {
        Fill { dirty, flushing, pressed: false }
    }

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<DestagePolicy>().expect("the list is whole");
    }

    #[test]
    fn use_to_come_is_what_is_here_and_what_is_announced_and_has_not_come() {
        let mut policy = two_speed();
        let now = Time::from_ms(1);
        assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Background));
        // 30 here and 50 to come are 80, which is not above the watermark; 51 are.
        policy.announced(now, 50 * 8);
        assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Background));
        policy.announced(now, 1);
        assert_eq!(policy.pace(now, &fill(30, 0)), Some(Pace::Foreground));
        // Continues until 20 are left that have not been sent, and no further.
        assert_eq!(policy.pace(now, &fill(21, 9)), Some(Pace::Foreground));
        assert_eq!(policy.pace(now, &fill(20, 10)), Some(Pace::Background));
        // 40 of the announced lines come: 20 + 40 here, 10 and a fraction to come, at most 80 although it is above 51.
        policy.came(40 * 8);
        assert_eq!(policy.pace(now, &fill(60, 0)), Some(Pace::Background));
        // Ten more come, and a sector is left, which takes a line: 79 here and that line are not above the limit, 80
        // are.
        policy.came(10 * 8);
        assert_eq!(policy.pace(now, &fill(79, 0)), Some(Pace::Background));
        assert_eq!(policy.pace(now, &fill(80, 0)), Some(Pace::Foreground));
    }

    #[test]
    fn what_was_announced_and_does_not_come_is_forgotten() {
        let mut policy = two_speed();
        let ms = Time::from_ms;
        assert_eq!(two_speed::EXPIRES, ms(5000));
        policy.announced(ms(1), 100 * 8);
        policy.announced(ms(5), 8);
        assert_eq!(policy.pace(ms(5000), &fill(21, 0)), Some(Pace::Foreground));
        assert_eq!(policy.pace(ms(5000), &fill(0, 21)), None);
        // The first has ended, and the second with one line has not: 79 and 1 are 80.
        assert_eq!(policy.pace(ms(5001), &fill(79, 0)), Some(Pace::Background));
        assert_eq!(policy.pace(ms(5004), &fill(80, 0)), Some(Pace::Foreground));
        assert_eq!(policy.pace(ms(5004), &fill(0, 80)), None);
        assert_eq!(policy.pace(ms(5005), &fill(80, 0)), Some(Pace::Background));
    }

    #[test]
    fn full_is_told_from_above_high_until_low() {
        let mut policy = two_speed();
        let mut state = |dirty, flushing| {
            policy.pace(Time::ZERO, &fill(dirty, flushing));
            policy.state()
        };
        assert_eq!(state(80, 0), BufferState::Room);
        assert_eq!(state(20, 61), BufferState::Full);
        assert_eq!(state(20, 1), BufferState::Full);
        assert_eq!(state(20, 0), BufferState::Room);
        assert_eq!(state(79, 1), BufferState::Room);
        assert_eq!(state(81, 0), BufferState::Full);
    }

    #[test]
    fn when_full_sends_nothing_before_there_is_no_room() {
        let mut policy =
            DestagePolicy::when_full.build(&DestageContext { high: 100, low: 96, unit_sectors: 8 });
        assert_eq!(policy.pace(Time::ZERO, &fill(100, 0)), None);
        let full = |dirty, flushing| Fill { dirty, flushing, pressed: true };
        // Four lines are sent, and the request without room does not wait for them to complete before more are sent.
        assert_eq!(policy.pace(Time::ZERO, &full(100, 0)), Some(Pace::Even));
        assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
        assert_eq!(policy.pace(Time::ZERO, &full(96, 4)), None);
        assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
        // From 50 % on: write-backs in flight count as used.
        let mut half = DestagePolicy::when_full.build(&DestageContext { high: 50, low: 50, unit_sectors: 8 });
        assert_eq!(half.pace(Time::ZERO, &fill(50, 0)), None);
        assert_eq!(half.pace(Time::ZERO, &fill(51, 0)), Some(Pace::Even));
        assert_eq!(half.pace(Time::ZERO, &fill(50, 1)), None);
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        for family in DestagePolicy::all_defaults() {
            let mut rng = Rng::stream(1, "test");
            let mut policy = family.build(&CONTEXT);
            for step in 0..2_000u64 {
                let now = Time::from_ms(step * 700);
                match rng.below(4) {
                    0 => policy.announced(now, rng.below(300)),
                    1 => policy.came(rng.below(200) as u32),
                    _ => {}
                }
                let dirty = rng.below(101) as u32;
                let fill = Fill {
                    dirty,
                    flushing: rng.below(101 - u64::from(dirty)) as u32,
                    pressed: rng.below(8) == 0,
                };
                let pace = policy.pace(now, &fill);
                assert_eq!(policy.pace(now, &fill), pace, "{}: asking changes nothing", family.name());
                let must = fill.pressed && fill.dirty > 0 && fill.flushing == 0 && !policy.is_off();
                assert!(!must || pace.is_some(), "{}: nothing would ever leave", family.name());
                assert!(pace != Some(Pace::Background) || policy.background().is_some());
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&CONTEXT);
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                assert_eq!(
                    (copy.pace(now, &fill), copy.state()),
                    (pace, policy.state()),
                    "{}",
                    family.name()
                );
                policy = copy;
            }
        }
    }
}
