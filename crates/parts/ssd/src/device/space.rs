//! Commands that wait for free space in flash.

use super::{Device, Event, Out};
use engine::Cx;

impl Device {
    /// The list that commands wait in for a group. An allocator that chooses the group may choose another one next
    /// time: its commands wait together.
    fn line(&self, group: u32) -> usize {
        if self.allocator.is_static() { group as usize } else { 0 }
    }

    /// A command has found no space in a group.
    pub(super) fn wait(&mut self, id: u32, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].waits = true;
        let line = self.line(group);
        self.waiting[line].push_back(id);
        self.stalled |= !self.reclaim_for(group, cx);
    }

    /// Reclaims where it helps those who wait for a group; false if nothing can be reclaimed now.
    pub(super) fn reclaim_for(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        if self.allocator.is_static() && !self.gc.global {
            self.reclaim(group, cx);
            return self.jobs[group as usize].is_some();
        }
        (0..self.ftl.geo.groups).for_each(|g| self.reclaim(g, cx));
        self.jobs.iter().any(Option::is_some)
    }

    /// Something has happened since nothing could be reclaimed: tries again.
    #[cold]
    pub(super) fn retry(&mut self, cx: &mut impl Cx<Event, Out>) {
        self.stalled = false;
        for group in 0..self.ftl.geo.groups {
            if !self.waiting[self.line(group)].is_empty() {
                self.stalled |= !self.reclaim_for(group, cx);
            }
        }
        for group in self.groups_of_assemblies() {
            self.stalled |= !self.reclaim_for(group, cx);
        }
        for group in self.groups_of_write_backs() {
            self.reclaim(group, cx);
            self.stalled |= self.jobs[group as usize].is_none();
        }
    }

    /// Space has appeared in a group: commands that waited for it go on, oldest first.
    pub(super) fn wake(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.wake_assemblies(group, cx);
        self.wake_write_backs(cx);
        let line = self.line(group);
        for _ in 0..self.waiting[line].len() {
            if let Some(id) = self.waiting[line].pop_front() {
                self.active[id].waits = false;
                self.place(id, cx);
            }
        }
    }
}
