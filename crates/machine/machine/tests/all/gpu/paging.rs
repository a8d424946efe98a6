//! A GPU whose pages the host brings from an SSD.

use crate::gpu::figure;
use crate::gpu::script::{kernel, run};

/// What the driver brings at once.
const GRANULE: u64 = 4 << 10;
const GRANULES: u64 = 1024;

/// Sixteen blocks load a line of every page of their part of the granules.
fn pass() -> String {
    const BLOCKS: u64 = 16;
    const PAGES: u64 = GRANULE / 4096;
    kernel(BLOCKS as u32, 1, |block, _, warp| {
        let granules = GRANULES / BLOCKS;
        for page in 0..granules * PAGES {
            let at = u64::from(block) * granules * GRANULE + page * 4096;
            warp.load(1 + (page % 200) as u8, 0xff, 4, at);
        }
    })
}

#[test]
fn each_granule_faults_once_and_the_cold_start_is_most_of_the_time() {
    let bytes = GRANULES * GRANULE;
    let once = run("hetero", bytes, &[pass()], &[]);
    let twice = run("hetero", bytes, &[pass(), pass()], &[]);
    for document in [&once, &twice] {
        let paging = |what: &str| figure(document, &format!("/gpu/0/paging/{what}"));
        assert_eq!(paging("granules"), GRANULES as f64);
        assert_eq!(paging("moved_bytes"), bytes as f64);
        assert_eq!(paging("evictions"), 0.0);
    }
    // The second pass adds no fault, of the memory management unit or of the host.
    for what in
        ["/gpu/0/mmu/faults", "/gpu/0/paging/faults", "/gpu/0/paging/batches", "/gpu/0/paging/interrupts"]
    {
        assert_eq!(figure(&twice, what), figure(&once, what), "{what}");
    }
    let kernels = "/gpu/0/applications/0/kernels";
    let length = |n: u32| {
        let at = |what: &str| figure(&twice, &format!("{kernels}/{n}/{what}"));
        at("ended_ns") - at("begun_ns")
    };
    // Its walks and reads are those of memory; the first pass takes the interrupt, the driver and the SSD besides.
    assert!(length(0) > 10.0 * length(1), "{} ns, then {} ns", length(0), length(1));
    // A load of the first pass waits for its page, and for little else.
    let fault = figure(&once, "/breakdown_ns/load/fault");
    assert!(fault > 0.99 * figure(&once, "/gpu/0/read_latency_ns/mean"), "{fault} ns");
}
