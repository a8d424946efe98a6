//! Doubly linked lists whose links lie in the records that they link.

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// The neighbours of a record in the list that it is on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    /// Towards the head.
    newer: u32,
    /// Towards the tail.
    older: u32,
}

impl Links {
    /// On no list.
    pub(super) const NONE: Links = Links { newer: NONE, older: NONE };
}

/// A table of records with links.
pub(super) trait Linked {
    fn links(&self, at: u32) -> Links;
    fn links_mut(&mut self, at: u32) -> &mut Links;
}

/// A list; the kernel's words are used: what comes is put at the head, what leaves is taken from the tail. Every operation is O(1).
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

    /// The record that came first.
    #[inline]
    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// A record that is on no list comes to the head.
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

    /// A record that is on no list comes to the tail.
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

    /// A record of this list leaves it.
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

    /// Takes records off the tail, as many as there is room for, the tail first; how many.
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

    /// The records, head first.
    pub(super) fn iter<T: Linked>(&self, table: &T) -> impl Iterator<Item = u32> {
        let mut next = self.head;
        std::iter::from_fn(move || {
            let at = (next != NONE).then_some(next)?;
            next = table.links(at).older;
            Some(at)
        })
    }
}
