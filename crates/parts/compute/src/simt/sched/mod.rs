//! Warp schedulers: which ready warp of a multiprocessor issues next.

pub mod greedy_then_oldest;
pub mod loose_round_robin;
pub mod two_level;

/// Set of warps of one multiprocessor: bit `n` is the warp in slot `n`.
pub type Warps = u128;

/// View for a warp scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpView {
    /// Warps whose next instruction can be issued in this cycle.
    pub ready: Warps,
    /// Warps with a long wait: for a value from global memory, or for the other warps of their block.
    pub far: Warps,
}

config::policies! {
    /// Ready warp that a multiprocessor issues from next.
    pub family WarpScheduling: dyn WarpScheduler, context () {
        /// Next ready warp after the one that issued last, in the order of slots.
        default loose_round_robin => loose_round_robin::LooseRoundRobin::new,
        /// Warp that issued last as long as it is ready, then the oldest.
        ///
        /// Cache-conscious wavefront scheduling (Rogers et al., MICRO 2012) names it GTO.
        greedy_then_oldest => greedy_then_oldest::GreedyThenOldest::new,
        /// Round robin among a few active warps; an active warp that waits for memory or a barrier is replaced.
        ///
        /// Two-level scheduling (Gebhart et al., ISCA 2011; Narasiman et al., MICRO 2011).
        two_level(two_level::Params) => two_level::TwoLevel::new,
    }
}

/// Scheduler of the ready warps of one multiprocessor.
///
/// Contract: the answer is one of the view's ready warps. A scheduler may decline, but not when every warp that has
/// entered and not left is ready or far. Asked again with the same view right after declining, it declines again. No
/// call allocates once as many warps as slots have entered.
pub trait WarpScheduler {
    /// Notes that a warp begins in a slot.
    fn enter(&mut self, slot: u32);
    /// Notes that the warp in a slot has issued its last instruction.
    fn leave(&mut self, slot: u32);
    /// Picks the warp that issues next.
    fn pick(&mut self, view: &WarpView) -> Option<u32>;
}

/// Warps of a set, lowest slot first.
#[inline]
pub fn slots(mut warps: Warps) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (warps != 0).then(|| warps.trailing_zeros())?;
        warps &= warps - 1;
        Some(slot)
    })
}

/// First warp of a set at or after `from`, cyclically.
#[inline]
fn next_from(warps: Warps, from: u32) -> Option<u32> {
    let behind = warps & (Warps::MAX.checked_shl(from).unwrap_or(0));
    let chosen = if behind != 0 { behind } else { warps };
    (chosen != 0).then(|| chosen.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<WarpScheduling>().expect("the list is whole");
    }

    #[test]
    fn every_scheduler_answers_a_ready_warp_and_one_when_all_are_ready_or_far() {
        let mut rng = engine::Rng::stream(3, "schedulers");
        let draw = |rng: &mut engine::Rng| Warps::from(rng.next_u64()) << 64 | Warps::from(rng.next_u64());
        for family in WarpScheduling::all_defaults() {
            let mut policy = family.build(&());
            let mut live: Warps = 0;
            for _ in 0..3_000 {
                let slot = rng.below(128) as u32;
                match live >> slot & 1 {
                    0 => policy.enter(slot),
                    _ => policy.leave(slot),
                }
                live ^= 1 << slot;
                let ready = live & draw(&mut rng) & draw(&mut rng);
                let far = live & !ready & draw(&mut rng);
                let view = WarpView { ready, far };
                let picked = policy.pick(&view);
                assert!(picked.is_none_or(|slot| ready >> slot & 1 == 1), "{}", family.name());
                if picked.is_none() {
                    assert_eq!(policy.pick(&view), None, "{}", family.name());
                }
                let settled = WarpView { ready, far: live & !ready };
                assert_eq!(policy.pick(&settled).is_some(), ready != 0, "{}", family.name());
            }
        }
    }

    fn picks(policy: &mut dyn WarpScheduler, ready: &[Warps]) -> Vec<Option<u32>> {
        ready.iter().map(|ready| policy.pick(&WarpView { ready: *ready, far: 0 })).collect()
    }

    fn with_warps(family: &WarpScheduling, slots: &[u32]) -> Box<dyn WarpScheduler> {
        let mut policy = family.build(&());
        for slot in slots {
            policy.enter(*slot);
        }
        policy
    }

    #[test]
    fn loose_round_robin_goes_on_behind_the_last() {
        let mut policy = with_warps(&WarpScheduling::loose_round_robin, &[0, 1, 2, 127]);
        let top = 1 << 127;
        let ready = [0b111 | top, 0b111, 0b011, 0b111 | top, 0b100 | top, 0b100 | top, 0b111];
        let slots = [Some(0), Some(1), Some(0), Some(1), Some(2), Some(127), Some(0)];
        assert_eq!(picks(policy.as_mut(), &ready), slots);
    }

    #[test]
    fn greedy_stays_until_it_stalls_and_then_takes_the_oldest() {
        // Slot 2 is the oldest, then 0, then 1.
        let mut policy = with_warps(&WarpScheduling::greedy_then_oldest, &[2, 0, 1]);
        let ready = [0b011, 0b111, 0b110, 0b111, 0, 0b111, 0b010];
        let slots = [Some(0), Some(0), Some(2), Some(2), None, Some(2), Some(1)];
        assert_eq!(picks(policy.as_mut(), &ready), slots);
        // A warp that begins in the slot of the greedy one is the youngest.
        policy.leave(1);
        policy.enter(1);
        assert_eq!(picks(policy.as_mut(), &[0b011]), [Some(0)]);
    }

    #[test]
    fn two_levels_exchange_who_waits_for_memory() {
        let family = WarpScheduling::two_level(two_level::Params { active: 2 });
        let mut policy = with_warps(&family, &[0, 1, 2, 3]);
        let mut pick = |ready, far| policy.pick(&WarpView { ready, far });
        // 0 and 1 are active; 2 is ready and has no place.
        assert_eq!((pick(0b1111, 0), pick(0b1111, 0), pick(0b1111, 0)), (Some(0), Some(1), Some(0)));
        assert_eq!(pick(0b1100, 0), None);
        // 1 waits for memory: 2 takes its place, round robin goes on behind 0.
        assert_eq!((pick(0b1101, 0b0010), pick(0b1101, 0b0010)), (Some(2), Some(0)));
        // 1 is back, and behind 3, which takes the place of 0.
        assert_eq!((pick(0b1010, 0b0001), pick(0b1010, 0b0001)), (Some(3), Some(3)));
        // 2 has ended: 1 comes before 0.
        policy.leave(2);
        assert_eq!(policy.pick(&WarpView { ready: 0b0011, far: 0 }), Some(1));
    }
}
