//! The `nandscape` command.
//!
//! * Knows every command with its arguments, files, progress and exit codes.
//! * Does not know how anything is simulated or drawn.
//! * Read first: `commands/mod.rs`; then `commands/run.rs`.

/// Prints a line on standard error. Control characters in names of files, jobs and traces are replaced.
macro_rules! tell {
    ($($text:tt)*) => {
        eprintln!("{}", config::plain(&format!($($text)*)))
    };
}

mod calibration;
mod commands;
mod complete;
mod glossary;
mod imported;
mod observe;
mod options;
mod output;
mod outside;
mod pages;
mod progress;
mod results;
mod states;
mod sweep_shown;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use output::Fault;
use std::process::ExitCode;
use std::sync::LazyLock;

/// Text of `--version`.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("NANDSCAPE_COMMIT"), ")");

/// Text of `--version` with the revision of the results.
static LONG_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION}\nresults {}: {}", identity::RESULTS, identity::CHANGE));

/// Allocator under musl, whose own takes one lock for all jobs of a sweep.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A simulator for computers that put flash next to compute.
///
/// Exit status: 0 success; 1 a check failed or work was left undone; 2 unusable input, explained by one diagnostic.
#[derive(Parser)]
#[command(version = VERSION, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Suppress progress bars and lines
    #[arg(long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run workloads on a system
    Run(Box<commands::run::Args>),
    /// Run every combination of the values in a TOML file
    Sweep(commands::sweep::Args),
    /// Check a system and print its resolved spec
    Check(Box<commands::check::Args>),
    /// Write a starter system file: every key, commented, with the source of its value
    Init(commands::init::Args),
    /// List systems, workloads, programs, trace formats, fio options and policies
    List(commands::list::Args),
    /// Explain a policy, trace format, fio option, system, workload, program, metric or spec key
    Explain(commands::explain::Args),
    /// Report what limits a run: where time went, what slow requests waited for, which keys to try
    ExplainRun(commands::explain_run::Args),
    /// List spec keys with kind, unit and meaning
    Params(commands::params::Args),
    /// Print the JSON Schema of a system file or a result
    Schema(commands::schema::Args),
    /// Inspect, convert, sample and capture traces
    Trace(Box<commands::trace::Args>),
    /// Choose which kernels of a GPU profile to simulate, and predict the total time from them
    Sample(commands::sample::Args),
    /// Import configurations of MQSim and SimpleSSD, and results of fio
    Import(commands::import::Args),
    /// Fit a drive to fio measurements: a few values to a few metrics; the rest is predicted
    Fit(Box<commands::fit::Args>),
    /// Rank the keys of a spec by their effect on a metric
    Sensitivity(Box<commands::sensitivity::Args>),
    /// Compare two results
    Diff(commands::diff::Args),
    /// Draw results as one HTML file: a run, a comparison of two, several runs, or a sweep
    Report(commands::report::Args),
    /// Print a shell completion script
    Completions(commands::completions::Args),
    /// Write man pages into a folder
    Man(commands::man::Args),
    /// Write the generated pages of the manual
    #[command(name = "gen-docs", hide = true)]
    GenDocs(commands::gen_docs::Args),
    /// Run one point of a sweep, on a worker of a cluster
    #[command(hide = true)]
    Point(commands::point::Args),
    /// Compare results with closed forms, papers and other simulators
    Reproduce(commands::reproduce::Args),
}

/// Accepts `-1` as the value of an option, so that the diagnostic is about the value.
fn signed(command: clap::Command) -> clap::Command {
    let signed_arg = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(signed_arg).mut_subcommands(signed)
}

/// Exits with clap's message, which quotes the arguments. If they contain terminal escapes, the message is plain.
fn refused(fault: &clap::Error) -> ! {
    let moves = |argument: std::ffi::OsString| argument.to_string_lossy().contains(char::is_control);
    if fault.use_stderr() && std::env::args_os().any(moves) {
        tell!("{}", fault.to_string().trim_end());
        std::process::exit(fault.exit_code());
    }
    fault.exit()
}

fn main() -> ExitCode {
    clap_complete::CompleteEnv::with_factory(Cli::command).var(complete::VARIABLE).complete();
    identity::built_from(env!("NANDSCAPE_COMMIT"));
    let parsed = signed(Cli::command().long_version(LONG_VERSION.as_str()))
        .try_get_matches()
        .and_then(|found| Cli::from_arg_matches(&found));
    let Cli { command, quiet } = parsed.unwrap_or_else(|fault| refused(&fault));
    progress::be_quiet(quiet);
    let done = match command {
        Command::Run(args) => commands::run::run(&args),
        Command::Sweep(args) => commands::sweep::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::List(args) => commands::list::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::ExplainRun(args) => commands::explain_run::run(&args),
        Command::Params(args) => commands::params::run(&args),
        Command::Schema(args) => commands::schema::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Sample(args) => commands::sample::run(&args),
        Command::Import(args) => commands::import::run(&args),
        Command::Fit(args) => commands::fit::run(&args),
        Command::Sensitivity(args) => commands::sensitivity::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Report(args) => commands::report::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args, Cli::command()),
        Command::GenDocs(args) => commands::gen_docs::run(&args),
        Command::Point(args) => commands::point::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(fault) => {
            tell!("{fault}");
            ExitCode::from(match fault {
                Fault::Undelivered(_) => 1,
                Fault::Input(_) => 2,
            })
        }
    }
}
