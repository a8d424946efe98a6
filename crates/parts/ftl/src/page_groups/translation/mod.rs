//! Translation of a page group's number to a place.

pub mod literal;
pub mod striped;

use super::{Physical, Place};

/// Translation of page group numbers to places.
///
/// Contract: a pure bijection between the numbers below packages x dies x blocks x pages and as many places. Each
/// aligned run of `spread() * pages` numbers fills the block of one number in `spread()` dies per channel: the first
/// `spread()` of them are on its first pages, the next ones on its second.
pub trait Translation {
    /// Returns the place of a group.
    fn place(&self, group: Physical) -> Place;
    /// Returns the number of dies per channel that consecutive groups are spread over.
    fn spread(&self) -> u32;
}

/// Context from which a translation is built.
#[derive(Clone, Copy, Debug)]
pub struct TranslationContext {
    /// Packages per channel.
    pub packages: u32,
    /// Dies per package.
    pub dies: u32,
    /// Blocks per plane.
    pub blocks: u32,
    /// Pages per block.
    pub pages: u32,
}

config::policies! {
    /// Translation of a page group's number to a place.
    pub family GroupTranslation: dyn Translation, context TranslationContext {
        /// Numbers fill one die of each channel after the other.
        ///
        /// FlashAbacus, section 4.3: the number over the pages of a package is the package in its channel, the
        /// remainder the page. Groups take all planes of a die at once, so a package has as many of these pages as one
        /// plane of each of its dies.
        default literal => literal::Literal::new,
        /// Successive numbers go to successive packages, then dies.
        ///
        /// Drives do this, so that consecutive groups are read and programmed in parallel.
        striped => striped::Striped::new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<GroupTranslation>().expect("the list is whole");
        let context = TranslationContext { packages: 3, dies: 2, blocks: 5, pages: 4 };
        let sets = context.packages * context.dies;
        let groups = sets * context.blocks * context.pages;
        for family in GroupTranslation::all_defaults() {
            let translation = family.build(&context);
            let spread = translation.spread();
            let run = spread * context.pages;
            assert_eq!(groups % run, 0, "{}", family.name());
            let mut seen = BTreeSet::new();
            for number in 0..groups {
                let place = translation.place(Physical(number));
                assert!(place.package < context.packages && place.die < context.dies);
                assert!(place.block < context.blocks);
                assert_eq!(place.page, number % run / spread, "{} of {number}", family.name());
                let first = translation.place(Physical(number / run * run));
                assert_eq!(place.block, first.block, "{} of {number}", family.name());
                assert!(seen.insert(place), "{} of {number}", family.name());
            }
            for run in (0..groups).step_by(run as usize) {
                let of = |n| translation.place(Physical(run + n));
                let dies: BTreeSet<_> = (0..spread).map(of).map(|place| (place.package, place.die)).collect();
                assert_eq!(dies.len(), spread as usize);
            }
        }
    }
}
