//! Machines with hardly any room: whatever waits for whom, every program ends and every account agrees.

use crate::gpu::{PLATFORMS, run};
use proptest::prelude::*;

const PROGRAMS: [&str; 8] = [
    "bfs1:scale=6",
    "bfs5:scale=6",
    "bfs6:scale=6",
    "gc2:scale=6",
    "back:n=256",
    "gaus:n=32",
    "FDT:n=64,launches=3",
    "gram:n=32",
];

/// Everything that all platforms have as small as it can be, or nearly.
fn narrow() -> impl Strategy<Value = Vec<String>> {
    let small = prop::sample::select(vec![1_u32, 2, 8]);
    let few = prop::sample::select(vec![1_u32, 4]);
    let sizes = (small.clone(), small.clone(), small.clone(), small.clone(), small.clone(), small);
    (sizes, few.clone(), few.clone(), few, 1..=6_u32, prop::sample::select(vec![0_u32, 1, 8])).prop_map(
        |((queue, stores, missing, misses, registers, slots), entries, sets, ways, banks, merges)| {
            let all: [(&str, u32); 17] = [
                ("gpu.sms", banks),
                ("gpu.load_store.queue", queue),
                ("gpu.load_store.stores", stores),
                ("gpu.l1.miss_registers", missing),
                ("gpu.l1.merges", merges),
                ("gpu.l1.sets", sets),
                ("gpu.l1.ways", ways),
                ("gpu.tlb.entries", entries),
                ("gpu.tlb.ways", entries),
                ("gpu.tlb.misses", misses),
                ("mmu.walkers", misses),
                ("l2.banks", banks),
                ("l2.registers", registers),
                ("l2.merges", merges.max(1)),
                ("l2.write_slots", slots),
                ("l2.sets", sets),
                ("l2.ways", ways),
            ];
            all.iter().map(|(key, value)| format!("{key}={value}")).collect()
        },
    )
}

/// What a platform has of its own, small: log blocks of two pages that fill at once, registers and buffers that thrash,
/// less GPU memory than data.
fn own(system: &str) -> &'static [&'static str] {
    const FLASH: [&str; 3] =
        ["memory.direct.geometry.dies=1", "memory.direct.geometry.pages=2", "mmu.table.block.reach=1MiB"];
    const REGISTERS: [&str; 5] =
        [FLASH[0], FLASH[1], FLASH[2], "memory.direct.registers.count=2", "l2.parked=0B"];
    match system {
        "hybridgpu" => &[
            "memory.engine.evictions=1",
            "memory.engine.ftl_in_service=1",
            "memory.engine.write_buffer.capacity=32KiB",
            "memory.engine.read_buffer.capacity=32KiB",
        ],
        "hetero" => &["paging.memory=128KiB", "paging.copies=1", "paging.driver.batch=1"],
        "zng" | "zng-wropt" => &REGISTERS,
        "zng-base" | "zng-rdopt" => &FLASH,
        _ => &[],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_narrow_machine_ends(
        system in prop::sample::select(&PLATFORMS),
        programs in prop::sample::subsequence(&PROGRAMS, 1..=2),
        narrow in narrow(),
    ) {
        let set: Vec<&str> = own(system).iter().copied().chain(narrow.iter().map(String::as_str)).collect();
        run(system, &programs, &set);
    }
}
