//! Follows the version of every group: a number with each write, which travels as the data do.
//!
//! A read has to find, at its beginning and at its end, the version of the newest write of its group that was done when the read
//! began. Of writes of one group that are under way together the one that got its number last is the newest.

use ftl::page_groups::{Flashvisor, Layout, Logical, Physical, Step, Task, Write};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Which write of all, by the order of their numbers; zero is what was there from the start.
type Version = u64;

/// What a group of flash holds: nothing of a kernel's is a group of the map, or metadata.
type Held = Option<(Logical, Version)>;

/// Follows the version of every group.
pub(super) struct Shadow {
    latest: Version,
    /// Writes under way, by where they go.
    coming: FxHashMap<u32, Version>,
    /// The newest version of each group of which the write is done.
    newest: FxHashMap<u32, Version>,
    flash: BTreeMap<u32, Held>,
    /// What reads under way have found, by group and place: all of the same place find the same.
    found: FxHashMap<(u32, u32), (Version, u32)>,
    /// What Storengine has read and not programmed, by task.
    carried: FxHashMap<u32, Held>,
    /// Reads checked, and those that were wrong.
    pub(super) checked: u64,
    pub(super) wrong: u64,
}

impl Shadow {
    /// Learns what is there from the start.
    pub(super) fn new(visor: &mut Flashvisor) -> Shadow {
        let (mut newest, mut flash) = (FxHashMap::default(), BTreeMap::new());
        for logical in (0..visor.data()).map(Logical) {
            let group = visor.lookup(logical).expect("data fits").expect("the first groups are there");
            newest.insert(logical.0, 0);
            flash.insert(group.0, Some((logical, 0)));
        }
        Shadow {
            latest: 0,
            coming: FxHashMap::default(),
            newest,
            flash,
            found: FxHashMap::default(),
            carried: FxHashMap::default(),
            checked: 0,
            wrong: 0,
        }
    }

    /// A read begins: where the map says that its group is.
    pub(super) fn looked_up(&mut self, logical: Logical, group: Option<Physical>) {
        let newest = self.newest.get(&logical.0).copied();
        let held = group.and_then(|group| self.flash.get(&group.0).copied().flatten());
        self.checked += 1;
        self.wrong += u64::from(held != newest.map(|version| (logical, version)));
        if let (Some(group), Some(version)) = (group, newest) {
            self.found.entry((logical.0, group.0)).or_insert((version, 0)).1 += 1;
        }
    }

    /// A read ends: what it found is still there.
    pub(super) fn read(&mut self, logical: Logical, group: Physical) {
        let key = (logical.0, group.0);
        let Some((version, reads)) = self.found.get_mut(&key) else { return };
        let is_there = self.flash.get(&group.0) == Some(&Some((logical, *version)));
        self.wrong += u64::from(!is_there);
        *reads -= 1;
        if *reads == 0 {
            self.found.remove(&key);
        }
    }

    /// A write has its number.
    pub(super) fn begin_write(&mut self, write: Write) {
        self.latest += 1;
        self.coming.insert(write.group.0, self.latest);
    }

    /// A write is programmed.
    pub(super) fn written(&mut self, write: Write) {
        let version = self.coming.remove(&write.group.0).expect("a write under way");
        self.hold(write.group, Some((write.logical, version)));
        let newest = self.newest.entry(write.logical.0).or_default();
        *newest = version.max(*newest);
    }

    /// A group is programmed: it was erased before.
    fn hold(&mut self, group: Physical, held: Held) {
        let old = self.flash.insert(group.0, held);
        self.wrong += u64::from(old.is_some());
    }

    /// A step of Storengine's has been performed.
    pub(super) fn performed(&mut self, task: Task, step: Step) {
        match step {
            Step::Read { group, .. } => {
                // One that was overwritten before it was programmed stays behind until its name is used again.
                let held = self.flash.get(&group.0).copied().flatten();
                self.carried.insert(task.0, held);
            }
            Step::Program { group, .. } => {
                let held = self.carried.remove(&task.0).flatten();
                self.hold(group, held);
            }
            Step::WriteMeta { group, .. } => self.hold(group, None),
            Step::ReadMeta { .. } | Step::Copy { .. } | Step::Erase { .. } => {}
        }
    }

    /// A block begins to be erased.
    pub(super) fn erased(&mut self, block: u32, layout: &Layout) {
        let first = layout.group(block, 0).0;
        for group in first..first + layout.block_groups() {
            self.flash.remove(&group);
        }
    }
}
