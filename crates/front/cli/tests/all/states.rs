//! States of drives: saved, loaded, shared by the runs of a folder and of a sweep; refused where they are another machine's.

use crate::common::{Done, command, file, leaves, nandscape, refused};
use machine::state::{Kept, State, read, write};
use serde_json::Value;
use std::path::Path;

/// A device of 16 MiB that is overwritten before the run.
const SMALL: [&str; 14] = [
    "--precondition",
    "steady:share=80%",
    "--set",
    "flash.geometry.blocks=32",
    "--set",
    "flash.geometry.pages=16",
    "--set",
    "flash.ftl.gc.start=3",
    "--set",
    "flash.ftl.gc.stop=4",
    "--set",
    "flash.ftl.gc.hard=1",
    "--set",
    "flash.ftl.over_provisioning=30%",
];
const JOB: &str = "fio:rw=randrw,bs=4k,iodepth=8,number_ios=2000,norandommap=1,size=50%";

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run", "d16", "--json", "--workload", JOB];
    all.extend(SMALL);
    all.extend(more);
    all
}

fn run(more: &[&str]) -> Done {
    nandscape(&arguments(more))
}

/// The document without what it cost.
fn found(done: &Done) -> Vec<(String, Value)> {
    leaves(&done.json()).into_iter().filter(|(path, _)| !path.starts_with("run.")).collect()
}

/// Names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_saved_state_is_loaded_by_runs_of_other_times_and_by_no_other_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d16.state").display().to_string();
    let saved = run(&["--save-state", &path]).well();
    assert_eq!(found(&saved), found(&run(&[]).well()));
    assert_eq!(names(folder.path()), ["d16.state"]);
    assert_eq!(found(&saved), found(&run(&["--load-state", &path]).well()));
    let slow = ["--set", "flash.cell.read=[\"100us\"]", "--set", "flash.channel.rate=100MT/s"];
    let of_slow = run(&[&slow[..], &["--load-state", &path]].concat()).well();
    assert_eq!(found(&of_slow), found(&run(&slow).well()));
    assert_ne!(found(&of_slow), found(&saved));

    let load = ["--load-state", path.as_str()];
    let other = |more: &[&str], said: &[&str]| refused(&arguments(&[&load[..], more].concat()), said);
    let help = "help: set `flash.geometry.channels` to 8, or save a state of this machine";
    let what =
        "d16.state is the state of a different machine: `flash.geometry.channels` is 8 there and 4 here";
    other(&["--set", "flash.geometry.channels=4"], &[what, "--> --set", "flash.geometry.channels=4", help]);
    other(&["--seed", "7"], &["`seed` is 1 there and 7 here", "--> --seed", "help: `--seed 1`"]);
    let zipf = ["run", "d16", "--workload", JOB, "--precondition", "zipf", "--load-state", &path];
    refused(&zipf, &["a different machine"]);
    let theirs = ["run", "mqsim-default", "--workload", JOB, "--load-state", &path];
    refused(&theirs, &["a different machine", "more keys differ"]);
    let none = ["run", "zng", "--workload", "back:n=1024", "--load-state", &path];
    refused(&none, &["`zng` has no drive", "help: flash as memory is filled"]);
}

#[test]
fn a_damaged_state_is_told_and_so_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s").display().to_string();
    run(&["--save-state", &path]).well();
    let whole = std::fs::read(&path).unwrap();
    let bad = |content: &[u8], said: &str| {
        let bad = file(folder.path(), "bad", content);
        refused(&arguments(&["--load-state", &bad]), &[said, &format!("--> {bad}"), "help: "]);
    };
    bad(&whole[..whole.len() / 2], "the state is damaged");
    bad(&whole[..10], "the state is damaged: it is cut short");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    bad(&flipped, "the state is damaged: its checksum is");
    bad(b"nothing of the kind", "this file is not a saved state");
    refused(&arguments(&["--load-state", "absent.state"]), &["cannot read absent.state", "--save-state"]);
    refused(&arguments(&["--save-state", "absent/a.state"]), &["cannot write absent/a.state"]);
    let both = nandscape(&arguments(&["--save-state", &path, "--load-state", &path]));
    assert_eq!((both.code, both.stderr.contains("cannot be used with")), (Some(2), true), "{}", both.stderr);
}

/// Two drives as one, of which the first is by another name in the other file.
fn striped(folder: &Path, name: &str, more: &str) -> String {
    let small = "geometry = { channels = 2, ways = 1, blocks = 32, pages = 16 }
ftl.gc = { start = 3, stop = 4, hard = 1 }
ftl.over_provisioning = \"30%\"
precondition = { steady = { share = \"80%\" } }
count = 2
";
    let parts =
        format!("description = \"two\"\n[{name}]\nkind = \"flash\"\ninherits = \"d16.flash\"\n{small}{more}");
    let host = "[sim]\ninherits = \"d16\"\n[host]\ninherits = \"d16\"\n";
    let text = format!("{parts}\n{host}[stripe]\ndrives = \"{name}\"\nchunk = \"16KiB\"\nsubmit = \"0us\"\n");
    file(folder, &format!("{name}{}.toml", more.len()), text)
}

#[test]
fn the_states_of_all_drives_are_in_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let system = striped(folder.path(), "ssd", "");
    let path = folder.path().join("all.state").display().to_string();
    let run = |system: &str, more: &[&str]| {
        nandscape(&[&["run", system, "--json", "--workload", JOB][..], more].concat()).well()
    };
    let alone = run(&system, &[]);
    let io = &alone.json()["flash"][1]["precondition"]["kind"];
    assert_eq!(io, "steady");
    assert_eq!(found(&alone), found(&run(&system, &["--save-state", &path])));
    assert_eq!(found(&alone), found(&run(&system, &["--load-state", &path])));
    let slow = ["--set", "ssd.cell.read=[\"100us\"]"];
    assert_eq!(
        found(&run(&system, &slow)),
        found(&run(&system, &[&slow[..], &["--load-state", &path]].concat()))
    );
    // By another name they are the same drives, and leave the same file.
    let renamed = striped(folder.path(), "other", "");
    run(&renamed, &["--load-state", &path]);
    let again = folder.path().join("again.state").display().to_string();
    run(&renamed, &["--save-state", &again]);
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&path).unwrap());

    let load = |system: &str, more: &[&str], said: &[&str]| {
        let all = [&["run", system, "--workload", JOB, "--load-state", &path][..], more].concat();
        refused(&all, said);
    };
    load(&system, &["--set", "ssd.count=3"], &["drives are 2 there and 3 here (`ssd.0`, `ssd.1`, `ssd.2`)"]);
    let wide = ["--set", "ssd.geometry.channels=4"];
    let what = "`ssd.0`: ";
    load(
        &system,
        &wide,
        &[
            what,
            "`ssd.geometry.channels` is 2 there and 4 here",
            "--> --set",
            "set `ssd.geometry.channels` to 2",
        ],
    );
    // The second alone is another one.
    let apart = "\n[large]\nkind = \"flash\"\ninherits = \"d16.flash\"\ngeometry = { channels = 2, ways = 1, blocks = 64, pages = 16 }\n";
    let apart =
        apart.to_owned() + "ftl.gc = { start = 3, stop = 4, hard = 1 }\nftl.over_provisioning = \"30%\"\n";
    let system = striped(folder.path(), "ssd", &apart).replace("count = 2\n", "");
    let text = std::fs::read_to_string(&system).unwrap().replace("count = 2\n", "");
    let text = text.replace("drives = \"ssd\"", "drives = [\"ssd\", \"large\"]");
    std::fs::write(&system, text).unwrap();
    let steady = ["--precondition", "steady:share=80%"];
    load(&system, &steady, &["`large`: ", "`large.geometry.blocks` is 32 there and 64 here"]);
    refused(&arguments(&["--load-state", &path]), &["drives are 2 there and 1 here (`flash`)"]);

    let whole = std::fs::read(&path).unwrap();
    for (content, said) in [(&whole[..whole.len() - 1], "damaged"), (&whole[..40], "cut short")] {
        let bad = file(folder.path(), "bad", content);
        refused(&["run", &renamed, "--workload", JOB, "--load-state", &bad], &[said, "--> "]);
    }
}

#[test]
fn runs_share_a_folder_of_states_by_what_they_depend_on() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let cache = ["--state-cache", states.to_str().unwrap()];
    let fast = ["--set", "flash.cell.read=[\"10us\"]"];
    // Two at once make the same one.
    let both = [(); 2].map(|()| {
        let mut both = command(&arguments(&cache));
        both.stdout(std::process::Stdio::piped()).spawn().unwrap()
    });
    let alone = found(&run(&[]).well());
    for running in both {
        let output = running.wait_with_output().unwrap();
        let done = Done {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::new(),
        };
        assert_eq!(found(&done.well()), alone);
    }
    let made = names(&states);
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(made[0].len() == 64 + ".state".len() && made[0].ends_with(".state"));
    assert_eq!(found(&run(&[&cache[..], &fast].concat()).well()), found(&run(&fast).well()));
    assert_eq!(names(&states), made);
    run(&[&cache[..], &["--seed", "2"]].concat()).well();
    assert_eq!(names(&states).len(), 2);
}

/// Files of the folder that a loss of power, or another program, has damaged are made again, and the run goes on.
#[test]
fn a_damaged_file_of_the_folder_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let cache = ["--state-cache", states.to_str().unwrap()];
    let first = found(&run(&cache).well());
    let path = states.join(&names(&states)[0]);
    let whole = std::fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let cut = &whole[..whole.len() / 2];
    for bad in [&b""[..], b"nandscape state\n and no more", b"{}", cut, &flipped] {
        std::fs::write(&path, bad).unwrap();
        let again = run(&cache).well();
        assert!(again.stderr.contains("the state is made again"), "{}", again.stderr);
        assert_eq!(found(&again), first);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }
    assert_eq!(names(&states).len(), 1);
}

/// A file whose states are changed, with the checksum that is right for them.
fn signed(file: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let changed = |kept: Kept| {
        let mut bytes = kept.state.bytes().to_vec();
        change(&mut bytes);
        Kept { spec: kept.spec, state: State::from_bytes(bytes) }
    };
    write(&read("a state", file).unwrap().into_iter().map(changed).collect::<Vec<_>>())
}

/// A checksum that is right says nothing of what a state holds: in the folder it is made again, and one that is named is refused.
#[test]
fn a_signed_state_that_contradicts_itself_is_made_again_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states");
    let cache = ["--state-cache", states.to_str().unwrap()];
    let first = found(&run(&cache).well());
    let path = states.join(&names(&states)[0]);
    let whole = std::fs::read(&path).unwrap();
    // A drive's state that ends too early.
    std::fs::write(&path, signed(&whole, |bytes| bytes.truncate(bytes.len() - 1))).unwrap();
    let named = folder.path().join("named.state");
    std::fs::copy(&path, &named).unwrap();
    let again = run(&cache).well();
    assert!(again.stderr.contains("the state is made again"), "{}", again.stderr);
    assert_eq!((found(&again), std::fs::read(&path).unwrap()), (first, whole));
    let named = ["--load-state", named.to_str().unwrap()];
    refused(&arguments(&named), &["named.state", "cannot be loaded"]);

    // Memory of a server: its last figure is how many changed pages were stored, and they and those that are there are all.
    let program = ["--workload", "tatp:size=64MiB,work=2000"];
    let of_server = |more: &[&str]| nandscape(&server(&[&program[..], more].concat()));
    let first = found(&of_server(&cache).well());
    let mut servers = 0;
    for name in names(&states) {
        let path = states.join(name);
        let whole = std::fs::read(&path).unwrap();
        if whole.windows(9).any(|key| key == b"\"server\":") {
            servers += 1;
            let last = |bytes: &mut Vec<u8>| {
                let stored = bytes.len() - 8;
                bytes[stored] ^= 1;
            };
            std::fs::write(&path, signed(&whole, last)).unwrap();
            let again = of_server(&cache).well();
            assert!(again.stderr.contains("the state is made again"), "{}", again.stderr);
            assert_eq!((found(&again), std::fs::read(&path).unwrap()), (first.clone(), whole));
        }
    }
    assert_eq!(servers, 1);
}

/// A server of four cores with a small DRAM cache.
fn server<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let small = [
        "cpu.cores=4",
        "fabric.mesh.rows=2",
        "fabric.mesh.columns=2",
        "l2.banks=4",
        "cpu.load.jobs=200",
        "cpu.warmup.fixed.jobs=0",
        "memory.dram_cache.sets=64",
        "flash.geometry.channels=4",
        "flash.geometry.dies=1",
        "flash.geometry.blocks=256",
    ];
    let set = small.iter().flat_map(|set| ["--set", *set]);
    ["run", "astriflash", "--json"].into_iter().chain(set).chain(more.iter().copied()).collect()
}

#[test]
fn the_filled_memory_of_a_server_is_in_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.state").display().to_string();
    let program = ["--workload", "tatp:size=64MiB,work=2000"];
    let saved = nandscape(&server(&[&program[..], &["--save-state", &path]].concat())).well();
    let taken = nandscape(&server(&[&program[..], &["--load-state", &path]].concat())).well();
    assert_eq!(found(&saved), found(&taken));
    assert!(saved.json()["cpu"][0]["fill_jobs"].as_u64().unwrap() > 0);
    let load = |more: &[&str], said: &[&str]| {
        refused(&server(&[&["--load-state", &path][..], more].concat()), said);
    };
    let other = ["--workload", "silo:size=64MiB"];
    load(
        &other,
        &[
            "`cpu`: ",
            "`program` is \"tatp:size=64MiB,work=2000\" there",
            "--> --workload",
            "with this program",
        ],
    );
    let requests = ["--workload", "fio:rw=randread,bs=4k,number_ios=10,size=1m"];
    load(&requests, &["servers with filled memory are 1 there and 0 here"]);
    let smaller = [&program[..], &["--set", "memory.dram_cache.sets=32"]].concat();
    load(
        &smaller,
        &["`memory.dram_cache.sets` is 64 there and 32 here", "set `memory.dram_cache.sets` to 64"],
    );
}

#[test]
fn a_sweep_fills_the_memory_of_a_server_once() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
system = "astriflash"
workloads = ["tatp:size=64MiB,work=500", "swap:size=64MiB,work=500"]
seeds = [1, 2]
metrics = ["cpu.0.fill_jobs", "cpu.0.ipc"]
[set]
cpu.cores = 4
fabric.mesh = { rows = 2, columns = 2 }
l2.banks = 4
cpu.load.jobs = 100
cpu.warmup.fixed.jobs = 0
memory.dram_cache.sets = 32
flash.geometry = { channels = 4, dies = 1, blocks = 256 }
memory.dram_cache.frontside.command = [1, 5]
"#;
    let path = file(folder.path(), "s.toml", text);
    let states = folder.path().join("states");
    let sweep = |out: &str, more: &[&str]| {
        let out = folder.path().join(out);
        nandscape(&[&["sweep", &path, "--out", out.to_str().unwrap()][..], more].concat()).well();
        std::fs::read_to_string(out.join("summary.csv")).unwrap()
    };
    let apart = sweep("apart", &["--state-cache", "none"]);
    assert_eq!(apart.lines().count(), 9);
    assert_eq!(sweep("shared", &["--jobs", "2"]), apart);
    let cache = ["--state-cache", states.to_str().unwrap()];
    assert_eq!(sweep("cached", &cache), apart);
    // Of each program a memory, of each seed a drive.
    assert_eq!(names(&states).len(), 4);
    assert_eq!(sweep("taken", &cache), apart);
}

const SWEEP: &str = r#"
system = "d16"
workloads = ["fio:rw=randread,bs=4k,iodepth=4,number_ios=500,size=50%", "fio:rw=randwrite,bs=4k,number_ios=500,size=50%"]
seeds = [1, 2]
metrics = ["io.all.iops", "flash.0.erases", "run.precondition_cpu_s"]
[set]
flash.precondition = { steady = { share = "80%" } }
flash.geometry = { blocks = 32, pages = 16 }
flash.ftl.gc = { start = 3, stop = 4, hard = 1 }
flash.ftl.over_provisioning = "30%"
flash.cell.read = [["20us"], ["50us"], ["90us"]]
"#;

#[test]
fn a_sweep_makes_each_state_once_and_its_table_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", SWEEP.replace(", \"run.precondition_cpu_s\"", ""));
    let states = folder.path().join("states");
    let sweep = |out: &str, more: &[&str]| {
        let out = folder.path().join(out);
        let arguments = ["sweep", &path, "--out", out.to_str().unwrap()];
        nandscape(&[&arguments[..], more].concat()).well();
        std::fs::read_to_string(out.join("summary.csv")).unwrap()
    };
    let apart = sweep("apart", &["--state-cache", "none"]);
    assert_eq!(apart.lines().count(), 13);
    for jobs in ["1", "2", "5"] {
        assert_eq!(sweep(jobs, &["--jobs", jobs]), apart, "{jobs} jobs");
    }
    let cache = ["--state-cache", states.to_str().unwrap()];
    assert_eq!(sweep("cached", &cache), apart);
    // One for each seed; whoever comes next takes them.
    assert_eq!(names(&states).len(), 2);
    assert_eq!(sweep("taken", &cache), apart);
    let damaged = states.join(&names(&states)[0]);
    std::fs::write(&damaged, b"nandscape state\n").unwrap();
    let out = folder.path().join("damaged").display().to_string();
    let done = nandscape(&[&["sweep", &path, "--out", &out][..], &cache].concat()).well();
    assert!(done.stderr.contains("the state is made again"), "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(folder.path().join("damaged/summary.csv")).unwrap(), apart);
}
