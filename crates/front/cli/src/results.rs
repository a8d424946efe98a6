//! Results: those that earlier runs and sweeps have left, the two files of `run --out`, and how one is printed.

use crate::output::{Beside, Fault, cannot_write, make_folder};
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

/// Where tables come from.
const WHERE: &str = "`nandscape sweep FILE --out DIR` leaves one in DIR";

/// Reads a result document, named by itself or by its folder.
///
/// # Errors
/// It cannot be read, or is something else.
pub(crate) fn read_run(path: &Path) -> Result<Run, Diagnostic> {
    let path = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    Run::read(path.display().to_string(), &bytes(&path)?)
}

/// The content of a file.
///
/// # Errors
/// It cannot be read.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Diagnostic> {
    std::fs::read(path).map_err(|fault| {
        Diagnostic::new(format!("cannot read {}: {fault}", path.display()))
            .help("is the path right? it is relative to the folder that the command runs in")
    })
}

/// Reads the table of a sweep as CSV.
///
/// # Errors
/// It cannot be read, or is something else.
pub(crate) fn read_csv(path: &Path) -> Result<Sweep, Diagnostic> {
    let bytes = bytes(path)?;
    let fault =
        |fault: csv::Error| Diagnostic::new(format!("{} is no table: {fault}", path.display())).help(WHERE);
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

/// A value as CSV has it; nothing if it is empty.
fn value(text: &str) -> Value {
    if text.is_empty() {
        return Value::Null;
    }
    let number = text.parse::<i64>().map(Value::from).or_else(|_| text.parse::<f64>().map(Value::from));
    // What is no finite number stays what it says.
    number.ok().filter(Value::is_number).unwrap_or_else(|| text.into())
}

/// The table of a sweep as a list of JSON objects, one a run.
///
/// # Errors
/// It is something else.
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

/// Reads the table of a sweep as Parquet.
///
/// # Errors
/// It cannot be read, or is something else; the program was built without Parquet.
#[cfg(feature = "parquet")]
pub(crate) fn read_parquet(path: &Path) -> Result<Sweep, Diagnostic> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let name = path.display().to_string();
    let fault = |fault: parquet::errors::ParquetError| {
        Diagnostic::new(format!("{name} is no Parquet file: {fault}")).help(WHERE)
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

/// Without the feature, says how to build with it.
#[cfg(not(feature = "parquet"))]
pub(crate) fn read_parquet(path: &Path) -> Result<Sweep, Diagnostic> {
    Err(Diagnostic::new(format!("{} is Parquet, and this program was built without", path.display())).help(
        "`cargo build --release --features parquet` builds it with Parquet; `sweep --format csv` leaves a table that needs nothing",
    ))
}

// The two files of `run --out`: the resolved spec and the result. Either both are there and belong together, or neither
// is.
//
// Both are written beside their places and moved at the end. Of two renames a kill may come between: so an older result
// goes first, and what is left at any moment is the old pair, a spec without a result, or the new pair. Each names the
// other: the result has `spec_sha256`, and the spec says that digest and the one of the result's file.

const SPEC: &str = "spec.toml";

const RESULT: &str = "result.json";

/// A folder that waits for its two files.
pub(crate) struct ResultFolder {
    folder: PathBuf,
    /// Folders that were made for it.
    made: Vec<PathBuf>,
    loaded: Loaded,
    spec: Option<(Beside, File)>,
}

impl ResultFolder {
    /// Its files.
    pub(crate) const NAMES: [&str; 2] = [SPEC, RESULT];

    /// Makes the folder and sees that it can be written: one that cannot be costs no run.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn open(folder: &Path, loaded: Loaded) -> Result<ResultFolder, Fault> {
        let made = make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
        let mut this = ResultFolder { folder: folder.to_owned(), made, loaded, spec: None };
        let place = folder.join(SPEC);
        this.spec = Some(Beside::hidden(&place).map_err(|fault| cannot_write(&place, &fault))?);
        Ok(this)
    }

    /// Puts both files into their places.
    ///
    /// # Errors
    /// One cannot be written; then there is neither of the new ones.
    pub(crate) fn deliver(mut self, document: &Document) -> Result<(), Fault> {
        if spec_digest(&self.loaded.spec) != document.spec_sha256 {
            let what =
                Diagnostic::new(format!("the system `{}` was changed while it was read", document.system));
            return Err(Fault::Undelivered(what.help("the run must be made again")));
        }
        let (spec_place, result_place) = (self.folder.join(SPEC), self.folder.join(RESULT));
        let result = document.to_json();
        let spec = headed(&self.loaded.to_toml(), &document.spec_sha256, &result);
        if let Some((spec_beside, mut spec_file)) = self.spec.take() {
            fill(&mut spec_file, &spec).map_err(|fault| cannot_write(&spec_place, &fault))?;
            let cannot = |fault: io::Error| cannot_write(&result_place, &fault);
            let (result_beside, mut result_file) = Beside::hidden(&result_place).map_err(cannot)?;
            fill(&mut result_file, &result).map_err(cannot)?;
            // Of two runs that end at once in one folder, one comes after the other.
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
            // One that somebody else has put something into stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The spec with what says which result is its.
fn headed(spec: &str, digest: &str, result: &str) -> String {
    let file = Sha256::digest(result.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "# {RESULT} beside has the result; its SHA-256 is {file}\n# spec_sha256 in it is {digest}\n{spec}"
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

/// A form that a result is printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    /// For people.
    Text,
    /// The document.
    Json,
    /// As fio prints its own, json+.
    Fio,
}

/// The name of the form that is fio's; no format of traces has it.
const FIO: &str = "fio";

impl Printed {
    /// What options say: `--json`, `--output-format`, and `--format fio`, which names no format of traces and is taken
    /// out of the plan.
    ///
    /// # Errors
    /// Options that want different forms.
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
                Err(Diagnostic::new(format!("{} want different forms of one result", options.join(" and ")))
                    .help("give one of them"))
            }
        }
    }

    /// The text of a result.
    pub(crate) fn text(self, document: &Document, plan: &Plan) -> String {
        match self {
            Printed::Text => human(document),
            Printed::Json => document.to_json(),
            Printed::Fio => {
                // A document is JSON: reading and writing it cannot fail.
                let value = serde_json::from_str(&document.to_json()).unwrap_or_default();
                serde_json::to_string_pretty(&foreign::fio::print(&value, &jobs(plan))).unwrap_or_default()
            }
        }
    }
}

/// The jobs that workloads are, as far as they are fio's.
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
