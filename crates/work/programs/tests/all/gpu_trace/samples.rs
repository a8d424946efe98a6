//! Real traces: a reader is right when it reproduces their statistics, which were counted apart from it.

use programs::program::census;
use programs::simt_trace::{is_gpu_trace, open};
use proto::memory::PAGE;

use crate::gpu_trace::support::data;

#[test]
fn accel_sims_vector_addition() {
    let Some(list) = data("accelsim_traceg/kernelslist.g") else { return };
    assert!(is_gpu_trace(&list));
    for path in [list.clone(), list.parent().unwrap().to_owned(), list.with_file_name("kernel-1.traceg")] {
        let mut program = open(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let census = census(program.as_mut());
        let [kernel] = census.kernels[..] else { panic!("{} kernels", census.kernels.len()) };
        assert_eq!(kernel.name, "_Z9vectorAddPKfS0_Pfi");
        assert_eq!((kernel.blocks, kernel.threads, kernel.registers, kernel.shared), (196, 256, 12, 0));
        assert_eq!(census.warp_instructions, 26_601);
        // 50,000 elements of three arrays: two are loaded, one is stored.
        assert_eq!(
            (census.loads.instructions, census.loads.lanes, census.loads.bytes),
            (3126, 100_000, 400_000)
        );
        assert_eq!(
            (census.stores.instructions, census.stores.lanes, census.stores.lines),
            (1563, 50_000, 1563)
        );
        assert_eq!(census.loads.lines, 3126);
        // Three buffers of 200,000 bytes, 0xe00 bytes over page borders apart: 147 pages in a row.
        assert_eq!((census.footprint, census.touched_pages, census.written_pages), (147 * PAGE, 147, 50));
    }
}

#[test]
fn macsims_vector_multiplication() {
    // Warps a kernel; pages touched and written, counted apart.
    for (name, warps, touched, written) in [
        ("macsim_nvbit_vectormultadd_4096.tar.xz", 128, 40, 24),
        ("macsim_nvbit_vectormultadd_16384.tar.xz", 512, 160, 96),
    ] {
        let Some(path) = data(name) else { return };
        assert!(is_gpu_trace(&path));
        let mut program = open(&path).unwrap_or_else(|refused| panic!("{refused}"));
        let census = census(program.as_mut());
        assert_eq!(census.kernels.len(), 3);
        for (n, kernel) in census.kernels.iter().enumerate() {
            // 32 warps a block; registers R0 to R9.
            assert_eq!((kernel.blocks, kernel.threads), (warps as u32 / 32, 1024));
            assert_eq!((kernel.registers, kernel.shared), (10, 0));
            assert_eq!(kernel.name, format!("Kernel{n}"));
        }
        assert_eq!(census.warp_instructions, 3 * warps * 14);
        // Each thread loads two doubles and stores one.
        assert_eq!((census.loads.instructions, census.loads.lines), (3 * warps * 2, 3 * warps * 2 * 2));
        assert_eq!((census.stores.bytes, census.stores.lines), (3 * warps * 32 * 8, 3 * warps * 2));
        assert_eq!((census.touched_pages, census.written_pages), (touched, written));
        assert_eq!(census.footprint, touched * PAGE);
    }
}
