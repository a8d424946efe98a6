//! Commands on several planes of a die, and what an operation stands for.

use super::Backend;

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

/// What does the same at the same time as what is simulated, itself counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alike {
    /// Back ends, of which one is simulated.
    pub back_ends: u32,
    /// Pages of planes of a die, which one operation stands for.
    pub planes: u32,
}

impl Alike {
    /// Everything is simulated.
    pub(crate) const NONE: Alike = Alike { back_ends: 1, planes: 1 };

    /// Pages that an operation stands for.
    pub fn pages(self) -> u32 {
        self.back_ends * self.planes
    }
}

impl Backend {
    /// Each operation stands for others that do the same at the same time. Before [`Backend::set_energy`].
    pub fn set_alike(&mut self, alike: Alike) {
        self.alike = alike;
    }
}
