//! The program says of itself: `list`, `explain`, `params`, `schema`, the pages of the manual, and packages with
//! completions, pages for `man` and schemas. Everything has a name, and every name is found.

use crate::common::{nandscape, refused, run_tiny};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    assert!(checked.contains("\n# job: `gtod_reduce` has no effect here"), "{checked}");
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// Paths of a page: texts between backquotes that have a slash.
fn paths(text: &str) -> Vec<&str> {
    let is_plain = |t: &&str| t.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    text.split('`').skip(1).step_by(2).filter(|t| t.contains('/') && is_plain(t)).collect()
}

/// Paths of the architecture stand below the root, below a floor of `crates/`.
#[test]
fn every_path_of_a_page_exists() {
    // Names that stand for another, data that lies beside a checkout, and folders of the family just named.
    const NO_PATHS: [&str; 7] = [
        "systems/NAME/",
        "papers/NAME/expected.toml",
        "tests/golden/NAME.toml",
        "shared/data",
        "arbiter/",
        "admit/",
        "ahead/",
    ];
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = page(name);
        let found = paths(&text);
        for path in found.iter().filter(|path| !NO_PATHS.contains(path)) {
            let places = [
                "",
                "crates/ground",
                "crates/work",
                "crates/parts",
                "crates/machine",
                "crates/studies",
                "crates/front",
            ];
            assert!(
                places.iter().any(|p| root().join(p).join(path).exists()),
                "{name}: `{path}` is not there"
            );
        }
    }
    assert!(paths(&page("ARCHITECTURE.md")).len() > 30);
}

/// The commands of the tour are commands; the first system of the page is one.
#[test]
fn every_command_of_the_tour_is_known_and_every_system_named() {
    let text = page("docs/tour.md");
    let commands: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("nandscape ")?.split_whitespace().next()).collect();
    assert!(commands.len() >= 10);
    for command in commands {
        let known =
            std::process::Command::new(env!("CARGO_BIN_EXE_nandscape")).args([command, "--help"]).output();
        assert!(known.is_ok_and(|output| output.status.success()), "{command}");
    }
    let readme = page("README.md");
    for (system, _) in spec::systems::SYSTEMS {
        assert!(readme.contains(&format!("`{system}`")), "README.md does not name {system}");
    }
}

#[test]
fn completions_ask_the_program_itself() {
    let script = nandscape(&["completions", "bash"]).well().stdout;
    assert!(script.contains("NANDSCAPE_COMPLETE"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    let path = crate::common::file(folder.path(), "nandscape.bash", script);
    assert!(Command::new("bash").args(["-n", &path]).status().expect("a shell").success());
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(nandscape(&["completions", shell]).well().stdout.contains("NANDSCAPE_COMPLETE"), "{shell}");
    }
    crate::common::refused(&["completions", "basj"], &["the shell `basj`", "did you mean `bash`"]);
    let candidates = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
        command.env("NANDSCAPE_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).args(["--", "nandscape"]).args(words);
        String::from_utf8(command.output().expect("it starts").stdout).expect("text")
    };
    for (words, expected) in [
        (&["run", "d1"][..], "d16"),
        (&["run", "d16", "--workload", "randr"], "randread"),
        (&["run", "d16", "--set", "flash.ftl.gc.vic"], "flash.ftl.gc.victim="),
        (&["sensitivity", "d16", "--metric", "io.read.latency_ns.p99_99"], "io.read.latency_ns.p99_99"),
        (&["explain", "die_w"], "die_wait"),
        (&["reproduce", "flashab"], "flashabacus"),
    ] {
        let found = candidates(words);
        assert!(found.lines().any(|line| line.trim() == expected), "{words:?}: {found}");
    }
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    nandscape(&["man", &path]).well();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(page("nandscape.1").contains("explain\\-run"));
    assert!(page("nandscape-run.1").contains("\\-\\-timeline\\-show"));
    assert!(page("nandscape-trace-inspect.1").contains("inspect"));
    refused(&["man", "/nowhere/at/all"], &["/nowhere/at/all"]);
}

#[test]
fn the_schema_of_a_result_knows_every_part_of_one() {
    let schema = nandscape(&["schema", "result"]).well().json();
    let job = "fio:rw=randread,bs=4k,number_ios=100";
    let document = run_tiny(&["--workload", job, "--json"]).well().json();
    for part in document.as_object().unwrap().keys() {
        assert!(schema["properties"][part].is_object(), "{part}");
    }
    for part in schema["required"].as_array().unwrap() {
        assert!(document.get(part.as_str().unwrap()).is_some(), "{part}");
    }
}
