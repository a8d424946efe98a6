//! The caches of a core: a level for data that loads allocate in, and one behind it that stores allocate in as well.

use super::spec::CacheSpec;
use config::SpecError;
use mem::cache::replace::ReplacementPolicy;
use mem::cache::tags::{Shape, Tags};
use std::{
    collections::VecDeque,
    ops::{AddAssign, SubAssign},
};

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

// A prefetcher of streams: of lines that were missed one behind the other, it asks memory for the next one before a core does.
//
// As a C66x's, from memory of SPRUGW0: a few streams at once, begun by a miss on the line behind another miss. *Chosen*: it follows streams upwards alone, as many beginnings are remembered as
// streams are followed, and what was used longest ago goes first. When its line arrives it does not know: whoever asks for it knows what that costs.

/// Streams that are followed, and those that a miss may begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams {
    most: usize,
    /// The line that comes next in each, the stream that was used last in front.
    next: VecDeque<u64>,
    /// The lines behind the last misses that belong to none.
    begins: VecDeque<u64>,
}

impl Streams {
    /// Follows so many streams at once; none of none.
    pub(super) fn new(most: u32) -> Streams {
        Streams { most: most as usize, ..Streams::default() }
    }

    /// A line is missed: whether it has been asked for.
    #[inline]
    pub(super) fn missed(&mut self, line: u64) -> bool {
        if self.most == 0 {
            return false;
        }
        let is_ahead = take(&mut self.next, line);
        let of = if is_ahead || take(&mut self.begins, line) { &mut self.next } else { &mut self.begins };
        of.push_front(line + 1);
        of.truncate(self.most);
        is_ahead
    }
}

/// Takes a line out of some, if it is there.
fn take(lines: &mut VecDeque<u64>, line: u64) -> bool {
    lines.iter().position(|one| *one == line).and_then(|at| lines.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(most: u32, lines: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut streams = Streams::new(most);
        lines.into_iter().filter(|line| streams.missed(*line)).collect()
    }

    /// The first two lines of a stream are missed before it is known to be one.
    #[test]
    fn the_third_line_of_a_stream_has_been_asked_for() {
        assert_eq!(ahead(1, 10..16), [12, 13, 14, 15]);
        assert_eq!(ahead(0, 10..16), [0; 0]);
        // Upwards alone, and not with a gap.
        assert_eq!(ahead(8, (10..16).rev()), [0; 0]);
        assert_eq!(ahead(8, (10..40).step_by(2)), [0; 0]);
    }

    /// Streams in turn, one more than are followed: each has been forgotten when its turn comes.
    #[test]
    fn as_many_streams_as_are_followed() {
        let in_turn =
            |streams: u64| (0..10).flat_map(move |line| (0..streams).map(move |at| 1_000 * at + line));
        assert_eq!(ahead(4, in_turn(4)).len(), 4 * 8);
        assert_eq!(ahead(4, in_turn(5)).len(), 0);
    }

    /// Others between the lines of a stream do not end it, as long as they are fewer than are remembered.
    #[test]
    fn a_stream_outlives_single_misses() {
        let lines = (0..10).flat_map(|line| [line, 1_000 + 7 * line]);
        assert_eq!(ahead(2, lines).len(), 8);
    }
}
