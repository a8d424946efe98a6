//! The page groups that a section needs.

use super::Accelerator;
use crate::vliw::program::Part;

/// A page group that a section needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Need {
    pub(super) group: u32,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

/// Page groups next to each other that a section needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    first: u32,
    last: u32,
    reads: bool,
    writes: bool,
}

impl Stretch {
    /// Whether a stretch that begins with this group is a part of this one, or goes on behind it.
    fn goes_on(&self, first: u32, reads: bool, writes: bool) -> bool {
        (self.first..=self.last + 1).contains(&first) && (self.reads, self.writes) == (reads, writes)
    }
}

/// The groups of stretches, each once and in the order of their numbers.
fn join(stretches: &mut [Stretch], into: &mut Vec<Need>) {
    stretches.sort_unstable_by_key(|stretch| stretch.first);
    into.clear();
    for &Stretch { first, last, reads, writes } in &*stretches {
        // The stretch that reaches farthest began no later than this one: what both have is the end of the list.
        let shared = into.last().map_or(0, |need| (need.group + 1).saturating_sub(first));
        let from = into.len() - shared as usize;
        for need in into[from..].iter_mut().take_while(|need| need.group <= last) {
            (need.reads, need.writes) = (need.reads || reads, need.writes || writes);
        }
        into.extend((first + shared..=last).map(|group| Need { group, reads, writes }));
    }
}

impl Accelerator {
    /// The page groups that a section of a worker's screen needs, each once, in the order of their numbers.
    pub(super) fn needs(&mut self, worker: u16, part: &Part, into: &mut Vec<Need>) {
        let kernel = self.kernel_of(worker) as usize;
        let instance = &self.instances[kernel];
        let stretches = &mut self.stretches;
        stretches.clear();
        self.programs[instance.program].program.touches(part, |array, groups, reads, writes| {
            let first = instance.arrays[array] + groups.start();
            let last = instance.arrays[array] + groups.end();
            match stretches.last_mut() {
                Some(stretch) if stretch.goes_on(first, reads, writes) => {
                    stretch.last = stretch.last.max(last);
                }
                _ => stretches.push(Stretch { first, last, reads, writes }),
            }
        });
        join(stretches, into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a map, group by group.
        #[test]
        fn each_group_once(given in prop::collection::vec((0u32..60, 0u32..20, any::<bool>(), any::<bool>()), 0..12)) {
            let mut naive = BTreeMap::new();
            for (first, more, reads, writes) in &given {
                for group in *first..=first + more {
                    let of: &mut (bool, bool) = naive.entry(group).or_default();
                    *of = (of.0 || *reads, of.1 || *writes);
                }
            }
            let stretch = |(first, more, reads, writes)| Stretch { first, last: first + more, reads, writes };
            let mut stretches: Vec<Stretch> = given.into_iter().map(stretch).collect();
            let mut found = Vec::new();
            join(&mut stretches, &mut found);
            let naive: Vec<Need> =
                naive.into_iter().map(|(group, (reads, writes))| Need { group, reads, writes }).collect();
            prop_assert_eq!(found, naive);
        }
    }
}
