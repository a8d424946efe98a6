//! Garbage collection: which reclaim unit next.

pub mod cost_benefit;
pub mod d_choices;
pub mod fifo;
pub mod greedy;
pub mod random;
pub mod windowed;

pub use super::index::VictimView;

/// Chooses the reclaim unit that garbage collection takes back next.
///
/// Contract: a pure decision over the view plus the policy's own state; the answer is one of the closed units of the
/// view, which is never empty; no call costs more than the view's iterators allow, and none walks all closed units.
pub trait Victim {
    /// The unit to reclaim, by number in the group. `None` if the policy wants to wait.
    fn pick(&mut self, view: &VictimView<'_>) -> Option<u32>;
    /// Appends the policy's own state.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Takes the policy's own state back; false if it is malformed.
    fn load(&mut self, _input: &mut &[u8]) -> bool {
        true
    }
}

/// What a victim policy is built from.
#[derive(Clone, Debug)]
pub struct VictimContext {
    /// The run's seed.
    pub seed: u64,
    /// The device's name, for named random streams.
    pub device: String,
}

config::policies! {
    /// Which closed reclaim unit garbage collection takes back next.
    pub family VictimPolicy = "flash.ftl.gc.victim": dyn Victim, context VictimContext {
        /// Fewest valid map units first.
        ///
        /// Among equals, the one unchanged for longest. Optimal for uniform random writes; with skewed writes it
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<VictimPolicy>().expect("the list is whole");
    }
}
