//! Requests as Parquet: typed, nullable columns, a row group for every 65,536 rows.

use crate::observe::Sink;
use crate::output::{Fault, cannot_write};
use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use machine::result::requests::{COLUMNS, Cell, Kind, columns};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows per row group.
const GROUP: usize = 1 << 16;

/// Output of the Parquet writer that has not reached the file yet.
#[derive(Clone, Default)]
struct Pipe(Arc<Mutex<Vec<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parquet file being written.
pub(super) struct Rows {
    path: PathBuf,
    sink: Sink,
    pipe: Pipe,
    writer: Option<SerializedFileWriter<Pipe>>,
    rows: Vec<[Cell; COLUMNS]>,
    fault: Option<ParquetError>,
}

impl Rows {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn create(path: &Path) -> Result<Rows, Fault> {
        let pipe = Pipe::default();
        let writer = writer(pipe.clone()).map_err(|fault| cannot_write(path, &io::Error::other(fault)))?;
        let sink = Sink::create(path)?;
        Ok(Rows { path: path.to_owned(), sink, pipe, writer: Some(writer), rows: Vec::new(), fault: None })
    }

    /// Writes a request.
    pub(super) fn write(&mut self, row: &[Cell; COLUMNS]) {
        self.rows.push(*row);
        if self.rows.len() == GROUP {
            self.group();
        }
    }

    /// Writes the buffered rows as a row group.
    fn group(&mut self) {
        if let Some(writer) = &mut self.writer
            && let Err(fault) = group(writer, &self.rows)
        {
            self.fault.get_or_insert(fault);
        }
        self.rows.clear();
        self.drain();
    }

    fn drain(&mut self) {
        let bytes = std::mem::take(&mut *self.pipe.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.sink.write_bytes(&bytes);
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// The file is incomplete.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        if !self.rows.is_empty() {
            self.group();
        }
        if let Some(Err(fault)) = self.writer.take().map(SerializedFileWriter::into_inner) {
            self.fault.get_or_insert(fault);
        }
        self.drain();
        match self.fault.take() {
            Some(fault) => {
                Err(Fault::Undelivered(cannot_write(&self.path, &io::Error::other(fault)).diagnostic()))
            }
            None => self.sink.finish(),
        }
    }
}

fn writer(pipe: Pipe) -> Result<SerializedFileWriter<Pipe>, ParquetError> {
    let field = |(name, kind): &(String, Kind)| {
        let (physical, logical) = match kind {
            Kind::Whole => (Physical::INT64, None),
            Kind::Time => (Physical::DOUBLE, None),
            Kind::Word => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields = columns().iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("requests").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    SerializedFileWriter::new(pipe, schema, Arc::new(properties))
}

fn group(writer: &mut SerializedFileWriter<Pipe>, rows: &[[Cell; COLUMNS]]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (at, (_, kind)) in columns().iter().enumerate() {
        match kind {
            Kind::Whole => fill::<Int64Type>(&mut group, rows, at, |cell| match cell {
                Cell::Whole(number) => i64::try_from(number).ok(),
                _ => None,
            }),
            Kind::Time => fill::<DoubleType>(&mut group, rows, at, |cell| match cell {
                Cell::Time(time) => Some(time.as_ns_f64()),
                _ => None,
            }),
            Kind::Word => fill::<ByteArrayType>(&mut group, rows, at, |cell| match cell {
                Cell::Word(word) => Some(ByteArray::from(word)),
                _ => None,
            }),
        }?;
    }
    group.close().map(drop)
}

/// Writes a column; missing values are null.
fn fill<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Pipe>,
    rows: &[[Cell; COLUMNS]],
    at: usize,
    of: impl Fn(Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let found: Vec<Option<T::T>> = rows.iter().map(|row| of(row[at])).collect();
    let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = found.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
