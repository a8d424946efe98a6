//! Limits stand at the fields of a specification's types; the schema has them, and values beyond them are told.

use crate::demo::Spec;
use config::schema::{self, beyond};

const GOOD: &str = "\
flash = { read = '65us', geometry = { channels = 8, ways = 4, page = '16KiB' } }
link.a.bandwidth = '1GB/s'
tenant = [{ name = 'first' }]
";

/// What is told of the good values with one changed.
fn told(change: &str) -> Vec<(String, String)> {
    let mut table: toml::Table = GOOD.parse().unwrap();
    let (path, value) = change.split_once('=').unwrap_or(("threads", "1"));
    let names: Vec<&str> = path.split('.').collect();
    let (last, front) = names.split_last().unwrap();
    let mut at = &mut table;
    for name in front {
        at = at.entry(*name).or_insert(toml::Table::new().into()).as_table_mut().unwrap();
    }
    let value: toml::Table = format!("it = {value}").parse().unwrap();
    at.insert((*last).to_owned(), value["it"].clone());
    let faults = beyond(&schema::of::<Spec>(), &table);
    faults.into_iter().map(|fault| (fault.key, fault.what)).collect()
}

#[test]
fn values_within_their_limits_are_left_alone() {
    for good in ["", "flash.geometry.channels=64", "flash.read='1h'", "flash.geometry.page='1MiB'"] {
        assert_eq!(told(good), [], "{good}");
    }
    // What is of another kind is another's to refuse.
    for other in ["flash.geometry.channels='many'", "flash.read=7", "flash.read='7GB/s'", "flash=1"] {
        assert_eq!(told(other), [], "{other}");
    }
}

#[test]
fn values_beyond_their_limits_are_told_at_their_key() {
    for (change, what) in [
        ("flash.geometry.channels=65", "65 is out of range; allowed are 1 to 64"),
        ("flash.geometry.ways=-1", "-1 is out of range; allowed are 1 to 64"),
        ("flash.geometry.ways=0", "`ways` is 0, but must be at least 1; allowed are 1 to 64"),
        ("flash.geometry.page='3KiB'", "3KiB is not a power of two"),
        ("flash.geometry.page='2MiB'", "2MiB is too large to simulate; 1MiB is the most"),
        ("flash.geometry.page='256B'", "256B is too small; 512B is the least"),
        ("flash.geometry.page='0B'", "`page` is 0, but must be at least 512B"),
        ("flash.read='2h'", "7200s is too long to simulate: the clock ends at 213 days; 1h is the most"),
        ("link.a.bandwidth='1kB/s'", "1kB/s is too slow to simulate; 1MB/s is the least"),
        ("flash.gc.victim.d_choices.d=0", "`d` is 0, but must be at least 1; allowed are 1 to 4294967295"),
    ] {
        let (key, _) = change.split_once('=').unwrap();
        assert_eq!(told(change), [(key.to_owned(), what.to_owned())], "{change}");
    }
}

/// A product is told at its table, and not when one of its numbers is wrong by itself.
#[test]
fn products_are_told_at_their_table() {
    let said = "320 dies in all; at most 256 can be simulated".to_owned();
    assert_eq!(told("flash.geometry.ways=40"), [("flash.geometry".to_owned(), said)]);
    assert_eq!(told("flash.geometry.ways=32"), []);
    assert_eq!(told("flash.geometry.ways=70").len(), 1);
}

#[test]
fn the_schema_has_the_limits() {
    let geometry = &schema::of::<Spec>()["$defs"]["Geometry"];
    let channels = &geometry["properties"]["channels"];
    assert_eq!((channels["minimum"].as_u64(), channels["maximum"].as_u64()), (Some(1), Some(64)));
    assert_eq!(geometry["properties"]["page"]["x-maximum"], "1MiB");
    assert_eq!(geometry["x-products"][0]["maximum"], 256);
}
