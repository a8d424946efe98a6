//! Replacement: which line of a set makes room.

pub mod fifo;
pub mod lru;
pub mod random;
pub mod srrip;
#[cfg(test)]
mod tests;
pub mod tree_plru;

use engine::Snapshot;

/// What a replacement policy knows of its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Sets.
    pub sets: u32,
    /// Ways a set.
    pub ways: u32,
    /// Seed of the cache's own random stream.
    pub seed: u64,
}

config::policies! {
    /// Which line of a cache set makes room for another.
    pub family ReplacementPolicy: dyn Replacement, context Places {
        /// Least recently used first.
        default lru => |places: &Places| lru::Lru::new(places.sets, places.ways),
        /// First in, first out: use does not matter.
        fifo => |places: &Places| fifo::Fifo::new(places.sets, places.ways),
        /// A line drawn at random.
        random => |places: &Places| random::Random::new(places.ways, places.seed),
        /// A binary tree of bits over the ways, each pointing away from the half that was used last.
        ///
        /// What hardware builds instead of the full order of use.
        tree_plru => |places: &Places| tree_plru::TreePlru::new(places.sets, places.ways),
        /// Static re-reference interval prediction with two bits a line.
        ///
        /// SRRIP-HP (Jaleel, Theobald, Steely and Emer, ISCA 2010): a new line is expected to be used again after a long
        /// time, a line that has been used soon; the line expected latest goes. A scan does not push used lines out.
        srrip => |places: &Places| srrip::Srrip::new(places.sets, places.ways),
    }
}

/// Chooses the way of a set that makes room.
///
/// Contract: `victim` answers a way for which `may` holds, and one whenever there is one; it changes nothing. No call
/// allocates, none costs more than O(ways).
pub trait Replacement {
    /// A line has been put into a way: an empty one, or the one that the last `victim` of the set answered.
    fn enter(&mut self, set: u32, way: u32);
    /// The line of a way has been used.
    fn touch(&mut self, set: u32, way: u32);
    /// The line of a way has left without another taking its place.
    fn leave(&mut self, set: u32, way: u32);
    /// The way that makes room, among those for which `may` holds.
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32>;
    /// Appends what it knows.
    fn save(&self, out: &mut Vec<u8>);
    /// Takes what was saved of a policy of as many ways off the front of `input`; `None` if that is malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// The end of the clock of a policy that is loaded: no run comes from here to the end of 64 bits.
const CLOCK_MAX: u64 = 1 << 62;

/// Takes as many values off the front as there were.
fn as_many<T: Snapshot>(known: &[T], input: &mut &[u8]) -> Option<Vec<T>> {
    Vec::load(input).filter(|loaded: &Vec<T>| loaded.len() == known.len())
}
