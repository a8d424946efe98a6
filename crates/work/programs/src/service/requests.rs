//! Requests to a map, and the keys that it is loaded with.

use requests::synth::Stream;

use crate::program::Key;

/// Keys `0..n` may be asked for; of each [`TOGETHER`] the last is not there at first, so that inserts find room and keys come
/// and go around a steady number.
const TOGETHER: u64 = 16;

/// Whether a key is there at first.
pub(crate) fn loaded(key: u64) -> bool {
    key % TOGETHER != TOGETHER - 1
}

/// How many of the keys `0..n` are there at first.
pub(crate) fn loaded_below(n: u64) -> u64 {
    n - n / TOGETHER
}

/// The key that is number `q` of those that are there at first.
pub(crate) fn loaded_key(q: u64) -> u64 {
    q / (TOGETHER - 1) * TOGETHER + q % (TOGETHER - 1)
}

/// What a job asks of a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// The value of a key.
    Look,
    /// To set it, whether or not it is there.
    Insert,
    /// To remove it.
    Delete,
}

/// Share of lookups. "Limited write traffic" is all that AstriFlash (section V-A) says of its mix.
pub(crate) const LOOKUPS: Key = Key {
    name: "lookups",
    what: "percent of the jobs that look a key up; half of the others insert, half delete",
    default: "90",
};

/// Draws what a job wants.
pub(crate) fn want(lookups: u64, stream: &mut Stream) -> Want {
    if stream.below(100) < lookups {
        Want::Look
    } else if stream.below(2) == 0 {
        Want::Insert
    } else {
        Want::Delete
    }
}
