//! Schedulers of an accelerator: which core executes which work.

pub mod inter_dynamic;
pub mod inter_static;
pub mod intra_in_order;
pub mod intra_out_of_order;

use super::{Chain, Unit};

config::policies! {
    /// Assignment of work to the cores of an accelerator.
    pub family AcceleratorScheduling: dyn AcceleratorScheduler, context u16 {
        /// Any screen that may begin, of whichever kernel, the oldest first: no core waits while one is left.
        ///
        /// FlashAbacus's out-of-order intra-kernel scheduling (section 4.2).
        default intra_out_of_order => intra_out_of_order::IntraOutOfOrder::new,
        /// One kernel after another, and one microblock after another: its screens run at once, and cores without a
        /// screen wait.
        ///
        /// FlashAbacus's in-order intra-kernel scheduling (section 4.2). With all cores, it equals a parallel loop of
        /// OpenMP.
        intra_in_order => intra_in_order::IntraInOrder::new,
        /// A core for a kernel from its beginning to its end; the next kernel goes to the next free core.
        ///
        /// FlashAbacus's dynamic inter-kernel scheduling (section 4.1).
        inter_dynamic => inter_dynamic::InterDynamic::new,
        /// A core for a kernel from its beginning to its end; the core is the application's number modulo the cores.
        ///
        /// FlashAbacus's static inter-kernel scheduling (section 4.1).
        inter_static => inter_static::InterStatic::new,
    }
}

/// Scheduler of an accelerator's cores, built for a number of cores.
///
/// Contract: the returned unit may begin ([`Chain::begin`]). The answer depends only on the calls so far and the chain.
/// While no screen is under way and a kernel is not over, some core gets one: nothing waits for ever. No call
/// allocates.
pub trait AcceleratorScheduler {
    /// Returns whether microblocks are dealt out as screens; otherwise each is one piece.
    fn splits(&self) -> bool;
    /// Returns whether a core that asks never has to wait while a unit of any kernel may begin. Then Graham's bound
    /// holds.
    fn is_greedy(&self) -> bool;
    /// Unit that an idle core begins; `None` if it must wait until something has ended or come.
    fn next(&mut self, chain: &Chain, core: u16) -> Option<Unit>;
}

#[cfg(test)]
mod tests {
    // Schedules drawn by hand, and bounds that hold for any.
    use super::super::{Ended, Screen};
    use super::*;
    use proptest::prelude::*;

    /// Kernel: its application, and the durations of the screens of each microblock.
    type Work = (u16, Vec<Vec<u64>>);

    /// End time of each kernel, and busy time of each core.
    fn run(policy: &AcceleratorScheduling, cores: u16, kernels: &[Work]) -> (Vec<u64>, Vec<u64>) {
        let mut chain = Chain::default();
        for (app, microblocks) in kernels {
            let screens: Vec<u32> = microblocks.iter().map(|screens| screens.len() as u32).collect();
            chain.offload(*app, &screens);
        }
        let mut scheduler = policy.build(&cores);
        let mut at_work: Vec<Option<(u64, Unit, Screen)>> = vec![None; usize::from(cores)];
        let (mut over, mut busy) = (vec![0; kernels.len()], vec![0; usize::from(cores)]);
        let lasts = |screen: Screen| {
            kernels[screen.instance as usize].1[screen.microblock as usize][screen.screen as usize]
        };
        let mut now = 0;
        loop {
            for core in 0..cores {
                if at_work[usize::from(core)].is_none()
                    && let Some(unit) = scheduler.next(&chain, core)
                {
                    let screen = chain.begin(unit);
                    at_work[usize::from(core)] = Some((now + lasts(screen), unit, screen));
                }
            }
            let next =
                at_work.iter().enumerate().filter_map(|(core, work)| Some((work.as_ref()?.0, core))).min();
            let Some((time, core)) = next else { break };
            let (_, unit, screen) = at_work[core].take().expect("at work");
            busy[core] += lasts(screen);
            now = time;
            let ended = chain.end(screen);
            if ended == Ended::Kernel {
                over[screen.instance as usize] = now;
            } else if let Unit::Kernel(instance) = unit {
                let screen = chain.next(instance);
                at_work[core] = Some((now + lasts(screen), unit, screen));
            }
        }
        assert!(chain.is_over(), "{}: kernels are left", policy.name());
        (over, busy)
    }

    fn policy(name: &str) -> AcceleratorScheduling {
        AcceleratorScheduling::all_defaults()
            .into_iter()
            .find(|policy| policy.name() == name)
            .expect("a policy")
    }

    /// Two applications of two kernels on four cores, as in Figure 5: each of 4, 2, 4 and 3 units of time.
    #[test]
    fn kernels_of_an_application_wait_for_each_other_if_it_has_one_core() {
        let kernels: Vec<Work> =
            [(0, 4), (0, 2), (2, 4), (2, 3)].map(|(app, time)| (app, vec![vec![time]])).to_vec();
        assert_eq!(run(&policy("inter_static"), 4, &kernels).0, [4, 6, 4, 7]);
        assert_eq!(run(&policy("inter_dynamic"), 4, &kernels).0, [4, 2, 4, 3]);
    }

    /// Screens of a microblock run at once; the next microblock waits for all of them. The other cores' work meanwhile
    /// distinguishes the two.
    #[test]
    fn screens_of_other_kernels_fill_the_gaps() {
        // A serial microblock of 3 between two of two screens; then a kernel of four screens of 2.
        let kernels: Vec<Work> = vec![(0, vec![vec![1, 2], vec![3], vec![1, 1]]), (1, vec![vec![2; 4]])];
        // In order: 2, 5, 6; then four screens on two cores: 8, 10.
        assert_eq!(run(&policy("intra_in_order"), 2, &kernels).0, [6, 10]);
        // The second core takes screens of the other kernel: from 1 to 3, 3 to 5, 5 to 7. The first kernel's third microblock begins at 5: one screen there, one at 6.
        assert_eq!(run(&policy("intra_out_of_order"), 2, &kernels).0, [7, 9]);
    }

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<AcceleratorScheduling>().expect("the list is whole");
    }

    fn kernels() -> impl Strategy<Value = Vec<Work>> {
        let microblock = prop::collection::vec(1_u64..50, 1..7);
        prop::collection::vec((0_u16..5, prop::collection::vec(microblock, 1..4)), 1..12)
    }

    proptest! {
        /// No schedule ends before the work over the cores, or before the longest chain; the greedy one at most Graham's bound later: work / cores + chain (1 - 1 / cores).
        #[test]
        fn bounds_hold(kernels in kernels(), cores in 1_u16..8) {
            let total: u64 = kernels.iter().flat_map(|(_, blocks)| blocks.iter().flatten()).sum();
            let sum = |blocks: &[Vec<u64>]| blocks.iter().map(|screens| screens.iter().sum::<u64>()).sum::<u64>();
            let longest = |blocks: &[Vec<u64>]| -> u64 { blocks.iter().filter_map(|screens| screens.iter().max()).sum() };
            let chain = kernels.iter().map(|(_, blocks)| longest(blocks)).max().unwrap_or(0);
            let whole = kernels.iter().map(|(_, blocks)| sum(blocks)).max().unwrap_or(0);
            let cores_wide = u64::from(cores);
            for policy in AcceleratorScheduling::all_defaults() {
                let (over, busy) = run(&policy, cores, &kernels);
                let makespan = *over.iter().max().expect("kernels");
                prop_assert_eq!(busy.iter().sum::<u64>(), total, "{}", policy.name());
                prop_assert!(makespan * cores_wide >= total && makespan >= chain, "{}", policy.name());
                // What waits in the greedy ones waits for cores alone: a screen for the chain before it, a kernel for nothing.
                let bound = match policy.name() {
                    "intra_out_of_order" => Some(chain),
                    "inter_dynamic" => Some(whole),
                    _ => None,
                };
                if let Some(longest) = bound {
                    prop_assert!(makespan * cores_wide <= total + longest * (cores_wide - 1), "{}", policy.name());
                }
            }
        }
    }
}
