//! Merge, step by step: the pages of its data blocks move to fresh blocks, in every plane of the set. When all have
//! moved, the tables name the fresh blocks and the old ones are erased.

use super::mapping::Place;
use super::{Blocks, Spot, UNWRITTEN};
use nand::numbers::NONE;

/// Merge in progress.
#[derive(Clone, Debug)]
pub struct Merge {
    log: u32,
    set: u32,
    share: u32,
    /// Data blocks with pages in the log, in any plane; the others stay as they are.
    parts: Vec<Part>,
    /// Number of planes with pages left to move.
    copying: u32,
    /// Blocks to erase once all pages have moved; the number of their erases left in all planes follows.
    old: Vec<u32>,
    erasing: u32,
}

/// Data block that a merge rewrites.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Data block of the set, as numbered in the block table.
    slot: u32,
    /// Block that the data moves to.
    fresh: u32,
}

impl Merge {
    /// Iterates over the merge's blocks that are in no table: before its commit the fresh ones, after it the old ones.
    pub fn apart(&self) -> impl Iterator<Item = u32> {
        let fresh = self.old.is_empty().then(|| self.parts.iter().map(|part| part.fresh));
        fresh.into_iter().flatten().chain(self.old.iter().copied())
    }
}

/// Next action of a merge in a plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Moves a page.
    Copy {
        /// Source page.
        from: Spot,
        /// Destination page.
        to: Spot,
    },
    /// Erases a block.
    Erase(u32),
}

/// Progress of a merge after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More steps remain.
    Going,
    /// All pages have been moved: every plane can erase.
    Moved,
    /// Nothing remains to do.
    Over,
}

impl Blocks {
    /// Begins to merge a log block with those of its data blocks that have pages in it: takes a fresh block for each.
    pub fn begin(&mut self, name: u32) -> Merge {
        let log = &self.logs[name];
        let (set, share) = (log.set, log.share);
        let (data_blocks, pages) = (self.share.get() as u32, self.pages as usize);
        let mut logged = vec![false; data_blocks as usize];
        for (n, entries) in log.table.chunks_exact(pages).enumerate() {
            logged[n % data_blocks as usize] |= entries.iter().any(|page| *page != UNWRITTEN);
        }
        let slots = (0..data_blocks).filter(|nth| logged[*nth as usize]).map(|nth| share * data_blocks + nth);
        let parts: Vec<Part> = slots.map(|slot| Part { slot, fresh: self.least_erased(set) }).collect();
        let mut merge = Merge { log: name, set, share, parts, copying: 0, old: Vec::new(), erasing: 0 };
        let copies = self.planes_of(set).filter(|plane| self.copies(&merge, *plane) > 0);
        merge.copying = copies.count() as u32;
        if merge.copying == 0 {
            self.commit(&mut merge);
        }
        merge
    }

    /// Returns the number of pages of a data block that hold data.
    fn held(&self, plane: u32, slot: u32) -> u32 {
        self.occupied.get(&(plane, slot)).copied().unwrap_or(self.pages)
    }

    /// Returns the number of pages that a merge moves in a plane.
    fn copies(&self, merge: &Merge, plane: u32) -> u32 {
        merge.parts.iter().map(|part| self.held(plane, part.slot)).sum()
    }

    /// Returns step `n` of a merge in a plane; `None` while other planes still move pages, and once the old blocks are
    /// erased.
    pub fn step(&self, merge: &Merge, plane: u32, n: u32) -> Option<Step> {
        let mut index = n;
        for part in &merge.parts {
            let pages = self.held(plane, part.slot);
            if index < pages {
                let (from, _) = self.locate(Place { plane, slot: part.slot, index });
                return Some(Step::Copy { from, to: Spot { block: part.fresh, page: index } });
            }
            index -= pages;
        }
        merge.old.get(index as usize).map(|block| Step::Erase(*block))
    }

    /// Completes step `n` of a merge in a plane.
    pub fn done(&mut self, merge: &mut Merge, plane: u32, n: u32) -> Progress {
        match self.step(merge, plane, n) {
            Some(Step::Copy { .. }) => {
                self.programmed += 1;
                if n + 1 < self.copies(merge, plane) {
                    return Progress::Going;
                }
                merge.copying -= 1;
                if merge.copying > 0 {
                    return Progress::Going;
                }
                self.commit(merge);
                Progress::Moved
            }
            Some(Step::Erase(_)) => {
                self.erased += 1;
                merge.erasing -= 1;
                if merge.erasing > 0 {
                    return Progress::Going;
                }
                self.free(merge);
                Progress::Over
            }
            None => unreachable!("only existing steps complete"),
        }
    }

    /// Makes the tables name the fresh blocks. The log block stays in its place, full and without pages, until the old
    /// blocks are erased: programs that wait for the merge precede anything that comes later.
    fn commit(&mut self, merge: &mut Merge) {
        let log = &mut self.logs[merge.log];
        log.table.fill(UNWRITTEN);
        let log_block = std::mem::replace(&mut log.block, NONE);
        let tables = self.tables(merge.set);
        for part in &merge.parts {
            merge.old.push(std::mem::replace(&mut tables.data[part.slot as usize], part.fresh));
        }
        merge.old.push(log_block);
        merge.erasing = merge.old.len() as u32 * self.group.get() as u32;
    }

    /// Frees the old blocks, which are erased in every plane; the next write takes a fresh log block.
    fn free(&mut self, merge: &Merge) {
        let tables = self.tables(merge.set);
        for block in &merge.old {
            tables.erases[*block as usize] += 1;
            tables.free.insert((tables.erases[*block as usize], *block));
        }
        tables.logs[merge.share as usize] = NONE;
        self.logs.remove(merge.log);
    }
}
