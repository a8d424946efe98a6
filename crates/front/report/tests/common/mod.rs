//! A result document as a run of millions of requests leaves it, made of formulas.

use serde_json::{Value, json};

/// Channels and dies of each.
pub(crate) const CHANNELS: usize = 16;
/// Dies of a channel.
pub(crate) const DIES: usize = 8;

/// A histogram with occupied buckets 0.8 % wide from `from_ns` on.
fn histogram(buckets: usize, from_ns: f64, requests: u64) -> Value {
    let bound = |at: usize| (from_ns * (1.0 + 0.008f64).powi(at as i32)).round();
    // Each bucket has 1 % less than the one before, and at least one request.
    let weight = |at: usize| 0.99f64.powi(at as i32);
    let all: f64 = (0..buckets).map(weight).sum();
    let count = |at: usize| ((requests as f64 * weight(at) / all) as u64).max(1);
    json!({
        "from": (0..buckets).map(bound).collect::<Vec<_>>(),
        "to": (1..=buckets).map(bound).collect::<Vec<_>>(),
        "requests": (0..buckets).map(count).collect::<Vec<_>>(),
    })
}

fn figures(mean: f64) -> Value {
    json!({
        "mean": mean, "stddev": mean / 2.0, "min": mean / 10.0, "max": mean * 90.0, "p50": mean * 0.8, "p90": mean * 2.0, "p95": mean * 3.0,
        "p99": mean * 7.0, "p99_9": mean * 20.0, "p99_99": mean * 50.0, "p99_999": mean * 80.0,
    })
}

fn kind(requests: u64, mean: f64, buckets: usize) -> Value {
    json!({
        "requests": requests, "bytes": requests * 4096, "iops": 5e5, "bandwidth_bytes_per_s": 2.048e9, "queue_depth_mean": 32.0,
        "latency_ns": figures(mean), "slat_ns": figures(mean / 9.0), "clat_ns": figures(mean * 0.9), "device_latency_ns": figures(mean * 0.9),
        "histogram_ns": histogram(buckets, mean / 10.0, requests),
    })
}

fn breakdown(die_wait: f64) -> Value {
    json!({ "host": 1500.0, "submission": 900.0, "die_wait": die_wait, "array": 50000.0, "channel": 4000.0, "channel_wait": 700.0 })
}

fn slice(slowest: f64, requests: u64) -> Value {
    let wait = 2e6 / (slowest + 0.02);
    let mut slice = json!({
        "slowest": slowest, "requests": (requests as f64 * slowest) as u64, "covered": 1.0, "from_ns": wait, "latency_ns_mean": wait + 57100.0,
        "breakdown_ns": breakdown(wait),
    });
    if slowest < 1.0 {
        slice["blocked_ns"] = json!({
            "die": { "host_read": 0.1 * wait, "host_program": 0.1 * wait, "erase": 0.7 * wait, "collection_read": 0.1 * wait },
            "channel": { "host_read": 700.0 },
        });
        let die = |at: usize| json!({ "die": at, "channel": at / DIES, "share": 0.1 });
        slice["dies"] = (0..8).map(die).collect();
    }
    slice
}

/// Result document of a run with this many requests.
pub(crate) fn document(requests: u64) -> Value {
    let windows = 512;
    let wave = |at: usize| 1.0 + 0.3 * ((at % 37) as f64 / 37.0);
    let io_window = |at: usize| {
        json!({
            "start_ns": at as f64 * 4e7, "width_ns": 4e7, "requests": 20000.0 * wave(at), "bytes": 8e7 * wave(at), "latency_ns_mean": 64000.5 * wave(at),
            "p50_ns": 60000.25 * wave(at), "p99_ns": 900000.125 * wave(at), "queue_depth": 32.0 * wave(at),
        })
    };
    let flash_window = |at: usize| {
        json!({
            "start_ns": at as f64 * 4e7, "width_ns": 4e7, "buffer_bytes": 1e6 * wave(at), "free_blocks": 900.0 * wave(at),
            "write_amplification": 2.5 * wave(at), "channel_utilisation": 0.3 * wave(at), "die_utilisation": 0.6 * wave(at),
        })
    };
    let dies = CHANNELS * DIES;
    let busy = |at: usize| 0.4 + 0.5 * (at % 11) as f64 / 11.0;
    let slowest = |at: usize| {
        json!({
            "id": at, "flow": "job", "op": "read", "at_ns": 1e9, "latency_ns": 9e6, "offset": 4096 * at, "bytes": 4096, "breakdown_ns": breakdown(8e6),
            "blocked_ns": { "die": { "erase": 7e6 } }, "die": at, "channel": at / DIES,
        })
    };
    let tail: Vec<Value> = [1.0, 0.01, 0.001, 0.0001].map(|share| slice(share, requests / 2)).into();
    let (mut read, mut write) = (kind(requests / 2, 80000.0, 1400), kind(requests / 2, 300000.0, 1400));
    read["tail"] = tail.clone().into();
    write["tail"] = tail.into();
    json!({
        "schema": "nandscape.result/2", "system": "d16", "spec_sha256": "0", "seed": 1, "version": "0.1.0",
        "spec": {
            "description": "A drive", "sim": { "fold": true }, "host": { "submit": "1us" },
            "flash": { "geometry": { "channels": CHANNELS, "ways": DIES, "dies": 1 }, "cell": { "read": ["50us"] } },
        },
        "workload": ["fio:rw=randrw,bs=4k,iodepth=32"], "ok": true, "partial": false, "warnings": [], "simulated_ns": 2e10,
        "run": { "wall_s": 4.0, "cpu_s": 4.0, "events": requests * 7, "requests_per_cpu_s": 2.5e6, "peak_rss_bytes": 60000000 },
        "io": {
            "all": kind(requests, 190000.0, 1600), "read": read, "write": write, "lag_max_ns": 0.0, "flows": [],
            "slowest": (0..16).map(slowest).collect::<Vec<_>>(), "series": (0..windows).map(io_window).collect::<Vec<_>>(),
        },
        "flash": [{
            "name": "flash", "write_amplification": 2.5, "erases": 1000,
            "erase_count": { "min": 1, "mean": 20.0, "max": 400, "histogram": { "erases": (1..=400).collect::<Vec<_>>(), "blocks": (1..=400).rev().collect::<Vec<_>>() } },
            "utilisation": { "die": (0..dies).map(busy).collect::<Vec<_>>(), "channel": (0..CHANNELS).map(busy).collect::<Vec<_>>() },
            "dies": { "utilisation": (0..dies).map(busy).collect::<Vec<_>>(), "channel": (0..dies).map(|die| die / DIES).collect::<Vec<_>>() },
            "channels": { "utilisation": (0..CHANNELS).map(busy).collect::<Vec<_>>() },
            "series": (0..windows).map(flash_window).collect::<Vec<_>>(),
        }],
        "breakdown_ns": { "read": breakdown(20000.0), "write": breakdown(200000.0) },
        "checks": [{ "name": "issued = completed + in flight", "ok": true, "detail": "" }],
    })
}
