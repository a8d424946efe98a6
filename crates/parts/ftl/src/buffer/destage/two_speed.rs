//! Foreground and background write-back, as in FastDrain (section 3.2).

use super::{Background, Destage, DestageContext, Fill, Pace};
use config::units::{Bytes, Duration, Share};
use engine::{Snapshot, Time};
use proto::BufferState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Time after which announced data that has not come is given up: by then the flusher runs again (Linux's
/// `dirty_writeback_centisecs`), and announces the rest.
pub const EXPIRES: Time = Time::from_ms(5000);

/// Parameters of `two_speed`. The paper gives the watermarks only; the rest is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Maximum amount of background write-back data in flight, except that one page on each plane of one die is always
    /// allowed.
    pub at_once: Bytes,
    /// Window over which a die may have worked for at most `busy` to take background write-backs; 0: the die must be
    /// idle, with an empty queue.
    pub window: Duration,
    /// Maximum share of the window that a die may have worked.
    pub busy: Share,
}

impl Default for Params {
    fn default() -> Params {
        Params { at_once: Bytes::from_kib(2048), window: Duration::new(Time::ZERO), busy: Share::percent(10) }
    }
}

/// FastDrain's policy.
#[derive(Clone, Debug)]
pub struct TwoSpeed {
    context: DestageContext,
    background: Background,
    announced: Announced,
    /// True from an expected use above the high watermark until no more than the low one is dirty.
    foreground: bool,
    /// True from a use above the high watermark until it has fallen to the low one.
    full: bool,
}

impl TwoSpeed {
    /// Builds the policy.
    pub fn new(params: &Params, context: &DestageContext) -> TwoSpeed {
        TwoSpeed {
            context: *context,
            background: Background {
                at_once: params.at_once.get(),
                window: params.window.time(),
                busy_ppm: (params.busy.get() * 1_000_000.0).round() as u32,
            },
            announced: Announced::new(EXPIRES),
            foreground: false,
            full: false,
        }
    }
}

impl Destage for TwoSpeed {
    fn pace(&mut self, now: Time, fill: &Fill) -> Option<Pace> {
        let DestageContext { high, low, unit_sectors } = self.context;
        let used = fill.used();
        let to_come = u64::from(used) + self.announced.sectors(now).div_ceil(u64::from(unit_sectors));
        self.full = used > high || (self.full && used > low);
        self.foreground |= fill.pressed || to_come > u64::from(high);
        self.foreground &= fill.dirty > low;
        if self.foreground || (fill.pressed && fill.flushing == 0) {
            Some(Pace::Foreground)
        } else {
            (fill.dirty > 0).then_some(Pace::Background)
        }
    }
    fn announced(&mut self, now: Time, sectors: u64) {
        self.announced.add(now, sectors);
    }
    fn came(&mut self, sectors: u32) {
        self.announced.came(sectors);
    }
    fn background(&self) -> Option<Background> {
        Some(self.background)
    }
    fn state(&self) -> BufferState {
        if self.full { BufferState::Full } else { BufferState::Room }
    }
    fn save(&self, out: &mut Vec<u8>) {
        let TwoSpeed { context: _, background: _, announced, foreground, full } = self;
        announced.save(out);
        foreground.save(out);
        full.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.announced.load(input)?;
        self.foreground = bool::load(input)?;
        self.full = bool::load(input)?;
        Some(())
    }
}

// Data that the host has announced and not sent yet.

/// Announcements, oldest first. Incoming data counts against the oldest; data that has not come in time is given up.
#[derive(Clone, Debug)]
pub(super) struct Announced {
    expires: Time,
    /// Expiry time of each announcement, and its remaining sectors.
    open: VecDeque<(Time, u64)>,
    /// Sum of the remaining sectors.
    sectors: u64,
}

impl Announced {
    pub(super) fn new(expires: Time) -> Announced {
        Announced { expires, open: VecDeque::new(), sectors: 0 }
    }

    pub(super) fn add(&mut self, now: Time, sectors: u64) {
        self.open.push_back((now + self.expires, sectors));
        self.sectors += sectors;
    }

    pub(super) fn came(&mut self, sectors: u32) {
        let mut left = u64::from(sectors).min(self.sectors);
        self.sectors -= left;
        while let Some((_, open)) = self.open.front_mut().filter(|_| left > 0) {
            let taken = left.min(*open);
            *open -= taken;
            left -= taken;
            if *open == 0 {
                self.open.pop_front();
            }
        }
    }

    /// Returns the number of sectors still expected.
    pub(super) fn sectors(&mut self, now: Time) -> u64 {
        while let Some((_, sectors)) = self.open.front().filter(|(end, _)| *end <= now) {
            self.sectors -= sectors;
            self.open.pop_front();
        }
        self.sectors
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        self.open.iter().copied().collect::<Vec<(Time, u64)>>().save(out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let open: Vec<(Time, u64)> = Vec::load(input)?;
        self.sectors = open.iter().try_fold(0u64, |sum, (_, sectors)| sum.checked_add(*sectors))?;
        self.open = open.into();
        Some(())
    }
}
