//! `nandscape trace capture`: runs a program and records it. With Valgrind's lackey, what it executes and accesses, for the cores of a server; with
//! strace, what it asks of the kernel, for a host.

mod child;
mod lackey;
mod syscalls;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::number;
use crate::output::{Fault, Files};
use crate::outside::{catch_interrupts, result_is_coming};

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
        lackey::capture(&args.program, name, args.limit, &out)
    }
}
