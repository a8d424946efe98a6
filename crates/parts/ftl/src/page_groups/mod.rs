//! Flash of page groups, managed by the accelerator itself: the decisions of FlashAbacus's two firmware cores, without
//! time.
//!
//! A **page group** consists of the pages of equal number in all planes of the dies of equal number on all channels:
//! the unit that one request of an accelerator's core reads or writes. Its physical number is a position of the log.
//! [`Flashvisor`] keeps the map from logical to physical groups, allocates numbers for writes, and has the [range
//! locks](locks) of mapped data sections; [`Storengine`] writes metadata, dumps the map and reclaims blocks, as
//! [steps](Step) that its caller performs.
//!
//! Unless stated otherwise, the source is "FlashAbacus: A Self-Governing Flash-Based Accelerator for Low-Power Systems"
//! (Zhang and Jung, EuroSys 2018), section 4.3. Interpretations of it that are *chosen*:
//!
//! * A **block** is filled by consecutive group numbers and erased as a whole: a block in each plane of a die on all
//!   channels with the literal [`translation`], such blocks of all dies with the striped one. The first two pages of
//!   each hold metadata, so the numbers of their groups are skipped. The metadata are the entries of the block's
//!   groups, and are therefore programmed after them, when the block is full. Data sheets want the pages of a block
//!   programmed in order, but the paper puts the entries, known last, into the first pages. The cost of a program does
//!   not depend on it.
//! * Each group's logical number and stamp are also in its spare area, as in any page-mapped flash: otherwise a block
//!   that is being filled could not be recovered ([`recover`]).
//! * Storengine migrates to its own block, "the new block", and writes its dumps there too.
//! * A dump writes groups of the map (64 KB of entries each) as groups of the log after the logical space: the whole
//!   table, or the groups in which an entry has changed.
//! * Reclaim locks each range that it moves as a reader, if it is free at once, and moves it anyway if not: it never
//!   waits for a kernel, because the kernel may itself wait for free space. If a kernel writes in between, the map
//!   keeps the kernel's group. A victim is erased when no kernel's read of it is in flight any more. A snapshot of
//!   entries for a dump waits for its lock in line, and nothing that frees space waits for the snapshot.

mod flashvisor;
pub mod locks;
mod space;
pub mod spec;
mod storengine;
#[cfg(test)]
mod tests;
pub mod translation;
pub mod victim;

pub use flashvisor::{Flashvisor, Write};
pub use spec::{Layout, Place};
pub use storengine::{Step, Storengine, Task};

use config::SpecError;
use spec::GroupsSpec;
use std::{cmp::Reverse, collections::BTreeMap, fmt, ops::Range};

/// Page group as a kernel addresses it: its byte address over the bytes of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Logical(pub u32);

/// Page group of flash: a position of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Physical(pub u32);

/// Request that the flash cannot serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// Address beyond the end of the flash.
    OutOfRange {
        /// Requested group.
        group: u32,
        /// Number of addressable groups.
        groups: u32,
    },
    /// Data that does not fit besides metadata, the map and the reserved free blocks.
    Full {
        /// Requested groups of data.
        data: u64,
        /// Groups of data that fit.
        capacity: u32,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::OutOfRange { group, groups } => {
                write!(f, "page group {group} is out of range; the flash has {groups} page groups")
            }
            GroupError::Full { data, capacity } => {
                write!(
                    f,
                    "{data} groups of data; at most {capacity} fit beside metadata, map and free blocks"
                )
            }
        }
    }
}

impl std::error::Error for GroupError {}

// Counters of the two cores, from which their time is charged.

/// Work of Flashvisor and Storengine since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupCounters {
    /// Entries of the map looked up.
    pub lookups: u64,
    /// Entries of the map changed.
    pub updates: u64,
    /// Groups allocated for kernels' writes.
    pub writes: u64,
    /// Writes whose logical group had been rewritten before they were done.
    pub overtaken: u64,
    /// Entries of victims examined to find their valid groups.
    pub examined: u64,
    /// Valid-group counts that the choice of victims examined.
    pub weighed: u64,
    /// Groups that reclaim has moved.
    pub moves: u64,
    /// Moves that were abandoned, or whose copy is unused, because a kernel has written the group meanwhile.
    pub overwritten: u64,
    /// Metadata groups programmed.
    pub metadata: u64,
    /// Groups of the map programmed by dumps.
    pub dumped: u64,
    /// Dumps completed.
    pub dumps: u64,
    /// Blocks erased.
    pub erases: u64,
}

// State that survives a power cut: groups with their spare areas, metadata, dumps.

/// Content of a group's spare area.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Spare {
    /// Logical group, or, beyond those, group of the map.
    index: u32,
    /// Position of the data in the order of writes: a copy made by reclaim has that of its source.
    version: u64,
    /// Position of the program in the order of all programs.
    made: u64,
}

/// Group of the map as a dump has written it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Dumped {
    /// Entries of the group.
    entries: Vec<Option<Physical>>,
    /// Position up to which all programs had ended: the entries take them into account.
    mark: u64,
}

/// Flash content after a power cut.
#[derive(Clone, Debug)]
pub struct Durable {
    block_groups: u32,
    /// Groups that are programmed.
    spares: BTreeMap<u32, Spare>,
    /// Programs in flight.
    registers: BTreeMap<u32, Spare>,
    /// Groups that hold groups of the map.
    dumps: BTreeMap<u32, Dumped>,
    /// Flags of blocks that have their metadata.
    described: Vec<bool>,
    /// Flags of blocks in which a program has begun since they were erased.
    touched: Vec<bool>,
    /// Number of logical groups present from the start; the blocks that still hold theirs follow.
    base: u32,
    untouched: Vec<bool>,
}

impl Durable {
    fn new(layout: &Layout) -> Durable {
        let none = vec![false; layout.blocks() as usize];
        Durable {
            block_groups: layout.block_groups(),
            spares: BTreeMap::new(),
            registers: BTreeMap::new(),
            dumps: BTreeMap::new(),
            described: none.clone(),
            touched: none.clone(),
            base: 0,
            untouched: none,
        }
    }

    fn assume(&mut self, groups: u32, layout: &Layout) {
        self.base = groups;
        let data = layout.data_groups();
        for block in 0..groups.div_ceil(data) {
            self.untouched[block as usize] = true;
            self.touched[block as usize] = true;
            self.described[block as usize] = (block + 1) * data <= groups;
        }
    }

    /// Returns a copy without the programs in flight.
    fn cut(&self) -> Durable {
        Durable { registers: BTreeMap::new(), ..self.clone() }
    }

    fn groups_of(&self, block: u32) -> Range<u32> {
        block * self.block_groups..(block + 1) * self.block_groups
    }

    fn begin(&mut self, group: Physical, spare: Spare, block: u32) {
        self.registers.insert(group.0, spare);
        self.touched[block as usize] = true;
    }

    fn programmed(&mut self, group: Physical) {
        let spare = self.registers.remove(&group.0).expect("a program under way");
        self.spares.insert(group.0, spare);
    }

    /// Returns the spare area of a programmed group.
    fn spare(&self, group: Physical, layout: &Layout) -> Option<Spare> {
        if let Some(spare) = self.spares.get(&group.0) {
            return Some(*spare);
        }
        let is_untouched = self.untouched[layout.block_of(group).0 as usize];
        let number = layout.data_number(group).filter(|number| is_untouched && *number < self.base)?;
        Some(Spare { index: number, version: 0, made: 0 })
    }

    /// Returns the oldest program that has not ended, or `next` if none.
    fn mark(&self, next: u64) -> u64 {
        self.registers.values().map(|spare| spare.made).min().unwrap_or(next)
    }

    /// Registers a dump, or a move of a dumped group, that is being programmed.
    fn dump(&mut self, group: Physical, dumped: Dumped) {
        self.dumps.insert(group.0, dumped);
    }

    /// Begins an erase: the block is unreadable from now on.
    fn erase_begins(&mut self, block: u32) {
        let gone: Vec<u32> = self.spares.range(self.groups_of(block)).map(|(group, _)| *group).collect();
        for group in gone {
            self.spares.remove(&group);
            self.dumps.remove(&group);
        }
        self.described[block as usize] = false;
        self.untouched[block as usize] = false;
    }

    fn erased(&mut self, block: u32) {
        self.touched[block as usize] = false;
    }
}

// Recovery of the map after a power cut, from the content of flash.
//
// The first metadata group of every block is read, and all of them if they have entries. Blocks that were being filled
// have none, and the spare areas of their groups are read instead. For each group of the map the newest dump is loaded.
// Entries of blocks that the dump has taken into account are skipped; among the rest the newest counts. Blocks without
// valid data are erased. The blocks that were open are closed as they are: their metadata may be half written, and
// cannot be written again, so their spare areas are read in a later recovery too.
//
// A cut during a reclaim may leave a group at its old and its new place. Both hold the same data; the old one counts,
// so that the block opened for the reclaim is free again and the reclaim can start over, however often it is cut.

/// Work of a recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// Metadata groups read.
    pub metadata: u64,
    /// Groups without metadata whose spare areas were read.
    pub scanned: u64,
    /// Groups of the map read from dumps.
    pub dumps: u64,
    /// Entries taken from dumps.
    pub from_dumps: u64,
    /// Entries that no dump had taken into account.
    pub replayed: u64,
    /// Blocks erased because they had no valid data.
    pub erases: u64,
}

/// Possible place of a group, according to its spare area.
type Candidate = (Spare, Physical);

/// Returns whether the first copy counts rather than the second: it has later data, or is the source of the second.
fn counts(first: &Spare, second: &Spare) -> bool {
    (first.version, Reverse(first.made)) > (second.version, Reverse(second.made))
}

/// Recovers the map.
///
/// # Errors
/// The first error of [`GroupsSpec::check`]; the spec is the one that the flash was written with.
pub fn recover(spec: &GroupsSpec, durable: Durable) -> Result<(Flashvisor, Recovery), SpecError> {
    let mut new = Flashvisor::new(spec)?;
    let mut found = Recovery::default();
    read_blocks(&new, &durable, &mut found);
    let mut marks = vec![0; new.layout.map_groups() as usize];
    let mut newest = load_dumps(&new, &durable, &mut marks, &mut found);
    let entries = new.layout.group_entries();
    for (group, spare) in durable.spares.iter().filter(|(_, spare)| spare.index < new.layout.groups()) {
        let mark = marks[(spare.index / entries) as usize];
        let known = newest.get(&spare.index).map(|(known, _)| known);
        // The dump takes the program into account, and its own entry was not made from this copy.
        if spare.made < mark && known.is_none_or(|known| known.version != spare.version) {
            continue;
        }
        if known.is_none_or(|known| counts(spare, known)) {
            newest.insert(spare.index, (*spare, Physical(*group)));
            found.replayed += 1;
        }
    }
    install(&mut new, durable, newest, &mut found);
    Ok((new, found))
}

fn read_blocks(new: &Flashvisor, durable: &Durable, found: &mut Recovery) {
    for block in 0..new.layout.blocks() {
        if durable.described[block as usize] {
            found.metadata += u64::from(new.layout.metadata_groups());
        } else if durable.touched[block as usize] {
            found.metadata += 1;
            found.scanned += u64::from(new.layout.data_groups());
        } else {
            // The block is erased, as its first group shows.
            found.metadata += 1;
        }
    }
}

/// Loads the newest dumps, and their entries that name groups still present.
fn load_dumps(
    new: &Flashvisor,
    durable: &Durable,
    marks: &mut [u64],
    found: &mut Recovery,
) -> BTreeMap<u32, Candidate> {
    let groups = new.layout.groups();
    let mut dumps: BTreeMap<u32, (Spare, u32)> = BTreeMap::new();
    for (group, spare) in durable.spares.iter().filter(|(_, spare)| spare.index >= groups) {
        let known = dumps.entry(spare.index - groups).or_insert((*spare, *group));
        if counts(spare, &known.0) {
            *known = (*spare, *group);
        }
    }
    let mut newest = BTreeMap::new();
    for (number, (spare, group)) in dumps {
        newest.insert(groups + number, (spare, Physical(group)));
        let dumped = &durable.dumps[&group];
        marks[number as usize] = dumped.mark;
        found.dumps += 1;
        for (index, entry) in (number * new.layout.group_entries()..).zip(&dumped.entries) {
            let spare = entry.and_then(|entry| durable.spare(entry, &new.layout).map(|spare| (entry, spare)));
            if let Some((entry, spare)) = spare.filter(|(_, spare)| spare.index == index) {
                found.from_dumps += 1;
                newest.insert(index, (spare, entry));
            }
        }
    }
    newest
}

/// Sets map, blocks and counts to the recovered state.
fn install(
    new: &mut Flashvisor,
    durable: Durable,
    mut newest: BTreeMap<u32, Candidate>,
    found: &mut Recovery,
) {
    new.map.assume(durable.base);
    new.untouched = durable.untouched.clone();
    new.stamp = durable.spares.values().map(|spare| spare.made).max().unwrap_or(0);
    for (group, spare) in &durable.spares {
        new.holds.set((*group).into(), u64::from(spare.index) + 1);
    }
    let mut valid = vec![0; new.layout.blocks() as usize];
    for index in 0..durable.base {
        let first = new.layout.nth_data(index);
        let is_there = durable.spare(first, &new.layout).is_some_and(|spare| spare.made == 0);
        if is_there && newest.get(&index).is_none_or(|(spare, _)| spare.version == 0) {
            newest.remove(&index);
            valid[new.block_of(first) as usize] += 1;
        }
    }
    new.data = durable.base;
    for (index, (_, group)) in newest {
        new.data += u32::from(index >= durable.base && index < new.layout.groups());
        new.map.set(index, group);
        valid[new.block_of(group) as usize] += 1;
    }
    new.durable = Some(Box::new(durable));
    for block in 0..new.layout.blocks() {
        let durable = new.durable.as_mut().expect("set above");
        if !durable.touched[block as usize] {
            continue;
        }
        let valid = valid[block as usize];
        new.space.found(block, valid);
        if valid == 0 {
            durable.erase_begins(block);
            new.space.reclaim(block);
            new.erased(block);
            found.erases += 1;
        }
    }
}

/// Specs for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::spec::{DumpExtent, GroupDump, GroupGeometry, GroupReclaim, GroupsSpec};
    use super::translation::GroupTranslation;
    use super::victim::GroupVictim;
    use config::units::{Bytes, Duration};
    use engine::Time;

    /// Returns the prototype's 32 GB: 16 packages with `dies` dies each. The 256 pages per block are from the data
    /// sheet of MT29F64G08; the number of blocks gives 32 GB.
    pub fn prototype(dies: u32, translation: GroupTranslation) -> GroupsSpec {
        GroupsSpec {
            geometry: GroupGeometry {
                channels: 4,
                packages: 4,
                dies,
                planes: 2,
                blocks: 512 / dies,
                pages: 256,
                page: Bytes::from_kib(8),
            },
            translation,
            metadata_pages: 2,
            reclaim: GroupReclaim { victim: GroupVictim::round_robin, reserve: 2, below: 4, moves: 8 },
            dump: GroupDump { period: Duration::new(Time::from_ms(1000)), extent: DumpExtent::changed },
        }
    }

    /// Returns 1,024 groups of 512 B, 16 pages per block, two of which hold metadata: eight groups hold the map. 64
    /// blocks of 14 groups of data with the literal translation, 16 of 56 with the striped one.
    pub fn small(translation: GroupTranslation) -> GroupsSpec {
        GroupsSpec {
            geometry: GroupGeometry {
                channels: 1,
                packages: 2,
                dies: 2,
                planes: 1,
                blocks: 16,
                pages: 16,
                page: Bytes::new(512),
            },
            reclaim: GroupReclaim { victim: GroupVictim::round_robin, reserve: 1, below: 3, moves: 4 },
            ..prototype(2, translation)
        }
    }
}
