//! Names that floors of the path to a drive share.

/// Bytes of a page of memory.
pub const PAGE: u64 = 4096;

/// A file of a file system, whoever has it open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Inode(pub u32);
