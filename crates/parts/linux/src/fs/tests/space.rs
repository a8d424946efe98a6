//! Free runs against a bitmap.

use crate::fs::layout::GROUP;
use crate::fs::space::Space;
use engine::Rng;

const GROUPS: u64 = 3;

/// A bitmap of free blocks.
struct Bitmap(Vec<bool>);

impl Bitmap {
    fn is_free(&self, block: u64, blocks: u64) -> bool {
        self.0[block as usize..(block + blocks) as usize].iter().all(|free| *free)
    }

    fn set(&mut self, block: u64, blocks: u64, free: bool) {
        self.0[block as usize..(block + blocks) as usize].fill(free);
    }

    /// The smallest buddies of at least an order, the first of them: a buddy is free and its parent is not.
    fn buddy(&self, group: u64, order: u32) -> Option<u64> {
        (order..=13).find_map(|size| {
            let at = (0..GROUP >> size).map(|at| group * GROUP + (at << size));
            let parent = |block: u64| block >> (size + 1) << (size + 1);
            at.into_iter().find(|block| {
                let whole = size < 13 && self.is_free(parent(*block), 2 << size);
                self.is_free(*block, 1 << size) && !whole
            })
        })
    }

    /// Free runs of a group.
    fn runs(&self, group: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in (group * GROUP..(group + 1) * GROUP).filter(|block| self.0[*block as usize]) {
            match runs.last_mut() {
                Some((start, len)) if *start + *len == block => *len += 1,
                _ => runs.push((block, 1)),
            }
        }
        runs
    }

    fn find(&self, group: u64, wanted: u64) -> Option<(u64, u64)> {
        let groups: Vec<u64> = (group..GROUPS).chain(0..group).collect();
        if wanted.is_power_of_two() && (2..=8192).contains(&wanted) {
            let buddy = groups.iter().find_map(|group| self.buddy(*group, wanted.ilog2()));
            if let Some(block) = buddy {
                return Some((block, wanted));
            }
        }
        let runs: Vec<(u64, u64)> = groups.iter().flat_map(|group| self.runs(*group)).collect();
        if let Some((start, _)) = runs.iter().find(|(_, len)| *len >= wanted) {
            return Some((*start, wanted));
        }
        let looked_at = &runs[..runs.len().min(200)];
        let longest = looked_at.iter().map(|(_, len)| *len).max()?;
        looked_at.iter().find(|(_, len)| *len == longest).copied()
    }
}

#[test]
fn runs_are_found_as_in_a_bitmap() {
    let mut rng = Rng::stream(1, "host/fs/space");
    let mut space = Space::new(GROUPS * GROUP);
    let mut bitmap = Bitmap(vec![true; (GROUPS * GROUP) as usize]);
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for _ in 0..400 {
        let wanted = match rng.below(3) {
            0 => 1 << rng.below(14),
            1 => 1 + rng.below(300),
            _ => 1 + rng.below(12_000),
        };
        let group = rng.below(GROUPS);
        if rng.below(5) < 3 || taken.is_empty() {
            let found = space.find(group, wanted);
            assert_eq!(found, bitmap.find(group, wanted), "{wanted} from {group}");
            let Some((block, blocks)) = found else { continue };
            space.take(block, blocks);
            bitmap.set(block, blocks, false);
            // Parts of it come back, now or later.
            let part = 1 + rng.below(blocks);
            taken.extend([(block, part), (block + part, blocks - part)]);
        } else {
            let (block, blocks) = taken.swap_remove(rng.below(taken.len() as u64) as usize);
            if blocks > 0 {
                space.give(block, blocks);
                bitmap.set(block, blocks, true);
            }
        }
        let free = bitmap.0.iter().filter(|free| **free).count() as u64;
        assert_eq!(space.free(), free);
    }
}

#[test]
fn a_fragmented_space_gives_its_longest_run() {
    let mut space = Space::new(GROUP);
    for block in (0..GROUP).step_by(4) {
        space.take(block, if block == 400 { 1 } else { 2 });
    }
    assert_eq!(space.find(0, 100), Some((401, 3)));
    assert_eq!(space.free_from(401), 3);
    assert_eq!(space.free_from(404), 0);
}
