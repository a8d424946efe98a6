//! Look-ahead: data read into the buffer before it is requested.

pub mod none;
pub mod sequential;

use std::ops::Range;

config::policies! {
    /// Which data the drive reads into its buffer before the host asks for it.
    pub family LookAheadPolicy: dyn LookAhead, context LookAheadContext {
        /// Nothing.
        default none => |_: &LookAheadContext| none::Never,
        /// Data that follows the reads of a stream.
        ///
        /// Read look-ahead as drives have had it since the first buffers (ATA command set, SET FEATURES, "read
        /// look-ahead"); detection and a window that grows with the run as in Linux's read-ahead (Wu et al.,
        /// "On the design of a new Linux readahead framework", ACM SIGOPS Operating Systems Review 42(5), 2008).
        sequential(sequential::Params) => |p: &sequential::Params, c: &LookAheadContext| sequential::Sequential::new(p, c.step),
    }
}

/// Context from which a look-ahead policy is built.
#[derive(Clone, Copy, Debug)]
pub struct LookAheadContext {
    /// Bytes read from flash at once: a page, or a map unit if that is larger.
    pub step: u64,
}

/// Decides which data to read ahead.
///
/// Contract: called once for each read command, in the order in which the controller begins them. The answer starts at
/// the end of the command or later, and is not empty. It may extend beyond the end of the drive: the device truncates
/// it. No call costs more than O(streams) or allocates. After `load`, the policy decides as it would have at `save`.
pub trait LookAhead {
    /// Handles a host read of the bytes from `start` to `end`; returns the bytes to read ahead now.
    fn reads(&mut self, start: u64, end: u64) -> Option<Range<u64>>;
    /// Returns whether the policy never reads ahead.
    fn is_off(&self) -> bool {
        false
    }
    /// Appends the policy's state, without parameters.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores the state that a policy with the same parameters saved; `None`, and no change, if it is truncated or
    /// malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<LookAheadPolicy>().expect("the list is whole");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut rng = engine::Rng::stream(1, "test");
        let context = LookAheadContext { step: 16384 };
        for family in LookAheadPolicy::all_defaults() {
            let mut policy = family.build(&context);
            let mut ends = [0u64; 12];
            let mut answers = 0;
            for _ in 0..2_000 {
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&context);
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                let stream = rng.below(12) as usize;
                let start = if rng.below(4) == 0 { rng.below(1 << 30) * 512 } else { ends[stream] };
                ends[stream] = start + 512 * (1 + rng.below(64));
                let ahead = policy.reads(start, ends[stream]);
                assert_eq!(copy.reads(start, ends[stream]), ahead, "{}", family.name());
                assert!(ahead.as_ref().is_none_or(|a| a.start >= ends[stream] && a.end > a.start));
                answers += u32::from(ahead.is_some());
                policy = copy;
            }
            assert_eq!(answers == 0, policy.is_off(), "{}", family.name());
        }
    }
}
