//! What a coprocessor's memory keeps between the steps of a program: page groups, of which that goes first which was used longest ago.

use std::collections::BTreeMap;

/// A page group that a step needs, by number among those of all arrays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Need {
    pub(super) group: u32,
    /// Whether the step changes it.
    pub(super) writes: bool,
}

/// What is known of a group.
#[derive(Clone, Copy, Default, Debug)]
struct Group {
    /// When it was used last, if it is in memory.
    used: Option<u64>,
    /// Whether it was changed since its file had it.
    dirty: bool,
    /// Whether a file has something of it.
    filed: bool,
}

/// What is in memory.
pub(super) struct Kept {
    groups: Vec<Group>,
    /// Groups in memory, by when they were used last.
    order: BTreeMap<u64, u32>,
    frames: usize,
    uses: u64,
}

/// What has to be done before a step: groups that leave first, then groups that come.
#[derive(Default, Debug, PartialEq, Eq)]
pub(super) struct Moves {
    pub(super) stores: Vec<u32>,
    pub(super) loads: Vec<u32>,
}

impl Kept {
    /// An empty memory with room for so many groups; of each group, whether a file has it.
    pub(super) fn new(frames: usize, filed: impl Iterator<Item = bool>) -> Kept {
        let group = |filed| Group { filed, ..Group::default() };
        Kept { groups: filed.map(group).collect(), order: BTreeMap::new(), frames, uses: 0 }
    }

    /// A step needs groups, each once and no more than there is room for: they are in memory from now on.
    pub(super) fn bring(&mut self, needs: &[Need]) -> Moves {
        debug_assert!(needs.len() <= self.frames);
        let mut moves = Moves::default();
        // What is there is used before anything has to go.
        let (here, absent): (Vec<&Need>, Vec<&Need>) =
            needs.iter().partition(|need| self.groups[need.group as usize].used.is_some());
        here.into_iter().for_each(|need| self.touch(need));
        for need in absent {
            if self.order.len() == self.frames
                && let Some((_, oldest)) = self.order.pop_first()
            {
                let gone = &mut self.groups[oldest as usize];
                if gone.dirty {
                    moves.stores.push(oldest);
                }
                *gone = Group { used: None, dirty: false, filed: gone.filed || gone.dirty };
            }
            if self.groups[need.group as usize].filed {
                moves.loads.push(need.group);
            }
            self.touch(need);
        }
        moves.stores.sort_unstable();
        moves
    }

    fn touch(&mut self, need: &Need) {
        let of = &mut self.groups[need.group as usize];
        if let Some(before) = of.used.replace(self.uses) {
            self.order.remove(&before);
        }
        of.dirty |= need.writes;
        self.order.insert(self.uses, need.group);
        self.uses += 1;
    }

    /// Groups that were changed since their files had them, in the order of their numbers.
    pub(super) fn changed(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().zip(0..).filter(|(of, _)| of.dirty).map(|(_, group)| group)
    }
}
