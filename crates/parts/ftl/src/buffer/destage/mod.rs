//! Destaging: when dirty data leaves the buffer for flash, and how urgently.

mod announced;
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
mod tests;
