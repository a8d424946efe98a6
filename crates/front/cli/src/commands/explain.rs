//! `nandscape explain`.

use super::{energy, kernels, list, params, program, service};
use crate::complete;
use crate::glossary;
use crate::output::{Fault, print, wrapped};
use config::{Diagnostic, catalogue, synonym};
use machine::catalogue::{families, metrics};
use machine::plan::workloads::WORKLOADS;
use programs::cpu_trace;
use requests::fio::{self, Class};
use requests::trace::{FormatInfo, formats, written_formats};
use spec::systems::SYSTEMS;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// README of every shipped system that has one.
const READMES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/readmes.rs"));

/// Arguments of `explain`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Policy, family, trace format, fio option, system, workload, program (betw, betw:scale=12, tatp:size=1GiB),
    /// metric or spec key
    #[arg(add = clap_complete::ArgValueCompleter::new(complete::names))]
    name: String,
    /// With `energy`: shipped system or TOML file whose energy constants are shown with their sources
    system: Option<String>,
}

/// Explains everything that has the name.
///
/// # Errors
/// Nothing has the name.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let name = args.name.as_str();
    if let Some(system) = &args.system {
        print(&wrapped(&energy::explain(name, system)?))?;
        return Ok(true);
    }
    let mut parts = everything(name)?;
    // Synonym of a name; a word may be a name and a synonym.
    if let Some((meant, place)) = synonym::meant(name) {
        parts.push(format!("{name}: another word for {place}"));
        parts.extend(everything(meant)?);
    }
    if parts.is_empty() {
        return Err(unknown(name).into());
    }
    print(&wrapped(&parts.join("\n\n")))?;
    Ok(true)
}

/// Collects every explanation of the name.
fn everything(name: &str) -> Result<Vec<String>, Diagnostic> {
    let mut parts = Vec::new();
    parts.extend(system(name)?);
    parts.extend(workload(name));
    parts.extend(program::explain(name).map_err(named)?);
    parts.extend(service::explain(name).map_err(named)?);
    parts.extend(service::explain_host_program(name));
    parts.extend(energy::about(name));
    parts.extend(kernels::explain(name).map_err(named)?);
    parts.extend(catalogue::explain(families(), name).ok());
    parts.extend(spec_keys(name));
    parts.extend(formats().find(|f| f.name == name).map(format));
    parts.extend(cpu_trace::formats().find(|(format, _)| *format == name).map(recording));
    parts.extend(fio::option(name).map(option));
    parts.extend(metric(name));
    parts.extend(milestone(name));
    parts.extend(glossary::define(name));
    Ok(parts)
}

/// Places a fault in the argument, which is written like a workload.
fn named(mut fault: Diagnostic) -> Diagnostic {
    // A fault inside a file stays in the file.
    if let Some(place) = &mut fault.place
        && place.line == 0
    {
        place.source = "explain".to_owned();
    }
    fault
}

fn system(name: &str) -> Result<Option<String>, Diagnostic> {
    if !SYSTEMS.iter().any(|(system, _)| *system == name) {
        return Ok(None);
    }
    let mut text = format!("{name}: a shipped system\n\n{}\n", list::description(name)?);
    if let Some((_, readme)) = READMES.iter().find(|(system, _)| *system == name) {
        let _ = writeln!(text, "\n{}", first_paragraph(readme));
    }
    let _ = write!(
        text,
        "\nIts values: nandscape check {name}\nWhere each value comes from: systems/{name}/calibration.md"
    );
    Ok(Some(text))
}

/// Returns the first paragraph that is not a heading.
fn first_paragraph(markdown: &str) -> String {
    let is_text = |paragraph: &&str| !paragraph.is_empty() && !paragraph.starts_with('#');
    markdown.split("\n\n").map(str::trim).find(is_text).unwrap_or_default().to_owned()
}

fn workload(name: &str) -> Option<String> {
    let (name, meaning, job) = WORKLOADS.iter().find(|(workload, ..)| *workload == name)?;
    Some(format!("{name}: a shipped workload\n\n{meaning}\n\n  --workload {job}"))
}

fn format(format: &FormatInfo) -> String {
    let mut text = format!("{}: a trace format\n\n{}\n", format.name, format.title);
    let example = format.example.trim_end().replace('\n', "\n    ");
    let rows = [
        ("record", format.record.to_owned()),
        ("units", format.units.to_owned()),
        ("example", format!("\n    {example}")),
        ("times", format.time_unit.map_or("as given in its header".to_owned(), |u| u.name().to_owned())),
        (
            "addresses",
            format
                .sector
                .map_or("bytes, or as given in its header".to_owned(), |s| format!("units of {s} B")),
        ),
        ("source", format.source.to_owned()),
        ("written", if written_formats().any(|w| w == format.name) { "yes" } else { "no" }.to_owned()),
    ];
    for (name, value) in rows {
        let _ = write!(text, "\n  {name}: {value}");
    }
    if format.whole_seconds {
        text.push_str("\n  Times are whole seconds: all requests of a second arrive at once.");
    }
    text
}

fn recording((name, title): (&str, &str)) -> String {
    let mut text =
        format!("{name}: a recorded program of a server\n\n{title}; also compressed\n\nParameters\n");
    for key in cpu_trace::PARAMETERS {
        let default = if key.default.is_empty() { String::new() } else { format!(" = {}", key.default) };
        let _ = writeln!(text, "  {}{default}: {}", key.name, key.what);
    }
    let _ = write!(text, "\n  --workload FILE:job=20000");
    text
}

fn option(option: &fio::FioOption) -> String {
    let class = match option.class {
        Class::Honoured => "honoured",
        Class::Inert => "accepted without effect; the result lists it",
        Class::Unsupported => "not supported: it would change what is measured",
    };
    let alias = option.alias.map(|alias| format!(", also {alias}")).unwrap_or_default();
    format!("{}{alias}: an fio option, {class}\n\n{}", option.name, option.doc)
}

/// Returns whether `name` is the key, or its beginning or end, in whole components.
fn is_part(key: &str, name: &str) -> bool {
    key == name
        || key.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
        || key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// Returns whether `name` occurs anywhere in the key, in whole components.
fn has_run(key: &str, name: &str) -> bool {
    let (parts, run): (Vec<&str>, Vec<&str>) = (key.split('.').collect(), name.split('.').collect());
    parts.windows(run.len()).any(|window| window == run)
}

fn spec_keys(name: &str) -> Option<String> {
    let params = machine::catalogue::params();
    // Parameters of a policy are explained with the policy.
    let is_policy = |key: &str| families().iter().any(|family| family.has(key));
    let found: Vec<_> = params.iter().filter(|p| is_part(&p.key, name) && !is_policy(&p.key)).collect();
    let shown: Vec<String> = found.iter().map(|p| params::shown(p, None)).collect();
    (!shown.is_empty()).then(|| format!("{name}: in a spec\n\n{}", shown.concat().trim_end()))
}

fn metric(name: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for metric in metrics::all() {
        let exact = metrics::is_instance(&metric, name);
        if !exact && !has_run(&metric.key, name) && !has_run(&metric.pattern, name) {
            continue;
        }
        let key = if exact { name } else { metric.pattern.as_str() };
        if seen.insert(key.to_owned()) {
            let of = metric.of.filter(|_| exact).map(|of| format!(" Of: {of}")).unwrap_or_default();
            let _ = write!(text, "\n  {key} ({}): {}{of}", metric.unit, metric.doc);
        }
    }
    (!text.is_empty()).then(|| format!("{name}: in a result document\n{text}"))
}

fn milestone(name: &str) -> Option<String> {
    let of = |list: &[(&str, &str)], what: &str| {
        let (name, doc) = list.iter().find(|(milestone, _)| *milestone == name)?;
        Some(format!("{name}: a {what}\n\n{doc}"))
    };
    let parts = [
        of(metrics::MILESTONES, "milestone of breakdown_ns; one wait of a request"),
        of(metrics::STAGES, "stage of breakdown_ns; one wait of a line of a load or store"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn unknown(name: &str) -> Diagnostic {
    if let Some((what, help)) = requests::trace::what_is(std::path::Path::new(name), programs::FILES) {
        return Diagnostic::new(format!("`{name}` is a file: {what}")).help(help);
    }
    let names = names();
    let mut fault = Diagnostic::new(format!("unknown name `{name}`")).allowed(name, names);
    fault.allowed.clear();
    if let Some(term) = glossary::containing(name) {
        fault.nearest = Some(term.to_owned());
    }
    fault
        .help("`list` shows every name; `params` shows every key of a spec; docs/metrics.md has every metric")
}

/// Every name that can be explained.
pub(crate) fn names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    names.extend(SYSTEMS.iter().map(|(name, _)| (*name).to_owned()));
    names.extend(WORKLOADS.iter().map(|(name, ..)| (*name).to_owned()));
    names.extend(programs::program::entries().map(|e| e.name.to_owned()));
    names.extend(programs::service::entries().map(|e| e.name.to_owned()));
    names.extend(programs::host::entries().map(|e| e.name.to_owned()));
    names.extend(programs::kernels::names().map(str::to_owned));
    names.extend(cpu_trace::formats().map(|(name, _)| name.to_owned()));
    names.extend([metrics::MILESTONES, metrics::STAGES].into_iter().flatten().map(|(n, _)| (*n).to_owned()));
    names.extend(families().iter().flat_map(|f| f.family.entries.iter().map(|e| e.name.to_owned())));
    names.extend(formats().map(|f| f.name.to_owned()));
    names.extend(fio::options().flat_map(|o| [Some(o.name), o.alias]).flatten().map(str::to_owned));
    names.extend(glossary::entries().flat_map(|entry| entry.names().map(str::to_owned).collect::<Vec<_>>()));
    let keys = machine::catalogue::params().into_iter().map(|p| p.key);
    for key in keys.chain(metrics::all().into_iter().map(|m| m.key)) {
        names.extend(key.rsplit('.').next().map(str::to_owned));
        names.insert(key);
    }
    names
}
