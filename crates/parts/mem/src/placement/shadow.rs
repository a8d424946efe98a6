//! Shadow of a placement: a second account of the page whose data each frame holds.
//!
//! Every write to a page makes a version of it. Versions are in frames, and travel with the pages that exchanges read
//! and write. The shadow sees the completed commands of memories with their frames, but never the table: a command for
//! a page must find the latest version of that page. A frame without any completed command holds its initial page.
//!
//! It schedules and answers nothing. Its memory grows with the pages in use.

use super::policy::{Place, Targets};
use rustc_hash::FxHashMap;

/// Contents of a frame: a page, and its version; the first version is zero.
type Data = (u32, u32);

/// Second account of the pages.
#[derive(Debug)]
pub(super) struct Shadow {
    targets: Targets,
    /// Contents by frame number.
    frames: FxHashMap<u32, Data>,
    /// Number of writes to each page.
    latest: FxHashMap<u32, u32>,
    /// Data read and not written yet, by exchange and side.
    moving: FxHashMap<(u32, usize), Option<Data>>,
    found: Shadowed,
}

/// Results of a shadow.
#[derive(Clone, Debug, Default)]
pub struct Shadowed {
    /// Commands compared.
    pub compared: u64,
    /// Commands among these whose frame did not hold the latest version of their page.
    pub wrong: u64,
    /// Description of the first of these.
    pub first: Option<String>,
}

impl Shadow {
    /// Creates a shadow of memories whose frames have not been used.
    pub(super) fn new(targets: &Targets) -> Shadow {
        Shadow {
            targets: targets.clone(),
            frames: FxHashMap::default(),
            latest: FxHashMap::default(),
            moving: FxHashMap::default(),
            found: Shadowed::default(),
        }
    }

    /// Results so far.
    pub(super) fn found(&self) -> &Shadowed {
        &self.found
    }

    /// Checks a command for a page, completed in a frame.
    pub(super) fn done(&mut self, page: u32, place: Place, write: bool) {
        let latest = self.latest.entry(page).or_insert(0);
        let frame = self.frames.entry(self.targets.number(place)).or_insert((page, 0));
        self.found.compared += 1;
        if *frame != (page, *latest) {
            self.found.wrong += 1;
            let (held, version) = *frame;
            self.found.first.get_or_insert_with(|| {
                format!(
                    "frame {} of memory {} holds version {version} of page {held}, not version {latest} of page {page}",
                    place.frame, place.target
                )
            });
        }
        if write {
            *latest += 1;
            *frame = (page, *latest);
        }
    }

    /// Notes that an exchange has read one of its pages from a frame.
    pub(super) fn read(&mut self, exchange: u32, side: usize, place: Place) {
        let held = self.frames.get(&self.targets.number(place)).copied();
        self.moving.insert((exchange, side), held);
    }

    /// Notes that an exchange has written one of its pages to a frame.
    pub(super) fn written(&mut self, exchange: u32, side: usize, place: Place) {
        let frame = self.targets.number(place);
        match self.moving.remove(&(exchange, side)).flatten() {
            Some(data) => self.frames.insert(frame, data),
            None => self.frames.remove(&frame),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two frames, and two pages exchanged between them.
    #[test]
    fn data_that_stay_behind_are_found() {
        let targets = Targets::new([1, 1].into_iter());
        let (near, far) = (Place { target: 0, frame: 0 }, Place { target: 1, frame: 0 });
        let used = || {
            let mut shadow = Shadow::new(&targets);
            shadow.done(7, far, true);
            shadow.done(8, near, false);
            shadow.read(0, 0, far);
            shadow.read(0, 1, near);
            shadow
        };
        let mut moved = used();
        moved.written(0, 1, far);
        moved.written(0, 0, near);
        moved.done(7, near, false);
        moved.done(8, far, true);
        moved.done(8, far, false);
        assert_eq!((moved.found().compared, moved.found().wrong), (5, 0));

        let mut stayed = used();
        stayed.written(0, 0, far);
        stayed.written(0, 1, near);
        stayed.done(7, near, false);
        let first = "frame 0 of memory 0 holds version 0 of page 8, not version 1 of page 7";
        assert_eq!((stayed.found().wrong, stayed.found().first.as_deref()), (1, Some(first)));
    }
}
