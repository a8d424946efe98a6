//! Page tables: where a walk finds a translation, and what it costs.

pub mod block;
pub mod radix;

use config::SpecError;

/// Bytes of an entry of a table in memory.
pub const ENTRY: u64 = 8;

config::policies! {
    /// The form of the page table.
    pub family PageTable: dyn Table, context () {
        /// Levels of tables in memory, each a page of entries; a walk reads one entry of every level that the walk
        /// cache lacks.
        default radix(radix::Params) => |p: &radix::Params, _: &()| radix::Radix::new(p),
        /// One table with an entry for a group of flash blocks, in a buffer of the unit itself: a look-up reads no memory.
        block(block::Params) => |p: &block::Params, _: &()| block::Block::new(p),
    }
}

impl PageTable {
    /// Whether the table can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table `mmu`.
    pub fn check(&self) -> Result<(), SpecError> {
        match self {
            PageTable::radix(params) => params.check(),
            PageTable::block(params) => params.check(),
        }
    }
}

/// What a walk does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Cycles that the unit itself works first.
    pub cycles: u32,
    /// Entries found in the walk cache on the way.
    pub cached: u32,
    /// Address of the entry that is read from memory then; none if the walk has ended.
    pub read: Option<u64>,
}

/// A page table without time: what a walk costs, and where the tables lie.
///
/// Contract: a walk is a sequence of calls of [`Table::step`], the first with `level` zero, each further one after the
/// answer to the read before, with the level left behind by the call before; it ends with a step that reads nothing,
/// after at most 16 reads. Reads lie in `[base, end)` of the latest [`Table::lay_out`]. No call of `step` allocates.
pub trait Table {
    /// Bytes that one translation covers: at least one flash and allocation page.
    fn reach(&self) -> u64;
    /// Bytes of virtual addresses that one application can have at most.
    fn span(&self) -> u64;
    /// Puts the tables of applications with so many pages each (in the order of their numbers) at `base`; returns the
    /// end of the memory they take: `base` if they take none.
    fn lay_out(&mut self, pages: &[u64], base: u64) -> u64;
    /// Bytes of all tables, in memory or not.
    fn bytes(&self) -> u64;
    /// The next step of a walk for a page.
    fn step(&mut self, app: u8, page: u64, level: &mut u8) -> Step;
}
