//! The examples of `docs/kernels.md` are kernels.

use crate::{counted, read};
use nest::{Kernel, Piece};

const PAGE: &str = include_str!("../../../../../docs/kernels.md");

/// The texts of the page's TOML blocks.
fn examples() -> Vec<&'static str> {
    PAGE.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn examples_are_read_and_counted() {
    let examples = examples();
    assert_eq!(examples.len(), 3);
    for text in examples {
        let whole = read(text, "kernels.md", &[]);
        let sizes: Vec<_> = whole.sizes().iter().map(|(name, size)| (name.clone(), 5 + size % 7)).collect();
        let small: Kernel = read(text, "kernels.md", &sizes);
        for at in 0..small.microblocks().len() {
            let piece = Piece::whole(at);
            assert_eq!(small.counts(&piece), counted(&small, &piece), "{}", small.name());
        }
    }
}

/// A text says only what differs from the kernel that it inherits.
#[test]
fn a_kernel_inherits_a_shipped_one() {
    let kernel = read("inherits = \"gemm\"\nname = \"mine\"\n[sizes]\nni = 10\n", "mine.toml", &[]);
    assert_eq!(kernel.name(), "mine");
    let rows =
        |name: &str| kernel.arrays().iter().find(|array| array.name == name).map(|array| array.shape[0]);
    assert_eq!((rows("A"), rows("B")), (Some(10), Some(4000)));
}

#[test]
fn the_page_names_every_shipped_kernel() {
    for (name, _) in nest::programs() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}
