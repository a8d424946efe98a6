//! Admission: which data read from flash enters the buffer.

pub mod always;
pub mod second_touch;
pub mod writes_only;

use proto::Lpn;

config::policies! {
    /// Which data read from flash enters the buffer.
    pub family AdmissionPolicy: dyn Admission, context () {
        /// All data read from flash.
        default always => |_: &()| always::Always::new(),
        /// No data read from flash: the buffer is for written data.
        writes_only => |_: &()| writes_only::WritesOnly::new(),
        /// Data missed a second time while its address is remembered.
        second_touch(second_touch::Params) => |p: &second_touch::Params, _: &()| second_touch::SecondTouch::new(p.ghosts),
    }
}

/// Decides whether a unit that was read from flash takes a line.
///
/// Contract: called once for each read from flash of a unit without a line, when the data arrives; never for a unit
/// with a line, nor for written data. Admission does not guarantee room. No call costs more than O(1), or allocates
/// once the policy's tables are full. After `load`, the policy decides as it would have at `save`.
pub trait Admission {
    /// Returns whether the unit may enter.
    fn admit(&mut self, lpn: Lpn) -> bool;
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
        config::policy::check_family::<AdmissionPolicy>().expect("the list is whole");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut rng = engine::Rng::stream(1, "test");
        for family in AdmissionPolicy::all_defaults() {
            let mut policy = family.build(&());
            for _ in 0..1_000 {
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&());
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                let unit = Lpn(rng.below(100));
                assert_eq!(copy.admit(unit), policy.admit(unit), "{}", family.name());
                policy = copy;
            }
        }
    }
}
