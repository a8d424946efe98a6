//! Sweeps over options of workloads, systems and seeds; searches, held against trying everything; metrics that no
//! run of a sweep has.

use crate::common::{Done, file, nandscape};
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
    assert!(printed.contains("where io.read.latency_ns.p90 crosses 400us:"), "{printed}");
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
        ("".to_owned(), "give `workloads` or a table [workload]"),
        ("[workload]\nrw = \"randraed\"\n".to_owned(), "did you mean `randread`"),
        (format!("{jobs}blocksise = [\"4k\"]\n"), "did you mean `blocksize`"),
        (format!("{jobs}bs = [\"4k\", \"4x\"]\n"), "4x"),
        (format!("{jobs}bs = []\n"), "has no values"),
        (format!("{jobs}bs = [[1]]\n"), "is not a value of a workload option"),
        (format!("{jobs}bs = \"4k,rw=write\"\n"), "a string without commas"),
        (format!("{jobs}bs = \"4k\"\n[[zip]]\nworkload.bs = [\"8k\"]\n"), "`workload.bs` already varies"),
        (format!("{jobs}{crossing}").replace("[1, 8]", "[8, 1]"), "needs two values"),
        (format!("{jobs}iodepth = 4\n{crossing}"), "`workload.iodepth` already varies"),
        (format!("{jobs}{crossing}").replace("p90", "p91"), "unknown metric `io.read.latency_ns.p91`"),
        (format!("{jobs}{crossing}").replace("1ms", "soon"), "is not a limit of"),
        (
            format!("{jobs}{crossing}")
                .replace("key = \"workload.iodepth\"", "key = \"flash.geometry.channel\""),
            "did you mean `flash.geometry.channels`",
        ),
        (format!("{jobs}{crossing}").replace("between = [1, 8]\n", ""), "give `between` or `among`"),
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
        ("system = []", "at least one system"),
        ("system = [\"d16\", \"d17\"]", "d17"),
        ("system = \"d16\"\nseed = 1\nseeds = 2", "`seed` and `seeds` are both given"),
        ("system = \"d16\"\nseeds = 0", "at least one seed"),
        ("system = \"d16\"\nworkloads = [\"randread\"]", "`rw` is given in `randread`"),
        ("system = \"d16\"\nworkloads = [[\"tatp\", \"tpcc\"]]", "several simultaneous workloads"),
    ] {
        let done = sweep(folder.path(), &format!("{head}\n{jobs}"), "out", &[]);
        assert_eq!(done.code, Some(2), "{head}\n{}", done.stderr);
        assert!(done.stderr.contains(said), "{head}\n{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{head}");
    }
}

/// Two small runs with metrics, of a drive with two channels and then of one with four.
fn sweep_metrics(folder: &Path, metrics: &str, more: &str) -> Done {
    let text = format!(
        "system = \"d16\"\nworkloads = [\"fio:rw=randwrite,bs=4k,number_ios=100\"]\nmetrics = [\"simulated_ns\", \"{metrics}\"]\n\
         {more}\n[set]\nflash.precondition = \"none\"\n\
         flash.geometry = {{ blocks = 32, pages = 16, ways = 2{} }}\nflash.ftl.over_provisioning = \"25%\"\n\
         flash.ftl.gc = {{ start = 3, stop = 4, hard = 1 }}\n",
        if more.is_empty() { ", channels = [2, 4]" } else { ", channels = 2" }
    );
    let path = file(folder, "s.toml", text);
    nandscape(&["sweep", &path, "--jobs", "1", "--out", &folder.join("out").display().to_string()])
}

#[test]
fn what_no_run_can_have_is_refused_before_any() {
    let folder = tempfile::tempdir().unwrap();
    for (metric, said) in [
        ("flash.flash.erases", "did you mean `flash.0.erases`"),
        ("flash.*.erases", "did you mean `flash.0.erases`"),
        ("flash.0.erase", "did you mean `flash.0.erases`"),
        ("flash.1.erases", "the system has one `flash`, number 0"),
        ("flash.1.erases", "did you mean `flash.0.erases`"),
        ("gpu.0.ipc", "the system has no `gpu`"),
        ("accelerator.accelerator.makespan_ns", "did you mean `accelerator.0.makespan_ns`"),
    ] {
        let done = sweep_metrics(folder.path(), metric, "");
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{metric}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains("s.toml:3:"), "{metric}\n{}", done.stderr);
        assert_eq!(done.stderr.matches("error: ").count(), 1, "{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{metric}");
    }
}

/// The fourth channel is there in the second run only; a fifth in none.
#[test]
fn what_no_run_has_had_is_told_when_all_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let rows = || std::fs::read_to_string(folder.path().join("out/summary.csv")).unwrap().lines().count();
    let done = sweep_metrics(folder.path(), "flash.0.utilisation.channel.3", "").well();
    assert!(
        done.stderr.contains("note: run 0 has no metric `flash.0.utilisation.channel.3`"),
        "{}",
        done.stderr
    );
    assert_eq!(rows(), 3);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let done = sweep_metrics(folder.path(), "flash.0.utilisation.channel.4", "");
    assert_eq!((done.code, rows()), (Some(2), 3), "{}", done.stderr);
    for said in [
        "error: no run has the metric `flash.0.utilisation.channel.4`",
        "s.toml:3:",
        "did you mean `flash.0.util",
    ] {
        assert!(done.stderr.contains(said), "no {said} in {}", done.stderr);
    }
}

/// Runs that differ in their seeds alone lack the same: one tells.
#[test]
fn one_run_tells_what_runs_that_are_alike_lack() {
    let folder = tempfile::tempdir().unwrap();
    let documents = || std::fs::read_dir(folder.path().join("out/runs")).unwrap().count();
    let done = sweep_metrics(
        folder.path(),
        "breakdown_ns.write.arrray",
        &format!("seeds = {:?}", (1..=40).collect::<Vec<_>>()),
    );
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("error: no run has the metric `breakdown_ns.write.arrray`"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("did you mean `breakdown_ns.write.array`"), "{}", done.stderr);
    assert!(documents() < 40, "{}", documents());
}
