//! Results read again: `report` and `reproduce --html` draw them, `diff` says what differs between two, and both a
//! report and `explain energy` say what parts spend.

use crate::common::{TINY, file, nandscape, refused, run_tiny};
use serde_json::Value;
use std::path::Path;

fn page(results: &[&str], folder: &Path) -> String {
    let out = folder.join("page.html").display().to_string();
    let mut arguments = vec!["report"];
    arguments.extend(results);
    arguments.extend(["-o", &out]);
    let done = nandscape(&arguments).well();
    assert_eq!(done.stdout, "");
    std::fs::read_to_string(out).unwrap()
}

fn runs(folder: &Path) -> [String; 2] {
    let [a, b] = ["a", "b"].map(|name| folder.join(name).display().to_string());
    let job = "fio:rw=randrw,bs=4k,iodepth=4,number_ios=500";
    run_tiny(&["--workload", job, "--out", &a]).well();
    run_tiny(&["--workload", job, "--out", &b, "--set", "flash.cell.program=[\"1200us\"]"]).well();
    [a, b]
}

#[test]
fn one_two_and_more_results_are_drawn_and_a_file_that_is_there_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = runs(folder.path());
    std::fs::write(folder.path().join("page.html"), "old").unwrap();
    let one = page(&[&b], folder.path());
    assert!(one.starts_with("<!doctype html>") && one.contains("Latency distribution"));
    // What was set for the run stands in the spec, and in the command that repeats it.
    assert!(one.contains("set for this run; [&quot;600us&quot;] as shipped"), "the spec");
    assert!(one.contains("--set &#39;flash.cell.program=[&quot;1.2ms&quot;]&#39;"), "the command");
    let two = page(&[&a, &format!("{b}/result.json")], folder.path());
    assert!(
        two.contains("Metrics that differ")
            && two.contains("Moved most")
            && two.contains("breakdown_ns.write.array")
    );
    let three = page(&[&a, &b, &a], folder.path());
    assert!(three.contains("<title>3 runs"), "several");
}

#[test]
fn the_command_of_a_page_gives_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let [_, b] = runs(folder.path());
    let text = page(&[&b], folder.path());
    let command = text.split("<pre class=\"command\">").nth(1).unwrap().split("</pre>").next().unwrap();
    let command = command.replace("&#39;", "'").replace("&quot;", "\"");
    // No value of it has a quote or a blank in it.
    let words: Vec<String> =
        command.split(' ').skip(1).map(|word| word.trim_matches('\'').to_owned()).collect();
    let again = nandscape(&[words, vec!["--json".to_owned()]].concat()).well().json();
    let first = std::fs::read(format!("{b}/result.json")).unwrap();
    let first: serde_json::Value = serde_json::from_slice(&first).unwrap();
    assert_eq!((&again["spec_sha256"], &again["io"]), (&first["spec_sha256"], &first["io"]));
}

#[test]
fn a_sweep_is_drawn_from_its_folder_its_table_and_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = file(
        folder.path(),
        "s.toml",
        "system = \"d16\"\nworkloads = [\"fio:rw=randread,bs=4k,iodepth=1,number_ios=50\", \"fio:rw=randread,bs=4k,iodepth=4,number_ios=90\"]\n\
         seeds = [1, 2]\nmetrics = [\"io.all.iops\", \"io.read.latency_ns.mean\"]\n[set]\nflash.geometry.channels = [2, 4]\n\
         flash.precondition = \"none\"\n",
    );
    let out = folder.path().join("out").display().to_string();
    nandscape(&["sweep", &sweep, "--out", &out]).well();
    let of_folder = page(&[&out], folder.path());
    assert!(of_folder.contains("8 runs, 2 axes, 2 metrics") && of_folder.contains("\"name\":\"iodepth\""));
    let of_table = page(&[&format!("{out}/summary.csv")], folder.path());
    let without_name = |text: &str| text.replace("/summary.csv", "");
    assert_eq!(without_name(&of_folder), without_name(&of_table));
    let rows = r#"[{"run":0,"workload":"w","seed":1,"state":"ok","x":1},{"run":1,"workload":"v","seed":1,"state":"failed","x":null,"message":"no <b>"}]"#;
    let of_list = page(&[&file(folder.path(), "rows.json", rows)], folder.path());
    assert!(of_list.contains("no &lt;b&gt;"), "what failed is told");
}

#[test]
fn rows_are_drawn_with_their_commands() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("rows.html");
    let path = out.display().to_string();
    let done = nandscape(&["reproduce", "theory", "--only", "latency", "--html", &path, "--json"]).well();
    let text = std::fs::read_to_string(&out).unwrap();
    let rows = done.json();
    for row in rows.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        assert!(text.contains(&format!("nandscape reproduce theory --only {id}")), "{id}");
    }
    // The rows that were printed are drawn as well.
    let saved = file(folder.path(), "theory.json", &done.stdout);
    assert!(page(&[&saved], folder.path()).contains("nandscape reproduce theory --only latency"));
    refused(&["reproduce", "theory", "--html", "no/where/a.html"], &["no/where/a.html", "does not exist"]);
}

#[test]
fn what_cannot_be_drawn_is_refused_and_nothing_written() {
    let folder = tempfile::tempdir().unwrap();
    let [a, _] = runs(folder.path());
    let out = folder.path().join("none.html").display().to_string();
    let path = |name: &str, text: &str| file(folder.path(), name, text);
    let empty = folder.path().join("empty");
    std::fs::create_dir_all(empty.join("runs")).unwrap();
    let cases = [
        (path("a.json", "{"), "is not JSON"),
        (path("b.json", "{}"), "is not a result document"),
        (path("c.json", "{\"schema\":\"nandscape.result/3\"}"), "is newer than what this program reads"),
        (path("d.json", "[1]"), "has no column `run`"),
        (path("e.csv", "a,b\n1,2\n"), "has no column `run`"),
        (path("f.csv", "run,state\n"), "no rows"),
        (path("g.csv", "run,state\n1\n"), "is not a CSV table"),
        (empty.display().to_string(), "its sweep has not finished"),
        (folder.path().join("nothing").display().to_string(), "cannot read"),
    ];
    for (path, said) in &cases {
        refused(&["report", path, "-o", &out], &[said]);
    }
    let table = path("h.csv", "run,state,x\n0,ok,1\n");
    refused(&["report", &a, &table, "-o", &out], &["is a sweep, which cannot be drawn with other results"]);
    refused(&["report", &a, "-o", "no/where/a.html"], &["no/where/a.html"]);
    assert!(!Path::new(&out).exists());
}

#[test]
fn differences_of_spec_and_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
    let job = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=500";
    run_tiny(&["--workload", job, "--out", &a]).well();
    run_tiny(&["--workload", job, "--out", &b, "--set", "flash.cell.program=[\"1200us\"]"]).well();
    let same = nandscape(&["diff", "--json", &a, &a]).well().json();
    assert_eq!((&same["spec"], &same["metrics"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    // A folder is its result.json.
    let diff = nandscape(&["diff", "--json", &a, &format!("{b}/result.json")]).well().json();
    let spec = diff["spec"].as_array().unwrap();
    assert_eq!(spec.len(), 1, "{spec:?}");
    assert_eq!(spec[0]["key"], "flash.cell.program.0");
    assert_eq!((&spec[0]["a"], &spec[0]["b"]), (&"600us".into(), &"1.2ms".into()));
    let metrics = diff["metrics"].as_array().unwrap();
    let of = |key: &str| metrics.iter().find(|m| m["key"] == key);
    let mean = of("breakdown_ns.write.array").expect("programs take longer");
    assert_eq!(
        (&mean["a"], &mean["b"], &mean["relative"]),
        (&600_000.0.into(), &1_200_000.0.into(), &1.0.into())
    );
    let iops = of("io.all.iops").expect("fewer requests a second");
    let [x, y] = ["a", "b"].map(|side| iops[side].as_f64().unwrap());
    assert!((iops["relative"].as_f64().unwrap() - (y - x) / x).abs() < 1e-12 && y < x);
    // Of the dies and channels the mean.
    let result = |side: &str| {
        let text = std::fs::read(format!("{side}/result.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["flash"][0]["utilisation"]["die"].clone()
    };
    let dies: Vec<f64> = result(&a).as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let die = of("flash.0.utilisation.die.mean").expect("dies are busy for longer");
    assert_eq!((dies.len(), die["a"].as_f64()), (32, Some(dies.iter().sum::<f64>() / 32.0)));
    assert!(!metrics.iter().any(|m| m["key"] == "flash.0.utilisation.die.0"));
    assert!(of("io.all.requests").is_none(), "what is equal is left out");
    let is_apart =
        |m: &Value| m["key"].as_str().is_some_and(|k| k.starts_with("run.") || k.starts_with("io.series"));
    assert!(!metrics.iter().any(is_apart));
    // In short: what differs in the spec, and at most five metrics.
    let short = nandscape(&["diff", &a, &b]).well().stdout;
    assert!(short.contains("flash.cell.program.0  600us  1.2ms"), "{short}");
    let moved: Vec<&str> = short
        .lines()
        .skip_while(|line| !line.starts_with("moved most"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(moved.iter().all(|line| line.ends_with(" %")), "{short}");
    assert_eq!(diff["moved"].as_array().unwrap().len(), moved.len());
    assert!(short.lines().count() < 20 && short.contains("metrics differ; --all lists them"), "{short}");
    // In whole: there are only writes, in one flow, so each metric stands there once, and none is lost.
    let text = nandscape(&["diff", &a, &b, "--all"]).well().stdout;
    assert!(text.contains("write.array") && text.contains("+100.00 %"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(text.matches("latency_ns.p50 ").count(), 1, "{text}");
    let io: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("io "))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .collect();
    let of_flows = io.iter().filter(|line| line.starts_with("  flows."));
    assert!(of_flows.clone().all(|line| line.starts_with("  flows.0.active.")), "{text}");
    let all = metrics.iter().filter(|m| m["key"].as_str().is_some_and(|k| k.starts_with("io."))).count();
    assert!(text.contains(&format!("{} metrics that repeat another", all - io.len())), "{text}");
}

#[test]
fn a_figure_that_one_side_lacks_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
    run_tiny(&["--workload", "fio:rw=randwrite,bs=4k,number_ios=50", "--out", &a]).well();
    run_tiny(&["--workload", "fio:rw=randread,bs=4k,number_ios=50", "--out", &b]).well();
    let diff = nandscape(&["diff", "--json", &a, &b]).well().json();
    let metrics = diff["metrics"].as_array().unwrap();
    let lost = metrics.iter().find(|m| m["key"] == "io.write.requests").expect("the writes are gone");
    assert_eq!((&lost["a"], &lost["b"], lost.get("relative")), (&50.into(), &Value::Null, None));
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("a.json", "{\"schema\":\"nandscape.diff/1\"}", "not a `nandscape.result/2`"),
        ("b.json", "[1, 2]", "is not a result document"),
        ("c.json", "{", "is not JSON"),
    ];
    for (name, text, said) in cases {
        let path = file(folder.path(), name, text);
        let done = nandscape(&["diff", &path, &path]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(done.stderr.contains(said) && done.stderr.contains(name), "{}", done.stderr);
        assert!(done.stderr.contains("`--out DIR` writes one"), "{}", done.stderr);
    }
}

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
        "  worker.computes = 641mW\n      Power while it computes, stalls included.\n      Source: TI's spreadsheet",
        "  program = 19.9uJ, 111uJ, 282uJ\n",
        "\naccelerator.offload.energy\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    assert!(!text.contains("Components without constants"), "{text}");
    let text = nandscape(&["explain", "energy", "optane"]).well().stdout;
    assert!(text.contains("\ngpu.energy\n") && text.contains("no total:\n  memory.dram.energy"), "{text}");
    let text = nandscape(&["explain", "energy", "d16"]).well().stdout;
    assert!(
        text.contains("No component has energy constants") && text.contains("\n  flash.energy\n"),
        "{text}"
    );
    assert!(nandscape(&["explain", "energy"]).well().stdout.contains("explain energy SYSTEM"));
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    for (arguments, words) in [
        (["explain", "energy", "pm9a33"], "pm9a3"),
        (["explain", "flash", "pm9a3"], "the only topic of a system is `energy`"),
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
    for part in ["energy: ", "17.5 kWh in a year", " per request", "controller busy"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}
