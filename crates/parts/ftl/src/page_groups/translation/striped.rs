//! Successive numbers on successive dies.

use super::{Physical, Place, Translation, TranslationContext};
use nand::numbers::FastDiv;

/// Package first, then die, then page.
#[derive(Clone, Copy, Debug)]
pub struct Striped {
    packages: FastDiv,
    dies: FastDiv,
    pages: FastDiv,
}

impl Striped {
    /// Builds the translation.
    pub fn new(context: &TranslationContext) -> Striped {
        Striped {
            packages: FastDiv::new(context.packages.into()),
            dies: FastDiv::new(context.dies.into()),
            pages: FastDiv::new(context.pages.into()),
        }
    }
}

impl Translation for Striped {
    #[inline]
    fn place(&self, group: Physical) -> Place {
        let (rest, package) = self.packages.div_rem(group.0.into());
        let (rest, die) = self.dies.div_rem(rest);
        let (block, page) = self.pages.div_rem(rest);
        Place { package: package as u32, die: die as u32, block: block as u32, page: page as u32 }
    }
    fn spread(&self) -> u32 {
        (self.packages.get() * self.dies.get()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 4 packages per channel of 2 dies: eight consecutive groups are on eight different dies, the ninth is the next
    /// page.
    #[test]
    fn groups_in_a_row_are_on_different_dies() {
        let striped = Striped::new(&TranslationContext { packages: 4, dies: 2, blocks: 256, pages: 256 });
        let place = |package, die, block, page| Place { package, die, block, page };
        assert_eq!(striped.place(Physical(3)), place(3, 0, 0, 0));
        assert_eq!(striped.place(Physical(4)), place(0, 1, 0, 0));
        assert_eq!(striped.place(Physical(8)), place(0, 0, 0, 1));
        // 2,048 x 3 + 8 x 5 + 6: block 3, page 5, the third package's second die.
        assert_eq!(striped.place(Physical(6_190)), place(2, 1, 3, 5));
    }
}
