//! Values that parse but cannot be simulated are refused with their limit, never met by a panic.

use config::{Layers, Presets};
use machine::run::{Plan, run_alone};
use machine::systems::SYSTEMS;
use machine::{Loaded, Spec};
use proptest::prelude::*;

const PARTS: [&str; 5] = [
    "flash.buffer={ capacity = \"1MiB\", reads = true, writes = true, high = \"50%\", low = \"25%\", \
     in_flight = \"128KiB\", protected = true, eviction = \"lru\", admission = \"always\", moves = \"units\", \
     bandwidth = \"1GB/s\", latency = \"1us\" }",
    "flash.ftl.mapping={ demand = { capacity = \"4KiB\", granularity = \"entry\", cached_entry = \"8B\", \
     stored_entry = \"8B\", read = \"4KiB\" } }",
    "flash.geometry.blocks=64",
    "flash.ftl.gc.start=3",
    "flash.ftl.gc.stop=4",
];

fn load(set: &[&str]) -> Result<Loaded, String> {
    let set: Vec<String> = PARTS.iter().chain(set).map(|text| (*text).to_owned()).collect();
    Loaded::load("d16", &set).map_err(|diagnostic| diagnostic.to_string())
}

#[test]
fn what_is_beyond_a_limit_names_it() {
    for (set, said) in [
        ("flash.cell.erase=2h", "1h is the most"),
        ("flash.cell.read=[\"1us\", \"200d\"]", "1h is the most"),
        ("host.submit=61min", "1h is the most"),
        ("flash.die.scheduler.read_first.max_wait=2h", "1h is the most"),
        ("flash.buffer.bandwidth=999kB/s", "1MB/s is the least"),
        ("flash.channel.rate=1kT/s", "1MT/s is the least"),
        ("flash.ftl.gc.victim.d_choices.d=0", "allowed are 1 to"),
        ("flash.ftl.gc.victim.windowed_greedy.window=0", "allowed are 1 to"),
        ("flash.ftl.allocation.least_queued.look=0", "allowed are 1 to"),
        ("flash.buffer.eviction.cflru.window=0", "allowed are 1 to"),
        ("flash.host.nvme.arbitration.round_robin.burst=0", "allowed are 1 to"),
        ("flash.host.controller.cores=4294967295", "allowed are 1 to 65536"),
        ("flash.geometry.blocks=4294967295", "268435456 can be simulated"),
        ("flash.geometry.channels=60000", "dies in all; at most 65536"),
    ] {
        let shown = load(&[set]).map(|_| ()).expect_err(set);
        assert!(shown.contains(said), "{set}: no `{said}` in\n{shown}");
        assert!(shown.contains("--> --set"), "{set}: no place in\n{shown}");
    }
    // At its limit each is as good as any other.
    for set in ["flash.cell.erase=1h", "host.submit=60min", "flash.buffer.bandwidth=1MB/s"] {
        assert!(load(&[set]).is_ok(), "{set}");
    }
}

/// A value that looks like one of the kind that a key has, small, large or absurd.
fn value() -> impl Strategy<Value = String> {
    let unit = prop::sample::select(vec![
        "", "", "", "ps", "us", "ms", "s", "h", "d", "B", "KiB", "MiB", "GiB", "PB", "%", "B/s", "GB/s",
        "MT/s", "GT/s",
    ]);
    let number = prop_oneof![
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("18446744073709551615".to_owned()),
        (0_u32..64).prop_map(|bits| (1_u64 << bits).to_string()),
        (0_u64..300).prop_map(|n| n.to_string()),
        (0.0_f64..2.0).prop_map(|x| x.to_string()),
    ];
    let quantity = (number, unit).prop_map(|(n, unit)| format!("{n}{unit}"));
    let word = prop::sample::select(vec![
        "true", "false", "[]", "{}", "\"\"", "fifo", "page", "CWDP", "none", "nan", "\u{e9}",
    ]);
    prop_oneof![6 => quantity.clone(), 1 => word.prop_map(str::to_owned), 1 => quantity.prop_map(|q| format!("[\"{q}\"]"))]
}

/// A damaged text inherits nothing that exists.
struct NoPresets;

impl Presets for NoPresets {
    fn find(&self, _: &str) -> Option<(String, String)> {
        None
    }
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Whatever loads runs, and its checks hold.
    #[test]
    fn no_value_makes_a_run_panic(
        sets in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        // Sizes and states decide how long a run takes; what they may be is tested above.
        let is_quick = |key: &String| !key.starts_with("flash.geometry") && !key.starts_with("precondition");
        let keys: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).filter(is_quick).collect();
        let texts = sets.iter().map(|(key, value)| format!("{}={value}", key.get(&keys)));
        let mut plan = Plan::new("d16", "fio:rw=randrw,bs=6k,iodepth=8,number_ios=60,fsync=9");
        plan.set = PARTS.iter().map(|text| (*text).to_owned()).chain(texts).collect();
        plan.set.push("precondition=sequential".to_owned());
        match run_alone(&plan) {
            Ok(document) => prop_assert!(document.ok, "{:?}: {:?}", plan.set, document.checks),
            Err(fault) => prop_assert!(fault.place.is_some(), "{:?}: {fault}", plan.set),
        }
    }

    /// A shipped spec with a few bytes changed or its end cut off: a spec, or a diagnostic that names the line.
    #[test]
    fn no_damage_to_a_spec_makes_it_panic(
        system in prop::sample::select(SYSTEMS.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = system.1.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.map_or(bytes.len(), |cut| cut.index(bytes.len())));
        let text = String::from_utf8_lossy(&bytes);
        let read = Layers::from_text("damaged.toml", &text, &NoPresets).and_then(|mut layers| layers.parse::<Spec>());
        if let Err(fault) = read {
            prop_assert!(fault.to_string().contains("--> damaged.toml"), "{fault}");
        }
    }

    /// Any values of any keys: a device, or a diagnostic with a place.
    #[test]
    fn no_value_makes_a_spec_panic(
        sets in prop::collection::vec((any::<prop::sample::Index>(), value()), 1..4),
    ) {
        let keys: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
        let texts: Vec<String> = sets.iter().map(|(key, value)| format!("{}={value}", key.get(&keys))).collect();
        let set: Vec<&str> = texts.iter().map(String::as_str).collect();
        if let Err(shown) = load(&set) {
            prop_assert!(shown.starts_with("error: ") && shown.contains("-->"), "{set:?}: {shown}");
        }
    }
}
