//! `report` and `reproduce --html`: what is drawn of which files, and what is refused.

use crate::common::{file, nandscape, refused, run_tiny};
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
    assert!(one.starts_with("<!doctype html>") && one.contains("How many requests take longer"));
    // What was set for the run stands in the spec, and in the command that repeats it.
    assert!(one.contains("set for this run; [&quot;600us&quot;] as shipped"), "the spec");
    assert!(one.contains("--set &#39;flash.cell.program=[&quot;1.2ms&quot;]&#39;"), "the command");
    let two = page(&[&a, &format!("{b}/result.json")], folder.path());
    assert!(two.contains("Figures that differ") && two.contains("breakdown_ns.write.array"));
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
    refused(&["reproduce", "theory", "--html", "no/where/a.html"], &["no/where/a.html", "is not there"]);
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
        (path("b.json", "{}"), "is no result document"),
        (path("c.json", "{\"schema\":\"nandscape.result/3\"}"), "is newer than what this program reads"),
        (path("d.json", "[1]"), "has no column `run`"),
        (path("e.csv", "a,b\n1,2\n"), "has no column `run`"),
        (path("f.csv", "run,state\n"), "no rows"),
        (path("g.csv", "run,state\n1\n"), "is no table"),
        (empty.display().to_string(), "its sweep has not ended"),
        (folder.path().join("nothing").display().to_string(), "cannot read"),
    ];
    for (path, said) in &cases {
        refused(&["report", path, "-o", &out], &[said]);
    }
    let table = path("h.csv", "run,state,x\n0,ok,1\n");
    refused(&["report", &a, &table, "-o", &out], &["is a sweep, which is drawn alone"]);
    refused(&["report", &a, "-o", "no/where/a.html"], &["no/where/a.html"]);
    assert!(!Path::new(&out).exists());
}
