//! Replacement: which line of a set makes room.

mod lru;

config::policies! {
    /// Which line of a cache set makes room for another.
    pub family ReplacementPolicy = "l2.replacement": dyn Replacement, context (u32, u32) {
        /// Least recently used first.
        default lru => |shape: &(u32, u32)| lru::Lru::new(shape.0, shape.1),
    }
}

/// Chooses the way of a set that makes room. The context of the family is the number of sets and of ways.
///
/// Contract: `victim` answers a way for which `may` holds, and one whenever there is one; it changes nothing. No call
/// allocates, none costs more than O(ways).
pub trait Replacement {
    /// A line has been put into a way.
    fn enter(&mut self, set: u32, way: u32);
    /// The line of a way has been used.
    fn touch(&mut self, set: u32, way: u32);
    /// The way that makes room, among those for which `may` holds.
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32>;
}
