//! A slice of a machine: a half, a quarter or an eighth of everything of which there are many.
//!
//! Multiprocessors, what they share (TLB, walkers, the shared cache's capacity), channels with their packages, planes
//! and registers, buffers, buses: each slice has its share, so that demand, bandwidth and capacity keep their
//! proportions to each other and to the programs' data, which shrink as much. A server of which there is one becomes
//! slower by the factor. What a multiprocessor, a package or a link is stays as it is, and so do latencies.

/// The parts of each halving: one, a half, a quarter, an eighth.
type Halvings<T> = [T; 4];

const MESH: Halvings<(u32, u32)> = [(4, 4), (2, 4), (2, 2), (1, 2)];

/// Controllers, million transfers a second on the bus of each, and picoseconds a burst on it.
const GDDR5: Halvings<(u32, u32, u32)> =
    [(6, 4_008, 1_996), (3, 4_008, 1_996), (1, 6_012, 1_331), (1, 3_006, 2_661)];
/// Modules, thousand transfers a second on the bus of each, and banks.
const OPTANE: Halvings<(u32, u32, u32)> =
    [(6, 812_500, 25), (3, 812_500, 25), (1, 1_218_750, 38), (1, 609_375, 19)];
/// PCIe generation and lanes of the drive.
const DRIVE_LINK: Halvings<(u32, u32)> = [(3, 4), (3, 2), (3, 1), (2, 1)];
/// Controller cores of the drive, and nanoseconds of a command on one: 750,000 commands a second over the factor.
const DRIVE_CORES: Halvings<(u32, u32)> = [(5, 6_660), (3, 7_992), (2, 10_656), (1, 10_656)];

/// The overrides that make a slice of a system; none if it is whole.
pub(super) fn of(system: &str, halvings: usize) -> Vec<String> {
    if halvings == 0 {
        return Vec::new();
    }
    let factor = 1u32 << halvings;
    let mut sets = vec![
        format!("gpu.sms={}", 16 / factor),
        format!("mmu.tlb.entries={}", 512 / factor),
        format!("mmu.walkers={}", 32 / factor),
        format!("l2.sets={}", if matches!(system, "zng" | "zng-rdopt") { 4096 } else { 1024 } / factor),
    ];
    if system.starts_with("zng") {
        sets.extend(direct(system, halvings));
        return sets;
    }
    sets.push(format!("mmu.table.radix.walk_cache.entries={}", 1024 / factor));
    match system {
        "hybridgpu" => sets.extend(engine(factor)),
        "optane" => {
            let (modules, rate, banks) = OPTANE[halvings];
            sets.push(format!("memory.dram.controllers={modules}"));
            sets.push(format!("memory.dram.bus.rate={rate}kT/s"));
            sets.push(format!("memory.dram.banks.count={banks}"));
        }
        _ => {
            let (controllers, rate, burst) = GDDR5[halvings];
            sets.push(format!("memory.dram.controllers={controllers}"));
            sets.push(format!("memory.dram.bus.rate={rate}MT/s"));
            sets.push(format!("memory.dram.timing.ccd={burst}ps"));
        }
    }
    if system == "hetero" {
        sets.extend(paging(halvings));
    }
    sets
}

fn direct(system: &str, halvings: usize) -> Vec<String> {
    let factor = 1 << halvings;
    let (rows, columns) = MESH[halvings];
    let mut sets = vec![
        format!("memory.direct.geometry.channels={}", 16 / factor),
        format!("memory.direct.controller.count={}", 16 / factor),
        format!("memory.direct.network.mesh.rows={rows}"),
        format!("memory.direct.network.mesh.columns={columns}"),
        format!("memory.direct.mapping.group={}", 128 / factor),
        format!("mmu.table.block.reach={}MiB", 192 / factor),
    ];
    if system == "zng" {
        sets.push(format!("l2.parked={}KiB", 12_288 / factor));
    }
    sets
}

fn engine(factor: u32) -> Vec<String> {
    vec![
        format!("memory.engine.dispatch_time={}ns", 5 * factor),
        format!("memory.engine.ftl_in_service={}", 8 / factor),
        format!("memory.engine.evictions={}", 1024 / factor),
        format!("memory.engine.read_buffer.capacity={}KiB", 32_768 / factor),
        format!("memory.engine.write_buffer.capacity={}KiB", 32_768 / factor),
        format!("memory.engine.dram.bandwidth={}MB/s", 6_400 / factor),
        format!("memory.engine.prefetch.pages={}", 16 / factor),
        format!("flash.geometry.channels={}", 16 / factor),
    ]
}

fn paging(halvings: usize) -> Vec<String> {
    let factor = 1 << halvings;
    let (generation, lanes) = DRIVE_LINK[halvings];
    let (cores, command) = DRIVE_CORES[halvings];
    vec![
        format!("flash.geometry.channels={}", 8 / factor),
        format!("flash.host.link.pcie.generation={generation}"),
        format!("flash.host.link.pcie.lanes={lanes}"),
        format!("flash.host.controller.cores={cores}"),
        format!("flash.host.controller.command={command}ns"),
        format!("paging.link.lanes={}", 16 / factor),
        format!("paging.copy_bandwidth={}MB/s", 8_000 / factor),
        format!("paging.driver.batch_time={}us", 10 * factor),
        format!("paging.driver.fault_time={factor}us"),
        format!("paging.submit={}us", 3 * factor),
        format!("paging.complete={}us", 2 * factor),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::suite::size;
    use super::of;
    use programs::program::{WarpAt, open};
    use proto::memory::PAGE;
    use proto::simt::{InstKind, Tape};
    use spec::MemorySpec;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_slice_of_every_platform_can_be_built() {
        for system in ["ideal", "hetero", "hybridgpu", "optane", "zng-base", "zng-rdopt", "zng-wropt", "zng"]
        {
            for halvings in 0..4 {
                let sets = of(system, halvings);
                assert!(machine::load(system, &sets).is_ok(), "{system} halved {halvings} times");
            }
        }
    }

    /// Registers that gather writes, pages of the shared cache, and planes of ZnG on a slice.
    fn capacities(halvings: usize) -> [f64; 3] {
        let loaded = machine::load("zng", &of("zng", halvings)).expect("a slice");
        let MemorySpec::Direct(direct) = &loaded.spec.memory[0].spec else {
            panic!("no flash on the network")
        };
        let geometry = &direct.geometry;
        let planes = f64::from(geometry.channels * geometry.packages * geometry.dies * geometry.planes);
        // One of a plane's is the data register.
        let gathering = f64::from(direct.registers.count - 1) * (1.0 - direct.registers.reserve.get());
        let l2 = &loaded.spec.l2[0].spec;
        [planes * gathering, l2.capacity() as f64 / PAGE as f64, planes]
    }

    /// Pages that a program's stores go through before they come back to one, in the order of blocks: the median of a
    /// kernel, of the kernel in which it is longest.
    fn sweep(text: &str) -> usize {
        const TOUCHES: usize = 30_000;
        let mut program = open(&[text]).expect("a program").remove(0);
        let (mut longest, mut tape) = (0, Tape::default());
        while let Some(kernel) = program.launch() {
            let mut pages: Vec<u64> = Vec::new();
            let warps = kernel.threads.div_ceil(32);
            'blocks: for (block, warp) in (0..kernel.blocks).flat_map(|b| (0..warps).map(move |w| (b, w))) {
                program.start(0, WarpAt::new(block, warp, kernel.threads));
                loop {
                    tape.clear();
                    let goes_on = program.step(0, 1, &mut tape);
                    for store in tape.insts.iter().filter(|inst| inst.kind == InstKind::Store) {
                        let first = store.addresses as usize;
                        let lanes = &tape.addresses[first..first + store.mask.count_ones() as usize];
                        let touched: BTreeSet<u64> = lanes.iter().map(|address| address / PAGE).collect();
                        pages.extend(touched);
                        pages.dedup();
                    }
                    if pages.len() > TOUCHES {
                        break 'blocks;
                    }
                    if !goes_on {
                        break;
                    }
                }
            }
            let mut last: BTreeMap<u64, usize> = BTreeMap::new();
            let gaps =
                pages.iter().enumerate().filter_map(|(at, page)| last.insert(*page, at).map(|was| (was, at)));
            let mut gaps: Vec<(usize, usize)> = gaps.collect();
            gaps.sort_unstable_by_key(|(from, to)| to - from);
            // Where rows share a page, a few ways are longer.
            if let Some(&(from, to)) = gaps.get(gaps.len() / 2) {
                longest = longest.max(pages[from..to].iter().collect::<BTreeSet<_>>().len());
            }
        }
        longest
    }

    /// The data swept by a dense program keep their proportion to registers, shared cache and planes at every scale, or
    /// are so small that they fit everywhere.
    #[test]
    fn a_slice_keeps_what_is_swept_in_proportion() {
        let whole = capacities(0);
        for program in ["gaus", "FDT", "gram"] {
            let text = |halvings| format!("{program}:{}", size(program, halvings));
            let full = sweep(&text(0)) as f64;
            for halvings in 1..4 {
                let capacities = capacities(halvings);
                let swept = sweep(&text(halvings)) as f64;
                for (part, all) in capacities.into_iter().zip(whole) {
                    let (here, there) = (swept / part, full / all);
                    let little = here < 0.2 && there < 0.2;
                    assert!(
                        little || (here / there - 1.0).abs() < 0.01,
                        "{program}, halved {halvings} times: {swept} of {part}, on the whole machine {full} of {all}"
                    );
                }
            }
        }
        // Registers do not hold a square matrix of an eighth of the bytes that they would hold on the whole machine.
        assert!(sweep("gaus:n=1040") as f64 > capacities(3)[0] && full_fits());
    }

    fn full_fits() -> bool {
        (sweep(&format!("gaus:{}", size("gaus", 0))) as f64) < capacities(0)[0]
    }
}
