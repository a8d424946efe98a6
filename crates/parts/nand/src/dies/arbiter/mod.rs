//! Channel arbitration: which die gets a channel next.

pub mod command_first;
pub mod data_first;
pub mod fifo;

use super::op::{NO_OP, Op, OpKind};

/// Reason for which a die requests the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Want {
    /// Takes the command of a read.
    Read,
    /// Takes a different command without data: an erase, a copy-back, a program of data in a register.
    Command,
    /// Hands out the data of a read.
    DataOut,
    /// Takes a program with its data.
    DataIn,
}

impl Want {
    /// All reasons.
    pub const ALL: [Want; Want::COUNT] = [Want::Read, Want::Command, Want::DataOut, Want::DataIn];
    /// Number of reasons.
    pub const COUNT: usize = 4;

    /// Returns the first reason of an operation.
    #[inline]
    pub fn of(op: &Op) -> Want {
        match op.kind {
            OpKind::Read => Want::Read,
            OpKind::Program if op.register == NO_OP => Want::DataIn,
            OpKind::Program => Want::Command,
            OpKind::Erase | OpKind::CopyBack => Want::Command,
        }
    }
}

/// Longest-waiting request of each kind: its position in the order of arrival, if any.
pub type Heads = [Option<u64>; Want::COUNT];

config::policies! {
    /// Which of the dies that wait for a channel gets it next.
    pub family Arbitration: dyn Arbiter, context () {
        /// Commands go before data: those of reads first, then those of erases and copy-backs, then data in order of
        /// arrival.
        ///
        /// Controllers do this because a command holds the channel for a fraction of a microsecond and starts an array,
        /// while a page of data holds it for microseconds. The firmware of Cosmos+ OpenSSD goes through read triggers,
        /// then erases, then transfers at each turn of a channel.
        default command_first => command_first::CommandFirst::new,
        /// First come, first served.
        fifo => fifo::Fifo::new,
        /// Read data goes out before commands go in, so that dies become free.
        ///
        /// MQSim's ONFI back end does this.
        data_first => data_first::DataFirst::new,
    }
}

/// Chooses among the dies that wait for one channel.
///
/// Contract: a pure decision; the answer is a kind that has a head; at least one has. After `load`, the policy decides
/// as it would have at `save`.
pub trait Arbiter {
    /// Returns the kind whose head gets the channel.
    fn pick(&mut self, heads: &Heads) -> Want;
    /// Appends the policy's own state, without parameters.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Restores the state that a policy with the same parameters saved; `None` if it is truncated or malformed.
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

/// Returns the one of the given kinds whose head came first.
pub(crate) fn first_come(heads: &Heads, among: &[Want]) -> Option<Want> {
    among.iter().copied().filter(|w| heads[*w as usize].is_some()).min_by_key(|w| heads[*w as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<Arbitration>().expect("the list is whole");
    }

    #[test]
    fn commands_go_first_and_data_keeps_its_order() {
        // Positions in the order of arrival of a read, an erase, data out and data in; the expected winner.
        let mut policy = Arbitration::default().build(&());
        for (heads, expected) in [
            ([Some(9), Some(8), Some(1), Some(2)], Want::Read),
            ([None, Some(8), Some(1), Some(2)], Want::Command),
            ([None, None, Some(1), Some(2)], Want::DataOut),
            ([None, None, Some(3), Some(2)], Want::DataIn),
        ] {
            assert_eq!(policy.pick(&heads), expected, "{heads:?}");
        }
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut rng = engine::Rng::stream(1, "test");
        for family in Arbitration::all_defaults() {
            let mut policy = family.build(&());
            for _ in 0..200 {
                // One kind waits, others may.
                let must = rng.below(Want::COUNT as u64) as usize;
                let heads: Heads = std::array::from_fn(|want| {
                    let place = rng.below(1000);
                    (want == must || place.is_multiple_of(2)).then_some(place)
                });
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&());
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                let want = policy.pick(&heads);
                assert_eq!(copy.pick(&heads), want, "{}", family.name());
                assert!(heads[want as usize].is_some(), "{}", family.name());
                policy = copy;
            }
        }
    }
}
