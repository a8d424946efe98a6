//! Replacement: the choice of the line of a set to evict.

pub mod fifo;
pub mod lru;
pub mod random;
pub mod srrip;
pub mod tree_plru;

use engine::Snapshot;

/// Context of a replacement policy: its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    /// Number of sets.
    pub sets: u32,
    /// Ways per set.
    pub ways: u32,
    /// Seed of the cache's own random stream.
    pub seed: u64,
}

config::policies! {
    /// Replacement policy: the line of a cache set that is evicted for a new one.
    pub family ReplacementPolicy: dyn Replacement, context Places {
        /// Least recently used first.
        default lru => |places: &Places| lru::Lru::new(places.sets, places.ways),
        /// First in, first out: uses do not matter.
        fifo => |places: &Places| fifo::Fifo::new(places.sets, places.ways),
        /// A line drawn at random.
        random => |places: &Places| random::Random::new(places.ways, places.seed),
        /// Binary tree of bits over the ways, each pointing away from the half used last.
        ///
        /// Common hardware approximation of LRU.
        tree_plru => |places: &Places| tree_plru::TreePlru::new(places.sets, places.ways),
        /// Static re-reference interval prediction with two bits per line.
        ///
        /// SRRIP-HP (Jaleel, Theobald, Steely and Emer, ISCA 2010): a new line is expected to be reused after a long
        /// time, a used line soon; the line expected latest is evicted. A scan does not evict used lines.
        srrip => |places: &Places| srrip::Srrip::new(places.sets, places.ways),
    }
}

/// Chooses the way of a set to evict.
///
/// Contract: `victim` returns a way for which `may` holds, whenever there is one; it changes nothing. No call
/// allocates, none costs more than O(ways).
pub trait Replacement {
    /// Notes that a line has been put into a way: an empty one, or the last `victim` of the set.
    fn enter(&mut self, set: u32, way: u32);
    /// Notes a use of the line of a way.
    fn touch(&mut self, set: u32, way: u32);
    /// Notes that the line of a way has left without a replacement.
    fn leave(&mut self, set: u32, way: u32);
    /// Returns the way to evict, among those for which `may` holds.
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32>;
    /// Appends the policy's state.
    fn save(&self, out: &mut Vec<u8>);
    /// Loads the saved state of a policy of as many ways from the front of `input`; `None` if it is malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// Maximum clock of a loaded policy: no run gets from here to the end of 64 bits.
const CLOCK_MAX: u64 = 1 << 62;

/// Takes as many values from the front as `known` has.
fn as_many<T: Snapshot>(known: &[T], input: &mut &[u8]) -> Option<Vec<T>> {
    Vec::load(input).filter(|loaded: &Vec<T>| loaded.len() == known.len())
}

#[cfg(test)]
mod tests {
    // Tests of every policy against its contract, and helpers that compare a policy with a naive reference.
    use super::*;
    use proptest::prelude::*;

    /// Input of a policy, on one set of `ways`.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// Touches a full way.
        Touch(u32),
        /// Empties a way.
        Leave(u32),
        /// Fills an empty way, or one of those in the mask.
        Enter(u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => any::<u32>().prop_map(Step::Touch),
            1 => any::<u32>().prop_map(Step::Leave),
            4 => any::<u32>().prop_map(Step::Enter),
        ];
        prop::collection::vec(step, 1..80)
    }

    /// Model of one set in the terms of a policy's paper; chooses among the ways in `mask`, all of which are full. Each
    /// policy's file has its own.
    pub(super) trait Reference {
        fn enter(&mut self, way: u32);
        fn touch(&mut self, way: u32);
        fn victim(&mut self, mask: u32) -> u32;
    }

    /// Ways in the order of their last use or, with `stays`, of their entry.
    pub(super) struct List {
        pub(super) order: Vec<u32>,
        pub(super) stays: bool,
    }

    impl Reference for List {
        fn enter(&mut self, way: u32) {
            self.order.retain(|w| *w != way);
            self.order.push(way);
        }
        fn touch(&mut self, way: u32) {
            if !self.stays {
                self.enter(way);
            }
        }
        fn victim(&mut self, mask: u32) -> u32 {
            *self.order.iter().find(|w| mask >> **w & 1 == 1).expect("a full way")
        }
    }

    /// Plays random steps with a policy and, for each number of ways, with its reference. A policy that treats empty
    /// ways as more than a place to fill handles them in `empties`: references do not know empty ways.
    pub(super) fn decides_as<R: Reference>(
        policy: &ReplacementPolicy,
        empties: bool,
        reference: impl Fn(u32) -> R,
    ) {
        let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(200));
        let played = runner.run(&(1..9u32, steps()), |(ways, mut steps)| {
            steps.retain(|step| !(empties && matches!(step, Step::Leave(_))));
            play(policy, ways, &steps, Some(reference(ways)))
        });
        played.unwrap_or_else(|fault| panic!("{}: {fault}", policy.name()));
    }

    /// Plays the steps on the second of two sets.
    fn play(
        policy: &ReplacementPolicy,
        ways: u32,
        steps: &[Step],
        mut naive: Option<impl Reference>,
    ) -> Result<(), TestCaseError> {
        let mut tested = policy.build(&Places { sets: 2, ways, seed: 3 });
        let all = u32::MAX >> (32 - ways);
        let mut full = 0u32;
        for step in steps {
            match *step {
                Step::Touch(draw) if full >> (draw % ways) & 1 == 1 => {
                    tested.touch(1, draw % ways);
                    naive.iter_mut().for_each(|naive| naive.touch(draw % ways));
                }
                Step::Leave(draw) if full >> (draw % ways) & 1 == 1 => {
                    tested.leave(1, draw % ways);
                    full &= !(1 << (draw % ways));
                }
                Step::Touch(_) | Step::Leave(_) => {}
                Step::Enter(mask) => {
                    let way = if full != all {
                        (!full).trailing_zeros()
                    } else {
                        let may = |way: u32| mask >> way & 1 == 1;
                        let victim = tested.victim(1, &may);
                        prop_assert_eq!(tested.victim(1, &may), victim, "asking changes nothing");
                        prop_assert_eq!(victim.is_some(), mask & all != 0);
                        let Some(way) = victim else { continue };
                        prop_assert!(may(way) && way < ways);
                        if let Some(naive) = &mut naive {
                            prop_assert_eq!(way, naive.victim(mask & all));
                        }
                        way
                    };
                    full |= 1 << way;
                    tested.enter(1, way);
                    naive.iter_mut().for_each(|naive| naive.enter(way));
                }
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn every_policy_keeps_its_contract(ways in 1..9u32, steps in steps()) {
            for policy in ReplacementPolicy::all_defaults() {
                play(&policy, ways, &steps, None::<List>)?;
            }
        }
    }

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<ReplacementPolicy>().expect("the list is whole");
    }
}
