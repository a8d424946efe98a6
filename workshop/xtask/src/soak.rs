//! `cargo xtask soak`: the flash device in all combinations under its shadow, a host whose power is cut 10,000 times,
//! the shipped binary for very long, or damaged input. `cargo xtask mutants`: the faults planted in the model crates,
//! and which check kills each.

use crate::workspace;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

/// Arguments of `cargo xtask soak`.
#[derive(Args)]
pub(crate) struct Options {
    /// Minimum number of operations, over all combinations
    #[arg(long, default_value_t = 10_000_000)]
    ops: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run in the profiles dev and release, and compare the digests of all completions
    #[arg(long, conflicts_with = "endurance")]
    profiles: bool,
    /// Instead, run this many requests on the shipped binary and check that its memory stays flat
    #[arg(long, value_name = "REQUESTS", num_args = 0..=1, default_missing_value = "100000000", value_parser = clap::value_parser!(u64).range(100_000..))]
    endurance: Option<u64>,
    /// Instead, run this many seconds of damaged input through all readers, whole machines included
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["endurance", "profiles"])]
    fuzz: Option<u64>,
}

/// Runs the soak; returns false if something failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(requests) = options.endurance {
        return run_endurance(requests);
    }
    if let Some(seconds) = options.fuzz {
        return Ok(fuzz(seconds, options.seed).status()?.success());
    }
    if options.profiles {
        return compare_profiles(options);
    }
    let ignored = ["--release", "--workspace", "--", "--ignored", "--nocapture"];
    let longer = ["--release", "-p", "nandscape-ssd", "--test", "all"];
    Ok(test(options, &ignored).status()?.success()
        && test(options, &longer).env("SOAK_TIMES", TIMES).status()?.success())
}

/// Length of a drive's tests in a soak, as a multiple of their length in a test run.
const TIMES: &str = "10";

/// Command `cargo test` with the length of its soaks.
fn test(options: &Options, arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace::root())
        .arg("test")
        .args(arguments)
        .env("SOAK_OPS", options.ops.to_string())
        .env("SOAK_SEED", options.seed.to_string());
    command
}

/// Driver of the crate `fuzzing`, with assertions.
fn fuzz(seconds: u64, seed: u64) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root()).args(["run", "--quiet", "-p", "nandscape-fuzzing", "--"]).args([
        seconds.to_string(),
        "all".to_owned(),
        seed.to_string(),
    ]);
    command
}

/// Returns whether assertions and optimisation leave every result unchanged.
fn compare_profiles(options: &Options) -> Result<bool> {
    let mut digests = Vec::new();
    for profile in [&[][..], &["--release"]] {
        let soak = ["-p", "nandscape-ssd", "--test", "all", "ten_million", "--", "--ignored", "--nocapture"];
        let output = test(options, &[profile, &soak].concat()).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let digest = text.lines().find_map(|line| line.strip_prefix("digest "));
        let digest = digest.context("the soak printed no digest")?.to_owned();
        let name = profile.first().map_or("dev", |name| name.trim_start_matches('-'));
        println!("{name}: digest {digest}, {}", if output.status.success() { "ok" } else { "FAILED" });
        digests.push((digest, output.status.success()));
    }
    let same = digests.iter().all(|(digest, _)| *digest == digests[0].0);
    println!("{}", if same { "the same in both profiles" } else { "NOT the same in both profiles" });
    Ok(same && digests.iter().all(|(_, ok)| *ok))
}

// Very long runs of the shipped binary, with its memory sampled from outside.
//
// A simulation that keeps something of every request runs out of memory one day. So once a drive is warm, memory must
// stay as it is. Drives are small here: a large one is warm only when all its map and all its pages have been touched.

/// Time between two samples.
const PERIOD: Duration = Duration::from_millis(100);

/// Share of the run after which a drive counts as warm, in percent.
const WARM: u64 = 10;

/// Allowed growth of memory from there on, in KiB: allocators and page tables are not exact.
const SLACK_KIB: u64 = 1024;

/// Case of a soak.
struct Endurance {
    system: &'static str,
    /// Overrides that make it small.
    set: &'static [&'static str],
    precondition: &'static str,
    /// Divisor of the number of requests.
    divisor: u64,
}

const CASES: &[Endurance] = &[
    Endurance { system: "d16", set: &[], precondition: "steady", divisor: 1 },
    // A write cache and a demand-cached map: 16 GiB.
    Endurance {
        system: "mqsim-default",
        set: &["flash.geometry.channels=1", "flash.geometry.ways=1"],
        precondition: "steady",
        divisor: 5,
    },
    // A buffer behind capacitors: 0.8 GB.
    Endurance {
        system: "pm9a3",
        set: &[
            "flash.geometry.channels=1",
            "flash.geometry.ways=1",
            "flash.geometry.blocks=128",
            "flash.geometry.pages=192",
        ],
        precondition: "steady",
        divisor: 5,
    },
];

/// Memory of a process after some of its CPU time.
#[derive(Clone, Copy)]
struct Sample {
    cpu_ns: u64,
    rss_kib: u64,
}

/// Runs every case and prints its memory; returns false if one did not stay flat or did not finish its work.
pub(crate) fn run_endurance(requests: u64) -> Result<bool> {
    let binary = workspace::release_binary()?;
    let mut all = true;
    for case in CASES {
        let requests = requests / case.divisor;
        eprintln!("{}: {requests} requests …", case.system);
        all &= run_case(&binary, case, requests)?;
    }
    Ok(all)
}

fn run_case(binary: &Path, case: &Endurance, requests: u64) -> Result<bool> {
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("result.json");
    let job = format!(
        "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,size=90%,norandommap=1,io_size=1000t,number_ios={requests}"
    );
    let mut command = Command::new(binary);
    command.args(["run", case.system, "--workload", &job, "--precondition", case.precondition, "--json"]);
    command.args(case.set.iter().flat_map(|set| ["--set", set]));
    let child = command.stdin(Stdio::null()).stdout(fs::File::create(&document)?).spawn()?;
    let (samples, succeeded) = watch(child)?;
    let document: Value = serde_json::from_slice(&fs::read(&document)?)
        .with_context(|| format!("{} printed no result", case.system))?;
    let completed = document.pointer("/io/all/requests").and_then(Value::as_u64).unwrap_or(0);
    let phases = ["/run/precondition_cpu_s", "/run/cpu_s"].map(|path| document.pointer(path)?.as_f64());
    let [Some(before), Some(during)] = phases else { bail!("the result of {} has no times", case.system) };
    let memory =
        Memory::of(&samples, before, during).context("too short to be measured: ask for more requests")?;
    let done = succeeded && completed == requests;
    let work = if done { "" } else { ", NOT all requests completed" };
    println!("{}: {completed} requests in {during:.0} s of CPU time, {memory}{work}", case.system);
    Ok(done && memory.is_flat())
}

/// Samples a process until it ends; returns whether it succeeded.
fn watch(mut child: Child) -> Result<(Vec<Sample>, bool)> {
    let mut samples = Vec::new();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((samples, status.success()));
        }
        samples.extend(sample(child.id()));
        thread::sleep(PERIOD);
    }
}

/// `None` if the process has just ended, or without `/proc` (Linux has one).
fn sample(pid: u32) -> Option<Sample> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    Some(Sample {
        cpu_ns: schedstat.split(' ').next()?.parse().ok()?,
        rss_kib: line.split_whitespace().next()?.parse().ok()?,
    })
}

/// Memory at some points of the simulated part, in KiB.
struct Memory {
    warm: u64,
    half: u64,
    end: u64,
    most: u64,
}

impl Memory {
    /// Computes memory from samples of a process that spent `before` seconds on preconditioning and `during` on the
    /// simulation. Later samples belong to the result document.
    fn of(samples: &[Sample], before: f64, during: f64) -> Option<Memory> {
        let at = |percent: u64| ((before + during * percent as f64 / 100.0) * 1e9) as u64;
        let rss = |percent: u64| samples.iter().find(|s| s.cpu_ns >= at(percent)).map(|s| s.rss_kib);
        let inside = samples.iter().filter(|s| (at(WARM)..at(100)).contains(&s.cpu_ns));
        Some(Memory {
            warm: rss(WARM)?,
            half: rss(50)?,
            end: inside.clone().next_back()?.rss_kib,
            most: inside.map(|s| s.rss_kib).max()?,
        })
    }

    fn is_flat(&self) -> bool {
        self.most <= self.warm + SLACK_KIB
    }
}

impl std::fmt::Display for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Memory { warm, half, end, most } = self;
        let verdict = if self.is_flat() { "flat" } else { "NOT flat" };
        write!(
            f,
            "memory {warm} KiB at {WARM} %, {half} KiB at 50 %, {end} KiB at 100 %, at most {most} KiB: {verdict}"
        )
    }
}

/// Runs the suite and prints its table; returns false if a mutant survives.
pub(crate) fn run_mutants() -> Result<bool> {
    let output = Command::new("cargo")
        .current_dir(workspace::root())
        .args(["test", "--quiet", "-p", "nandscape-machine", "--test", "mutants", "--", "--nocapture"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test did not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| line.starts_with('|')) {
        println!("{line}");
    }
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample every second, of which the first two are preconditioning.
    fn samples(rss: impl Fn(u64) -> u64) -> Vec<Sample> {
        (0..=13).map(|s| Sample { cpu_ns: s * 1_000_000_000, rss_kib: rss(s) }).collect()
    }

    #[test]
    fn only_growth_between_warmth_and_the_end_counts() {
        // Ten seconds are simulated: warm after one of them, over after all.
        let flat = samples(|s| if s < 3 { 100 * s } else { 40_000 } + if s >= 12 { 9_000 } else { 0 });
        let memory = Memory::of(&flat, 2.0, 10.0).unwrap();
        assert!(memory.is_flat(), "{memory}");
        assert_eq!((memory.warm, memory.half, memory.end), (40_000, 40_000, 40_000));
        let grows = Memory::of(&samples(|s| 40_000 + 200 * s), 2.0, 10.0).unwrap();
        assert_eq!((grows.warm, grows.half, grows.end), (40_600, 41_400, 42_200));
        assert!(!grows.is_flat());
        // A peak that is gone again is growth too.
        assert!(
            !Memory::of(&samples(|s| if s == 8 { 60_000 } else { 40_000 }), 2.0, 10.0).unwrap().is_flat()
        );
    }

    #[test]
    fn a_run_too_short_has_no_verdict() {
        assert!(Memory::of(&samples(|_| 1)[..1], 0.0, 1.0).is_none());
    }
}
