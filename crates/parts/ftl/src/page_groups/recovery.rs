//! The map after a power cut, from what is on flash.
//!
//! The first metadata group of every block is read, and all of them where there are entries; blocks that were being filled
//! have none, and the spare areas of their groups are read instead. Of each group of the map the newest dump is loaded. Entries
//! of blocks that the dump has taken into account are passed over; of the rest the newest counts. Blocks in which nothing is
//! valid are erased. The blocks that were written to are closed as they are: their metadata may be half written, and cannot be
//! written again, so that their spare areas are read in a later recovery too.
//!
//! A cut in the middle of a reclaim may leave a group at its old and its new place. Both hold the same data; the old one counts,
//! so that the block that was opened for the reclaim is free again and it can begin anew, however often it is cut.

use super::Physical;
use super::durable::{Durable, Spare};
use super::flashvisor::Flashvisor;
use super::spec::GroupsSpec;
use config::SpecError;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What a recovery has read and done.
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
    /// Blocks erased, because nothing of them was valid.
    pub erases: u64,
}

/// Where a group may be, as its spare area says.
type Candidate = (Spare, Physical);

/// Whether the first copy counts rather than the second: it has later data, or it is what the second was made from.
fn counts(first: &Spare, second: &Spare) -> bool {
    (first.version, Reverse(first.made)) > (second.version, Reverse(second.made))
}

/// Brings the map back.
///
/// # Errors
/// What [`GroupsSpec::check`] finds; the spec is the one that the flash was written with.
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
        // The dump has taken it into account, and has not found it to be what its own entry was made from.
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
            // Erased: its first group says so.
            found.metadata += 1;
        }
    }
}

/// The newest dumps, and their entries that name what is still there.
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

/// Sets map, blocks and counts to what was found.
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
