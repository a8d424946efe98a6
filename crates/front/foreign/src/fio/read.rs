//! Converts fio's output to a result document.

use super::{NAMED, number, rounded, text, whole};
use config::Diagnostic;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Schema of the documents that are written.
const SCHEMA: &str = "nandscape.result/2";
const KINDS: [&str; 3] = ["read", "write", "trim"];
/// Job options that name a place or a job, not the work.
const PLACES: [&str; 5] = ["name", "filename", "directory", "description", "output"];

/// Reads fio's JSON (`--output-format=json` or `json+`). Values that fio does not measure are null, or absent.
///
/// # Errors
/// The bytes are not JSON, or not fio's output.
pub fn read(name: &str, bytes: &[u8]) -> Result<Value, Diagnostic> {
    let (found, jobs) = jobs_of(name, bytes)?;
    Ok(document(name, &found, &jobs.iter().collect::<Vec<_>>()))
}

/// Parses fio's output; returns it with its jobs.
pub(super) fn jobs_of(name: &str, bytes: &[u8]) -> Result<(Value, Vec<Value>), Diagnostic> {
    const HELP: &str = "`fio --output-format=json+ --output=FILE JOBS` writes one";
    // Notes of fio precede its JSON if both went to one file.
    let from = bytes.iter().position(|byte| *byte == b'{').unwrap_or(0);
    let mut documents = serde_json::Deserializer::from_slice(&bytes[from..]).into_iter::<Value>();
    let found = match documents.next() {
        Some(Ok(found)) => found,
        Some(Err(fault)) => {
            return Err(Diagnostic::new(format!("{name} is not JSON: {fault}")).help(HELP));
        }
        None => return Err(Diagnostic::new(format!("{name} is empty")).help(HELP)),
    };
    if let Some(schema) = found.get("schema").and_then(Value::as_str) {
        let help = "`diff`, `report` and Python read it directly";
        return Err(Diagnostic::new(format!("{name} is a `{schema}`, not a result of fio")).help(help));
    }
    let list = found.get("jobs").or_else(|| found.get("client_stats")).and_then(Value::as_array);
    let jobs: Vec<Value> =
        list.into_iter().flatten().filter(|job| text(job, "jobname") != "All clients").cloned().collect();
    if jobs.is_empty() || !jobs.iter().any(|job| job.get("read").or(job.get("mixed")).is_some()) {
        return Err(Diagnostic::new(format!(
            "{name} is not a result of fio: it has no jobs with measurements"
        ))
        .help(HELP));
    }
    Ok((found, jobs))
}

/// Requests of one kind, from one or more jobs.
#[derive(Clone, Default)]
pub(super) struct Kind {
    pub(super) requests: u64,
    bytes: u64,
    pub(super) iops: f64,
    bandwidth: f64,
    pub(super) lat: Latency,
    slat: Latency,
    pub(super) clat: Latency,
}

impl Kind {
    pub(super) fn read(direction: &Value) -> Kind {
        let requests = whole(direction, "total_ios");
        let kilobytes = number(direction, "bw").unwrap_or_default() * 1024.0;
        // Before version 3, `io_bytes` were kilobytes.
        let old = direction.get("clat_ns").is_none() && direction.get("lat_ns").is_none();
        let unit = if old { 1024 } else { 1 };
        Kind {
            requests,
            bytes: whole(direction, "io_bytes").saturating_mul(unit),
            iops: number(direction, "iops").unwrap_or_default(),
            bandwidth: number(direction, "bw_bytes").unwrap_or(kilobytes),
            lat: Latency::read(direction, "lat", requests),
            slat: Latency::read(direction, "slat", requests),
            clat: Latency::read(direction, "clat", requests),
        }
    }

    pub(super) fn merge(&mut self, other: &Kind) {
        self.requests = self.requests.saturating_add(other.requests);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.iops += other.iops;
        self.bandwidth += other.bandwidth;
        self.lat.merge(&other.lat);
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
    }

    /// Converts to the form of a document; `is_whole` includes the distribution.
    fn value(&self, is_whole: bool) -> Value {
        let mean = self.lat.summary()["mean"].as_f64();
        let mut all = json!({
            "requests": self.requests,
            "bytes": self.bytes,
            "iops": rounded(self.iops),
            "bandwidth_bytes_per_s": rounded(self.bandwidth),
            "queue_depth_mean": mean.map(|mean| rounded(mean * self.iops / 1e9)),
            "latency_ns": self.lat.summary(),
            "slat_ns": self.slat.summary(),
            "clat_ns": self.clat.summary(),
        });
        let histogram = self.lat.histogram().or_else(|| self.clat.histogram());
        if let (Some(histogram), Some(all), true) = (histogram, all.as_object_mut(), is_whole) {
            all.insert("histogram_ns".to_owned(), histogram);
        }
        all
    }
}

/// Measurements of one job, by kind; kinds without requests are omitted.
fn kinds(job: &Value) -> Vec<(Option<&'static str>, Kind)> {
    if let Some(mixed) = job.get("mixed") {
        return vec![(None, Kind::read(mixed))];
    }
    let of = |name: &'static str| Some((Some(name), Kind::read(job.get(name)?)));
    KINDS.into_iter().filter_map(of).filter(|(_, kind)| kind.requests > 0).collect()
}

/// Merges kinds as `io` and each flow have them.
fn by_kind(kinds: &[(Option<&'static str>, Kind)], is_whole: bool) -> Map<String, Value> {
    let mut all = Kind::default();
    kinds.iter().for_each(|(_, kind)| all.merge(kind));
    let mut table = Map::new();
    table.insert("all".to_owned(), all.value(is_whole));
    for name in KINDS {
        let mut one = Kind::default();
        kinds.iter().filter(|(of, _)| *of == Some(name)).for_each(|(_, kind)| one.merge(kind));
        if one.requests > 0 {
            table.insert(name.to_owned(), one.value(is_whole));
        }
    }
    table
}

/// Run time of a job, in ns.
fn runtime_ns(job: &Value) -> f64 {
    let of = |name: &str| job.get(name).map(|direction| whole(direction, "runtime"));
    let longest = ["read", "write", "trim", "mixed"].into_iter().filter_map(of).max().unwrap_or_default();
    // Milliseconds, of every version.
    longest as f64 * 1e6
}

fn document(name: &str, found: &Value, jobs: &[&Value]) -> Value {
    let mut warnings = Vec::new();
    let measured: Vec<_> = jobs.iter().map(|job| kinds(job)).collect();
    let groups: std::collections::BTreeSet<u64> = jobs.iter().map(|job| whole(job, "groupid")).collect();
    let mut every: Vec<(Option<&'static str>, Kind)> = measured.iter().flatten().cloned().collect();
    let time = time_ns(jobs, &groups);
    if groups.len() > 1 {
        warnings.push(format!(
            "the jobs ran in {} groups, one after the other: total rates are over the total time",
            groups.len()
        ));
        for (_, kind) in &mut every {
            kind.iops = kind.requests as f64 / (time / 1e9).max(1e-9);
            kind.bandwidth = kind.bytes as f64 / (time / 1e9).max(1e-9);
        }
    }
    if every.iter().any(|(_, kind)| !kind.lat.is_distributed() && kind.clat.is_distributed()) {
        warnings.push("percentiles and the distribution are those of fio's clat (from submission): percentiles of latency_ns are null. With `lat_percentiles=1`, fio prints those of lat".to_owned());
    }
    if every.iter().all(|(_, kind)| kind.lat.bins.is_empty() && kind.clat.bins.is_empty()) {
        warnings.push("no distribution: `--output-format=json+` makes fio print it".to_owned());
    }
    let failed: Vec<&str> =
        jobs.iter().filter(|job| whole(job, "error") != 0).map(|job| text(job, "jobname")).collect();
    if !failed.is_empty() {
        warnings.push(format!("fio ended with an error: {}", failed.join(", ")));
    }
    let mut io = by_kind(&every, true);
    let flow = |(job, kinds): (&&Value, &Vec<(Option<&'static str>, Kind)>)| {
        let mut flow = by_kind(kinds, false);
        flow.insert("name".to_owned(), text(job, "jobname").into());
        let all = flow["all"].clone();
        flow.insert(
            "active".to_owned(),
            json!({ "from_ns": 0.0, "until_ns": runtime_ns(job), "iops": all["iops"], "bandwidth_bytes_per_s": all["bandwidth_bytes_per_s"], "offered_iops": null }),
        );
        Value::Object(flow)
    };
    io.insert("flows".to_owned(), jobs.iter().zip(&measured).map(flow).collect());
    io.insert("lag_max_ns".to_owned(), Value::Null);
    io.insert("series".to_owned(), json!([]));
    let tool = text(found, "fio version");
    json!({
        "schema": SCHEMA,
        "system": format!("measured: {}", stem(name)),
        "measured": { "tool": tool, "file": name, "time": text(found, "time") },
        "spec": {},
        "spec_sha256": null,
        "seed": null,
        "version": tool,
        "workload": jobs.iter().map(|job| workload(found, job)).collect::<Vec<_>>(),
        "ok": failed.is_empty(),
        "partial": false,
        "warnings": warnings,
        "simulated_ns": time,
        "run": {},
        "io": io,
        "flash": [],
        "breakdown_ns": {},
        "checks": [],
    })
}

/// Total time of all jobs: groups follow each other.
fn time_ns(jobs: &[&Value], groups: &std::collections::BTreeSet<u64>) -> f64 {
    let of = |group: &u64| {
        let inside = jobs.iter().filter(|job| whole(job, "groupid") == *group);
        inside.map(|job| runtime_ns(job)).fold(0.0, f64::max)
    };
    groups.iter().map(of).sum()
}

/// File name without folder and extension.
fn stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}

/// Job in the form of `--workload`.
fn workload(found: &Value, job: &Value) -> String {
    let options = options_of(found, job);
    let said = options.iter().filter(|(key, _)| !PLACES.contains(&key.as_str()));
    let parts: Vec<String> = said
        .map(|(key, value)| if value.is_empty() { key.clone() } else { format!("{key}={value}") })
        .collect();
    if parts.is_empty() { text(job, "jobname").to_owned() } else { format!("fio:{}", parts.join(",")) }
}

/// Options of a job after the global options; a later option of the same name wins.
pub(super) fn options_of(found: &Value, job: &Value) -> Vec<(String, String)> {
    let mut options: Vec<(String, String)> = Vec::new();
    for table in [found.get("global options"), job.get("job options")].into_iter().flatten() {
        for (key, value) in table.as_object().into_iter().flatten() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            options.retain(|(known, _)| known != key);
            options.push((key.clone(), text));
        }
    }
    options
}

// Merged latencies of several jobs.

/// Latency statistics of fio, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Latency {
    /// Number of samples.
    pub(super) count: u64,
    mean: f64,
    /// Sum of squared deviations from the mean.
    squares: f64,
    min: Option<f64>,
    max: Option<f64>,
    /// Printed percentiles; empty for merged statistics.
    percentiles: BTreeMap<u64, f64>,
    /// Counts by value; empty if not printed.
    pub(super) bins: BTreeMap<u64, u64>,
}

/// Key of a percentile, in millionths.
fn key(percent: f64) -> u64 {
    libm::round(percent * 1e6) as u64
}

impl Latency {
    /// Reads `clat_ns` or, before version 3, `clat` in microseconds. `count` is the fallback for a missing count.
    pub(super) fn read(direction: &Value, name: &str, count: u64) -> Latency {
        let (found, unit) = match direction.get(format!("{name}_ns")) {
            Some(found) => (found, 1.0),
            None => (direction.get(name).unwrap_or(&Value::Null), 1e3),
        };
        let own = whole(found, "N");
        let count = if found.get("N").is_some() { own } else { count };
        let Some(mean) = number(found, "mean").filter(|_| count > 0) else { return Latency::default() };
        let of = |name: &str| number(found, name).map(|value| value * unit);
        let table = |name: &str| found.get(name).and_then(Value::as_object).into_iter().flatten();
        let percentiles = table("percentile")
            .filter_map(|(percent, value)| Some((key(percent.parse().ok()?), value.as_f64()? * unit)));
        let bins = table("bins").filter_map(|(value, count)| Some((value.parse().ok()?, count.as_u64()?)));
        let spread = of("stddev").unwrap_or_default();
        Latency {
            count,
            mean: mean * unit,
            squares: spread * spread * count.saturating_sub(1) as f64,
            min: of("min"),
            max: of("max"),
            percentiles: percentiles.collect(),
            bins: bins.filter(|(_, count)| *count > 0).collect(),
        }
    }

    /// Merges different statistics into these.
    pub(super) fn merge(&mut self, other: &Latency) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = other.clone();
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let apart = other.mean - self.mean;
        self.squares += other.squares + apart * apart * a * b / (a + b);
        self.mean += apart * b / (a + b);
        self.count = self.count.saturating_add(other.count);
        self.min = [self.min, other.min].into_iter().flatten().reduce(f64::min);
        self.max = [self.max, other.max].into_iter().flatten().reduce(f64::max);
        self.percentiles.clear();
        // If one side lacks bins, the merged distribution is unknown.
        if self.bins.is_empty() || other.bins.is_empty() {
            self.bins.clear();
        }
        if !self.bins.is_empty() {
            for (value, count) in &other.bins {
                let sum = self.bins.entry(*value).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// Percentile as printed, else from the bins; `None` without either.
    fn percentile(&self, percent: f64) -> Option<f64> {
        if let Some(value) = self.percentiles.get(&key(percent)) {
            return Some(*value);
        }
        let all: u64 = self.bins.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        // As in every result, a percentile needs at least ten requests above it.
        if all == 0 || all as f64 * (1.0 - percent / 100.0) < 10.0 {
            return None;
        }
        let rank = libm::ceil(all as f64 * percent / 100.0) as u64;
        let mut below = 0u64;
        self.bins.iter().find_map(|(value, count)| {
            below = below.saturating_add(*count);
            (below >= rank).then_some(*value as f64)
        })
    }

    /// Returns whether the distribution is known.
    pub(super) fn is_distributed(&self) -> bool {
        !self.percentiles.is_empty() || !self.bins.is_empty()
    }

    /// Converts to the form of a document: unknown values are null.
    pub(super) fn summary(&self) -> Value {
        let known = self.count > 0;
        let of = |value: Option<f64>| value.filter(|_| known).map_or(Value::Null, rounded);
        let spread = (self.count > 1).then(|| libm::sqrt(self.squares / (self.count - 1) as f64));
        let mut all = Map::new();
        for (name, value) in
            [("mean", Some(self.mean)), ("stddev", spread), ("min", self.min), ("max", self.max)]
        {
            all.insert(name.to_owned(), of(value));
        }
        for (name, percent) in NAMED {
            all.insert(name.to_owned(), of(self.percentile(percent)));
        }
        Value::Object(all)
    }

    /// Converts the bins to a document's histogram: each value is a bucket.
    pub(super) fn histogram(&self) -> Option<Value> {
        let values: Vec<f64> = self.bins.keys().map(|value| *value as f64).collect();
        (!values.is_empty()).then(|| {
            let counts: Vec<u64> = self.bins.values().copied().collect();
            serde_json::json!({ "from": values, "to": values, "requests": counts })
        })
    }
}
