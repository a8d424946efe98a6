//! Destaging: when dirty data leaves the buffer for flash, and how urgently.

pub mod two_speed;
pub mod watermarks;
pub mod when_full;

use engine::Time;
use proto::BufferState;

config::policies! {
    /// When dirty data leaves the buffer, and where to.
    pub family DestagePolicy: dyn Destage, context DestageContext {
        /// From `high` on, until as little as `low` is dirty. What finds no room waits until all that is under way has arrived
        /// before more is sent.
        default watermarks => |_: &DestageContext| watermarks::Watermarks,
        /// Nothing before more than `high` is not on flash, or something finds no room; then until as little as `low` has not
        /// been sent.
        ///
        /// The cache of SimpleSSD and Amber (Gouk et al., MICRO 2018), which evicts when a write finds no line, with
        /// `high` at 100 % and `low` one page a plane below it. What is under way counts, and holds up nothing.
        when_full => |c: &DestageContext| when_full::WhenFull::new(c),
        /// In the foreground to all dies once the use to come is above `high`, until as little as `low` has not been sent; below
        /// `high` in the background, to dies that have nothing to do.
        ///
        /// FastDrain (Zhang et al., section 3.2). The use to come is what is not on flash and what the host has announced and
        /// not sent yet. The drive says `Full` from a use above `high` until it has fallen to `low`. Dies are chosen at
        /// eviction: the allocation must leave all of them free, and a reclaim unit lie within a die.
        two_speed(two_speed::Params) => two_speed::TwoSpeed::new,
    }
}

/// What a policy is built from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DestageContext {
    /// The watermarks in lines.
    pub high: u32,
    /// At most `high`.
    pub low: u32,
    /// 512-byte sectors a line.
    pub unit_sectors: u32,
}

/// How urgently data leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Pace {
    /// As the device's allocation has it: a drive that knows one way only.
    #[default]
    Even,
    /// To all dies at once, because room is wanted.
    Foreground,
    /// To dies that have nothing to do.
    Background,
}

impl Pace {
    /// How many there are.
    pub const COUNT: usize = 3;
    const ALL: [Pace; Pace::COUNT] = [Pace::Even, Pace::Foreground, Pace::Background];

    /// The `n`th of [`Pace::COUNT`].
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

/// What a policy sees of a buffer. Counts are lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fill {
    /// Dirty, not being flushed, and not to stay.
    pub dirty: u32,
    /// Being flushed.
    pub flushing: u32,
    /// Something finds no room, or is held back because too much is on its way.
    pub pressed: bool,
}

impl Fill {
    /// Lines that are not on flash.
    fn used(&self) -> u32 {
        self.dirty + self.flushing
    }
}

/// Which dies background eviction may go to, and with how much at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Bytes on their way at once.
    pub at_once: u64,
    /// A die may be taken that worked for no more than `busy_ppm` of the last window; zero: that has nothing to do now.
    pub window: Time,
    /// Parts per million.
    pub busy_ppm: u32,
}

/// Decides when dirty data leaves a buffer that keeps written data.
///
/// Contract: asked again without a change of the fill, it answers the same. It answers something whenever data is dirty, somebody is
/// pressed and nothing is being flushed. A policy whose answer may be [`Pace::Background`] has a [`Destage::background`]. What `load`
/// has read back decides like what `save` wrote.
pub trait Destage {
    /// Whether the buffer's own rule decides.
    fn is_off(&self) -> bool {
        false
    }
    /// How a line is to leave now, if one is.
    fn pace(&mut self, now: Time, fill: &Fill) -> Option<Pace>;
    /// The host announces that it will write so many sectors.
    fn announced(&mut self, _now: Time, _sectors: u64) {}
    /// The buffer has taken so many sectors of the host.
    fn came(&mut self, _sectors: u32) {}
    /// How background eviction chooses dies, if there is any.
    fn background(&self) -> Option<Background> {
        None
    }
    /// What the drive tells its host.
    fn state(&self) -> BufferState {
        BufferState::Unknown
    }
    /// Appends the policy's state, parameters apart.
    fn save(&self, out: &mut Vec<u8>);
    /// Replaces the state by one that a policy with the same parameters saved; `None` if it is cut short or malformed.
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
        // Goes on until 20 are left that nothing was done about, and no further.
        assert_eq!(policy.pace(now, &fill(21, 9)), Some(Pace::Foreground));
        assert_eq!(policy.pace(now, &fill(20, 10)), Some(Pace::Background));
        // 40 of the announced lines come: 20 + 40 here, 10 and a bit to come, no more than 80 although it is above 51.
        policy.came(40 * 8);
        assert_eq!(policy.pace(now, &fill(60, 0)), Some(Pace::Background));
        // Ten more come, and a sector is left, which takes a line: 79 here are not too much with it, 80 are.
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
        // Four lines leave, and what finds no room does not wait for them to arrive before it asks for more.
        assert_eq!(policy.pace(Time::ZERO, &full(100, 0)), Some(Pace::Even));
        assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
        assert_eq!(policy.pace(Time::ZERO, &full(96, 4)), None);
        assert_eq!(policy.pace(Time::ZERO, &full(97, 3)), Some(Pace::Even));
        // From 50 % on: what is under way counts as used.
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
