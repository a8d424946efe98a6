//! What caches miss of a kernel, sampled once in a process: runs of a study have the same kernels on the same caches.

use super::{Cost, Costing, Table};
use crate::vliw::stalls::Stalls;
use crate::vliw::{
    issue::LoopCycles,
    spec::{AcceleratorSums, AcceleratorWork, CacheSpec, CoreSpec},
};
use config::SpecError;
use engine::Known;
use nest::{Kernel, Piece};
use std::sync::Arc;

/// What a sample depends on.
#[derive(Clone, PartialEq)]
struct Of {
    kernel: Kernel,
    caches: (CacheSpec, CacheSpec, u32),
    accesses: u64,
    most: u64,
}

/// By microblock.
type Samples = Arc<[Stalls]>;

/// Those of a study's programs, split and not.
static SAMPLES: Known<Of, Samples> = Known::new(64);

/// The misses of each microblock, of which each is dealt out as at most so many screens.
///
/// # Errors
/// A cache that cannot be built.
pub(super) fn sampled(
    kernel: &Kernel,
    caches: (&CacheSpec, &CacheSpec, u32),
    accesses: u64,
    most: u64,
) -> Result<Samples, SpecError> {
    let of =
        Of { kernel: kernel.clone(), caches: (caches.0.clone(), caches.1.clone(), caches.2), accesses, most };
    SAMPLES.ask(of, |_| {
        let mut all = Vec::new();
        for alike in kernel.microblocks().chunk_by(|one, next| one.text == next.text) {
            // Those of one text have the same loops around the same accesses: the middle one stands for all.
            let screens: Vec<Piece> = kernel.screens(all.len() + alike.len() / 2, most).collect();
            let sample = Stalls::sample(kernel, screens[screens.len() / 2], caches, accesses)?;
            all.extend(alike.iter().map(|_| sample.clone()));
        }
        Ok(all.into())
    })
}

// Programs that are loop nests: what their pieces cost follows from one text.

/// A kernel, with what its pieces cost.
pub(super) struct Nested {
    pub(super) kernel: Kernel,
    loops: Vec<Vec<LoopCycles>>,
    /// By microblock.
    stalls: Arc<[Stalls]>,
    /// Its work, if it is not what the kernel counts.
    table: Option<Table>,
}

impl Nested {
    /// A kernel of whose microblocks each is dealt out as at most so many screens.
    ///
    /// # Errors
    /// A cache that cannot be built; work by a table that says nothing of the kernel.
    pub(super) fn new(kernel: Kernel, by: &Costing<'_>, most: u64) -> Result<Nested, SpecError> {
        let kernel = match by.sums {
            AcceleratorSums::memory => kernel,
            AcceleratorSums::registers => kernel.with_sums_in_registers(),
        };
        let stalls = sampled(&kernel, by.core.caches(), by.sample, most)?;
        let table = match by.work {
            AcceleratorWork::nest => None,
            AcceleratorWork::table => Some(Table::of(&kernel)?),
        };
        let loops = kernel.microblocks().iter().map(|microblock| by.core.loops(microblock)).collect();
        Ok(Nested { kernel, loops, stalls, table })
    }

    /// What a piece costs; `begins` if caches are empty. `scratch` is overwritten.
    pub(super) fn cost(&self, piece: &Piece, begins: bool, core: &CoreSpec, scratch: &mut Vec<u64>) -> Cost {
        let loops = &self.loops[piece.microblock];
        let cycles = core.cycles(&self.kernel, piece, loops, scratch);
        let misses = self.stalls[piece.microblock].of(scratch, begins);
        let Some(table) = self.table else { return Cost::of(cycles, misses, core) };
        let counts = self.kernel.counts(piece);
        let cycles = table.cycles(&counts, core, cycles, (loops, scratch));
        Cost::of(cycles, table.misses(&counts, core, misses), core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vliw::testing::core;

    #[test]
    fn what_is_known_is_what_sampling_gives() {
        let (_, text) = nest::programs()[0];
        let kernel = |side: i64| {
            let sizes = ["m", "n"].map(|size| (size.to_owned(), side));
            Kernel::read(text, "atax", &sizes).expect("a program")
        };
        let spec = core();
        let of = |side, most| sampled(&kernel(side), spec.caches(), 4_096, most).expect("caches");
        let first = of(300, 4);
        assert!(Arc::ptr_eq(&first, &of(300, 4)));
        for other in [of(301, 4), of(300, 3)] {
            assert!(!Arc::ptr_eq(&first, &other));
        }
        let screen = kernel(300).screens(0, 4).count() / 2;
        let screen = kernel(300).screens(0, 4).nth(screen).expect("screens");
        let alone = Stalls::sample(&kernel(300), screen, spec.caches(), 4_096).expect("caches");
        assert_eq!(first[0], alone);
    }
}
