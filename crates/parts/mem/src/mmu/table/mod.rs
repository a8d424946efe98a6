//! Page tables: the steps of a walk, and their cost.

pub mod block;
pub mod radix;

use config::SpecError;

/// Size of an entry of a table in memory, in bytes.
pub const ENTRY: u64 = 8;

config::policies! {
    /// Form of the page table.
    pub family PageTable: dyn Table, context () {
        /// Levels of tables in memory, each a page of entries; a walk reads one entry of every level that misses in the
        /// walk cache.
        default radix(radix::Params) => |p: &radix::Params, _: &()| radix::Radix::new(p),
        /// Single table with an entry for a group of flash blocks, in a buffer of the unit itself: a look-up reads no
        /// memory.
        block(block::Params) => |p: &block::Params, _: &()| block::Block::new(p),
    }
}

impl PageTable {
    /// Checks that the table can be built.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to the table `mmu`.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            PageTable::radix(params) => params.check(),
            PageTable::block(params) => params.check(),
        }
    }
}

/// Next step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Cycles of the unit's own work before the read.
    pub cycles: u32,
    /// Entries found in the walk cache on the way.
    pub cached: u32,
    /// Address of the entry to read from memory then; `None` if the walk has ended.
    pub read: Option<u64>,
}

/// Page table without time: the cost of a walk, and the location of the tables.
///
/// Contract: a walk is a sequence of calls of [`Table::step`], the first with `level` zero. Each further call follows
/// the answer to the previous read, with the level left by the previous call. The walk ends with a step that reads
/// nothing, after at most 16 reads. Reads are in `[base, end)` of the latest [`Table::lay_out`]. No call of `step`
/// allocates.
pub trait Table {
    /// Size of the range that one translation covers, in bytes: at least one flash and allocation page.
    fn reach(&self) -> u64;
    /// Maximum virtual address space of one application, in bytes.
    fn span(&self) -> u64;
    /// Puts the tables of applications with `pages` pages each (by application number) at `base`; returns the end of
    /// the memory they take, `base` if none.
    fn lay_out(&mut self, pages: &[u64], base: u64) -> u64;
    /// Size of all tables in bytes, in memory or not.
    fn bytes(&self) -> u64;
    /// Returns the next step of a walk for a page.
    fn step(&mut self, app: u8, page: u64, level: &mut u8) -> Step;
}
