//! `nandscape list`.

use super::{kernels, program, service};
use crate::output::{self, Fault, print};
use config::catalogue::{self, Listed};
use config::{Diagnostic, Layers};
use machine::catalogue::families;
use machine::plan::workloads::WORKLOADS;
use programs::cpu_trace;
use requests::fio::{Class, options};
use requests::trace::{formats, written_formats};
use spec::systems::{SYSTEMS, Shipped};
use std::fmt::Write as _;

/// Arguments of `list`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// systems, workloads, programs, services, host, kernels, formats, fio, families, or part of a family's key (gc,
    /// victim, flash.ftl); default all
    family: Option<String>,
}

/// Lists other than policy families: name, title, short form, full form.
type Topic =
    (&'static str, &'static str, fn() -> Result<String, Diagnostic>, fn() -> Result<String, Diagnostic>);

const TOPICS: [Topic; 9] = [
    ("systems", "Systems (run, check, sweep)", systems, systems),
    ("workloads", "Workloads of a drive (--workload)", workloads, workloads),
    ("programs", "Programs of a GPU (--workload)", programs, programs),
    ("services", "Programs of a server (--workload)", services, services),
    ("host", "Programs of a host (--workload)", host_programs, host_programs),
    ("kernels", "Kernels of an accelerator (--workload)", kernel_programs, kernel_programs),
    ("formats", "Trace formats, in order of detection by content (--format)", formats_short, formats_full),
    ("fio", "fio options by class", fio_short, fio_full),
    ("families", "Policy families", families_full, families_full),
];

/// Prints a list.
///
/// # Errors
/// The list does not exist.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let text = match args.family.as_deref() {
        None => everything()?,
        Some(name) => match TOPICS.iter().find(|(topic, ..)| *topic == name) {
            Some((_, _, _, full)) => full()?,
            None => family(name)?,
        },
    };
    print(&output::wrapped(&text))?;
    Ok(true)
}

fn everything() -> Result<String, Diagnostic> {
    let mut parts = Vec::new();
    for (_, title, short, _) in TOPICS {
        parts.push(format!("{title}\n\n{}", indented(&short()?)));
    }
    Ok(parts.join("\n\n"))
}

fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("  {line}") };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Families with `name` as a component of one of their keys.
fn family(name: &str) -> Result<String, Diagnostic> {
    let wanted: Vec<&str> = name.split('.').collect();
    let is_in = |key: &String| {
        let parts: Vec<&str> = key.split('.').collect();
        parts.windows(wanted.len()).any(|window| window == wanted)
    };
    let chosen: Vec<Listed> = families().iter().filter(|f| f.keys.iter().any(is_in)).cloned().collect();
    if chosen.is_empty() {
        let keys = families().iter().flat_map(|f| &f.keys);
        let mut parts: Vec<&str> = keys.flat_map(|key| key.split('.')).collect();
        parts.sort_unstable();
        parts.dedup();
        let topics = TOPICS.iter().map(|(topic, ..)| *topic);
        return Err(Diagnostic::new(format!("unknown list `{name}`"))
            .allowed(name, topics.chain(parts))
            .help("`explain NAME` looks for a name everywhere")
            .pointed(name));
    }
    catalogue::list(&chosen, None)
}

/// Returns the description in a system's spec.
///
/// # Errors
/// The spec cannot be read.
pub(crate) fn description(system: &str) -> Result<String, Diagnostic> {
    let table = Layers::load(system, &Shipped)?.table();
    Ok(table.get("description").and_then(toml::Value::as_str).unwrap_or_default().to_owned())
}

fn systems() -> Result<String, Diagnostic> {
    let mut rows = Vec::new();
    for (name, _) in SYSTEMS {
        rows.push(((*name).to_owned(), description(name)?));
    }
    Ok(columns(&rows))
}

fn workloads() -> Result<String, Diagnostic> {
    let row = |(name, meaning, job): &(&str, &str, &str)| ((*name).to_owned(), format!("{meaning}: {job}"));
    Ok(columns(&WORKLOADS.iter().map(row).collect::<Vec<_>>()))
}

fn programs() -> Result<String, Diagnostic> {
    Ok(format!("{}\n\n{}", columns(&program::rows()), program::HELP))
}

fn services() -> Result<String, Diagnostic> {
    Ok(format!("{}\n\n{}", columns(&service::rows()), service::HELP))
}

fn host_programs() -> Result<String, Diagnostic> {
    Ok(format!("{}\n\n{}", columns(&service::host_rows()), service::HOST_HELP))
}

fn kernel_programs() -> Result<String, Diagnostic> {
    Ok(format!("{}\n\n{}", columns(&kernels::rows()), kernels::HELP))
}

fn formats_short() -> Result<String, Diagnostic> {
    let requests: Vec<_> = formats().map(|f| (f.name.to_owned(), f.title.to_owned())).collect();
    Ok(format!("{}\n\n{}", columns(&requests), recordings()))
}

/// Formats of recorded server programs.
fn recordings() -> String {
    let rows: Vec<_> =
        cpu_trace::formats().map(|(name, title)| (name.to_owned(), title.to_owned())).collect();
    format!(
        "`--workload FILE:job=20000` runs a recorded program on a server; the format is detected from content:\n\n{}",
        columns(&rows)
    )
}

fn formats_full() -> Result<String, Diagnostic> {
    let mut text = String::new();
    for format in formats() {
        let _ =
            writeln!(text, "{}  {}\n    {}\n    {}", format.name, format.title, format.record, format.units);
    }
    let written: Vec<&str> = written_formats().collect();
    let _ = write!(text, "\n`trace convert` writes {}.\n\n{}", written.join(", "), recordings());
    Ok(text)
}

/// Classes of fio options with their titles.
pub(crate) const CLASSES: [(Class, &str); 3] = [
    (Class::Honoured, "honoured: shape the requests as in fio"),
    (Class::Inert, "inert: accepted without effect; the result lists them"),
    (Class::Unsupported, "unsupported: would change what is measured; an error"),
];

fn fio_short() -> Result<String, Diagnostic> {
    let mut text = String::new();
    for (class, title) in CLASSES {
        let names: Vec<&str> = options().filter(|o| o.class == class).map(|o| o.name).collect();
        let _ = writeln!(text, "{title}\n{}\n", indented(&wrapped(&names)));
    }
    Ok(text.trim_end().to_owned())
}

fn fio_full() -> Result<String, Diagnostic> {
    let mut text = String::new();
    for (class, title) in CLASSES {
        let name = |o: &requests::fio::FioOption| match o.alias {
            Some(alias) => format!("{}, {alias}", o.name),
            None => o.name.to_owned(),
        };
        let rows: Vec<_> =
            options().filter(|o| o.class == class).map(|o| (name(o), o.doc.to_owned())).collect();
        let _ = writeln!(text, "{title}\n{}\n", indented(&columns(&rows)));
    }
    Ok(text.trim_end().to_owned())
}

fn families_full() -> Result<String, Diagnostic> {
    catalogue::list(families(), None)
}

/// Formats names and texts in two columns; a name much longer than most gets its own line.
fn columns(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).filter(|n| *n <= 24).max().unwrap_or(0);
    let row = |(name, text): &(String, String)| {
        if name.len() > width {
            format!("{name}\n{:width$}  {text}", "")
        } else {
            format!("{name:width$}  {text}")
        }
    };
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Wraps words over several lines.
fn wrapped(words: &[&str]) -> String {
    let mut lines = vec![String::new()];
    for word in words {
        let last = lines.len() - 1;
        if lines[last].len() + word.len() > 98 {
            lines.push(String::new());
        }
        let line = lines.last_mut().map(|line| (line.is_empty(), line));
        if let Some((is_first, line)) = line {
            line.push_str(if is_first { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}
