//! Address spaces: which frame is behind a page, and whether the page is resident.

/// One application's pages.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Frame of page zero; the others follow.
    first: u64,
    pages: u64,
    /// Bit by bit, which pages are resident.
    resident: Vec<u64>,
}

/// The address spaces of all applications: each takes frames one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    spaces: Vec<Space>,
    frames: u64,
}

impl Spaces {
    /// Gives an application its pages.
    pub(super) fn add(&mut self, app: u8, pages: u64, resident: bool) {
        let app = usize::from(app);
        if self.spaces.len() <= app {
            self.spaces.resize(app + 1, Space::default());
        }
        assert_eq!(self.spaces[app].pages, 0, "application {app} has an address space already");
        let words = if resident { u64::MAX } else { 0 };
        let resident = vec![words; pages.div_ceil(64) as usize];
        self.spaces[app] = Space { first: self.frames, pages, resident };
        self.frames += pages;
    }

    /// Pages of every application, by number.
    pub(super) fn pages(&self) -> Vec<u64> {
        self.spaces.iter().map(|space| space.pages).collect()
    }

    /// Frames that all have.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    #[inline]
    fn space(&self, app: u8, page: u64) -> &Space {
        let space = &self.spaces[usize::from(app)];
        assert!(page < space.pages, "application {app} has {} pages, none of number {page}", space.pages);
        space
    }

    /// The frame behind a page.
    #[inline]
    pub(super) fn frame(&self, app: u8, page: u64) -> u64 {
        self.space(app, page).first + page
    }

    /// Whether a page is resident.
    #[inline]
    pub(super) fn resident(&self, app: u8, page: u64) -> bool {
        self.space(app, page).resident[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Says whether a page is resident.
    pub(super) fn set_resident(&mut self, app: u8, page: u64, resident: bool) {
        self.space(app, page);
        let word = &mut self.spaces[usize::from(app)].resident[(page / 64) as usize];
        let bit = 1 << (page % 64);
        *word = if resident { *word | bit } else { *word & !bit };
    }
}
