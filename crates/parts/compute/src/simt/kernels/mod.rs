//! Kernel schedulers: how applications share the multiprocessors.

pub mod automatic;
pub mod large_chunk;
pub mod partitioned;
pub mod round_robin;
pub mod shared;

use std::ops::Range;

/// Application as seen by a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppView {
    /// True if the application has a kernel with a block that has not ended.
    pub kernel: bool,
    /// True while the application is held: none of its blocks may begin.
    pub held: bool,
}

impl AppView {
    /// Returns whether its kernel can use the multiprocessors.
    #[inline]
    fn works(&self) -> bool {
        self.kernel && !self.held
    }
}

/// Applications whose blocks multiprocessors may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// Every application, one block each in turn.
    Every,
    /// One application.
    One(usize),
    /// None: no application has a kernel, or all that have one are held.
    Nobody,
}

impl Admitted {
    /// Returns whether an application's blocks may be taken.
    #[inline]
    pub fn has(self, app: usize) -> bool {
        match self {
            Admitted::Every => true,
            Admitted::One(one) => one == app,
            Admitted::Nobody => false,
        }
    }
}

config::policies! {
    /// Sharing of the multiprocessors among applications.
    pub family KernelScheduling: dyn KernelScheduler, context u16 {
        /// Concurrent kernels of all applications; their blocks take turns.
        ///
        /// Kernels of different applications run side by side on every multiprocessor with room.
        default shared => shared::Shared::new,
        /// Separate multiprocessors for each application; their numbers differ by at most one.
        ///
        /// This is MacSim's mode for several applications ("GPU with Multiple Applications", `max_num_core_per_appl`).
        /// With more applications than multiprocessors, application a runs on multiprocessor a modulo their number.
        /// Multiprocessors of an application that has ended stay idle, unless it is repeated (`gpu.repeat`).
        partitioned => partitioned::Partitioned::new,
        /// One kernel at a time on the whole GPU; applications take turns, one kernel each.
        ///
        /// MQMS's round robin, "allocating GPU resources to one kernel from each workload in a circular sequence"
        /// (arXiv 2412.04569, section 4), read for kernels; for blocks see `blocks`. A kernel begins when the last
        /// block of the previous one has ended. An application that is held, because flash reclaims space for it,
        /// passes its turn to the next: others wait for it only as long as its begun blocks occupy room. Those blocks
        /// go on once the hold ends, beside the application whose turn it is; its other blocks wait for its next
        /// turn.
        round_robin => round_robin::RoundRobin::new,
        /// Round robin in which an application keeps the GPU for several kernels in a row.
        ///
        /// MQMS's large chunk, which "processes larger consecutive workload segments before switching", read for kernels.
        /// An application that is held loses the rest of its turn.
        large_chunk(large_chunk::Params) => large_chunk::LargeChunk::new,
        /// Round robin in which an application with small kernels keeps the GPU as under large chunk.
        ///
        /// MQMS's automatic rule: large chunk is the fallback where n_blocks < s_block x n_cores, with the blocks of
        /// the current kernel, a stride and the multiprocessors. The rule is applied to each kernel at its end: if it
        /// was small, and the turn has had fewer than `kernels` kernels, the application's next kernel follows.
        automatic(automatic::Params) => automatic::Automatic::new,
    }
}

/// Kernel scheduler, built for a number of multiprocessors.
///
/// Contract: the answer depends only on the calls so far and the view, and is the same when asked again. A named
/// application has a kernel and is not held; while such an application exists, the answer is not `Nobody`. So no
/// application waits for one that is held. No call allocates.
pub trait KernelScheduler {
    /// Notes the end of an application's kernel of `blocks` blocks. Empty grids are not reported: they take no turn.
    fn ended(&mut self, app: usize, blocks: u32);
    /// Returns the applications whose blocks may be taken.
    fn admit(&mut self, apps: &[AppView]) -> Admitted;
    /// Range of the `sms` multiprocessors that take an application's blocks: all, unless applications have separate
    /// ones. At least one.
    fn share(&self, _app: usize, _apps: usize, sms: u16) -> Range<u16> {
        0..sms
    }
}

// Turns of applications.

/// Owner of the turn, and the number of its kernels that have ended in it.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    owner: usize,
    kernels: u32,
    /// True if the turn is over: the next application that works is the owner.
    over: bool,
}

impl Turns {
    /// Notes the end of a kernel; `keep` decides from the number of kernels in the turn whether the turn goes on. A
    /// kernel begun in an earlier turn, before its application was held, counts in none.
    fn ended(&mut self, app: usize, keep: impl Fn(u32) -> bool) {
        if app == self.owner && !self.over {
            self.kernels = self.kernels.saturating_add(1);
            self.over = !keep(self.kernels);
        }
    }

    /// Returns the owner, or the next application if the owner's turn is over, or it is held, or has no kernel.
    fn admit(&mut self, apps: &[AppView]) -> Admitted {
        let works = |app: &usize| apps.get(*app).is_some_and(AppView::works);
        if !self.over && works(&self.owner) {
            return Admitted::One(self.owner);
        }
        let behind = self.owner + 1..apps.len();
        let Some(next) = behind.chain(0..=self.owner).find(works) else { return Admitted::Nobody };
        *self = Turns { owner: next, kernels: 0, over: false };
        Admitted::One(next)
    }
}

#[cfg(test)]
mod tests {
    use super::Admitted::{Every, Nobody, One};
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<KernelScheduling>().expect("the list is whole");
    }

    fn large_chunk(kernels: u32) -> KernelScheduling {
        KernelScheduling::large_chunk(large_chunk::Params { kernels })
    }

    fn automatic(stride: u32, kernels: u32) -> KernelScheduling {
        KernelScheduling::automatic(automatic::Params { stride, kernels })
    }

    /// Order in which kernels run on four multiprocessors, given the blocks of each application's kernels.
    fn order(family: &KernelScheduling, apps: &[&[u32]]) -> Vec<usize> {
        let mut policy = family.build(&4);
        let mut next = vec![0; apps.len()];
        let mut order = Vec::new();
        loop {
            let has = |app: usize| next[app] < apps[app].len();
            let views: Vec<_> =
                (0..apps.len()).map(|app| AppView { kernel: has(app), held: false }).collect();
            let Admitted::One(app) = policy.admit(&views) else { return order };
            order.push(app);
            policy.ended(app, apps[app][next[app]]);
            next[app] += 1;
        }
    }

    #[test]
    fn round_robin_takes_a_kernel_of_each() {
        let (two, three) = (&[&[9; 2][..], &[9; 4]], &[&[9; 1][..], &[9; 3], &[9; 2]]);
        assert_eq!(order(&KernelScheduling::round_robin, two), [0, 1, 0, 1, 1, 1]);
        assert_eq!(order(&KernelScheduling::round_robin, three), [0, 1, 2, 1, 2, 1]);
        assert_eq!(order(&KernelScheduling::round_robin, &[&[], &[9], &[]]), [1]);
        assert_eq!(order(&KernelScheduling::round_robin, &[]), [0; 0]);
    }

    #[test]
    fn large_chunk_takes_several_of_each() {
        let apps: &[&[u32]] = &[&[9; 5], &[9; 3], &[9; 1]];
        assert_eq!(order(&large_chunk(2), apps), [0, 0, 1, 1, 2, 0, 0, 1, 0]);
        assert_eq!(order(&large_chunk(100), apps), [0, 0, 0, 0, 0, 1, 1, 1, 2]);
        assert_eq!(order(&large_chunk(1), apps), order(&KernelScheduling::round_robin, apps));
    }

    #[test]
    fn small_kernels_keep_the_turn_and_large_ones_pass_it_on() {
        // A stride of 2 on four multiprocessors: 7 blocks are few, 8 are not.
        assert_eq!(order(&automatic(2, 100), &[&[8; 2], &[8; 2]]), [0, 1, 0, 1]);
        assert_eq!(order(&automatic(2, 100), &[&[7; 2], &[7; 2]]), [0, 0, 1, 1]);
        assert_eq!(order(&automatic(2, 100), &[&[7; 3], &[8; 3]]), [0, 0, 0, 1, 1, 1]);
        // The large kernel of the first ends its turn: two, one of the second's, the last of the first.
        assert_eq!(order(&automatic(2, 100), &[&[7, 8, 7], &[8, 8]]), [0, 0, 1, 0, 1]);
        // At most two in a row.
        assert_eq!(order(&automatic(2, 2), &[&[7; 3], &[8; 2]]), [0, 0, 1, 0, 1]);
    }

    #[test]
    fn all_share_from_block_to_block() {
        let mut policy = KernelScheduling::shared.build(&4);
        assert_eq!(policy.admit(&[AppView { kernel: true, held: true }; 2]), Every);
    }

    #[test]
    fn shares_are_apart_and_of_one_size() {
        let of = |apps: usize, sms: u16| -> Vec<Range<u16>> {
            let policy = KernelScheduling::partitioned.build(&sms);
            (0..apps).map(|app| policy.share(app, apps, sms)).collect()
        };
        assert_eq!(of(2, 16), [0..8, 8..16]);
        assert_eq!(of(3, 16), [0..5, 5..10, 10..16]);
        assert_eq!(of(1, 16), vec![Range { start: 0, end: 16 }]);
        // One after another where they do not suffice.
        assert_eq!(of(3, 2), [0..1, 1..2, 0..1]);
        for (apps, sms) in (1..20).flat_map(|apps| (1..20).map(move |sms| (apps, sms))) {
            let shares = of(apps, sms);
            let taken: usize = shares.iter().map(Range::len).sum();
            assert_eq!(taken, apps.max(sms.into()), "{apps} on {sms}");
            let lengths = shares.iter().map(Range::len);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{apps} on {sms}");
        }
        let all = KernelScheduling::shared.build(&16);
        assert_eq!((all.share(0, 2, 16), all.share(1, 2, 16)), (0..16, 0..16));
    }

    /// Policies under which applications take turns.
    fn in_turns() -> impl Iterator<Item = KernelScheduling> {
        let at_once = [KernelScheduling::shared, KernelScheduling::partitioned];
        KernelScheduling::all_defaults().into_iter().filter(move |family| !at_once.contains(family))
    }

    #[test]
    fn one_that_is_held_gives_its_turn_away() {
        let view = |kernel, held| AppView { kernel, held };
        let (free, held) = (view(true, false), view(true, true));
        for family in in_turns() {
            let mut policy = family.build(&4);
            assert_eq!(policy.admit(&[free, free, free]), One(0));
            assert_eq!(policy.admit(&[held, held, free]), One(2), "{}", family.name());
            // Free again, the first waits until its turn comes round.
            assert_eq!(policy.admit(&[free, held, free]), One(2));
            // Its kernel had begun, and ends: that is not the end of the turn.
            policy.ended(0, 100);
            assert_eq!(policy.admit(&[free, held, free]), One(2));
            policy.ended(2, 100);
            assert_eq!(policy.admit(&[held, held, view(false, false)]), Nobody);
            // The first free application is the owner.
            assert_eq!(policy.admit(&[held, free, view(false, false)]), One(1));
        }
    }

    /// No application is passed over twice: in as many turns as applications, each has had one.
    #[test]
    fn turns_come_round() {
        let mut rng = engine::Rng::stream(9, "kernels");
        for family in in_turns() {
            let mut policy = family.build(&4);
            let apps = 5;
            let mut waits = vec![0; apps];
            for _ in 0..2_000 {
                let held = rng.next_u64() & rng.next_u64();
                let views: Vec<_> =
                    (0..apps).map(|app| AppView { kernel: true, held: held >> app & 1 == 1 }).collect();
                let admitted = policy.admit(&views);
                assert_eq!(policy.admit(&views), admitted, "{}", family.name());
                let Admitted::One(app) = admitted else {
                    assert!(views.iter().all(|view| view.held), "{}", family.name());
                    continue;
                };
                assert!(views[app].works(), "{}", family.name());
                for (other, wait) in waits.iter_mut().enumerate() {
                    *wait = if other == app || views[other].held { 0 } else { *wait + 1 };
                    // Eight kernels in a row of each of the others, and of those that they gave their turns to.
                    assert!(*wait <= 8 * apps as u32, "{}: {other} waits", family.name());
                }
                policy.ended(app, rng.below(40) as u32);
            }
        }
    }
}
