//! Pages whose translation is on its way, and the lines that wait for each.

use super::load_store::Line;
use kernel::Slab;

/// End of a list.
const NONE: u32 = u32::MAX;

struct Page {
    app: u8,
    page: u64,
    first: u32,
    last: u32,
}

/// The pages that are missing in a multiprocessor's TLB.
pub(super) struct Translating {
    pages: Vec<Page>,
    lines: Slab<(Line, u32)>,
    most: usize,
}

/// The lines that have waited for a page.
pub(super) struct Released {
    first: u32,
}

impl Translating {
    /// At most `most` pages at once.
    pub(super) fn new(most: usize) -> Translating {
        Translating { pages: Vec::with_capacity(most), lines: Slab::default(), most }
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
        let waiting = self.lines.insert((line, NONE));
        let known = self.find(app, page);
        match known {
            Some(at) => {
                let page = &mut self.pages[at];
                self.lines[page.last].1 = waiting;
                page.last = waiting;
            }
            None => self.pages.push(Page { app, page, first: waiting, last: waiting }),
        }
        known.is_none()
    }

    /// A page's translation has arrived. [`Translating::next_line`] gives who waited.
    pub(super) fn release(&mut self, app: u8, page: u64) -> Option<Released> {
        let at = self.find(app, page)?;
        Some(Released { first: self.pages.swap_remove(at).first })
    }

    /// Takes the next line of a page that has arrived, in the order in which they came.
    pub(super) fn next_line(&mut self, released: &mut Released) -> Option<Line> {
        if released.first == NONE {
            return None;
        }
        let (line, next) = self.lines[released.first];
        self.lines.remove(released.first);
        released.first = next;
        Some(line)
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
