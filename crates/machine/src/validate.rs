//! What lies between the parts of a spec. Limits of single values, and of products of a part's numbers, stand at the
//! fields of the spec's types ([`config::schema::beyond`]).

use crate::spec::{Loaded, MemorySpec, Spec};
use config::{Diagnostic, Resolved, SpecError};
use flash::initiator::{EntranceChoice, InitiatorSpec};

/// Refuses values that cannot be simulated: those beyond the limits that stand at the fields of the spec's types.
///
/// # Errors
/// Every such value, with its limit.
pub(crate) fn check(resolved: &Resolved) -> Result<(), Diagnostic> {
    let told = |fault: SpecError| {
        let diagnostic = resolved.diagnose(&fault.key, fault.what);
        match fault.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    };
    let mut faults =
        config::schema::beyond(crate::catalogue::document(), &resolved.table()).into_iter().map(told);
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(()),
    }
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
    Resolved::list(&config::schema::missing(crate::catalogue::document(), &table, &needed(&table)))
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
