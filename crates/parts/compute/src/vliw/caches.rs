//! The caches of a core: a level for data that loads allocate in, and one behind it that stores allocate in as well.

use super::spec::CacheSpec;
use super::streams::Streams;
use config::SpecError;
use mem::cache::replace::ReplacementPolicy;
use mem::cache::tags::{Shape, Tags};
use std::ops::{AddAssign, SubAssign};

/// What caches could not serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Loads that the first level has not, and the second has.
    pub first: u64,
    /// Loads, and stores that the first level has not, that neither has, and nobody has asked for.
    pub second: u64,
    /// The same of lines that a prefetcher has asked for.
    pub ahead: u64,
    /// Lines of the second level that were changed and have gone to memory.
    pub written: u64,
}

impl AddAssign for Misses {
    fn add_assign(&mut self, other: Misses) {
        self.first += other.first;
        self.second += other.second;
        self.ahead += other.ahead;
        self.written += other.written;
    }
}

impl SubAssign for Misses {
    fn sub_assign(&mut self, other: Misses) {
        self.first -= other.first;
        self.second -= other.second;
        self.ahead -= other.ahead;
        self.written -= other.written;
    }
}

/// One level: its lines, and whether each was changed.
struct Level {
    tags: Tags<bool>,
    shift: u32,
}

impl Level {
    fn new(spec: &CacheSpec) -> Level {
        let shape = Shape { sets: spec.sets(), ways: spec.ways };
        Level { tags: Tags::new(shape, &ReplacementPolicy::lru), shift: spec.line.get().trailing_zeros() }
    }

    /// Whether it has the line of a byte, which is then used, and changed by a store.
    #[inline]
    fn hits(&mut self, byte: u64, write: bool) -> bool {
        let Some(place) = self.tags.find(byte >> self.shift) else { return false };
        self.tags.touch(place);
        *self.tags.meta_mut(place) |= write;
        true
    }

    /// Takes the line of a byte in; the first byte of a changed one that had to go.
    #[inline]
    fn take(&mut self, byte: u64, write: bool) -> Option<u64> {
        let gone = self.tags.insert(byte >> self.shift, write, |_| true)?.1?;
        gone.1.then_some(gone.0 << self.shift)
    }
}

/// Both levels, in the state that accesses have left them in. They know no time.
pub struct Caches {
    first: Level,
    second: Level,
    streams: Streams,
}

impl Caches {
    /// Empty caches.
    ///
    /// # Errors
    /// A level whose size is not that of its lines and ways.
    pub fn new(first: &CacheSpec, second: &CacheSpec) -> Result<Caches, SpecError> {
        first.check().map_err(|error| error.within("l1"))?;
        second.check().map_err(|error| error.within("l2"))?;
        Ok(Caches { first: Level::new(first), second: Level::new(second), streams: Streams::new(0) })
    }

    /// The same with a prefetcher of so many streams behind them.
    #[must_use]
    pub fn with_streams(self, most: u32) -> Caches {
        Caches { streams: Streams::new(most), ..self }
    }

    /// An access to a byte: what it misses.
    #[inline]
    pub fn access(&mut self, byte: u64, write: bool) -> Misses {
        let mut misses = Misses::default();
        if self.first.hits(byte, write) {
            return misses;
        }
        // The first level takes lines for loads alone; a store that it has not goes on to the second.
        let has = self.second.hits(byte, write);
        if !has {
            let is_ahead = self.streams.missed(byte >> self.second.shift);
            (misses.second, misses.ahead) = (u64::from(!is_ahead), u64::from(is_ahead));
            misses.written += u64::from(self.second.take(byte, write).is_some());
        }
        if !write {
            misses.first = u64::from(has);
            if let Some(gone) = self.first.take(byte, false)
                && !self.second.hits(gone, true)
            {
                misses.written += u64::from(self.second.take(gone, true).is_some());
            }
        }
        misses
    }
}
