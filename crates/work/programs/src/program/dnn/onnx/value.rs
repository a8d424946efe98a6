//! What an edge of the graph carries: a tensor, or whole numbers that are known when the file is read, or both.

use config::Diagnostic;

use super::proto::{NodeProto, TensorProto};
use crate::program::dnn::store::Store;
use crate::program::dnn::view::View;

/// Whole numbers beyond this many are not kept: shapes are short.
pub(crate) const KNOWN_MOST: u64 = 4096;

/// A value of the graph.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Value {
    pub(crate) dims: Vec<u64>,
    /// Bytes of an element.
    pub(crate) width: u8,
    pub(crate) view: Option<View>,
    pub(crate) known: Option<Vec<i64>>,
    /// A short constant of floating-point numbers: factors of sizes.
    pub(crate) reals: Option<Vec<f32>>,
    /// The bytes of a tensor whose elements are parts of bytes; it has no `view` then.
    pub(crate) packed: Option<View>,
}

impl Value {
    /// A tensor, whose elements lie in order.
    pub(crate) fn of(view: View) -> Value {
        let (dims, width) = (view.dims.clone(), view.width);
        Value { dims, width, view: Some(view), known: None, reals: None, packed: None }
    }

    /// Known numbers.
    pub(crate) fn known(dims: Vec<u64>, known: Vec<i64>) -> Value {
        Value { dims, width: 8, view: None, known: Some(known), reals: None, packed: None }
    }

    /// The same elements under other dimensions.
    pub(crate) fn reshape(&self, dims: Vec<u64>) -> Value {
        let view = self.view.as_ref().map(|view| view.reshape(&dims));
        Value { dims, view, ..self.clone() }
    }

    /// A constant of the file in a model's memory, with what is known of its elements.
    pub(crate) fn constant(tensor: &TensorProto, store: &mut Store) -> Result<Value, Diagnostic> {
        let dims = dims_of(&tensor.dims)?;
        let count: u64 = dims.iter().product();
        let mut keep = |dims: &[u64], width: u8| {
            if is_parameter(tensor.data_type) {
                store.parameter("initializer", dims, width)
            } else {
                store.buffer("initializer", dims, width)
            }
        };
        if let Some(of_byte) = packing(tensor.data_type) {
            let bytes = keep(&[count.div_ceil(of_byte)], 1);
            return Ok(Value { dims, width: 1, view: None, known: None, reals: None, packed: Some(bytes) });
        }
        let width = width_of(tensor.data_type)?;
        let view = Some(keep(&dims, width));
        let (known, reals) = (numbers(tensor, count), reals(tensor, count));
        Ok(Value { dims, width, view, known, reals, packed: None })
    }

    /// The same value in a model's memory, where it stays.
    pub(crate) fn lasting(&self, store: &mut Store) -> Value {
        let view = self.view.as_ref().map(|view| store.parameter("constant", &self.dims, view.width));
        let packed = self.packed.as_ref().map(|bytes| store.parameter("constant", &bytes.dims, 1));
        Value { view, packed, ..self.clone() }
    }

    /// Elements.
    pub(crate) fn count(&self) -> u64 {
        self.dims.iter().product()
    }
}

/// Bytes of an element of a data type (`TensorProto.DataType`).
pub(crate) fn width_of(data_type: i32) -> Result<u8, Diagnostic> {
    let name = match data_type {
        // bool, whole numbers and floating-point numbers of eight bits.
        2 | 3 | 9 | 17..=20 | 24 => return Ok(1),
        4 | 5 | 10 | 16 => return Ok(2),
        1 | 6 | 12 => return Ok(4),
        7 | 11 | 13 => return Ok(8),
        8 => "text".to_owned(),
        14 | 15 => "complex numbers".to_owned(),
        21 | 22 | 23 | 25 | 26 => "numbers of two or four bits, which are constants only".to_owned(),
        other => format!("elements of ONNX data type {other}"),
    };
    let help =
        "whole and floating-point numbers of 8 to 64 bits and bool are; constants also have 2 or 4 bits";
    Err(Diagnostic::new(format!("{name}: not supported (data type {data_type})")).help(help))
}

/// Elements of a byte, of data types whose elements are parts of one (uint4, int4, float4e2m1; uint2, int2).
pub(crate) fn packing(data_type: i32) -> Option<u64> {
    match data_type {
        21..=23 => Some(2),
        25 | 26 => Some(4),
        _ => None,
    }
}

/// Whether constants of a data type are parameters. Other whole numbers than those of quantised weights are shapes and indices,
/// no part of a model's size.
pub(super) fn is_parameter(data_type: i32) -> bool {
    packing(data_type).is_some() || matches!(data_type, 1..=3 | 10 | 11 | 16..=20 | 24)
}

/// A tensor's dimensions.
pub(crate) fn dims_of(dims: &[i64]) -> Result<Vec<u64>, Diagnostic> {
    let dims: Result<Vec<u64>, _> = dims.iter().map(|d| u64::try_from(*d)).collect();
    let dims = dims.map_err(|_| Diagnostic::new("a tensor with a negative dimension"))?;
    check_size(&dims)?;
    Ok(dims)
}

/// Elements of a tensor at most: none is that large, and grids and products of two sizes stay within their types.
const ELEMENTS_MOST: u64 = 1 << 31;

/// Refuses a tensor that is too large.
pub(crate) fn check_size(dims: &[u64]) -> Result<(), Diagnostic> {
    let count = dims.iter().try_fold(1_u64, |count, d| count.checked_mul(*d));
    match count {
        Some(count) if count <= ELEMENTS_MOST => Ok(()),
        _ => Err(Diagnostic::new(format!("a tensor of {dims:?} elements is too large"))),
    }
}

/// The whole numbers of a short constant; none if it is long or has other elements.
pub(crate) fn numbers(tensor: &TensorProto, count: u64) -> Option<Vec<i64>> {
    if count > KNOWN_MOST {
        return None;
    }
    let raw = &tensor.raw_data;
    let numbers: Vec<i64> = match tensor.data_type {
        7 if raw.is_empty() => tensor.int64_data.clone(),
        7 => raw.chunks_exact(8).filter_map(|b| b.try_into().ok().map(i64::from_le_bytes)).collect(),
        6 if raw.is_empty() => tensor.int32_data.iter().map(|n| i64::from(*n)).collect(),
        6 => raw
            .chunks_exact(4)
            .filter_map(|b| b.try_into().ok().map(i32::from_le_bytes))
            .map(i64::from)
            .collect(),
        _ => return None,
    };
    (numbers.len() as u64 == count).then_some(numbers)
}

/// The only number of a constant, if it has one that is whole.
pub(crate) fn first_number(tensor: &TensorProto) -> Option<i64> {
    numbers(tensor, 1).map(|numbers| numbers[0])
}

/// Floating-point numbers beyond this many are not kept: a factor for each dimension.
const REALS_MOST: u64 = 8;

/// The numbers of a short constant of floats; none if it is long or has other elements.
fn reals(tensor: &TensorProto, count: u64) -> Option<Vec<f32>> {
    if tensor.data_type != 1 || count > REALS_MOST {
        return None;
    }
    let raw = tensor.raw_data.chunks_exact(4).filter_map(|b| b.try_into().ok().map(f32::from_le_bytes));
    let reals = if tensor.raw_data.is_empty() { tensor.float_data.clone() } else { raw.collect() };
    (reals.len() as u64 == count).then_some(reals)
}

/// An attribute that is a whole number.
pub(crate) fn integer(node: &NodeProto, name: &str, default: i64) -> i64 {
    node.attribute.iter().find(|a| a.name == name).map_or(default, |a| a.i)
}

/// An attribute that is several whole numbers.
pub(crate) fn integers<'a>(node: &'a NodeProto, name: &str) -> Option<&'a [i64]> {
    node.attribute.iter().find(|a| a.name == name).map(|a| a.ints.as_slice())
}

/// An attribute that is a text; empty if it is not there.
pub(crate) fn text(node: &NodeProto, name: &str) -> String {
    let found = node.attribute.iter().find(|a| a.name == name);
    found.map_or(String::new(), |a| String::from_utf8_lossy(&a.s).into_owned())
}

/// A dimension counted from the end if it is negative.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, Diagnostic> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_front)
        .ok()
        .filter(|n| *n < rank)
        .ok_or_else(|| Diagnostic::new(format!("dimension {axis} of a tensor with {rank}")))
}
