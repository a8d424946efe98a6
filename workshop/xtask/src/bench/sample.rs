//! One run of `nandscape run --json`, read back.

use super::cases::{Case, Input};
use super::process::{self, End};
use super::{Dialect, profiles, sweeps};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Layouts that are read: that of today, and that of older builds.
const SCHEMAS: [&str; 2] = ["nandscape.result/2", "nandscape.result/1"];
const LIMIT: Duration = Duration::from_secs(600);

/// A run that completed all of its requests with all checks passed.
pub(super) struct Sample {
    pub(super) document: Value,
    pub(super) requests_per_cpu_s: f64,
    /// CPU time of the whole process, as the kernel counts it.
    pub(super) cpu: Duration,
}

/// Runs a case once, with one more `--set` where there is one; a result that is partial, failed or short of requests is an error, not a figure.
pub(super) fn take(binary: &Path, case: &Case, workload: &str, more: Option<&str>) -> Result<Sample> {
    if let Input::Profile(kernels) = case.input {
        return profiles::take(binary, kernels, workload);
    }
    if let Input::Sweep(text, runs) = case.input {
        return sweeps::take(binary, text, runs);
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
        let document: Value = serde_json::from_str(text).context("stdout is no JSON document")?;
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

    /// A count of the result document, by JSON pointer, per CPU second of the simulated part.
    pub(super) fn per_cpu_second(&self, pointer: &str) -> Result<f64> {
        Ok(self.number(pointer)? / self.number("/run/cpu_s")?)
    }

    /// A number of the result document, by JSON pointer.
    pub(super) fn number(&self, pointer: &str) -> Result<f64> {
        let schema = self.document["schema"].as_str().unwrap_or_default();
        self.document
            .pointer(&super::pointer(schema, pointer))
            .and_then(Value::as_f64)
            .with_context(|| format!("no number at {pointer}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cases::Metric;

    /// As much of the contract's document as is read here.
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
}
