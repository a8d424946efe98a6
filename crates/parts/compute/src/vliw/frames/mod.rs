//! Which page groups an accelerator's memory holds, and which it can do without. It knows no time.

#[cfg(test)]
mod tests;

/// No group.
const NONE: u32 = u32::MAX;

/// What is known of a group.
#[derive(Clone, Copy, Debug)]
struct Group {
    place: Place,
    /// Sections that use it.
    pins: u16,
    /// Sections that wait for a frame for it.
    wanted: u16,
    /// Whether it was changed since it came, or since its last write to flash began.
    dirty: bool,
    /// Whether it is being written to flash.
    writing: bool,
    /// Its neighbours among those of its list that nobody uses: one that was used longer ago, and one less long ago.
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

    /// Whether its frame can be taken, now or when flash has it.
    fn is_spare(&self) -> bool {
        self.place == Place::Here && self.pins == 0 && !self.dirty
    }
}

/// What a section finds of a group that it needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// It is there.
    Here,
    /// Somebody has asked flash for it.
    Coming,
    /// It has a frame now: who claims it asks flash for it, or fills it.
    Fetch,
    /// There is no frame: every one is in use, or changed and not yet written. The group is not claimed.
    NoRoom,
}

/// Groups that nobody uses, by how long ago they were used.
#[derive(Clone, Copy, Debug)]
struct Idle {
    oldest: u32,
    newest: u32,
}

/// The frames of a memory, each for a page group. The one that was used longest ago goes first, of those that flash has as they are.
#[derive(Clone, Debug)]
pub struct Frames {
    groups: Vec<Group>,
    free: u32,
    clean: Idle,
    dirty: Idle,
    /// Groups that are wanted and have no frame, and those whose frame can be taken, now or when flash has them.
    lacking: u32,
    spare: u32,
}

impl Frames {
    /// So many empty frames, for groups below a number.
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

    /// A section needs a group: it stays until it is [released](Frames::release).
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

    /// Whether a group has no frame.
    pub fn is_absent(&self, group: u32) -> bool {
        self.groups[group as usize].place == Place::Absent
    }

    /// A section waits for a frame for a group, until it [no longer does](Frames::unwant).
    pub fn want(&mut self, group: u32) {
        self.change(group, |it| it.wanted += 1);
    }

    /// A section that waited for a frame for a group waits no longer.
    pub fn unwant(&mut self, group: u32) {
        self.change(group, |it| it.wanted -= 1);
    }

    /// Changes what is known of a group, and what follows from it for all.
    fn change(&mut self, group: u32, change: impl FnOnce(&mut Group)) {
        let it = &mut self.groups[group as usize];
        let (lacking, spare) =
            (self.lacking - u32::from(it.lacks_a_frame()), self.spare - u32::from(it.is_spare()));
        change(it);
        (self.lacking, self.spare) =
            (lacking + u32::from(it.lacks_a_frame()), spare + u32::from(it.is_spare()));
    }

    /// A group has come from flash, or is being filled for the first time.
    pub fn arrived(&mut self, group: u32) {
        debug_assert!(matches!(self.groups[group as usize], Group { place: Place::Coming, pins: 1.., .. }));
        // In use, it neither lacks a frame nor has one that could be taken.
        self.groups[group as usize].place = Place::Here;
    }

    /// A section needs a group no longer, and has changed it or not.
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

    /// If sections lack more frames than are empty, can be taken, or will be when flash has their groups: the group that was changed and used longest ago, of those that nobody uses.
    /// It is being written from now on.
    pub fn write_oldest(&mut self) -> Option<u32> {
        let group = self.dirty.oldest;
        (group != NONE && self.lacking > self.free + self.spare).then(|| {
            self.leave(group);
            self.begin(group);
            group
        })
    }

    /// A group is being written from now on, if it is there, was changed, and is not being written already.
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

    /// Flash has it.
    pub fn written(&mut self, group: u32) {
        let it = &mut self.groups[group as usize];
        debug_assert!(it.writing);
        it.writing = false;
        if it.pins == 0 {
            self.join(group);
        }
    }

    /// Nobody will ask for a group again: what it holds is no longer worth a write. It must be in nobody's use.
    pub fn forget(&mut self, group: u32) {
        let it = self.groups[group as usize];
        debug_assert!(it.pins == 0 && !it.writing);
        if it.place == Place::Here {
            self.leave(group);
            self.change(group, |it| *it = Group { wanted: it.wanted, ..ABSENT });
            self.free += 1;
        }
    }

    /// Whether a group is being written.
    pub fn is_writing(&self, group: u32) -> bool {
        self.groups[group as usize].writing
    }

    /// Empty frames.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Whether there is an empty frame, if need be that of a group that flash has as it is.
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

    /// Nobody uses a group any more.
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

    /// Somebody uses it again, or it goes.
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
