//! System calls, as `strace` writes them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;

use config::Diagnostic;
use config::units::Bytes;
use rustix::process::Signal;
use workload::host::{LogContents, log_contents, strace_options};

use super::Traced;
use crate::output::{Beside, Fault, cannot_write};

/// Of the first line of a log: a path may be 4 KiB long.
const HEAD: u64 = 16 << 10;

/// Records what a program and its children ask of the kernel; whether the recording is whole.
///
/// # Errors
/// No strace, no such program, and a file that cannot be written. Exit status 1: strace may not record the program, or what it wrote is not
/// understood.
pub(super) fn capture(program: &[OsString], name: &Path, out: &Path) -> Result<bool, Fault> {
    if !is_there(name.as_os_str()) {
        return Err(Diagnostic::new(format!("there is no program `{}`", name.display()))
            .help("give a program of this machine behind `--`, by its path or as a shell finds it")
            .into());
    }
    if out.exists() && !out.is_file() {
        return Err(Diagnostic::new(format!("`{}` is no file", out.display()))
            .help("strace writes into a file: name one with --out")
            .into());
    }
    // strace takes a name that begins with `|` or `!` for a command.
    let whole = std::path::absolute(out).map_err(|fault| cannot_write(out, &fault))?;
    let (beside, _) = Beside::hidden(&whole).map_err(|fault| cannot_write(out, &fault))?;
    let mut strace = Command::new("strace");
    strace.args(strace_options()).arg("-o").arg(beside.path()).arg("--").args(program);
    // Told to end, strace tells the program; killed, it would leave it.
    let end = Traced::start("strace", &mut strace, Signal::TERM)?.end(None)?;
    let first = first_line(beside.path());
    let first = first.map_err(|fault| {
        Fault::Undelivered(Diagnostic::new(format!("cannot read what strace wrote: {fault}")))
    })?;
    if !has_begun(&first) {
        let what = format!("nothing of `{}` was recorded{}", name.display(), end.status());
        let help = "strace must be allowed to trace (ptrace), and the program to run; strace's own words stand above";
        return Err(Fault::Undelivered(Diagnostic::new(what).help(help)));
    }
    beside.settle().map_err(|fault| cannot_write(out, &fault))?;
    end.say(name);
    let contents = log_contents(out).map_err(Fault::Undelivered)?;
    say(&contents, out);
    Ok(end.is_whole())
}

fn first_line(path: &Path) -> io::Result<Vec<u8>> {
    let mut first = Vec::new();
    BufReader::new(File::open(path)?).take(HEAD).read_until(b'\n', &mut first)?;
    Ok(first)
}

/// Whether a shell would find it.
fn is_there(program: &OsStr) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether the program has been executed, by the first line of the log.
fn has_begun(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let was_refused = line.contains("execve(") && line.contains(" = -1 E");
    !line.trim().is_empty() && !was_refused
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What was recorded, what a replay leaves out of it, and how to replay it. Standard output is the program's.
fn say(contents: &LogContents, out: &Path) {
    let kinds = contents.kinds.iter().map(|kind| match kind.bytes {
        0 => format!("{} {}", kind.calls, kind.name),
        bytes => format!("{} {} ({})", kind.calls, kind.name, Bytes::new(bytes)),
    });
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let (threads, files) = (counted(contents.threads, "thread"), counted(contents.files, "file"));
    tell!("note: {threads}, {files}; calls that are replayed: {kinds}");
    for sentence in &contents.left_out {
        tell!("note: {sentence}");
    }
    let skip = if contents.skips { ",unknown=skip" } else { "" };
    let path = out.display().to_string();
    tell!("note: written to {path}");
    if path.contains(',') {
        tell!("note: to replay it, give it a name without a comma");
    } else {
        let workload = quoted(&format!("strace:file={path}{skip}"));
        tell!("note: to replay it: nandscape run pm9a3 --workload {workload}");
    }
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/.:=,_-+@%".contains(c);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_could_not_be_executed_has_not_begun() {
        assert!(has_begun(b"7 1.0 execve(\"/bin/a\", [...], 0x7ff) = 0 <0.1>\n"));
        assert!(has_begun(b"7 1.0 read(3, \"\", 1) = -1 EIO (Input/output error) <0.1>\n"));
        assert!(!has_begun(b"7 1.0 execve(\"./a\", [...], 0x7ff) = -1 ENOEXEC (Exec format error) <0.1>\n"));
        assert!(!has_begun(b"\n"));
    }

    #[test]
    fn a_word_is_quoted_if_a_shell_would_read_it_otherwise() {
        assert_eq!(quoted("strace:file=a/b-1.strace,unknown=skip"), "strace:file=a/b-1.strace,unknown=skip");
        assert_eq!(quoted("file=a b"), "'file=a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
