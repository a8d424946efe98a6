//! Looking for pages in order: the next one with a mark, runs of them, the next and the last one that is missing.

use super::{Index, Tag, narrow, offset_of, word};
use crate::Inode;
use crate::pagecache::list::NONE;

/// Pages of a file that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first one.
    pub first: u64,
    /// How many.
    pub pages: u64,
}

impl Run {
    /// The page behind the last one.
    pub fn end(&self) -> u64 {
        self.first + self.pages
    }
}

impl Index {
    /// The first page from `from` on whose bit of a word is set.
    pub(super) fn next(&self, inode: Inode, from: u64, which: usize) -> Option<u64> {
        if from > u64::from(u32::MAX) {
            return None;
        }
        let from = narrow(from);
        if let Some(leaf) = self.walks.get(inode, from) {
            let node = &self.nodes[leaf];
            let word = node.words[which] >> offset_of(from);
            if word != 0 {
                return Some(u64::from(from) + u64::from(word.trailing_zeros()));
            }
        }
        self.next_from_root(inode, from, which)
    }

    fn next_from_root(&self, inode: Inode, from: u32, which: usize) -> Option<u64> {
        let mut at = self.tree(inode)?.root;
        if u64::from(from) >> self.nodes[at].shift >= 64 {
            return None;
        }
        let mut page = from;
        loop {
            let node = &self.nodes[at];
            let offset = page >> node.shift & 63;
            let word = node.words[which] >> offset << offset;
            if word == 0 {
                (at, page) = self.behind(at)?;
                continue;
            }
            let next = word.trailing_zeros();
            if next != offset {
                page = node.first + (next << node.shift);
            }
            if node.shift == 0 {
                return Some(page.into());
            }
            at = node.slots[next as usize];
        }
    }

    /// The nearest node above that covers pages behind this one, and the first of them.
    fn behind(&self, mut at: u32) -> Option<(u32, u32)> {
        loop {
            let node = &self.nodes[at];
            if node.parent == NONE {
                return None;
            }
            let parent = &self.nodes[node.parent];
            if node.offset < 63 {
                let page = u64::from(parent.first) + ((u64::from(node.offset) + 1) << parent.shift);
                return Some((node.parent, u32::try_from(page).ok()?));
            }
            at = node.parent;
        }
    }

    /// The first page from `from` on that has a tag.
    pub(in crate::pagecache) fn next_tagged(&self, inode: Inode, from: u64, tag: Tag) -> Option<u64> {
        self.next(inode, from, tag.word())
    }

    /// The first page from `from` on that is in memory.
    pub(in crate::pagecache) fn next_present(&self, inode: Inode, from: u64) -> Option<u64> {
        self.next(inode, from, word::PRESENT)
    }

    /// Appends the runs of pages with a tag among those from `from` on, to `to` inclusive, until they are `most` pages.
    pub(in crate::pagecache) fn tagged_runs(
        &self,
        inode: Inode,
        (from, to): (u64, u64),
        tag: Tag,
        most: u64,
        runs: &mut Vec<Run>,
    ) {
        let (mut next, mut left, begin) = (from, most, runs.len());
        while left > 0
            && let Some(page) = self.next_tagged(inode, next, tag).filter(|page| *page <= to)
        {
            let leaf = self.leaf(inode, narrow(page)).expect("it was found");
            let word = self.nodes[leaf].words[tag.word()] >> offset_of(page as u32);
            let pages = u64::from(word.trailing_ones()).min((to - page).saturating_add(1)).min(left);
            match runs[begin..].last_mut() {
                Some(run) if run.end() == page => run.pages += pages,
                _ => runs.push(Run { first: page, pages }),
            }
            (next, left) = (page + pages, left - pages);
        }
    }

    /// Pages from `from` on, to `to` inclusive, that are dirty get the tag of those to be written (`tag_pages_for_writeback`).
    pub(in crate::pagecache) fn tag_towrite(&mut self, inode: Inode, from: u64, to: u64) {
        let mut next = from;
        while let Some(page) = self.next(inode, next, word::DIRTY).filter(|page| *page <= to) {
            let leaf = self.leaf(inode, narrow(page)).expect("it was found");
            let node = &self.nodes[leaf];
            let first = u64::from(node.first);
            let high = u64::MAX >> (63 - (to - first).min(63));
            let mut dirty = node.words[word::DIRTY] & high & (u64::MAX << (page - first));
            while dirty != 0 {
                self.nodes.set(leaf, dirty.trailing_zeros(), word::TOWRITE);
                dirty &= dirty - 1;
            }
            next = first + 64;
        }
    }

    /// The page of a folio gets a tag, or loses it.
    #[inline]
    pub(in crate::pagecache) fn set_tag(&mut self, inode: Inode, page: u64, tag: Tag, on: bool) {
        let leaf = self.leaf(inode, narrow(page)).expect("a page in memory has a leaf");
        let offset = offset_of(page as u32);
        if on {
            self.nodes.set(leaf, offset, tag.word());
        } else {
            self.nodes.clear(leaf, offset, tag.word());
        }
    }

    /// Whether a page has a tag.
    pub(in crate::pagecache) fn has_tag(&self, inode: Inode, page: u64, tag: Tag) -> bool {
        let leaf = self.leaf(inode, narrow(page));
        leaf.is_some_and(|leaf| self.nodes[leaf].words[tag.word()] >> offset_of(page as u32) & 1 == 1)
    }

    /// The first page of `most` from `from` on that is missing, or the last of them if none is (`page_cache_next_miss` of 6.1, whose comment says
    /// otherwise).
    pub(in crate::pagecache) fn next_miss(&self, inode: Inode, from: u64, most: u64) -> u64 {
        let last = from + most.saturating_sub(1);
        self.next_missing(inode, from, last).unwrap_or(last)
    }

    /// The first page from `from` on, to `to` inclusive, that is missing.
    pub(in crate::pagecache) fn next_missing(&self, inode: Inode, from: u64, to: u64) -> Option<u64> {
        let mut page = from;
        while page <= to {
            let leaf = u32::try_from(page).ok().and_then(|page| self.leaf(inode, page));
            let Some(leaf) = leaf else { return Some(page) };
            let missing = !self.nodes[leaf].words[word::PRESENT] >> offset_of(page as u32);
            if missing != 0 {
                let found = page + u64::from(missing.trailing_zeros());
                return (found <= to).then_some(found);
            }
            page = (page | 63) + 1;
        }
        None
    }

    /// The last page of `most` before and with `from` that is missing, or the first of them if none is (`page_cache_prev_miss` of 6.1); -1,
    /// which is 2^64 - 1, if all pages from the beginning of the file are there.
    pub(in crate::pagecache) fn prev_miss(&self, inode: Inode, from: u64, most: u64) -> u64 {
        let first = from.saturating_sub(most.saturating_sub(1));
        let mut page = from;
        loop {
            let Some(leaf) = self.leaf(inode, narrow(page)) else { return page };
            let missing = !self.nodes[leaf].words[word::PRESENT] << (63 - offset_of(page as u32));
            let found = page.wrapping_sub(missing.leading_zeros().into());
            if missing != 0 && found >= first && found <= page {
                return found;
            }
            let begin = page & !63;
            if begin <= first {
                return if from + 1 < most { u64::MAX } else { first };
            }
            page = begin - 1;
        }
    }

    /// Appends the runs of pages that are missing among these.
    pub(in crate::pagecache) fn missing_runs(
        &self,
        inode: Inode,
        first: u64,
        pages: u64,
        runs: &mut Vec<Run>,
    ) {
        let end = first + pages;
        let mut next = first;
        while next < end
            && let Some(from) = self.next_missing(inode, next, end - 1)
        {
            let to = self.next_present(inode, from).map_or(end, |present| present.min(end));
            runs.push(Run { first: from, pages: to - from });
            next = to;
        }
    }
}
