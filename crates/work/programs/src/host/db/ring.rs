//! Lists of frames in which a frame is found, taken out and put beside another in constant time.

/// No frame.
pub(super) const NONE: u32 = u32::MAX;

/// A doubly linked list over frames `0..n`, each in it at most once.
pub(super) struct Ring {
    /// Neighbours of each frame: towards the first, towards the last.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
    len: u32,
}

impl Ring {
    pub(super) fn new(n: u32) -> Ring {
        Ring { links: vec![(NONE, NONE); n as usize], first: NONE, last: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// The neighbour towards the first.
    pub(super) fn before(&self, frame: u32) -> Option<u32> {
        let before = self.links[frame as usize].0;
        (before != NONE).then_some(before)
    }

    /// The neighbour towards the last.
    pub(super) fn after(&self, frame: u32) -> Option<u32> {
        let after = self.links[frame as usize].1;
        (after != NONE).then_some(after)
    }

    /// Puts a frame in front of another one; behind all if that is none.
    pub(super) fn insert_before(&mut self, place: Option<u32>, frame: u32) {
        let (before, after) = match place {
            Some(place) => (self.links[place as usize].0, place),
            None => (self.last, NONE),
        };
        self.links[frame as usize] = (before, after);
        match before {
            NONE => self.first = frame,
            _ => self.links[before as usize].1 = frame,
        }
        match after {
            NONE => self.last = frame,
            _ => self.links[after as usize].0 = frame,
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, frame: u32) {
        let (before, after) = self.links[frame as usize];
        match before {
            NONE => self.first = after,
            _ => self.links[before as usize].1 = after,
        }
        match after {
            NONE => self.last = before,
            _ => self.links[after as usize].0 = before,
        }
        self.len -= 1;
    }
}
