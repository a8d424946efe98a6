//! A page among dies and planes.

/// Where an operation works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// Die.
    pub die: u32,
    /// Plane in the die.
    pub plane: u8,
    /// Block in the plane.
    pub block: u32,
    /// Page in the block.
    pub page: u32,
}
