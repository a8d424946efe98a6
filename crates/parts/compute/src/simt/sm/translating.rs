//! Pages whose translation is on its way, and the lines that wait for each.

use super::line::Line;
use engine::{List, Lists};

struct Page {
    app: u8,
    page: u64,
    waiting: List,
}

/// The pages that are missing in a multiprocessor's TLB.
pub(super) struct Translating {
    pages: Vec<Page>,
    lines: Lists<Line>,
    most: usize,
}

impl Translating {
    /// At most `most` pages at once.
    pub(super) fn new(most: usize) -> Translating {
        Translating { pages: Vec::with_capacity(most), lines: Lists::default(), most }
    }

    fn find(&self, app: u8, page: u64) -> Option<usize> {
        self.pages.iter().position(|p| (p.page, p.app) == (page, app))
    }

    /// Whether a line of this page may wait: not if as many others are missing as may.
    pub(super) fn takes(&self, app: u8, page: u64) -> bool {
        self.pages.len() < self.most || self.find(app, page).is_some()
    }

    /// Lets a line wait. Whether its translation must be asked for.
    pub(super) fn wait(&mut self, app: u8, line: Line) -> bool {
        let page = line.page;
        let known = self.find(app, page);
        let at = known.unwrap_or(self.pages.len());
        if known.is_none() {
            self.pages.push(Page { app, page, waiting: List::EMPTY });
        }
        self.lines.push(&mut self.pages[at].waiting, line);
        known.is_none()
    }

    /// A page's translation has arrived. [`Translating::next_line`] gives who waited.
    pub(super) fn release(&mut self, app: u8, page: u64) -> Option<List> {
        let at = self.find(app, page)?;
        Some(self.pages.swap_remove(at).waiting)
    }

    /// Takes the next line of a page that has arrived, in the order in which they came.
    pub(super) fn next_line(&mut self, released: &mut List) -> Option<Line> {
        self.lines.pop(released)
    }

    /// Lines that wait.
    #[inline]
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Pages that are missing.
    #[inline]
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }
}
