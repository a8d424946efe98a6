//! Profiles of GPU kernels for `nandscape sample`: made up, packed, and what only unpacking them takes.

use super::process::{self, End};
use super::sample::Sample;
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SCHEMA: &str = "nandscape.sample/1";
const LIMIT: Duration = Duration::from_secs(600);
/// Kinds of kernels: as many as start for a token of GPT-2 in MQMS's table 1.
const KINDS: u64 = 350;

/// Where a profile of so many kernels lies while it is measured.
pub(super) fn path(kernels: u64) -> PathBuf {
    std::env::temp_dir().join(format!("nandscape-bench-{}-{kernels}.csv.gz", std::process::id()))
}

/// Writes a profile: kinds that take turns, a spread of 10 % in each, and one kernel in 50 that takes three times as long.
pub(super) fn write(path: &Path, kernels: u64) -> Result<()> {
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

/// Samples a profile once; the document has the CPU time of `gzip -t` on the same file beside it.
pub(super) fn take(binary: &Path, kernels: u64, path: &str) -> Result<Sample> {
    let mut text = String::new();
    let mut command = Command::new(binary);
    command.args(["sample", path, "--error", "5%", "--json"]);
    let cpu = run(&mut command, &mut |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    let mut document: Value = serde_json::from_str(&text).context("stdout is no JSON document")?;
    if document["schema"] != SCHEMA || document["kernels"] != kernels {
        bail!("schema {}, {} kernels instead of {kernels}", document["schema"], document["kernels"]);
    }
    let error = document["actual_error"].as_f64().context("no actual error")?;
    if error.abs() > 0.05 {
        bail!("the prediction is off by {error}");
    }
    let reading = run(Command::new("gzip").args(["-t", path]), &mut |_| ())?;
    // A tick at least: a small file is unpacked in less.
    document["unpacking_cpu_s"] = reading.as_secs_f64().max(0.01).into();
    Ok(Sample { document, requests_per_cpu_s: 0.0, cpu })
}

fn run(command: &mut Command, on_line: &mut dyn FnMut(&str)) -> Result<Duration> {
    let name = command.get_program().to_string_lossy().into_owned();
    let finished = process::measure(command, LIMIT, &mut |line, _| on_line(line))?;
    match finished.end {
        End::Exit(status) if status.success() => Ok(finished.cpu),
        End::Exit(status) => bail!("{name} failed ({status}): {}", finished.stderr.trim_end()),
        End::TimedOut => bail!("{name} ran past {} s", LIMIT.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn as_many_rows_as_asked_for_and_every_kind() {
        let path = path(777);
        write(&path, 777).unwrap();
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
