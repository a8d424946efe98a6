//! Sweep table as Parquet: typed, nullable columns, one row group.

use super::table::{Column, Table, text};
use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use config::Diagnostic;
use serde_json::Value;
use std::sync::Arc;

/// Narrowest type that holds every value of a column exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bool,
    Int,
    Double,
    Text,
}

/// Writes the table as a Parquet file.
///
/// # Errors
/// None that the user can correct.
pub fn parquet(table: &Table) -> Result<Vec<u8>, Diagnostic> {
    write(table).map_err(|fault| Diagnostic::new(format!("cannot write the table as Parquet: {fault}")))
}

fn write(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let kinds: Vec<Kind> = table.0.iter().map(kind).collect();
    let fields = table.0.iter().zip(&kinds).map(|(column, kind)| field(&column.name, *kind).map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("sweep").with_fields(fields).build()?);
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (column, kind) in table.0.iter().zip(kinds) {
        let values = &column.values;
        match kind {
            Kind::Bool => fill::<BoolType>(&mut group, values, Value::as_bool),
            Kind::Int => fill::<Int64Type>(&mut group, values, Value::as_i64),
            Kind::Double => fill::<DoubleType>(&mut group, values, Value::as_f64),
            Kind::Text => fill::<ByteArrayType>(&mut group, values, |value| {
                (!value.is_null()).then(|| ByteArray::from(text(value).into_bytes()))
            }),
        }?;
    }
    group.close()?;
    writer.into_inner()
}

/// Writes a column; missing values are null.
fn fill<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[Value],
    of: impl Fn(&Value) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    let found: Vec<Option<T::T>> = values.iter().map(of).collect();
    let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = found.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

fn field(name: &str, kind: Kind) -> Result<Type, ParquetError> {
    let physical = match kind {
        Kind::Bool => Physical::BOOLEAN,
        Kind::Int => Physical::INT64,
        Kind::Double => Physical::DOUBLE,
        Kind::Text => Physical::BYTE_ARRAY,
    };
    let logical = (kind == Kind::Text).then_some(LogicalType::String);
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn kind(column: &Column) -> Kind {
    let present = || column.values.iter().filter(|value| !value.is_null());
    match () {
        () if present().next().is_none() => Kind::Text,
        () if present().all(Value::is_boolean) => Kind::Bool,
        () if present().all(Value::is_i64) => Kind::Int,
        // A number would lose precision.
        () if present().any(|value| value.is_u64() && !value.is_i64()) => Kind::Text,
        () if present().all(Value::is_number) => Kind::Double,
        () => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;
    use serde_json::json;
    use std::io::Write;

    #[test]
    fn a_reader_finds_types_values_and_nulls() {
        let column = |name: &str, values: &[Value]| Column { name: name.to_owned(), values: values.to_vec() };
        let table = Table(vec![
            column("run", &[json!(0), json!(1), json!(2)]),
            column("io.all.iops", &[json!(1.5), Value::Null, json!(3)]),
            column("flash.buffer.reads", &[json!(true), json!(false), Value::Null]),
            column("mixed", &[json!(1), json!("none"), Value::Null]),
            column("large", &[json!(u64::MAX), json!(1), json!(1)]),
            column("message", &[Value::Null, Value::Null, Value::Null]),
        ]);
        let bytes = parquet(&table).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap());
        let rows: Vec<Vec<Field>> =
            rows.map(|row| row.get_column_iter().map(|c| c.1.clone()).collect()).collect();
        let text = |text: &str| Field::Str(text.to_owned());
        assert_eq!(
            rows,
            [
                vec![
                    Field::Long(0),
                    Field::Double(1.5),
                    Field::Bool(true),
                    text("1"),
                    text("18446744073709551615"),
                    Field::Null
                ],
                vec![Field::Long(1), Field::Null, Field::Bool(false), text("none"), text("1"), Field::Null],
                vec![Field::Long(2), Field::Double(3.0), Field::Null, Field::Null, text("1"), Field::Null],
            ]
        );
        let names =
            reader.metadata().file_metadata().schema_descr().columns().iter().map(|c| c.name().to_owned());
        assert_eq!(names.collect::<Vec<_>>(), table.0.iter().map(|c| c.name.clone()).collect::<Vec<_>>());
    }
}
