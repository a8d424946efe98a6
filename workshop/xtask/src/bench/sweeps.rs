//! Sweeps whose runs share a state: what they take, and what they take when each run preconditions its own.

use super::process::{self, End};
use super::sample::Sample;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);

/// Runs a sweep of so many runs with shared states and with none; the tables must be the same.
pub(super) fn take(binary: &Path, text: &str, runs: usize) -> Result<Sample> {
    let folder = std::env::temp_dir().join(format!("nandscape-bench-{}-sweep", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let taken = both(binary, text, runs, &folder);
    std::fs::remove_dir_all(&folder)?;
    taken
}

fn both(binary: &Path, text: &str, runs: usize, folder: &Path) -> Result<Sample> {
    let file = folder.join("sweep.toml");
    std::fs::write(&file, text)?;
    let shared = run(binary, &file, &folder.join("shared"), &[])?;
    let apart = run(binary, &file, &folder.join("apart"), &["--state-cache", "none"])?;
    if shared.table != apart.table {
        bail!("the table of runs that share a state is another one");
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

struct Run {
    table: String,
    cpu: Duration,
    wall: Duration,
}

fn run(binary: &Path, file: &Path, out: &Path, more: &[&str]) -> Result<Run> {
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
    Ok(Run { table, cpu: finished.cpu, wall })
}
