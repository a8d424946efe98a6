//! Address spaces: which frame is behind a page, and whether the page is resident.

/// Which pages of an application are resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residency {
    /// All of them, always: nothing faults.
    Always,
    /// The unit knows for each page: none at first, then what has been resolved and not evicted. The frame of a page is
    /// its own.
    ByPage,
    /// The unit does not know: it asks at the end of each walk, and is told the frame.
    Asked,
}

/// What the unit knows of that.
#[derive(Clone, Debug, Default)]
enum Resident {
    #[default]
    Always,
    /// Bit by bit, which pages are.
    Pages(Vec<u64>),
    Asked,
}

/// One application's pages.
#[derive(Clone, Debug, Default)]
struct Space {
    /// Frame of page zero; the others follow.
    first: u64,
    pages: u64,
    resident: Resident,
}

/// The address spaces of all applications: each takes frames one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Spaces {
    spaces: Vec<Space>,
    frames: u64,
}

impl Spaces {
    /// Gives an application its pages.
    pub(super) fn add(&mut self, app: u8, pages: u64, residency: Residency) {
        let app = usize::from(app);
        if self.spaces.len() <= app {
            self.spaces.resize(app + 1, Space::default());
        }
        assert_eq!(self.spaces[app].pages, 0, "application {app} has an address space already");
        let resident = match residency {
            Residency::Always => Resident::Always,
            Residency::ByPage => Resident::Pages(vec![0; pages.div_ceil(64) as usize]),
            Residency::Asked => Resident::Asked,
        };
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

    /// The frame behind a page, if the unit knows that it is resident.
    #[inline]
    pub(super) fn frame(&self, app: u8, page: u64) -> Option<u64> {
        let space = self.space(app, page);
        let known = match &space.resident {
            Resident::Always => true,
            Resident::Pages(words) => words[(page / 64) as usize] >> (page % 64) & 1 == 1,
            Resident::Asked => false,
        };
        known.then(|| space.first + page)
    }

    /// The application whose own frame this is; none if the unit does not know.
    pub(super) fn owner(&self, frame: u64) -> Option<u8> {
        let has = |space: &&Space| (space.first..space.first + space.pages).contains(&frame);
        let app = self.spaces.iter().position(|space| has(&space))?;
        (!matches!(self.spaces[app].resident, Resident::Asked)).then_some(app as u8)
    }

    /// Says whether a page is resident, where the unit knows that page by page.
    pub(super) fn set_resident(&mut self, app: u8, page: u64, resident: bool) {
        self.space(app, page);
        if let Resident::Pages(words) = &mut self.spaces[usize::from(app)].resident {
            let word = &mut words[(page / 64) as usize];
            let bit = 1 << (page % 64);
            *word = if resident { *word | bit } else { *word & !bit };
        }
    }
}
