//! Values of a graph: a tensor, whole numbers known when the file is read, or both; open dimensions of a file, and
//! elements in external files.

use config::{Diagnostic, Place};

use super::proto::{Dimension, GraphProto, NodeProto, TensorProto, ValueInfoProto};
use crate::program::dnn::memory::{Store, View};
use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Component, Path},
};

/// Maximum number of known whole numbers per value: shapes are short.
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
    /// Bytes of a tensor whose elements are smaller than a byte; `view` is then none.
    pub(crate) packed: Option<View>,
}

impl Value {
    /// Returns the value of a contiguous tensor.
    pub(crate) fn of(view: View) -> Value {
        let (dims, width) = (view.dims.clone(), view.width);
        Value { dims, width, view: Some(view), known: None, reals: None, packed: None }
    }

    /// Returns a value of known numbers.
    pub(crate) fn known(dims: Vec<u64>, known: Vec<i64>) -> Value {
        Value { dims, width: 8, view: None, known: Some(known), reals: None, packed: None }
    }

    /// Returns the same elements with different dimensions.
    pub(crate) fn reshape(&self, dims: Vec<u64>) -> Value {
        let view = self.view.as_ref().map(|view| view.reshape(&dims));
        Value { dims, view, ..self.clone() }
    }

    /// Places a constant of the file in a model's memory, with the known values of its elements.
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

    /// Places the value permanently in a model's memory.
    pub(crate) fn lasting(&self, store: &mut Store) -> Value {
        let view = self.view.as_ref().map(|view| store.parameter("constant", &self.dims, view.width));
        let packed = self.packed.as_ref().map(|bytes| store.parameter("constant", &bytes.dims, 1));
        Value { view, packed, ..self.clone() }
    }

    /// Returns the number of elements.
    pub(crate) fn count(&self) -> u64 {
        self.dims.iter().product()
    }
}

/// Returns the bytes of an element of a data type (`TensorProto.DataType`).
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

/// Returns the elements per byte of data types with elements smaller than a byte (uint4, int4, float4e2m1; uint2,
/// int2).
pub(crate) fn packing(data_type: i32) -> Option<u64> {
    match data_type {
        21..=23 => Some(2),
        25 | 26 => Some(4),
        _ => None,
    }
}

/// Returns true if constants of a data type are parameters. Whole numbers other than quantised weights are shapes and
/// indices, which do not count towards a model's size.
pub(super) fn is_parameter(data_type: i32) -> bool {
    packing(data_type).is_some() || matches!(data_type, 1..=3 | 10 | 11 | 16..=20 | 24)
}

/// Returns a tensor's dimensions.
pub(crate) fn dims_of(dims: &[i64]) -> Result<Vec<u64>, Diagnostic> {
    let dims: Result<Vec<u64>, _> = dims.iter().map(|d| u64::try_from(*d)).collect();
    let dims = dims.map_err(|_| Diagnostic::new("a tensor with a negative dimension"))?;
    check_size(&dims)?;
    Ok(dims)
}

/// Maximum number of elements of a tensor: real ones are smaller, and grids and products of two sizes stay within
/// their types.
const ELEMENTS_MOST: u64 = 1 << 31;

/// Refuses a tensor that is too large.
pub(crate) fn check_size(dims: &[u64]) -> Result<(), Diagnostic> {
    let count = dims.iter().try_fold(1_u64, |count, d| count.checked_mul(*d));
    match count {
        Some(count) if count <= ELEMENTS_MOST => Ok(()),
        _ => Err(Diagnostic::new(format!("a tensor of shape {dims:?} is too large"))),
    }
}

/// Returns the whole numbers of a short constant; none if it is long or has other elements.
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

/// Returns the only number of a constant, if it has exactly one whole number.
pub(crate) fn first_number(tensor: &TensorProto) -> Option<i64> {
    numbers(tensor, 1).map(|numbers| numbers[0])
}

/// Maximum number of known floating-point numbers: a factor for each dimension.
const REALS_MOST: u64 = 8;

/// Returns the numbers of a short constant of floats; none if it is long or has other elements.
fn reals(tensor: &TensorProto, count: u64) -> Option<Vec<f32>> {
    if tensor.data_type != 1 || count > REALS_MOST {
        return None;
    }
    let raw = tensor.raw_data.chunks_exact(4).filter_map(|b| b.try_into().ok().map(f32::from_le_bytes));
    let reals = if tensor.raw_data.is_empty() { tensor.float_data.clone() } else { raw.collect() };
    (reals.len() as u64 == count).then_some(reals)
}

/// Reads an attribute that is a whole number.
pub(crate) fn integer(node: &NodeProto, name: &str, default: i64) -> i64 {
    node.attribute.iter().find(|a| a.name == name).map_or(default, |a| a.i)
}

/// Reads an attribute that is a list of whole numbers.
pub(crate) fn integers<'a>(node: &'a NodeProto, name: &str) -> Option<&'a [i64]> {
    node.attribute.iter().find(|a| a.name == name).map(|a| a.ints.as_slice())
}

/// Reads an attribute that is a text; empty if absent.
pub(crate) fn text(node: &NodeProto, name: &str) -> String {
    let found = node.attribute.iter().find(|a| a.name == name);
    found.map_or(String::new(), |a| String::from_utf8_lossy(&a.s).into_owned())
}

/// Returns a dimension, counted from the end if it is negative.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize, Diagnostic> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(from_front).ok().filter(|n| *n < rank).ok_or_else(|| {
        Diagnostic::new(format!("dimension {axis} does not exist in a tensor of {rank} dimensions"))
    })
}

// Dimensions that a file leaves open, and those that it states.

/// Lengths of open dimensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Dimensions {
    /// Lengths by the names in the file.
    pub(crate) named: Vec<(String, u64)>,
    /// Length of all others.
    pub(crate) other: u64,
}

/// Returns a tensor's dimensions as in the file; none if it is not a tensor.
fn stated(of: &ValueInfoProto) -> Option<(&[Dimension], i32)> {
    let tensor = of.r#type.as_ref()?.tensor_type.as_ref()?;
    Some((tensor.shape.as_ref().map_or(&[], |shape| shape.dim.as_slice()), tensor.elem_type))
}

/// Returns a dimension that is a number.
fn fixed_size(dimension: &Dimension) -> Option<i64> {
    dimension.dim_value.filter(|n| *n > 0)
}

impl Dimensions {
    /// Refuses names that no input has.
    pub(super) fn check(&self, inputs: &[ValueInfoProto]) -> Result<(), Diagnostic> {
        let all = || inputs.iter().filter_map(stated).flat_map(|(dims, _)| dims);
        let open = || all().filter(|d| fixed_size(d).is_none()).filter_map(|d| d.dim_param.as_deref());
        match self.named.iter().find(|(name, _)| !open().any(|known| known == name)) {
            None => Ok(()),
            Some((name, _)) => {
                let mut names: Vec<&str> = open().collect();
                names.sort_unstable();
                names.dedup();
                let refused =
                    Diagnostic::new(format!("no input of the model has an open dimension `{name}`"));
                Err(if names.is_empty() {
                    refused.help("its open dimensions have no names: `dimension=` is the length of all")
                } else {
                    refused.allowed(name, names)
                })
            }
        }
    }

    /// Describes the options that set the open dimensions of the inputs, with their current lengths; none if there
    /// are none.
    pub(super) fn options(&self, inputs: &[&ValueInfoProto]) -> Option<String> {
        let all = inputs.iter().filter_map(|input| stated(input)).flat_map(|(dims, _)| dims);
        let mut open: Vec<(Option<&str>, i64)> = all
            .filter(|dimension| fixed_size(dimension).is_none())
            .map(|d| (d.dim_param.as_deref().filter(|name| !name.is_empty()), self.length(d)))
            .collect();
        open.sort_unstable();
        open.dedup();
        let names: Vec<&str> = open.iter().filter_map(|(name, _)| *name).collect();
        let lengths: Vec<String> = open
            .iter()
            .map(|(name, length)| {
                format!("{} = {length}", name.map_or("without a name".to_owned(), |name| format!("`{name}`")))
            })
            .collect();
        if lengths.is_empty() {
            return None;
        }
        let each: Vec<String> = names.iter().map(|name| format!("{name}:LENGTH")).collect();
        let by_name = if each.is_empty() {
            String::new()
        } else {
            format!("`dimensions={}` sets them by name, ", each.join("/"))
        };
        Some(format!(
            "the file leaves dimensions open ({}): {by_name}`dimension=LENGTH` sets all others",
            lengths.join(", ")
        ))
    }

    fn length(&self, dimension: &Dimension) -> i64 {
        let named = || self.named.iter().find(|(name, _)| Some(name) == dimension.dim_param.as_ref());
        fixed_size(dimension).unwrap_or_else(|| named().map_or(self.other, |(_, length)| *length) as i64)
    }

    /// Returns the dimensions of an input, and the bytes of an element.
    pub(super) fn shape(&self, input: &ValueInfoProto) -> Result<(Vec<u64>, u8), Diagnostic> {
        let place = || Place { key: input.name.clone(), ..Place::default() };
        let Some((dims, elements)) = stated(input) else {
            return Err(Diagnostic::new(format!("input `{}` is not a tensor", input.name)).at(place()));
        };
        let dims: Vec<i64> = dims.iter().map(|dimension| self.length(dimension)).collect();
        let width = width_of(elements).map_err(|fault| fault.at(place()))?;
        Ok((dims_of(&dims).map_err(|fault| fault.at(place()))?, width))
    }
}

/// Compares the resulting shapes with those stated in the file, where these are numbers.
///
/// # Errors
/// If a shape differs: the first one.
pub(super) fn agree<'a>(
    declared: impl Iterator<Item = &'a ValueInfoProto>,
    made: impl Fn(&str) -> Option<&'a [u64]>,
) -> Result<(), Diagnostic> {
    for value in declared {
        let (Some((dims, _)), Some(made)) = (stated(value), made(&value.name)) else { continue };
        let same = |(stated, made): (&Dimension, &u64)| fixed_size(stated).is_none_or(|n| n as u64 == *made);
        if !dims.is_empty() && (dims.len() != made.len() || !dims.iter().zip(made).all(same)) {
            let stated: Vec<String> =
                dims.iter().map(|d| fixed_size(d).map_or("?".to_owned(), |n| n.to_string())).collect();
            let name = &value.name;
            let what = format!("`{name}` has shape {made:?}, but [{}] in the file", stated.join(", "));
            let place = Place { key: name.clone(), ..Place::default() };
            return Err(Diagnostic::new(what).at(place));
        }
    }
    Ok(())
}

// Tensors whose elements are in files beside the model (ONNX, "External Data").

/// Loads external data that is short enough to be a shape; elements of longer tensors are not needed.
///
/// # Errors
/// If a file is outside the model's folder, or cannot be read.
pub(super) fn bring_in_external(graph: &mut GraphProto, folder: &Path) -> Result<(), Diagnostic> {
    let of_nodes = graph.node.iter_mut().flat_map(|node| &mut node.attribute).filter_map(|a| a.t.as_mut());
    for tensor in graph.initializer.iter_mut().chain(of_nodes) {
        let count = tensor.dims.iter().try_fold(1_u64, |n, d| n.checked_mul(u64::try_from(*d).ok()?));
        let is_short = count.is_some_and(|count| count <= KNOWN_MOST);
        if tensor.external_data.is_empty() || !is_short || !matches!(tensor.data_type, 1 | 6 | 7) {
            continue;
        }
        let bytes = count.unwrap_or(0) * u64::from(width_of(tensor.data_type)?);
        tensor.raw_data = read_external(tensor, bytes, folder)?.into();
    }
    Ok(())
}

fn read_external(tensor: &TensorProto, bytes: u64, folder: &Path) -> Result<Vec<u8>, Diagnostic> {
    let of = |key: &str| tensor.external_data.iter().find(|entry| entry.key == key).map(|e| e.value.as_str());
    let location = of("location").unwrap_or_default();
    let is_inside = Path::new(location).components().all(|part| matches!(part, Component::Normal(_)));
    if location.is_empty() || !is_inside {
        let what = format!("the elements of `{}` are in `{location}`", tensor.name);
        return Err(Diagnostic::new(what).help("elements may be in files in the model's folder"));
    }
    let offset = of("offset").map_or(Ok(0), str::parse);
    let offset =
        offset.map_err(|_| Diagnostic::new(format!("the offset of `{}` is not a number", tensor.name)))?;
    let mut found = vec![0; bytes as usize];
    File::open(folder.join(location))
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut found)
        })
        .map_err(|fault| {
            let what = format!("the elements of `{}` are in `{location}`: {fault}", tensor.name);
            Diagnostic::new(what).help("put the file beside the model; only shapes are read from it")
        })?;
    Ok(found)
}
