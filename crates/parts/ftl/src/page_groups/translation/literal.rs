//! One die of each channel after the other.

use super::{Physical, Place, Translation, TranslationContext};
use nand::numbers::FastDiv;

/// Quotient over pages of a package, and remainder.
#[derive(Clone, Copy, Debug)]
pub struct Literal {
    package: FastDiv,
    die: FastDiv,
    pages: FastDiv,
}

impl Literal {
    /// Builds the translation.
    pub fn new(context: &TranslationContext) -> Literal {
        let die = u64::from(context.blocks) * u64::from(context.pages);
        Literal {
            package: FastDiv::new(die * u64::from(context.dies)),
            die: FastDiv::new(die),
            pages: FastDiv::new(context.pages.into()),
        }
    }
}

impl Translation for Literal {
    #[inline]
    fn place(&self, group: Physical) -> Place {
        let (package, page) = self.package.div_rem(group.0.into());
        let (die, page) = self.die.div_rem(page);
        let (block, page) = self.pages.div_rem(page);
        Place { package: package as u32, die: die as u32, block: block as u32, page: page as u32 }
    }
    fn spread(&self) -> u32 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.3 by hand: 4 packages per channel of 2 dies, 256 blocks, 256 pages: 131,072 pages per package. Group
    /// 300,000 is in package 2, page 37,856 of it: 37,856 = 147 x 256 + 224 is in its first die. Group 200,000 is page
    /// 68,928 of package 1: 3,392 = 13 x 256 + 64 of its second die.
    #[test]
    fn the_quotient_is_the_package_and_the_remainder_the_page() {
        let literal = Literal::new(&TranslationContext { packages: 4, dies: 2, blocks: 256, pages: 256 });
        let place = |package, die, block, page| Place { package, die, block, page };
        assert_eq!(literal.place(Physical(300_000)), place(2, 0, 147, 224));
        assert_eq!(literal.place(Physical(200_000)), place(1, 1, 13, 64));
        assert_eq!(literal.place(Physical(131_071)), place(0, 1, 255, 255));
        assert_eq!(literal.place(Physical(131_072)), place(1, 0, 0, 0));
    }
}
