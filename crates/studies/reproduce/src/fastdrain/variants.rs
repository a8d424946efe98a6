//! The paper's figures under other assumptions than those of its rows: sweeps, which do not count.

use super::super::expected::Figure;
use super::super::row::Row;
use super::super::study::Entry;
use super::super::{Effort, Reading};
use super::{Load, Suite, rows};

/// An assumption.
struct Variant {
    /// What its rows' names begin with, behind the paper's.
    name: &'static str,
    suite: fn(Suite) -> Suite,
}

/// The falls of four systems, which every variant shows.
const FALLS: &[&str] = &["p99.fd_buf", "p99.fd_ftl", "p99.fd", "p99.oracle"];

fn texts(set: &[&str]) -> Vec<String> {
    set.iter().map(|text| (*text).to_owned()).collect()
}

/// Whether a system tells foreground from background.
fn has_two_speeds(system: &str) -> bool {
    !matches!(system, "fastdrain-vanilla" | "fastdrain-oracle")
}

/// So much on its way at once; Vanilla makes room for as much.
fn way(system: &str, mebibytes: u32) -> Vec<String> {
    let mut set = vec![format!("flash.buffer.in_flight={mebibytes}MiB")];
    if system == "fastdrain-vanilla" {
        set.push(format!("flash.buffer.low={}%", 100.0 * (1.0 - f64::from(mebibytes) / 512.0)));
    }
    set
}

/// Vanilla begins to drain before it is full.
fn early(system: &str, percent: u32) -> Vec<String> {
    let from = [format!("flash.buffer.high={percent}%"), format!("flash.buffer.low={percent}%")];
    if system == "fastdrain-vanilla" { from.to_vec() } else { Vec::new() }
}

fn window(system: &str, window: &str) -> Vec<String> {
    let set = format!("flash.buffer.destage={{ two_speed = {{ window = \"{window}\" }} }}");
    if has_two_speeds(system) { vec![set] } else { Vec::new() }
}

fn open(system: &str, open: u32) -> Vec<String> {
    let set = format!("flash.ftl.pages={{ by_type = {{ open = {open} }} }}");
    if matches!(system, "fastdrain" | "fastdrain-ftl") { vec![set] } else { Vec::new() }
}

/// What had been decided before the first figures were seen, as far as it was changed after.
fn first(system: &str) -> Vec<String> {
    let mut set = texts(&["flash.buffer.in_flight=4MiB", "host.linux.block.max_sectors=1.25MiB"]);
    if system == "fastdrain-vanilla" {
        set.push("flash.buffer.low=99.609375%".into());
    }
    set
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "first",
        suite: |suite| Suite { load: Load::Open(0.5, 8), durable: false, set: first, ..suite },
    },
    Variant { name: "load.eight_cores", suite: |suite| Suite { load: Load::Open(0.5, 8), ..suite } },
    Variant { name: "load.quarter", suite: |suite| Suite { load: Load::Open(0.25, 1), ..suite } },
    Variant { name: "closed.1", suite: |suite| Suite { load: Load::Closed(1), ..suite } },
    Variant { name: "closed.32", suite: |suite| Suite { load: Load::Closed(32), ..suite } },
    Variant { name: "uploads.in_memory", suite: |suite| Suite { durable: false, ..suite } },
    Variant { name: "ungzip.1", suite: |suite| Suite { processes: 1, ..suite } },
    Variant { name: "ungzip.2", suite: |suite| Suite { processes: 2, ..suite } },
    Variant { name: "ungzip.4", suite: |suite| Suite { processes: 4, ..suite } },
    Variant { name: "ungzip.8", suite: |suite| Suite { processes: 8, ..suite } },
    Variant { name: "ungzip.150MB", suite: |suite| Suite { ungzip: ",rate=150MB/s".into(), ..suite } },
    Variant { name: "ungzip.200MB", suite: |suite| Suite { ungzip: ",rate=200MB/s".into(), ..suite } },
    Variant { name: "way.2MiB", suite: |suite| Suite { set: |system| way(system, 2), ..suite } },
    Variant { name: "way.4MiB", suite: |suite| Suite { set: |system| way(system, 4), ..suite } },
    Variant { name: "way.64MiB", suite: |suite| Suite { set: |system| way(system, 64), ..suite } },
    Variant { name: "vanilla.50", suite: |suite| Suite { set: |system| early(system, 50), ..suite } },
    Variant { name: "vanilla.80", suite: |suite| Suite { set: |system| early(system, 80), ..suite } },
    Variant { name: "vanilla.95", suite: |suite| Suite { set: |system| early(system, 95), ..suite } },
    Variant {
        name: "ratios.low",
        suite: |suite| Suite {
            set: |_| {
                texts(&[
                    "host.linux.writeback.dirty_background_ratio=3%",
                    "host.linux.writeback.dirty_ratio=5%",
                ])
            },
            ..suite
        },
    },
    Variant {
        name: "memory.2GiB",
        suite: |suite| Suite { set: |_| texts(&["host.linux.memory=2GiB"]), ..suite },
    },
    Variant {
        name: "memory.3.5GiB",
        suite: |suite| Suite { set: |_| texts(&["host.linux.memory=3584MiB"]), ..suite },
    },
    Variant {
        name: "reads_wait",
        suite: |suite| Suite { set: |_| texts(&["flash.buffer.full_reads=wait"]), ..suite },
    },
    Variant {
        name: "reads_first",
        suite: |suite| Suite {
            set: |_| texts(&["flash.die.scheduler={ read_first = { max_wait = \"20ms\" } }"]),
            ..suite
        },
    },
    Variant {
        name: "wbt",
        suite: |suite| Suite { set: |_| texts(&["host.linux.block.wbt_lat=2ms"]), ..suite },
    },
    Variant { name: "idle.1ms", suite: |suite| Suite { set: |system| window(system, "1ms"), ..suite } },
    Variant { name: "idle.10ms", suite: |suite| Suite { set: |system| window(system, "10ms"), ..suite } },
    Variant { name: "open.4", suite: |suite| Suite { set: |system| open(system, 4), ..suite } },
    Variant { name: "open.16", suite: |suite| Suite { set: |system| open(system, 16), ..suite } },
    Variant {
        name: "delalloc.off",
        suite: |suite| Suite { set: |_| texts(&["host.linux.fs={ ext4 = { delalloc = false } }"]), ..suite },
    },
];

/// The rows that all variants have of these figures, with one seed each; they are there with everything.
pub(super) fn entries(figures: &[Figure], effort: Effort, reading: &Reading) -> Vec<Entry> {
    let run = |_: &&Variant| effort == Effort::Whole;
    VARIANTS.iter().filter(run).flat_map(|variant| of(variant, figures, reading)).collect()
}

fn of(variant: &Variant, figures: &[Figure], reading: &Reading) -> Vec<Entry> {
    let suite = (variant.suite)(Suite::of(Effort::Full, reading));
    let entry = |figure: &Figure| {
        let id = figure.id.strip_prefix("fastdrain.")?;
        let entry = FALLS.contains(&id).then(|| rows::entry(figure, &suite))??;
        Some(entry.changed(format!("fastdrain.{}.{id}", variant.name), Row::swept))
    };
    figures.iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::spec::Loaded;

    #[test]
    fn every_variant_can_be_built() {
        for variant in VARIANTS {
            let suite = (variant.suite)(Suite::of(Effort::Full, &Reading::default()));
            for system in
                ["fastdrain-vanilla", "fastdrain-buf", "fastdrain-ftl", "fastdrain", "fastdrain-oracle"]
            {
                let loaded = Loaded::load(system, &(suite.set)(system));
                assert!(loaded.is_ok(), "{} on {system}: {:?}", variant.name, loaded.err());
            }
        }
    }
}
