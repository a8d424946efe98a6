//! Programs of GPUs, servers, hosts and accelerators, built in or recorded, and the graphs that they run on.
//!
//! * Knows programs with their parameters and data, and what each of them requests next.
//! * Does not know any component that executes them, or how long anything takes.
//! * Read first: `program/mod.rs` for a GPU, `service/mod.rs` for a server, `host/mod.rs` for a host, `kernels/mod.rs` for an accelerator;
//!   `cpu_trace/mod.rs` and `simt_trace/mod.rs` for recorded ones.

pub mod cpu_trace;
pub mod graph;
pub mod host;
pub mod kernels;
pub mod program;
pub mod service;
pub mod simt_trace;

use requests::trace::OtherFiles;

// Files of programs, which could be mistaken for a trace of requests.

/// Files that programs read, for [`requests::trace::TraceOptions::others`].
pub const FILES: OtherFiles = OtherFiles { inputs, recordings };

/// Identifies a file that a program takes by name, and what to type.
fn inputs(source: &str, start: &[u8]) -> Option<(&'static str, String)> {
    let typed = |name: &str, system: &str| {
        format!("`--workload {name}:file={source}` runs it on {system} (`explain {name}`)")
    };
    if program::is_onnx(start) {
        return Some(("an ONNX model", typed("onnx", "a system with a GPU")));
    }
    host::is_strace(start).then(|| ("a log of strace", typed("strace", "a drive behind a host")))
}

/// Identifies a file that is a program of its own, and what to do with it.
fn recordings(start: &[u8], all: bool) -> Option<(&'static str, &'static str)> {
    if simt_trace::is_gpu_text(String::from_utf8_lossy(start).trim_start()) {
        return Some((
            "a trace of a GPU",
            "`nandscape run SYSTEM --workload FILE` runs it on a system with a GPU (`list systems`)",
        ));
    }
    cpu_trace::is_beginning(start, all).then_some((
        "a recorded program of a CPU",
        "`nandscape run SYSTEM --workload FILE` runs it on a server (`list systems`); it is read twice, so it must be a file",
    ))
}
