//! MQSim on the same device and workload, for ratios.

mod config;

use super::cases::{Case, Flow};
use super::process::{self, End};
use anyhow::{Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

/// How a run of MQSim went.
pub(super) enum Rival {
    Ran {
        served: u64,
        asked: u64,
        /// CPU time of the simulated part, preconditioning and the building of the device apart.
        simulated: Duration,
        whole: Duration,
    },
    /// It aborted or did not end; the reason in one line.
    Failed(String),
}

/// The binary, given itself or its folder.
pub(super) fn locate(path: &Path) -> Result<PathBuf> {
    let file = if path.is_dir() { path.join("MQSim") } else { path.into() };
    if !file.is_file() {
        bail!("no MQSim binary at {}", file.display());
    }
    Ok(file.canonicalize()?)
}

/// Runs a case once, with configuration files in a folder of its own.
pub(super) fn run(binary: &Path, case: &Case, flow: &Flow, workload: &str) -> Result<Rival> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("ssdconfig.xml"), config::device(flow))?;
    fs::write(folder.path().join("workload.xml"), config::scenario(flow, case.requests, workload))?;
    let mut command = Command::new(binary);
    command.args(["-i", "ssdconfig.xml", "-w", "workload.xml"]).current_dir(folder.path());
    let mut marks = Marks::default();
    let finished = process::measure(&mut command, LIMIT, &mut |line, cpu| marks.line(line, cpu))?;
    Ok(match finished.end {
        End::TimedOut => Rival::Failed(format!("did not end within {} s", LIMIT.as_secs())),
        End::Exit(status) => marks.rival(finished.cpu).unwrap_or_else(|| {
            let said = finished.stderr.lines().rfind(|line| !line.trim().is_empty());
            Rival::Failed(format!("aborted ({status}): {}", said.unwrap_or(&marks.last)))
        }),
    })
}

/// What is read off the lines that MQSim prints.
#[derive(Default)]
struct Marks {
    /// CPU time when the simulated part began: after the last of several set-up steps, else at the start.
    began: Duration,
    ended: Option<Duration>,
    asked: Option<u64>,
    served: Option<u64>,
    last: String,
}

impl Marks {
    fn line(&mut self, line: &str, cpu: Duration) {
        if line.starts_with("Finished preconditioning") || line.ends_with("seems healthy") {
            self.began = cpu;
        } else if line.starts_with("MQSim finished") {
            self.ended = Some(cpu);
        } else if line.starts_with("Flow ") {
            self.asked = number_after(line, "generated:");
            self.served = number_after(line, "serviced:");
        }
        if !line.trim().is_empty() {
            self.last = line.into();
        }
    }

    fn rival(&self, whole: Duration) -> Option<Rival> {
        let simulated = self.ended?.checked_sub(self.began)?;
        Some(Rival::Ran { served: self.served?, asked: self.asked?, simulated, whole })
    }
}

fn number_after(line: &str, word: &str) -> Option<u64> {
    let (_, rest) = line.split_once(word)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(lines: &[(&str, u64)]) -> Marks {
        let mut marks = Marks::default();
        lines.iter().for_each(|(line, ms)| marks.line(line, Duration::from_millis(*ms)));
        marks
    }

    #[test]
    fn the_simulated_part_lies_between_set_up_and_the_end() {
        let marks = marks(&[
            ("Executing scenario 1 out of 1 .......", 5),
            ("SSD Device preconditioning started .........", 40),
            ("Finished preconditioning. Duration of preconditioning: 0:0:46", 46_000),
            ("[==>] 10% progress in Host.IO_Flow.Synth.No_0", 47_000),
            ("MQSim finished at Sat Nov 21 02:40:00 2026", 59_000),
            (
                "Flow Host.IO_Flow.Synth.No_0 - total requests generated: 1000000 total requests serviced:999937",
                59_100,
            ),
        ]);
        let Some(Rival::Ran { served, asked, simulated, whole }) = marks.rival(Duration::from_secs(60))
        else {
            panic!("no result")
        };
        assert_eq!((served, asked), (999_937, 1_000_000));
        assert_eq!((simulated, whole), (Duration::from_secs(13), Duration::from_secs(60)));
    }

    #[test]
    fn a_trace_begins_after_it_is_read_and_an_abort_has_no_figures() {
        assert_eq!(marks(&[("Trace file: x.trace seems healthy", 1650)]).began, Duration::from_millis(1650));
        let aborted =
            marks(&[("ERROR:Illegal operation: Unlocking an LPA that has not been locked!", 9), ("", 9)]);
        assert!(aborted.rival(Duration::from_secs(1)).is_none());
        assert!(aborted.last.starts_with("ERROR"));
    }
}
