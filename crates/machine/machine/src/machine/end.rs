//! How a run ends.

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All work was done.
    Done,
    /// Somebody asked it to stop.
    Interrupted,
    /// Nothing is pending, but work is left.
    Deadlock,
    /// Time does not move any more.
    Stall,
    /// Time moves, and work that is under way has not advanced for an hour of it.
    Standstill,
    /// A source failed.
    Failed,
    /// Simulated time has come to the end of the clock.
    Horizon,
    /// The time is over that the run was given.
    Until,
}
