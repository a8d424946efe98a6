//! Kernels as loop nests, from outside.

mod diagnostics;
mod executed;
mod gpu;
mod pieces;
mod programs;
mod reference;

use nest::{Counts, Data, Kernel, Piece};

/// Returns a kernel with small sizes, all different so that they cannot be confused. Blocks have 4 and 3 rows, so
/// that the last one is smaller.
pub(crate) fn small(name: &str, text: &str) -> Kernel {
    let (whole, name_of_kernel) = (read(text, name, &[]), name);
    let size = |(at, (name, _)): (usize, &(String, i64))| {
        let rows = match name.as_str() {
            "t" => 4,
            "u" => 3,
            // Number of repetitions of a GPU program's microblocks.
            "pivots" | "steps" => 2,
            "columns" if name_of_kernel == "gram" => 2,
            _ => 11 + 2 * at as i64,
        };
        (name.clone(), rows)
    };
    let sizes: Vec<(String, i64)> = whole.sizes().iter().enumerate().map(size).collect();
    read(text, name, &sizes)
}

pub(crate) fn read(text: &str, name: &str, sizes: &[(String, i64)]) -> Kernel {
    Kernel::read(text, name, sizes).unwrap_or_else(|fault| panic!("{fault}"))
}

/// Returns the counts of executing a piece.
pub(crate) fn counted(kernel: &Kernel, piece: &Piece) -> Counts {
    kernel.execute_piece(piece, &mut Data::generate(kernel, 1))
}
