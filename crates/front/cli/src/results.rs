//! Results: reading those of earlier runs and sweeps, writing the two files of `run --out`, and printing.

use crate::output::{Beside, Fault, cannot_write, make_folder, wrapped};
use config::Diagnostic;
use foreign::fio::{Job, job_of_inline, jobs_of_file};
use machine::Loaded;
use machine::plan::workloads::{WORKLOADS, part_and_workload};
use machine::result::{Document, human, spec_digest};
use machine::run::Plan;
use report::{Column, Run, Sweep};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Hint on how to get a table.
const WHERE: &str = "`nandscape sweep FILE --out DIR` writes one into DIR";

/// Reads a result document, given as a file or as its folder.
///
/// # Errors
/// The file cannot be read, or is not a result document.
pub(crate) fn read_run(path: &Path) -> Result<Run, Diagnostic> {
    let path = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    Run::read(path.display().to_string(), &bytes(&path)?)
}

/// Reads the bytes of a file.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    std::fs::read(path).map_err(|fault| {
        Diagnostic::new(format!("cannot read {}: {fault}", path.display()))
            .help("check the path: it is relative to the current folder")
    })
}

/// Reads a sweep table from CSV.
///
/// # Errors
/// The file cannot be read, or is not a sweep table.
pub(crate) fn read_csv(path: &Path) -> Result<Sweep, Diagnostic> {
    let bytes = bytes(path)?;
    let fault = |fault: csv::Error| {
        Diagnostic::new(format!("{} is not a CSV table: {fault}", path.display())).help(WHERE)
    };
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let mut columns: Vec<Column> =
        reader.headers().map_err(fault)?.iter().map(|name| (name.to_owned(), Vec::new())).collect();
    for record in reader.records() {
        let record = record.map_err(fault)?;
        for ((_, values), text) in columns.iter_mut().zip(&record) {
            values.push(value(text));
        }
    }
    Sweep::new(path.display().to_string(), columns)
}

/// Converts a CSV value; empty text is null.
fn value(text: &str) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    let number = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from));
    // Text that is not a finite number stays text.
    number.ok().filter(Value::is_number).unwrap_or_else(|| text.into())
}

/// Converts a list of JSON objects, one per run, to a sweep table.
///
/// # Errors
/// The list is not a sweep table.
pub(crate) fn table_of(name: String, rows: &[Value]) -> Result<Sweep, Diagnostic> {
    let mut names: Vec<&String> = Vec::new();
    for key in rows.iter().filter_map(Value::as_object).flat_map(|row| row.keys()) {
        if !names.contains(&key) {
            names.push(key);
        }
    }
    let column = |key: &String| (key.clone(), rows.iter().map(|row| row[key.as_str()].clone()).collect());
    Sweep::new(name, names.into_iter().map(column).collect())
}

/// Reads a sweep table from Parquet.
///
/// # Errors
/// The file cannot be read or is not a sweep table, or the program was built without Parquet.
#[cfg(feature = "parquet")]
pub(crate) fn read_parquet(path: &Path) -> Result<Sweep, Diagnostic> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let name = path.display().to_string();
    let fault = |fault: parquet::errors::ParquetError| {
        Diagnostic::new(format!("{name} is not a Parquet file: {fault}")).help(WHERE)
    };
    let file =
        std::fs::File::open(path).map_err(|fault| Diagnostic::new(format!("cannot read {name}: {fault}")))?;
    let reader = SerializedFileReader::new(file).map_err(fault)?;
    let mut columns: Vec<Column> = Vec::new();
    for row in reader.get_row_iter(None).map_err(fault)? {
        for (at, (column, field)) in row.map_err(fault)?.get_column_iter().enumerate() {
            let value = match field {
                Field::Bool(value) => Value::from(*value),
                Field::Long(value) => Value::from(*value),
                Field::Double(value) => Value::from(*value),
                Field::Str(text) => Value::from(text.as_str()),
                Field::Null => Value::Null,
                other => Value::from(other.to_string()),
            };
            if columns.len() <= at {
                columns.push((column.clone(), Vec::new()));
            }
            columns[at].1.push(value);
        }
    }
    Sweep::new(name, columns)
}

/// Refuses Parquet in a build without it.
#[cfg(not(feature = "parquet"))]
pub(crate) fn read_parquet(path: &Path) -> Result<Sweep, Diagnostic> {
    Err(Diagnostic::new(format!("cannot read {}: this program was built without Parquet", path.display())).help(
        "`cargo build --release --features parquet` builds it with Parquet; `sweep --format csv` writes CSV instead",
    ))
}

// The two files of `run --out`: the resolved spec and the result. Either both exist and belong together, or neither
// does.
//
// Both are written to temporary files and renamed at the end. A kill may come between the two renames, so an older
// result is removed first. At any moment the folder holds the old pair, a spec without a result, or the new pair. Each
// file names the other: the result has `spec_sha256`, and the spec has that digest and the digest of the result's file.

const SPEC: &str = "spec.toml";

const RESULT: &str = "result.json";

/// Folder prepared for its two files.
pub(crate) struct ResultFolder {
    folder: PathBuf,
    /// Folders created for it.
    made: Vec<PathBuf>,
    loaded: Loaded,
    spec: Option<(Beside, File)>,
}

impl ResultFolder {
    /// Names of its files.
    pub(crate) const NAMES: [&str; 2] = [SPEC, RESULT];

    /// Creates the folder and checks that it is writable, before any run is spent.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(crate) fn open(folder: &Path, loaded: Loaded) -> Result<ResultFolder, Fault> {
        let made = make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
        let mut this = ResultFolder { folder: folder.to_owned(), made, loaded, spec: None };
        let place = folder.join(SPEC);
        this.spec = Some(Beside::hidden(&place).map_err(|fault| cannot_write(&place, &fault))?);
        Ok(this)
    }

    /// Moves both files into place.
    ///
    /// # Errors
    /// A file cannot be written; then neither new file exists.
    pub(crate) fn deliver(mut self, document: &Document) -> Result<(), Fault> {
        if spec_digest(&self.loaded.spec) != document.spec_sha256 {
            let what = Diagnostic::new(format!(
                "the system `{}` was changed while it was being read",
                document.system
            ));
            return Err(Fault::Undelivered(what.help("run it again")));
        }
        let (spec_place, result_place) = (self.folder.join(SPEC), self.folder.join(RESULT));
        let result = document.to_json();
        let spec = headed(&self.loaded.to_toml(), &document.spec_sha256, &result);
        if let Some((spec_beside, mut spec_file)) = self.spec.take() {
            fill(&mut spec_file, &spec).map_err(|fault| cannot_write(&spec_place, &fault))?;
            let cannot = |fault: io::Error| cannot_write(&result_place, &fault);
            let (result_beside, mut result_file) = Beside::hidden(&result_place).map_err(cannot)?;
            fill(&mut result_file, &result).map_err(cannot)?;
            // Serialises two runs that end in one folder at the same time.
            let turn = File::open(&self.folder).ok().filter(|folder| folder.lock().is_ok());
            remove_if_there(&result_place).map_err(cannot)?;
            spec_beside.settle().map_err(|fault| cannot_write(&spec_place, &fault))?;
            result_beside.settle().map_err(cannot)?;
            drop(turn);
        }
        self.made.clear();
        Ok(())
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        self.spec = None;
        for folder in self.made.iter().rev() {
            // A folder that something else has been put into stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Adds a header to the spec that identifies its result.
fn headed(spec: &str, digest: &str, result: &str) -> String {
    let file = Sha256::digest(result.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "# {RESULT} beside this file has the result; its SHA-256 is {file}\n# spec_sha256 in it is {digest}\n{spec}"
    )
}

fn fill(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => Err(fault),
        _ => Ok(()),
    }
}

/// Output form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// Text for people.
    Text,
    /// Result document.
    Json,
    /// fio's own output, json+.
    Fio,
}

/// Name of fio's form; trace formats do not use it.
const FIO: &str = "fio";

impl Printed {
    /// Form that the options ask for: `--json`, `--output-format`, or `--format fio`, which is removed from the plan as
    /// it is not a trace format.
    ///
    /// # Errors
    /// The options ask for different forms.
    pub(crate) fn of(json: bool, format: Option<&str>, plan: &mut Plan) -> Result<Printed, Diagnostic> {
        let mut wanted = Vec::new();
        if json {
            wanted.push(("--json", Printed::Json));
        }
        match format {
            Some("text") => wanted.push(("--output-format", Printed::Text)),
            Some("json") => wanted.push(("--output-format", Printed::Json)),
            Some(_) => wanted.push(("--output-format", Printed::Fio)),
            None => {}
        }
        if plan.trace.format.as_deref() == Some(FIO) {
            plan.trace.format = None;
            wanted.push(("--format fio", Printed::Fio));
        }
        match &wanted[..] {
            [] => Ok(Printed::Text),
            [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => Ok(*first),
            several => {
                let options: Vec<&str> = several.iter().map(|(option, _)| *option).collect();
                Err(Diagnostic::new(format!(
                    "{} ask for different forms of one result",
                    options.join(" and ")
                ))
                .help("give only one of them"))
            }
        }
    }

    /// Formats a result.
    pub(crate) fn text(self, document: &Document, plan: &Plan) -> String {
        match self {
            Printed::Text => wrapped(&human(document)),
            Printed::Json => document.to_json(),
            Printed::Fio => {
                // A document is JSON: reading and writing it cannot fail.
                let value = serde_json::from_str(&document.to_json()).unwrap_or_default();
                serde_json::to_string_pretty(&foreign::fio::print(&value, &jobs(plan))).unwrap_or_default()
            }
        }
    }
}

/// Workloads that are fio jobs.
fn jobs(plan: &Plan) -> Vec<Job> {
    let of = |text: &String| {
        let text = part_and_workload(text).map_or(text.as_str(), |(_, workload)| workload);
        let shipped = WORKLOADS.iter().find(|(name, ..)| *name == text).map(|(.., job)| *job);
        match shipped.or_else(|| text.starts_with("fio:").then_some(text)) {
            Some(inline) => vec![job_of_inline(inline)],
            None if Path::new(text).extension().is_some_and(|ending| ending == "fio" || ending == "job") => {
                config::read_text(Path::new(text)).map(|text| jobs_of_file(&text)).unwrap_or_default()
            }
            None => Vec::new(),
        }
    };
    plan.workloads.iter().flat_map(of).collect()
}
