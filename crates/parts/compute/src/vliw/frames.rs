//! Frames of an accelerator's memory: the page groups that they hold, and their eviction. Independent of time.

/// Placeholder for the absence of a group.
const NONE: u32 = u32::MAX;

/// State of a group.
#[derive(Clone, Copy, Debug)]
struct Group {
    place: Place,
    /// Number of sections that use it.
    pins: u16,
    /// Number of sections that wait for a frame for it.
    wanted: u16,
    /// True if the group has changed since it came, or since its last write to flash began.
    dirty: bool,
    /// True while the group is being written to flash.
    writing: bool,
    /// Neighbours in its list of unused groups: one used longer ago, and one used less long ago.
    older: u32,
    newer: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Absent,
    Coming,
    Here,
}

const ABSENT: Group = Group {
    place: Place::Absent,
    pins: 0,
    wanted: 0,
    dirty: false,
    writing: false,
    older: NONE,
    newer: NONE,
};

impl Group {
    fn lacks_a_frame(&self) -> bool {
        self.place == Place::Absent && self.wanted > 0
    }

    /// Returns whether its frame can be taken, now or when flash has it.
    fn is_spare(&self) -> bool {
        self.place == Place::Here && self.pins == 0 && !self.dirty
    }
}

/// Outcome of a section's claim of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// In memory.
    Here,
    /// Under way from flash.
    Coming,
    /// A frame was assigned: the section requests the group from flash, or fills it.
    Fetch,
    /// No frame: every one is in use, or changed and not yet written. The group is not claimed.
    NoRoom,
}

/// List of unused groups, by last use.
#[derive(Clone, Copy, Debug)]
struct Idle {
    oldest: u32,
    newest: u32,
}

/// Frames of a memory, each for a page group. Among frames equal to flash, the least recently used one is evicted
/// first.
#[derive(Clone, Debug)]
pub struct Frames {
    groups: Vec<Group>,
    free: u32,
    clean: Idle,
    dirty: Idle,
    /// Number of wanted groups without a frame, and number of those whose frame can be taken, now or when flash has
    /// them.
    lacking: u32,
    spare: u32,
}

impl Frames {
    /// `frames` empty frames for groups `0..groups`.
    pub fn new(frames: u32, groups: u32) -> Frames {
        let none = Idle { oldest: NONE, newest: NONE };
        Frames {
            groups: vec![ABSENT; groups as usize],
            free: frames,
            clean: none,
            dirty: none,
            lacking: 0,
            spare: 0,
        }
    }

    /// Claims a group for a section: it stays until it is [released](Frames::release).
    pub fn claim(&mut self, group: u32) -> Claim {
        let found = self.groups[group as usize];
        match found.place {
            Place::Here => {
                if found.pins == 0 {
                    self.spare -= u32::from(!found.dirty);
                    if !found.writing {
                        self.leave(group);
                    }
                }
                self.groups[group as usize].pins += 1;
                Claim::Here
            }
            Place::Coming => {
                self.groups[group as usize].pins += 1;
                Claim::Coming
            }
            Place::Absent if self.make_room() => {
                self.free -= 1;
                self.change(group, |it| (it.place, it.pins) = (Place::Coming, it.pins + 1));
                Claim::Fetch
            }
            Place::Absent => Claim::NoRoom,
        }
    }

    /// Returns whether a group has no frame.
    pub fn is_absent(&self, group: u32) -> bool {
        self.groups[group as usize].place == Place::Absent
    }

    /// Notes that a section waits for a frame for a group, until [`Frames::unwant`].
    pub fn want(&mut self, group: u32) {
        self.change(group, |it| it.wanted += 1);
    }

    /// Notes that a section no longer waits for a frame for a group.
    pub fn unwant(&mut self, group: u32) {
        self.change(group, |it| it.wanted -= 1);
    }

    /// Changes the state of a group, and the totals that depend on it.
    fn change(&mut self, group: u32, change: impl FnOnce(&mut Group)) {
        let it = &mut self.groups[group as usize];
        let (lacking, spare) =
            (self.lacking - u32::from(it.lacks_a_frame()), self.spare - u32::from(it.is_spare()));
        change(it);
        (self.lacking, self.spare) =
            (lacking + u32::from(it.lacks_a_frame()), spare + u32::from(it.is_spare()));
    }

    /// Notes that a group has come from flash, or is being filled for the first time.
    pub fn arrived(&mut self, group: u32) {
        debug_assert!(matches!(self.groups[group as usize], Group { place: Place::Coming, pins: 1.., .. }));
        // In use, it neither lacks a frame nor has one that could be taken.
        self.groups[group as usize].place = Place::Here;
    }

    /// Releases a group from a section that may have changed it.
    pub fn release(&mut self, group: u32, changed: bool) {
        debug_assert!(matches!(self.groups[group as usize], Group { place: Place::Here, pins: 1.., .. }));
        let it = &mut self.groups[group as usize];
        it.pins -= 1;
        it.dirty |= changed;
        self.spare += u32::from(it.is_spare());
        if it.pins == 0 && !it.writing {
            self.join(group);
        }
    }

    /// Starts the write of the least recently used changed group without users, if sections lack more frames than are
    /// empty, can be taken, or will be when flash has their groups.
    pub fn write_oldest(&mut self) -> Option<u32> {
        let group = self.dirty.oldest;
        (group != NONE && self.lacking > self.free + self.spare).then(|| {
            self.leave(group);
            self.begin(group);
            group
        })
    }

    /// Starts the write of a group if it is in memory, was changed, and is not being written already.
    pub fn write(&mut self, group: u32) -> bool {
        let it = self.groups[group as usize];
        if it.place != Place::Here || !it.dirty || it.writing {
            return false;
        }
        if it.pins == 0 {
            self.leave(group);
        }
        self.begin(group);
        true
    }

    fn begin(&mut self, group: u32) {
        self.change(group, |it| (it.dirty, it.writing) = (false, true));
    }

    /// Notes that flash has a group.
    pub fn written(&mut self, group: u32) {
        let it = &mut self.groups[group as usize];
        debug_assert!(it.writing);
        it.writing = false;
        if it.pins == 0 {
            self.join(group);
        }
    }

    /// Drops a group that will not be used again: its data need no write. It must be unused.
    pub fn forget(&mut self, group: u32) {
        let it = self.groups[group as usize];
        debug_assert!(it.pins == 0 && !it.writing);
        if it.place == Place::Here {
            self.leave(group);
            self.change(group, |it| *it = Group { wanted: it.wanted, ..ABSENT });
            self.free += 1;
        }
    }

    /// Returns whether a group is being written.
    pub fn is_writing(&self, group: u32) -> bool {
        self.groups[group as usize].writing
    }

    /// Number of empty frames.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Returns whether an empty frame exists, if necessary after evicting a group that is equal to flash.
    fn make_room(&mut self) -> bool {
        let oldest = self.clean.oldest;
        if self.free == 0 && oldest != NONE {
            self.forget(oldest);
        }
        self.free > 0
    }

    fn idle(&mut self, group: u32) -> &mut Idle {
        if self.groups[group as usize].dirty { &mut self.dirty } else { &mut self.clean }
    }

    /// Adds a group to the unused ones.
    fn join(&mut self, group: u32) {
        let idle = self.idle(group);
        let older = std::mem::replace(&mut idle.newest, group);
        if older == NONE {
            idle.oldest = group;
        } else {
            self.groups[older as usize].newer = group;
        }
        let it = &mut self.groups[group as usize];
        (it.older, it.newer) = (older, NONE);
    }

    /// Removes a group from the unused ones.
    fn leave(&mut self, group: u32) {
        let Group { older, newer, .. } = self.groups[group as usize];
        let idle = self.idle(group);
        if older == NONE {
            idle.oldest = newer;
        }
        if newer == NONE {
            idle.newest = older;
        }
        if older != NONE {
            self.groups[older as usize].newer = newer;
        }
        if newer != NONE {
            self.groups[newer as usize].older = older;
        }
    }
}

#[cfg(test)]
mod tests {
    // Frames against a list of them.
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// Reference: the state of each group, and the unused ones in the order of their last use.
    #[derive(Default)]
    struct Plain {
        here: std::collections::BTreeMap<u32, (u16, bool, bool, bool)>,
        order: VecDeque<u32>,
        wanted: std::collections::BTreeSet<u32>,
    }

    impl Plain {
        fn idle(&self, dirty: bool) -> Option<u32> {
            self.order.iter().copied().find(|group| {
                let (pins, coming, is_dirty, writing) = self.here[group];
                pins == 0 && !coming && !writing && is_dirty == dirty
            })
        }

        /// Lacking frames beyond those that are empty, clean and unused, or will be when writes are over.
        fn short(&self, frames: u32) -> i64 {
            let lacking = self.wanted.iter().filter(|group| !self.here.contains_key(group)).count();
            let spare =
                self.here.values().filter(|(pins, coming, dirty, _)| *pins == 0 && !coming && !dirty).count();
            lacking as i64 - spare as i64 - (i64::from(frames) - self.here.len() as i64)
        }

        fn used(&mut self, group: u32) {
            self.order.retain(|other| *other != group);
            self.order.push_back(group);
        }
    }

    proptest! {
        #[test]
        fn frames_agree_with_a_list(steps in prop::collection::vec((0_u32..5, 0_u32..9, any::<bool>()), 1..200)) {
            let count = 5;
            let mut frames = Frames::new(count, 9);
            let mut plain = Plain::default();
            for (what, group, changed) in steps {
                let known = plain.here.get(&group).copied();
                match what {
                    0 => {
                        let wanted = match known {
                            Some((_, true, ..)) => Claim::Coming,
                            Some(_) => Claim::Here,
                            None => {
                                if plain.here.len() as u32 == count && let Some(oldest) = plain.idle(false) {
                                    plain.here.remove(&oldest);
                                    plain.order.retain(|other| *other != oldest);
                                }
                                if (plain.here.len() as u32) < count { Claim::Fetch } else { Claim::NoRoom }
                            }
                        };
                        prop_assert_eq!(frames.claim(group), wanted);
                        if wanted != Claim::NoRoom {
                            plain.here.entry(group).or_insert((0, true, false, false)).0 += 1;
                        }
                    }
                    1 => match known {
                        Some((_, true, ..)) => {
                            frames.arrived(group);
                            plain.here.get_mut(&group).expect("known").1 = false;
                        }
                        Some((pins, false, ..)) if pins > 0 => {
                            frames.release(group, changed);
                            let it = plain.here.get_mut(&group).expect("known");
                            it.0 -= 1;
                            it.2 |= changed;
                            plain.used(group);
                        }
                        _ => {}
                    },
                    2 if changed => {
                        let oldest = plain.idle(true).filter(|_| plain.short(count) > 0);
                        prop_assert_eq!(frames.write_oldest(), oldest);
                        if let Some(oldest) = oldest {
                            let it = plain.here.get_mut(&oldest).expect("known");
                            (it.2, it.3) = (false, true);
                        }
                    }
                    2 => {
                        let may = known.is_some_and(|(_, coming, dirty, writing)| !coming && dirty && !writing);
                        prop_assert_eq!(frames.write(group), may);
                        if may {
                            let it = plain.here.get_mut(&group).expect("known");
                            (it.2, it.3) = (false, true);
                        }
                    }
                    3 => if plain.wanted.remove(&group) {
                        frames.unwant(group);
                    } else {
                        frames.want(group);
                        plain.wanted.insert(group);
                    },
                    _ => if known.is_some_and(|(_, _, _, writing)| writing) {
                        frames.written(group);
                        let it = plain.here.get_mut(&group).expect("known");
                        it.3 = false;
                        if it.0 == 0 {
                            plain.used(group);
                        }
                    },
                }
                prop_assert_eq!(frames.free(), count - plain.here.len() as u32);
            }
        }
    }

    /// Four frames: one clean, three changed. Two sections want the same two groups, another a third: three are lacking, one of which the clean frame serves, so that two are written,
    /// the oldest first, and no more while these are under way.
    #[test]
    fn as_many_are_written_as_frames_are_lacking() {
        let mut frames = Frames::new(4, 10);
        for (group, changed) in [(0, true), (1, false), (2, true), (3, true)] {
            assert_eq!(frames.claim(group), Claim::Fetch);
            frames.arrived(group);
            frames.release(group, changed);
        }
        assert_eq!(frames.write_oldest(), None, "no section lacks a frame");
        [5, 6, 5, 6, 7].into_iter().for_each(|group| frames.want(group));
        assert_eq!(
            [frames.write_oldest(), frames.write_oldest(), frames.write_oldest()],
            [Some(0), Some(2), None]
        );
        // The clean frame goes first. Then both that were written.
        for (group, claim) in [(5, Claim::Fetch), (6, Claim::NoRoom), (5, Claim::Coming)] {
            assert_eq!(frames.claim(group), claim);
        }
        assert_eq!(frames.write_oldest(), None, "two are under way, for two");
        [0, 2].into_iter().for_each(|group| frames.written(group));
        assert_eq!([frames.claim(6), frames.claim(7)], [Claim::Fetch; 2]);
        // One that is used again before flash has it gives no frame: another is written instead.
        frames.want(8);
        assert_eq!(frames.write_oldest(), Some(3));
        assert_eq!(frames.claim(3), Claim::Here);
        frames.arrived(5);
        [true, false].into_iter().for_each(|changed| frames.release(5, changed));
        assert_eq!(frames.write_oldest(), Some(5));
    }
}
