//! Levels of tables in memory, with a cache of their upper levels.

use super::super::sets;
use super::{ENTRY, Step, Table};
use crate::mmu::tlb::Tlb;
use config::SpecError;
use config::units::Bytes;
use proto::memory::PAGE;

/// Bits of a page number that one level resolves: a table is a page of 4 KiB.
const BITS: u32 = 9;
/// Size of one table in bytes.
const TABLE: u64 = ENTRY << BITS;
/// Bits of an index inside a level; the level is stored above them in the walk cache.
const INDEX: u32 = 48;
/// Changes the lower bits of an index from level to level, so that the upper levels of a page, which all begin with
/// index zero, are in different sets of the walk cache. Odd: 2^32 over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9;

/// Parameters of `radix`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Number of levels: x86-64 has four for pages of 4 KiB.
    #[schemars(range(min = 1, max = 5))]
    pub levels: u8,
    /// Page size: the range that one translation covers. A power of two.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1TiB", "x-power-of-two" = true))]
    pub page: Bytes,
    /// Cache of entries of the upper levels.
    pub walk_cache: WalkCache,
}

/// Page walk cache.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WalkCache {
    /// Capacity in entries of upper levels; LRU replacement.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub entries: u32,
    /// Associativity: ways per set.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub ways: u32,
    /// Cycles of a look-up: one look-up for every upper level of a walk, hit or miss.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params { levels: 4, page: Bytes::new(PAGE), walk_cache: WalkCache::default() }
    }
}

impl Default for WalkCache {
    /// Returns 8 KiB of entries of 8 B in 16 ways, 10 cycles: the walk cache of Power, Hill and Wood (HPCA 2014) as
    /// configured by Ausavarungnirun et al. (MASK, ASPLOS 2018).
    fn default() -> WalkCache {
        WalkCache { entries: 1024, ways: 16, latency: 10 }
    }
}

impl Params {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if !(1..=5).contains(&self.levels) {
            let what = format!("a page table of {} levels is not supported", self.levels);
            return Err(SpecError::new("table.radix.levels", what).help("choose 1 to 5 levels"));
        }
        let page = self.page.get();
        if page < PAGE || !page.is_power_of_two() {
            let what = format!("a page of {} is not supported", self.page);
            return Err(SpecError::new("table.radix.page", what).help("choose a power of two from 4KiB"));
        }
        sets("table.radix.walk_cache", self.walk_cache.entries, self.walk_cache.ways)
    }
}

/// Levels of tables of 512 entries of 8 B in memory.
///
/// An application's addresses begin at zero, so the tables of one level are consecutive, the leaves first. A walk goes
/// from the root to the leaf. Each upper level is looked up in the walk cache and read from memory if it misses; the
/// leaf is always read. This is the cache of page-table entries by level of AMD's and of Power, Hill and Wood's unit; a
/// cache that jumps to the lowest level it holds would save look-ups but no reads.
pub struct Radix {
    levels: u8,
    page: u64,
    latency: u32,
    /// Base of each level of each application, leaf first.
    bases: Vec<Vec<u64>>,
    bytes: u64,
    cache: Tlb,
}

impl Radix {
    /// Creates a table without entries.
    pub fn new(params: &Params) -> Radix {
        let cache = &params.walk_cache;
        Radix {
            levels: params.levels,
            page: params.page.get(),
            latency: cache.latency,
            bases: Vec::new(),
            bytes: 0,
            cache: Tlb::new(cache.entries, cache.ways),
        }
    }

    /// Level of the tree, leaf zero, of the read number `read` of a walk.
    #[inline]
    fn height(&self, read: u8) -> u8 {
        self.levels - 1 - read
    }
}

impl Table for Radix {
    fn reach(&self) -> u64 {
        self.page
    }

    fn span(&self) -> u64 {
        self.page.saturating_mul(1 << (BITS * u32::from(self.levels)))
    }

    fn lay_out(&mut self, pages: &[u64], base: u64) -> u64 {
        let mut end = base.next_multiple_of(TABLE);
        let start = end;
        self.bases.clear();
        for &pages in pages {
            let mut entries = pages;
            let mut bases = Vec::with_capacity(self.levels.into());
            for _ in 0..self.levels {
                bases.push(end);
                entries = entries.div_ceil(1 << BITS);
                end += entries * TABLE;
            }
            self.bases.push(bases);
        }
        self.bytes = end - start;
        end
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn step(&mut self, app: u8, page: u64, level: &mut u8) -> Step {
        // The level counts reads of the walk, hit in the cache or not; the latest of them, if any, has arrived now.
        let key = |height: u8| {
            let index = page >> (BITS * u32::from(height));
            u64::from(height) << INDEX | (index ^ (u64::from(height) * SPREAD))
        };
        if *level > 0 && *level < self.levels {
            self.cache.fill(app, key(self.height(*level - 1)), 0);
        }
        let mut step = Step { cycles: 0, cached: 0, read: None };
        while *level < self.levels {
            let height = self.height(*level);
            *level += 1;
            if height > 0 {
                step.cycles += self.latency;
                if self.cache.look_up(app, key(height)).is_some() {
                    step.cached += 1;
                    continue;
                }
            }
            let index = page >> (BITS * u32::from(height));
            step.read = Some(self.bases[usize::from(app)][usize::from(height)] + index * ENTRY);
            break;
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five levels have four above the leaves: one for each set of a direct-mapped walk cache of four.
    #[test]
    fn the_levels_of_one_page_do_not_push_each_other_out() {
        let walk_cache = WalkCache { entries: 4, ways: 1, latency: 3 };
        let mut table = Radix::new(&Params { levels: 5, page: Bytes::new(PAGE), walk_cache });
        table.lay_out(&[1 << 30], 0);
        let mut reads = |page: u64| {
            let mut level = 0;
            std::iter::from_fn(|| table.step(0, page, &mut level).read).count()
        };
        assert_eq!((reads(0), reads(1)), (5, 1));
    }
}
