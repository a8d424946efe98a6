//! The page groups of a program's arrays, numbered one array after another.

use super::kept::Need;
use crate::vliw::GROUP;
use crate::vliw::program::{Part, Program};
use nest::executed::Area;
use proto::offload::Stretch;

/// Of an array, the number of its first group among those of all.
pub(super) struct Places<'p> {
    arrays: &'p [Area],
    pub(super) firsts: Vec<u32>,
}

impl Places<'_> {
    pub(super) fn of(arrays: &[Area]) -> Places<'_> {
        let mut next = 0;
        let mut firsts = Vec::new();
        for array in arrays {
            firsts.push(next);
            next += array.bytes.div_ceil(GROUP) as u32;
        }
        Places { arrays, firsts }
    }

    /// Of each group, the array.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Area> {
        self.arrays.iter().flat_map(|array| (0..array.bytes.div_ceil(GROUP)).map(move |_| array))
    }

    pub(super) fn array_of(&self, group: u32) -> usize {
        self.firsts.partition_point(|first| *first <= group) - 1
    }

    /// Groups in the order of their numbers, as stretches: consecutive ones of an array are one.
    pub(super) fn stretches(&self, groups: &[u32]) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        for group in groups {
            let array = self.array_of(*group);
            let first = u64::from(group - self.firsts[array]) * GROUP;
            let bytes = GROUP.min(self.arrays[array].bytes - first);
            match found.last_mut() {
                Some(last) if usize::from(last.array) == array && last.first + last.bytes == first => {
                    last.bytes += bytes;
                }
                _ => found.push(Stretch { array: array as u16, first, bytes }),
            }
        }
        found
    }
}

/// Of all of them.
pub(super) fn bytes(stretches: &[Stretch]) -> u64 {
    stretches.iter().map(|one| one.bytes).sum()
}

/// The groups that parts need, each once, in the order of their numbers.
pub(super) fn needs_of(program: &Program, parts: &[Part], places: &Places<'_>, into: &mut Vec<Need>) {
    into.clear();
    for part in parts {
        program.touches(part, |array, groups, _, writes| {
            let first = places.firsts[array];
            into.extend(groups.map(|group| Need { group: first + group, writes }));
        });
    }
    into.sort_unstable_by_key(|need| need.group);
    into.dedup_by(|next, kept| {
        let same = next.group == kept.group;
        kept.writes |= same && next.writes;
        same
    });
}
