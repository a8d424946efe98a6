//! `nandscape trace capture`: runs a program under Valgrind's lackey and writes what it executes and accesses.
//!
//! lackey is slow (600 to 1,100 times) and everywhere; plugins of QEMU's user mode are some 40 times faster, and are no part of this.

use std::ffi::OsString;
use std::io::{PipeReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use config::Diagnostic;
use workload::cpu_trace::{Counts, record};

use crate::number;
use crate::output::{Fault, write_whole_with};
use crate::outside::{STOP, catch_interrupts, result_is_coming};

/// What to record.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The file to write; PROGRAM.cputrace.gz in the present folder if left out
    #[arg(short, long)]
    out: Option<PathBuf>,
    /// Ends the program after N instructions
    #[arg(long, value_name = "N", value_parser = number::from_one)]
    limit: Option<u64>,
    /// The program and its arguments; what it starts, or becomes by exec, is not recorded
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// How often a program is looked at that nothing is heard of.
const LOOK: Duration = Duration::from_millis(20);

/// How a program ended.
enum End {
    Itself(ExitStatus),
    Limit(u64),
    Interrupt,
}

/// Records a program; whether the recording is whole. The program's own exit status is said, and is not that of the command;
/// what was killed has left a part of a recording, which is kept.
///
/// # Errors
/// No Valgrind, no such program, and a file that cannot be written.
pub(super) fn run(args: &Args) -> Result<bool, Fault> {
    let name = Path::new(args.program.first().map_or("".as_ref(), OsString::as_os_str));
    let out = args.out.clone().unwrap_or_else(|| {
        let file = name.file_name().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("{file}.cputrace.gz"))
    });
    catch_interrupts()?;
    result_is_coming();
    let (counts, end) = write_whole_with(&out, |file| {
        let (traced, pipe) = Traced::start(&args.program)?;
        let counts = watched(&traced, pipe, file, args.limit)?;
        let end = traced.end(args.limit.filter(|limit| counts.instructions >= *limit))?;
        if counts.instructions > 0 {
            return Ok((counts, end));
        }
        let how = match end {
            End::Itself(status) => format!(" ({status})"),
            End::Limit(_) | End::Interrupt => String::new(),
        };
        Err(Diagnostic::new(format!("nothing of `{}` was recorded{how}", name.display())).help(
            "a program that runs on this machine must be given behind `--`; Valgrind's own words stand above",
        ))
    })?;
    say(&counts, &end, name, &out);
    Ok(match end {
        End::Itself(status) => status.signal().is_none(),
        End::Limit(_) => true,
        End::Interrupt => false,
    })
}

/// Standard output is the program's.
fn say(counts: &Counts, end: &End, name: &Path, out: &Path) {
    let Counts { instructions, loads, stores, data_pages, text_pages } = counts;
    match end {
        End::Itself(status) if status.signal().is_some() => {
            eprintln!("note: `{}` was killed ({status}): the recording ends there", name.display());
        }
        End::Itself(status) => eprintln!("note: `{}` ended: {status}", name.display()),
        End::Limit(limit) => eprintln!("note: `{}` was ended after {limit} instructions", name.display()),
        End::Interrupt => eprintln!("note: `{}` was interrupted: the recording ends there", name.display()),
    }
    eprintln!(
        "note: {instructions} instructions, {loads} loads, {stores} stores, {data_pages} pages of data and \
         {text_pages} of text (4 KiB) written to {}",
        out.display()
    );
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
                    return traced.kill();
                }
                std::thread::sleep(LOOK);
            }
        });
        let counts = record(pipe, to, limit, || STOP.load(Ordering::Relaxed));
        done.store(true, Ordering::Relaxed);
        counts
    })
}

/// A program under Valgrind. It does not outlive this.
struct Traced {
    child: Mutex<Child>,
}

impl Traced {
    /// Starts it; lackey's output comes through the pipe, and the program has standard input and output to itself.
    fn start(program: &[OsString]) -> Result<(Traced, PipeReader), Diagnostic> {
        let fault =
            |fault: std::io::Error| Diagnostic::new(format!("cannot make a pipe for Valgrind: {fault}"));
        let (read, write) = std::io::pipe().map_err(fault)?;
        // Valgrind must have the end that it writes to.
        rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty()).map_err(|errno| fault(errno.into()))?;
        let child = Command::new("valgrind")
            // Nobody's settings may send the output elsewhere.
            .args(["--command-line-only=yes", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
            // The child of a fork would write in between.
            .arg("--child-silent-after-fork=yes")
            .arg(format!("--log-fd={}", write.as_raw_fd()))
            .arg("--")
            .args(program)
            .spawn()
            .map_err(|fault| {
                Diagnostic::new(format!("cannot start `valgrind`: {fault}")).help(
                    "programs are recorded with Valgrind: install the package `valgrind` (apt, dnf, pacman, brew)",
                )
            })?;
        Ok((Traced { child: Mutex::new(child) }, read))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn kill(&self) {
        // One that has ended already cannot be killed, and need not be.
        let _ = self.with(Child::kill);
    }

    /// Waits for its end, or ends it at the limit that has been reached.
    fn end(&self, limit: Option<u64>) -> Result<End, Diagnostic> {
        let unknown =
            |fault: std::io::Error| Diagnostic::new(format!("cannot learn how the program ended: {fault}"));
        if limit.is_some() {
            self.kill();
        }
        loop {
            if let Some(status) = self.with(Child::try_wait).map_err(unknown)? {
                return Ok(match limit {
                    _ if STOP.load(Ordering::Relaxed) => End::Interrupt,
                    Some(limit) => End::Limit(limit),
                    None => End::Itself(status),
                });
            }
            if STOP.load(Ordering::Relaxed) {
                self.kill();
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.kill();
        let _ = self.with(Child::wait);
    }
}
