//! Extents of a file, in the tree of `fs/ext4/extents.c`: four in the inode, 340 in a leaf block.
//!
//! Here a contiguous run of pages is one [`Extent`] of any length. On the drive it takes as many records as needed
//! (32,768 blocks each, 32,767 if unwritten), and leaves are counted by records. The tree includes the position of each
//! leaf on the drive, but not the contents of blocks.

/// Run of pages of a file that is contiguous on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First page of the file.
    pub page: u64,
    /// Number of pages.
    pub pages: u64,
    /// Position of the first page, in blocks of 4 KiB from the start of the drive.
    pub block: u64,
    /// Allocated, but reads as zeroes: its data may not be on the drive yet.
    pub unwritten: bool,
}

/// Records of a leaf block (`ext4_ext_space_block`), and of the inode (`ext4_ext_space_root`).
const LEAF: u64 = 340;
const ROOT: u64 = 4;
/// Blocks of a record (`EXT_INIT_MAX_LEN`, `EXT_UNWRITTEN_MAX_LEN`).
const WRITTEN_MOST: u64 = 1 << 15;
const UNWRITTEN_MOST: u64 = WRITTEN_MOST - 1;

impl Extent {
    fn end(&self) -> u64 {
        self.page + self.pages
    }

    /// Number of records on the drive.
    fn records(&self) -> u64 {
        self.pages.div_ceil(if self.unwritten { UNWRITTEN_MOST } else { WRITTEN_MOST })
    }

    /// Returns whether another extent continues this one (`ext4_can_extents_be_merged`).
    fn goes_on(&self, next: &Extent) -> bool {
        self.end() == next.page && self.block + self.pages == next.block && self.unwritten == next.unwritten
    }

    /// Part of the extent in a range.
    fn within(&self, from: u64, to: u64) -> Extent {
        let (begin, end) = (self.page.max(from), self.end().min(to));
        Extent { page: begin, pages: end - begin, block: self.block + (begin - self.page), ..*self }
    }
}

#[derive(Clone, Debug, Default)]
struct Leaf {
    extents: Vec<Extent>,
    records: u64,
    /// Leaf block; `None` while the inode holds the records.
    place: Option<u64>,
}

/// Change of a metadata block after a change of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Block changed.
    Changed(u64),
    /// Block no longer needed.
    Freed(u64),
}

/// Extents of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentTree {
    /// Leaves in order of pages, none of them empty; no leaves if the file has no extents.
    leaves: Vec<Leaf>,
    /// Blocks of inner nodes below the root.
    index: Vec<u64>,
    /// Leaves touched by the current change.
    touched: Option<(usize, usize)>,
    freed: Vec<u64>,
}

impl ExtentTree {
    /// First extent that ends after a page.
    pub(super) fn next(&self, page: u64) -> Option<Extent> {
        // Sequential writes ask page by page for extents after the end.
        if self.leaves.last()?.extents.last()?.end() <= page {
            return None;
        }
        let leaf = self.leaf_of(page);
        let here = self.leaves.get(leaf)?;
        let at = here.extents.partition_point(|extent| extent.end() <= page);
        here.extents.get(at).or_else(|| self.leaves.get(leaf + 1)?.extents.first()).copied()
    }

    /// Last extent that begins before a page.
    pub(super) fn previous(&self, page: u64) -> Option<Extent> {
        let leaf = self.leaves.partition_point(|leaf| leaf.extents[0].page < page).checked_sub(1)?;
        let extents = &self.leaves[leaf].extents;
        Some(extents[extents.partition_point(|extent| extent.page < page) - 1])
    }

    /// Extents in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Extent> {
        self.leaves.iter().flat_map(|leaf| &leaf.extents)
    }

    /// Number of records on the drive.
    pub(super) fn records(&self) -> u64 {
        self.leaves.iter().map(|leaf| leaf.records).sum()
    }

    /// Levels of blocks below the inode.
    pub(super) fn depth(&self) -> u32 {
        let leaf = u32::from(self.leaves.first().is_some_and(|leaf| leaf.place.is_some()));
        leaf + self.inner(self.leaves.len() as u64).1
    }

    /// Metadata blocks of the tree.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u64> {
        self.leaves.iter().filter_map(|leaf| leaf.place).chain(self.index.iter().copied())
    }

    /// Leaf block that holds a page, unless it is in the inode.
    pub(super) fn leaf_block(&self, page: u64) -> Option<u64> {
        self.leaves.get(self.leaf_of(page))?.place
    }

    /// Number of inner blocks for a number of leaves, and their levels.
    fn inner(&self, leaves: u64) -> (u64, u32) {
        let (mut blocks, mut levels, mut nodes) = (0, 0, leaves);
        while nodes > ROOT {
            nodes = nodes.div_ceil(LEAF);
            blocks += nodes;
            levels += 1;
        }
        (blocks, levels)
    }

    /// Leaf that holds a page, or the first extent after it if the leaf before ends with it.
    fn leaf_of(&self, page: u64) -> usize {
        self.leaves.partition_point(|leaf| leaf.extents[0].page <= page).saturating_sub(1)
    }

    fn touch(&mut self, leaf: usize) {
        let (first, last) = self.touched.unwrap_or((leaf, leaf));
        self.touched = Some((first.min(leaf), last.max(leaf)));
    }

    /// Maps unmapped pages.
    fn insert(&mut self, extent: Extent) {
        if self.leaves.is_empty() {
            self.leaves.push(Leaf { extents: vec![extent], records: extent.records(), place: None });
            self.touch(0);
            return;
        }
        let leaf = self.leaf_of(extent.page);
        let at = self.leaves[leaf].extents.partition_point(|other| other.page < extent.page);
        self.put(leaf, at, 0, [None, Some(extent), None]);
    }

    /// Replaces extents of a leaf by up to three new ones. The middle one is merged with its neighbours in the leaf,
    /// and a full leaf is split there (`ext4_ext_insert_extent`, `ext4_ext_split`).
    fn put(&mut self, leaf: usize, at: usize, replaced: usize, new: [Option<Extent>; 3]) {
        self.touch(leaf);
        let Leaf { extents, records, .. } = &mut self.leaves[leaf];
        let sum = |extents: &[Extent]| extents.iter().map(Extent::records).sum::<u64>();
        let mut at = at;
        *records -= sum(&extents[at..at + replaced]);
        extents.splice(at..at + replaced, new.into_iter().flatten());
        *records += new.iter().flatten().map(Extent::records).sum::<u64>();
        at += usize::from(new[0].is_some());
        if at + 1 < extents.len() && extents[at].goes_on(&extents[at + 1]) {
            let next = extents.remove(at + 1);
            *records -= next.records() + extents[at].records();
            extents[at].pages += next.pages;
            *records += extents[at].records();
        }
        if at > 0 && extents[at - 1].goes_on(&extents[at]) {
            let this = extents.remove(at);
            at -= 1;
            *records -= this.records() + extents[at].records();
            extents[at].pages += this.pages;
            *records += extents[at].records();
        }
        self.grow(leaf, at);
    }

    /// Splits a leaf with too many records, at the position of the insertion.
    fn grow(&mut self, leaf: usize, at: usize) {
        let here = &mut self.leaves[leaf];
        if here.records <= LEAF || here.extents.len() == 1 {
            return;
        }
        let extents = here.extents.split_off(at.max(1));
        let records = extents.iter().map(Extent::records).sum();
        here.records -= records;
        self.leaves.insert(leaf + 1, Leaf { extents, records, place: None });
        self.touch(leaf + 1);
    }

    /// Unmaps pages, and passes their extents to `taken`.
    fn carve(&mut self, from: u64, to: u64, mut taken: impl FnMut(Extent)) {
        let mut leaf = self.leaf_of(from);
        while leaf < self.leaves.len() && self.leaves[leaf].extents[0].page < to {
            let Leaf { extents, records, place } = &mut self.leaves[leaf];
            let first = extents.partition_point(|extent| extent.end() <= from);
            let last = extents.partition_point(|extent| extent.page < to);
            if first == last {
                leaf += 1;
                continue;
            }
            for extent in &extents[first..last] {
                *records -= extent.records();
                taken(extent.within(from, to));
            }
            let (head, tail) = (extents[first], extents[last - 1]);
            let head = (head.page < from).then(|| head.within(0, from));
            let tail = (tail.end() > to).then(|| tail.within(to, u64::MAX));
            let kept = head.into_iter().chain(tail);
            *records += kept.clone().map(|extent| extent.records()).sum::<u64>();
            extents.splice(first..last, kept);
            if extents.is_empty() {
                self.freed.extend(place.take());
                self.leaves.remove(leaf);
                // When the last leaf is freed, the one before is touched, as its parent is.
                self.touch(leaf.saturating_sub(1));
            } else {
                let split = first + 1;
                self.touch(leaf);
                self.grow(leaf, split);
                leaf += 1;
            }
        }
    }

    /// Unmaps pages, and passes their extents to `taken`.
    pub(super) fn remove(&mut self, from: u64, to: u64, taken: impl FnMut(Extent)) {
        self.carve(from, to, taken);
    }

    /// Maps pages, replacing earlier mappings.
    pub(super) fn set(&mut self, extent: Extent) {
        let leaf = self.leaf_of(extent.page);
        if let Some(Leaf { extents, .. }) = self.leaves.get(leaf) {
            let at = extents.partition_point(|other| other.end() <= extent.page);
            if let Some(old) =
                extents.get(at).filter(|old| old.page <= extent.page && extent.end() <= old.end())
            {
                let head = (old.page < extent.page).then(|| old.within(0, extent.page));
                let tail = (extent.end() < old.end()).then(|| old.within(extent.end(), u64::MAX));
                return self.put(leaf, at, 1, [head, Some(extent), tail]);
            }
        }
        self.carve(extent.page, extent.end(), |_| {});
        self.insert(extent);
    }

    /// Marks unwritten parts of a range as written; each is passed to `converted`.
    pub(super) fn convert(&mut self, from: u64, to: u64, mut converted: impl FnMut(Extent)) {
        let mut page = from;
        while let Some(extent) = self.next(page).filter(|extent| extent.page < to) {
            page = extent.end();
            if extent.unwritten {
                let part = Extent { unwritten: false, ..extent.within(from, to) };
                self.set(part);
                converted(part);
            }
        }
    }

    /// Ends a change: allocates blocks for nodes that need one, frees blocks no longer needed, and reports both.
    /// `allocate` finds a place near a block; if it finds none, the node has no block until the next change.
    pub(super) fn settle(
        &mut self,
        mut allocate: impl FnMut(u64) -> Option<u64>,
        mut change: impl FnMut(Change),
    ) {
        for place in self.freed.drain(..) {
            change(Change::Freed(place));
        }
        let Some((first, last)) = self.touched.take() else { return };
        let in_inode = match self.leaves.as_mut_slice() {
            [] => true,
            // `ext4_ext_try_to_merge_up`.
            [only] if only.records <= ROOT => {
                if let Some(place) = only.place.take() {
                    change(Change::Freed(place));
                }
                true
            }
            _ => false,
        };
        if !in_inode {
            // An inode-resident root becomes a leaf at the first split (`ext4_ext_grow_indepth`).
            let first = if self.leaves[0].place.is_none() { 0 } else { first };
            let last = last.min(self.leaves.len() - 1);
            for leaf in &mut self.leaves[first..=last] {
                if leaf.place.is_none() {
                    leaf.place = allocate(leaf.extents[0].block);
                }
                if let Some(place) = leaf.place {
                    change(Change::Changed(place));
                }
            }
        }
        let wanted = self.inner(self.leaves.len() as u64).0 as usize;
        let grows = self.index.len() < wanted;
        while self.index.len() > wanted {
            change(Change::Freed(self.index.pop().expect("the index is longer than needed")));
        }
        while self.index.len() < wanted {
            let Some(place) = allocate(self.leaves[first.min(self.leaves.len() - 1)].extents[0].block) else {
                break;
            };
            self.index.push(place);
        }
        if grows {
            self.index.iter().for_each(|place| change(Change::Changed(*place)));
        }
    }
}
