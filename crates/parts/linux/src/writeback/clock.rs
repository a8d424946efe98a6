//! The kernel's clock: ticks, and when a timer fires that counts them.

use engine::Time;

/// A point in time or a span, in ticks.
pub(super) type Jiffies = u64;

/// A wheel of the timers has 64 slots; each is eight times as wide as those of the wheel below.
const WHEEL_SHIFT: u32 = 3;
const WHEELS: u32 = 9;

/// Ticks of the kernel's clock, counted as Linux does: from five minutes before a 32-bit counter wraps (`INITIAL_JIFFIES`), so that
/// zero can mean "never".
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    hz: u64,
    tick: u64,
}

impl Clock {
    pub(super) fn new(hz: u32) -> Clock {
        Clock { hz: hz.into(), tick: Time::period(hz.into()).ps() }
    }

    pub(super) fn hz(&self) -> u64 {
        self.hz
    }

    fn initial(&self) -> Jiffies {
        (1 << 32) - 300 * self.hz
    }

    /// Ticks that have passed.
    #[inline]
    pub(super) fn jiffies(&self, now: Time) -> Jiffies {
        self.initial() + now.ps() / self.tick
    }

    /// When a tick comes.
    pub(super) fn time(&self, jiffies: Jiffies) -> Time {
        Time::from_ps((jiffies - self.initial()) * self.tick)
    }

    /// A span in ticks, rounded up (`msecs_to_jiffies`).
    pub(super) fn span(&self, span: Time) -> Jiffies {
        span.ps().div_ceil(self.tick)
    }

    /// The tick at which a timer fires that is set now for `delay` ticks: never early, and the later the more it is
    /// (`kernel/time/timer.c`, `calc_wheel_index`, `calc_index`).
    pub(super) fn expiry(&self, now: Jiffies, delay: Jiffies) -> Jiffies {
        let level = (1..WHEELS).find(|level| delay < 63 << ((level - 1) * WHEEL_SHIFT)).unwrap_or(WHEELS) - 1;
        let shift = level * WHEEL_SHIFT;
        (((now + delay) >> shift) + 1) << shift
    }
}

/// `BANDWIDTH_INTERVAL` and `MAX_PAUSE`: 200 ms.
pub(super) fn interval(hz: u64) -> Jiffies {
    hz / 5
}
