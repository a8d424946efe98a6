//! Instructions of two builds for the same work, counted by callgrind: what other work on the machine cannot disturb.

use super::dialect::Dialect;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A run at two sizes. What the larger takes beyond the smaller is free of the program's start and of preconditioning.
struct Piece {
    name: &'static str,
    system: &'static str,
    /// `{}` stands for the size, here and in the arguments.
    workload: &'static str,
    arguments: &'static [&'static str],
    sizes: [u32; 2],
}

const WRITTEN_ONCE: &[&str] = &["--precondition", "sequential:share=90%"];
const JOBS: &[&str] = &["--set", "cpu.load.jobs={}", "--set", "cpu.fill_jobs=2000"];

const PIECES: &[Piece] = &[
    drive("randread", "d16", "fio:rw=randread,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    drive("randwrite", "d16", "fio:rw=randwrite,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    drive("mixed", "pm9a3", "fio:rw=randrw,bs=4k,iodepth=64,norandommap=1,number_ios={}"),
    Piece {
        name: "seqread",
        system: "d16",
        workload: "fio:rw=read,bs=128k,iodepth=16,number_ios={}",
        arguments: WRITTEN_ONCE,
        sizes: [500, 4_000],
    },
    Piece {
        name: "jobs",
        system: "d16",
        workload: "fio:rw=randread,bs=4k,numjobs=1000,norandommap=1,number_ios={}",
        arguments: WRITTEN_ONCE,
        sizes: [20, 60],
    },
    graph("ideal-bfs1", "ideal", "bfs1:scale={}"),
    graph("zng-bfs1", "zng", "bfs1:scale={}"),
    graph("hybridgpu-bfs1", "hybridgpu", "bfs1:scale={}"),
    server("dram-only-tatp", "dram-only"),
    server("astriflash-tatp", "astriflash"),
];

const fn drive(name: &'static str, system: &'static str, workload: &'static str) -> Piece {
    Piece { name, system, workload, arguments: WRITTEN_ONCE, sizes: [20_000, 80_000] }
}

const fn graph(name: &'static str, system: &'static str, workload: &'static str) -> Piece {
    Piece { name, system, workload, arguments: &[], sizes: [9, 12] }
}

const fn server(name: &'static str, system: &'static str) -> Piece {
    Piece { name, system, workload: "tatp", arguments: JOBS, sizes: [1_000, 3_000] }
}

/// A table of both builds, piece by piece.
///
/// # Errors
/// No Valgrind, or a run that fails.
pub(super) fn compare(ours: &Path, theirs: &Path, only: Option<&str>) -> Result<String> {
    let mut text =
        String::from("instructions for the same work, in millions (above 1: the other build needs more)\n");
    for piece in PIECES.iter().filter(|piece| only.is_none_or(|name| name == piece.name)) {
        eprintln!("{} under callgrind …", piece.name);
        let (own, other) = (piece.cost(ours)?, piece.cost(theirs)?);
        let line = format!(
            "{:<16} {:>10.1} the other build {:>10.1} ratio {:.3}",
            piece.name,
            own as f64 / 1e6,
            other as f64 / 1e6,
            other as f64 / own as f64
        );
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
}

impl Piece {
    /// Instructions that the larger size takes beyond the smaller.
    fn cost(&self, binary: &Path) -> Result<u64> {
        let [small, large] = self.sizes.map(|size| self.instructions(binary, size));
        let (small, large) = (small?, large?);
        large
            .checked_sub(small)
            .with_context(|| format!("{}: {large} instructions for more, {small} for less", self.name))
    }

    fn instructions(&self, binary: &Path, size: u32) -> Result<u64> {
        let sized = |text: &str| text.replace("{}", &size.to_string());
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
        command.args(["run", self.system, "--seed", "1", "--json", "--workload", &sized(self.workload)]);
        let dialect = Dialect::of(binary);
        command.args(self.arguments.iter().map(|argument| dialect.argument(&sized(argument))));
        let output = command.output().context("valgrind did not start")?;
        let said = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            bail!("{} failed ({}): {}", self.name, output.status, said.trim_end());
        }
        collected(&said).with_context(|| format!("callgrind counted nothing: {}", said.trim_end()))
    }
}

/// The count in what callgrind says at its end.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().rev().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_at_the_end_of_its_line() {
        let said = "==7== Events    : Ir\n==7== Collected : 10584004029\n==7==\n";
        assert_eq!(collected(said), Some(10_584_004_029));
        assert_eq!(collected("==7== Command: x\n"), None);
    }

    #[test]
    fn sizes_grow_and_are_used() {
        for piece in PIECES {
            assert!(piece.sizes[0] < piece.sizes[1]);
            let is_sized = |text: &str| text.contains("{}");
            assert!(is_sized(piece.workload) || piece.arguments.iter().any(|argument| is_sized(argument)));
        }
    }
}
