//! The `nandscape` command.

mod commands;
mod outside;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A simulator for computers that put flash next to compute.
#[derive(Parser)]
#[command(version, about, max_term_width = 110, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run workloads on a system
    Run(Box<commands::run::Args>),
    /// Hold results against closed forms and other simulators
    Reproduce(commands::reproduce::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => commands::run::run(&args),
        Command::Reproduce(args) => commands::reproduce::run(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(diagnostic) => {
            eprintln!("{diagnostic}");
            ExitCode::from(2)
        }
    }
}
