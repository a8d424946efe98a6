//! Rungs: kernels written down instruction by instruction, as recorded traces in Accel-Sim's format. Time of single
//! instructions and requests follows from the spec, to the picosecond; a kernel that streams through memory is
//! limited by what the spec makes the narrowest.

use crate::gpu::{figure, lasting, near, run};
use engine::Time;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Base of a script's addresses: above the lowest 16 MiB, which generic addresses take for shared memory. The machine
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

    /// Every lane loads 16 bytes, side by side from `at` on, in a loop: the same instruction each time. No warp waits
    /// for the values.
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
pub(crate) fn run_application(
    system: &str,
    bytes: u64,
    kernels: &[String],
    set: &[&str],
) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    let list = application(folder.path(), bytes, kernels);
    crate::gpu::lasting(&crate::gpu::run(system, &[&list.display().to_string()], set))
}

// A GPU whose pages the host brings from an SSD.

/// Granule that the driver brings at once.
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
    let once = run_application("hetero", bytes, &[pass()], &[]);
    let twice = run_application("hetero", bytes, &[pass(), pass()], &[]);
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

/// A cycle of every clock on the GPU side: ZnG's Table I, 1.2 GHz, in whole picoseconds.
const CYCLE: Time = Time::period(1_200_000_000);

fn cycles(document: &serde_json::Value) -> f64 {
    figure(document, "/gpu/0/cycles")
}

#[test]
fn a_lone_multiprocessor_issues_an_instruction_a_cycle() {
    const EACH: u32 = 2_000;
    for warps in [1, 4, 32] {
        let arithmetic = kernel(1, warps, |_, _, warp| (0..EACH).for_each(|_| warp.alu()));
        let document = run_application("ideal", 0, &[arithmetic], &["gpu.sms=1"]);
        // The first is issued in cycle 0.
        let all = f64::from(EACH * warps);
        assert!(
            (cycles(&document) - (all - 1.0)).abs() < 1e-6,
            "{warps} warps: {} cycles",
            cycles(&document)
        );
        assert!((figure(&document, "/gpu/0/ipc") - all / (all - 1.0)).abs() < 1e-9);
    }
}

#[test]
fn a_chain_of_arithmetic_takes_its_latency_a_link() {
    let chain = |links: u32| kernel(1, 1, |_, _, warp| (0..links).for_each(|_| warp.add(1, 1)));
    for latency in [4_u32, 25] {
        let set = format!("gpu.alu.latency={latency}");
        let run = |links| cycles(&run_application("ideal", 0, &[chain(links)], &[&set]));
        assert!((run(300) - run(100) - 200.0 * f64::from(latency)).abs() < 1e-6, "{latency}");
    }
}

/// The address of each load is the value of the one before, and all are of one line.
#[test]
fn a_chain_of_first_level_hits_takes_its_latency_a_link() {
    let chain = |links: u32| kernel(1, 1, |_, _, warp| (0..links).for_each(|_| warp.load(1, 1, 4, 0)));
    for latency in [1_u32, 18, 28] {
        let set = format!("gpu.l1.latency={latency}");
        let run = |links| run_application("ideal", 4096, &[chain(links)], &[&set]);
        let (short, long) = (run(101), run(301));
        assert!((cycles(&long) - cycles(&short) - 200.0 * f64::from(latency)).abs() < 1e-6, "{latency}");
        assert!((figure(&long, "/gpu/0/l1_hit_share") - 300.0 / 301.0).abs() < 1e-12);
        let hit = CYCLE.times(latency.into()).as_ns_f64();
        assert!((figure(&long, "/gpu/0/read_latency_ns/min") - hit).abs() < 1e-9, "{latency}");
    }
}

/// A load of a line that is in no cache, on a machine where nothing else happens.
fn lone_load(_block: u32, _number: u32, warp: &mut Warp) {
    warp.load(1, 2, 4, 0);
}

/// ZnG, Table I: what a line costs on its way from the array to the register, in a page.
#[test]
fn a_lone_read_of_zng_costs_the_sum_of_its_way() {
    let document = run_application("zng", 4096, &[kernel(1, 1, lone_load)], &[]);
    let cycles = |n: u64| CYCLE.times(n);
    // A packet of `bytes` crosses in 8 cycles, and takes a cycle for every 32 bytes, 8 of them its header.
    let packet = |bytes: u64| cycles(8 + (bytes + 8).div_ceil(32));
    // 8 bytes, 800 million times a second, on each link of the flash network; a router passes a head on in 2.5 ns. The
    // controller of a package stands at the package's own router.
    let mesh = |bytes: u64| Time::from_ps(2_500) + Time::transfer(bytes, 8 * 800_000_000);
    let stages = [
        // Until the TLB has been asked, and, once the translation is there, until the cache has.
        ("l1", cycles(1) + cycles(1)),
        ("tlb", cycles(10)),
        // The block table is in the unit's own buffer.
        ("walk", cycles(4)),
        ("network", packet(0) + packet(0) + packet(128) + packet(128)),
        ("l2", cycles(1)),
        // The dispatcher, and the controller behind it.
        ("controller", Time::from_ps(833) + Time::from_ns(10)),
        ("array", Time::from_ns(10) + Time::from_us(3)),
        // The whole page comes.
        ("flash_network", mesh(8) + mesh(4096)),
    ];
    let parts = document["breakdown_ns"]["load"].as_object().expect("a breakdown of loads");
    for (name, time) in stages {
        let found = parts.get(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0);
        assert!((found - time.as_ns_f64()).abs() < 1e-6, "{name}: {found} ns instead of {time}");
    }
    assert_eq!(parts.len(), stages.len(), "{parts:?}");
    let sum = stages.iter().fold(Time::ZERO, |sum, (_, time)| sum + *time);
    for what in ["mean", "min", "max"] {
        let found = figure(&document, &format!("/gpu/0/read_latency_ns/{what}"));
        assert!((found - sum.as_ns_f64()).abs() < 1e-6, "{what}: {found} ns instead of {sum}");
    }
}

/// Blocks, and warps of a block: as many as the 16 multiprocessors hold, four blocks and 80 warps each.
const BLOCKS: u32 = 64;

const WARPS: u32 = 20;

/// Bytes that a warp loads with one instruction: 16 a lane, four lines.
const PIECE: u64 = 512;

/// All warps load, `rounds` times, the next piece of what all of them together go through, `stride` bytes apart, and wait
/// for nothing.
fn stream(system: &str, rounds: u64, stride: u64, set: &[&str]) -> Value {
    let all = u64::from(BLOCKS * WARPS);
    let text = kernel(BLOCKS, WARPS, |block, number, warp| {
        let first = u64::from(block * WARPS + number);
        for round in 0..rounds {
            warp.stream((round * all + first) * stride);
        }
    });
    run_application(system, rounds * all * stride, &[text], set)
}

/// Panics unless a figure stays below a limit, and reaches all but a share of it.
#[track_caller]
fn reaches(what: &str, found: f64, limit: f64, share: f64) {
    assert!(found <= limit && found >= limit * (1.0 - share), "{what}: {found} of {limit}");
}

fn bandwidth(document: &Value) -> f64 {
    figure(document, "/gpu/0/memory/bandwidth_bytes_per_s")
}

/// Six controllers with buses of 64 bits at 4,008 MT/s, which refresh takes for 110 ns of 3.9 us.
const GDDR5: f64 = 6.0 * 8.0 * 4.008e9 * (1.0 - 110.0 / 3_900.0);

#[test]
fn a_stream_reaches_the_buses_of_gddr5() {
    let wide = stream("ideal", 48, PIECE, &["network.width=64B"]);
    reaches("GDDR5", bandwidth(&wide), GDDR5, 0.02);
}

/// Between the cache and the multiprocessors a line and its header of 8 B take five cycles of 32 B. Six links of this kind
/// are a little slower than the buses of GDDR5.
#[test]
fn a_stream_is_limited_by_the_banks_links() {
    let links = 6.0 * 128.0 / 5.0 * 1.2e9;
    assert!(links < GDDR5);
    reaches("links", bandwidth(&stream("ideal", 48, PIECE, &[])), links, 0.02);
}

/// ZnG, Table I: six modules, 39 GB/s together.
#[test]
fn a_stream_reaches_what_optane_gives() {
    reaches("Optane", bandwidth(&stream("optane", 48, PIECE, &[])), 39e9, 0.02);
}

/// Every page crosses the bus of the buffer twice: from flash, and, in lines, to the cache.
#[test]
fn a_stream_is_limited_by_the_buffer_of_the_engine() {
    let document = stream("hybridgpu", 24, PIECE, &[]);
    reaches("the buffer", bandwidth(&document), 6.4e9 / 2.0, 0.02);
    let translations = figure(&document, "/gpu/0/memory/engine/ftl_requests") / seconds(&document);
    assert!(translations < 0.6 * 8.0 / 5e-6, "{translations} translations a second");
}

/// One line of each page: with half of its firmware's places the engine translates more slowly than its buffer moves.
#[test]
fn a_stride_of_pages_is_limited_by_the_translation_layer() {
    let document = stream("hybridgpu", 4, 4096, &["memory.engine.ftl_in_service=4"]);
    let translations = figure(&document, "/gpu/0/memory/engine/ftl_requests") / seconds(&document);
    reaches("translations", translations, 4.0 / 5e-6, 0.02);
    assert!(figure(&document, "/gpu/0/memory/engine/buffer_busy_share") < 0.9);
}

fn seconds(document: &Value) -> f64 {
    figure(document, "/simulated_ns") / 1e9
}

/// With whole pages on the flash network every line costs a page: 16 controllers with a link of 8 B at 800 MT/s each.
#[test]
fn pages_on_the_flash_network_are_limited_by_its_links() {
    let apart = "memory.direct.array.merge_reads=false";
    for (system, set) in [("zng-base", &[apart][..]), ("zng", &[apart, "l2.prefetch=none"])] {
        let document = stream(system, 12, PIECE, set);
        let moved = figure(&document, "/gpu/0/memory/direct/network_bytes_per_s");
        reaches(system, moved, 16.0 * 8.0 * 800e6, 0.01);
        near("lines of a page", moved / bandwidth(&document), 32.0, 1e-9);
    }
}

/// Where lines are sent alone and fetched before they are asked for, the links carry nothing in vain.
#[test]
fn a_stream_of_lines_reaches_the_flash_network() {
    let document = stream("zng", 48, PIECE, &["memory.direct.transfer=lines"]);
    reaches("zng", bandwidth(&document), 16.0 * 8.0 * 800e6, 0.02);
}

/// Flash with few planes and short blocks, so that log blocks fill.
const FLASH: [&str; 14] = [
    "gpu.resident.blocks=4",
    "gpu.kernels=shared",
    "memory.direct.geometry.channels=4",
    "memory.direct.geometry.dies=1",
    "memory.direct.geometry.planes=4",
    "memory.direct.geometry.blocks=16",
    "memory.direct.geometry.pages=16",
    "memory.direct.mapping.group=16",
    "memory.direct.mapping.data_blocks=8",
    "memory.direct.controller.count=4",
    "memory.direct.network={ mesh = { rows = 2, columns = 2 } }",
    "mmu.table.block.reach=1MiB",
    "l2.writes=read_only",
    "memory.direct.mapping.log_filled=[\"75%\"]",
];

fn document(set: &[&str]) -> Value {
    lasting(&run("zng-base", &["back:n=4096"], &[&FLASH[..], set].concat()))
}

/// The helper thread executes as many instructions for each page and each block, and they count for no application.
#[test]
fn every_page_and_every_block_costs_instructions() {
    let with = document(&[]);
    let direct = |name: &str| figure(&with, &format!("/gpu/0/memory/direct/{name}"));
    assert!(direct("gc_runs") > 0.0);
    let expected = 28.0 * direct("gc_programs") + 56.0 * direct("erases");
    let beyond = figure(&with, "/gpu/0/helper_instructions") - expected;
    // A step of each plane may be prepared or under way at the end.
    assert!((0.0..=16.0 * 56.0).contains(&beyond), "{beyond} beyond {expected}");
    let without = document(&["memory.direct.helper.page=0", "memory.direct.helper.block=0"]);
    assert!(without["gpu"][0].get("helper_instructions").is_none());
    let instructions = |document: &Value| figure(document, "/gpu/0/warp_instructions");
    assert_eq!(instructions(&with), instructions(&without));
}

/// The more it executes, the longer merges take.
#[test]
fn merges_wait_for_it() {
    let time = |page: u32| {
        let document = document(&[&format!("memory.direct.helper.page={page}")]);
        figure(&document, "/simulated_ns")
    };
    assert!(time(10_000) > 1.2 * time(0));
}
