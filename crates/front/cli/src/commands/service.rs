//! Programs of a server and of a host, for `list` and `explain`.

use config::Diagnostic;
use programs::host;
use programs::program::Params;
use programs::service::{self, Entry, Op, OpKind, Service, entries};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Number of jobs counted.
const COUNTED: u64 = 1000;
/// Bytes per page.
const PAGE: u64 = 4096;

/// Name, source and description of every server program.
pub(crate) fn rows() -> Vec<(String, String)> {
    entries().map(|e| (e.name.to_owned(), format!("{}: {}", e.source, e.what))).collect()
}

/// Syntax of server programs as workloads.
pub(crate) const HELP: &str = "`tatp:size=1GiB,theta=0.9` sets parameters (`explain tatp`). A server runs one program, or a recorded one:\n\
     `sort.nst:job=20000` runs a file in jobs of 20000 instructions (`list formats`).";

/// Describes a program. `text` is written as for `--workload`: a name, or a name with parameters.
///
/// # Errors
/// The parameters are invalid.
pub(crate) fn explain(text: &str) -> Result<Option<String>, Diagnostic> {
    let (name, options) = text.split_once(':').unwrap_or((text, ""));
    let Some(entry) = entries().find(|entry| entry.name == name) else { return Ok(None) };
    let mut page = described(entry, &Params::read(text, options, entry.keys)?);
    page.push_str(&counted(service::open(text)?.as_mut()));
    Ok(Some(page))
}

fn described(entry: &Entry, params: &Params) -> String {
    let mut text = format!(
        "{}: a program of a server, from {}\n\n{}\n\nParameters\n",
        entry.name, entry.source, entry.what
    );
    for (key, value) in params.values() {
        let _ = writeln!(text, "  {} = {value}: {}", key.name, key.what);
    }
    text
}

/// Counts of a job, averaged over the first jobs, one after another.
fn counted(service: &mut dyn Service) -> String {
    let (mut tape, mut pages) = (Vec::new(), BTreeSet::new());
    let [mut instructions, mut loads, mut stores, mut atomics, mut branches, mut touched] = [0_u64; 6];
    for job in 0..COUNTED {
        service.start(0, job);
        tape.clear();
        while service.step(0, &mut tape) {}
        pages.clear();
        for op in &tape {
            let Op { kind, count, address, width, .. } = *op;
            instructions += u64::from(count);
            match kind {
                OpKind::Load => loads += 1,
                OpKind::Store => stores += 1,
                OpKind::Atomic => atomics += 1,
                OpKind::Taken | OpKind::NotTaken => branches += 1,
                OpKind::Compute | OpKind::Chain => {}
            }
            if width > 0 {
                pages.insert(address / PAGE);
            }
        }
        touched += pages.len() as u64;
    }
    let mean = |count: u64| format!("{:.1}", count as f64 / COUNTED as f64);
    let rows = [
        ("instructions", mean(instructions)),
        ("loads", mean(loads)),
        ("stores", mean(stores)),
        ("atomic operations", mean(atomics)),
        ("branches", mean(branches)),
        ("pages of 4 KiB touched", mean(touched)),
    ];
    let mut text = format!("\nPer job, on average over the first {COUNTED}, counted without a machine\n");
    for (name, value) in rows {
        let _ = writeln!(text, "  {name:28}{value}");
    }
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let _ = writeln!(text, "\n  {:28}{}", "footprint", mib(service.footprint()));
    let _ = write!(text, "  {:28}{} B", "code size", service.text());
    text
}

/// Name, source and description of every host program.
pub(crate) fn host_rows() -> Vec<(String, String)> {
    host::entries().map(|e| (e.name.to_owned(), format!("{}: {}", e.source, e.what))).collect()
}

/// Syntax of host programs as workloads.
pub(crate) const HOST_HELP: &str = "`apache-u:rate=500` sets parameters (`explain apache-u`). Several run side by side on any drive behind a host; those without an end need `--set sim.until=10s`.";

/// Describes a host program and its parameters; `text` is a name, or a name with parameters.
pub(crate) fn explain_host_program(text: &str) -> Option<String> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    host::entries().find(|entry| entry.name == name).map(host_described)
}

fn host_described(entry: &host::Entry) -> String {
    let mut text = format!(
        "{}: a program of a host, from {}\n\n{}\n\nParameters\n",
        entry.name, entry.source, entry.what
    );
    for parameter in entry.parameters() {
        let (name, default, what) = (parameter.name, parameter.default, parameter.what);
        let _ =
            writeln!(text, "  {name} = {default}: {what} ({}; {})", parameter.allowed(), parameter.source);
    }
    text.trim_end().to_owned()
}
