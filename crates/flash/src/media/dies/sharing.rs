//! Commands on several planes of a die.

/// Which operations of a die's planes may share one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MultiPlane {
    /// None.
    Off,
    /// Same page number, any blocks.
    SamePage,
    /// Same block number and same page number.
    SameBlock,
}

/// How planes of a die come to share a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Which operations may.
    pub rule: MultiPlane,
    /// How many of the oldest reads of each other plane are looked at for a partner, at least one. Of anything else,
    /// only the oldest is.
    pub search: u32,
}
