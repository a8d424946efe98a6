//! Results that earlier runs and sweeps have left, as files.

use config::Diagnostic;
use report::{Column, Run, Sweep};
use serde_json::Value;
use std::path::Path;

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
