//! Doubly linked lists whose links lie in the records that they link.

/// Null link.
pub(super) const NONE: u32 = u32::MAX;

/// Neighbours of a record in its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// Neighbour towards the head.
    newer: u32,
    /// Neighbour towards the tail.
    older: u32,
}

impl Links {
    /// Links of a record on no list.
    pub(super) const NONE: Links = Links { newer: NONE, older: NONE };
}

/// Table of records with links.
pub(super) trait Linked {
    fn links(&self, at: u32) -> Links;
    fn links_mut(&mut self, at: u32) -> &mut Links;
}

/// Doubly linked list, in the kernel's terms: records are added at the head and taken from the tail. Every operation is
/// O(1).
#[derive(Clone, Copy, Debug)]
pub(super) struct LruList {
    head: u32,
    tail: u32,
    len: u32,
}

impl LruList {
    pub(super) const EMPTY: LruList = LruList { head: NONE, tail: NONE, len: 0 };

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.len.into()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Oldest record.
    #[inline]
    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Adds an unlisted record at the head.
    #[inline]
    pub(super) fn add(&mut self, table: &mut impl Linked, at: u32) {
        *table.links_mut(at) = Links { newer: NONE, older: self.head };
        match self.head {
            NONE => self.tail = at,
            head => table.links_mut(head).newer = at,
        }
        self.head = at;
        self.len += 1;
    }

    /// Adds an unlisted record at the tail.
    #[inline]
    pub(super) fn add_tail(&mut self, table: &mut impl Linked, at: u32) {
        *table.links_mut(at) = Links { newer: self.tail, older: NONE };
        match self.tail {
            NONE => self.head = at,
            tail => table.links_mut(tail).older = at,
        }
        self.tail = at;
        self.len += 1;
    }

    /// Removes a record from its list.
    #[inline]
    pub(super) fn remove(&mut self, table: &mut impl Linked, at: u32) {
        let Links { newer, older } = table.links(at);
        match newer {
            NONE => self.head = older,
            newer => table.links_mut(newer).older = older,
        }
        match older {
            NONE => self.tail = newer,
            older => table.links_mut(older).newer = newer,
        }
        self.len -= 1;
    }

    /// Takes records off the tail, tail first, until `batch` is full; returns their number.
    pub(super) fn take_tail(&mut self, table: &mut impl Linked, batch: &mut [u32]) -> usize {
        let mut taken = 0;
        while taken < batch.len() && self.tail != NONE {
            batch[taken] = self.tail;
            taken += 1;
            self.tail = table.links(self.tail).newer;
        }
        match self.tail {
            NONE => self.head = NONE,
            tail => table.links_mut(tail).older = NONE,
        }
        self.len -= taken as u32;
        taken
    }

    /// Records, head first.
    pub(super) fn iter<T: Linked>(&self, table: &T) -> impl Iterator<Item = u32> {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let at = (next != NONE).then_some(next)?;
            next = table.links(at).older;
            Some(at)
        })
    }
}
