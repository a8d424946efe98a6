//! Limits of a spec that its parts do not know: what the simulated clock, the memory of this program and the meaning of
//! zero allow.

use crate::spec::{Loaded, MemorySpec, Spec};
use config::units::{Bandwidth, Bytes, Duration, Frequency, TransferRate};
use config::{Diagnostic, Resolved};
use flash::initiator::{EntranceChoice, InitiatorSpec};
use kernel::Time;

/// The longest single duration. The clock ends at 213 days; everything that a spec names happens many times in a run.
const LONGEST: Time = Time::from_s(3_600);
/// The slowest link or memory, bytes a second: 1 GiB, the largest request, still moves within the clock.
const SLOWEST: u64 = 1_000_000;
/// The slowest channel, transfers a second.
const SLOWEST_CHANNEL: u64 = 1_000_000;
/// The slowest clock, Hz.
const SLOWEST_CLOCK: u64 = 1_000_000;
/// The fastest clock, Hz: a cycle of a picosecond.
const FASTEST_CLOCK: u64 = 1_000_000_000_000;
/// The longest latency in cycles: a second of the slowest clock.
const CYCLES: u64 = 1_000_000;

/// Whole numbers that have other bounds than their type. A least of zero leaves zero to the part, which says why not.
const COUNTS: &[(&str, u64, u64)] = &[
    ("flash.geometry.channels", 0, 65_536),
    ("flash.geometry.ways", 0, 65_536),
    ("flash.geometry.dies", 0, 65_536),
    ("flash.host.controller.cores", 0, 65_536),
    ("flash.host.nvme.arbitration.round_robin.burst", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.burst", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.high", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.medium", 1, u32::MAX as u64),
    ("flash.host.nvme.arbitration.weighted.low", 1, u32::MAX as u64),
    ("flash.ftl.allocation.full.look", 1, u32::MAX as u64),
    ("flash.ftl.allocation.least_queued.look", 1, u32::MAX as u64),
    ("flash.ftl.allocation.restricted.look", 1, u32::MAX as u64),
    ("flash.ftl.gc.victim.d_choices.d", 1, u32::MAX as u64),
    ("flash.ftl.gc.victim.windowed_greedy.window", 1, u32::MAX as u64),
    ("flash.ftl.wear.static_gap", 1, u32::MAX as u64),
    ("flash.buffer.eviction.cflru.window", 1, u32::MAX as u64),
    ("flash.buffer.admission.second_touch.ghosts", 1, 1 << 28),
    ("flash.buffer.look_ahead.sequential.streams", 1, 4_096),
    ("flash.buffer.look_ahead.sequential.trigger", 1, u32::MAX as u64),
    ("gpu.sms", 0, 1024),
    ("gpu.load_store.queue", 0, 1 << 20),
    ("gpu.scheduler.two_level.active", 1, 128),
    ("gpu.blocks.strided.stride", 1, u32::MAX as u64),
    ("gpu.kernels.large_chunk.kernels", 1, u32::MAX as u64),
    ("gpu.kernels.automatic.kernels", 1, u32::MAX as u64),
    ("cpu.fill_jobs", 0, 1 << 40),
    ("cpu.0.tlb.entries", 0, 1 << 16),
    ("cpu.0.tlb.misses", 0, 1 << 16),
    ("mmu.tlb.entries", 0, 1 << 24),
    ("mmu.walkers", 0, 65_536),
    ("mmu.table.radix.walk_cache.entries", 0, 1 << 24),
    ("l2.banks", 0, 1024),
    ("memory.dram.controllers", 0, 1024),
    ("memory.dram_cache.dram.controllers", 0, 1024),
    ("memory.dram_cache.evict_buffer", 0, 1 << 20),
    ("memory.dram_cache.frontside.queue", 0, 1 << 20),
    ("memory.direct.controller.count", 0, 1024),
    ("memory.engine.ftl_in_service", 0, 65_536),
    ("memory.engine.evictions", 0, 1 << 24),
    ("memory.engine.dram.banks", 0, 65_536),
    ("memory.engine.prefetch.entries", 0, 1 << 24),
    ("memory.engine.prefetch.pages", 0, 1 << 16),
    ("memory.initiator.queues", 0, 32_768),
    ("flash.inner.nvme.arbitration.round_robin.burst", 1, u32::MAX as u64),
    ("flash.inner.nvme.arbitration.weighted.burst", 1, u32::MAX as u64),
    ("flash.inner.nvme.arbitration.weighted.high", 1, u32::MAX as u64),
    ("flash.inner.nvme.arbitration.weighted.medium", 1, u32::MAX as u64),
    ("flash.inner.nvme.arbitration.weighted.low", 1, u32::MAX as u64),
    ("paging.driver.handlers", 0, 65_536),
    ("paging.copies", 0, 64),
];

/// Latencies in cycles.
const LATENCIES: &[&str] = &[
    "mmu.tlb.latency",
    "mmu.table.radix.walk_cache.latency",
    "mmu.table.block.latency",
    "network.latency",
    "directory.latency",
    "memory.dram_cache.frontside.command",
    "memory.dram_cache.backside.command",
    "l2.read_latency",
    "l2.write_latency",
];

/// Sizes with bounds: what moves at once, what addresses are counted in, and what memory must hold a record for each page of.
const SIZES: &[(&str, u64)] = &[
    ("network.header", 1 << 20),
    ("fabric.header", 1 << 20),
    ("fabric.mesh.width", 1 << 20),
    ("memory.direct.command", 1 << 20),
    ("mmu.table.radix.page", 1 << 40),
    ("mmu.table.block.reach", 1 << 40),
    ("l2.parked", 1 << 36),
    ("memory.dram.interleave", 1 << 40),
    ("memory.dram.banks.row", 1 << 40),
    ("memory.engine.read_buffer.capacity", 1 << 34),
    ("memory.engine.write_buffer.capacity", 1 << 34),
    ("memory.initiator.gather.capacity", 1 << 34),
    ("paging.granule", 1 << 30),
    ("swap.memory", 1 << 40),
];

/// Durations of which zero means nothing, and which no part checks.
const SOME_TIME: &[&str] = &["sim.series", "sim.until"];

/// Products that memory must hold a record for each of: the table of the keys, the keys, the most, what they are.
const RECORDS: &[(&str, &[&str], u64, &str)] = &[
    ("flash.geometry", &["channels", "ways", "dies"], 1 << 16, "dies"),
    ("flash.geometry", &["channels", "ways", "dies", "planes", "blocks"], 1 << 28, "blocks"),
    ("gpu", &["sms", "l1.sets", "l1.ways"], 1 << 24, "lines of first-level caches"),
    ("gpu", &["sms", "l1.miss_registers"], 1 << 22, "miss registers"),
    ("gpu", &["sms", "load_store.stores"], 1 << 24, "stores"),
    ("gpu", &["sms", "tlb.entries"], 1 << 24, "translations of first-level TLBs"),
    ("gpu", &["sms", "shared.banks"], 1 << 20, "banks of shared memory"),
    ("cpu.0", &["cores", "l1i.sets", "l1i.ways"], 1 << 24, "lines of first-level instruction caches"),
    ("cpu.0", &["cores", "l1d.sets", "l1d.ways"], 1 << 24, "lines of first-level data caches"),
    ("memory.dram_cache", &["dram.controllers", "sets", "ways"], 1 << 28, "pages of a DRAM cache"),
    ("l2", &["banks", "sets", "ways"], 1 << 24, "lines"),
    ("l2", &["banks", "registers"], 1 << 22, "miss registers"),
    ("l2", &["banks", "write_slots"], 1 << 22, "writes"),
    (DIRECT, &["channels", "packages", "dies", "planes"], 1 << 18, "planes"),
    (DIRECT, &["channels", "packages", "ports"], 1 << 18, "ports"),
    (DIRECT, &["channels", "packages", "dies", "planes", "blocks"], 1 << 28, "blocks"),
    (DIRECT, &["channels", "packages", "dies", "planes", "blocks", "pages"], 1 << 32, "pages"),
    (DIRECT, &["channels", "packages", "dies", "planes", "../registers.count"], 1 << 22, "registers"),
];
const DIRECT: &str = "memory.direct.geometry";

/// Refuses values that cannot be simulated.
///
/// # Errors
/// Every value that lies beyond a limit, with the limit.
pub(crate) fn check(resolved: &Resolved) -> Result<(), Diagnostic> {
    let table = resolved.table();
    let mut faults = quantities(resolved, &table);
    faults.extend(numbers(resolved, &table));
    // The product of numbers that are out of range says nothing new.
    if faults.is_empty() {
        faults = products(resolved, &table);
    }
    let mut faults = faults.into_iter();
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(()),
    }
}

/// What is wrong with values that have a unit.
fn quantities(resolved: &Resolved, table: &toml::Table) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for param in crate::catalogue::params() {
        let Some(value) = find(table, &param.key) else { continue };
        let texts = match value {
            toml::Value::Array(items) => items.iter().filter_map(toml::Value::as_str).collect(),
            one => one.as_str().map_or(Vec::new(), |text| vec![text]),
        };
        let kind = param.kind.trim_start_matches("array of ");
        let refused = texts.into_iter().find_map(|text| beyond(kind, text));
        faults.extend(refused.map(|what| resolved.diagnose(&param.key, what)));
    }
    faults.extend(SIZES.iter().filter_map(|(key, most)| {
        let size = find(table, key)?.as_str()?.parse::<Bytes>().ok().filter(|size| size.get() > *most)?;
        let what = format!("{size} is too large to simulate; {} is the most", Bytes::new(*most));
        Some(resolved.diagnose(key, what))
    }));
    faults.extend(SOME_TIME.iter().filter_map(|key| {
        find(table, key)?.as_str()?.parse::<Duration>().ok().filter(|time| time.time() == Time::ZERO)?;
        Some(resolved.diagnose(key, "a time of no length; one above zero is expected, such as 10us"))
    }));
    faults
}

/// What is wrong with whole numbers.
fn numbers(resolved: &Resolved, table: &toml::Table) -> Vec<Diagnostic> {
    let number = |key: &str| find(table, key).and_then(toml::Value::as_integer);
    let counts = COUNTS.iter().filter_map(|(key, least, most)| {
        let is_beyond = |n: i64| u64::try_from(n).map_or(true, |n| !(*least..=*most).contains(&n));
        let n = number(key).filter(|n| is_beyond(*n))?;
        let what = format!("{n} is out of range; allowed are {} to {most}", least.max(&1));
        Some(resolved.diagnose(key, what))
    });
    let latencies = LATENCIES.iter().filter_map(|key| {
        let cycles = number(key).filter(|cycles| cycles.unsigned_abs() > CYCLES)?;
        let what = format!("{cycles} cycles are too long to simulate; {CYCLES} are the most");
        Some(resolved.diagnose(key, what))
    });
    counts.chain(latencies).collect()
}

/// Products that are too large.
fn products(resolved: &Resolved, table: &toml::Table) -> Vec<Diagnostic> {
    let fault = |(of, keys, most, what): &(&str, &[&str], u64, &str)| {
        let number = |key: &&str| find(table, &below(of, key))?.as_integer();
        let numbers = keys.iter().map(number).collect::<Option<Vec<i64>>>()?;
        let product = numbers.iter().fold(1_u128, |n, x| n.saturating_mul(x.unsigned_abs().into()));
        let said = format!("{product} {what} in all; at most {most} can be simulated");
        let help = || format!("lower one of {}", keys.join(", "));
        (product > u128::from(*most)).then(|| resolved.diagnose(of, said).help(help()))
    };
    RECORDS.iter().filter_map(fault).collect()
}

/// Tables that only make sense together: each table, and what it needs, each one of several.
const TOGETHER: &[(&str, &[&[&str]])] = &[
    ("flash", &[&["host"], &["precondition"]]),
    ("host", &[&["flash"]]),
    ("precondition", &[&["flash"]]),
    ("gpu", &[&["mmu"], &["network"], &["l2"]]),
    ("cpu", &[&["mmu"], &["fabric"], &["directory"], &["l2"]]),
    ("mmu", &[&["gpu", "cpu"]]),
    ("network", &[&["gpu"]]),
    ("fabric", &[&["cpu"]]),
    ("directory", &[&["cpu"]]),
    ("l2", &[&["gpu", "cpu"]]),
    ("memory", &[&["gpu", "cpu"]]),
    ("paging", &[&["gpu"], &["memory"], &["flash"]]),
    ("swap", &[&["cpu"], &["memory"], &["flash"]]),
];

/// The tables, by their keys at the root, that those of a spec need, and these in turn. Where one of several would do, none of
/// them is.
pub(crate) fn needed(table: &toml::Table) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    loop {
        let is_there = |name: &str| table.contains_key(name) || found.contains(&name);
        let of_those = TOGETHER.iter().filter(|(name, _)| is_there(name)).flat_map(|(_, needs)| needs.iter());
        let only = |of: &&[&'static str]| if let [one] = **of { Some(one) } else { None };
        let more: Vec<&str> = of_those.filter_map(only).filter(|name| !is_there(name)).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// How to have all the keys that a spec of these tables needs.
pub(crate) fn remedy(table: &toml::Table) -> String {
    let like = match (table.contains_key("cpu"), table.contains_key("gpu")) {
        (true, _) => "dram-only",
        (_, true) => "zng",
        _ => "pm9a3",
    };
    format!(
        "`nandscape init NEW.toml --like {like}` writes a file with every key, its meaning and its source; \
         `inherits = \"{like}\"` takes from there what a file does not say"
    )
}

/// The keys of the tables that are needed, for a list.
fn lacking(loaded: &Loaded) -> Vec<String> {
    let table = loaded.resolved().table();
    let document = config::schema::of::<Spec>();
    Resolved::list(&config::schema::missing(&document, &table, &needed(&table)))
}

/// Refuses a spec that lacks a table which another of its tables needs, or that has two which exclude each other.
///
/// # Errors
/// The first such table.
pub(crate) fn tables(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    let has = |table: &str| has(spec, table);
    for (table, needs) in TOGETHER.iter().filter(|(table, _)| has(table)) {
        let named = |of: &&[&str]| of.iter().map(|t| format!("`{t}`")).collect::<Vec<_>>().join(" or ");
        let missing: Vec<String> = needs.iter().filter(|of| !of.iter().any(|t| has(t))).map(named).collect();
        if !missing.is_empty() {
            let what = format!("the table `{table}` stands without {}", missing.join(", "));
            let mut told = loaded.diagnose(table, &what);
            told.listed = lacking(loaded);
            return Err(told.help("a flash device is the tables `flash`, `host` and `precondition`; a GPU the tables `gpu`, `mmu`, `network`, `l2` and `memory`; a server the tables `cpu`, `mmu`, `fabric`, `directory`, `l2` and `memory`"));
        }
    }
    if has("gpu") && has("cpu") {
        let what = "a GPU and a server in one machine";
        return Err(loaded.diagnose("cpu", what).help("give either of the tables `gpu` and `cpu`"));
    }
    memory(loaded)
}

/// Refuses a memory that lacks what stands in front of it or behind it.
fn memory(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    if matches!(spec.memory, Some(MemorySpec::Engine(_))) && spec.flash.is_none() {
        let what = "an SSD engine has no flash device behind it";
        return Err(loaded.diagnose("memory.engine", what).help("give the table `flash`"));
    }
    if let Some(MemorySpec::Initiator(initiator)) = &spec.memory {
        queues(loaded, initiator)?;
    }
    if spec.paging.is_some() && !matches!(spec.memory, Some(MemorySpec::Dram(_))) {
        let what = "the host pages into memory that is no DRAM";
        return Err(loaded.diagnose("paging", what).help("`paging` needs `memory.dram`"));
    }
    if spec.swap.is_some() && !matches!(spec.memory, Some(MemorySpec::Dram(_))) {
        let what = "the operating system pages into memory that is no DRAM";
        return Err(loaded.diagnose("swap", what).help("`swap` needs `memory.dram`"));
    }
    Ok(())
}

/// Refuses an initiator without a device, or with more queues or entries than the device has for it.
fn queues(loaded: &Loaded, initiator: &InitiatorSpec) -> Result<(), Diagnostic> {
    let Some(flash) = &loaded.spec.flash else {
        let what = "an initiator has no flash device behind it";
        return Err(loaded.diagnose("memory.initiator", what).help("give the table `flash`"));
    };
    let (table, nvme) = match (initiator.entrance, &flash.inner) {
        (EntranceChoice::host, _) => ("flash.host.nvme", &flash.host.nvme),
        (EntranceChoice::inner, Some(inner)) => ("flash.inner.nvme", &inner.nvme),
        (EntranceChoice::inner, None) => {
            let what = "the device has no entrance for a processor inside it";
            let help = "give the table `flash.inner`";
            return Err(loaded.diagnose("memory.initiator.entrance", what).help(help));
        }
    };
    let Some(nvme) = nvme else { return Ok(()) };
    let limits = [
        ("queues", u64::from(initiator.queues), u64::from(nvme.queues)),
        ("depth", initiator.depth.into(), nvme.depth.into()),
    ];
    for (key, wanted, there) in limits {
        if wanted > there {
            let what = format!("{wanted} is more than the device has: {there} (`{table}.{key}`)");
            return Err(loaded.diagnose(&format!("memory.initiator.{key}"), &what));
        }
    }
    Ok(())
}

fn has(spec: &Spec, table: &str) -> bool {
    match table {
        "flash" => spec.flash.is_some(),
        "host" => spec.host.is_some(),
        "precondition" => spec.precondition.is_some(),
        "gpu" => spec.gpu.is_some(),
        "cpu" => spec.cpu.is_some(),
        "mmu" => spec.mmu.is_some(),
        "network" => spec.network.is_some(),
        "fabric" => spec.fabric.is_some(),
        "directory" => spec.directory.is_some(),
        "l2" => spec.l2.is_some(),
        "memory" => spec.memory.is_some(),
        "swap" => spec.swap.is_some(),
        _ => spec.paging.is_some(),
    }
}

/// A key below a table, or with `../` beside it.
fn below(table: &str, key: &str) -> String {
    match (key.strip_prefix("../"), table.rsplit_once('.')) {
        (Some(key), Some((parent, _))) => format!("{parent}.{key}"),
        _ => format!("{table}.{key}"),
    }
}

fn find<'t>(table: &'t toml::Table, key: &str) -> Option<&'t toml::Value> {
    let mut path = key.split('.');
    let first = table.get(path.next()?)?;
    path.try_fold(first, |value, name| value.get(name))
}

/// What is wrong with a quantity of a kind. What is no quantity has been refused before.
fn beyond(kind: &str, text: &str) -> Option<String> {
    let too_slow =
        |rate: &str, least: &str| Some(format!("{rate} is too slow to simulate; {least} is the least"));
    match kind {
        "duration" => {
            let duration = text.parse::<Duration>().ok()?;
            let what =
                format!("{duration} is too long to simulate: the clock ends at 213 days; 1h is the most");
            (duration.time() > LONGEST).then_some(what)
        }
        "bandwidth" => {
            let rate = text.parse::<Bandwidth>().ok().filter(|rate| rate.bytes_per_s() < SLOWEST)?;
            too_slow(&rate.to_string(), "1MB/s")
        }
        "transfer rate" => {
            let rate = text.parse::<TransferRate>().ok().filter(|rate| rate.per_s() < SLOWEST_CHANNEL)?;
            too_slow(&rate.to_string(), "1MT/s")
        }
        "frequency" => {
            let clock = text.parse::<Frequency>().ok()?;
            if clock.hz() < SLOWEST_CLOCK {
                return too_slow(&clock.to_string(), "1MHz");
            }
            let what = format!("{clock} is too fast to simulate: time is counted in picoseconds");
            (clock.hz() > FASTEST_CLOCK).then_some(what)
        }
        _ => None,
    }
}
