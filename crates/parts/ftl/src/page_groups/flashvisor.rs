//! Flashvisor: address translation, allocation, range locks.

use super::locks::RangeLocks;
use super::space::{Space, Stream};
use super::spec::{GroupsSpec, Layout};
use super::{Durable, GroupCounters, GroupError, Logical, Physical, Spare};
use config::SpecError;
use nand::{numbers::Positions, sparse::Table};
use rustc_hash::FxHashMap;

/// Kernel write that has its number and is not done yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// Logical group that is written.
    pub logical: Logical,
    /// Physical group that the data goes to.
    pub group: Physical,
    /// Position in the order of writes.
    stamp: u64,
}

/// Writes of a logical group in flight.
#[derive(Clone, Copy, Debug, Default)]
struct UnderWay {
    count: u32,
    /// Latest of these writes that is done.
    done: u64,
}

/// Map, allocation and locks.
pub struct Flashvisor {
    pub(super) layout: Layout,
    pub(super) map: Map,
    pub(super) space: Space,
    /// Content of each group of flash, as its spare area says: logical group plus one, or zero for nothing.
    pub(super) holds: Table,
    /// Marks blocks, from 0, that were filled before the start: until erased, their content follows from their number.
    pub(super) untouched: Vec<bool>,
    /// Locks of the logical groups.
    pub locks: RangeLocks,
    /// Counters.
    pub counters: GroupCounters,
    under_way: FxHashMap<u32, UnderWay>,
    /// Number of logical groups that hold data, or will.
    pub(super) data: u32,
    capacity: u32,
    pub(super) stamp: u64,
    pub(super) durable: Option<Box<Durable>>,
}

impl Flashvisor {
    /// Creates erased flash, and an empty map.
    ///
    /// # Errors
    /// The first error of [`GroupsSpec::check`].
    pub fn new(spec: &GroupsSpec) -> Result<Flashvisor, SpecError> {
        spec.check()?;
        let layout = Layout::new(spec);
        let groups = u64::from(layout.groups());
        Ok(Flashvisor {
            map: Map::new(&layout),
            space: Space::new(&layout, spec.reclaim.reserve),
            holds: Table::new(groups, groups + u64::from(layout.map_groups()) + 2),
            untouched: Vec::new(),
            locks: RangeLocks::default(),
            counters: GroupCounters::default(),
            under_way: FxHashMap::default(),
            data: 0,
            capacity: spec.capacity(&layout),
            stamp: 0,
            durable: None,
            layout,
        })
    }

    /// Returns the arithmetic of groups, blocks and addresses.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Returns the number of groups of data that fit.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }
    /// Returns the number of logical groups that hold data, including those with their first write in flight.
    pub fn data(&self) -> u32 {
        self.data
    }
    /// Returns the number of free blocks.
    pub fn free_blocks(&self) -> u32 {
        self.space.free_count()
    }

    /// Declares that the first `groups` logical groups were written before the start, once and in order. Nothing has
    /// been written yet.
    ///
    /// # Errors
    /// The groups do not fit.
    ///
    /// # Panics
    /// If a group has been written.
    pub fn assume_written(&mut self, groups: u32) -> Result<(), GroupError> {
        assert!(self.stamp == 0 && self.data == 0, "the initial state must be set before any write");
        if groups > self.capacity {
            return Err(GroupError::Full { data: groups.into(), capacity: self.capacity });
        }
        self.data = groups;
        self.map.assume(groups);
        self.space.assume(groups);
        self.untouched = vec![true; groups.div_ceil(self.layout.data_groups()) as usize];
        if let Some(durable) = &mut self.durable {
            durable.assume(groups, &self.layout);
        }
        Ok(())
    }

    /// Records what a power cut would leave, for [`recover`](super::recover). Takes memory for every group that is
    /// written, and changes nothing else.
    ///
    /// # Panics
    /// If a group has been written.
    pub fn record_durable(&mut self) {
        assert!(self.stamp == 0 && self.data == 0, "recording must start before any write");
        self.durable = Some(Box::new(Durable::new(&self.layout)));
    }

    /// Returns what a power cut leaves now, if it is recorded.
    pub fn cut(&self) -> Option<Durable> {
        self.durable.as_deref().map(Durable::cut)
    }

    fn check(&self, logical: Logical) -> Result<(), GroupError> {
        let groups = self.layout.groups();
        if logical.0 >= groups {
            return Err(GroupError::OutOfRange { group: logical.0, groups });
        }
        Ok(())
    }

    /// Looks up a logical group; `None` if it was never written. Counts one entry as looked up.
    ///
    /// # Errors
    /// The group is beyond the end.
    pub fn lookup(&mut self, logical: Logical) -> Result<Option<Physical>, GroupError> {
        self.check(logical)?;
        self.counters.lookups += 1;
        Ok(self.map.get(logical.0, &self.layout))
    }

    /// Looks up a group for a read that begins: until [`read_done`](Flashvisor::read_done) the block is not erased.
    ///
    /// # Errors
    /// The group is beyond the end.
    pub fn read(&mut self, logical: Logical) -> Result<Option<Physical>, GroupError> {
        let group = self.lookup(logical)?;
        if let Some(group) = group {
            let block = self.block_of(group);
            self.space.read_begins(block);
        }
        Ok(group)
    }

    /// Ends a read of a group.
    pub fn read_done(&mut self, group: Physical) {
        let block = self.block_of(group);
        self.space.read_ends(block);
    }

    /// Allocates the next number for a write. `None` if a block must be reclaimed first; try again after a step of
    /// Storengine's is done.
    ///
    /// # Errors
    /// The group is beyond the end, or the data does not fit.
    pub fn write(&mut self, logical: Logical) -> Result<Option<Write>, GroupError> {
        self.check(logical)?;
        let is_new =
            self.map.get(logical.0, &self.layout).is_none() && !self.under_way.contains_key(&logical.0);
        let data = self.data + u32::from(is_new);
        if data > self.capacity {
            return Err(GroupError::Full { data: data.into(), capacity: self.capacity });
        }
        let Some(group) = self.space.take(Stream::Kernel) else { return Ok(None) };
        self.data = data;
        self.counters.writes += 1;
        self.under_way.entry(logical.0).or_default().count += 1;
        self.stamp += 1;
        let stamp = self.stamp;
        self.program_begins(group, Spare { index: logical.0, version: stamp, made: stamp });
        Ok(Some(Write { logical, group, stamp }))
    }

    /// Completes a write's program: the map names its group, unless a later write of the same logical group was done
    /// before it. Counts one entry as changed.
    pub fn written(&mut self, write: Write) {
        let index = write.logical.0;
        let under_way = self.under_way.get_mut(&index).expect("a write under way");
        let is_newest = write.stamp > under_way.done;
        under_way.done = under_way.done.max(write.stamp);
        under_way.count -= 1;
        if under_way.count == 0 {
            self.under_way.remove(&index);
        }
        self.program_ends(index, write.group);
        if is_newest {
            self.name(index, write.group);
        } else {
            self.counters.overtaken += 1;
        }
    }

    #[inline]
    pub(super) fn block_of(&self, group: Physical) -> u32 {
        self.layout.block_of(group).0
    }

    /// Returns the content of a group of flash.
    #[inline]
    pub(super) fn held(&self, group: Physical) -> Option<u32> {
        match self.holds.get(group.0.into()) {
            Some(word) => (word as u32).checked_sub(1),
            None if self.untouched.get(self.block_of(group) as usize) == Some(&true) => {
                self.layout.data_number(group).filter(|number| *number < self.map.base())
            }
            None => None,
        }
    }

    pub(super) fn program_begins(&mut self, group: Physical, spare: Spare) {
        if let Some(durable) = &mut self.durable {
            durable.begin(group, spare, self.layout.block_of(group).0);
        }
    }

    pub(super) fn program_ends(&mut self, index: u32, group: Physical) {
        self.holds.set(group.0.into(), u64::from(index) + 1);
        let block = self.block_of(group);
        self.space.programmed(block);
        if let Some(durable) = &mut self.durable {
            durable.programmed(group);
        }
    }

    /// Makes the map name a new group for a logical group, or for one of its own groups.
    pub(super) fn name(&mut self, index: u32, group: Physical) {
        self.counters.updates += 1;
        if let Some(old) = self.map.get(index, &self.layout) {
            let block = self.block_of(old);
            self.space.lose(block);
        }
        self.map.set(index, group);
        let block = self.block_of(group);
        self.space.gain(block);
    }

    /// Registers the erase of a block.
    pub(super) fn erased(&mut self, block: u32) {
        let first = self.layout.group(block, 0).0;
        (first..first + self.layout.block_groups()).for_each(|n| self.holds.set(n.into(), 0));
        if let Some(untouched) = self.untouched.get_mut(block as usize) {
            *untouched = false;
        }
        self.space.erased(block);
        self.counters.erases += 1;
        if let Some(durable) = &mut self.durable {
            durable.erased(block);
        }
    }
}

// Map from logical to physical groups, as stored in the scratchpad.

/// Map. After the logical groups follow those that hold the map itself, so that a dump is found, moved and replaced
/// like data. Groups present from the start need no memory: their places follow from their numbers.
#[derive(Clone, Debug)]
pub(super) struct Map {
    table: Table,
    groups: u32,
    group_entries: u32,
    /// Number of logical groups, from 0, that were written once, in order, before the start.
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

    /// Declares the first `groups` logical groups as present from the start. Their entries have not been dumped.
    pub(super) fn assume(&mut self, groups: u32) {
        self.base = groups;
        (0..groups.div_ceil(self.group_entries)).for_each(|n| self.changed.set(n, true));
    }

    /// Returns the number of logical groups present from the start.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Returns the entry of a logical group, or of a group of the map.
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

    /// Returns the first group of the map, from `from` on, that a dump writes.
    pub(super) fn next_changed(&self, from: u32, map_groups: u32) -> Option<u32> {
        self.changed.first(None, from..map_groups)
    }

    /// Registers that a group of the map has been copied unchanged.
    pub(super) fn copied(&mut self, map_group: u32) {
        self.changed.set(map_group, false);
    }

    /// Returns the simulator's memory in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        self.table.bytes()
    }
}
