//! Samples of a bench: one run of `nandscape run --json`, read back; one of `nandscape sample` on a profile that is
//! made up; a sweep whose runs share a state, beside one whose runs precondition their own.

use super::Dialect;
use super::cases::{Case, Input};
use super::process::{self, End};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Layouts that are read: the current one, and that of older builds.
const SCHEMAS: [&str; 2] = ["nandscape.result/2", "nandscape.result/1"];
const LIMIT: Duration = Duration::from_secs(600);

/// Run that completed all of its requests with all checks passed.
pub(super) struct Sample {
    pub(super) document: Value,
    pub(super) requests_per_cpu_s: f64,
    /// CPU time of the whole process, as counted by the kernel.
    pub(super) cpu: Duration,
}

/// Runs a case once, with an additional `--set` if given. A partial, failed or incomplete result is an error.
pub(super) fn take(binary: &Path, case: &Case, workload: &str, more: Option<&str>) -> Result<Sample> {
    if let Input::Profile(kernels) = case.input {
        return take_profile(binary, kernels, workload);
    }
    if let Input::Sweep(text, runs) = case.input {
        return take_sweep(binary, text, runs);
    }
    let dialect = Dialect::of(binary);
    let mut command = Command::new(binary);
    command.args(["run", case.system, "--workload", workload, "--seed", "1", "--json"]);
    case.set.iter().copied().chain(more).for_each(|assignment| {
        command.args(["--set", &dialect.argument(assignment)]);
    });
    if let Some(precondition) = case.precondition {
        command.args(["--precondition", precondition]);
    }
    let mut text = String::new();
    let finished = process::measure(&mut command, LIMIT, &mut |line, _| {
        text.push_str(line);
        text.push('\n');
    })?;
    match finished.end {
        End::Exit(status) if status.success() => {}
        End::Exit(status) => bail!("nandscape failed ({status}): {}", finished.stderr.trim_end()),
        End::TimedOut => bail!("nandscape ran past {} s", LIMIT.as_secs()),
    }
    Sample::parse(&text, case.requests, finished.cpu)
}

impl Sample {
    fn parse(text: &str, requests: u64, cpu: Duration) -> Result<Sample> {
        let document: Value = serde_json::from_str(text).context("stdout is not a JSON document")?;
        if !SCHEMAS.iter().any(|schema| document["schema"] == *schema) {
            bail!("schema {} instead of \"{}\"", document["schema"], SCHEMAS[0]);
        }
        if document["ok"] != true || document["partial"] == true {
            bail!("ok is {}, partial is {}", document["ok"], document["partial"]);
        }
        let mut sample = Sample { document, requests_per_cpu_s: 0.0, cpu };
        let completed = sample.number("/io/all/requests")?;
        if completed != requests as f64 {
            bail!("{completed} requests completed instead of {requests}");
        }
        sample.requests_per_cpu_s = sample.number("/run/requests_per_cpu_s")?;
        // The binary's own clock covers a part of what the kernel saw; 20 ms allow for coarse ticks.
        let own = sample.number("/run/cpu_s")?;
        if own > cpu.as_secs_f64() + 0.02 {
            bail!("run.cpu_s is {own}, yet the whole process used {} s", cpu.as_secs_f64());
        }
        Ok(sample)
    }

    /// Count of the result document, by JSON pointer, per CPU second of the simulated part.
    pub(super) fn per_cpu_second(&self, pointer: &str) -> Result<f64> {
        Ok(self.number(pointer)? / self.number("/run/cpu_s")?)
    }

    /// Number of the result document, by JSON pointer.
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        let schema = self.document["schema"].as_str().unwrap_or_default();
        self.document
            .pointer(&super::pointer(schema, pointer))
            .and_then(Value::as_f64)
            .with_context(|| format!("no number at {pointer}"))
    }
}

const PROFILE_SCHEMA: &str = "nandscape.sample/1";

/// Number of kinds of kernels: as many as start for a token of GPT-2 in MQMS's table 1.
const KINDS: u64 = 350;

/// Path of a profile of this many kernels while it is measured.
pub(super) fn profile_path(kernels: u64) -> PathBuf {
    std::env::temp_dir().join(format!("nandscape-bench-{}-{kernels}.csv.gz", std::process::id()))
}

/// Writes a profile: kinds in turn, a spread of 10 % in each, and one kernel in 50 that takes three times as long.
pub(super) fn write_profile(path: &Path, kernels: u64) -> Result<()> {
    let file =
        BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?);
    let mut out = BufWriter::new(GzEncoder::new(file, Compression::fast()));
    writeln!(out, "id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name")?;
    let mut word = 1_u64;
    for kernel in 0..kernels {
        // D. E. Knuth's constants for a linear congruential generator; the upper bits are good enough for a spread.
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (spread, kind) = (word >> 33 & 1023, kernel % KINDS);
        let rare = if word >> 50 & 1023 < 20 { 3 } else { 1 };
        let ns = (2000 + 700 * kind) * (9 * 1024 + 2 * spread) / 10_240 * rare;
        writeln!(
            out,
            "{kernel},{}.000,{}.{:03},0,7,{}x1x1,128x1x1,32,0,27,\"void kernel_{}<float, {}>(float*)\"",
            kernel * 300,
            ns / 1000,
            ns % 1000,
            kind * 8 + 1,
            kind % 60,
            kind % 7,
        )?;
    }
    out.into_inner().map_err(|fault| fault.into_error())?.finish()?.flush()?;
    Ok(())
}

/// Samples a profile once; the document also has the CPU time of `gzip -t` on the same file.
pub(super) fn take_profile(binary: &Path, kernels: u64, path: &str) -> Result<Sample> {
    let mut text = String::new();
    let mut command = Command::new(binary);
    command.args(["sample", path, "--error", "5%", "--json"]);
    let cpu = run_profile(&mut command, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    let mut document: Value = serde_json::from_str(&text).context("stdout is not a JSON document")?;
    if document["schema"] != PROFILE_SCHEMA || document["kernels"] != kernels {
        bail!("schema {}, {} kernels instead of {kernels}", document["schema"], document["kernels"]);
    }
    let error = document["actual_error"].as_f64().context("no actual error")?;
    if error.abs() > 0.05 {
        bail!("the prediction is off by {error}");
    }
    let reading = run_profile(Command::new("gzip").args(["-t", path]), &mut |_| ())?;
    // A tick at least: a small file is unpacked in less.
    document["unpacking_cpu_s"] = reading.as_secs_f64().max(0.01).into();
    Ok(Sample { document, requests_per_cpu_s: 0.0, cpu })
}

fn run_profile(command: &mut Command, on_line: &mut dyn FnMut(&str)) -> Result<Duration> {
    let name = command.get_program().to_string_lossy().into_owned();
    let finished = process::measure(command, LIMIT, &mut |line, _| on_line(line))?;
    match finished.end {
        End::Exit(status) if status.success() => Ok(finished.cpu),
        End::Exit(status) => bail!("{name} failed ({status}): {}", finished.stderr.trim_end()),
        End::TimedOut => bail!("{name} ran past {} s", LIMIT.as_secs()),
    }
}

/// Runs a sweep of this many runs with shared states and without; the tables must be equal.
pub(super) fn take_sweep(binary: &Path, text: &str, runs: usize) -> Result<Sample> {
    let folder = std::env::temp_dir().join(format!("nandscape-bench-{}-sweep", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let taken = both_sweeps(binary, text, runs, &folder);
    std::fs::remove_dir_all(&folder)?;
    taken
}

fn both_sweeps(binary: &Path, text: &str, runs: usize, folder: &Path) -> Result<Sample> {
    let file = folder.join("sweep.toml");
    std::fs::write(&file, text)?;
    let shared = run_sweep(binary, &file, &folder.join("shared"), &[])?;
    let apart = run_sweep(binary, &file, &folder.join("apart"), &["--state-cache", "none"])?;
    if shared.table != apart.table {
        bail!("the table of runs that share a state differs");
    }
    // The header is a line.
    let rows = shared.table.lines().count().saturating_sub(1);
    if rows != runs {
        bail!("{rows} runs instead of {runs}");
    }
    let document = json!({
        "cpu_apart_over_shared": apart.cpu.as_secs_f64() / shared.cpu.as_secs_f64(),
        "wall_apart_over_shared": apart.wall.as_secs_f64() / shared.wall.as_secs_f64(),
    });
    Ok(Sample { document, requests_per_cpu_s: 0.0, cpu: shared.cpu })
}

struct SweepRun {
    table: String,
    cpu: Duration,
    wall: Duration,
}

fn run_sweep(binary: &Path, file: &Path, out: &Path, more: &[&str]) -> Result<SweepRun> {
    let mut command = Command::new(binary);
    command.arg("--quiet").arg("sweep").arg(file).arg("--out").arg(out).args(more);
    let begin = Instant::now();
    let finished = process::measure(&mut command, LIMIT, &mut |_, _| ())?;
    let wall = begin.elapsed();
    match finished.end {
        End::Exit(status) if status.success() => {}
        End::Exit(status) => bail!("nandscape failed ({status}): {}", finished.stderr.trim_end()),
        End::TimedOut => bail!("nandscape ran past {} s", LIMIT.as_secs()),
    }
    let table = std::fs::read_to_string(out.join("summary.csv"))?;
    Ok(SweepRun { table, cpu: finished.cpu, wall })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cases::Metric;
    use std::io::Read;

    /// Part of the contract's document that is read here.
    const RESULT: &str = r#"{
        "schema": "nandscape.result/2", "system": "d16", "seed": 1, "version": "0.1.0", "ok": true, "partial": false,
        "simulated_ns": 2100000000, "warnings": [],
        "run": { "wall_s": 0.41, "cpu_s": 0.40, "precondition_cpu_s": 0.125, "events": 6000000, "requests_per_cpu_s": 2500000.0,
                 "peak_rss_bytes": 50331648 },
        "gpu": [{ "name": "gpu", "ipc": 1.5, "warp_instructions": 1200000 }],
        "io": { "all": { "requests": 1000000, "bytes": 4096000000, "iops": 476190.5 }, "trim": null }
    }"#;

    fn parse(text: &str) -> Result<Sample> {
        Sample::parse(text, 1_000_000, Duration::from_millis(550))
    }

    #[test]
    fn each_metric_reads_its_field() {
        let sample = parse(RESULT).unwrap();
        let value = |metric: Metric| metric.value(&sample).unwrap();
        assert_eq!(value(Metric::RequestsPerCpuSecond), 2.5e6);
        assert_eq!(value(Metric::PagesPerCpuSecond(32)), 80.0e6);
        assert_eq!(value(Metric::InstructionsPerCpuSecond), 3.0e6);
        assert_eq!(value(Metric::EventsPerCpuSecond), 15.0e6);
        assert_eq!(value(Metric::PreconditionSeconds), 0.125);
        assert_eq!(value(Metric::PeakRssMebibytes), 48.0);
        assert_eq!(value(Metric::ProcessCpuMilliseconds), 550.0);
    }

    #[test]
    fn a_bad_run_is_no_figure() {
        for (good, bad, word) in [
            ("result/2", "result/3", "schema"),
            ("\"ok\": true", "\"ok\": false", "ok is false"),
            ("\"partial\": false", "\"partial\": true", "partial is true"),
            ("\"requests\": 1000000", "\"requests\": 999937", "999937"),
            ("\"cpu_s\": 0.40", "\"cpu_s\": 0.60", "whole process"),
            ("\"requests_per_cpu_s\"", "\"requests_per_s\"", "/run/requests_per_cpu_s"),
        ] {
            let error = parse(&RESULT.replace(good, bad)).err().unwrap().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn as_many_rows_as_asked_for_and_every_kind() {
        let path = profile_path(777);
        write_profile(&path, 777).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(File::open(&path).unwrap()).read_to_string(&mut text).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), 778);
        let grids: std::collections::BTreeSet<&str> =
            text.lines().skip(1).filter_map(|line| line.split(',').nth(5)).collect();
        assert_eq!(grids.len() as u64, KINDS);
        assert!(
            text.lines().skip(1).all(|line| line.split(',').nth(2).unwrap().parse::<f64>().unwrap() > 1.0)
        );
    }
}
