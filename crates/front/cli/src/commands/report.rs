//! `nandscape report`.

use crate::calibration::Sources;
use crate::output::{Fault, Files, refuse_no_place, write_whole};
use crate::results::{bytes, read_csv, read_parquet, read_run, table_of};
use config::{Diagnostic, Place};
use report::{Run, Shipped, Sweep};
use serde_json::Value;
use spec::systems::SYSTEMS;
use std::path::{Path, PathBuf};

/// Arguments of `report`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Result documents or folders with a result.json; or one sweep (folder, or table as CSV, Parquet or JSON); or rows
    /// of `reproduce --json`
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// HTML file to write; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Input that can be drawn.
enum Input {
    Run(Box<Run>),
    Sweep(Sweep),
    Rows(String, Vec<Value>),
}

/// Draws results.
///
/// # Errors
/// A file is unreadable or not a result, or one of several inputs is not a run.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    refuse_no_place(&args.output)?;
    let files = Files::default().writes("--output", Some(&args.output));
    let inputs_of = |files: Files, path: &PathBuf| {
        ["result.json", "spec.toml", "summary.csv", "summary.parquet"]
            .iter()
            .fold(files, |files, name| files.reads("RESULT", &path.join(name)))
            .reads("RESULT", path)
    };
    args.results.iter().fold(files, inputs_of).apart()?;
    let mut inputs = args.results.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let page = if inputs.len() == 1 { one(inputs.remove(0)) } else { several(inputs)? };
    write_whole(&args.output, page.as_bytes())?;
    tell!("{}: {} kB", args.output.display(), page.len() / 1000);
    Ok(true)
}

fn one(input: Input) -> String {
    match input {
        Input::Run(run) => report::run(&run, shipped(&run).as_ref()),
        Input::Sweep(sweep) => report::sweep(&sweep),
        Input::Rows(name, rows) => report::rows(&[(&name, &rows)], ""),
    }
}

fn several(inputs: Vec<Input>) -> Result<String, Diagnostic> {
    let run = |input| match input {
        Input::Run(run) => Ok(*run),
        Input::Sweep(sweep) => Err(alone(sweep.name(), "a sweep")),
        Input::Rows(name, _) => Err(alone(&name, "rows of a reproduction")),
    };
    let runs = inputs.into_iter().map(run).collect::<Result<Vec<Run>, Diagnostic>>()?;
    Ok(match runs.as_slice() {
        [a, b] => report::pair(a, b),
        all => report::many(all),
    })
}

fn alone(name: &str, what: &str) -> Diagnostic {
    Diagnostic::new(format!("{name} is {what}, which cannot be drawn with other results"))
        .help("give it alone; several results must all be documents of runs")
}

/// Returns the shipped system that a run names, if it is one.
fn shipped(run: &Run) -> Option<Shipped> {
    let system = run.document.get("system")?.as_str()?;
    SYSTEMS.iter().find(|(name, _)| *name == system)?;
    let loaded = machine::load(system, &[]).ok()?;
    let spec = loaded.spec.to_json();
    let values = loaded.resolved().values();
    let as_kind = |key: &str| loaded.as_kind(key);
    let pages = Sources::of(&values, &as_kind);
    let source = |(key, _, place): &(String, toml::Value, Place)| {
        let words = pages.of_key(&[key, &as_kind(key)], place);
        (key.clone(), words.unwrap_or_else(|| place.source.clone()))
    };
    Some(Shipped { spec, sources: values.iter().map(source).collect() })
}

fn read(path: &Path) -> Result<Input, Diagnostic> {
    if path.is_dir() {
        return folder(path);
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => return Ok(Input::Sweep(read_csv(path)?)),
        Some("parquet") => return Ok(Input::Sweep(read_parquet(path)?)),
        _ => {}
    }
    let bytes = bytes(path)?;
    let name = path.display().to_string();
    match serde_json::from_slice(&bytes) {
        Ok(Value::Array(rows)) => list(path, name, rows),
        _ => Ok(Input::Run(Box::new(Run::read(name, &bytes)?))),
    }
}

/// Reads a list of rows: of a sweep or of a reproduction.
fn list(path: &Path, name: String, rows: Vec<Value>) -> Result<Input, Diagnostic> {
    let has = |keys: [&str; 4]| {
        !rows.is_empty() && rows.iter().all(|row| keys.iter().all(|key| row.get(key).is_some()))
    };
    if has(["id", "paper", "tolerance", "within"]) {
        let target = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        return Ok(Input::Rows(target.unwrap_or(name), rows));
    }
    Ok(Input::Sweep(table_of(name, &rows)?))
}

/// Reads the folder of a run or of a sweep.
fn folder(path: &Path) -> Result<Input, Diagnostic> {
    let has = |name: &str| path.join(name).is_file();
    if has("result.json") {
        return Ok(Input::Run(Box::new(read_run(path)?)));
    }
    if has("summary.csv") {
        return Ok(Input::Sweep(read_csv(&path.join("summary.csv"))?.named(path.display())));
    }
    if has("summary.parquet") {
        return Ok(Input::Sweep(read_parquet(&path.join("summary.parquet"))?.named(path.display())));
    }
    let help = if path.join("runs").is_dir() {
        "its sweep has not finished: `nandscape sweep FILE --out DIR --resume` finishes it and writes the table"
    } else {
        "`nandscape run --out DIR` writes a result.json into a folder, `nandscape sweep` a summary.csv"
    };
    Err(Diagnostic::new(format!("{} has neither a result nor a sweep table", path.display())).help(help))
}

#[cfg(test)]
mod tests {

    use machine::result::SCHEMA;
    use report::Wire;
    use spec::systems::SYSTEMS;
    use spec::{Id, Spec};

    #[test]
    fn pages_read_what_runs_write() {
        assert_eq!(SCHEMA, report::SCHEMA);
    }

    const KEYS: [&str; 13] = [
        "mmu",
        "network",
        "l2",
        "paging",
        "fabric",
        "directory",
        "swap",
        "memory",
        "targets",
        "drive",
        "drives",
        "coprocessors",
        "storage",
    ];

    /// Links found by a machine, as wires.
    fn links(spec: &Spec) -> Vec<Wire> {
        let mut found = Vec::new();
        let mut add = |name: &str, key: &str, to: &[Id]| {
            found.extend(to.iter().map(|to| Wire {
                from: name.to_owned(),
                key: key.to_owned(),
                to: spec.name_of(*to).to_owned(),
            }));
        };
        macro_rules! of {
            ($($kind:ident),+) => {
                $(for part in &spec.$kind {
                    KEYS.iter().for_each(|key| add(&part.name, key, part.linked(key)));
                })+
            };
        }
        of!(gpu, cpu, host, l2, memory, placement, paging, swap, stripe, accelerator, coprocessor);
        found.sort();
        found
    }

    #[test]
    fn a_page_draws_the_wires_that_a_machine_has() {
        for (name, _) in SYSTEMS {
            let loaded = machine::load(name, &[]).expect("it is shipped");
            let mut drawn = report::wires(&loaded.spec.to_json());
            drawn.sort();
            assert_eq!(drawn, links(&loaded.spec), "{name}");
        }
    }
}
