//! How a log is made, and what is in one.

use std::path::Path;

use config::Diagnostic;

use super::clock::Choice;
use super::replay::KINDS;
use super::table::dispensable;
use super::{Settings, survey};

/// What `strace` is called with for a log that can be replayed, up to `-o FILE PROGRAM`.
///
/// The calls that a replay can do without are named, not those that it reads: what nobody knows is in the log, and is told when it is read.
/// The program does not stop for the others, so that its times are nearer to those without `strace`.
pub fn strace_options() -> Vec<String> {
    // A machine need not have every one of these calls.
    let without: Vec<String> = dispensable().map(|name| format!("?{name}")).collect();
    let calls = format!("trace=!{}", without.join(","));
    // Data is not replayed and need not be in the log (-s 0); a signal to strace is one to the program (-I 2).
    let fixed = ["-f", "-ttt", "-T", "-y", "-q", "-s", "0", "-I", "2", "-e"];
    fixed.into_iter().map(str::to_owned).chain([calls]).collect()
}

/// Calls of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogKind {
    /// What they are called: `read`.
    pub name: &'static str,
    /// How many.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What a replay of a log does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogContents {
    /// Threads of all processes.
    pub threads: usize,
    /// Files that are read, written or named.
    pub files: usize,
    /// Calls on them.
    pub kinds: Vec<LogKind>,
    /// What is left out, a sentence each.
    pub left_out: Vec<String>,
    /// Whether the log has calls that are refused unless the replay skips them (`unknown=skip`).
    pub skips: bool,
}

/// What a replay of a log of `strace` does, with calls that are not known skipped.
///
/// # Errors
/// A log that cannot be read, with the line.
pub fn log_contents(path: &Path) -> Result<LogContents, Diagnostic> {
    let found = survey(path, Settings { kept: true, clock: Choice::Auto, overhead: 0, skip: true })?;
    let kinds = KINDS.iter().zip(found.kinds);
    Ok(LogContents {
        threads: found.roots.len(),
        files: found.files.len(),
        kinds: kinds.map(|(name, (calls, bytes))| LogKind { name, calls, bytes }).collect(),
        left_out: found.notes.sentences(),
        skips: !found.notes.unknown.is_empty(),
    })
}
