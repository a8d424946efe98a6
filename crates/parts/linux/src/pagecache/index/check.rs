//! What holds of the trees at any time.

use super::{EMPTY, Index, SHADOW, Tree, word};
use crate::pagecache::list::NONE;

impl Index {
    /// Walks all trees.
    ///
    /// # Errors
    /// What does not hold, in numbers.
    pub(in crate::pagecache) fn check(&self, folios: u64) -> Result<(), String> {
        let (mut nodes, mut pages, mut shadows) = (0, 0, 0);
        let mut files: Vec<u32> = self.files.values().copied().collect();
        files.sort_unstable();
        for tree in files.iter().map(|at| &self.trees[*at as usize]) {
            if self.nodes[tree.root].parent != NONE {
                return Err(format!("the root of {:?} has a parent", tree.inode));
            }
            let (below, shadow) = self.check_below(tree, tree.root, &mut nodes)?;
            if below != tree.pages {
                return Err(format!("{below} pages of {:?}, {} counted", tree.inode, tree.pages));
            }
            pages += below;
            shadows += shadow;
        }
        let (all, kept) = (self.nodes.len(), self.shadows.len());
        if nodes != all || pages != folios || shadows != kept || kept > self.shadows_most {
            return Err(format!(
                "{nodes} nodes of {all}, {pages} pages in {folios} folios, {shadows} leaves of shadow entries of {kept}"
            ));
        }
        Ok(())
    }

    /// Pages below a node, and leaves that hold shadow entries alone.
    fn check_below(&self, tree: &Tree, at: u32, nodes: &mut usize) -> Result<(u64, u64), String> {
        let node = &self.nodes[at];
        *nodes += 1;
        let (mut pages, mut shadows, mut words) = (0, 0, [0; word::COUNT]);
        for (offset, &slot) in (0..).zip(&node.slots) {
            let bit = 1 << offset;
            if slot == EMPTY {
                continue;
            }
            words[word::USED] |= bit;
            if node.shift == 0 {
                let present = slot & SHADOW == 0;
                words[word::PRESENT] |= if present { bit } else { 0 };
                pages += u64::from(present);
                continue;
            }
            let below = &self.nodes[slot];
            if below.parent != at || u32::from(below.offset) != offset || below.shift + 6 != node.shift {
                return Err(format!("a node of {:?} is not where it says", tree.inode));
            }
            for (word, below) in words.iter_mut().zip(&below.words).skip(1) {
                *word |= if *below != 0 { bit } else { 0 };
            }
            let (more, leaves) = self.check_below(tree, slot, nodes)?;
            (pages, shadows) = (pages + more, shadows + leaves);
        }
        let known = if node.shift == 0 { 2 } else { word::COUNT };
        let tags = node.words[2] | node.words[3] | node.words[4];
        if node.words[..known] != words[..known] || node.words[0] == 0 || tags & !node.words[1] != 0 {
            return Err(format!("words of a node of {:?} are wrong", tree.inode));
        }
        Ok((pages, shadows + u64::from(node.is_shadows())))
    }
}
