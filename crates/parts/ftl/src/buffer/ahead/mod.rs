//! Look-ahead: what is read into the buffer before anybody asks for it.

pub mod none;
pub mod sequential;

use std::ops::Range;

config::policies! {
    /// What the drive reads into its buffer before the host asks for it.
    pub family LookAheadPolicy: dyn LookAhead, context LookAheadContext {
        /// Nothing.
        default none => |_: &LookAheadContext| none::Never,
        /// What follows the reads of a stream.
        ///
        /// Read look-ahead as drives have had it since the first buffers (ATA command set, SET FEATURES, "read
        /// look-ahead"); detection and a window that grows with the run as in Linux's read-ahead (Wu et al.,
        /// "On the design of a new Linux readahead framework", ACM SIGOPS Operating Systems Review 42(5), 2008).
        sequential(sequential::Params) => |p: &sequential::Params, c: &LookAheadContext| sequential::Sequential::new(p, c.step),
    }
}

/// What a look-ahead policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct LookAheadContext {
    /// Bytes that are read from flash as one: a page, or a map unit if that is larger.
    pub step: u64,
}

/// Decides what is read ahead.
///
/// Contract: called once for each read command, in the order in which the controller begins them; the answer begins at
/// the end of the command or behind it, and is not empty. It may lie beyond the end of the drive: the device cuts it. No
/// call costs more than O(streams) or allocates. What `load` has read back decides like what `save` wrote.
pub trait LookAhead {
    /// The host reads the bytes from `start` to `end`: the bytes that are to be read ahead now.
    fn reads(&mut self, start: u64, end: u64) -> Option<Range<u64>>;
    /// Whether the answer is always nothing.
    fn is_off(&self) -> bool {
        false
    }
    /// Appends the policy's state, parameters apart.
    fn save(&self, out: &mut Vec<u8>);
    /// Replaces the state by one that a policy with the same parameters saved; `None`, and no change, if it is cut
    /// short or malformed.
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
