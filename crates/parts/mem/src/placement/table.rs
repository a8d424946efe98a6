//! A table of pages: the frame of each, and the page in each frame.

use super::targets::{Extent, Place, Targets};
use engine::{Mutant, planted};

/// No page, or no frame.
const NONE: u32 = u32::MAX;

/// Frames are given in the order of their numbers: a page gets one in the first memory that has room.
#[derive(Clone, Debug)]
pub(super) struct Table {
    targets: Targets,
    /// The number of the frame of each page.
    frames: Vec<u32>,
    /// The page in each frame, by the frame's number.
    pages: Vec<u32>,
    /// Frames that are taken.
    taken: u32,
}

impl Table {
    pub(super) fn new(targets: &Targets) -> Table {
        Table { targets: targets.clone(), frames: Vec::new(), pages: Vec::new(), taken: 0 }
    }

    /// Page tables are placed before anything else.
    pub(super) fn settle(&mut self, extent: &Extent) {
        self.frames = vec![NONE; extent.end as usize];
        self.pages = vec![NONE; extent.end as usize];
        (extent.tables..extent.end).for_each(|page| {
            self.place(page);
        });
    }

    /// Where a page is; whether it has just been given its frame.
    #[inline]
    pub(super) fn place(&mut self, page: u32) -> (Place, bool) {
        let frame = &mut self.frames[page as usize];
        let is_new = *frame == NONE;
        if is_new {
            *frame = self.taken;
            self.pages[self.taken as usize] = page;
            self.taken += 1;
        }
        (self.targets.place(*frame), is_new)
    }

    /// Where a page is, if it has a frame.
    pub(super) fn find(&self, page: u32) -> Option<Place> {
        let frame = *self.frames.get(page as usize)?;
        (frame != NONE).then(|| self.targets.place(frame))
    }

    /// The page in a frame.
    #[inline]
    pub(super) fn page_in(&self, place: Place) -> Option<u32> {
        let page = *self.pages.get(self.targets.number(place) as usize)?;
        (page != NONE).then_some(page)
    }

    /// Two pages change their frames.
    pub(super) fn exchange(&mut self, one: u32, other: u32) {
        self.frames.swap(one as usize, other as usize);
        if planted(Mutant::StaleFrame) {
            return;
        }
        for page in [one, other] {
            self.pages[self.frames[page as usize] as usize] = page;
        }
    }

    /// Frames of a memory that are ever used: as many as there are pages, those of the first memory first.
    pub(super) fn used(&self, target: u8) -> u32 {
        self.targets.among(self.pages.len() as u32, target)
    }
}
