//! `nandscape trace capture`: runs a program and records it. With Valgrind's lackey, what it executes and accesses, for the cores of a server; with
//! strace, what it asks of the kernel, for a host.

mod syscalls;

use std::path::{Path, PathBuf};
use std::{
    ffi::OsString,
    io::{PipeReader, Write},
    os::{fd::AsRawFd, unix::process::ExitStatusExt},
    process::{Child, Command, ExitStatus},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::number;
use crate::output::{Fault, Files, write_whole_with};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use config::Diagnostic;
use rustix::process::{Pid, Signal, kill_process};
use workload::cpu_trace::{Counts, record};

/// What to record.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The file to write; PROGRAM.cputrace.gz in the present folder if left out, PROGRAM.strace for --syscalls
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Records system calls with strace, those of the program's children too, for `run --workload strace:file=FILE`
    #[arg(long)]
    syscalls: bool,
    /// Ends the program after N instructions
    #[arg(long, value_name = "N", value_parser = number::from_one, conflicts_with = "syscalls")]
    limit: Option<u64>,
    /// The program and its arguments; without --syscalls, what it starts, or becomes by exec, is not recorded
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Records a program; whether the recording is whole. The program's own exit status is said, and is not that of the command;
/// what was killed has left a part of a recording, which is kept.
///
/// # Errors
/// No tool to record with, no such program, and a file that cannot be written.
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
        syscalls::capture(&args.program, name, &out)
    } else {
        capture(&args.program, name, args.limit, &out)
    }
}

// Instructions and accesses, as Valgrind's lackey writes them.
//
// lackey is slow (600 to 1,100 times) and everywhere; plugins of QEMU's user mode are some 40 times faster, and are no part of this.

/// Records a program; whether the recording is whole.
///
/// # Errors
/// No Valgrind, no such program, and a file that cannot be written.
fn capture(program: &[OsString], name: &Path, limit: Option<u64>, out: &Path) -> Result<bool, Fault> {
    let (counts, end) = write_whole_with(out, |file| {
        let (traced, pipe) = start(program)?;
        let counts = watched(&traced, pipe, file, limit)?;
        let end = traced.end(limit.filter(|limit| counts.instructions >= *limit))?;
        if counts.instructions > 0 {
            return Ok((counts, end));
        }
        Err(Diagnostic::new(format!("nothing of `{}` was recorded{}", name.display(), end.status())).help(
            "a program that runs on this machine must be given behind `--`; Valgrind's own words stand above",
        ))
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

/// Reads what lackey writes, and ends the program at an interrupt even while it is silent.
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

/// Starts it; lackey's output comes through the pipe, and the program has standard input and output to itself.
fn start(program: &[OsString]) -> Result<(Traced, PipeReader), Diagnostic> {
    let fault = |fault: std::io::Error| Diagnostic::new(format!("cannot make a pipe for Valgrind: {fault}"));
    let (read, write) = std::io::pipe().map_err(fault)?;
    // Valgrind must have the end that it writes to.
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty()).map_err(|errno| fault(errno.into()))?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        // Nobody's settings may send the output elsewhere.
        .args(["--command-line-only=yes", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        // The child of a fork would write in between.
        .arg("--child-silent-after-fork=yes")
        .arg(format!("--log-fd={}", write.as_raw_fd()))
        .arg("--")
        .args(program);
    Ok((Traced::start("valgrind", &mut valgrind, Signal::KILL)?, read))
}

// The program that records, and with it the one that is recorded.

/// How often a program is looked at that nothing is heard of.
const LOOK: Duration = Duration::from_millis(20);

/// How a program ended.
enum End {
    Itself(ExitStatus),
    Limit(u64),
    Interrupt,
}

impl End {
    /// Whether the recording is whole.
    fn is_whole(&self) -> bool {
        match self {
            End::Itself(status) => status.signal().is_none(),
            End::Limit(_) => true,
            End::Interrupt => false,
        }
    }

    /// Says it. Standard output is the program's.
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

    /// How it ended by itself, in parentheses.
    fn status(&self) -> String {
        match self {
            End::Itself(status) => format!(" ({status})"),
            End::Limit(_) | End::Interrupt => String::new(),
        }
    }
}

/// A program under another one. It does not outlive this.
struct Traced {
    child: Mutex<Child>,
    /// The signal that ends both; what is left when this is dropped is killed.
    last: Signal,
}

impl Traced {
    /// Starts `tool`, which is to be ended by `last`.
    ///
    /// # Errors
    /// It cannot be started.
    fn start(tool: &str, command: &mut Command, last: Signal) -> Result<Traced, Diagnostic> {
        let child = command.spawn().map_err(|fault| {
            Diagnostic::new(format!("cannot start `{tool}`: {fault}")).help(format!(
                "programs are recorded with it: install the package `{tool}` (apt install {tool}; dnf, pacman, brew)"
            ))
        })?;
        Ok(Traced { child: Mutex::new(child), last })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells both to end.
    fn stop(&self) {
        self.with(|child| {
            // One that has ended and was waited for has no number any more; one that has just ended need not hear it.
            if let Ok(None) = child.try_wait() {
                let _ = kill_process(Pid::from_child(child), self.last);
            }
        });
    }

    /// Waits for its end, or ends it at the limit that has been reached.
    fn end(&self, limit: Option<u64>) -> Result<End, Diagnostic> {
        let unknown =
            |fault: std::io::Error| Diagnostic::new(format!("cannot learn how the program ended: {fault}"));
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
            // One that has ended already cannot be killed, and need not be.
            let _ = child.kill();
            let _ = child.wait();
        });
    }
}
