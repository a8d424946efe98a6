//! Kernels of an accelerator, for `list` and `explain`.

use config::Diagnostic;
use nest::executed::{Area, Summary};
use nest::{Array, Counts, Grid, Kernel, Microblock, Paper, Piece, Section, programs_of_gpus};
use programs::kernels::{OnData, Program, entries, explained, of_programs};
use std::fmt::Write as _;

/// Name and description of every kernel that can be offloaded.
pub(crate) fn rows() -> Vec<(String, String)> {
    entries().map(|entry| (entry.name.to_owned(), entry.what)).collect()
}

/// Syntax of kernels as workloads.
pub(crate) const HELP: &str = "`atax:m=1024,n=1024,instances=6` sets sizes and instances (`explain atax`); `mx1:assignment=7` is one of 200 random assignments of a mix; \
     `nest:file=MY.toml` is your own loop nest (docs/kernels.md). bfs, nn and wc are executed on their data before the run, for an accelerator or a coprocessor. Several `--workload` run as applications side by side. \
     Loop nests also run on a GPU (`atax-gemm` side by side, `block=128` threads per block) and on a server, where an instance is a job.";

/// Describes a program, a mix or a user's own kernel, with operation counts. `text` is written as for `--workload`.
///
/// # Errors
/// The parameters are invalid, or the file is.
pub(crate) fn explain(text: &str) -> Result<Option<String>, Diagnostic> {
    // A GPU program has its own parameters: its nest is shown with defaults.
    if programs_of_gpus().iter().any(|(name, _)| *name == text) {
        let nests = of_programs(text)?;
        return Ok(nests.first().map(|one| described(&one.program)));
    }
    let Some(applications) = explained(text)? else { return Ok(None) };
    let parts: Vec<String> = applications.iter().map(|one| described(&one.program)).collect();
    Ok(Some(parts.join("\n\n")))
}

fn described(program: &Program) -> String {
    match program {
        Program::Nest(kernel) => nested(kernel),
        Program::Executed(on_data) => executed(on_data),
    }
}

fn nested(kernel: &Kernel) -> String {
    let name = kernel.name();
    let (where_else, parameters) = match is_of_gpu(kernel) {
        true => ("replaced by the program of the same name on a GPU", "instances"),
        false => (
            "also for a GPU, and for a server, where each instance is a job",
            "instances, block (threads per block on a GPU)",
        ),
    };
    let mut text = format!(
        "{name}: a kernel of an accelerator, {where_else}\n\n{}\n\nSizes; and {parameters}\n",
        kernel.about()
    );
    for (name, size) in kernel.sizes() {
        let _ = writeln!(text, "  {name} = {size}");
    }
    text.push_str("\nArrays\n");
    for array in kernel.arrays() {
        let Array { name, section, shape, .. } = array;
        let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "{}  {}", of_array(name, *section, array.bytes()), shape.join(" x "));
    }
    text.push_str("\nMicroblocks\n");
    for (number, microblock) in kernel.microblocks().iter().enumerate() {
        text.push_str(&of_microblock(kernel, number, microblock));
    }
    text.push_str(&counted(kernel));
    text
}

/// Returns whether a GPU runs a program of its own in place of the kernel.
fn is_of_gpu(kernel: &Kernel) -> bool {
    programs_of_gpus().iter().any(|(known, _)| *known == kernel.name())
}

fn of_microblock(kernel: &Kernel, number: usize, microblock: &Microblock) -> String {
    let counts = kernel.counts(&Piece::whole(number));
    let how = microblock
        .split
        .as_ref()
        .map_or("serial".to_owned(), |split| format!("{} screens at most", split.trips));
    let threads = match Grid::of(microblock).threads() {
        _ if is_of_gpu(kernel) => String::new(),
        [1, 1] => "; on a GPU 1 thread".to_owned(),
        [across, 1] => format!("; on a GPU {across} threads"),
        [across, down] => format!("; on a GPU {across} x {down} threads"),
    };
    let operations = counts.operations();
    format!("  {number}: {how}{threads}; {operations} operations. {}\n", microblock.about)
}

/// Describes a program whose work depends on its data, by executing it.
fn executed(on_data: &OnData) -> String {
    let program = on_data.program();
    let mut text =
        format!("{}: a program that is executed on its data before an accelerator runs it\n", program.name());
    if let Some(entry) = entries().find(|entry| entry.name == program.name()) {
        let _ = writeln!(text, "\n{}\n\nParameters", entry.what);
        for key in entry.keys {
            let default = if key.default.is_empty() { "none" } else { key.default };
            let _ = writeln!(text, "  {:12}{}; {default}", key.name, key.what);
        }
    }
    text.push_str("\nArrays\n");
    for Area { name, bytes, section } in program.arrays() {
        let _ = writeln!(text, "{}", of_array(&name, section, bytes));
    }
    let Summary { microblocks, serial, counts } = Summary::of(program);
    let bytes = [on_data.input_bytes(), on_data.bytes_of(Section::Output)];
    text.push_str(&of_instance([microblocks, serial], bytes, &counts, None));
    text
}

fn of_array(name: &str, section: Section, bytes: u64) -> String {
    let section = format!("{section:?}").to_lowercase();
    format!("  {name:12}{section:8}{:>12.2} MB", bytes as f64 / 1e6)
}

/// Operation counts of a kernel, and those of FlashAbacus, Table 2.
fn counted(kernel: &Kernel) -> String {
    let whole = |sum: Counts, number: usize| {
        let mut sum = sum;
        sum += kernel.counts(&Piece::whole(number));
        sum
    };
    let counts = (0..kernel.microblocks().len()).fold(Counts::default(), whole);
    let serial = kernel.microblocks().iter().filter(|microblock| microblock.split.is_none()).count();
    let microblocks = [kernel.microblocks().len() as u64, serial as u64];
    of_instance(microblocks, [kernel.input_bytes(), kernel.output_bytes()], &counts, kernel.paper())
}

/// Rows of counts, each beside the paper's: microblocks, serial microblocks, bytes of input and output, operations.
fn of_instance(
    [microblocks, serial]: [u64; 2],
    [input, output]: [u64; 2],
    counts: &Counts,
    paper: Option<&Paper>,
) -> String {
    let operations = counts.operations();
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let bki = input as f64 / (operations as f64 / 1e3);
    let of = |figure: fn(&Paper) -> String| paper.map(figure);
    let rows = [
        ("microblocks", microblocks.to_string(), of(|paper| paper.microblocks.to_string())),
        ("serial microblocks", serial.to_string(), of(|paper| paper.serial.to_string())),
        ("input", mb(input), of(|paper| format!("{} MB", paper.input))),
        ("output", mb(output), None),
        ("operations", operations.to_string(), None),
        (
            "loads and stores",
            format!("{:.2} %", 100.0 * counts.ldst()),
            of(|paper| format!("{} %", paper.ldst)),
        ),
        ("input per thousand operations", format!("{bki:.3} B"), of(|paper| format!("{} B", paper.bki))),
    ];
    let mut text = String::from("\nPer instance\n");
    for (name, value, of_table) in rows {
        let beside = of_table.map(|value| format!("  (FlashAbacus, Table 2: {value})")).unwrap_or_default();
        let _ = writeln!(text, "  {name:28}{value}{beside}");
    }
    text.truncate(text.trim_end().len());
    text
}
