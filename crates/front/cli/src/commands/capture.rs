//! `nandscape trace capture`: runs a program and records it: executed instructions and memory accesses with Valgrind's
//! lackey, for the cores of a server; system calls with strace, for a host.
//!
//! lackey slows a program 600 to 1,100 times, but is available everywhere. Plugins of QEMU's user mode are some 40
//! times faster; `capture` does not use them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::options;
use crate::output::{Beside, Fault, Files, cannot_write, write_whole_with};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use config::Diagnostic;
use config::units::Bytes;
use programs::cpu_trace::{Counts, record};
use programs::host::{LogContents, log_contents, strace_options};
use rustix::process::{Pid, Signal, kill_process};

/// Arguments of `trace capture`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Output file; PROGRAM.cputrace.gz in the current folder if left out, PROGRAM.strace with --syscalls
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Record system calls with strace, child processes included, for `run --workload strace:file=FILE`
    #[arg(long)]
    syscalls: bool,
    /// End the program after N instructions
    #[arg(long, value_name = "N", value_parser = options::from_one, conflicts_with = "syscalls")]
    limit: Option<u64>,
    /// Program and its arguments; without --syscalls, its children and programs it becomes by exec are not recorded
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Records a program; returns whether the recording is complete. The program's exit status is printed and does not
/// become the command's. After a kill, the part recorded so far is kept.
///
/// # Errors
/// The recording tool or the program is missing, or a file cannot be written.
pub(super) fn run(args: &Args) -> Result<bool, Fault> {
    let name = Path::new(args.program.first().map_or("".as_ref(), OsString::as_os_str));
    let out = args.out.clone().unwrap_or_else(|| {
        let file = name.file_name().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("{file}.{}", if args.syscalls { "strace" } else { "cputrace.gz" }))
    });
    let files = Files::default().writes("--out", Some(&out));
    let read = |files: Files, word: &OsString| files.reads("PROGRAM", Path::new(word));
    args.program.iter().fold(files, read).apart()?;
    catch_interrupts()?;
    result_is_coming();
    if args.syscalls {
        record_calls(&args.program, name, &out)
    } else {
        record_accesses(&args.program, name, args.limit, &out)
    }
}

/// Poll interval for a program that produces no output.
const LOOK: Duration = Duration::from_millis(20);

/// End of a program.
enum End {
    Itself(ExitStatus),
    Limit(u64),
    Interrupt,
}

impl End {
    /// Returns whether the recording is complete.
    fn is_whole(&self) -> bool {
        match self {
            End::Itself(status) => status.signal().is_none(),
            End::Limit(_) => true,
            End::Interrupt => false,
        }
    }

    /// Prints a note on how the program ended, on standard error: standard output is the program's.
    fn say(&self, program: &Path) {
        let name = program.display();
        match self {
            End::Itself(status) if status.signal().is_some() => {
                tell!("note: `{name}` was killed ({status}): the recording ends there");
            }
            End::Itself(status) => tell!("note: `{name}` ended: {status}"),
            End::Limit(limit) => tell!("note: `{name}` was ended after {limit} instructions"),
            End::Interrupt => tell!("note: `{name}` was interrupted: the recording ends there"),
        }
    }

    /// Exit status in parentheses, if the program ended on its own.
    fn status(&self) -> String {
        match self {
            End::Itself(status) => format!(" ({status})"),
            End::Limit(_) | End::Interrupt => String::new(),
        }
    }
}

/// Program under a recording tool. It does not outlive this value.
struct Traced {
    child: Mutex<Child>,
    /// Signal that ends both; anything still running on drop is killed.
    last: Signal,
}

impl Traced {
    /// Starts `tool`; `last` is the signal that ends it.
    ///
    /// # Errors
    /// The tool cannot be started.
    fn start(tool: &str, command: &mut Command, last: Signal) -> Result<Traced, Diagnostic> {
        let child = command.spawn().map_err(|fault| {
            Diagnostic::new(format!("cannot start `{tool}`: {fault}")).help(format!(
                "`capture` needs it: install the package `{tool}` (apt install {tool}; dnf, pacman, brew)"
            ))
        })?;
        Ok(Traced { child: Mutex::new(child), last })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Signals both to end.
    fn stop(&self) {
        self.with(|child| {
            // After a wait, the process id is gone; a process that has just ended need not receive the signal.
            if let Ok(None) = child.try_wait() {
                let _ = kill_process(Pid::from_child(child), self.last);
            }
        });
    }

    /// Waits for the end of the program, or ends it at the limit just reached.
    fn end(&self, limit: Option<u64>) -> Result<End, Diagnostic> {
        let unknown = |fault: std::io::Error| {
            Diagnostic::new(format!("cannot read the program's exit status: {fault}"))
        };
        let mut told = limit.is_some();
        if told {
            self.stop();
        }
        loop {
            if let Some(status) = self.with(Child::try_wait).map_err(unknown)? {
                return Ok(match limit {
                    _ if STOP.load(Ordering::Relaxed) => End::Interrupt,
                    Some(limit) => End::Limit(limit),
                    None => End::Itself(status),
                });
            }
            if STOP.load(Ordering::Relaxed) && !std::mem::replace(&mut told, true) {
                self.stop();
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.with(|child| {
            // Killing a process that has already ended fails, which is harmless.
            let _ = child.kill();
            let _ = child.wait();
        });
    }
}

/// Records instructions and accesses; returns whether the recording is complete.
///
/// # Errors
/// Valgrind or the program is missing, or a file cannot be written.
fn record_accesses(program: &[OsString], name: &Path, limit: Option<u64>, out: &Path) -> Result<bool, Fault> {
    let (counts, end) = write_whole_with(out, |file| {
        let (traced, pipe) = start(program)?;
        let counts = watched(&traced, pipe, file, limit)?;
        let end = traced.end(limit.filter(|limit| counts.instructions >= *limit))?;
        if counts.instructions > 0 {
            return Ok((counts, end));
        }
        Err(Diagnostic::new(format!("nothing was recorded of `{}`{}", name.display(), end.status()))
            .help("give an executable after `--`; Valgrind's own messages are above"))
    })?;
    end.say(name);
    let Counts { instructions, loads, stores, data_pages, text_pages } = counts;
    tell!(
        "note: {instructions} instructions, {loads} loads, {stores} stores, {data_pages} pages of data and \
         {text_pages} of text (4 KiB) written to {}",
        out.display()
    );
    Ok(end.is_whole())
}

/// Reads lackey's output, and ends the program on an interrupt even if it is silent.
fn watched(
    traced: &Traced,
    pipe: PipeReader,
    to: &mut dyn Write,
    limit: Option<u64>,
) -> Result<Counts, Diagnostic> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if STOP.load(Ordering::Relaxed) {
                    return traced.stop();
                }
                std::thread::sleep(LOOK);
            }
        });
        let counts = record(pipe, to, limit, || STOP.load(Ordering::Relaxed));
        done.store(true, Ordering::Relaxed);
        counts
    })
}

/// Starts the program. lackey's output comes through the pipe; standard input and output are the program's.
fn start(program: &[OsString]) -> Result<(Traced, PipeReader), Diagnostic> {
    let fault = |fault: std::io::Error| Diagnostic::new(format!("cannot make a pipe for Valgrind: {fault}"));
    let (read, write) = std::io::pipe().map_err(fault)?;
    // Valgrind inherits the write end.
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty()).map_err(|errno| fault(errno.into()))?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        // User settings must not send the output elsewhere.
        .args(["--command-line-only=yes", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        // A forked child would write into the same log.
        .arg("--child-silent-after-fork=yes")
        .arg(format!("--log-fd={}", write.as_raw_fd()))
        .arg("--")
        .args(program);
    Ok((Traced::start("valgrind", &mut valgrind, Signal::KILL)?, read))
}

/// Bytes read for the first line of a log: a path may be 4 KiB long.
const HEAD: u64 = 16 << 10;

/// Records the system calls of a program and its children; returns whether the recording is complete.
///
/// # Errors
/// strace or the program is missing, or a file cannot be written. Exit status 1: strace may not trace the program, or
/// its output cannot be parsed.
fn record_calls(program: &[OsString], name: &Path, out: &Path) -> Result<bool, Fault> {
    if !is_there(name.as_os_str()) {
        return Err(Diagnostic::new(format!("program `{}` not found", name.display()))
            .help("give an executable after `--`, by its path or by a name in PATH")
            .into());
    }
    if out.exists() && !out.is_file() {
        return Err(Diagnostic::new(format!("`{}` is not a regular file", out.display()))
            .help("strace writes into a file: name one with --out")
            .into());
    }
    // strace treats a name that begins with `|` or `!` as a command.
    let whole = std::path::absolute(out).map_err(|fault| cannot_write(out, &fault))?;
    let (beside, _) = Beside::hidden(&whole).map_err(|fault| cannot_write(out, &fault))?;
    let mut strace = Command::new("strace");
    strace.args(strace_options()).arg("-o").arg(beside.path()).arg("--").args(program);
    // When terminated, strace terminates the program; when killed, it would leave it running.
    let end = Traced::start("strace", &mut strace, Signal::TERM)?.end(None)?;
    let first = first_line(beside.path());
    let first = first.map_err(|fault| {
        Fault::Undelivered(Diagnostic::new(format!("cannot read the output of strace: {fault}")))
    })?;
    if !has_begun(&first) {
        let what = format!("nothing was recorded of `{}`{}", name.display(), end.status());
        let help = "strace needs permission to ptrace, and the program must be executable; strace's own messages are above";
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

/// Returns whether a shell would find the program.
fn is_there(program: &OsStr) -> bool {
    if program.as_encoded_bytes().contains(&b'/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns whether the program was executed, from the first line of the log.
fn has_begun(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let was_refused = line.contains("execve(") && line.contains(" = -1 E");
    !line.trim().is_empty() && !was_refused
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Prints what was recorded, what a replay omits, and how to replay it. Standard output is the program's.
fn say(contents: &LogContents, out: &Path) {
    let kinds = contents.kinds.iter().map(|kind| match kind.bytes {
        0 => format!("{} {}", kind.calls, kind.name),
        bytes => format!("{} {} ({})", kind.calls, kind.name, Bytes::new(bytes)),
    });
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let (threads, files) = (counted(contents.threads, "thread"), counted(contents.files, "file"));
    tell!("note: {threads}, {files}; replayed calls: {kinds}");
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

/// Quotes a word for a shell where needed.
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
