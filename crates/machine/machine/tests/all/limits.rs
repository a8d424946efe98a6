//! Values that parse but cannot be simulated are refused with their limit, never met by a panic.

use config::{Layers, Presets};
use machine::run::{Plan, check, run_alone, run_for};
use machine::{Loaded, Spec};
use proptest::prelude::*;
use spec::systems::SYSTEMS;

const PARTS: [&str; 5] = [
    "flash.buffer={ capacity = \"1MiB\", reads = true, writes = true, high = \"50%\", low = \"25%\", \
     in_flight = \"128KiB\", protected = true, eviction = \"lru\", admission = \"always\", moves = \"units\", \
     bandwidth = \"1GB/s\", latency = \"1us\" }",
    "flash.ftl.mapping={ demand = { capacity = \"4KiB\", granularity = \"entry\", cached_entry = \"8B\", \
     stored_entry = \"8B\", read = \"4KiB\" } }",
    "flash.geometry.blocks=64",
    "flash.ftl.gc.start=3",
    "flash.ftl.gc.stop=4",
];

fn load(set: &[&str]) -> Result<Loaded, String> {
    let set: Vec<String> = PARTS.iter().chain(set).map(|text| (*text).to_owned()).collect();
    machine::load("d16", &set).map_err(|diagnostic| diagnostic.to_string())
}

#[test]
fn what_is_beyond_a_limit_names_it() {
    for (set, said) in [
        ("flash.cell.erase=2h", "the maximum is 1h"),
        ("flash.cell.read=[\"1us\", \"200d\"]", "the maximum is 1h"),
        ("host.submit=61min", "the maximum is 1h"),
        ("flash.die.scheduler.read_first.max_wait=2h", "the maximum is 1h"),
        ("flash.buffer.bandwidth=999kB/s", "the minimum is 1MB/s"),
        ("flash.channel.rate=1kT/s", "the minimum is 1MT/s"),
        ("flash.ftl.gc.victim.d_choices.d=0", "allowed: 1 to"),
        ("flash.ftl.gc.victim.windowed_greedy.window=0", "allowed: 1 to"),
        ("flash.ftl.allocation.least_queued.look=0", "allowed: 1 to"),
        ("flash.ftl.allocation.full.look=0", "allowed: 1 to"),
        ("flash.ftl.allocation.restricted.look=0", "allowed: 1 to"),
        ("flash.ftl.allocation.restricted.free=DPD", "one to three different letters"),
        ("flash.ftl.allocation.restricted.free=CWDP", "all four free is the policy `full`"),
        ("flash.ftl.allocation.full.gather=2h", "the maximum is 1h"),
        ("flash.buffer.eviction.cflru.window=0", "allowed: 1 to"),
        ("flash.host.nvme.arbitration.round_robin.burst=0", "allowed: 1 to"),
        ("flash.host.controller.cores=4294967295", "allowed: 1 to 65536"),
        ("flash.geometry.blocks=4294967295", "268435456 can be simulated"),
        ("flash.geometry.channels=60000", "dies in all; at most 65536"),
    ] {
        let shown = load(&[set]).map(|_| ()).expect_err(set);
        assert!(shown.contains(said), "{set}: no `{said}` in\n{shown}");
        assert!(shown.contains("--> --set"), "{set}: no place in\n{shown}");
    }
    // At its limit each is as good as any other.
    for set in ["flash.cell.erase=1h", "host.submit=60min", "flash.buffer.bandwidth=1MB/s"] {
        assert!(load(&[set]).is_ok(), "{set}");
    }
}

/// Platforms with small caches, flash and buffers.
const PLATFORMS: [(&str, &[&str]); 5] = [
    ("ideal", &[]),
    ("zng", FLASH),
    ("zng-wropt", FLASH),
    (
        "hybridgpu",
        &[
            "flash.geometry.channels=2",
            "flash.geometry.dies=2",
            "flash.geometry.planes=2",
            "flash.geometry.blocks=64",
            "flash.geometry.pages=16",
            "flash.ftl.gc.start=5",
            "flash.ftl.gc.stop=6",
            "memory.engine.read_buffer.capacity=64KiB",
            "memory.engine.write_buffer.capacity=64KiB",
        ],
    ),
    ("hetero", &["paging.granule=4KiB", "paging.memory=1MiB", "flash.geometry.blocks=64"]),
];
const FLASH: &[&str] = &[
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
];

#[test]
fn what_a_gpu_cannot_be_is_said() {
    for (system, set, said) in [
        ("ideal", "gpu.sms=1025", "allowed: 1 to 1024"),
        ("ideal", "gpu.clock=999kHz", "the minimum is 1MHz"),
        ("ideal", "network.clock=2000GHz", "counted in picoseconds"),
        ("ideal", "l2.read_latency=4000000000", "the maximum is 1000000"),
        ("ideal", "network.header=1GiB", "the maximum is 1MiB"),
        ("ideal", "network.width=0B", "`width` is 0"),
        ("ideal", "l2.sets=4194304", "lines in all; at most 16777216"),
        ("ideal", "gpu.l1.sets=1048576", "lines of first-level caches in all"),
        ("ideal", "gpu.tlb.ways=3", "are not a multiple of 3 ways"),
        ("ideal", "mmu.tlb.entries=4294967295", "allowed: 1 to 16777216"),
        ("ideal", "mmu.walkers=0", "`walkers` is 0"),
        ("ideal", "memory.dram.timing.rcd=10us", "closes the row again"),
        ("astriflash", "memory.dram_cache.dram.timing.faw=1ms", "closes the row again"),
        ("zng", "memory.direct.geometry.blocks=1000000", "blocks in all; at most 268435456"),
        ("zng", "memory.direct.registers.count=1", "at least 2 are needed"),
        ("hybridgpu", "memory.engine.read_buffer.capacity=32GiB", "the maximum is 16GiB"),
        ("hetero", "paging.granule=4GiB", "the maximum is 1GiB"),
        ("hetero", "paging.memory=2KiB", "are less than one granule"),
        ("os-swap", "swap.memory=2TiB", "the maximum is 1TiB"),
        ("os-swap", "swap.free=8GiB", "leaves none for data"),
        ("os-swap", "cpu.threads.scheduler=priority", "wakes a thread"),
        ("os-swap", "mmu.table.radix.page=64KiB", "page of 4096 B"),
    ] {
        let shown = machine::load(system, &[set.to_owned()]).map(|_| ()).expect_err(set).to_string();
        assert!(shown.contains(said), "{system}, {set}: no `{said}` in\n{shown}");
        assert!(shown.contains("--> --set"), "{system}, {set}: no place in\n{shown}");
    }
}

/// A spec without a table that another of its tables needs is refused when it is read, and says which one.
#[test]
fn tables_that_belong_together_are_demanded() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        machine::load(&path.to_string_lossy(), &[]).map(|_| ()).map_err(|diagnostic| diagnostic.to_string())
    };
    let whole = |system: &str| machine::load(system, &[]).expect("it loads").to_toml();
    for (system, left_out, said) in [
        ("z-ssd", "host", "the part `flash` is unused"),
        ("z-ssd", "flash", "`host` lacks `flash`"),
        ("ideal", "mmu", "`gpu` lacks `mmu`"),
        ("ideal", "gpu", "the part `mmu` is unused"),
        ("hetero", "memory", "the host cannot page into memory that is not DRAM"),
        ("os-swap", "memory", "the operating system cannot page into memory that is not DRAM"),
        ("hybridgpu", "flash", "`memory` lacks `flash`"),
    ] {
        let mut table: toml::Table = whole(system).parse().expect("TOML");
        table.remove(left_out);
        let shown = read("part.toml", table.to_string()).expect_err(said);
        assert!(shown.contains(said) && shown.contains("part.toml"), "{system}: {shown}");
    }
    let mut engine: toml::Table = whole("hybridgpu").parse().expect("TOML");
    for table in ["flash", "host"] {
        engine.remove(table);
    }
    let shown = read("engine.toml", engine.to_string()).expect_err("no flash");
    assert!(shown.contains("`memory` lacks `flash`"), "{shown}");
    let shown = read("both.toml", "inherits = [\"zng\", \"hetero\"]\n".into()).expect_err("two memories");
    assert!(shown.contains("memory"), "{shown}");
    assert!(machine::load("gtx580", &[]).is_ok());
    let fault = run_alone(&Plan::new("gtx580", "gaus:n=16")).map(|_| ()).expect_err("nothing to run on");
    assert!(fault.to_string().contains("no memory behind the GPU's shared cache"), "{fault}");
}

/// A program on a drive and requests on a GPU without one are refused, by a run and by a look through it.
#[test]
fn work_needs_a_part_that_does_it() {
    for (system, workload, said) in
        [("d16", "gaus:n=16", "has no GPU"), ("ideal", "randread", "no flash device that a host reaches")]
    {
        let plan = Plan::new(system, workload);
        let faults = [run_alone(&plan).map(|_| ()), check(&plan).map(|_| ())];
        for fault in faults.map(|result| result.expect_err(said).to_string()) {
            assert!(fault.contains(said), "{fault}");
        }
    }
}

/// Programs that do not fit into flash are refused before they run, with both sizes.
#[test]
fn programs_larger_than_flash_are_refused() {
    for (system, set, workload, holds) in [
        // 16 planes of 8 data blocks of 16 pages of 4 KiB; nine programs have an entry of 1 MiB each.
        (PLATFORMS[1].0, PLATFORMS[1].1, ["gaus:n=16"; 9].to_vec(), 8 << 20),
        // One of 40 MiB and its page tables on 32 MiB less the spare space.
        (PLATFORMS[3].0, PLATFORMS[3].1, vec!["gaus:n=3200"], 0),
    ] {
        let mut plan = set.iter().fold(Plan::new(system, workload[0]), |plan, key| plan.set(key));
        plan.workloads = workload.iter().map(|w| (*w).to_owned()).collect();
        let shown = run_alone(&plan).map(|_| ()).expect_err(system).to_string();
        assert!(shown.contains("the programs need") && shown.contains("the flash holds"), "{shown}");
        assert!(holds == 0 || shown.contains(&format!("need {} B", 9 << 20)), "{shown}");
        assert!(shown.contains(&format!("holds {holds} B")) || holds == 0, "{shown}");
    }
}

/// The files of a service take more than the file system of `d16` has room for: some 14.7 GB.
#[test]
fn services_larger_than_their_drive_are_refused() {
    for (service, bytes) in
        [("img-u:size=14.7GB,requests=10", 14.7e9), ("apache-u:size=14.8GB,requests=10", 14.8e9)]
    {
        let plan = Plan::new("d16", service).set("flash.precondition=none");
        let shown = run_alone(&plan).map(|_| ()).expect_err(service).to_string();
        assert!(shown.contains("do not fit on drive 0") && shown.contains("has room for 14"), "{shown}");
        let taken =
            shown.split("files need ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        assert!(taken.is_some_and(|taken| (0.98..1.05).contains(&(taken / bytes))), "{taken:?}: {shown}");
    }
    // Nearly all of the room.
    let plan = Plan::new("d16", "img-u:size=14.4GB,requests=10").set("flash.precondition=none");
    assert!(run_alone(&plan).unwrap_or_else(|fault| panic!("{fault}")).ok);
}

/// A value that looks like one of the kind that a key has, small, large or absurd.
fn value() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "", "", "", "ps", "us", "ms", "s", "h", "d", "B", "KiB", "MiB", "GiB", "PB", "%", "B/s", "GB/s",
        "MT/s", "GT/s",
    ]);
    let number = prop_oneof![
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551615".to_owned()),
        (0_u32..64).prop_map(|bits| (1_u64 << bits).to_string()),
        (0_u64..300).prop_map(|n| n.to_string()),
        (0.0_f64..2.0).prop_map(|x| x.to_string()),
    ];
    let quantity = (number, unit).prop_map(|(n, unit)| format!("{n}{unit}"));
    let word = prop::sample::select(vec![
        "true", "false", "[]", "{}", "\"\"", "fifo", "page", "CWDP", "none", "nan", "\u{e9}",
    ]);
    prop_oneof![6 => quantity.clone(), 1 => word.prop_map(str::to_owned), 1 => quantity.prop_map(|q| format!("[\"{q}\"]"))]
}

/// Looks at a run after which it is ended.
const LOOKS: u32 = 20;

/// A damaged text inherits nothing that exists.
struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Whatever loads runs, and its checks hold.
    #[test]
    fn no_value_makes_a_run_panic(
        sets in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        // Sizes and states decide how long a run takes; what they may be is tested above.
        let is_quick = |key: &String| !key.starts_with("flash.geometry") && !key.starts_with("flash.precondition");
        let keys: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).filter(is_quick).collect();
        let texts = sets.iter().map(|(key, value)| format!("{}={value}", key.get(&keys)));
        let mut plan = Plan::new("d16", "fio:rw=randrw,bs=6k,iodepth=8,number_ios=60,fsync=9");
        plan.set = PARTS.iter().map(|text| (*text).to_owned()).chain(texts).collect();
        plan.set.push("flash.precondition=sequential".to_owned());
        match run_alone(&plan) {
            Ok(document) => prop_assert!(document.is_sound(), "{:?}: {:?}", plan.set, document.checks),
            Err(fault) => prop_assert!(fault.place.is_some(), "{:?}: {fault}", plan.set),
        }
    }

    /// Variant for a GPU.
    #[test]
    fn no_value_makes_a_gpu_panic(
        platform in prop::sample::select(PLATFORMS.to_vec()),
        sets in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        let (system, small) = platform;
        let is_quick = |key: &String| !key.starts_with("flash.");
        let loaded = machine::load(system, &[]).expect("a shipped system");
        let table: toml::Table = loaded.to_toml().parse().expect("TOML");
        let is_there = |key: &String| key.split('.').next().is_some_and(|first| table.contains_key(first));
        let keys: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).filter(is_quick).filter(is_there).collect();
        let texts = sets.iter().map(|(key, value)| format!("{}={value}", key.get(&keys)));
        let mut plan = Plan::new(system, "gaus:n=24");
        plan.set = small.iter().map(|text| (*text).to_owned()).chain(texts).collect();
        match run_for(&plan, LOOKS) {
            Ok(document) => prop_assert!(document.is_sound(), "{:?}: {:?}", plan.set, document.checks),
            Err(fault) => prop_assert!(!fault.what.is_empty(), "{:?}: {fault}", plan.set),
        }
    }

    /// A shipped spec with a few bytes changed or its end cut off: a spec, or a diagnostic that names the line.
    #[test]
    fn no_damage_to_a_spec_makes_it_panic(
        system in prop::sample::select(SYSTEMS.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = system.1.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let text = String::from_utf8_lossy(&bytes);
        let read = Layers::from_text("damaged.toml", &text, &NoPresets).and_then(|mut layers| Spec::parse(&mut layers));
        if let Err(fault) = read {
            prop_assert!(fault.to_string().contains("--> damaged.toml"), "{fault}");
        }
    }

    /// Any values of any keys: a device, or a diagnostic with a place.
    #[test]
    fn no_value_makes_a_spec_panic(
        sets in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        let keys: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
        let texts: Vec<String> = sets.iter().map(|(key, value)| format!("{}={value}", key.get(&keys))).collect();
        let set: Vec<&str> = texts.iter().map(String::as_str).collect();
        if let Err(shown) = load(&set) {
            prop_assert!(shown.starts_with("error: ") && shown.contains("-->"), "{set:?}: {shown}");
        }
    }
}
