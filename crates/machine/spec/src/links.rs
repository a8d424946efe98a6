//! Links: the parts that a part may ask or use, and their resolution.
//!
//! A link is a key of a part's table whose value is the name of a part, or a list of names. A link that is left out
//! means the only possible part; with several, it must be given.

use super::Spec;
use super::kinds::{Declared, Id, Kind};
use config::{Diagnostic, Resolved};
use mem::swap::SwapBacking;

/// Link: a key that names other parts.
#[derive(Debug)]
pub(super) struct Link {
    /// Key of the link.
    pub(super) key: &'static str,
    /// Kinds that it may name.
    pub(super) to: &'static [Kind],
    /// True if the key may name several parts.
    pub(super) many: bool,
    /// Condition under which it is needed.
    need: Need,
    /// Purpose of the link.
    pub(super) doc: &'static str,
}

/// Condition under which a link is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// Always.
    Always,
    /// Once a program runs: a system may be the base of others.
    ToRun,
    /// Never: without it, the part does not exist.
    Never,
}

const fn link(key: &'static str, to: &'static [Kind], need: Need, doc: &'static str) -> Link {
    Link { key, to, many: false, need, doc }
}

const MMU: Link = link("mmu", &[Kind::Mmu], Need::Always, "The unit that translates addresses.");
const L2: Link = link("l2", &[Kind::L2], Need::Always, "The shared cache.");

const GPU: &[Link] = &[
    MMU,
    link("network", &[Kind::Network], Need::Always, "The network to the shared cache."),
    L2,
    link("paging", &[Kind::Paging], Need::Never, "The pager that brings missing pages, if any."),
];
const CPU: &[Link] = &[
    MMU,
    link("fabric", &[Kind::Fabric], Need::Always, "The network to the shared cache."),
    link("directory", &[Kind::Directory], Need::Always, "The directory that keeps copies of lines coherent."),
    L2,
    link("swap", &[Kind::Swap], Need::Never, "The pager that brings missing pages, if any."),
];
const OF_L2: &[Link] = &[link(
    "memory",
    &[Kind::Memory, Kind::Placement],
    Need::ToRun,
    "The memory behind the cache, or a placement of several.",
)];
const PLACEMENT: &[Link] = &[Link {
    many: true,
    ..link("targets", &[Kind::Memory], Need::Always, "The memories, in the order of `sizes`.")
}];
/// Kinds that take block commands.
const DRIVES: &[Kind] = &[Kind::Flash, Kind::Stripe];
const STRIPE: &[Link] = &[Link {
    many: true,
    ..link("drives", &[Kind::Flash], Need::Always, "The drives, in the order of their chunks.")
}];
const MEMORY: &[Link] = &[
    link(
        "drive",
        DRIVES,
        Need::Never,
        "The drive behind an SSD engine, an initiator, or a DRAM cache over a device.",
    ),
    link("memory", &[Kind::Memory], Need::Never, "The memory behind a DRAM cache over memory."),
];
const PAGER: &[Link] = &[link("drive", DRIVES, Need::Always, "The drive that pages come from.")];
const HOST: &[Link] = &[
    Link {
        many: true,
        ..link(
            "drives",
            DRIVES,
            Need::Always,
            "The drives that requests go to; if left out, all drives outside stripes.",
        )
    },
    Link {
        many: true,
        ..link(
            "coprocessors",
            &[Kind::Coprocessor],
            Need::Never,
            "The coprocessors that its programs drive; if left out, all coprocessors.",
        )
    },
];
const ACCELERATOR: &[Link] = &[link(
    "storage",
    &[Kind::GroupFlash],
    Need::Always,
    "The flash that it governs, with the data of its kernels.",
)];

impl Kind {
    /// Links of this kind's parts.
    pub(super) fn links(self) -> &'static [Link] {
        match self {
            Kind::Gpu => GPU,
            Kind::Cpu => CPU,
            Kind::L2 => OF_L2,
            Kind::Memory => MEMORY,
            Kind::Paging | Kind::Swap => PAGER,
            Kind::Host => HOST,
            Kind::Stripe => STRIPE,
            Kind::Placement => PLACEMENT,
            Kind::Accelerator => ACCELERATOR,
            Kind::Coprocessor
            | Kind::GroupFlash
            | Kind::Flash
            | Kind::Mmu
            | Kind::Network
            | Kind::Fabric
            | Kind::Directory => &[],
        }
    }

    /// Returns whether several parts may ask one part of this kind.
    fn serves_many(self) -> bool {
        matches!(self, Kind::Flash | Kind::Stripe)
    }

    /// Returns whether a part of this kind works without a part that asks it.
    fn is_root(self) -> bool {
        matches!(self, Kind::Gpu | Kind::Cpu | Kind::Host | Kind::Accelerator)
    }
}

impl Link {
    /// Returns whether the link is always needed.
    pub(super) fn is_always(&self) -> bool {
        self.need == Need::Always
    }

    /// Returns whether a part of a spec has the link and needs it; `Err` with the reason if it has not.
    fn need_of(&self, spec: &Spec, id: Id) -> Result<Need, &'static str> {
        match id.kind {
            Kind::Memory => spec.memory[id.number].spec.has_link(self.key).map(|()| Need::Always),
            Kind::Swap if spec.swap[id.number].spec.backing != SwapBacking::device => {
                Err("paging uses a drive only with `backing = \"device\"`")
            }
            _ => Ok(self.need),
        }
    }
}

/// Links as written in a table, separated from its other keys.
pub(super) fn written(
    resolved: &Resolved,
    table: &str,
    kind: Kind,
) -> Result<Vec<(&'static str, Vec<String>)>, Diagnostic> {
    let root = resolved.table();
    let mut found = Vec::new();
    for link in kind.links() {
        let Some(value) = root.get(table).and_then(|table| table.get(link.key)) else { continue };
        let text = |value: &toml::Value| value.as_str().map(str::to_owned);
        let names = match value {
            toml::Value::Array(names) if link.many && !names.is_empty() => names.iter().map(text).collect(),
            one => text(one).map(|name| vec![name]),
        };
        let Some(names) = names else {
            let what = if link.many { "one part, or a list of them" } else { "one part" };
            let key = format!("{table}.{}", link.key);
            return Err(resolved.diagnose(&key, format!("`{key}` must be the name of {what}, in quotes")));
        };
        found.push((link.key, names));
    }
    Ok(found)
}

/// Returns every part.
pub(super) fn all(spec: &Spec) -> impl Iterator<Item = Id> {
    Kind::ALL.iter().flat_map(|kind| (0..spec.count(*kind)).map(|number| Id { kind: *kind, number }))
}

/// Resolves the links of a spec.
///
/// # Errors
/// An unknown name, or a part of a kind that the link does not allow; a link with several possible targets, or none
/// where one is needed; a part that is unused, or used too often.
pub(super) fn resolve(spec: &mut Spec, resolved: &Resolved) -> Result<(), Diagnostic> {
    let tables = spec.tables.clone();
    let mut counted = [0; Kind::ALL.len()];
    let mut parts = Vec::new();
    for declared in &tables {
        let first = counted[declared.kind as usize];
        let more = declared.names().count();
        counted[declared.kind as usize] += more;
        parts.extend((first..first + more).map(|number| (declared, Id { kind: declared.kind, number })));
    }
    // Members of a stripe are not drives for others: resolve stripes first.
    parts.sort_by_key(|(_, id)| id.kind != Kind::Stripe);
    for (declared, id) in parts {
        let links = links(spec, &tables, declared, id, resolved)?;
        *spec.links_mut(id) = links;
    }
    circles(spec, resolved)?;
    askers(spec, resolved)
}

/// Resolves the links of one part.
fn links(
    spec: &Spec,
    tables: &[Declared],
    declared: &Declared,
    id: Id,
    resolved: &Resolved,
) -> Result<Vec<(&'static str, Vec<Id>)>, Diagnostic> {
    let mut found = Vec::new();
    for link in id.kind.links() {
        let key = format!("{}.{}", declared.table, link.key);
        let said = declared.links.iter().find(|(key, _)| *key == link.key).map(|(_, names)| names);
        match (link.need_of(spec, id), said) {
            (Ok(_), _) => {}
            (Err(_), None) => continue,
            (Err(why), Some(_)) => {
                return Err(resolved.diagnose(&key, why).help("leave it out"));
            }
        }
        let to = match said {
            Some(names) => named(spec, tables, link, names, &key, resolved)?,
            None => meant(spec, link, declared, id, resolved)?,
        };
        if !to.is_empty() {
            found.push((link.key, to));
        }
    }
    Ok(found)
}

/// Finds the parts with these names.
fn named(
    spec: &Spec,
    tables: &[Declared],
    link: &Link,
    names: &[String],
    key: &str,
    resolved: &Resolved,
) -> Result<Vec<Id>, Diagnostic> {
    let fits = |id: &Id| link.to.contains(&id.kind);
    let kinds = link.to.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(" or ");
    let mut found = Vec::new();
    for name in names {
        let group = tables.iter().find(|declared| declared.table == *name).is_some_and(|d| d.count.is_some());
        let is_named = |id: &Id| {
            let own = spec.name_of(*id);
            own == name || group && own.rsplit_once('.').is_some_and(|(table, _)| table == name)
        };
        let of_name: Vec<Id> = all(spec).filter(is_named).collect();
        let candidates = || all(spec).filter(fits).map(|id| spec.name_of(id).to_owned()).collect::<Vec<_>>();
        let Some(first) = of_name.first() else {
            let what = format!("the part `{name}` does not exist");
            return Err(resolved.diagnose(key, what).allowed(name, candidates()));
        };
        if !fits(first) {
            let what = format!(
                "`{name}` is a part of the kind `{}`: this link needs one of {kinds}",
                first.kind.name()
            );
            return Err(resolved.diagnose(key, what).allowed(name, candidates()));
        }
        if of_name.len() > 1 && !link.many {
            let what = format!("`{name}` names {} parts, and this link needs one", of_name.len());
            return Err(resolved.diagnose(key, what).allowed(name, candidates()));
        }
        if let Some(twice) = of_name.iter().find(|id| found.contains(*id)) {
            let what = format!("`{}` is named twice", spec.name_of(*twice));
            return Err(resolved.diagnose(key, what));
        }
        found.extend(of_name);
    }
    Ok(found)
}

/// Parts that a link means if it is left out.
fn meant(
    spec: &Spec,
    link: &Link,
    declared: &Declared,
    own: Id,
    resolved: &Resolved,
) -> Result<Vec<Id>, Diagnostic> {
    let is_member = |id: &Id| spec.stripe.iter().any(|stripe| stripe.linked("drives").contains(id));
    let fits = |id: &Id| link.to.contains(&id.kind) && *id != own && !is_member(id);
    let fitting: Vec<Id> = all(spec).filter(fits).collect();
    match &fitting[..] {
        [] | [_] => Ok(fitting),
        _ if link.many => Ok(fitting),
        _ => {
            let names: Vec<String> = fitting.iter().map(|id| spec.name_of(*id).to_owned()).collect();
            let what =
                format!("`{}.{}` is not set, and {} parts qualify", declared.table, link.key, names.len());
            let mut fault = resolved.diagnose(&declared.table, what).allowed("", names.clone());
            fault.beside = names.last().map(|name| Box::new(resolved.place(name)));
            Err(fault)
        }
    }
}

/// Needed links of a part that are missing.
pub(super) fn absent(spec: &Spec, id: Id, to_run: bool) -> Vec<&'static Link> {
    let is_needed = |link: &&Link| match link.need_of(spec, id) {
        Ok(Need::Always) => true,
        Ok(Need::ToRun) => to_run,
        Ok(Need::Never) | Err(_) => false,
    };
    let is_absent = |link: &&Link| !spec.links_of(id).iter().any(|(key, _)| *key == link.key);
    id.kind.links().iter().filter(is_needed).filter(is_absent).collect()
}

/// Refuses parts that ask each other in a circle.
fn circles(spec: &Spec, resolved: &Resolved) -> Result<(), Diagnostic> {
    fn goes_to(spec: &Spec, from: Id, wanted: Id, left: usize) -> bool {
        left > 0
            && spec
                .links_of(from)
                .iter()
                .flat_map(|(_, to)| to)
                .any(|id| *id == wanted || goes_to(spec, *id, wanted, left - 1))
    }
    let parts = all(spec).count();
    match all(spec).find(|id| goes_to(spec, *id, *id, parts)) {
        None => Ok(()),
        Some(id) => {
            let name = spec.name_of(id);
            Err(resolved
                .diagnose(name, format!("`{name}` depends on itself, directly or through other parts")))
        }
    }
}

/// Refuses unused parts, and parts that more ask than may.
fn askers(spec: &Spec, resolved: &Resolved) -> Result<(), Diagnostic> {
    let asks = |from: Id, to: Id| spec.links_of(from).iter().any(|(_, ids)| ids.contains(&to));
    for id in all(spec).filter(|id| !id.kind.is_root()) {
        let name = spec.name_of(id);
        let by: Vec<Id> = all(spec).filter(|from| asks(*from, id)).collect();
        match by[..] {
            [] => {
                let who = Kind::ALL
                    .iter()
                    .filter(|kind| kind.links().iter().any(|link| link.to.contains(&id.kind)));
                let who = who.map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(", ");
                let what = format!("the part `{name}` is unused");
                let help = format!("remove it, or link to it from a part of these kinds: {who}");
                return Err(resolved.diagnose(name, what).help(help));
            }
            [first, second, ..] if !id.kind.serves_many() => {
                let what = format!(
                    "`{}` and `{}` both use the part `{name}`, which can serve only one",
                    spec.name_of(first),
                    spec.name_of(second)
                );
                return Err(resolved.diagnose(spec.name_of(second), what).help("give each its own part"));
            }
            _ => {}
        }
        let stripe = by.iter().find(|by| by.kind == Kind::Stripe);
        if let (Some(stripe), Some(other)) = (stripe, by.iter().find(|by| Some(*by) != stripe)) {
            let (stripe, other) = (spec.name_of(*stripe), spec.name_of(*other));
            let what = format!("`{other}` uses `{name}`, which is a member of the stripe `{stripe}`");
            return Err(resolved.diagnose(other, what).help(format!("use `{stripe}` instead")));
        }
    }
    Ok(())
}
