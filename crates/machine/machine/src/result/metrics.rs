//! Catalogue of the result document's fields: key, unit and definition, from the types' JSON Schema.

use super::{Document, Kinds};
use config::Diagnostic;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// One field of the result document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Key of the field: `io.read.latency_ns.p99`. `*` is an index, or a name that the document chooses.
    pub key: String,
    /// Key pattern, with `KIND` for the kind of request and `FIGURE` for the statistic of a distribution.
    pub pattern: String,
    /// Unit of the field: `ns`, `B`, `B/s`, `1/s`, `count`, `share` (zero to one), `ratio`, `text` …
    pub unit: &'static str,
    /// Definition of the field.
    pub doc: String,
    /// Definition of the distribution, for a field that is a statistic of one.
    pub of: Option<String>,
    /// Positions of indices in the key, each a `*`.
    indices: Vec<usize>,
}

/// Milestones of a request, named as in `breakdown_ns`: the device's milestones, the host's share and a stripe's share.
/// A new milestone is a line.
pub const MILESTONES: &[(&str, &str)] = &[
    (
        "host",
        "The host's software, before submission and after completion; for requests through a page cache, all of their time.",
    ),
    ("submission", "Doorbell, arbitration and fetch."),
    ("controller", "A core of the controller."),
    ("host_transfer", "The host link: data and completion."),
    ("mapping", "Mapping pages from flash."),
    ("buffer", "Room in the buffer, and its access."),
    ("merge", "Reads of old data, for map units written in part."),
    ("space", "Free space in flash."),
    ("die_wait", "The die."),
    ("array", "The array at work."),
    ("channel_wait", "The channel, waiting."),
    ("channel", "The channel, moving data."),
    ("durable", "Flushing of earlier writes to flash."),
    (
        "stripe",
        "The other commands of a request to a stripe, beyond its mean command, and the host's software.",
    ),
];

/// Stages of a line of a load or store, from a multiprocessor or a core, named as in `breakdown_ns`.
pub const STAGES: &[(&str, &str)] = &[
    ("l1", "The load-store unit and the first-level cache."),
    ("l1_merge", "An earlier request of the same multiprocessor or core for the same line."),
    (
        "tlb",
        "The TLB behind the first-level TLBs, or a translation already requested for a different line of the multiprocessor.",
    ),
    ("walk", "The page walk."),
    ("fault", "The page fault."),
    ("network", "The network between multiprocessors or cores, cache banks and controllers."),
    ("l2", "The bank of the shared cache."),
    ("l2_merge", "A fetch that an earlier request had begun."),
    ("controller", "The controller in front of memory."),
    ("ftl", "Address translation of the flash."),
    ("buffer", "The DRAM buffer of an SSD engine."),
    ("memory", "DRAM or persistent memory."),
    ("register", "Flash registers."),
    ("flash_network", "The network between flash controllers and packages, and inside packages."),
    ("array", "The flash array, and the way to it behind an SSD engine."),
    ("reclaim", "Garbage collection that blocks the application."),
    ("coherence", "The directory, and the first-level caches of other cores."),
    ("tags", "The tags of a DRAM cache."),
    ("refill", "The fetch of a missing page from flash into a DRAM cache."),
    ("migration", "The move of the page between memories."),
];

/// Type of a distribution's statistics.
const FIGURES: &str = "#/$defs/Summary";

/// JSON Schema of the document: fields that may be left out are not required.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.into_root_schema_for::<Document>().to_value()
}

/// Lists every field in alphabetical order.
pub fn all() -> Vec<Metric> {
    let document = schema();
    let mut walk = Walk { document: &document, indices: Vec::new(), found: Vec::new() };
    walk.visit("", &document, None);
    walk.found
}

/// Lists the statistics of a distribution, with their definitions.
pub fn figures() -> Vec<(String, String)> {
    let schema = SchemaGenerator::default().into_root_schema_for::<stats::Summary>().to_value();
    let properties = schema.get("properties").and_then(Value::as_object);
    let described = |(name, figure): (&String, &Value)| (name.clone(), text(figure, "description"));
    properties.into_iter().flatten().map(described).collect()
}

/// Refuses a name that no result document has.
///
/// # Errors
/// The name, with the nearest right spelling.
pub fn refuse_unknown(name: &str) -> Result<(), Diagnostic> {
    let known = all();
    if known.iter().any(|metric| is_instance(metric, name)) {
        return Ok(());
    }
    let mut fault = Diagnostic::new(format!("unknown metric `{name}`"));
    let help = "`nandscape explain NAME` finds metrics; docs/metrics.md lists all";
    if let Some(meant) = known.iter().find_map(|metric| with_indices(metric, name)) {
        fault.what += ": an element of a list is named by its index";
        fault.nearest = Some(meant);
        return Err(fault.help(help));
    }
    fault = fault.allowed(name, known.iter().map(|metric| metric.key.replace('*', "0")));
    fault.allowed.clear();
    Err(fault.help(help).pointed(name))
}

/// Returns whether a key of a document, such as `flash.0.erases`, is this metric.
pub fn is_instance(metric: &Metric, key: &str) -> bool {
    fits(metric, key, is_index)
}

/// Returns the key with zeros in the places of indices, if it then is this metric: `flash.0.erases` for
/// `flash.drive.erases`.
pub fn with_indices(metric: &Metric, key: &str) -> Option<String> {
    let part = |(at, part)| if metric.indices.contains(&at) && !is_index(part) { "0" } else { part };
    fits(metric, key, |_| true).then(|| key.split('.').enumerate().map(part).collect::<Vec<_>>().join("."))
}

/// Returns whether a text is a number as a reader of the document would write it.
fn is_index(part: &str) -> bool {
    part.parse::<usize>().is_ok_and(|index| index.to_string() == part)
}

/// Returns whether a key has the names of this metric, and only what `may_be_index` allows in the places of indices.
fn fits(metric: &Metric, key: &str, may_be_index: impl Fn(&str) -> bool) -> bool {
    let (mut pattern, mut parts) = (metric.key.split('.').enumerate(), key.split('.'));
    loop {
        match (pattern.next(), parts.next()) {
            (None, None) => return true,
            (Some((at, "*")), Some(part)) if metric.indices.contains(&at) && may_be_index(part) => {}
            (Some((at, "*")), Some(part)) if !metric.indices.contains(&at) && part != "*" => {}
            (Some((_, name)), Some(part)) if name != "*" && name == part => {}
            _ => return false,
        }
    }
}

struct Walk<'d> {
    document: &'d Value,
    /// Positions of indices in the current key.
    indices: Vec<usize>,
    found: Vec<Metric>,
}

impl Walk<'_> {
    /// `of` describes the distribution whose statistics are visited.
    fn visit(&mut self, key: &str, schema: &Value, of: Option<&str>) {
        let doc = text(schema, "description");
        let figures = refers_to(schema, FIGURES);
        let whole = self.resolve(schema);
        let distribution = if figures { Some(doc.clone()) } else { of.map(str::to_owned) };
        let of = distribution.as_deref();
        if let Some(properties) = whole.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                self.visit(&join(key, name), property, of);
            }
        } else if let Some(element) =
            ["items", "additionalProperties"].iter().find_map(|n| whole.get(*n)).filter(|e| e.is_object())
        {
            // A list's description applies to its elements, unless they have one.
            let mut element = element.clone();
            let described = element.get("description").is_some() || element.get("$ref").is_some();
            if let (false, Some(object)) = (described, element.as_object_mut()) {
                object.insert("description".into(), doc.into());
            }
            let place = join(key, "*");
            let is_list = whole.get("items").is_some();
            if is_list {
                self.indices.push(place.matches('.').count());
            }
            self.visit(&place, &element, of);
            if is_list {
                self.indices.pop();
            }
        } else {
            let metric = Metric {
                key: key.to_owned(),
                pattern: pattern(key, of.is_some()),
                unit: unit(key, &whole),
                doc,
                of: of.map(str::to_owned),
                indices: self.indices.clone(),
            };
            self.found.push(metric);
        }
    }

    /// Resolves the schema behind a reference or an option.
    fn resolve(&self, schema: &Value) -> Map<String, Value> {
        let optional = schema.get("anyOf").and_then(Value::as_array);
        let inner = optional.into_iter().flatten().find(|form| form.get("$ref").is_some());
        let reference = inner.unwrap_or(schema).get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|r| self.document.pointer(r.strip_prefix('#')?));
        target.unwrap_or(schema).as_object().cloned().unwrap_or_default()
    }
}

fn refers_to(schema: &Value, name: &str) -> bool {
    schema.get("$ref").is_some_and(|r| r == name)
}

fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

fn text(schema: &Value, name: &str) -> String {
    schema.get(name).and_then(Value::as_str).unwrap_or_default().replace('\n', " ")
}

fn pattern(key: &str, is_figure: bool) -> String {
    let mut parts: Vec<&str> = key.split('.').collect();
    let kind = match parts[..] {
        ["io", "flows", _, kind, ..] if Kinds::NAMES.contains(&kind) => Some(3),
        ["io", kind, _, ..] if Kinds::NAMES.contains(&kind) => Some(1),
        _ => None,
    };
    if let Some(at) = kind {
        parts[at] = "KIND";
    }
    if is_figure && let Some(last) = parts.last_mut() {
        *last = "FIGURE";
    }
    parts.join(".")
}

/// Names end in their unit by convention; a statistic has the unit of its field.
fn unit(key: &str, schema: &Map<String, Value>) -> &'static str {
    let of_type = |name: &str| match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|t| t == name),
        Some(single) => single == name,
        None => false,
    };
    if of_type("string") {
        return "text";
    }
    if of_type("boolean") {
        return "true or false";
    }
    if schema.get("type").is_none() {
        return "table";
    }
    let named = key.rsplit('.').find_map(unit_of_name);
    named.unwrap_or(if of_type("integer") { "count" } else { "" })
}

fn unit_of_name(name: &str) -> Option<&'static str> {
    let rules: [(&str, &str); 21] = [
        ("_iops", "1/s"),
        ("_bytes_per_s", "B/s"),
        ("_per_cpu_s", "1/s"),
        ("_per_s", "1/s"),
        ("_ns", "ns"),
        ("_ns_mean", "ns"),
        ("_bytes_mean", "B"),
        ("_s", "s"),
        ("_bytes", "B"),
        ("_j", "J"),
        ("_kwh", "kWh"),
        ("_w_mean", "W"),
        ("_w_max", "W"),
        ("power_w", "W"),
        ("_share", "share"),
        ("_utilisation", "share"),
        ("_amplification", "ratio"),
        ("_pages", "pages"),
        ("_lines", "lines"),
        ("_instructions", "instructions"),
        ("_of_a_page", "1/page"),
    ];
    let whole = match name {
        "bytes" => Some("B"),
        "seconds" => Some("s"),
        "iops" => Some("1/s"),
        "requests" | "queue_depth" | "queue_depth_mean" | "queued_mean" | "in_flight_mean" => {
            Some("requests")
        }
        "jobs" => Some("jobs"),
        "utilisation" | "covered" | "slowest" | "share" => Some("share"),
        "erase_count" => Some("erases"),
        "ipc" => Some("instructions/cycle"),
        "cycles" => Some("cycles"),
        "drive_writes" => Some("drive writes"),
        "free_reclaim_units" => Some("reclaim units"),
        _ => None,
    };
    whole.or_else(|| rules.iter().find(|(suffix, _)| name.ends_with(suffix)).map(|(_, unit)| *unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_unit_and_a_definition() {
        for metric in all() {
            assert!(!metric.doc.is_empty(), "{}: no definition", metric.key);
            assert!(!metric.unit.is_empty(), "{}: no unit", metric.key);
        }
    }

    #[test]
    fn keys_units_and_patterns_of_known_fields() {
        let metrics = all();
        for (key, pattern, unit) in [
            ("simulated_ns", "simulated_ns", "ns"),
            ("io.read.latency_ns.p99_9", "io.KIND.latency_ns.FIGURE", "ns"),
            ("io.flows.*.write.bandwidth_bytes_per_s", "io.flows.*.KIND.bandwidth_bytes_per_s", "B/s"),
            ("io.all.bytes", "io.KIND.bytes", "B"),
            ("io.all.iops", "io.KIND.iops", "1/s"),
            ("io.series.*.latency_ns_mean", "io.series.*.latency_ns_mean", "ns"),
            ("flash.*.write_amplification", "flash.*.write_amplification", "ratio"),
            ("flash.*.utilisation.die.*", "flash.*.utilisation.die.*", "share"),
            ("run.precondition_cpu_s", "run.precondition_cpu_s", "s"),
            ("breakdown_ns.*.*", "breakdown_ns.*.*", "ns"),
            ("checks.*.ok", "checks.*.ok", "true or false"),
            ("warnings.*", "warnings.*", "text"),
        ] {
            let metric = metrics.iter().find(|m| m.key == key).unwrap_or_else(|| panic!("no {key}"));
            assert_eq!((metric.pattern.as_str(), metric.unit), (pattern, unit), "{key}");
        }
    }

    #[test]
    fn indexes_and_names_match_their_star() {
        let metrics = all();
        let named = |key: &str| metrics.iter().any(|m| is_instance(m, key));
        assert!(named("flash.0.erases") && named("breakdown_ns.read.array"));
        assert!(!named("flash.erases") && !named("flash.0.erase") && !named("flash.0.erases.0"));
        assert!(named("coprocessor.0.kernels.12.phases.read.time_ns"));
        for wrong in [
            "flash.flash.erases",
            "flash.*.erases",
            "flash.00.erases",
            "flash.+1.erases",
            "breakdown_ns.*.array",
        ] {
            assert!(!named(wrong), "{wrong}");
        }
        let meant = |key: &str| metrics.iter().find_map(|m| with_indices(m, key));
        assert_eq!(meant("flash.flash.erases").as_deref(), Some("flash.0.erases"));
        assert_eq!(
            meant("coprocessor.1.kernels.last.phases.read.time_ns").as_deref(),
            Some("coprocessor.1.kernels.0.phases.read.time_ns")
        );
        assert_eq!(meant("flash.flash.erase"), None);
    }

    #[test]
    fn every_milestone_of_the_device_is_explained() {
        let mut device: Vec<&str> = ssd::device::MILESTONES.into_iter().chain(["host", "stripe"]).collect();
        let mut explained: Vec<&str> = MILESTONES.iter().map(|(name, _)| *name).collect();
        device.sort_unstable();
        explained.sort_unstable();
        assert_eq!(device, explained);
    }

    #[test]
    fn every_stage_is_explained() {
        let explained: Vec<&str> = STAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(explained, proto::memory::Stage::NAMES);
    }

    #[test]
    fn the_figures_are_those_of_the_contract() {
        let mut names: Vec<String> = figures().into_iter().map(|(name, _)| name).collect();
        let mut contract =
            ["mean", "stddev", "min", "max", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999"];
        names.sort_unstable();
        contract.sort_unstable();
        assert_eq!(names, contract);
    }
}
