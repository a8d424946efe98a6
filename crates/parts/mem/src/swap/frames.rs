//! Frames of the memory, and the choice of the evicted page: a clock with a bit for each frame.

use engine::Snapshot;

/// Use of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Free,
    /// Held by a page that is being read or evicted.
    Held,
    Mapped,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u64,
    used: Use,
    referenced: bool,
    dirty: bool,
}

engine::snapshot!(Frame { page, used, referenced, dirty });

impl Snapshot for Use {
    fn save(&self, out: &mut Vec<u8>) {
        (*self as u8).save(out);
    }
    fn load(input: &mut &[u8]) -> Option<Use> {
        [Use::Free, Use::Held, Use::Mapped].get(usize::from(u8::load(input)?)).copied()
    }
}

/// Frames of the memory.
#[derive(Debug)]
pub(super) struct Frames {
    frames: Vec<Frame>,
    free: Vec<u32>,
    mapped: usize,
    hand: usize,
    /// Clean frames written since the beginning; and frames that were already dirty when mapped to a new page: a late
    /// write belonged to the evicted page.
    pub(super) dirtied: u64,
    pub(super) late: u64,
}

impl Frames {
    pub(super) fn new(count: u32) -> Frames {
        let frame = Frame { page: 0, used: Use::Free, referenced: false, dirty: false };
        Frames {
            frames: vec![frame; count as usize],
            free: (0..count).rev().collect(),
            mapped: 0,
            hand: 0,
            dirtied: 0,
            late: 0,
        }
    }

    /// Appends the whole state.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Frames { frames, free, mapped, hand, dirtied, late } = self;
        frames.save(out);
        free.save(out);
        ((*mapped, *hand), (*dirtied, *late)).save(out);
    }

    /// Loads the saved state of as many frames from the front of `input`; `None` if it is malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let (frames, free) = <(Vec<Frame>, Vec<u32>)>::load(input)?;
        let ((mapped, hand), (dirtied, late)) = Snapshot::load(input)?;
        let count = |used: Use| frames.iter().filter(|frame| frame.used == used).count();
        let is_free = |at: &u32| frames.get(*at as usize).is_some_and(|frame| frame.used == Use::Free);
        let mut different = free.clone();
        different.sort_unstable();
        different.dedup();
        // Before the first fault no page is in flight.
        let agrees = frames.len() == self.frames.len()
            && hand < frames.len()
            && count(Use::Held) == 0
            && count(Use::Mapped) == mapped
            && count(Use::Free) == free.len()
            && different.len() == free.len()
            && free.iter().all(is_free)
            && frames.iter().all(|frame| frame.used == Use::Mapped || !frame.dirty)
            && dirtied < 1 << 62;
        agrees.then(|| *self = Frames { frames, free, mapped, hand, dirtied, late })
    }

    /// Mapped pages, each with its frame.
    pub(super) fn pages(&self) -> impl Iterator<Item = (u64, u32)> {
        let mapped = (0..).zip(&self.frames).filter(|(_, frame)| frame.used == Use::Mapped);
        mapped.map(|(at, frame)| (frame.page, at))
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn mapped(&self) -> usize {
        self.mapped
    }

    /// Number of frames held by pages being read or evicted.
    pub(super) fn held(&self) -> usize {
        self.frames.len() - self.free.len() - self.mapped
    }

    /// Takes a free frame, which is then held.
    pub(super) fn take(&mut self) -> Option<u32> {
        let frame = self.free.pop()?;
        self.frames[frame as usize].used = Use::Held;
        Some(frame)
    }

    /// Maps a held frame to its page. The page was requested, so it counts as referenced.
    pub(super) fn map(&mut self, frame: u32, page: u64) {
        debug_assert_eq!(self.frames[frame as usize].used, Use::Held);
        self.late += u64::from(self.frames[frame as usize].dirty);
        self.frames[frame as usize] = Frame { page, used: Use::Mapped, referenced: true, dirty: false };
        self.mapped += 1;
    }

    /// Frees a held frame.
    pub(super) fn release(&mut self, frame: u32) {
        debug_assert_eq!(self.frames[frame as usize].used, Use::Held);
        self.frames[frame as usize].used = Use::Free;
        self.frames[frame as usize].dirty = false;
        self.free.push(frame);
    }

    pub(super) fn reference(&mut self, frame: u32) {
        self.frames[frame as usize].referenced = true;
    }

    /// Notes a write to a page that is present, or about to be evicted; the frame's earlier pages do not matter.
    pub(super) fn write(&mut self, frame: u32) {
        if let Some(frame) = self.frames.get_mut(frame as usize) {
            let dirty = frame.used != Use::Free;
            self.dirtied += u64::from(dirty && !frame.dirty);
            frame.dirty |= dirty;
        }
    }

    /// Number of frames whose page differs from flash. O(frames).
    pub(super) fn dirty(&self) -> u64 {
        self.frames.iter().filter(|frame| frame.dirty).count() as u64
    }

    pub(super) fn is_dirty(&self, frame: u32) -> bool {
        self.frames[frame as usize].dirty
    }

    /// Next mapped frame not referenced since the hand passed it, which is then held, and its page; `None` if no frame
    /// is mapped.
    pub(super) fn victim(&mut self) -> Option<(u32, u64)> {
        if self.mapped == 0 {
            return None;
        }
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.frames.len();
            let frame = &mut self.frames[at];
            if frame.used != Use::Mapped {
                continue;
            }
            if !std::mem::replace(&mut frame.referenced, false) {
                frame.used = Use::Held;
                self.mapped -= 1;
                return Some((at as u32, frame.page));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Frames;

    #[test]
    fn the_clock_passes_what_was_referenced_once() {
        let mut frames = Frames::new(4);
        let taken: Vec<u32> = (0..3).map(|_| frames.take().expect("free")).collect();
        assert_eq!(taken, [0, 1, 2]);
        for frame in taken {
            frames.map(frame, 10 + u64::from(frame));
        }
        // All three have been referenced since their arrival: the hand goes round once.
        assert_eq!(frames.victim(), Some((0, 10)));
        frames.reference(1);
        assert_eq!(frames.victim(), Some((2, 12)));
        assert_eq!((frames.free(), frames.mapped(), frames.held()), (1, 1, 2));
        // The hand passed 1 on its way and cleared its bit.
        assert_eq!(frames.victim(), Some((1, 11)));
        assert_eq!(frames.victim(), None);
        frames.release(2);
        assert_eq!((frames.take(), frames.free()), (Some(2), 1));
    }

    #[test]
    fn a_write_lasts_until_another_page_comes() {
        let mut frames = Frames::new(2);
        let frame = frames.take().expect("free");
        frames.map(frame, 7);
        assert!(!frames.is_dirty(frame));
        frames.write(frame);
        frames.write(1);
        assert!(frames.is_dirty(frame) && !frames.is_dirty(1));
        assert_eq!(frames.victim(), Some((frame, 7)));
        frames.release(frame);
        assert_eq!(frames.take(), Some(frame));
        frames.map(frame, 8);
        assert!(!frames.is_dirty(frame));
        // Page tables are beyond the frames.
        frames.write(9);
    }
}
