//! Data sections that are mapped: range locks, and who waits for one.

use super::{Event, GroupsFlash};
use engine::{Cx, Time};
use ftl::page_groups::locks::{Access, GroupRange, Lock, Owner};
use proto::groups::{Groups, Tell};

/// A section that is mapped, or is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    tag: u32,
    lock: Option<Lock>,
    pub(super) is_held: bool,
    since: Time,
}

impl GroupsFlash {
    /// A section is to be mapped.
    pub(super) fn lock(&mut self, tag: u32, groups: Groups, write: bool, cx: &mut impl Cx<Event, Tell>) {
        self.ledger.locks += 1;
        self.stats.locks += 1;
        let section = Section { tag, lock: None, is_held: false, since: cx.now() };
        let name = self.sections.insert(section);
        let other = self.by_tag.insert(tag, name);
        assert!(other.is_none(), "two locks with the tag {tag}");
        let range = GroupRange { first: groups.first, last: groups.last };
        let access = if write { Access::Write } else { Access::Read };
        let (lock, is_held) = self.visor.locks.request(range, access, Owner::Section(name));
        let section = &mut self.sections[name];
        (section.lock, section.is_held) = (Some(lock), is_held);
        if is_held {
            cx.emit(Tell::Locked { tag });
        }
    }

    /// A section is given back, or is not wanted any more.
    pub(super) fn unlock(&mut self, tag: u32) {
        let name = self.by_tag.remove(&tag).unwrap_or_else(|| panic!("no lock has the tag {tag}"));
        let lock = self.sections[name].lock.expect("it has been asked for");
        self.sections.remove(name);
        self.ledger.unlocks += 1;
        self.visor.locks.release(lock, &mut self.granted);
        self.stirred = true;
    }

    /// Tells those who wait for a lock no more.
    pub(super) fn pass_on(&mut self, cx: &mut impl Cx<Event, Tell>) {
        let now = cx.now();
        for granted in self.granted.drain(..) {
            let Owner::Section(name) = granted.owner else { unreachable!("Storengine waits for no lock") };
            let section = &mut self.sections[name];
            section.is_held = true;
            self.stats.lock_wait.record((now - section.since).ps());
            cx.emit(Tell::Locked { tag: section.tag });
        }
    }
}
