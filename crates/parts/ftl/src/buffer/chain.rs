//! A doubly linked list of numbers, oldest to newest.

/// No node.
pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Links {
    older: u32,
    newer: u32,
}

/// An intrusive list: a node is a number, its links lie in a table. Every operation is O(1).
#[derive(Clone, Debug)]
pub(super) struct Chain {
    links: Vec<Links>,
    oldest: u32,
    newest: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { links: Vec::new(), oldest: NONE, newest: NONE }
    }
}

impl Chain {
    /// Appends a node that is not in, as the newest.
    pub(super) fn push(&mut self, node: u32) {
        if self.links.len() <= node as usize {
            self.links.resize(node as usize + 1, Links { older: NONE, newer: NONE });
        }
        self.links[node as usize] = Links { older: self.newest, newer: NONE };
        match self.newest {
            NONE => self.oldest = node,
            newest => self.links[newest as usize].newer = node,
        }
        self.newest = node;
    }

    /// Takes a node out that is in.
    pub(super) fn remove(&mut self, node: u32) {
        let Links { older, newer } = self.links[node as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
    }

    /// The first node, or [`NONE`].
    #[inline]
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// The last node, or [`NONE`].
    #[inline]
    pub(super) fn newest(&self) -> u32 {
        self.newest
    }

    /// The node behind this one, or [`NONE`].
    #[inline]
    pub(super) fn newer(&self, node: u32) -> u32 {
        self.links[node as usize].newer
    }

    /// All nodes, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let first = Some(self.oldest).filter(|n| *n != NONE);
        std::iter::successors(first, |node| Some(self.newer(*node)).filter(|n| *n != NONE))
    }
}
