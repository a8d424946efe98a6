//! Eviction: which clean line makes room, which dirty line is written back next.

mod aged;
pub mod cflru;
pub mod fifo;
pub mod lru;

config::policies! {
    /// Which clean line of the buffer makes room, and which dirty line is flushed next.
    pub family EvictionPolicy: dyn Eviction, context () {
        /// Least recently used first.
        default lru => |_: &()| lru::Lru::new(),
        /// First in, first out: use does not matter.
        fifo => |_: &()| fifo::Fifo::new(),
        /// Clean lines first, within a window of the least recently used end.
        ///
        /// CFLRU (Park et al., CASES 2006): evicting a clean line costs no program.
        cflru(cflru::Params) => |p: &cflru::Params, _: &()| cflru::Cflru::new(p.window.max(1)),
    }
}

/// What a line of the buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Only data that flash holds too.
    Clean,
    /// Data that flash does not hold, and no flush of it is under way.
    Dirty,
    /// A flush is under way, whether or not the line has been written again since it began.
    Flushing,
}

/// Chooses the line to give up and the line to flush.
///
/// A policy gives two orders: of the clean lines, for eviction, and of the dirty lines, for flushing. Lines are
/// numbers below the buffer's capacity; the buffer reports every change.
///
/// Contract:
/// * [`Eviction::evict`] and [`Eviction::flush`] only choose; the line changes when the buffer reports it. Asked
///   again without a report in between, they answer the same.
/// * `evict` answers a line whose last reported state is clean. It may decline, although some line is clean, when its
///   order puts a dirty or flushing line before every clean one: what needs the room then waits for a flush. It must
///   not decline when every line is clean.
/// * `flush` answers a line whose last reported state is dirty, and one whenever there is one.
/// * No call costs more than O(log lines), amortised; none allocates once every line has been used.
/// * What `load` has read back decides like what `save` wrote.
pub trait Eviction {
    /// A line has been taken for a unit: its first use counts as a touch.
    fn enter(&mut self, line: u32, state: LineState);
    /// The host has read or written a line again.
    fn touch(&mut self, line: u32);
    /// A line has gone over to another state.
    fn turn(&mut self, line: u32, state: LineState);
    /// A line has been vacated.
    fn leave(&mut self, line: u32);
    /// The clean line to give up.
    fn evict(&mut self) -> Option<u32>;
    /// The dirty line to flush next.
    fn flush(&mut self) -> Option<u32>;
    /// Appends the policy's state, parameters apart.
    fn save(&self, out: &mut Vec<u8>);
    /// Replaces the state by one that a policy with the same parameters saved; `None`, and no change, if it is cut
    /// short or malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}
