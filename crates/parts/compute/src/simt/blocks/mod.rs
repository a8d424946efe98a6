//! Block schedulers: which multiprocessor takes which block of a kernel.

pub mod large_chunk;
pub mod round_robin;
pub mod strided;

/// View for a block scheduler: multiprocessors with room for a block of the kernel.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    sms: u16,
    has: &'a dyn Fn(u16) -> bool,
}

impl<'a> Room<'a> {
    /// Room on those of `sms` multiprocessors for which `has` holds.
    #[inline]
    pub(super) fn new(sms: u16, has: &'a dyn Fn(u16) -> bool) -> Room<'a> {
        Room { sms, has }
    }

    /// Returns whether a multiprocessor has room.
    #[inline]
    fn has(&self, sm: u16) -> bool {
        (self.has)(sm)
    }

    /// The first multiprocessor at or after `from`, cyclically, that has room and for which `may` holds.
    #[inline]
    fn first(&self, from: u16, may: impl Fn(u16) -> bool) -> Option<u16> {
        let fits = |sm: &u16| may(*sm) && self.has(*sm);
        (from..self.sms).find(fits).or_else(|| (0..from).find(fits))
    }

    /// Multiprocessor after a given one, cyclically.
    #[inline]
    fn behind(&self, sm: u16) -> u16 {
        if sm + 1 == self.sms { 0 } else { sm + 1 }
    }
}

/// Placement of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Block number in the grid.
    pub block: u32,
    /// Multiprocessor that takes the block.
    pub sm: u16,
}

config::policies! {
    /// Assignment of a kernel's blocks to multiprocessors.
    pub family BlockScheduling: dyn BlockScheduler, context u16 {
        /// Next block to the next multiprocessor with room.
        ///
        /// Blocks begin in order, and the multiprocessor is chosen when a block begins: none is idle while a
        /// block waits. GPUs work this way. It is one of the two readings of MQMS's "round robin" (arXiv 2412.04569,
        /// section 4); the other is `kernels`.
        default round_robin => round_robin::RoundRobin::new,
        /// Contiguous chunk of the blocks for each multiprocessor, in order.
        ///
        /// A chunk is the number of blocks divided by the number of multiprocessors, rounded up; the first
        /// multiprocessor takes the first chunk. Blocks that touch the same data share a cache; a multiprocessor that
        /// finished its chunk is idle until the kernel ends. Block policies of public code of MQMS's lineage call it
        /// LARGE_CHUNK; LASP (Khairy et al., MICRO 2020) calls it kernel-wide chunks. See `kernels` for the paper's
        /// other reading.
        large_chunk => large_chunk::LargeChunk::new,
        /// Groups of consecutive blocks, dealt to the multiprocessors in turn; a kernel too small for that is cut into
        /// chunks.
        ///
        /// Group g belongs to multiprocessor g modulo their number, whichever has room. A kernel with fewer blocks than
        /// `stride` times multiprocessors would leave some without blocks: it falls back to `large_chunk`. That is
        /// MQMS's automatic rule, n_blocks < s_block x n_cores (section 4), read for blocks.
        strided(strided::Params) => strided::Strided::new,
    }
}

/// Block scheduler for the kernels of one application, built for a number of multiprocessors.
///
/// Contract: each block of a kernel is placed once, and only on a multiprocessor with room. A block may wait for a
/// particular multiprocessor; but when all have room and a block is left, one is placed. No call allocates.
pub trait BlockScheduler {
    /// Begins a kernel of `blocks` blocks; every block of the previous kernel has been placed.
    fn begin(&mut self, blocks: u32);
    /// Places the next block; `None` if no block is left for the multiprocessors with room.
    fn place(&mut self, room: &Room<'_>) -> Option<Place>;
}

// Blocks assigned to multiprocessors before they begin.

/// Groups of `stride` consecutive blocks, dealt to the multiprocessors in turn. Each multiprocessor takes its own
/// blocks in order; those with room take turns.
#[derive(Clone, Debug)]
struct Shares {
    blocks: u32,
    stride: u32,
    /// Number of blocks that each multiprocessor has taken.
    taken: Vec<u32>,
    /// Multiprocessor to ask first.
    turn: u16,
}

impl Shares {
    /// Creates shares without a kernel.
    fn new(sms: u16) -> Shares {
        Shares { blocks: 0, stride: 1, taken: vec![0; sms.into()], turn: 0 }
    }

    /// Blocks of a chunk, for at most as many groups as multiprocessors.
    fn chunk(&self, blocks: u32) -> u32 {
        blocks.div_ceil(self.taken.len() as u32)
    }

    /// Number of multiprocessors.
    fn sms(&self) -> u32 {
        self.taken.len() as u32
    }

    /// Begins a kernel.
    fn begin(&mut self, blocks: u32, stride: u32) {
        (self.blocks, self.stride, self.turn) = (blocks, stride.max(1), 0);
        self.taken.fill(0);
    }

    /// Next block of a multiprocessor.
    #[inline]
    fn next(&self, sm: u16) -> Option<u32> {
        let (taken, stride) = (self.taken[usize::from(sm)], self.stride);
        let group = u64::from(taken / stride) * self.taken.len() as u64 + u64::from(sm);
        let block = group * u64::from(stride) + u64::from(taken % stride);
        // The block is below a 32-bit number, so it fits.
        (block < u64::from(self.blocks)).then_some(block as u32)
    }

    /// Next block, and the multiprocessor that takes it.
    fn place(&mut self, room: &Room<'_>) -> Option<Place> {
        let sm = room.first(self.turn, |sm| self.next(sm).is_some())?;
        let block = self.next(sm)?;
        self.taken[usize::from(sm)] += 1;
        self.turn = room.behind(sm);
        Some(Place { block, sm })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn strided(stride: u32) -> BlockScheduling {
        BlockScheduling::strided(strided::Params { stride })
    }

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<BlockScheduling>().expect("the list is whole");
    }

    /// Multiprocessor of each block, when all have room all the time.
    fn free(family: &BlockScheduling, sms: u16, blocks: u32) -> Vec<u16> {
        let mut policy = family.build(&sms);
        let mut of = vec![u16::MAX; blocks as usize];
        policy.begin(blocks);
        while let Some(Place { block, sm }) = policy.place(&Room::new(sms, &|_| true)) {
            assert_eq!(of[block as usize], u16::MAX, "block {block} twice");
            of[block as usize] = sm;
        }
        of
    }

    #[test]
    fn round_robin_goes_on_behind_the_last_that_had_room() {
        assert_eq!(free(&BlockScheduling::round_robin, 3, 7), [0, 1, 2, 0, 1, 2, 0]);
        let mut policy = BlockScheduling::round_robin.build(&3);
        policy.begin(4);
        let mut place = |room: [bool; 3]| {
            policy.place(&Room::new(3, &|sm| room[usize::from(sm)])).map(|p| (p.block, p.sm))
        };
        assert_eq!(place([false, true, false]), Some((0, 1)));
        assert_eq!(place([true, true, false]), Some((1, 0)));
        assert_eq!(place([false; 3]), None);
        assert_eq!((place([true; 3]), place([true; 3])), (Some((2, 1)), Some((3, 2))));
        assert_eq!(place([true; 3]), None, "no block is left");
        // The next kernel begins at the first multiprocessor.
        policy.begin(1);
        assert_eq!(policy.place(&Room::new(3, &|_| true)), Some(Place { block: 0, sm: 0 }));
    }

    #[test]
    fn a_large_chunk_is_the_blocks_over_the_multiprocessors_rounded_up() {
        // 10 over 4, rounded up: 3, 3, 3 and the last one.
        assert_eq!(free(&BlockScheduling::large_chunk, 4, 10), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
        assert_eq!(free(&BlockScheduling::large_chunk, 4, 3), [0, 1, 2]);
        // 5 over 4, rounded up: 2, 2, 1 and nothing.
        assert_eq!(free(&BlockScheduling::large_chunk, 4, 5), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn a_chunk_waits_for_its_multiprocessor() {
        let mut policy = BlockScheduling::large_chunk.build(&2);
        policy.begin(4);
        let mut place = |room: [bool; 2]| {
            policy.place(&Room::new(2, &|sm| room[usize::from(sm)])).map(|p| (p.block, p.sm))
        };
        assert_eq!((place([false, true]), place([false, true])), (Some((2, 1)), Some((3, 1))));
        assert_eq!(place([false, true]), None, "blocks 0 and 1 are the first multiprocessor's");
        assert_eq!((place([true, true]), place([true, true])), (Some((0, 0)), Some((1, 0))));
    }

    #[test]
    fn groups_of_a_stride_go_round() {
        assert_eq!(free(&strided(2), 3, 10), [0, 0, 1, 1, 2, 2, 0, 0, 1, 1]);
        assert_eq!(free(&strided(1), 3, 4), [0, 1, 2, 0]);
    }

    #[test]
    fn a_kernel_of_fewer_blocks_than_stride_times_multiprocessors_is_cut_into_chunks() {
        // 6 = 2 x 3 is not fewer; 5 is: chunks of 5 over 3, rounded up.
        assert_eq!(free(&strided(2), 3, 6), [0, 0, 1, 1, 2, 2]);
        assert_eq!(free(&strided(2), 3, 5), [0, 0, 1, 1, 2]);
        // Groups of four would leave the second and third without: 4 over 3, rounded up, is 2.
        assert_eq!(free(&strided(4), 3, 4), [0, 0, 1, 1]);
        // At the boundary, 12 = 4 x 3, a chunk and a group are the same; above it they are not: 13 over 3 is 5.
        assert_eq!(free(&strided(4), 3, 12), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(free(&strided(4), 3, 13), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0]);
        assert_eq!(free(&BlockScheduling::large_chunk, 3, 13), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn every_block_is_placed_once_where_there_is_room() {
        let mut rng = engine::Rng::stream(5, "blocks");
        for family in BlockScheduling::all_defaults().into_iter().chain([strided(1), strided(3)]) {
            for _ in 0..60 {
                let sms = 1 + rng.below(9) as u16;
                let mut policy = family.build(&sms);
                for _ in 0..3 {
                    let blocks = rng.below(70) as u32;
                    let mut placed = BTreeSet::new();
                    policy.begin(blocks);
                    while placed.len() < blocks as usize {
                        let open = rng.next_u64();
                        let room = |sm: u16| open >> sm & 1 == 1;
                        if let Some(Place { block, sm }) = policy.place(&Room::new(sms, &room)) {
                            assert!(room(sm) && sm < sms && block < blocks, "{}", family.name());
                            assert!(placed.insert(block), "{}: block {block} twice", family.name());
                        } else if open.trailing_ones() >= u32::from(sms) {
                            panic!("{}: all have room, {} of {blocks} placed", family.name(), placed.len());
                        }
                    }
                    assert_eq!(policy.place(&Room::new(sms, &|_| true)), None, "{}", family.name());
                }
            }
        }
    }

    #[test]
    fn the_largest_grids_are_counted_without_overflow() {
        for family in [BlockScheduling::large_chunk, strided(u32::MAX), strided(7)] {
            let mut policy = family.build(&1024);
            policy.begin(u32::MAX);
            let last = policy.place(&Room::new(1024, &|sm| sm == 1023)).expect("a block of the last");
            assert_eq!(last.sm, 1023, "{}", family.name());
        }
    }
}
