//! The same jobs run by fio itself: its null engine logs what it issues.
//!
//! Deterministic patterns must agree request by request, random ones in coverage and frequency. Without fio on the
//! machine nothing is compared.

use std::collections::BTreeMap;
use std::process::Command;

use crate::fio_common::{Run, run_file};
use proto::IoOp;
use requests::fio::{option, options};

type Issue = (IoOp, u64, u64);

/// Deterministic patterns. They have no `runtime` guards on purpose: all of them terminate.
const EXACT: &[(&str, &str)] = &[
    ("seq", "rw=read bs=4k size=64k"),
    ("seq_remainder", "rw=write bs=4k size=10k"),
    ("holes", "rw=read:16k bs=4k size=256k"),
    ("holes_wrap", "rw=read:20k bs=4k size=128k"),
    ("backwards", "rw=read:-8k bs=4k size=64k"),
    ("write_fsync", "rw=write bs=4k size=64k fsync=4"),
    ("write_fdatasync", "rw=write bs=4k size=40k fdatasync=3"),
    ("fsync_and_end", "rw=write bs=4k size=64k number_ios=8 fsync=8 end_fsync=1"),
    ("loops_end_fsync", "rw=write bs=4k size=32k loops=2 end_fsync=1"),
    ("io_size_short", "rw=read bs=4k size=64k io_size=20k"),
    ("io_size_long_read", "rw=read bs=4k size=32k io_size=80k"),
    ("io_size_long_write", "rw=write bs=4k size=32k io_size=80k"),
    ("number_ios", "rw=write bs=4k size=64k number_ios=5"),
    ("number_ios_loops", "rw=read bs=4k size=16k number_ios=3 loops=2"),
    ("trimwrite", "rw=trimwrite bs=4k size=32k"),
    ("trimwrite_ios", "rw=trimwrite bs=4k size=32k number_ios=3"),
    ("trim", "rw=trim bs=16k size=64k"),
    ("offset", "rw=read bs=4k offset=36k filesize=100k size=64k"),
    ("all_reads", "rw=rw rwmixread=100 bs=4k,8k size=32k"),
    ("all_writes", "rw=rw rwmixwrite=100 bs=4k,8k size=32k"),
    ("one_zone", "rw=randread bs=4k size=64k random_distribution=zoned:100/7"),
    ("no_randomness", "rw=randread bs=4k size=32k percentage_random=0"),
];

/// Patterns compared by coverage and frequency.
const RANDOM: &[(&str, &str)] = &[
    ("each_once", "rw=randread bs=4k size=4m"),
    ("each_once_odd", "rw=randwrite bs=4k size=4100k"),
    ("passes", "rw=randread bs=4k size=1m loops=3"),
    ("passes_seeded", "rw=randread bs=4k size=1m loops=3 randseed=7"),
    ("replacement", "rw=randread bs=4k size=4m norandommap"),
    ("mixed", "rw=randrw rwmixread=70 bs=4k size=16m"),
    ("range", "rw=randread bsrange=4k-16k size=4m norandommap"),
    ("range_mapped", "rw=randread bsrange=4k-16k size=4m"),
    ("split", "rw=randread bssplit=4k/60:8k/30:64k/10 size=64m norandommap"),
    ("split_mapped", "rw=randread bssplit=4k/60:8k/30:64k/10 size=16m"),
    ("zipf", "rw=randwrite bs=4k size=4m io_size=100m random_distribution=zipf:0.9"),
    ("pareto", "rw=randwrite bs=4k size=4m io_size=100m random_distribution=pareto:0.2"),
    ("zoned", "rw=randread bs=4k size=64m random_distribution=zoned:60/10:30/20:10/70"),
    ("partly", "rw=randread bs=4k size=16m percentage_random=30 norandommap"),
    ("runs", "rw=randread:8 bs=4k size=16m norandommap"),
    ("same", "rw=randread:8 rw_sequencer=identical bs=4k size=4m norandommap"),
    ("randtrimwrite", "rw=randtrimwrite bs=4k size=1m"),
];

/// Runs every section in one fio and reads its logs; none without fio.
fn by_fio(sections: &[(&str, &str)]) -> Option<BTreeMap<String, Vec<Issue>>> {
    if Command::new("fio").arg("--version").output().is_err() {
        println!("skipped: no fio");
        return None;
    }
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut file = String::from("[global]\nioengine=null\nthread\n");
    for (name, options) in sections {
        let options = options.replace(' ', "\n");
        let log = dir.path().join(name);
        file += &format!("[{name}]\nfilename={name}\n{options}\nwrite_iolog={}\n", log.display());
    }
    let path = dir.path().join("job.fio");
    std::fs::write(&path, file).expect("the job file is written");
    let output = Command::new("fio").arg(&path).current_dir(dir.path()).output().expect("fio runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).expect("fio wrote its log");
    Some(sections.iter().map(|(name, _)| ((*name).to_owned(), parse_log(&read(name)))).collect())
}

/// Reads iolog version 2 or 3: `[time] file action offset length`.
fn parse_log(text: &str) -> Vec<Issue> {
    let skip = usize::from(text.starts_with("fio version 3"));
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().skip(skip).collect();
        let op = match *words.get(1)? {
            "read" => IoOp::Read,
            "write" => IoOp::Write,
            "trim" => IoOp::Trim,
            "sync" | "datasync" => return Some((IoOp::Flush, 0, 0)),
            _ => return None,
        };
        Some((op, words.get(2)?.parse().ok()?, words.get(3)?.parse().ok()?))
    };
    text.lines().skip(1).filter_map(line).collect()
}

/// Runs the same section here. `filesize` is the size of fio's file; the device has that size.
fn here(name: &str, options: &str) -> Run {
    let kept: Vec<&str> = options.split(' ').filter(|o| !o.starts_with("filesize=")).collect();
    run_file(&format!("[{name}]\nioengine=psync\n{}\n", kept.join("\n"))).remove(0).remove(0)
}

fn issues(run: &Run) -> Vec<Issue> {
    run.requests().map(|r| (r.op, r.offset, r.bytes)).collect()
}

#[test]
fn deterministic_patterns_agree_request_by_request() {
    let Some(logs) = by_fio(EXACT) else { return };
    for (name, options) in EXACT {
        let (ours, theirs) = (issues(&here(name, options)), &logs[*name]);
        assert!(!theirs.is_empty(), "{name}: an empty log");
        if *name == "one_zone" {
            let reach = |issues: &[Issue]| issues.iter().map(|i| i.1).max();
            assert_eq!(reach(&ours), reach(theirs), "{name}: {options}");
        } else {
            assert_eq!(&ours, theirs, "{name}: {options}");
        }
    }
}

/// Counts requests per block of `unit` bytes.
fn coverage(issues: &[Issue], unit: u64) -> BTreeMap<u64, u32> {
    let mut blocks = BTreeMap::new();
    for (_, offset, bytes) in issues {
        for block in offset / unit..(offset + bytes).div_ceil(unit) {
            *blocks.entry(block).or_insert(0) += 1;
        }
    }
    blocks
}

fn share(issues: &[Issue], condition: impl Fn(&Issue) -> bool) -> f64 {
    issues.iter().filter(|i| condition(i)).count() as f64 / issues.len() as f64
}

/// Checks that two shares of `n` draws each agree within five standard deviations of their difference.
fn agree(what: &str, ours: f64, theirs: f64, n: usize) {
    let p = (ours + theirs) / 2.0;
    let sigma = (2.0 * p * (1.0 - p) / n as f64).sqrt();
    assert!((ours - theirs).abs() <= 5.0 * sigma.max(1e-6), "{what}: {ours} here, {theirs} by fio");
}

/// Compares the number of issues, the coverage and the share of each size and operation.
fn compare(name: &str, ours: &[Issue], theirs: &[Issue]) {
    let mapped = ["each_once", "each_once_odd", "passes", "passes_seeded", "range_mapped", "split_mapped"];
    if mapped.contains(&name) {
        assert_eq!(coverage(ours, 4096), coverage(theirs, 4096), "{name}");
    }
    let n = ours.len().min(theirs.len());
    assert!(n > 100, "{name}: {n} requests");
    for op in [IoOp::Read, IoOp::Write, IoOp::Trim] {
        agree(name, share(ours, |i| i.0 == op), share(theirs, |i| i.0 == op), n);
    }
    // Requests cut short by the map depend on each other: those shares are not binomial.
    if !name.ends_with("_mapped") {
        for bytes in [4096, 8192, 12_288, 16_384, 65_536] {
            agree(name, share(ours, |i| i.2 == bytes), share(theirs, |i| i.2 == bytes), n);
        }
    }
}

fn sequential_share(issues: &[Issue]) -> f64 {
    let pairs = issues.windows(2).filter(|w| w[1].1 == w[0].1 + w[0].2).count();
    pairs as f64 / (issues.len() - 1) as f64
}

fn repeat_share(issues: &[Issue]) -> f64 {
    issues.windows(2).filter(|w| w[1].1 == w[0].1).count() as f64 / (issues.len() - 1) as f64
}

/// Returns the share of the requests to the `top` most requested blocks.
fn top_share(issues: &[Issue], top: usize) -> f64 {
    let mut counts: Vec<u32> = coverage(issues, 4096).into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.iter().take(top).sum::<u32>() as f64 / issues.len() as f64
}

#[test]
fn random_patterns_agree_in_coverage_and_shares() {
    let Some(logs) = by_fio(RANDOM) else { return };
    for (name, options) in RANDOM {
        let (ours, theirs) = (issues(&here(name, options)), &logs[*name]);
        compare(name, &ours, theirs);
        let n = ours.len();
        match *name {
            "range" | "split" | "range_mapped" | "split_mapped" => {}
            "randtrimwrite" => {
                for pair in ours.chunks(2).chain(theirs.chunks(2)) {
                    assert_eq!((pair[0].0, pair[1].0), (IoOp::Trim, IoOp::Write), "{name}");
                    assert_eq!((pair[0].1, pair[0].2), (pair[1].1, pair[1].2), "{name}");
                }
                assert_eq!(ours.len(), theirs.len(), "{name}");
            }
            // Each pass repeats the first, unless a seed is given.
            "passes" | "passes_seeded" => {
                let repeats = |issues: &[Issue]| issues[..256] == issues[256..512];
                assert_eq!(repeats(&ours), *name == "passes", "{name}");
                assert_eq!(repeats(theirs), *name == "passes", "{name}");
            }
            _ => assert_eq!(ours.len(), theirs.len(), "{name}"),
        }
        match *name {
            "partly" | "runs" => {
                agree(name, sequential_share(&ours), sequential_share(theirs), n);
                assert!(sequential_share(&ours) > 0.6, "{name}");
            }
            "same" => agree(name, repeat_share(&ours), repeat_share(theirs), n),
            "replacement" => {
                // 1024 draws with replacement from 1024 blocks touch 1 - 1/e of them.
                for issues in [&ours, theirs] {
                    let touched = coverage(issues, 4096).len() as f64 / 1024.0;
                    assert!((touched - 0.632).abs() < 0.05, "{name}: {touched}");
                }
            }
            "zoned" => {
                for (low, high) in [(0, 10), (10, 30), (30, 100)] {
                    let inside = |i: &Issue| (low..high).contains(&(i.1 * 100 / (64 << 20)));
                    // fio rounds its zones to whole percents of blocks, so a block may lie on either side.
                    let (ours, theirs) = (share(&ours, inside), share(theirs, inside));
                    assert!((ours - theirs).abs() < 0.02, "{name}: {ours} {theirs}");
                }
            }
            // fio's scatter lets ranks share a block, which blurs all but the most popular ones.
            "zipf" | "pareto" => {
                for top in [1, 10] {
                    let (ours, theirs) = (top_share(&ours, top), top_share(theirs, top));
                    assert!((ours / theirs - 1.0).abs() < 0.08, "{name} top {top}: {ours} {theirs}");
                }
            }
            _ => {}
        }
    }
}

#[test]
fn every_option_of_this_fio_has_a_row() {
    let Ok(output) = Command::new("fio").arg("--cmdhelp").output() else {
        println!("skipped: no fio");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.map(|name| name.trim_end_matches(':')).collect();
    assert!(names.len() > 150, "{}", names.len());
    let missing: Vec<_> = names.iter().filter(|name| option(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(options().count() > names.len());
}
