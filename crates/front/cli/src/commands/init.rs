//! `nandscape init`.

use crate::calibration::Sources;
use crate::output::{Fault, print, write_whole};
use config::Diagnostic;
use config::schema::Param;
use machine::Loaded;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Width of a comment line in characters.
const WIDTH: usize = 110;
/// Maximum number of units listed for a quantity; `params` lists all.
const UNITS: usize = 6;

/// Arguments of `init`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// File to write, such as my-drive.toml
    file: PathBuf,
    /// System to copy values from: a shipped name or a TOML file
    #[arg(long, value_name = "SYSTEM")]
    like: String,
}

/// Writes a complete system file: each key with its value, meaning, units and source.
///
/// # Errors
/// The system is unknown, or the file exists or cannot be written.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let loaded = machine::load(&args.like, &[])?;
    let text = skeleton(&args.like, &loaded);
    create(&args.file, &text)?;
    let (file, keys) = (args.file.display(), loaded.resolved().values().len());
    print(&format!(
        "{file}: the {keys} keys of {}\nnandscape check {file}\nnandscape run {file} --workload randread",
        args.like
    ))?;
    Ok(true)
}

/// Writes a new file; an existing one is refused.
fn create(path: &Path, text: &str) -> Result<(), Fault> {
    if path.exists() {
        return Err(Diagnostic::new(format!("{} already exists", path.display()))
            .help("give a different name, or remove it first")
            .into());
    }
    write_whole(path, text.as_bytes())
}

/// Builds the text of the file.
fn skeleton(like: &str, loaded: &Loaded) -> String {
    let values = loaded.resolved().values();
    let params: BTreeMap<String, Param> =
        machine::catalogue::params().into_iter().map(|param| (param.key.clone(), param)).collect();
    let as_kind = |key: &str| loaded.as_kind(key);
    let sources = Sources::of(&values, &as_kind);
    let mut text = head(like, &sources);
    // Tables in the order of their text; keys outside any table come first.
    let table_of = |key: &str| key.rsplit_once('.').map_or("", |(table, _)| table).to_owned();
    let mut tables: Vec<String> = vec![String::new()];
    for (key, value, _) in &values {
        let table = if value.is_table() { key.clone() } else { table_of(key) };
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in &tables {
        if !table.is_empty() {
            let _ = writeln!(text, "\n[{table}]");
        }
        for (key, value, place) in
            values.iter().filter(|(key, value, _)| !value.is_table() && table_of(key) == *table)
        {
            text.push('\n');
            comment(&mut text, &meaning(params.get(&as_kind(key)), key));
            if let Some(source) = sources.of_key(&[key, &as_kind(key)], place) {
                comment(&mut text, &format!("Source: {source}"));
            }
            let _ = writeln!(text, "{} = {value}", last(key));
        }
        let is_set =
            |key: &str| values.iter().any(|(set, ..)| set == key || set.starts_with(&format!("{key}.")));
        let kind = as_kind(table);
        let left_out = params.values().filter(|p| table_of(&p.key) == kind && p.default.is_some());
        let own = |param: &Param| format!("{table}{}", param.key.strip_prefix(&kind).unwrap_or_default());
        for param in left_out.filter(|param| !is_set(&own(param))) {
            text.push('\n');
            comment(
                &mut text,
                &format!("{}: left out. {}", last(&param.key), meaning(Some(param), &param.key)),
            );
        }
    }
    text.push_str(&absent(&params, &tables));
    text
}

/// Introduction of the file, with the sources that have short names.
fn head(like: &str, sources: &Sources) -> String {
    let mut text = String::new();
    comment(
        &mut text,
        &format!(
            "A system like {like}: every key with its value, its meaning, and the source of the value. If you change a \
             value, update its source. `nandscape check FILE` reports what is wrong."
        ),
    );
    for (system, legend) in sources.legends() {
        if !legend.is_empty() {
            text.push_str("#\n");
            comment(&mut text, &format!("Sources by their short names in systems/{system}/calibration.md:"));
        }
        legend.iter().for_each(|source| comment(&mut text, &format!("* {source}")));
    }
    text
}

/// Lists the tables that the system omits, by their topmost keys.
fn absent(params: &BTreeMap<String, Param>, tables: &[String]) -> String {
    let there = |key: &str| {
        tables.iter().any(|table| table == key || table.strip_prefix(key).is_some_and(|r| r.starts_with('.')))
    };
    let topmost = |key: &str| {
        let ends = key.match_indices('.').map(|(dot, _)| &key[..dot]);
        ends.into_iter().find(|table| !there(table)).map(str::to_owned)
    };
    // Other forms of a choice already made do not count as absent.
    let is_table = |table: &String| {
        let around = table.rsplit_once('.').map_or("", |(around, _)| around);
        !params.contains_key(table.as_str()) && !params.contains_key(around)
    };
    let found: BTreeSet<String> = params.keys().filter_map(|key| topmost(key)).filter(is_table).collect();
    let mut text = String::from("\n");
    let names: Vec<String> = found.iter().map(|table| format!("[{table}]")).collect();
    if !names.is_empty() {
        let list = names.join(", ");
        comment(
            &mut text,
            &format!("Further tables allowed here (`nandscape params NAME` has their keys): {list}"),
        );
    }
    text
}

/// Describes a key: its meaning and allowed values.
fn meaning(param: Option<&Param>, key: &str) -> String {
    let Some(param) = param else {
        match last(key) {
            "kind" => return "Kind of the component. Value: the name of a kind.".to_owned(),
            "count" => return "Number of such components. Value: integer, 1 to 256.".to_owned(),
            _ => {}
        }
        return format!("{}: see `nandscape explain {}`", last(key), last(key));
    };
    let mut units = param.units.iter().take(UNITS).cloned().collect::<Vec<_>>().join(", ");
    if param.units.len() > UNITS {
        units.push_str(", ...");
    }
    let units = if units.is_empty() { units } else { format!(" ({units})") };
    let allowed = if param.allowed.is_empty() { String::new() } else { format!(", {}", param.allowed) };
    format!("{} Value: {}{units}{allowed}.", param.doc.replace('\n', " "), param.kind)
}

fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Writes a comment, wrapped over several lines.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() > 1 && line.chars().count() + 2 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push_str("\n#");
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
