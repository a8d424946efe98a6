//! Kernels of an accelerator, for `list` and `explain`.

use config::Diagnostic;
use nest::{Counts, Kernel, Microblock, Paper, Piece};
use std::fmt::Write as _;
use workload::kernels::{entries, explained};

/// Name, and what it is, of everything that can be offloaded.
pub(crate) fn rows() -> Vec<(String, String)> {
    entries().map(|entry| (entry.name.to_owned(), entry.what)).collect()
}

/// How they are written.
pub(crate) const HELP: &str = "`atax:m=1024,n=1024,instances=6` sets sizes and instances (`explain atax`); `mx1:assignment=7` is one of 200 drawings of a mix; \
     `nest:file=MY.toml` is your own (docs/kernels.md). Several `--workload` are applications side by side.";

/// What a program, a mix or a user's own kernel does, counted. `text` is written as for `--workload`.
///
/// # Errors
/// Parameters that cannot be, or what is wrong with a file.
pub(crate) fn explain(text: &str) -> Result<Option<String>, Diagnostic> {
    let Some(applications) = explained(text)? else { return Ok(None) };
    let parts: Vec<String> = applications.iter().map(|one| described(&one.kernel)).collect();
    Ok(Some(parts.join("\n\n")))
}

fn described(kernel: &Kernel) -> String {
    let mut text = format!("{}: a kernel of an accelerator\n\n{}\n\nSizes\n", kernel.name(), kernel.about());
    for (name, size) in kernel.sizes() {
        let _ = writeln!(text, "  {name} = {size}");
    }
    text.push_str("\nArrays\n");
    for array in kernel.arrays() {
        let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
        let section = format!("{:?}", array.section).to_lowercase();
        let _ = writeln!(
            text,
            "  {:12}{section:8}{:>12.2} MB  {}",
            array.name,
            array.bytes() as f64 / 1e6,
            shape.join(" x ")
        );
    }
    text.push_str("\nMicroblocks\n");
    for (number, microblock) in kernel.microblocks().iter().enumerate() {
        text.push_str(&of_microblock(kernel, number, microblock));
    }
    text.push_str(&counted(kernel));
    text
}

fn of_microblock(kernel: &Kernel, number: usize, microblock: &Microblock) -> String {
    let counts = kernel.counts(&Piece::whole(number));
    let how = microblock
        .split
        .as_ref()
        .map_or("serial".to_owned(), |split| format!("{} screens at most", split.trips));
    format!("  {number}: {how}; {} operations. {}\n", counts.operations(), microblock.about)
}

/// A figure, and what Table 2 of FlashAbacus has for it.
fn counted(kernel: &Kernel) -> String {
    let whole = |sum: Counts, number: usize| {
        let mut sum = sum;
        sum += kernel.counts(&Piece::whole(number));
        sum
    };
    let counts = (0..kernel.microblocks().len()).fold(Counts::default(), whole);
    let operations = counts.operations();
    let serial = kernel.microblocks().iter().filter(|microblock| microblock.split.is_none()).count();
    let bki = kernel.input_bytes() as f64 / (operations as f64 / 1e3);
    let paper = kernel.paper();
    let of = |figure: fn(&Paper) -> String| paper.map(figure);
    let rows = [
        ("microblocks", kernel.microblocks().len().to_string(), of(|paper| paper.microblocks.to_string())),
        ("serial microblocks", serial.to_string(), of(|paper| paper.serial.to_string())),
        (
            "input",
            format!("{:.1} MiB", kernel.input_bytes() as f64 / f64::from(1 << 20)),
            of(|paper| format!("{} MB", paper.input)),
        ),
        ("output", format!("{:.1} MiB", kernel.output_bytes() as f64 / f64::from(1 << 20)), None),
        ("operations", operations.to_string(), None),
        (
            "loads and stores",
            format!("{:.2} %", 100.0 * counts.ldst()),
            of(|paper| format!("{} %", paper.ldst)),
        ),
        ("input a thousand operations", format!("{bki:.3} B"), of(|paper| format!("{} B", paper.bki))),
    ];
    let mut text = String::from("\nOf an instance\n");
    for (name, value, of_table) in rows {
        let beside = of_table.map(|value| format!("  (FlashAbacus, Table 2: {value})")).unwrap_or_default();
        let _ = writeln!(text, "  {name:28}{value}{beside}");
    }
    text.truncate(text.trim_end().len());
    text
}
