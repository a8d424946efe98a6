//! The `nandscape` command.
//!
//! * Knows every command with its arguments, files, progress and exit codes.
//! * Does not know how anything is simulated or drawn.
//! * Read first: `commands/mod.rs`; then `commands/run.rs`.

/// Prints a line on standard error: what files, jobs and traces are called moves no cursor and changes no colours.
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

/// The same with the revision of its results.
static LONG_VERSION: LazyLock<String> =
    LazyLock::new(|| format!("{VERSION}\nresults {}: {}", identity::RESULTS, identity::CHANGE));

/// musl's own has one lock for all jobs of a sweep.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A simulator for computers that put flash next to compute.
///
/// Exit status: 0 all well; 1 a check failed or work was left undone; 2 unusable input, said in one diagnostic.
#[derive(Parser)]
#[command(version = VERSION, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Prints no progress, neither bars nor lines
    #[arg(long, global = true)]
    quiet: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run workloads on a system
    Run(Box<commands::run::Args>),
    /// Run a system over every combination of values in a TOML file
    Sweep(commands::sweep::Args),
    /// Check a system and print its resolved spec
    Check(Box<commands::check::Args>),
    /// Write a system file to begin with: every key of a system, commented, with its source
    Init(commands::init::Args),
    /// List systems, workloads, programs, trace formats, fio options and policies
    List(commands::list::Args),
    /// Explain a policy, trace format, fio option, system, workload, program, metric or spec key
    Explain(commands::explain::Args),
    /// Say what limits a run: where time went, what slow requests waited for, which keys are worth a try
    ExplainRun(commands::explain_run::Args),
    /// List the keys of a spec with kind, unit and meaning
    Params(commands::params::Args),
    /// Print the JSON Schema of a system file, or of a result
    Schema(commands::schema::Args),
    /// Inspect, convert, sample and capture traces
    Trace(Box<commands::trace::Args>),
    /// Choose the kernels of a GPU profile to simulate, and predict the time of all from theirs
    Sample(commands::sample::Args),
    /// Bring in from elsewhere: configurations of MQSim and SimpleSSD, results of fio
    Import(commands::import::Args),
    /// Fit a drive to what fio measured of it, a few figures by a few values, and predict the rest
    Fit(Box<commands::fit::Args>),
    /// Rank the keys of a spec by their effect on a metric
    Sensitivity(Box<commands::sensitivity::Args>),
    /// Show how two results differ
    Diff(commands::diff::Args),
    /// Draw results as one HTML file: a run, what differs between two, several, or a sweep
    Report(commands::report::Args),
    /// Print what a shell needs to complete commands and options
    Completions(commands::completions::Args),
    /// Write the manual's pages for `man` into a folder
    Man(commands::man::Args),
    /// Write the generated pages of the manual
    #[command(name = "gen-docs", hide = true)]
    GenDocs(commands::gen_docs::Args),
    /// Run one point of a sweep, on a worker of a cluster
    #[command(hide = true)]
    Point(commands::point::Args),
    /// Hold results against closed forms and other simulators
    Reproduce(commands::reproduce::Args),
}

/// Lets `-1` be the value of an option, so that it is the value that is refused.
fn signed(command: clap::Command) -> clap::Command {
    let signed_arg = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(signed_arg).mut_subcommands(signed)
}

/// Ends with what clap says of the arguments. It quotes them: where one has bytes that move a terminal's cursor, the message is plain.
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
