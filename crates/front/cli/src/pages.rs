//! The generated pages of the manual: metrics, parameters and policies.

use crate::commands::list::{CLASSES, description};
use config::Diagnostic;
use config::catalogue::{Entry, Listed};
use config::schema::Param;
use machine::catalogue::{families, params};
use machine::result::metrics::{MILESTONES, Metric, STAGES, all, figures};
use machine::result::{Kinds, SCHEMA};
use programs::cpu_trace;
use requests::fio::options;
use requests::trace::{formats, written_formats};
use spec::Spec;
use spec::systems::SYSTEMS;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What stands at the head of every page.
const GENERATED: &str =
    "<!-- Written by `cargo xtask gen` from the program's own lists; changes here are lost. -->\n";

/// A cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// A row of a Markdown table.
fn row<const N: usize>(cells: [&str; N]) -> String {
    format!("| {} |\n", cells.map(cell).join(" | "))
}

/// The first two rows of a Markdown table.
fn head<const N: usize>(titles: [&str; N]) -> String {
    row(titles) + &row(titles.map(|_| "---"))
}

/// Tables of the document in the order of the page; any other follows.
const ORDER: [&str; 7] = ["", "run", "io", "gpu", "cpu", "flash", "breakdown_ns"];

/// A family of systems: its name, and the test that a spec belongs to it.
type SystemFamily = (&'static str, fn(&Spec) -> bool);
/// Systems with their descriptions.
type Described = Vec<(&'static str, String)>;

/// Families of systems, each with the test that a spec belongs to it; the first that holds counts.
const SYSTEM_FAMILIES: [SystemFamily; 6] = [
    ("Accelerators beside flash, and their rivals", |spec| {
        !spec.accelerator.is_empty() || !spec.coprocessor.is_empty()
    }),
    ("GPU and server on one drive", |spec| !spec.gpu.is_empty() && !spec.cpu.is_empty()),
    ("GPUs over flash, DRAM or persistent memory", |spec| !spec.gpu.is_empty()),
    ("Servers whose DRAM caches flash", |spec| !spec.cpu.is_empty()),
    ("Hosts whose page cache drains into a drive", |spec| spec.description.contains("FastDrain")),
    ("Drives", |_| true),
];

/// Shipped systems by family, drives first: name and description.
fn by_family() -> Result<Vec<(&'static str, Described)>, Diagnostic> {
    let mut found: Vec<(&str, Described)> =
        SYSTEM_FAMILIES.iter().rev().map(|(family, _)| (*family, Vec::new())).collect();
    for (name, _) in SYSTEMS {
        let spec = machine::load(name, &[])?.spec;
        let family = SYSTEM_FAMILIES.iter().rev().rposition(|(_, is_of)| is_of(&spec)).unwrap_or(0);
        found[family].1.push((name, description(name)?));
    }
    Ok(found)
}

/// The page of systems.
///
/// # Errors
/// A shipped spec that cannot be read.
pub(crate) fn systems_page() -> Result<String, Diagnostic> {
    let mut text = String::from(GENERATED);
    text += "\n# Systems\n\nEach system has a folder in `systems/`: its spec, the source of each of its numbers, and published beside \
             simulated figures.\n";
    for (family, systems) in by_family()? {
        let _ = write!(text, "\n## {family}\n\n{}", head(["system", "description"]));
        for (name, description) in systems {
            text += &row([&format!("[`{name}`](../systems/{name}/README.md)"), &description]);
        }
    }
    Ok(text)
}

/// The README's table: the names of each family.
///
/// # Errors
/// A shipped spec that cannot be read.
pub(crate) fn families_table() -> Result<String, Diagnostic> {
    let mut text = head(["family", "systems"]);
    for (family, systems) in by_family()? {
        let names: Vec<String> = systems.iter().map(|(name, _)| format!("`{name}`")).collect();
        text += &row([family, &names.join(" ")]);
    }
    Ok(text)
}

/// The page.
pub(crate) fn metrics_page() -> String {
    let mut text = String::from(GENERATED);
    let _ = write!(
        text,
        "\n# Metrics\n\nThe fields of the result document, `{SCHEMA}`: what `nandscape run --json` prints.\n\n\
         Units: `ns`, `s`, `B` (bytes), `B/s` and `1/s` (per second of simulated time; `requests_per_cpu_s` per second \
         of CPU time), `share` (zero to one). Rates divide by the measured window: from the end of the warm-up to the \
         last completion. Counts are those of the measured window. `*` stands for an index, or for a name of the \
         document.\n"
    );
    let mut sections: BTreeMap<String, Vec<Metric>> = BTreeMap::new();
    for metric in all() {
        let table = metric.pattern.split_once('.').map_or("", |(table, _)| table).to_owned();
        // `warnings.*` is a field of the document, not a table.
        let table = if metric.pattern == format!("{table}.*") { String::new() } else { table };
        let section = sections.entry(table).or_default();
        if !section.iter().any(|m| m.pattern == metric.pattern) {
            section.push(metric);
        }
    }
    let rank = |table: &String| ORDER.iter().position(|o| o == table).unwrap_or(ORDER.len());
    let mut order: Vec<&String> = sections.keys().collect();
    order.sort_by_key(|table| rank(table));
    for table in order {
        let title = if table.is_empty() { "The document".to_owned() } else { format!("`{table}`") };
        let _ =
            write!(text, "\n## {title}\n\n{}{}", introduction(table), head(["key", "unit", "definition"]));
        for metric in &sections[table] {
            // A figure's own words stand in the table of figures.
            let doc = metric.of.as_deref().unwrap_or(&metric.doc);
            text.push_str(&row([&format!("`{}`", metric.pattern), metric.unit, doc]));
        }
    }
    text.push_str(&figures_table());
    text.push_str(&milestones_table());
    text
}

fn introduction(table: &str) -> String {
    match table {
        "io" => format!(
            "`KIND` is one of {}; a kind of which no request completed is left out. `FIGURE` is one of the \
             [figures](#figures).\n\n",
            Kinds::NAMES.map(|name| format!("`{name}`")).join(", ")
        ),
        "breakdown_ns" => {
            "The first `*` is `read` or `write`, the second one of the [milestones](#milestones); of a GPU, `load` or \
             `store` and one of the [stages](#stages). Those that took no time are left out.\n\n"
                .to_owned()
        }
        "run" => "The only table that differs from run to run.\n\n".to_owned(),
        _ => String::new(),
    }
}

fn figures_table() -> String {
    let mut text = format!(
        "\n## Figures\n\nOf a distribution of latencies. A figure that the samples do not support is null: all of them \
         where there are no samples, a percentile `p` where `N (1 - p) < 10`.\n\n{}",
        head(["figure", "definition"])
    );
    for (name, doc) in figures() {
        text.push_str(&row([&format!("`{name}`"), &doc]));
    }
    text
}

fn milestones_table() -> String {
    let mut text = format!(
        "\n## Milestones\n\nWhat a request waits for. They tile its whole life, so their means sum to the mean \
         latency.\n\n{}",
        head(["milestone", "it waits for"])
    );
    for (name, doc) in MILESTONES {
        text.push_str(&row([&format!("`{name}`"), doc]));
    }
    text.push_str("\n## Stages\n\nWhat a line of a load or store waits for, on its way from a multiprocessor of a GPU or a core of a server. They tile its life in the same way.\n\n");
    text.push_str(&head(["stage", "it waits for"]));
    for (name, doc) in STAGES {
        text.push_str(&row([&format!("`{name}`"), doc]));
    }
    text
}

/// The page.
pub(crate) fn parameters_page() -> String {
    let mut text = String::from(GENERATED);
    text.push_str("\n# Parameters\n");
    text.push_str(&spec_keys());
    text.push_str(&fio_options());
    text.push_str(&trace_formats());
    text.push_str(&recorded_programs());
    text
}

fn spec_keys() -> String {
    let mut text = String::from(
        "\n## Keys of a system\n\nA system is a TOML file. Every key must be set, there or in a system that it inherits \
         (`inherits = \"NAME\"`), unless it says `none`. The values of a system are printed by \
         `nandscape params --system NAME`. Parameters of policies are in [policies.md](policies.md).\n\n",
    );
    text.push_str(&head(["key", "kind", "allowed", "meaning"]));
    // What belongs to a policy stands with the policy.
    let is_policy = |param: &&Param| param.family.is_none() && families().iter().any(|f| f.has(&param.key));
    for param in params().iter().filter(|param| !is_policy(param)) {
        text.push_str(&row([&format!("`{}`", param.key), &kind(param), &param.allowed, &param.doc]));
    }
    text
}

/// `duration (ps, ns, us), none`.
fn kind(param: &Param) -> String {
    let units = if param.units.is_empty() { String::new() } else { format!(" ({})", param.units.join(", ")) };
    let default = param.default.as_ref().map(|default| format!("; {default}")).unwrap_or_default();
    format!("{}{units}{default}", param.kind)
}

fn fio_options() -> String {
    let mut text = String::from(
        "\n## fio options\n\nOf `--workload fio:name=value,…` and of job files. Any other option is an error that names the \
         nearest one.\n",
    );
    for (class, title) in CLASSES {
        let title = title.replacen(':', " here:", 1);
        let _ = write!(text, "\n### {}\n\n{}", capital(&title), head(["option", "also", "meaning"]));
        for option in options().filter(|o| o.class == class) {
            let alias = option.alias.map(|alias| format!("`{alias}`")).unwrap_or_default();
            text.push_str(&row([&format!("`{}`", option.name), &alias, option.doc]));
        }
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn trace_formats() -> String {
    let written: Vec<String> = written_formats().map(|name| format!("`{name}`")).collect();
    let mut text = format!(
        "\n## Trace formats\n\nRecognised by content; content that fits several is read as the most plausible of them, with a \
         warning. Plain, gzip, xz, bzip2 or zstd. `trace convert` writes {}.\n\n{}",
        written.join(", "),
        head(["format", "what", "record", "units"])
    );
    for format in formats() {
        let name = format!("`{}`", format.name);
        text.push_str(&row([&name, format.title, &format!("`{}`", format.record), format.units]));
    }
    text
}

fn recorded_programs() -> String {
    let mut text = String::from(
        "\n## Recorded programs of a server\n\nRecognised by content, plain or compressed. Parameters stand behind the \
         name of the file: `--workload sort.nst:job=50000`.\n\n",
    );
    text.push_str(&head(["parameter", "default", "meaning"]));
    for key in cpu_trace::PARAMETERS {
        text.push_str(&row([&format!("`{}`", key.name), key.default, key.what]));
    }
    let _ = write!(text, "\n{}", head(["format", "what"]));
    for (name, title) in cpu_trace::formats() {
        text.push_str(&row([&format!("`{name}`"), title]));
    }
    text
}

/// The page.
pub(crate) fn policies_page() -> String {
    let mut text = String::from(GENERATED);
    text.push_str(
        "\n# Policies\n\nA family is a list of policies that are interchangeable; a key of a system chooses one: by a \
         bare name (`victim = \"greedy\"`), which means the default parameters, or by a table with the name as its one \
         key (`victim = { d_choices = { d = 10 } }`).\n",
    );
    for listed in families() {
        text.push_str(&section(listed));
    }
    text
}

fn section(Listed { family, keys }: &Listed) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n\n", keys.join("`, `"), family.text());
    text.push_str(&head(["policy", "what it does"]));
    for entry in family.entries {
        text.push_str(&row([&format!("`{}`", entry.name), &entry.text()]));
    }
    for entry in family.entries {
        text.push_str(&parameters(entry));
    }
    text
}

fn parameters(entry: &Entry) -> String {
    let params = entry.params();
    if params.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let _ = write!(
        text,
        "\nParameters of `{}`:\n\n{}",
        entry.name,
        head(["key", "kind and default", "allowed", "meaning"])
    );
    for param in &params {
        text.push_str(&row([&format!("`{}`", param.key), &kind(param), &param.allowed, &param.doc]));
    }
    text
}
