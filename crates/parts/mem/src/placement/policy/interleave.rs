//! Interleaving: granules of addresses go to the memories in turn, in proportion to their sizes.

use super::{Extent, Place, Placing, Targets};
use config::SpecError;
use config::units::Bytes;
use engine::Time;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `interleave`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Granule: consecutive bytes in one memory. The size of each memory is a multiple of this.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "1GiB", "x-power-of-two" = true))]
    pub granule: Bytes,
}

impl Default for Params {
    /// Returns a page, as in Linux's interleaving of NUMA nodes.
    fn default() -> Params {
        Params { granule: Bytes::new(PAGE) }
    }
}

/// See the family's list.
pub struct Interleave {
    targets: Targets,
    granule: Bytes,
    /// Pages per granule.
    span: u32,
    /// Granules of each memory, and of it together with all later ones.
    parts: Vec<(u64, u64)>,
    pages: u32,
}

impl Interleave {
    /// Creates the policy for these memories.
    pub fn new(params: &Params, targets: &Targets) -> Interleave {
        let span = (params.granule.get() / PAGE).clamp(1, 1 << 31) as u32;
        let granules = |target: u8| u64::from(targets.frames(target) / span);
        let mut behind = 0;
        let mut parts: Vec<(u64, u64)> = (0..targets.count())
            .rev()
            .map(|target| {
                behind += granules(target);
                (granules(target), behind)
            })
            .collect();
        parts.reverse();
        Interleave { targets: targets.clone(), granule: params.granule, span, parts, pages: 0 }
    }

    #[inline]
    fn locate(&self, page: u32) -> Place {
        let (target, granule) = self.granule((page / self.span).into());
        Place { target, frame: granule as u32 * self.span + page % self.span }
    }

    /// Memory of a granule, and the granule's number there.
    #[inline]
    fn granule(&self, number: u64) -> (u8, u64) {
        // Number among the granules that no earlier memory has.
        let mut left = number;
        for (target, (own, all)) in (0..).zip(&self.parts) {
            let before = (left * own).div_ceil(*all);
            if ((left + 1) * own).div_ceil(*all) > before {
                return (target, before);
            }
            left -= before;
        }
        unreachable!("the last memory has all that is left")
    }

    /// Inverse of [`Interleave::granule`].
    fn number(&self, target: u8, granule: u64) -> u64 {
        let target = usize::from(target);
        let (own, all) = self.parts[target];
        let mut left = granule * all / own;
        for (own, all) in self.parts[..target].iter().rev() {
            // Granules of an earlier memory are skipped: of `n`, `floor(n * others / all)` remain.
            left = ((left + 1) * all).div_ceil(all - own) - 1;
        }
        left
    }
}

impl Placing for Interleave {
    fn check(&self) -> Result<(), SpecError> {
        let key = "policy.interleave.granule";
        let granule = self.granule;
        if !granule.get().is_power_of_two() || granule.get() < PAGE {
            let what = format!("{granule} is not a power of two of at least a page, {PAGE} B");
            return Err(SpecError::new(key, what));
        }
        let is_whole = |target: &u8| self.targets.frames(*target).is_multiple_of(self.span);
        if let Some(target) = (0..self.targets.count()).find(|target| !is_whole(target)) {
            let size = Bytes::new(u64::from(self.targets.frames(target)) * PAGE);
            let what = format!("a memory of {size} is not a multiple of the granule, {granule}");
            return Err(SpecError::new(key, what));
        }
        Ok(())
    }
    fn settle(&mut self, extent: &Extent) {
        self.pages = extent.end;
    }
    #[inline]
    fn place(&mut self, page: u32, _now: Time) -> (Place, bool) {
        (self.locate(page), false)
    }
    fn find(&self, page: u32) -> Option<Place> {
        (page < self.pages).then(|| self.locate(page))
    }
    fn page_in(&self, place: Place) -> Option<u32> {
        let granule = self.number(place.target, (place.frame / self.span).into());
        Some(granule as u32 * self.span + place.frame % self.span).filter(|page| *page < self.pages)
    }
    fn frames(&self, target: u8) -> u32 {
        let mut left = u64::from(self.pages.div_ceil(self.span));
        for (own, all) in &self.parts[..usize::from(target)] {
            left -= (left * own).div_ceil(*all);
        }
        let (own, all) = self.parts[usize::from(target)];
        (left * own).div_ceil(all) as u32 * self.span
    }
}
