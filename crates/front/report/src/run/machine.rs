//! Components of a machine and the wires between them, from a resolved spec.

use super::diagram;
use crate::figure::{Cell, Figure, Picture, Table};
use crate::number::{Unit, shown};
use crate::page::lacking;
use crate::read::{items, number, text};
use serde_json::{Map, Value};

/// Wire between a requester and a target, declared by a key of the requester's table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wire {
    /// Component that sends requests.
    pub from: String,
    /// Key that declares the wire.
    pub key: String,
    /// Component that receives requests.
    pub to: String,
}

/// Link: a key that names components, and the kinds that it may name.
type Link = (&'static str, &'static [&'static str]);

/// Kinds of components with their links. A link that is left out means every component that it could name.
const KINDS: [(&str, &[Link]); 17] = [
    ("host", &[("drives", &["flash", "stripe"]), ("coprocessors", &["coprocessor"])]),
    ("gpu", &[("mmu", &["mmu"]), ("network", &["network"]), ("l2", &["l2"]), ("paging", &["paging"])]),
    (
        "cpu",
        &[
            ("mmu", &["mmu"]),
            ("fabric", &["fabric"]),
            ("directory", &["directory"]),
            ("l2", &["l2"]),
            ("swap", &["swap"]),
        ],
    ),
    ("accelerator", &[("storage", &["group_flash"])]),
    ("coprocessor", &[]),
    ("mmu", &[]),
    ("network", &[]),
    ("fabric", &[]),
    ("directory", &[]),
    ("l2", &[("memory", &["memory", "placement"])]),
    ("placement", &[("targets", &["memory"])]),
    ("memory", &[("drive", &["flash", "stripe"]), ("memory", &["memory"])]),
    ("paging", &[("drive", &["flash", "stripe"])]),
    ("swap", &[("drive", &["flash", "stripe"])]),
    ("stripe", &[("drives", &["flash"])]),
    ("flash", &[]),
    ("group_flash", &[]),
];

/// Component of a machine.
#[derive(Clone, Debug)]
pub(super) struct Part<'v> {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) table: &'v Map<String, Value>,
}

/// Components of a resolved spec.
pub(super) fn parts(spec: &Value) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let Some(root) = spec.as_object() else { return found };
    for (name, table) in root {
        let Some(table) = table.as_object() else { continue };
        let kind = table.get("kind").and_then(Value::as_str).unwrap_or(name);
        let Some((kind, _)) = KINDS.iter().find(|(known, _)| *known == kind) else { continue };
        match table.get("count").and_then(Value::as_u64) {
            None => found.push(Part { name: name.clone(), kind, table }),
            Some(count) => {
                found.extend((0..count.min(256)).map(|n| Part { name: format!("{name}.{n}"), kind, table }));
            }
        }
    }
    found
}

/// Wires of a resolved spec.
pub fn wires(spec: &Value) -> Vec<Wire> {
    let parts = parts(spec);
    let members: Vec<String> = parts
        .iter()
        .filter(|part| part.kind == "stripe")
        .flat_map(|part| ends(part, "drives", &parts, &[]))
        .collect();
    let mut found = Vec::new();
    for part in &parts {
        let links = KINDS.iter().find(|(kind, _)| *kind == part.kind).map_or(&[][..], |(_, links)| *links);
        let outside: &[String] = if part.kind == "stripe" { &[] } else { &members };
        for (key, _) in links.iter().filter(|(key, _)| may_have(part, key)) {
            for to in ends(part, key, &parts, outside) {
                found.push(Wire { from: part.name.clone(), key: (*key).to_owned(), to });
            }
        }
    }
    found
}

/// Returns whether a memory has a component behind it, which depends on its kind.
fn may_have(part: &Part<'_>, key: &str) -> bool {
    let has = |form: &str| part.table.contains_key(form);
    let backing = part.table.get("dram_cache").and_then(|cache| cache.get("backing")).and_then(Value::as_str);
    match (part.kind, key) {
        ("memory", "drive") => has("engine") || has("initiator") || backing == Some("device"),
        ("memory", "memory") => backing == Some("memory"),
        ("swap", "drive") => part.table.get("backing").is_none_or(|backing| backing == "device"),
        _ => true,
    }
}

/// Targets of a link: the components that it names, or all that it could name.
fn ends(part: &Part<'_>, key: &str, parts: &[Part<'_>], outside: &[String]) -> Vec<String> {
    let links = KINDS.iter().find(|(kind, _)| *kind == part.kind).map_or(&[][..], |(_, links)| *links);
    let Some((_, to)) = links.iter().find(|(link, _)| *link == key) else { return Vec::new() };
    let names: Option<Vec<&str>> = match part.table.get(key) {
        Some(Value::String(name)) => Some(vec![name]),
        Some(Value::Array(names)) => names.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let is_of = |name: &str, wanted: &str| {
        name == wanted
            || name
                .rsplit_once('.')
                .is_some_and(|(table, number)| table == wanted && number.parse::<u16>().is_ok())
    };
    let is_meant = |other: &&Part<'_>| match &names {
        Some(names) => names.iter().any(|wanted| is_of(&other.name, wanted)),
        None => to.contains(&other.kind) && other.name != part.name && !outside.contains(&other.name),
    };
    parts.iter().filter(is_meant).map(|other| other.name.clone()).collect()
}

/// Utilisation of a component: name and share.
pub(super) struct Load {
    pub(super) name: &'static str,
    pub(super) share: f64,
}

/// Utilisations of a component that the document reports.
pub(super) fn loads(document: &Value, part: &Part<'_>) -> Vec<Load> {
    let of = |list: &str| items(document, list).iter().find(|one| text(one, "name") == part.name);
    let mut found = Vec::new();
    let mut add = |name, share: Option<f64>| found.extend(share.map(|share| Load { name, share }));
    match part.kind {
        "flash" => {
            let drive = of("flash");
            let mean = |keys: [&str; 2]| drive.and_then(|drive| keys.iter().find_map(|key| mean(drive, key)));
            add("dies", mean(["dies.utilisation", "utilisation.die"]));
            add("channels", mean(["channels.utilisation", "utilisation.channel"]));
            add("link", drive.and_then(|drive| number(drive, "utilisation.link")));
        }
        "gpu" => add("issuing", of("gpu").and_then(|gpu| number(gpu, "issuing_share"))),
        "cpu" => {
            let retiring = of("cpu").and_then(|cpu| number(cpu, "time_share.retiring"));
            add("retiring", retiring);
        }
        "host" => {
            let share = |key: &str| of("host").and_then(|host| number(host, &format!("cores.{key}_share")));
            let busy = share("user").zip(share("system")).zip(share("interrupt"));
            add("cores", busy.map(|((user, system), interrupt)| user + system + interrupt));
        }
        "accelerator" => add("workers", of("accelerator").and_then(|one| number(one, "utilisation"))),
        "coprocessor" => add("cores", of("coprocessor").and_then(|one| number(one, "utilisation"))),
        "group_flash" => {
            add("dies", of("group_flash").and_then(|one| number(one, "die_share")));
            add("channels", of("group_flash").and_then(|one| number(one, "channel_share")));
        }
        _ => {}
    }
    found
}

fn mean(value: &Value, path: &str) -> Option<f64> {
    let all = crate::read::numbers(value, path).filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

/// Traffic over a wire, as text.
pub(super) fn traffic(document: &Value, wire: &Wire) -> Option<String> {
    let of = |list: &str, name: &str| items(document, list).iter().find(|one| text(one, "name") == name);
    let rate =
        |value: Option<f64>| value.filter(|value| *value > 0.0).map(|value| shown(value, Unit::BytesPerS));
    match wire.key.as_str() {
        "drives" if items(document, "flash").len() == 1 => {
            rate(number(document, "io.all.bandwidth_bytes_per_s"))
        }
        "network" => rate(of("gpu", &wire.from).and_then(|gpu| number(gpu, "network_bytes_per_s"))),
        "fabric" => rate(of("cpu", &wire.from).and_then(|cpu| number(cpu, "network_bytes_per_s"))),
        "memory" => {
            let complexes = items(document, "gpu").iter().chain(items(document, "cpu"));
            let memory =
                complexes.map(|complex| &complex["memory"]).find(|memory| text(memory, "name") == wire.to);
            rate(memory.and_then(|memory| number(memory, "bandwidth_bytes_per_s")))
        }
        "storage" => link(of("group_flash", &wire.to)?),
        "coprocessors" => link(of("coprocessor", &wire.to)?),
        _ => None,
    }
}

/// Utilisation of a link in both directions.
fn link(part: &Value) -> Option<String> {
    let busy = |key: &str| Some(format!("{:.2} %", 100.0 * number(part, key)?));
    Some(format!("{} / {}", busy("link_in_share")?, busy("link_out_share")?))
}

/// Renders the section.
pub(super) fn html(document: &Value) -> String {
    let spec = &document["spec"];
    let parts = parts(spec);
    if parts.is_empty() {
        return lacking("The machine", "the document has no `spec` with components");
    }
    let wires = wires(spec);
    let mut table =
        Table::new("Components and wires", ["component", "kind", "utilisation", "sends to", "traffic"]);
    for part in &parts {
        let loads: Vec<String> = loads(document, part)
            .iter()
            .map(|load| format!("{} {}", load.name, shown(load.share, Unit::Share)))
            .collect();
        let of: Vec<&Wire> = wires.iter().filter(|wire| wire.from == part.name).collect();
        let asks: Vec<&str> = of.iter().map(|wire| wire.to.as_str()).collect();
        let carries: Vec<String> =
            of.iter().filter_map(|wire| Some(format!("{}: {}", wire.to, traffic(document, wire)?))).collect();
        let or = |text: String| Cell::Text(if text.is_empty() { "–".to_owned() } else { text });
        table.push([
            part.name.as_str().into(),
            part.kind.into(),
            or(loads.join(", ")),
            or(asks.join(", ")),
            or(carries.join(", ")),
        ]);
    }
    Figure {
        title: "Components, wires and utilisation".into(),
        about: "Requests go from left to right. Bars and the darkness of dies show the share of time busy. Wires show their traffic: bytes per second, or the shares of time in which a link was busy, in and out.".into(),
        picture: Picture::Svg(diagram::svg(document, &parts, &wires)),
        table,
    }
    .html()
}
