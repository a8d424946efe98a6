//! What is wrong is told at what the user wrote: a limit that several keys share points at the option or the file that broke
//! it, not at the shipped spec that it was found in.

use crate::common::{file, nandscape, refused};
use config::Diagnostic;
use machine::Loaded;
use proptest::prelude::*;
use std::path::Path;

/// The same override from the command line and in a file of one's own.
fn told_at(folder: &Path, system: &str, key: &str, value: &str, said: &[&str]) {
    let place = format!("(key `{key}`)");
    let said = [said, &[&place]].concat();
    refused(&["check", system, "--set", &format!("{key}={value}")], &[&said[..], &["--> --set"]].concat());
    let toml = if value.parse::<toml::Value>().is_ok() { value.to_owned() } else { format!("{value:?}") };
    let text = format!("inherits = \"{system}\"\n\n{key} = {toml}\n");
    let mine = file(folder, "mine.toml", text);
    refused(&["check", &mine], &[&said[..], &["mine.toml:3:"]].concat());
}

#[test]
fn a_limit_between_keys_is_told_at_the_one_that_broke_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |system, key, value, said: &[&str]| told_at(folder.path(), system, key, value, said);
    let start = "beside `flash.ftl.gc.start` at systems/d16/spec.toml:54:9: start = 25";
    at("d16", "flash.ftl.gc.stop", "10", &["hard 2 <= start 25 < stop 10", start]);
    at("d16", "flash.ftl.gc.start", "30", &["hard 2 <= start 30 < stop 26"]);
    at("d16", "flash.geometry.page_size", "5KiB", &["a page of 5120 B", "beside `flash.ftl.map_unit` at "]);
    at("d16", "flash.geometry.blocks", "10", &["beside `flash.ftl.over_provisioning` at systems/d16/"]);
    at("astriflash", "memory.dram_cache.ways", "3", &["beside `memory.dram_cache.dram.banks.row` at "]);
    // A product of numbers, each of which could be: the one that is too large.
    at("d16", "flash.geometry.ways", "100000", &["out of range"]);
    at("d16", "flash.geometry.blocks", "200000000", &["blocks in all", "beside `flash.geometry` at "]);
}

#[test]
fn of_several_values_the_one_that_broke_it_is_told() {
    let set = |own: &[&str], said: &[&str]| {
        let mut arguments = vec!["check", "d16"];
        own.iter().for_each(|text| arguments.extend(["--set", *text]));
        refused(&arguments, said);
    };
    let (blocks, stop) = ("flash.geometry.blocks=200000000", "flash.ftl.gc.stop=10");
    set(&[blocks, "flash.geometry.channels=4"], &["--> --set  (key `flash.geometry.blocks`)", blocks]);
    set(&["sim.shadow=true", stop, "flash.cell.erase=4ms"], &["(key `flash.ftl.gc.stop`)", stop]);
    // The option is on top of the file, although the file names the key in which the fault was found.
    let folder = tempfile::tempdir().unwrap();
    let mine = file(folder.path(), "mine.toml", "inherits = \"d16\"\nflash.ftl.gc.start = 24\n");
    refused(&["check", &mine, "--set", stop], &["--> --set", "(key `flash.ftl.gc.stop`)", "mine.toml:2:22"]);
}

/// A value that is right by itself is not blamed for one that is not.
#[test]
fn a_fault_that_is_nobodys_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "base.toml", "inherits = \"d16\"\nflash.ftl.gc.stop = 10\n");
    let mine = file(folder.path(), "mine.toml", "inherits = \"base.toml\"\nsim.shadow = true\n");
    refused(&["check", &mine], &["base.toml:2:21", "(key `flash.ftl.gc.stop`)"]);
}

#[test]
fn options_and_workloads_are_named_as_they_were_written() {
    let run = |more: &[&str], said: &[&str]| {
        refused(&[&["run"], more].concat(), said);
    };
    run(&["d16", "--workload", "randread", "--start", "soon"], &["--> --start", "soon"]);
    run(&["d16", "--workload", "randread", "--time-scale", "-1"], &["--> --time-scale"]);
    run(&["astriflash", "--workload", "tatp:size=100TiB"], &["--> --workload", "tatp:size=100TiB"]);
    // A program that does not fit into a preset's flash: what does not fit is the program.
    let said = ["--> --workload", "swap:size=60TiB", "beside `"];
    run(&["astriflash", "--workload", "swap:size=60TiB"], &said);
    refused(&["explain", "tatp:size=100TiB"], &["--> explain", "tatp:size=100TiB"]);
    // A steady state needs spare space that this device does not have.
    let state = ["d16", "--workload", "randread", "--precondition", "steady:tolerance=0%"];
    run(&state, &["--> --precondition", "steady:tolerance=0%"]);
}

/// A sweep's own values, in its own file.
#[test]
fn a_sweep_is_told_its_own_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = "system = \"d16\"\nworkloads = [\"randread\"]\n[set]\nflash.ftl.gc.stop = [26, 10]\n";
    let sweep = file(folder.path(), "sweep.toml", text);
    refused(&["sweep", &sweep], &["sweep.toml:4:26", "hard 2 <= start 25 < stop 10"]);
    assert!(!folder.path().join("out").exists());
    let text = "system = \"d16\"\nworkloads = [\"randread\"]\n[trace]\nstart = \"soon\"\n";
    let sweep = file(folder.path(), "trace.toml", text);
    refused(&["sweep", &sweep], &["trace.toml:3:", "`soon` does not begin with a number"]);
    nandscape(&["check", "d16"]).well();
}

/// Values at and beyond the ends of what a key can mean.
fn wild(kind: &str) -> BoxedStrategy<String> {
    let numbers = ["0", "1", "2", "3", "5", "7", "12", "33", "64", "100", "1000", "4095", "65535", "1000000"];
    let number = proptest::sample::select(numbers.to_vec());
    let units: &[&str] = match kind.trim_start_matches("array of ") {
        "duration" => &["ps", "ns", "us", "ms", "s"],
        "size" => &["B", "KiB", "MiB", "GiB", "TiB"],
        "bandwidth" => &["MB/s", "GB/s"],
        "transfer rate" => &["MT/s"],
        "frequency" => &["MHz", "GHz"],
        "share" => &["%"],
        _ => &[""],
    };
    let unit = proptest::sample::select(units.to_vec());
    let value = (number, unit).prop_map(|(number, unit)| format!("{number}{unit}"));
    match kind.strip_prefix("one of ") {
        Some(names) => {
            let names: Vec<String> = names.split(", ").map(str::to_owned).collect();
            prop_oneof![1 => value, 3 => proptest::sample::select(names)].boxed()
        }
        None if kind == "true or false" => "(true|false)".boxed(),
        None => value.boxed(),
    }
}

/// One or two keys of a shipped system, each with a value.
fn overrides() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    let systems: Vec<&str> = machine::systems::SYSTEMS.iter().map(|(name, _)| *name).collect();
    proptest::sample::select(systems).prop_flat_map(|system| {
        let set = Loaded::load(system, &[]).map(|loaded| loaded.to_toml()).unwrap_or_default();
        let set: toml::Table = set.parse().unwrap();
        let is_set = |key: &str| {
            let mut path = key.split('.');
            let first = path.next().and_then(|name| set.get(name));
            path.try_fold(first, |at, name| Some(at?.get(name))).flatten().is_some()
        };
        let keys = machine::catalogue::params().into_iter().filter(|param| is_set(&param.key));
        let assignment = proptest::sample::select(keys.collect::<Vec<_>>())
            .prop_flat_map(|param| wild(&param.kind).prop_map(move |value| format!("{}={value}", param.key)));
        (Just(system), proptest::collection::vec(assignment, 1..3))
    })
}

/// Every diagnostic of it stands in the user's text.
fn stands_in(fault: &Diagnostic, source: &str) {
    for one in std::iter::once(fault).chain(&fault.also) {
        let place = one.place.as_ref().unwrap_or_else(|| panic!("no place: {one}"));
        assert!(place.source == source, "{one}");
    }
}

/// A part with a link that cannot be is wrong, and not absent: nothing of a file that it comes from is missing.
#[test]
fn a_part_that_is_wrong_is_not_told_as_absent() {
    let folder = tempfile::tempdir().unwrap();
    let mine = file(folder.path(), "mine.toml", "inherits = \"zng-gddr\"\nl2.memory = 0\n");
    let fault = Loaded::load(&mine, &[]).err().expect("a link is a name");
    assert!(fault.to_string().contains("`l2.memory` is the name of one part"), "{fault}");
    stands_in(&fault, &mine);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Shipped systems are right, so what is wrong with one and an override is the override.
    #[test]
    fn every_fault_of_an_override_is_told_at_it((system, set) in overrides()) {
        if let Err(fault) = Loaded::load(system, &set) {
            stands_in(&fault, "--set");
        }
    }

    #[test]
    fn every_fault_of_a_file_is_told_at_it((system, set) in overrides()) {
        let folder = tempfile::tempdir().unwrap();
        let lines = set.iter().map(|text| {
            let (key, value) = text.split_once('=').unwrap();
            let toml = if value.parse::<toml::Value>().is_ok() { value.to_owned() } else { format!("{value:?}") };
            format!("{key} = {toml}\n")
        });
        let text = format!("inherits = \"{system}\"\n{}", lines.collect::<String>());
        let mine = file(folder.path(), "mine.toml", text);
        if let Err(fault) = Loaded::load(&mine, &[]) {
            stands_in(&fault, &mine);
        }
    }
}
