//! Garbage collection: the choice of the next victim.

pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod greedy;
pub mod marginal_gain;
pub mod random;
pub mod windowed;

pub use super::closed::{PoolView, VictimView};

/// Chooses the reclaim unit that garbage collection reclaims next.
///
/// Contract: a pure decision over the view plus the policy's own state; the answer is one of the closed units of the
/// view, which is never empty; no call costs more than the view's iterators allow, and none walks all closed units.
/// After `load`, the policy decides as it would have at `save`.
pub trait Victim {
    /// Returns the unit to reclaim, by number in the group. `None` if the policy wants to wait.
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32>;
    /// Returns whether the policy uses the pools of placements ([`VictimView::pools`]).
    fn weighs_pools(&self) -> bool {
        false
    }
    /// Appends the policy's own state, without parameters.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Restores the state that a policy with the same parameters saved; `None` if it is truncated or malformed.
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

/// Context from which a victim policy is built.
#[derive(Clone, Debug)]
pub struct VictimContext {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the device, for named random streams.
    pub device: String,
}

config::policies! {
    /// Which closed reclaim unit garbage collection reclaims next.
    pub family VictimPolicy: dyn Victim, context VictimContext {
        /// Fewest valid map units first.
        ///
        /// Among equals, the unit unchanged for longest. Optimal for uniform random writes; with skewed writes it
        /// collects cold blocks too late (Desnoyers, ACM TOS 10(2), 2014).
        default greedy => greedy::Greedy::new,
        /// Most space gained for the data moved, weighted with the age of the data.
        ///
        /// Maximises `age * (1 - u) / 2u` with `u` the valid share (Rosenblum and Ousterhout, ACM TOCS 10(1), 1992;
        /// Kawaguchi, Nishioka and Motoda, USENIX 1995). Age counts map units written since the unit was closed.
        cost_benefit => cost_benefit::CostBenefit::new,
        /// The unit that was closed first.
        fifo => fifo::Fifo::new,
        /// Any closed unit, uniformly.
        random => random::Random::new,
        /// The best of a few units drawn at random.
        ///
        /// Van Houdt, SIGMETRICS 2013: ten draws are close to greedy.
        d_choices(d_choices::Params) => d_choices::DChoices::new,
        /// The best of the oldest few units.
        ///
        /// Windowed greedy (Hu et al., SYSTOR 2009): greedy inside a window of the units closed first.
        windowed_greedy(windowed::Params) => windowed::Windowed::new,
        /// The emptiest unit of the placement whose over-provisioning is worth least.
        ///
        /// Divides the over-provisioning between placements so that the write amplification is least. It takes from the
        /// placement where one slot less costs the fewest programs, by each placement's rate of host writes, valid
        /// units and victims (the optimal split of Desnoyers, SYSTOR 2012, and of Stoica and Ailamaki, PVLDB 6(9),
        /// 2013). If garbage collection does not keep placements apart, it equals `greedy`.
        marginal_gain => marginal_gain::MarginalGain::new,
    }
}

/// Common items of the tests of victim policies.
#[cfg(test)]
mod testing {
    use super::{Victim, VictimContext, VictimView};
    use crate::page_map::units::{FRESH, Index, Ru, RuState};

    /// Map units per reclaim unit.
    const UNITS: u32 = 32;

    pub(super) fn context() -> VictimContext {
        VictimContext { seed: 1, device: "flash".into() }
    }

    /// Returns the unit that a policy picks among closed reclaim units of [`UNITS`] map units, by position. Each is
    /// given by its valid map units and its age, the oldest first.
    pub(super) fn pick(victim: &mut dyn Victim, closed: &[(u32, u64)]) -> Option<u32> {
        let mut index = Index::new(closed.len() as u32, UNITS);
        let now = closed.iter().map(|(_, age)| *age).max()?;
        for (number, (valid, _)) in closed.iter().enumerate() {
            index.insert(number as u32, *valid);
        }
        let unit = |(valid, _): &(u32, u64)| Ru { valid: *valid, state: RuState::Closed, ..FRESH };
        let rus: Vec<Ru> = closed.iter().map(unit).collect();
        let closed_at: Vec<u64> = closed.iter().map(|(_, age)| now - age).collect();
        victim.pick(&VictimView {
            index: &index,
            rus: &rus,
            closed_at: &closed_at,
            erases: &|_| 0,
            pools: None,
            now,
            units_per_ru: UNITS,
            units_per_program: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::Ftl;
    use crate::page_map::functional::{FunctionalWriter, Placement};
    use crate::page_map::testing::ftl_with;
    use engine::Rng;
    use nand::geometry::Reclaim;
    use proto::Lpn;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<VictimPolicy>().expect("the list is whole");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let context = VictimContext { seed: 3, device: "flash".into() };
        for family in VictimPolicy::all_defaults() {
            let fresh = || ftl_with(Reclaim::Block, 11_000, family.build(&context));
            let mut ftl = fresh();
            let mut writer = FunctionalWriter::new(&ftl, Placement::Striped);
            let mut rng = Rng::stream(1, "test");
            let mut draw = || Lpn(rng.below(11_000));
            let some: Vec<Lpn> = (0..40_000).map(|_| draw()).collect();
            writer.write_all(&mut ftl, some).expect("over-provisioning leaves room");
            writer.finish(&mut ftl).expect("over-provisioning leaves room");
            let mut bytes = Vec::new();
            ftl.save(&mut bytes);
            let mut copy = fresh();
            let mut input = bytes.as_slice();
            assert_eq!(copy.load(&mut input), Some(()), "{}", family.name());
            assert!(input.is_empty(), "{}", family.name());
            assert_eq!(fresh().load(&mut &bytes[..bytes.len() - 1]), None, "{}", family.name());
            let more: Vec<Lpn> = (0..20_000).map(|_| draw()).collect();
            let go_on = |ftl: &mut Ftl| {
                let mut writer = FunctionalWriter::new(ftl, Placement::Striped);
                writer.write_all(ftl, more.iter().copied()).expect("over-provisioning leaves room");
                (0..11_000).map(|lpn| ftl.lookup(Lpn(lpn))).collect::<Vec<_>>()
            };
            assert_eq!(go_on(&mut copy), go_on(&mut ftl), "{}", family.name());
            assert_eq!(copy.counters, ftl.counters);
            assert!(ftl.counters.moves > 10_000, "{} moves", ftl.counters.moves);
        }
    }
}
