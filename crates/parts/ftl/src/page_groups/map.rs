//! The map from logical to physical groups, as it stands in the scratchpad.

use super::Physical;
use super::geometry::Layout;
use nand::positions::Positions;
use nand::sparse::Table;

/// The map. Behind the logical groups follow those that hold the map itself, so that a dump is found, moved and replaced as
/// data is. Groups that were there from the start need no memory: their places follow from their numbers.
#[derive(Clone, Debug)]
pub(super) struct Map {
    table: Table,
    groups: u32,
    group_entries: u32,
    /// Logical groups from 0 that were written once, in order, before the start.
    base: u32,
    /// Groups of the map in which an entry has changed since they were dumped.
    changed: Positions,
}

impl Map {
    pub(super) fn new(layout: &Layout) -> Map {
        let (groups, map_groups) = (layout.groups(), layout.map_groups());
        Map {
            table: Table::new(u64::from(groups) + u64::from(map_groups), u64::from(groups) + 1),
            groups,
            group_entries: layout.group_entries(),
            base: 0,
            changed: Positions::none(map_groups),
        }
    }

    /// The first `groups` logical groups are there from the start. Their entries have not been dumped.
    pub(super) fn assume(&mut self, groups: u32) {
        self.base = groups;
        (0..groups.div_ceil(self.group_entries)).for_each(|n| self.changed.set(n, true));
    }

    /// Logical groups that were there from the start.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// The entry of a logical group, or of a group of the map.
    #[inline]
    pub(super) fn get(&self, index: u32, layout: &Layout) -> Option<Physical> {
        match self.table.get(index.into()) {
            Some(word) => Some(Physical(word as u32)),
            None if index < self.base => Some(layout.nth_data(index)),
            None => None,
        }
    }

    #[inline]
    pub(super) fn set(&mut self, index: u32, group: Physical) {
        self.table.set(index.into(), group.0.into());
        if index < self.groups {
            self.changed.set(index / self.group_entries, true);
        }
    }

    /// The first group of the map from `from` on that a dump writes.
    pub(super) fn next_changed(&self, from: u32, map_groups: u32) -> Option<u32> {
        self.changed.first(None, from..map_groups)
    }

    /// A group of the map has been copied as it is.
    pub(super) fn copied(&mut self, map_group: u32) {
        self.changed.set(map_group, false);
    }

    /// Bytes of our memory.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.table.bytes()
    }
}
