//! `nandscape trace inspect | convert | sample | capture`.

#[cfg(unix)]
use crate::commands::capture;
use crate::options;
use crate::options::{TraceArgs, time};
use crate::output::{Fault, Files, print, print_with, wrapped, write_whole_with};
use crate::outside::catch_interrupts;
use crate::progress::Lines;
use clap::Subcommand;
use config::Diagnostic;
use config::units::Share;
use requests::trace::{
    ConvertOptions, Converted, Remap, Sample, TraceReader, convert, inspect, written_formats,
};
use std::path::{Path, PathBuf};

/// Arguments of `trace`.
#[derive(clap::Args)]
#[command(
    after_help = "`list formats` shows the formats of traces, and of recorded server programs for `run`."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show format, span, rates, sizes, footprint, streams and faults of traces
    Inspect(InspectArgs),
    /// Convert a trace to a different format
    Convert(ConvertArgs),
    /// Write a part of a trace
    Sample(SampleArgs),
    /// Record instructions and memory accesses of a program with Valgrind, for a server; with --syscalls its system
    /// calls, for a host
    #[cfg(unix)]
    Capture(capture::Args),
}

#[derive(clap::Args)]
struct InspectArgs {
    /// Trace files, plain or compressed
    #[arg(required = true)]
    file: Vec<PathBuf>,
    /// Print the inspections as a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

#[derive(clap::Args)]
struct ConvertArgs {
    /// Trace file, plain or compressed
    file: PathBuf,
    /// Format to write; `list formats` names those that can be written
    #[arg(long)]
    to: String,
    /// File to write; standard output if left out
    #[arg(short, long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    trace: TraceArgs,
}

#[derive(clap::Args)]
struct SampleArgs {
    /// Trace file, plain or compressed
    file: PathBuf,
    #[command(flatten)]
    kept: Kept,
    /// Seed for drawing --share
    #[arg(long, default_value_t = 1, requires = "share", value_parser = options::whole)]
    seed: u64,
    /// Format to write; by default that of the trace, if it can be written
    #[arg(long)]
    to: Option<String>,
    /// File to write; standard output if left out
    #[arg(short, long)]
    out: Option<PathBuf>,
    #[command(flatten)]
    trace: TraceArgs,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Kept {
    /// Keep the first N requests
    #[arg(long, value_name = "N", value_parser = options::whole)]
    first: Option<u64>,
    /// Keep the first of every K requests
    #[arg(long, value_name = "K", value_parser = options::whole)]
    every: Option<u64>,
    /// Keep the requests from one time up to another, such as 10s..20s
    #[arg(long, value_name = "FROM..TO")]
    window: Option<String>,
    /// Keep a pseudo-random share, such as 10%
    #[arg(long)]
    share: Option<String>,
}

/// Runs the subcommand; returns whether everything succeeded.
///
/// # Errors
/// The input is unusable.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    match &args.command {
        Command::Inspect(args) => run_inspect(args),
        Command::Convert(args) => {
            let mut reader = open(&args.file, &args.trace)?;
            write(&mut reader, &args.file, &args.to, None, args.out.as_deref(), &args.trace)
        }
        Command::Sample(args) => run_sample(args),
        #[cfg(unix)]
        Command::Capture(args) => capture::run(args),
    }
}

/// Inspects every file; readable files are shown even if others fail.
fn run_inspect(args: &InspectArgs) -> Result<bool, Fault> {
    let options = args.trace.options(Remap::Error)?;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for file in &args.file {
        let _lines = Lines::about(format!("reading {}", file.display()));
        match inspect(file, &options) {
            Ok(inspection) => good.push(inspection),
            Err(diagnostic) => bad.push(diagnostic),
        }
    }
    if !good.is_empty() {
        let text = if args.json {
            // Numbers, strings and lists of them: serialising cannot fail.
            serde_json::to_string_pretty(&good).unwrap_or_default()
        } else {
            let texts: Vec<String> = good.iter().map(|one| one.to_string().trim_end().to_owned()).collect();
            wrapped(&texts.join("\n\n"))
        };
        print(&text)?;
    }
    let mut bad = bad.into_iter();
    match bad.next() {
        Some(first) => Err(first.also(bad).into()),
        None => Ok(true),
    }
}

fn run_sample(args: &SampleArgs) -> Result<bool, Fault> {
    let sample = match &args.kept {
        Kept { first: Some(n), .. } => Sample::First(*n),
        Kept { every: Some(k), .. } => Sample::Every(*k),
        Kept { window: Some(text), .. } => window(text)?,
        Kept { share, .. } => {
            let share: Share = share.as_deref().unwrap_or_default().parse()?;
            Sample::Share { share: share.get(), seed: args.seed }
        }
    };
    let mut reader = open(&args.file, &args.trace)?;
    let to = match &args.to {
        Some(to) => to.clone(),
        None => own_format(&args.file, &reader)?,
    };
    write(&mut reader, &args.file, &to, Some(sample), args.out.as_deref(), &args.trace)
}

/// Parses a window such as `10s..20s`.
fn window(text: &str) -> Result<Sample, Diagnostic> {
    let Some((start, end)) = text.split_once("..") else {
        return Err(Diagnostic::new(format!("`{text}` is not a window of time"))
            .help("--window takes two times, start included and end excluded: 10s..20s"));
    };
    Ok(Sample::Window { start: time(start)?, end: time(end)? })
}

/// Format that a trace was read as, if it can be written.
fn own_format(file: &Path, reader: &TraceReader) -> Result<String, Diagnostic> {
    let format = reader.notes().format;
    if written_formats().any(|written| written == format) {
        return Ok(format.to_owned());
    }
    let written: Vec<&str> = written_formats().collect();
    Err(Diagnostic::new(format!("the format `{format}` of {} cannot be written", file.display()))
        .help(format!("choose --to from {}; csv can hold everything", written.join(", "))))
}

/// Opens a trace once, as it may be a pipe.
fn open(file: &Path, trace: &TraceArgs) -> Result<TraceReader, Diagnostic> {
    TraceReader::open(file, &trace.options(Remap::Error)?)
}

fn write(
    reader: &mut TraceReader,
    file: &Path,
    to: &str,
    sample: Option<Sample>,
    out: Option<&Path>,
    trace: &TraceArgs,
) -> Result<bool, Fault> {
    let name = file.display().to_string();
    Files::default().reads_named("FILE", &name).writes("--out", out).apart()?;
    let options = ConvertOptions { to: to.to_owned(), sample, lenient: trace.lenient };
    catch_interrupts()?;
    let lines = Lines::about(format!("reading {}", file.display()));
    let converted = match out {
        Some(path) => write_whole_with(path, |mut file| convert(reader, &options, &mut file))?,
        None => print_with(|mut out| convert(reader, &options, &mut out))?,
    };
    drop(lines);
    // Notes on losses and guesses; standard output may carry the trace itself.
    for warning in reader.notes().warnings().into_iter().chain(losses(&converted, to)) {
        tell!("note: {warning}");
    }
    Ok(true)
}

fn losses(converted: &Converted, to: &str) -> Vec<String> {
    let counts = [
        (converted.not_sampled, "requests are not in the sample".to_owned()),
        (converted.unwritable, format!("requests left out: `{to}` cannot represent them")),
        (converted.times_cut, format!("times were truncated to the unit of `{to}`")),
        (converted.fua_lost, format!("requests lost force unit access: `{to}` cannot represent it")),
    ];
    let mut lines = vec![format!("{} requests written", converted.written)];
    lines.extend(counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    lines
        .extend(converted.renamed.iter().map(|(old, new)| format!("the stream `{old}` was renamed `{new}`")));
    lines
}
