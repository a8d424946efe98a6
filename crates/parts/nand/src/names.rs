//! Names of records in slabs and lists.

/// No record: the end of a list, nobody.
pub const NONE: u32 = u32::MAX;
