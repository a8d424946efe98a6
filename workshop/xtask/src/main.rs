//! Chores of the repository: `cargo xtask tidy | new | gen | book | golden | bench | dist | mutants | soak |
//! calibrate-pagecache`.

mod bench;
mod book;
mod calibrate;
mod dist;
mod golden;
mod manual;
mod markdown;
mod new;
mod soak;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Chores of the nandscape repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check the rules of the repository: layers, sizes, leftovers, calibration
    Tidy,
    /// Create a new policy: its file, its entry in the family's list, and a test that says what to fill in
    New {
        /// Family, such as `VictimPolicy`, or a key that chooses from it, such as `flash.ftl.gc.victim`
        family: String,
        /// Name of the policy in a file, such as `my_policy`
        name: String,
    },
    /// Write the generated pages of docs/ from the binary's own lists
    Gen {
        /// Only compare; fail if a page is missing or stale
        #[arg(long)]
        check: bool,
    },
    /// Build the pages as one searchable book, target/book/html
    Book,
    /// Run the cases of tests/golden and compare their results with the committed ones
    Golden {
        /// Rewrite the committed results
        #[arg(long)]
        bless: bool,
    },
    /// Measure the binary (profile dist) on fixed workloads against the targets
    Bench(bench::Options),
    /// Build a package: a static binary, man pages and completions, as one archive
    Dist(dist::Options),
    /// Run the mutation tests and print which check kills each mutant
    Mutants,
    /// Drive the flash device in all combinations under its shadow, in the release profile
    Soak(soak::Options),
    /// Measure the page cache of a real Linux (User-Mode Linux) on a device of known speed
    CalibratePagecache(calibrate::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Tidy => tidy::run(),
        Chore::New { family, name } => new::run(&family, &name),
        Chore::Gen { check: true } => manual::check(),
        Chore::Gen { check: false } => manual::write(),
        Chore::Book => book::run(),
        Chore::Golden { bless } => golden::run(bless),
        Chore::Bench(options) => bench::run(&options),
        Chore::Dist(options) => dist::run(&options),
        Chore::Mutants => soak::run_mutants(),
        Chore::Soak(options) => soak::run(&options),
        Chore::CalibratePagecache(options) => calibrate::run(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
