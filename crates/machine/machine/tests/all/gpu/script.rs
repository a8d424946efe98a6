//! Kernels written down instruction by instruction, as a recorded trace in Accel-Sim's format.

use crate::gpu::figure;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Where a script's addresses begin: above the lowest 16 MiB, which generic addresses take for shared memory. The machine
/// moves them down to zero.
const BASE: u64 = 1 << 32;

/// A warp's instructions; all of its lanes are at work.
#[derive(Default)]
pub(crate) struct Warp {
    lines: Vec<String>,
}

impl Warp {
    fn push(&mut self, rest: &str) {
        let pc = self.lines.len() * 16;
        self.lines.push(format!("{pc:06x} ffffffff {rest}"));
    }

    /// Every lane loads 16 bytes, side by side from `at` on, in a loop: the same instruction each time. Nobody waits for
    /// the values.
    pub(crate) fn stream(&mut self, at: u64) {
        self.lines.push(format!("ffff00 ffffffff 0 LDG.E.128 0 16 1 {:#x} 16 0", BASE + at));
    }

    /// Integer arithmetic without a result.
    pub(crate) fn alu(&mut self) {
        self.push("0 IADD3 0 0 0");
    }

    /// Integer arithmetic that reads a register and writes one.
    pub(crate) fn add(&mut self, to: u8, from: u8) {
        self.push(&format!("1 R{to} IADD3 1 R{from} 0 0"));
    }

    /// Every lane loads `width` bytes, side by side from `at` on, once the register `from` is known.
    pub(crate) fn load(&mut self, to: u8, from: u8, width: u32, at: u64) {
        let bits = width * 8;
        self.push(&format!("1 R{to} LDG.E.{bits} 1 R{from} {width} 1 {:#x} {width} 0", BASE + at));
    }

    /// Every lane stores 4 bytes, side by side from `at` on, once the register `from` is known.
    pub(crate) fn store(&mut self, from: u8, at: u64) {
        self.push(&format!("0 STG.E 1 R{from} 4 1 {:#x} 4 0", BASE + at));
    }
}

/// A kernel: blocks, warps of a block, and what each warp does.
pub(crate) fn kernel(blocks: u32, warps: u32, mut write: impl FnMut(u32, u32, &mut Warp)) -> String {
    let mut text = format!(
        "-kernel name = script\n-grid dim = ({blocks},1,1)\n-block dim = ({},1,1)\n-shmem = 0\n-nregs = 8\n\
         -accelsim tracer version = 5\n#\n",
        warps * 32
    );
    for block in 0..blocks {
        let _ = write!(text, "#BEGIN_TB\nthread block = {block},0,0\n");
        for number in 0..warps {
            let mut warp = Warp::default();
            write(block, number, &mut warp);
            let _ = write!(text, "warp = {number}\ninsts = {}\n", warp.lines.len());
            for line in &warp.lines {
                let _ = writeln!(text, "{line}");
            }
        }
        text.push_str("#END_TB\n");
    }
    text
}

/// An application of kernels, one after another, on `bytes` of memory.
pub(crate) fn application(folder: &Path, bytes: u64, kernels: &[String]) -> PathBuf {
    let mut list = format!("MemcpyHtoD,{BASE:#018x},{bytes}\n");
    for (number, text) in kernels.iter().enumerate() {
        let name = format!("kernel-{number}.traceg");
        std::fs::write(folder.join(&name), text).expect("a file can be written");
        let _ = writeln!(list, "{name}");
    }
    let path = folder.join("kernelslist.g");
    std::fs::write(&path, list).expect("a file can be written");
    path
}

/// Runs an application of these kernels on a platform; the result document.
pub(crate) fn run(system: &str, bytes: u64, kernels: &[String], set: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    let list = application(folder.path(), bytes, kernels);
    crate::gpu::lasting(&crate::gpu::run(system, &[&list.display().to_string()], set))
}

// A GPU whose pages the host brings from an SSD.

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
