//! Messages of an ONNX file (onnx.proto3 of ONNX 1.16), as far as they are read: shapes, attributes, small constants;
//! and recognition of a file by its first bytes.

use prost::bytes::Bytes;

/// `ModelProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ModelProto {
    #[prost(int64, tag = "1")]
    pub(crate) ir_version: i64,
    #[prost(message, optional, tag = "7")]
    pub(crate) graph: Option<GraphProto>,
}

/// `GraphProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub(crate) output: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) value_info: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "15")]
    pub(crate) sparse_initializer: Vec<SparseTensorProto>,
}

/// `SparseTensorProto`, without its indices.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SparseTensorProto {
    /// Nonzero elements; their name is that of the whole tensor.
    #[prost(message, optional, tag = "1")]
    pub(crate) values: Option<TensorProto>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) dims: Vec<i64>,
}

impl SparseTensorProto {
    /// Returns the whole tensor without its elements.
    pub(crate) fn whole(self) -> TensorProto {
        let values = self.values.unwrap_or_default();
        TensorProto {
            dims: self.dims,
            data_type: values.data_type,
            name: values.name,
            ..TensorProto::default()
        }
    }
}

/// `NodeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub(crate) input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) output: Vec<String>,
    #[prost(string, tag = "3")]
    pub(crate) name: String,
    #[prost(string, tag = "4")]
    pub(crate) op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub(crate) attribute: Vec<AttributeProto>,
}

/// `AttributeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AttributeProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(float, tag = "2")]
    pub(crate) f: f32,
    #[prost(int64, tag = "3")]
    pub(crate) i: i64,
    #[prost(bytes = "bytes", tag = "4")]
    pub(crate) s: Bytes,
    #[prost(message, optional, tag = "5")]
    pub(crate) t: Option<TensorProto>,
    #[prost(float, repeated, tag = "7")]
    pub(crate) floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub(crate) ints: Vec<i64>,
    #[prost(message, optional, tag = "22")]
    pub(crate) sparse_tensor: Option<SparseTensorProto>,
}

/// `TensorProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub(crate) dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub(crate) data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub(crate) float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub(crate) int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub(crate) name: String,
    #[prost(bytes = "bytes", tag = "9")]
    pub(crate) raw_data: Bytes,
    #[prost(message, repeated, tag = "13")]
    pub(crate) external_data: Vec<Entry>,
}

/// `StringStringEntryProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Entry {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

/// `ValueInfoProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) r#type: Option<TypeProto>,
}

/// `TypeProto`, of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub(crate) tensor_type: Option<TensorType>,
}

/// `TypeProto.Tensor`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorType {
    #[prost(int32, tag = "1")]
    pub(crate) elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) shape: Option<TensorShapeProto>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub(crate) dim: Vec<Dimension>,
}

/// `TensorShapeProto.Dimension`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Dimension {
    #[prost(int64, optional, tag = "1")]
    pub(crate) dim_value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) dim_param: Option<String>,
}

// Recognition of a model by its first bytes.

/// Length-delimited fields of `ModelProto`: names, texts, operator sets, metadata, functions; the graph is field
/// seven.
const WITH_LENGTH: [u64; 9] = [2, 3, 4, 6, 8, 14, 20, 25, 26];

const GRAPH: u64 = 7;

/// Returns true if bytes are the beginning of an ONNX model: its version, then known fields up to a graph that begins
/// with a node, a name or a tensor.
pub(crate) fn is_onnx(start: &[u8]) -> bool {
    walk_fields(start).unwrap_or(false)
}

fn walk_fields(start: &[u8]) -> Option<bool> {
    // Field 1, `ir_version`: files have versions of one byte.
    let mut rest = start.strip_prefix(&[0x08])?;
    let version = take_varint(&mut rest)?;
    if !(1..=64).contains(&version) {
        return None;
    }
    loop {
        let tag = take_varint(&mut rest)?;
        let (field, kind) = (tag >> 3, tag & 7);
        match (field, kind) {
            // `model_version`.
            (5, 0) => drop(take_varint(&mut rest)?),
            (GRAPH, 2) => {
                let length = take_varint(&mut rest)?;
                // A node, the name, a tensor, a text, an input.
                return Some(length > 0 && matches!(rest.first()?, 0x0a | 0x12 | 0x2a | 0x52 | 0x5a));
            }
            (field, 2) if WITH_LENGTH.contains(&field) => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            _ => return None,
        }
    }
}

/// Reads the next number of seven bits per byte.
fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}
