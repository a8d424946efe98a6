//! Flash of page groups, which its accelerator governs itself: what the two firmware cores of FlashAbacus decide, without time.
//!
//! A **page group** is the pages of equal number in all planes of the dies of equal number on all channels: what one
//! request of an accelerator's core reads or writes. Its physical number is a position of the log. [`Flashvisor`] keeps
//! the map from logical to physical groups, hands out numbers to writes, and has the [range locks](locks) of mapped data
//! sections; [`Storengine`] writes metadata, dumps the map and reclaims blocks, as [steps](Step) that its caller performs.
//!
//! Where nothing else is said the source is "FlashAbacus: A Self-Governing Flash-Based Accelerator for Low-Power Systems"
//! (Zhang and Jung, EuroSys 2018), section 4.3. Readings of it that are *chosen*:
//!
//! * A **block** is what consecutive group numbers fill and what is erased as one: a block in each plane of a die on all
//!   channels with the literal [`translation`], such blocks of all dies with the striped one. The first two
//!   pages of each hold metadata, so that the numbers of their groups are skipped. They hold the entries of the block's
//!   groups, and so are programmed after them, when the block is full: data sheets want the pages of a block programmed in
//!   order, but the paper puts what is known last into the first pages. What a program costs does not depend on it.
//! * Each group's logical number and stamp also stand in its spare area, as in any page-mapped flash: without it a block
//!   that is being filled could not be recovered ([`recover`]).
//! * Storengine migrates to a block of its own, "the new block", and so does what it dumps.
//! * A dump writes groups of the map (64 KB of entries each) as groups of the log behind the logical space: the whole table, or
//!   those in which an entry has changed.
//! * Reclaim locks each range that it moves as a reader, if it is free at once, and moves it anyway if not: it never waits
//!   for a kernel, which may itself wait for free space. Where a kernel writes in between, the map keeps the kernel's group.
//!   A victim is erased when no kernel's read of it is under way any more. A snapshot of entries for a dump
//!   waits for its lock in line, and nothing that frees space waits for the snapshot.

mod counters;
mod durable;
mod flashvisor;
mod geometry;
pub mod locks;
mod map;
mod recovery;
mod space;
pub mod spec;
mod storengine;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod translation;
pub mod victim;

pub use counters::GroupCounters;
pub use durable::Durable;
pub use flashvisor::{Flashvisor, Write};
pub use geometry::{Layout, Place};
pub use recovery::{Recovery, recover};
pub use storengine::{Step, Storengine, Task};

use std::fmt;

/// A page group as a kernel addresses it: its byte address over the bytes of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Logical(pub u32);

/// A page group of flash: a position of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Physical(pub u32);

/// A request that the flash cannot serve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// An address behind the end of the flash.
    OutOfRange {
        /// The group.
        group: u32,
        /// Groups that can be addressed.
        groups: u32,
    },
    /// More data than the flash holds beside its metadata, its map and the blocks that it keeps free.
    Full {
        /// Groups of data wanted.
        data: u64,
        /// Groups of data that fit.
        capacity: u32,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::OutOfRange { group, groups } => {
                write!(f, "page group {group} is addressed, but the flash has {groups}")
            }
            GroupError::Full { data, capacity } => {
                write!(
                    f,
                    "{data} page groups of data, but {capacity} fit beside metadata, map and free blocks"
                )
            }
        }
    }
}

impl std::error::Error for GroupError {}
