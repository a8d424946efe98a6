//! `list`, `explain`, `params`, `schema` and the pages of the manual: everything has a name, and every name is found.

use crate::common::{TINY, nandscape};
use serde_json::Value;

fn names(topic: &str) -> Vec<String> {
    let text = nandscape(&["list", topic]).well().stdout;
    let is_name = |line: &&str| !line.is_empty() && !line.starts_with(' ') && !line.starts_with('`');
    text.lines()
        .filter(is_name)
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn everything_that_is_listed_is_explained() {
    let mut all = Vec::new();
    for topic in ["systems", "workloads", "formats", "families"] {
        let listed = names(topic);
        assert!(!listed.is_empty(), "{topic}");
        all.extend(listed);
    }
    // Policies stand one step in.
    let families = nandscape(&["list", "families"]).well().stdout;
    all.extend(
        families
            .lines()
            .filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next())
            .map(str::to_owned),
    );
    for option in ["rw", "iodepth", "direct", "verify"] {
        all.push(option.to_owned());
    }
    for name in
        ["io.read.latency_ns.p99", "latency_ns", "flash.0.erases", "die_wait", "flash.geometry", "pages"]
    {
        all.push(name.to_owned());
    }
    for name in &all {
        let text = nandscape(&["explain", name]).well().stdout;
        assert!(text.contains(name.as_str()) && text.lines().count() >= 2, "{name}: {text}");
    }
    let whole = nandscape(&["list"]).well().stdout;
    for name in names("systems").iter().chain(&names("formats")).chain(&names("workloads")) {
        assert!(whole.contains(name.as_str()), "{name}");
    }
    assert!(whole.contains("iodepth") && whole.contains("cost_benefit") && whole.contains("sequential"));
}

#[test]
fn lists_are_chosen_by_parts_of_a_key() {
    let of = |name: &str| nandscape(&["list", name]).well().stdout;
    for name in ["gc", "victim", "gc.victim", "flash.ftl.gc"] {
        assert!(of(name).contains("cost_benefit") && !of(name).contains("striped"), "{name}");
    }
    assert!(of("ftl").contains("cost_benefit") && of("ftl").contains("striped"));
    assert!(of("precondition").contains("sequential"));
    let done = nandscape(&["list", "victm"]);
    assert!(done.stderr.contains("did you mean `victim`"), "{}", done.stderr);
    let done = nandscape(&["explain", "cost_benefitt"]);
    assert!(done.stderr.contains("did you mean `cost_benefit`"), "{}", done.stderr);
}

#[test]
fn parameters_have_kind_unit_meaning_and_the_value_of_a_system() {
    let text = nandscape(&["params", "flash.geometry", "--system", "d16"]).well().stdout;
    assert!(text.contains("flash.geometry.page_size = \"4KiB\"") && text.contains("size (B, kB"), "{text}");
    assert!(text.contains("flash.geometry.channels = 8\n    integer, 1 to 65536;"), "{text}");
    let all = nandscape(&["params"]).well().stdout;
    assert!(all.contains("sim.fold") && all.contains("d_choices.d\n"), "{all}");
    let done = nandscape(&["params", "flash.geometri"]);
    assert!(done.stderr.contains("flash.geometry"), "{}", done.stderr);
}

/// The schema is of the 2020-12 draft, names `inherits`, and every key of the shipped spec is in it.
#[test]
fn the_schema_knows_the_keys_of_a_spec() {
    let schema = nandscape(&["schema"]).well().json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["properties"]["inherits"].is_object());
    assert_eq!(schema.get("required"), None);
    let geometry = &schema["$defs"]["GeometrySpec"]["properties"];
    for key in ["channels", "ways", "dies", "planes", "blocks", "pages", "page_size"] {
        assert!(geometry[key]["description"].is_string(), "{key}");
    }
}

/// `check` prints what it has read: checking that again gives the same.
#[test]
fn a_resolved_spec_resolves_to_itself() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "flash.ftl.gc.victim.d_choices.d=3", "--set", "flash.geometry.blocks=600"];
    let text = nandscape(&[&["check", "d16"][..], &set].concat()).well().stdout;
    let path = crate::common::file(folder.path(), "again.toml", &text);
    assert_eq!(nandscape(&["check", &path]).well().stdout, text);
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["flash"]["geometry"]["blocks"].as_integer(), Some(600));
    let checked = nandscape(&["check", "d16", "--workload", "fio:rw=read,bs=4k,gtod_reduce=1"]).well().stdout;
    assert!(checked.contains("\n# job: `gtod_reduce` changes nothing here"), "{checked}");
    assert!(checked.parse::<toml::Table>().is_ok(), "notes are comments");
}

/// Every key, option, format and policy that the program knows stands in a page.
#[test]
fn the_pages_have_every_name() {
    let folder = tempfile::tempdir().unwrap();
    nandscape(&["gen-docs", &folder.path().display().to_string()]).well();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let (parameters, policies) = (page("parameters.md"), page("policies.md"));
    let cell = |text: &str, name: &str| text.contains(&format!("| `{name}` |"));
    for key in nandscape(&["params"]).well().stdout.lines().filter(|line| !line.starts_with(' ')) {
        // A policy's own parameters stand with it, under their names there.
        let mut ends = key.match_indices('.').map(|(at, _)| &key[at + 1..]);
        assert!(cell(&parameters, key) || ends.any(|end| cell(&policies, end)), "{key}");
    }
    for name in names("formats").iter().chain(["rw", "direct", "verify"].map(str::to_owned).iter()) {
        assert!(cell(&parameters, name), "{name}");
    }
    let families = nandscape(&["list", "families"]).well().stdout;
    for line in families.lines().filter(|line| line.starts_with("    ")) {
        let name = line.split_whitespace().next().unwrap();
        assert!(cell(&policies, name), "{name}");
    }
    assert!(policies.contains("| `d` | integer; 10 | 1 or more |"), "the default of a parameter");
    let schema: Value = nandscape(&["schema"]).well().json();
    assert!(schema.is_object());
}

/// A program is explained with its parameters and what it does, counted, beside the paper's figures.
#[test]
fn programs_are_listed_and_explained() {
    let listed = names("programs");
    assert!(listed.iter().any(|name| name == "betw") && listed.iter().any(|name| name == "gaus"));
    let whole = nandscape(&["list"]).well().stdout;
    assert!(
        listed.iter().all(|name| whole.contains(name.as_str())) && whole.contains("`betw-back`"),
        "{whole}"
    );
    // Table II of the paper: a read ratio of 0.66 over 3 kernels.
    let text = nandscape(&["explain", "gaus:n=32"]).well().stdout;
    for part in
        ["n = 32: columns of the matrix", "read ratio", "ZnG, Table II: 0.66", "ZnG, Table II: 3", "MiB"]
    {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    // Fan1 and Fan2 for each of 31 pivots.
    let text = nandscape(&["explain", "gaus:n=32,pivots=31"]).well().stdout;
    assert!(text.lines().any(|l| l.split_whitespace().take(2).eq(["kernels", "62"])), "{text}");
    let done = nandscape(&["explain", "gaus:m=32"]);
    assert!(done.code == Some(2) && done.stderr.contains("unknown parameter `m`"), "{}", done.stderr);
    let done = nandscape(&["explain", "gauss"]);
    assert!(done.stderr.contains("did you mean `gaus`"), "{}", done.stderr);
    assert!(nandscape(&["explain", "l2_merge"]).well().stdout.contains("a stage of breakdown_ns"));
}

// What parts spend: in a report, and explained with its sources.

fn systems() -> Vec<String> {
    let text = nandscape(&["list", "systems"]).well().stdout;
    let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '`']));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_constant_of_a_shipped_system_has_a_source() {
    let mut constants = 0;
    for system in systems() {
        let text = nandscape(&["explain", "energy", &system]).well().stdout;
        assert!(!text.contains("none is known"), "{text}");
        constants += text.matches("      Source: ").count();
        assert_eq!(text.matches("      Source: ").count(), text.matches(" = ").count(), "{text}");
    }
    assert!(constants > 300, "{constants}");
}

#[test]
fn constants_are_shown_with_what_they_are_and_parts_without() {
    let text = nandscape(&["explain", "energy", "flashabacus-inter-dy"]).well().stdout;
    for part in [
        "\naccelerator.energy\n",
        "  worker.computes = 641mW\n      While it computes, stalls included.\n      Source: TI's spreadsheet",
        "  program = 19.9uJ, 111uJ, 282uJ\n",
        "\naccelerator.offload.energy\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("Without a table"), "{text}");
    let text = nandscape(&["explain", "energy", "optane"]).well().stdout;
    assert!(text.contains("\ngpu.energy\n") && text.contains("no total:\n  memory.dram.energy"), "{text}");
    let text = nandscape(&["explain", "energy", "d16"]).well().stdout;
    assert!(text.contains("No part says") && text.contains("\n  flash.energy\n"), "{text}");
    assert!(nandscape(&["explain", "energy"]).well().stdout.contains("explain energy SYSTEM"));
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    for (arguments, words) in [
        (["explain", "energy", "pm9a33"], "pm9a3"),
        (["explain", "flash", "pm9a3"], "`energy` alone is explained"),
    ] {
        let done = nandscape(&arguments);
        assert!(done.code == Some(2) && done.stderr.contains(words), "{}", done.stderr);
    }
}

#[test]
fn a_report_has_what_was_spent() {
    let run = |set: &[&str]| {
        let job = ["run", "d16", "--workload", "fio:rw=randread,bs=4k,number_ios=100"];
        let set = set.iter().flat_map(|set| ["--set", set]);
        nandscape(&job.into_iter().chain(TINY).chain(set).collect::<Vec<_>>()).well().stdout
    };
    assert!(!run(&[]).contains("energy"));
    let table = "flash.energy={ read = [\"1uJ\"], program = [\"10uJ\"], erase = \"100uJ\", transfer = \"50pJ\", die = { idle = \"0W\", busy = \"0W\" }, controller = { idle = \"2W\", busy = \"2W\" }, link = { transfer = \"0pJ\", on = \"0W\" } }";
    let text = run(&[table]);
    // 2 W and what a hundred reads of nothing add to it.
    for part in ["energy: ", "17.5 kWh in a year", " a request", "controller busy"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}
