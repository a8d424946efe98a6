//! What is wrong is told at what the user wrote, in few words: of the value, and at the option or the file that
//! broke a limit of several keys, not at the shipped spec that it was found in. Other words for things lead to
//! their names.

use crate::common::{TINY, file, nandscape, refused, run_tiny};
use config::Diagnostic;
use proptest::prelude::*;
use std::path::Path;

#[test]
fn values_are_told_for_what_they_are() {
    let set = |key: &str, said: &[&str]| {
        refused(&["check", "d16", "--set", key], said);
    };
    let channels = "an integer from 0 to 4294967295";
    for (value, what) in [
        ("1e23", "`1e23` is out of range; expected"),
        ("8.0", "`8.0` is written as a real number; write `8`; expected"),
        ("8.5", "`8.5` is not"),
        ("-8", "`-8` is out of range; expected"),
        ("many", "`many` is not"),
        ("true", "`true` is not"),
    ] {
        let done = nandscape(&["check", "d16", "--set", &format!("flash.geometry.channels={value}")]);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains(&format!("{what} {channels}")), "{}", done.stderr);
        for word in ["type", "floating", "string", "u32"] {
            assert!(!done.stderr.contains(word), "{}", done.stderr);
        }
    }
    let digits = "99999999999999999999";
    let said = format!("`{digits}` is out of range; expected {channels}");
    set(&format!("flash.geometry.channels={digits}"), &[&said]);
    let run = |job: &str, said: &[&str]| refused(&["run", "d16", "--workload", job], said);
    for depth in ["-1", "1e9", "many"] {
        let said =
            format!("iodepth={depth}: invalid value `{depth}`: expected a whole number from 1 to 4294967295");
        run(&format!("fio:rw=read,bs=4k,iodepth={depth}"), &[&said, "--> --workload"]);
    }
    run("fio:rw=read,bs=4k,iodepth=0", &["0 is out of range: expected a whole number from 1 to"]);
}

/// A negative number behind an option is its value, not an option.
#[test]
fn numbers_of_options_are_told_for_what_they_are() {
    let all = "a whole number from 0 to 18446744073709551615 is expected";
    let run = ["run", "d16", "--workload", "randread"];
    for (arguments, said) in [
        (&[&run[..], &["--seed", "-1"]].concat()[..], format!("`-1` is below zero: {all}")),
        (&[&run[..], &["--seed", "1e3"]].concat(), format!("`1e3` is not written as a whole number: {all}")),
        (&[&run[..], &["--seed", "18446744073709551616"]].concat(), format!("is out of range: {all}")),
        (&[&run[..], &["--seed=x"]].concat(), format!("`x` is not a number: {all}")),
        (
            &[&run[..], &["--queue-depth", "-1"]].concat(),
            "`-1` is below zero: a whole number from 0 to 4294967295".into(),
        ),
        (&[&run[..], &["--max-requests", "-5"]].concat(), "`-5` is below zero".into()),
        (&[&run[..], &["--warmup", "-5"]].concat(), "`-5` is negative; expected a duration".into()),
        (&["sweep", "x.toml", "--jobs", "0"], "`0` is out of range: a whole number from 1 to".into()),
        (&["reproduce", "theory", "--jobs", "-2"], "`-2` is below zero".into()),
    ] {
        let done = nandscape(arguments);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(done.stderr.contains(&said), "{arguments:?}\n{}", done.stderr);
        assert!(!done.stderr.contains("unexpected argument"), "{}", done.stderr);
    }
}

#[test]
fn other_words_lead_to_names() {
    for (word, name) in [
        ("waf", "flash.*.write_amplification"),
        ("op", "flash.ftl.over_provisioning"),
        ("qd", "iodepth: an fio option"),
        ("p95", "io.KIND.latency_ns.FIGURE (ns): 95th percentile"),
        ("luns", "flash.geometry.dies"),
    ] {
        let text = nandscape(&["explain", word]).well().stdout;
        assert!(text.contains(name), "{word}: no `{name}` in\n{text}");
    }
    refused(&["params", "op"], &["did you mean `flash.ftl.over_provisioning`"]);
    refused(&["params", "waf"], &["`waf` is `flash.0.write_amplification` of a result"]);
    refused(&["params", "qd"], &["`qd` is `iodepth` of a job"]);
    refused(&["list", "qd"], &["`qd` is `iodepth` of a job"]);
    refused(&["list", "op"], &["`op` is the key `flash.ftl.over_provisioning`"]);
    let set = |text: &str, said: &[&str]| {
        refused(&["check", "d16", "--set", text], said);
    };
    set("flash.ftl.op=7%", &["did you mean `over_provisioning`"]);
    set("op=7%", &["did you mean `flash.ftl.over_provisioning`"]);
    set("over_provisioning=7%", &["did you mean `flash.ftl.over_provisioning`"]);
    set("channels=8", &["did you mean `flash.geometry.channels`"]);
    set("qd=32", &["`qd` is `iodepth` of a job"]);
    refused(&["run", "d16", "--workload", "fio:rw=read,bs=4k,qd=8"], &["did you mean `iodepth`"]);
}

/// Columns of a sweep: another word is pointed to, and the 95th percentile is a column.
#[test]
fn columns_of_a_sweep_know_other_words() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = |more: &str| {
        let text = format!("system = \"d16\"\nworkloads = [\"fio:rw=read,bs=4k,number_ios=400\"]\n{more}");
        file(folder.path(), "sweep.toml", text)
    };
    refused(&["sweep", &sweep("metrics = [\"waf\"]\n")], &["did you mean `flash.0.write_amplification`"]);
    refused(&["sweep", &sweep("[set]\nop = [\"7%\"]\n")], &["did you mean `flash.ftl.over_provisioning`"]);
    let out = folder.path().join("out").display().to_string();
    let text = sweep("metrics = [\"io.read.latency_ns.p95\"]\n[set]\nflash.precondition = [\"none\"]\n");
    nandscape(&["sweep", &text, "--out", &out]).well();
    let table = std::fs::read_to_string(Path::new(&out).join("summary.csv")).unwrap();
    assert!(table.lines().next().unwrap().contains("io.read.latency_ns.p95"), "{table}");
}

/// The 95th percentile stands between its neighbours, and needs 200 requests.
#[test]
fn the_95th_percentile_is_in_the_result() {
    for (requests, is_there) in [(199, false), (200, true), (2000, true)] {
        let job = format!("fio:rw=randread,bs=4k,iodepth=16,number_ios={requests}");
        let latency =
            run_tiny(&["--json", "--workload", &job]).well().json()["io"]["read"]["latency_ns"].clone();
        assert_eq!(latency["p95"].is_number(), is_there, "{requests}: {latency}");
        let figure = |name: &str| latency[name].as_f64();
        if let (true, Some(p90), Some(p99)) = (is_there, figure("p90"), figure("p99")) {
            assert!((p90..=p99).contains(&figure("p95").unwrap()), "{latency}");
        }
    }
}

/// On the page it stands between the median and the 99th percentile, as the document has it.
#[test]
fn the_95th_percentile_is_on_the_page() {
    let job = ["--workload", "fio:rw=randread,bs=4k,iodepth=16,number_ios=2000"];
    let page = run_tiny(&job).well().stdout;
    let columns = |start: &str| -> Vec<&str> {
        let line = page
            .lines()
            .find(|line| line.trim_start().starts_with(start))
            .unwrap_or_else(|| panic!("{page}"));
        line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
    };
    let at = columns("IOPS").iter().position(|name| *name == "p95").expect("a column");
    // The line has its name before the columns.
    let shown = columns("read")[at + 1];
    let document = run_tiny(&[&job[..], &["--json"]].concat()).well().json();
    let us = document["io"]["read"]["latency_ns"]["p95"].as_f64().unwrap() / 1e3;
    assert_eq!(shown, format!("{us:.2} us"));
    let names = columns("IOPS");
    assert_eq!(names[at - 1..=at + 1], ["p50", "p95", "p99"]);
}

/// A drive at the end of its life says so, with the group and what had been written until then.
#[test]
fn a_worn_out_drive_says_so() {
    let blocks = "flash.bad_blocks={factory=\"0%\",grown={endurance=5,shape=4.0}}";
    let job = "fio:rw=randwrite,bs=4k,iodepth=8,size=100%,norandommap=1,loops=20";
    let done = run_tiny(&["--json", "--set", blocks, "--workload", job]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let document = done.json();
    let failed = document["checks"].as_array().unwrap().iter().find(|check| check["ok"] == false).unwrap();
    let detail = failed["detail"].as_str().unwrap();
    let (worn, errors) = detail.split_once("; ").unwrap();
    assert!(
        worn.starts_with("no good blocks are left in group ") && worn.ends_with(" MB written"),
        "{detail}"
    );
    assert!(
        document["warnings"].to_string().contains(&format!("the drive is worn out: {worn}")),
        "{document}"
    );
    // What was written is what did not fail, but for requests under way: 4 KiB each, one decimal.
    let errors: f64 = errors.split_whitespace().next().unwrap().parse().unwrap();
    let requests = document["io"]["write"]["requests"].as_f64().unwrap();
    let said: f64 = worn.split_whitespace().rev().nth(2).unwrap().parse().unwrap();
    let counted = (requests - errors) * 4096.0 / 1e6;
    assert!((said - counted).abs() < 0.2, "{said} MB said, {counted} MB did not fail");
    // Refused writes are not written: counted apart.
    let flash = &document["flash"][0];
    let count = |figure: &str| flash[figure].as_f64().unwrap();
    assert_eq!(count("failed_write_bytes"), errors * 4096.0);
    let programs: f64 =
        ["host_programs", "gc_programs", "mapping_programs", "wear_programs"].into_iter().map(count).sum();
    let (waf, expected) = (count("write_amplification"), programs / (requests - errors));
    assert!(waf >= 1.0 && (waf / expected - 1.0).abs() < 1e-9, "{waf}, not {expected}");
    let page = run_tiny(&["--set", blocks, "--workload", job]).stdout;
    assert!(page.contains("FAILED: no request failed: no good blocks are left in group "), "{page}");
}

/// A text of many bytes, with what ends quotes.
fn long() -> impl Strategy<Value = String> {
    (
        proptest::sample::select(vec!["7", "x", "x ", "é", "`", "\"", "x`", "\u{1f600}", "a.", "a,"]),
        3_000..20_000_usize,
    )
        .prop_map(|(part, bytes)| part.repeat(bytes / part.len()))
}

/// Diagnostics of a long input quote little of it: no run of more than 200 bytes.
fn quotes_little(arguments: &[&str]) {
    let done = nandscape(arguments);
    assert_ne!(done.code, Some(0));
    assert!(done.stderr.len() < 3_000, "{} bytes: {}", done.stderr.len(), &done.stderr[..1_000]);
    // A line of an input is shown behind its gutter.
    let shown = done.stderr.lines().filter_map(|line| line.split_once(" | "));
    for (_, line) in shown.filter(|(_, line)| !line.trim_start().starts_with('^')) {
        assert!(line.len() <= 200, "{} bytes: {line}", line.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn long_inputs_are_quoted_short(text in long()) {
        let folder = tempfile::tempdir().unwrap();
        let run = |job: &str| quotes_little(&[&["run", "d16", "--workload", job][..], &TINY].concat());
        quotes_little(&["check", "d16", "--set", &format!("flash.geometry.channels={text}")]);
        quotes_little(&["check", "d16", "--set", &format!("{text}=1")]);
        quotes_little(&["check", &text]);
        quotes_little(&["explain", &text]);
        quotes_little(&["params", &text]);
        quotes_little(&["list", &text]);
        quotes_little(&["run", "d16", "--workload", "randread", "--precondition", &text]);
        run(&format!("fio:rw={text}"));
        run(&format!("fio:rw=read,bs=4k,{text}=3"));
        run(&format!("tatp:size={text}"));
        run(&text);
        let system = file(folder.path(), "long.toml", format!("inherits = \"d16\"\nflash.cell.erase = '{text}'\n"));
        quotes_little(&["check", &system]);
        let trace = file(folder.path(), "long.trace", format!("{}90 0 {text} 8 1\n", "0 0 8 8 1\n".repeat(50)));
        run(&trace);
        let job = file(folder.path(), "long.fio", format!("[job]\nrw=read\nbs={text}\n"));
        run(&job);
    }
}

/// Override from the command line, and in a file of one's own.
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
    let systems: Vec<&str> = spec::systems::SYSTEMS.iter().map(|(name, _)| *name).collect();
    proptest::sample::select(systems).prop_flat_map(|system| {
        let set = machine::load(system, &[]).map(|loaded| loaded.to_toml()).unwrap_or_default();
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
    let fault = machine::load(&mine, &[]).err().expect("a link is a name");
    assert!(fault.to_string().contains("`l2.memory` must be the name of one part"), "{fault}");
    stands_in(&fault, &mine);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Shipped systems are right, so what is wrong with one and an override is the override.
    #[test]
    fn every_fault_of_an_override_is_told_at_it((system, set) in overrides()) {
        if let Err(fault) = machine::load(system, &set) {
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
        if let Err(fault) = machine::load(&mine, &[]) {
            stands_in(&fault, &mine);
        }
    }
}
