//! Checks between the parts of a spec. Limits of single values, and of products of a part's numbers, are given at the
//! fields of the spec's types ([`config::schema::beyond`]).

use crate::{Id, Kind, Loaded, MemorySpec, Part};
use config::{Diagnostic, Resolved, SpecError};
use ssd::port::initiator::{EntranceChoice, InitiatorSpec};
use ssd::spec::NvmeSpec;

/// Refuses values beyond the limits given at the fields of the spec's types.
///
/// # Errors
/// Every such value, with its limit.
pub(crate) fn limits(loaded: &Loaded) -> Result<(), Diagnostic> {
    let told = |fault: SpecError| {
        let diagnostic = loaded.diagnose(&fault.key, &fault.what);
        match fault.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    };
    let of_table = |(name, table): (String, toml::Table)| {
        let found = config::schema::beyond(crate::document(), &table);
        // Keys of the schema begin with the kind; the user's keys begin with the name.
        let own = move |fault: SpecError| {
            let below = fault.key.split_once('.').map_or(String::new(), |(_, rest)| format!(".{rest}"));
            SpecError { key: format!("{name}{below}"), ..fault }
        };
        found.into_iter().map(own)
    };
    let mut faults = loaded.tables().into_iter().flat_map(of_table).map(told);
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(()),
    }
}

/// Help on how to get all keys that a spec with these parts needs.
pub(crate) fn remedy(resolved: &Resolved) -> String {
    let has = |kind| !crate::of_kind(resolved, kind).is_empty();
    let like = match (has(Kind::Cpu), has(Kind::Gpu)) {
        (true, _) => "dram-only",
        (_, true) => "zng",
        _ if has(Kind::Coprocessor) => "flashabacus-simd",
        _ if has(Kind::Accelerator) || has(Kind::GroupFlash) => "flashabacus",
        _ => "pm9a3",
    };
    format!(
        "`nandscape init NEW.toml --like {like}` writes a file with every key, its meaning and its source; \
         `inherits = \"{like}\"` inherits every key that a file does not set"
    )
}

/// Refuses a part that lacks a needed part, and parts that do not go together.
///
/// # Errors
/// The first such part.
pub(crate) fn parts(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    for kind in Kind::ALL {
        for id in (0..spec.count(*kind)).map(|number| Id { kind: *kind, number }) {
            needs(loaded, id)?;
        }
    }
    for part in &spec.memory {
        if let MemorySpec::Initiator(initiator) = &part.spec {
            queues(loaded, part, initiator)?;
        }
    }
    for gpu in &spec.gpu {
        let pager = gpu.link("paging").map(|id| spec.name_of(id));
        pages(loaded, gpu.link("l2"), pager, "the host cannot page into memory that is not DRAM")?;
    }
    for cpu in &spec.cpu {
        let pager = cpu.link("swap").map(|id| spec.name_of(id));
        pages(
            loaded,
            cpu.link("l2"),
            pager,
            "the operating system cannot page into memory that is not DRAM",
        )?;
    }
    Ok(())
}

/// Refuses a part with missing links.
fn needs(loaded: &Loaded, id: Id) -> Result<(), Diagnostic> {
    let absent = loaded.absent_links(id, false);
    if absent.is_empty() {
        return Ok(());
    }
    let name = loaded.spec.name_of(id);
    let named = |(_, to): &(&str, &[Kind])| {
        to.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(" or ")
    };
    let what = format!("the part `{name}` lacks {}", absent.iter().map(named).collect::<Vec<_>>().join(", "));
    let mut told = loaded.diagnose(name, &what);
    told.listed = loaded.lacking();
    Err(told.help("a drive needs a part that uses it, such as `host`; a GPU needs `mmu`, `network`, `l2` and `memory`; a server needs `mmu`, `fabric`, `directory`, `l2` and `memory`; an accelerator needs `group_flash`"))
}

/// Refuses paging into memory other than DRAM.
fn pages(loaded: &Loaded, l2: Option<Id>, pager: Option<&str>, what: &str) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    let memory = l2.and_then(|l2| spec.l2[l2.number].link("memory"));
    // The pager does not choose where pages of a placement lie.
    let is_pageable = |id: Id| id.kind == Kind::Memory && spec.memory[id.number].spec.is_pageable();
    match pager {
        Some(pager) if !memory.is_some_and(is_pageable) => {
            Err(loaded.diagnose(pager, what).help("use a `dram` memory behind the shared cache"))
        }
        _ => Ok(()),
    }
}

/// Refuses an initiator with more queues or entries than its drive offers.
fn queues(loaded: &Loaded, part: &Part<MemorySpec>, initiator: &InitiatorSpec) -> Result<(), Diagnostic> {
    let Some(id) = part.link("drive") else { return Ok(()) };
    if id.kind == Kind::Stripe {
        return match initiator.entrance {
            EntranceChoice::host => Ok(()),
            EntranceChoice::inner => {
                let what =
                    format!("`{}` is a stripe, which has no processor inside", loaded.spec.name_of(id));
                let key = format!("{}.initiator.entrance", part.table());
                Err(loaded.diagnose(&key, &what).help("use `host`, or link to a drive"))
            }
        };
    }
    let drive = &loaded.spec.flash[id.number];
    let flash = &drive.spec.flash;
    let (entrance, there) = match (initiator.entrance, &flash.inner) {
        (EntranceChoice::host, _) => ("host", flash.host.queues()),
        (EntranceChoice::inner, Some(inner)) => ("inner", inner.nvme.as_ref().map(NvmeSpec::queues)),
        (EntranceChoice::inner, None) => {
            let what = "the device has no interface for a processor inside it";
            let help = format!("add the table `{}.inner`", drive.table());
            let key = format!("{}.initiator.entrance", part.table());
            return Err(loaded.diagnose(&key, what).help(help));
        }
    };
    let Some((count, depth)) = there else { return Ok(()) };
    let limits = [
        ("queues", u64::from(initiator.queues), u64::from(count)),
        ("depth", initiator.depth.into(), depth.into()),
    ];
    let table = drive.table();
    let is_ahci = entrance == "host" && flash.host.ahci.is_some();
    for (key, wanted, there) in limits {
        if wanted > there {
            let own = if is_ahci { "ahci.slots".to_owned() } else { format!("nvme.{key}") };
            let what = format!("{wanted} is more than the device has: {there} (`{table}.{entrance}.{own}`)");
            return Err(loaded.diagnose(&format!("{}.initiator.{key}", part.table()), &what));
        }
    }
    Ok(())
}
