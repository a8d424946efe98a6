//! Sweeps over options of workloads, systems and seeds; searches, held against trying everything.

use crate::common::{Done, file, nandscape, refused, run_tiny};
use std::collections::BTreeMap;
use std::path::Path;

/// A drive of 64 MiB, and reads of it.
const HEAD: &str = r#"
system = "d16"
metrics = ["io.read.iops", "io.read.latency_ns.p90"]
[set]
flash.precondition = "sequential"
flash.geometry = { channels = 2, ways = 1, blocks = 64, pages = 16 }
flash.ftl.over_provisioning = "50%"
"#;

fn sweep(folder: &Path, text: &str, out: &str, more: &[&str]) -> Done {
    let path = file(folder, "s.toml", text);
    let out = folder.join(out).display().to_string();
    nandscape(&[&["sweep", &path, "--out", &out][..], more].concat())
}

/// The rows of a table without quoted commas by column.
fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let record = |record: csv::StringRecord| {
        header.iter().map(str::to_owned).zip(record.iter().map(str::to_owned)).collect()
    };
    reader.records().map(|found| record(found.unwrap())).collect()
}

#[test]
fn options_systems_and_seeds_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let text = "system = [\"d16\", \"pm9a3\"]\nseeds = 2\nmetrics = [\"io.read.iops\"]\n[set]\nflash.precondition = \"none\"\n\
                [workload]\nrw = \"randread\"\niodepth = [1, 4]\n\
                [[zip]]\nworkload.bs = [\"4k\", \"16k\"]\nworkload.number_ios = [400, 100]\n";
    let done = sweep(folder.path(), text, "out", &["--jobs", "2"]);
    assert!(done.code == Some(0), "{}", done.stderr);
    let rows = rows(&folder.path().join("out/summary.csv"));
    let at = |row: &BTreeMap<String, String>| {
        ["system", "iodepth", "bs", "number_ios", "seed"].map(|name| row[name].clone())
    };
    let mut expected = Vec::new();
    for system in ["d16", "pm9a3"] {
        for depth in ["1", "4"] {
            for (bs, ios) in [("4k", "400"), ("16k", "100")] {
                expected.extend(["1", "2"].map(|seed| [system, depth, bs, ios, seed].map(str::to_owned)));
            }
        }
    }
    assert_eq!(rows.iter().map(at).collect::<Vec<_>>(), expected);
    // What does not vary stands in the workload's name, what does in columns of its own.
    assert!(rows.iter().all(|row| row["workload"] == "fio:rw=randread"), "{}", rows[0]["workload"]);
    // A point is what `run` gives for the words that it stands for.
    let row = &rows[7];
    let document = std::fs::read(folder.path().join("out").join(&row["result"])).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let words = "fio:iodepth=4,rw=randread,bs=16k,number_ios=100";
    assert_eq!(document["workload"][0], words);
    let set = ["--set", "flash.precondition=none"];
    let run = nandscape(&[&["run", "d16", "--json", "--workload", words, "--seed", "2"][..], &set].concat());
    assert_eq!(run.well().json()["io"], document["io"]);
}

#[test]
fn a_crossing_is_where_trying_everything_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let workload = "[workload]\nrw = \"randread\"\nbs = [\"4k\", \"16k\"]\nnumber_ios = 600\n";
    let all: Vec<u32> = (1..=24).collect();
    let every = format!("{HEAD}{workload}iodepth = {all:?}\n");
    sweep(folder.path(), &every, "every", &[]).well();
    let every = rows(&folder.path().join("every/summary.csv"));
    let p90 = |row: &BTreeMap<String, String>| row["io.read.latency_ns.p90"].parse::<f64>().unwrap();
    let search = format!(
        "{HEAD}{workload}[search.crossing]\nkey = \"workload.iodepth\"\nbetween = [1, 24]\nmetric = \"io.read.latency_ns.p90\"\npasses = \"400us\"\n"
    );
    let printed = sweep(folder.path(), &search, "search", &["--jobs", "2"]).well().stdout;
    assert!(printed.contains("where io.read.latency_ns.p90 passes 400000:"), "{printed}");
    let answers = rows(&folder.path().join("search/answer.csv"));
    assert_eq!(answers.len(), 2);
    for answer in &answers {
        assert_eq!(answer["found"], "crossing", "{answer:?}");
        let of = |depth: &str| every.iter().find(|row| row["bs"] == answer["bs"] && row["iodepth"] == depth);
        let (before, after) = (&answer["iodepth before"], &answer["iodepth after"]);
        assert_eq!(before.parse::<u32>().unwrap() + 1, after.parse::<u32>().unwrap());
        assert!(p90(of(before).unwrap()) <= 400e3 && p90(of(after).unwrap()) > 400e3, "{answer:?}");
        assert_eq!(answer["io.read.latency_ns.p90 before"], of(before).unwrap()["io.read.latency_ns.p90"]);
    }
    // Two ends and at most five halvings each, where trying everything takes 48 runs.
    let runs = rows(&folder.path().join("search/summary.csv"));
    assert!(runs.len() <= 14, "{}", runs.len());
    // Resumed, it asks for the same runs and makes none.
    let made = || {
        let entries = std::fs::read_dir(folder.path().join("search/runs")).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().modified().unwrap()).max().unwrap()
    };
    let then = made();
    assert_eq!(sweep(folder.path(), &search, "search", &["--resume"]).well().stdout, printed);
    assert_eq!(made(), then);
}

#[test]
fn a_limit_that_is_not_passed_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for (limit, said) in [
        ("1", "beyond the limit from the first value on"),
        ("\"1s\"", "within the limit up to the last value"),
    ] {
        let text = format!(
            "{HEAD}[workload]\nrw = \"randread\"\nnumber_ios = 200\n[search.crossing]\nkey = \"workload.bs\"\n\
             among = [\"4k\", \"8k\", \"16k\"]\nmetric = \"io.read.latency_ns.p90\"\npasses = {limit}\n"
        );
        let out = format!("out{}", limit.len());
        sweep(folder.path(), &text, &out, &[]).well();
        let answers = rows(&folder.path().join(&out).join("answer.csv"));
        assert_eq!((answers[0]["found"].as_str(), answers[0]["bs before"].as_str()), (said, "4k"));
        assert_eq!(rows(&folder.path().join(&out).join("summary.csv")).len(), 2);
    }
}

#[test]
fn halving_finds_the_best_with_fewer_requests() {
    let folder = tempfile::tempdir().unwrap();
    let text = HEAD.replace("channels = 2", "channels = [1, 2, 3, 4]").replace("ways = 1", "ways = [1, 2]");
    let text = format!(
        "{text}[workload]\nrw = \"randread\"\niodepth = 64\n[search.halving]\nmetric = \"io.read.iops\"\nbest = \"most\"\n\
         budget = \"workload.number_ios\"\nfrom = 300\nfactor = 2\n"
    );
    sweep(folder.path(), &text, "out", &[]).well();
    let answer = &rows(&folder.path().join("out/answer.csv"))[0];
    // The drive with the most dies serves the most random reads.
    assert_eq!(
        (answer["flash.geometry.channels"].as_str(), answer["flash.geometry.ways"].as_str()),
        ("4", "2")
    );
    let budgets: Vec<u64> = rows(&folder.path().join("out/summary.csv"))
        .iter()
        .map(|row| row["number_ios"].parse().unwrap())
        .collect();
    // 8 of 300, 4 of 600, 2 of 1,200.
    assert_eq!(
        budgets.iter().copied().collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
        [300, 600, 1200]
    );
    assert_eq!([8, 4, 2], [300, 600, 1200].map(|budget| budgets.iter().filter(|b| **b == budget).count()));
    assert_eq!((answer["runs"].as_str(), answer["number_ios"].as_str()), ("14", "1200"));
}

#[test]
fn what_cannot_be_searched_or_varied() {
    let folder = tempfile::tempdir().unwrap();
    let crossing = "[search.crossing]\nkey = \"workload.iodepth\"\nbetween = [1, 8]\nmetric = \"io.read.latency_ns.p90\"\npasses = \"1ms\"\n";
    let jobs = "[workload]\nrw = \"randread\"\n";
    let cases = [
        ("".to_owned(), "neither `workloads` nor a table [workload]"),
        ("[workload]\nrw = \"randraed\"\n".to_owned(), "did you mean `randread`"),
        (format!("{jobs}blocksise = [\"4k\"]\n"), "did you mean `blocksize`"),
        (format!("{jobs}bs = [\"4k\", \"4x\"]\n"), "4x"),
        (format!("{jobs}bs = []\n"), "has no values"),
        (format!("{jobs}bs = [[1]]\n"), "is no value of an option"),
        (format!("{jobs}bs = \"4k,rw=write\"\n"), "a text without commas"),
        (format!("{jobs}bs = \"4k\"\n[[zip]]\nworkload.bs = [\"8k\"]\n"), "`workload.bs` varies already"),
        (format!("{jobs}{crossing}").replace("[1, 8]", "[8, 1]"), "no two values"),
        (format!("{jobs}iodepth = 4\n{crossing}"), "`workload.iodepth` varies already"),
        (format!("{jobs}{crossing}").replace("p90", "p91"), "no metric `io.read.latency_ns.p91`"),
        (format!("{jobs}{crossing}").replace("1ms", "soon"), "is no limit of"),
        (
            format!("{jobs}{crossing}")
                .replace("key = \"workload.iodepth\"", "key = \"flash.geometry.channel\""),
            "did you mean `flash.geometry.channels`",
        ),
        (format!("{jobs}{crossing}").replace("between = [1, 8]\n", ""), "between which numbers"),
        (format!("{jobs}{crossing}").replace("crossing", "bisection"), "unknown"),
        (
            format!(
                "{jobs}[search.halving]\nmetric = \"io.all.iops\"\nbest = \"biggest\"\nbudget = \"workload.number_ios\"\nfrom = 1\n"
            ),
            "biggest",
        ),
        (
            format!(
                "{jobs}[search.halving]\nmetric = \"io.all.iops\"\nbest = \"most\"\nbudget = \"workload.number_ios\"\nfrom = 1\nfactor = 1\n"
            ),
            "2 to 100",
        ),
    ];
    for (text, said) in cases {
        let done = sweep(folder.path(), &format!("{HEAD}{text}"), "out", &[]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{text}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains("s.toml"), "{text}\n{}", done.stderr);
        assert_eq!(done.stderr.matches("error: ").count(), 1, "{text}\n{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{text}");
    }
    for (head, said) in [
        ("system = []", "nothing to run"),
        ("system = [\"d16\", \"d17\"]", "d17"),
        ("system = \"d16\"\nseed = 1\nseeds = 2", "`seed` and `seeds` are given"),
        ("system = \"d16\"\nseeds = 0", "nothing to run"),
        ("system = \"d16\"\nworkloads = [\"randread\"]", "`rw` stands in `randread` already"),
        ("system = \"d16\"\nworkloads = [[\"tatp\", \"tpcc\"]]", "several workloads at the same time"),
    ] {
        let done = sweep(folder.path(), &format!("{head}\n{jobs}"), "out", &[]);
        assert_eq!(done.code, Some(2), "{head}\n{}", done.stderr);
        assert!(done.stderr.contains(said), "{head}\n{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{head}");
    }
}

// `report` and `reproduce --html`: what is drawn of which files, and what is refused.

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
