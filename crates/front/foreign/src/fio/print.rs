//! Prints a result document as fio 3 does with `--output-format=json+`, for tools made for fio.

use super::{Job, NAMED, PERCENTILES, number, rounded, table, text, whole};
use serde_json::{Map, Value, json};

/// fio version whose layout is used.
const LAYOUT: &str = "fio-3.33";

/// Converts the document to fio's json+. `jobs` are the options of the known jobs; a flow takes those of the job of its
/// name.
///
/// Values that a simulation lacks (processor time, page faults, batch sizes) are zero; times of day are the epoch.
pub fn print(document: &Value, jobs: &[Job]) -> Value {
    let io = &document["io"];
    let flows: Vec<&Value> = io["flows"].as_array().into_iter().flatten().collect();
    let one = flows.len() == 1;
    let printed: Vec<Value> = flows
        .iter()
        .map(|flow| {
            // Distributions cover all flows together: a single flow owns them.
            let kinds = if one { io } else { *flow };
            job(document, flow, kinds, options(jobs, flow, one))
        })
        .collect();
    json!({
        "fio version": format!("{LAYOUT}-nandscape-{}", text(document, "version")),
        "timestamp": 0,
        "timestamp_ms": 0,
        "time": "Thu Jan  1 00:00:00 1970",
        "global options": {},
        "jobs": printed,
        "disk_util": [],
    })
}

/// Options of the job of a flow: the flow has the job's name, or that name with the number of a clone.
fn options(jobs: &[Job], flow: &Value, one: bool) -> Value {
    let name = text(flow, "name");
    let is_of = |job: &&Job| name == job.name || name.starts_with(&format!("{}.", job.name));
    let job = jobs.iter().find(is_of).or(jobs.first().filter(|_| one && jobs.len() == 1));
    let options =
        job.into_iter().flat_map(|job| &job.options).map(|(key, value)| (key.clone(), value.as_str().into()));
    let mut all: Map<String, Value> = options.collect();
    all.insert("name".to_owned(), name.into());
    Value::Object(all)
}

fn job(document: &Value, flow: &Value, kinds: &Value, options: Value) -> Value {
    let seconds = number(document, "simulated_ns").unwrap_or_default() / 1e9;
    let io = &document["io"];
    let direction = |name: &str| direction(kinds.get(name).unwrap_or(&Value::Null), io, name);
    let mut all = table([
        ("jobname", text(flow, "name").into()),
        ("groupid", 0.into()),
        ("job_start", 0.into()),
        ("error", 0.into()),
        ("eta", 0.into()),
        ("elapsed", (seconds as u64 + 1).into()),
        ("job options", options),
        ("read", direction("read")),
        ("write", direction("write")),
        ("trim", direction("trim")),
        ("sync", sync(kinds.get("flush").unwrap_or(&Value::Null))),
        ("job_runtime", ((seconds * 1e3) as u64).into()),
        ("usr_cpu", 0.0.into()),
        ("sys_cpu", 0.0.into()),
        ("ctx", 0.into()),
        ("majf", 0.into()),
        ("minf", 0.into()),
        ("latency_depth", (number(&flow["all"], "queue_depth_mean").map_or(0.0, libm::round) as u64).into()),
        ("latency_target", 0.into()),
        ("latency_percentile", 100.0.into()),
        ("latency_window", 0.into()),
    ]);
    let histogram = kinds["all"].get("histogram_ns");
    if let Some(all) = all.as_object_mut() {
        let levels = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_owned(), Value::from(0.0))).collect::<Map<_, _>>()
        };
        all.insert("iodepth_level".to_owned(), levels(&["1", "2", "4", "8", "16", "32", ">=64"]).into());
        let batches = ["0", "4", "8", "16", "32", "64", ">=64"];
        all.insert("iodepth_submit".to_owned(), levels(&batches).into());
        all.insert("iodepth_complete".to_owned(), levels(&batches).into());
        all.extend(bounds(histogram));
    }
    all
}

/// Converts the requests of one kind.
fn direction(kind: &Value, io: &Value, name: &str) -> Value {
    let (requests, bytes) = (whole(kind, "requests"), whole(kind, "bytes"));
    let (iops, bandwidth) =
        (number(kind, "iops").unwrap_or_default(), number(kind, "bandwidth_bytes_per_s").unwrap_or_default());
    let runtime = if iops > 0.0 { libm::round(requests as f64 / iops * 1e3).max(1.0) } else { 0.0 };
    let histogram = buckets(kind.get("histogram_ns"));
    // The distribution is that of lat, and also of clat where no request waits for submission.
    let submitted_at_once = number(&kind["slat_ns"], "max").unwrap_or_default() == 0.0;
    let (of_clat, of_lat) =
        if submitted_at_once { (Some(&histogram), None) } else { (None, Some(&histogram)) };
    let samples = samples(io, name, (iops, bandwidth));
    let mut all = table([
        ("io_bytes", bytes.into()),
        ("io_kbytes", (bytes / 1024).into()),
        ("bw_bytes", (bandwidth as u64).into()),
        ("bw", ((bandwidth / 1024.0) as u64).into()),
        ("iops", rounded(iops)),
        ("runtime", (runtime as u64).into()),
        ("total_ios", requests.into()),
        ("short_ios", 0.into()),
        ("drop_ios", 0.into()),
        ("slat_ns", latency(&kind["slat_ns"], requests, None, false)),
        ("clat_ns", latency(&kind["clat_ns"], requests, of_clat, true)),
        ("lat_ns", latency(&kind["latency_ns"], requests, of_lat, false)),
    ]);
    if let Some(all) = all.as_object_mut() {
        all.extend(samples);
    }
    all
}

/// Bucket of a histogram: its middle and its count.
type Bucket = (u64, u64);

fn buckets(histogram: Option<&Value>) -> Vec<Bucket> {
    let Some(histogram) = histogram else { return Vec::new() };
    let list = |name: &str| histogram[name].as_array().into_iter().flatten();
    let middle =
        |from: &Value, to: &Value| Some(libm::round((from.as_f64()? + to.as_f64()?) / 2.0).max(0.0) as u64);
    let mut all: Vec<Bucket> = Vec::new();
    for ((from, to), count) in list("from").zip(list("to")).zip(list("requests")) {
        let (Some(value), Some(count)) = (middle(from, to), count.as_u64()) else { continue };
        match all.last_mut() {
            Some((last, sum)) if *last == value => *sum += count,
            _ => all.push((value, count)),
        }
    }
    all
}

/// Converts a latency, with percentiles where fio has them or a distribution exists.
fn latency(summary: &Value, requests: u64, buckets: Option<&Vec<Bucket>>, percentiles: bool) -> Value {
    let of = |name: &str| number(summary, name).unwrap_or_default();
    let mut all = table([
        ("min", (of("min") as u64).into()),
        ("max", (of("max") as u64).into()),
        ("mean", rounded(of("mean"))),
        ("stddev", rounded(of("stddev"))),
        ("N", requests.into()),
    ]);
    let (Some(table), true) = (all.as_object_mut(), requests > 0) else { return all };
    let known = buckets.filter(|buckets| !buckets.is_empty());
    if percentiles || known.is_some() {
        let found =
            percents(summary, known).into_iter().map(|(percent, ns)| (format!("{percent:.6}"), ns.into()));
        table.insert("percentile".to_owned(), Value::Object(found.collect()));
    }
    if let Some(buckets) = known {
        let bins = buckets.iter().map(|(value, count)| (value.to_string(), (*count).into()));
        table.insert("bins".to_owned(), Value::Object(bins.collect()));
    }
    all
}

/// Percentiles from the document, or else from the buckets.
fn percents(summary: &Value, buckets: Option<&Vec<Bucket>>) -> Vec<(f64, u64)> {
    let named = |percent: f64| {
        NAMED.iter().find(|(_, known)| *known == percent).and_then(|(name, _)| number(summary, name))
    };
    let from = |percent: f64| {
        let buckets = buckets?;
        let all: u64 = buckets.iter().map(|(_, count)| count).sum();
        let rank = (libm::ceil(all as f64 * percent / 100.0) as u64).max(1);
        let mut below = 0;
        buckets.iter().find_map(|(value, count)| {
            below += count;
            (below >= rank).then_some(*value as f64)
        })
    };
    PERCENTILES
        .iter()
        .filter_map(|percent| Some((*percent, named(*percent).or_else(|| from(*percent))? as u64)))
        .collect()
}

/// Samples that fio takes every half second: here the windows of the series if all requests are of this kind, else only
/// the mean.
fn samples(io: &Value, name: &str, (iops, bandwidth): (f64, f64)) -> Map<String, Value> {
    let others =
        ["read", "write", "trim", "flush"].iter().any(|other| *other != name && io.get(other).is_some());
    let windows = io["series"].as_array().filter(|_| !others && io.get(name).is_some());
    let rates = |key: &str| -> Vec<f64> {
        let rate = |window: &Value| {
            Some(number(window, key)? / (number(window, "width_ns").filter(|width| *width > 0.0)? / 1e9))
        };
        windows.into_iter().flatten().filter_map(rate).collect()
    };
    let mut all = Map::new();
    for (prefix, spread, rates, mean, unit) in
        [("bw", "dev", rates("bytes"), bandwidth, 1024.0), ("iops", "stddev", rates("requests"), iops, 1.0)]
    {
        let rates = if rates.is_empty() && mean > 0.0 { vec![mean] } else { rates };
        let n = rates.len() as f64;
        let average = if n > 0.0 { rates.iter().sum::<f64>() / n } else { 0.0 };
        let squares: f64 = rates.iter().map(|rate| (rate - average) * (rate - average)).sum();
        let deviation = if n > 1.0 { libm::sqrt(squares / (n - 1.0)) } else { 0.0 };
        let end = |of: fn(f64, f64) -> f64| rates.iter().copied().reduce(of).unwrap_or_default() / unit;
        all.insert(format!("{prefix}_min"), (end(f64::min) as u64).into());
        all.insert(format!("{prefix}_max"), (end(f64::max) as u64).into());
        all.insert(format!("{prefix}_mean"), rounded(average / unit));
        all.insert(format!("{prefix}_{spread}"), rounded(deviation / unit));
        all.insert(format!("{prefix}_samples"), rates.len().into());
    }
    all.insert("bw_agg".to_owned(), if bandwidth > 0.0 { 100.0 } else { 0.0 }.into());
    all
}

fn sync(flush: &Value) -> Value {
    let requests = whole(flush, "requests");
    table([("total_ios", requests.into()), ("lat_ns", latency(&flush["latency_ns"], requests, None, false))])
}

/// Shares of requests up to each bound, in percent, in fio's steps.
fn bounds(histogram: Option<&Value>) -> Map<String, Value> {
    const STEPS: [&str; 10] = ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"];
    let buckets = buckets(histogram);
    let all: u64 = buckets.iter().map(|(_, count)| count).sum();
    let mut sets = Map::new();
    let mut from = 0;
    for (name, unit) in [("latency_ns", 1), ("latency_us", 1000), ("latency_ms", 1_000_000)] {
        let mut set = Map::new();
        let extra: &[&str] = if name == "latency_ms" { &["2000", ">=2000"] } else { &[] };
        for step in STEPS.iter().chain(extra) {
            let to = step.parse::<u64>().map_or(u64::MAX, |step| step * unit);
            let inside: u64 =
                buckets.iter().filter(|(value, _)| (from..to).contains(value)).map(|(_, count)| count).sum();
            set.insert((*step).to_owned(), rounded(100.0 * inside as f64 / all.max(1) as f64));
            from = to;
        }
        sets.insert(name.to_owned(), Value::Object(set));
    }
    sets
}
