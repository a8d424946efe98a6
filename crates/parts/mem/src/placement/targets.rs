//! The memories behind a placement, and the pages in front of it, as policies see them.

/// A frame of a memory: both are counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The memory.
    pub target: u8,
    /// The frame of a page there.
    pub frame: u32,
}

/// The frames of all memories, which can be counted through: those of the first memory, then those of the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Targets {
    /// The number of each memory's first frame, and, behind the last of them, the number of all frames.
    bases: Vec<u32>,
}

impl Targets {
    /// Memories of so many frames each, fewer than 2^32 together.
    pub(super) fn new(frames: impl Iterator<Item = u32>) -> Targets {
        let mut bases = vec![0];
        let mut sum = 0;
        bases.extend(frames.map(|count| {
            sum += count;
            sum
        }));
        Targets { bases }
    }

    /// Memories.
    pub fn count(&self) -> u8 {
        (self.bases.len() - 1) as u8
    }

    /// Frames of one.
    pub fn frames(&self, target: u8) -> u32 {
        let target = usize::from(target);
        self.bases[target + 1] - self.bases[target]
    }

    /// Frames of all.
    pub fn total(&self) -> u32 {
        self.bases[self.bases.len() - 1]
    }

    /// The frame of a number.
    ///
    /// # Panics
    /// If there are no more frames than that.
    #[inline]
    pub fn place(&self, number: u32) -> Place {
        let mut target = 0;
        while number >= self.bases[target + 1] {
            target += 1;
        }
        Place { target: target as u8, frame: number - self.bases[target] }
    }

    /// The number of a frame.
    #[inline]
    pub fn number(&self, place: Place) -> u32 {
        self.bases[usize::from(place.target)] + place.frame
    }

    /// Of the first so many frames, those in one memory.
    pub fn among(&self, first: u32, target: u8) -> u32 {
        first.saturating_sub(self.bases[usize::from(target)]).min(self.frames(target))
    }
}

/// The pages in front of a placement, by number: data, and the page tables behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// The first page that holds page tables.
    pub tables: u32,
    /// Pages in all.
    pub end: u32,
}
